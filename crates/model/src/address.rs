//! Addresses computed as addresses, never as text (MISSION T7).

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An IPv4 network in CIDR form, such as `192.168.1.0/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Subnet {
    network: Ipv4Addr,
    prefix: u8,
}

/// An inclusive range of addresses, such as `192.168.1.230-192.168.1.245`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AddressRange {
    first: Ipv4Addr,
    last: Ipv4Addr,
}

/// The address `by` places after `address`, or none past the end of the address space.
#[must_use]
pub fn offset(address: Ipv4Addr, by: u32) -> Option<Ipv4Addr> {
    u32::from(address).checked_add(by).map(Ipv4Addr::from)
}

impl Subnet {
    /// The first address, which names the network.
    #[must_use]
    pub fn network(&self) -> Ipv4Addr {
        self.network
    }

    /// The length of the network part in bits.
    #[must_use]
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// The last address.
    #[must_use]
    pub fn broadcast(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.network) | !mask(self.prefix))
    }

    /// Whether the address lies in the network.
    #[must_use]
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        u32::from(address) & mask(self.prefix) == u32::from(self.network)
    }

    /// Whether the two networks share an address.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.contains(other.network) || other.contains(self.network)
    }

    /// The address with number `host`, as Terraform's `cidrhost` counts; negative counts from the end.
    #[must_use]
    pub fn host(&self, host: i64) -> Option<Ipv4Addr> {
        let size = i64::from(!mask(self.prefix)) + 1;
        let index = if host < 0 { size + host } else { host };
        if !(0..size).contains(&index) {
            return None;
        }
        offset(self.network, u32::try_from(index).ok()?)
    }
}

impl AddressRange {
    /// A range from `first` to `last`, both in it; none if they stand the wrong way round.
    #[must_use]
    pub fn new(first: Ipv4Addr, last: Ipv4Addr) -> Option<Self> {
        (first <= last).then_some(Self { first, last })
    }

    /// The lowest address.
    #[must_use]
    pub fn first(&self) -> Ipv4Addr {
        self.first
    }

    /// The highest address.
    #[must_use]
    pub fn last(&self) -> Ipv4Addr {
        self.last
    }

    /// Whether the address lies in the range.
    #[must_use]
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&address)
    }
}

fn mask(prefix: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0)
}

impl FromStr for Subnet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, prefix) = text
            .split_once('/')
            .ok_or_else(|| format!("`{text}` has no prefix length (write it as 192.168.1.0/24)"))?;
        let network: Ipv4Addr =
            address.parse().map_err(|_| format!("`{address}` is not an IPv4 address"))?;
        let prefix: u8 = prefix
            .parse()
            .ok()
            .filter(|p| *p <= 32)
            .ok_or_else(|| format!("`{prefix}` is not a prefix length (0 to 32)"))?;
        let base = Ipv4Addr::from(u32::from(network) & mask(prefix));
        if base != network {
            return Err(format!("`{text}` has host bits set; the network is {base}/{prefix}"));
        }
        Ok(Self { network, prefix })
    }
}

impl FromStr for AddressRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').ok_or_else(|| {
            format!("`{text}` is not a range (write it as 192.168.1.230-192.168.1.245)")
        })?;
        let parse = |part: &str| {
            part.trim().parse().map_err(|_| format!("`{}` is not an IPv4 address", part.trim()))
        };
        let (first, last) = (parse(first)?, parse(last)?);
        Self::new(first, last).ok_or_else(|| format!("{first} comes after {last}"))
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

impl TryFrom<String> for Subnet {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl TryFrom<String> for AddressRange {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Subnet> for String {
    fn from(subnet: Subnet) -> Self {
        subnet.to_string()
    }
}

impl From<AddressRange> for String {
    fn from(range: AddressRange) -> Self {
        range.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_past_a_decimal_digit() {
        // The original built addresses by gluing digits: index 5 after .155 became .1510.
        let first = Ipv4Addr::new(192, 168, 1, 155);
        assert_eq!(offset(first, 5), Some(Ipv4Addr::new(192, 168, 1, 160)));
        assert_eq!(offset(Ipv4Addr::BROADCAST, 1), None);
    }

    #[test]
    fn subnets_refuse_host_bits_and_nonsense() {
        assert!("192.168.1.0/24".parse::<Subnet>().is_ok());
        for bad in ["192.168.1.1/24", "192.168.1.0", "192.168.1.0/33", "x/8", "1.2.3/8"] {
            assert!(bad.parse::<Subnet>().is_err(), "{bad}");
        }
    }

    #[test]
    fn hosts_count_from_both_ends() {
        let subnet: Subnet = "10.0.0.0/30".parse().unwrap();
        assert_eq!(subnet.host(1), Some(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(subnet.host(-1), Some(subnet.broadcast()));
        assert_eq!(subnet.host(4), None);
        assert_eq!(subnet.host(-5), None);
        assert_eq!(subnet.host(i64::MIN), None);
    }

    proptest! {
        #[test]
        fn a_subnet_holds_its_ends_and_not_its_neighbours(address: u32, prefix in 1_u8..=32) {
            let network = Ipv4Addr::from(address & mask(prefix));
            let subnet: Subnet = format!("{network}/{prefix}").parse().unwrap();
            prop_assert!(subnet.contains(subnet.network()) && subnet.contains(subnet.broadcast()));
            if let Some(next) = offset(subnet.broadcast(), 1) {
                prop_assert!(!subnet.contains(next));
            }
            prop_assert_eq!(subnet.to_string().parse(), Ok(subnet));
        }
    }
}
