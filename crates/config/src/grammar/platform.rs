//! The part of the grammar that differs by platform: where machines come from, and what is said about each.

use super::table::{optional, required};
use super::{Attribute, Block, Kind, Label, Presence, Times};
use crate::limits::MAX_MACHINES;

const PROXMOX: &str = "proxmox";
const MACHINES: &str = "machines";

pub(super) const PLATFORM: Block = Block {
    keyword: "platform",
    label: Label::OneOf(&[PROXMOX, MACHINES]),
    times: Times::Once,
    doc: "Where machines come from: castle makes VMs on a Proxmox VE host, or the machines stand already (bare metal, \
          VMs of anybody's making), booted from a Talos image and waiting in maintenance mode at their addresses.",
    attributes: &[
        required("endpoint", Kind::Server, "\"https://pve.lan:8006\"", "The API of Proxmox VE.")
            .only(PROXMOX),
        optional(
            "fingerprint",
            Kind::Fingerprint,
            Presence::Optional,
            "\"5D:0E:…\"",
            "The SHA-256 fingerprint of the certificate of the API. Without `fingerprint` and `ca` it is verified \
             by the roots of the system; both together are refused.",
        )
        .only(PROXMOX),
        optional(
            "ca",
            Kind::Certificates,
            Presence::Optional,
            "file(\"pve-root-ca.pem\")",
            "The PEM certificate of the authority that signed the certificate of the API.",
        )
        .only(PROXMOX),
        optional(
            "token",
            Kind::Secret,
            Presence::Derived("`token_id` and `token_secret` are required"),
            "secret(\"PROXMOX_TOKEN\")",
            "The API token as one text, `USER@REALM!ID=SECRET`; or give the two below.",
        )
        .only(PROXMOX),
        optional(
            "token_id",
            Kind::Secret,
            Presence::Derived("`token` is required"),
            "secret(\"PROXMOX_TOKEN_ID\")",
            "The API token's name, `USER@REALM!ID`.",
        )
        .only(PROXMOX),
        optional(
            "token_secret",
            Kind::Secret,
            Presence::Derived("`token` is required"),
            "secret(\"PROXMOX_TOKEN_SECRET\")",
            "The API token's secret.",
        )
        .only(PROXMOX),
        required("node", Kind::Word, "\"pve\"", "The Proxmox node that carries the VMs.")
            .only(PROXMOX),
        required("storage", Kind::Word, "\"local-lvm\"", "The storage for disks.").only(PROXMOX),
        required(
            "image_storage",
            Kind::Word,
            "\"local\"",
            "A storage that takes content `import`, for the Talos image.",
        )
        .only(PROXMOX),
        required("bridge", Kind::Word, "\"vmbr0\"", "The network bridge.").only(PROXMOX),
        required(
            "vmids",
            Kind::VmIds,
            "\"421-432\"",
            "The VM ids that the castle may use, both ends included. No VM outside of it is ever touched.",
        )
        .only(PROXMOX),
        optional(
            "installer",
            Kind::Label,
            Presence::Default("\"metal\""),
            "\"nocloud\"",
            "The platform of the image that the machines booted, as the image factory calls it.",
        )
        .only(MACHINES),
        optional(
            "install_disk",
            Kind::Device,
            Presence::Default("\"/dev/sda\""),
            "\"/dev/nvme0n1\"",
            "The disk that Talos is installed to, on machines where it is not installed yet.",
        )
        .only(MACHINES),
        optional(
            "link",
            Kind::Word,
            Presence::Default("\"eth0\""),
            "\"enp1s0\"",
            "The network interface that gets the machine's address. Images of the platform `metal` name interfaces by \
             their place (`enp1s0`) unless they were booted with `net.ifnames=0`: then it must be set.",
        )
        .only(MACHINES),
        extensions(
            "[\"siderolabs/iscsi-tools\", \"siderolabs/qemu-guest-agent\", \"siderolabs/util-linux-tools\"]",
        )
        .only(PROXMOX),
        extensions("[\"siderolabs/iscsi-tools\", \"siderolabs/util-linux-tools\"]").only(MACHINES),
    ],
    open: None,
    blocks: &[],
};

const fn extensions(default: &'static str) -> Attribute {
    optional(
        "extensions",
        Kind::ExtensionList,
        Presence::Default(default),
        "[\"siderolabs/iscsi-tools\", \"siderolabs/qemu-guest-agent\"]",
        "Talos system extensions in the image. Longhorn needs `siderolabs/iscsi-tools` and \
         `siderolabs/util-linux-tools`.",
    )
}

pub(super) const NODES: Block = Block {
    keyword: "nodes",
    label: Label::OneOf(&["control-plane", "worker"]),
    times: Times::AtMostOnce,
    doc: "Machines of one role. Both roles are required: the count of control planes must be odd, and there must be \
          at least one worker, because control planes take no workloads. The machines are numbered: the second has \
          the second address, name, VM id or UUID, and so on.",
    attributes: &[
        required("count", Kind::Integer(0, MAX_MACHINES), "3", "How many machines."),
        required(
            "first_ip",
            Kind::Address,
            "\"192.168.1.211\"",
            "The address of the first; the others follow it, counted as addresses.",
        ),
        required(
            "first_vmid",
            Kind::Integer(0, 999_999_999),
            "421",
            "The VM id of the first; the others follow it.",
        )
        .only(PROXMOX),
        required("cores", Kind::Integer(1, 512), "4", "Virtual processors of each.").only(PROXMOX),
        required("memory", Kind::Size, "\"8GiB\"", "Memory of each, in whole MiB.").only(PROXMOX),
        required("disk", Kind::Size, "\"40GiB\"", "System disk of each, in whole GiB.")
            .only(PROXMOX),
        optional(
            "data_disk",
            Kind::Size,
            Presence::Optional,
            "\"100GiB\"",
            "A second disk of each for Longhorn's volumes, in whole GiB.",
        )
        .only(PROXMOX),
        optional(
            "data_disk",
            Kind::Boolean,
            Presence::Default("false"),
            "true",
            "Whether each has a second, empty disk, which Longhorn's volumes then live on.",
        )
        .only(MACHINES),
        optional(
            "uuids",
            Kind::UuidList,
            Presence::Derived("the UUID that a machine shows at first contact is recorded"),
            "[\"4c4c4544-0039-3010-8036-b7c04f4b4d31\"]",
            "The SMBIOS UUIDs of the machines in their order, as many as `count`. A machine that shows another one \
             is not given a config.",
        )
        .only(MACHINES),
        optional(
            "name_prefix",
            Kind::Label,
            Presence::Derived("`cp` for control planes, `worker` for workers"),
            "\"node\"",
            "What the names begin with: `cp` gives `cp-01`, `cp-02` and so on.",
        ),
    ],
    open: None,
    blocks: &[],
};
