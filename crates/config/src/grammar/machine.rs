//! The part of the grammar about what every machine's Talos is told beyond the necessary.

use super::table::optional;
use super::{Block, Kind, Label, Presence, Times};

pub(super) const MACHINE: Block = Block {
    keyword: "machine",
    label: Label::None,
    times: Times::AtMostOnce,
    doc: "What every machine's Talos is told beyond the necessary. `cert_sans`, `secretbox` and `disk_encryption` hold \
          from birth: on a living castle a change of them needs a rebirth.",
    attributes: &[
        optional(
            "cert_sans",
            Kind::HostList,
            Presence::Optional,
            "[\"api.blue.lan\"]",
            "Names and addresses that the certificates of the machines and of the API server carry besides their own.",
        ),
        optional(
            "secretbox",
            Kind::Boolean,
            Presence::Default("true"),
            "false",
            "Whether Kubernetes' secrets are encrypted in etcd.",
        ),
        optional(
            "coredns",
            Kind::Boolean,
            Presence::Default("true"),
            "false",
            "Whether Talos installs CoreDNS and keeps it.",
        ),
        optional(
            "kernel_modules",
            Kind::ModuleList,
            Presence::Default("[]"),
            "[\"nvme_tcp\"]",
            "Kernel modules to load. Longhorn needs none for iSCSI: Talos has it built in.",
        ),
    ],
    open: None,
    blocks: &[DISK_ENCRYPTION, REGISTRY, PATCH],
};

const DISK_ENCRYPTION: Block = Block {
    keyword: "disk_encryption",
    label: Label::None,
    times: Times::AtMostOnce,
    doc: "Encrypts the system's partitions STATE and EPHEMERAL. Left out, they are not encrypted.",
    attributes: &[
        optional(
            "method",
            Kind::Choice(&["node-id", "tpm", "passphrase"]),
            Presence::Required,
            "\"tpm\"",
            "Where the key comes from: `\"node-id\"` (derived from the machine's UUID: against disks that are thrown \
             away, not against thieves of machines), `\"tpm\"` (sealed by the machine's TPM) or `\"passphrase\"`.",
        ),
        optional(
            "passphrase",
            Kind::Secret,
            Presence::Derived("required with `method = \"passphrase\"`, refused without"),
            "secret(\"DISK_PASSPHRASE\")",
            "The passphrase.",
        ),
    ],
    open: None,
    blocks: &[],
};

const REGISTRY: Block = Block {
    keyword: "registry",
    label: Label::Name("docker.io"),
    times: Times::PerName,
    doc: "A registry of container images as the machines see it, by its host, such as `\"docker.io\"` or \
          `\"registry.lan:5000\"`; `\"*\"` means every other.",
    attributes: &[
        optional(
            "mirrors",
            Kind::MirrorList,
            Presence::Default("[]"),
            "[\"https://mirror.lan\"]",
            "Servers that are asked in its place, in this order.",
        ),
        optional(
            "skip_fallback",
            Kind::Boolean,
            Presence::Default("false"),
            "true",
            "Whether the registry itself is never asked, even when all mirrors fail.",
        ),
        optional(
            "ca",
            Kind::Certificates,
            Presence::Optional,
            "file(\"registry-ca.pem\")",
            "The PEM certificate of the authority that its certificate is verified by.",
        ),
        optional(
            "username",
            Kind::Secret,
            Presence::Optional,
            "secret(\"REGISTRY_USERNAME\")",
            "Who the machines are to it; together with `password`.",
        ),
        optional(
            "password",
            Kind::Secret,
            Presence::Optional,
            "secret(\"REGISTRY_PASSWORD\")",
            "The password; together with `username`.",
        ),
    ],
    open: None,
    blocks: &[],
};

const PATCH: Block = Block {
    keyword: "patch",
    label: Label::Name("sysctls"),
    times: Times::PerName,
    doc: "A strategic merge patch of the machine configs that castle generates, applied in the order of the file. It is \
          YAML, one or more documents: each is merged into the one of its `apiVersion`, `kind` and `name`, the one \
          without a kind into the main document, and what matches none is added. `$patch: delete` removes what it \
          stands in. A patch holds no secrets.",
    attributes: &[
        optional(
            "for",
            Kind::Text,
            Presence::Default("\"all\""),
            "\"worker\"",
            "The machines whose config it changes: `\"all\"`, `\"control-plane\"`, `\"worker\"` or the name of one.",
        ),
        optional(
            "file",
            Kind::ProjectPath,
            Presence::Derived("`text` is required"),
            "\"patches/sysctls.yaml\"",
            "A file in the project folder with the patch.",
        ),
        optional(
            "text",
            Kind::Lines,
            Presence::Derived("`file` is required"),
            "\"machine: {sysctls: {vm.max_map_count: '262144'}}\"",
            "The patch itself, usually in a heredoc (`<<EOT`).",
        ),
    ],
    open: None,
    blocks: &[],
};
