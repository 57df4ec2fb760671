//! The one table of everything that may stand in a castle file: the reader, its suggestions and the reference use it.

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

const ENABLED: Attribute = optional(
    "enabled",
    Kind::Boolean,
    Presence::Default("true"),
    "false",
    "Whether castle installs this layer.",
);

const OWNER: Attribute = optional(
    "owner",
    Kind::Choice(&["castle"]),
    Presence::Default("\"castle\""),
    "\"castle\"",
    "Who installs the layer. `\"flux\"` (castle then only observes it) is not in this version yet.",
);

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
        LAYER, DEADLINES,
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

const ENGINE: Block = Block {
    keyword: "engine",
    label: Label::OneOf(&["external-secrets"]),
    times: Times::AtMostOnce,
    doc: "External Secrets, which brings secrets into the cluster. Left out, it is installed with the defaults.",
    attributes: &[ENABLED, OWNER],
    open: None,
    blocks: &[],
};

const NETWORKING: Block = Block {
    keyword: "networking",
    label: Label::OneOf(&["metallb"]),
    times: Times::AtMostOnce,
    doc: "MetalLB, which announces the addresses of `pool`. Left out, it is installed with the defaults.",
    attributes: &[ENABLED, OWNER],
    open: None,
    blocks: &[],
};

const STORAGE: Block = Block {
    keyword: "storage",
    label: Label::OneOf(&["longhorn"]),
    times: Times::AtMostOnce,
    doc: "Longhorn, which keeps volumes. Left out, it is installed with the defaults. Volumes live on the machines \
          with a `data_disk`; if there are none, on the workers' system disks.",
    attributes: &[
        ENABLED,
        OWNER,
        optional(
            "replicas",
            Kind::Integer(1, 20),
            Presence::Derived("2, or 1 if only one machine carries volumes"),
            "2",
            "Copies of each volume, each on a machine of its own.",
        ),
    ],
    open: None,
    blocks: &[],
};

const GITOPS: Block = Block {
    keyword: "gitops",
    label: Label::OneOf(&["flux"]),
    times: Times::AtMostOnce,
    doc: "Flux and the repository that it follows. Left out, nothing is handed over.",
    attributes: &[
        ENABLED,
        OWNER,
        required(
            "url",
            Kind::Repository,
            "\"https://github.com/example/tazlab-k8s\"",
            "The repository, https.",
        ),
        optional(
            "branch",
            Kind::Text,
            Presence::Default("\"main\""),
            "\"main\"",
            "The branch that Flux follows.",
        ),
        required(
            "path",
            Kind::RepositoryPath,
            "\"clusters/blue\"",
            "The folder of this cluster in the repository.",
        ),
        optional(
            "token",
            Kind::Secret,
            Presence::Optional,
            "secret(\"GITHUB_TOKEN\")",
            "The token that reads the repository; none for a public one.",
        ),
        optional(
            "vars",
            Kind::TextMap,
            Presence::Default("{}"),
            "{ domain = \"tazlab.net\" }",
            "Values for the ConfigMap `cluster-vars`, which Kustomizations may substitute. Not for secrets: a plain \
             value under a name such as `db_password` is refused.",
        ),
    ],
    open: None,
    blocks: &[],
};

const LAYER: Block = Block {
    keyword: "layer",
    label: Label::Name("metrics"),
    times: Times::Any,
    doc: "A layer of your own, beyond those built in.",
    attributes: &[
        optional(
            "after",
            Kind::LayerList,
            Presence::Default("[]"),
            "[\"networking\"]",
            "Layers that must be finished before. Every layer comes after `platform`.",
        ),
        required(
            "manifests",
            Kind::ProjectPath,
            "\"./metrics\"",
            "A folder (or one file) with YAML manifests in the project folder, applied in the order of their paths. \
             There must be at least one that is not empty.",
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
