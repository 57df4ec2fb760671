//! Takes values out of their typed form, one small rule for each type.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use castle_model::spec::{SecretRef, Version};
use castle_model::{AddressRange, Subnet, VmId};

use crate::convert::{Located, Typed};
use crate::reader::FromTyped;

/// A size in MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mebibytes(pub(crate) u64);

impl FromTyped for String {
    fn from_typed(typed: &Typed) -> Option<Self> {
        if let Typed::Text(value) = typed { Some(value.clone()) } else { None }
    }
}

impl FromTyped for i64 {
    fn from_typed(typed: &Typed) -> Option<Self> {
        if let Typed::Integer(value) = typed { Some(*value) } else { None }
    }
}

impl FromTyped for bool {
    fn from_typed(typed: &Typed) -> Option<Self> {
        if let Typed::Boolean(value) = typed { Some(*value) } else { None }
    }
}

impl FromTyped for Version {
    fn from_typed(typed: &Typed) -> Option<Self> {
        if let Typed::Version(value) = typed { Some(*value) } else { None }
    }
}

impl FromTyped for Ipv4Addr {
    fn from_typed(typed: &Typed) -> Option<Self> {
        if let Typed::Address(value) = typed { Some(*value) } else { None }
    }
}

impl FromTyped for Subnet {
    fn from_typed(typed: &Typed) -> Option<Self> {
        if let Typed::Subnet(value) = typed { Some(*value) } else { None }
    }
}

impl FromTyped for AddressRange {
    fn from_typed(typed: &Typed) -> Option<Self> {
        if let Typed::AddressRange(value) = typed { Some(*value) } else { None }
    }
}

impl FromTyped for (VmId, VmId) {
    fn from_typed(typed: &Typed) -> Option<Self> {
        if let Typed::VmIds(first, last) = typed { Some((*first, *last)) } else { None }
    }
}

impl FromTyped for Mebibytes {
    fn from_typed(typed: &Typed) -> Option<Self> {
        if let Typed::Mebibytes(value) = typed { Some(Self(*value)) } else { None }
    }
}

impl FromTyped for Duration {
    fn from_typed(typed: &Typed) -> Option<Self> {
        if let Typed::Duration(value) = typed { Some(*value) } else { None }
    }
}

impl FromTyped for SecretRef {
    fn from_typed(typed: &Typed) -> Option<Self> {
        if let Typed::Secret(value) = typed { Some(value.clone()) } else { None }
    }
}

impl FromTyped for Vec<Located<String>> {
    fn from_typed(typed: &Typed) -> Option<Self> {
        if let Typed::Texts(value) = typed { Some(value.clone()) } else { None }
    }
}

impl FromTyped for Vec<Ipv4Addr> {
    fn from_typed(typed: &Typed) -> Option<Self> {
        if let Typed::Addresses(value) = typed { Some(value.clone()) } else { None }
    }
}

impl FromTyped for BTreeMap<String, String> {
    fn from_typed(typed: &Typed) -> Option<Self> {
        if let Typed::Map(value) = typed { Some(value.clone()) } else { None }
    }
}
