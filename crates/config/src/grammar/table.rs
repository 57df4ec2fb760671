//! The one table of everything that may stand in a castle file: the reader, its suggestions and the reference use it.

use super::downloads::DOWNLOADS;
use super::layers::{ENGINE, GITOPS, LAYER, NETWORKING, STORAGE};
use super::machine::MACHINE;
use super::platform::{NODES, PLATFORM};
use super::secrets::{ESCROW, SECRETS};
use super::{Attribute, Block, Kind, Label, Presence, Times};

pub(super) const fn required(
    key: &'static str,
    kind: Kind,
    example: &'static str,
    doc: &'static str,
) -> Attribute {
    optional(key, kind, Presence::Required, example, doc)
}

pub(super) const fn optional(
    key: &'static str,
    kind: Kind,
    presence: Presence,
    example: &'static str,
    doc: &'static str,
) -> Attribute {
    Attribute { key, variant: None, kind, presence, doc, example }
}

/// The whole castle file.
pub(crate) const CASTLE: Block = Block {
    keyword: "castle",
    label: Label::Name("blue"),
    times: Times::Once,
    doc: "One castle. Its name is a DNS label; it becomes the name of the Kubernetes cluster and marks everything \
          that belongs to the castle.",
    attributes: &[
        required(
            "talos",
            Kind::Version,
            "\"1.13.9\"",
            "The version of Talos, see the table of versions.",
        ),
        required(
            "kubernetes",
            Kind::Version,
            "\"1.36.3\"",
            "The version of Kubernetes; it must fit the version of Talos, see the table of versions.",
        ),
    ],
    open: None,
    blocks: &[
        SECRETS, ESCROW, PLATFORM, NETWORK, NODES, MACHINE, ENGINE, NETWORKING, STORAGE, GITOPS,
        LAYER, DOWNLOADS, DEADLINES,
    ],
};

const NETWORK: Block = Block {
    keyword: "network",
    label: Label::None,
    times: Times::Once,
    doc: "Addresses, IPv4. All are fixed; nothing comes from DHCP.",
    attributes: &[
        required(
            "subnet",
            Kind::Subnet,
            "\"192.168.1.0/24\"",
            "The network that the machines are in.",
        ),
        required("gateway", Kind::Address, "\"192.168.1.1\"", "The gateway of the subnet."),
        required(
            "vip",
            Kind::Address,
            "\"192.168.1.210\"",
            "The address that the control planes share; the API server answers there.",
        ),
        optional(
            "nameservers",
            Kind::AddressList,
            Presence::Derived("the gateway"),
            "[\"192.168.1.1\"]",
            "Name servers of the machines.",
        ),
        optional(
            "ntp",
            Kind::HostList,
            Presence::Default("[\"time.cloudflare.com\"]"),
            "[\"ntp.lan\"]",
            "Time servers of the machines.",
        ),
        required(
            "pool",
            Kind::AddressRange,
            "\"192.168.1.230-192.168.1.245\"",
            "Addresses for services of type LoadBalancer, both ends included.",
        ),
        optional(
            "pods",
            Kind::Subnet,
            Presence::Default("\"10.244.0.0/16\""),
            "\"10.244.0.0/16\"",
            "Addresses of pods; each machine takes a /24 of it.",
        ),
        optional(
            "services",
            Kind::Subnet,
            Presence::Default("\"10.96.0.0/12\""),
            "\"10.96.0.0/12\"",
            "Addresses of services.",
        ),
    ],
    open: None,
    blocks: &[],
};

const DEADLINES: Block = Block {
    keyword: "deadlines",
    label: Label::None,
    times: Times::AtMostOnce,
    doc: "How long castle waits before it gives up, by the kind of wait or by the layer, which sets all kinds of \
          wait of that layer. The kinds and their defaults are in the table of deadlines.",
    attributes: &[],
    open: Some(Kind::Duration),
    blocks: &[],
};
