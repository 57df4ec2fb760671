//! The part of the grammar about the layers above the platform, built in and of one's own.

use super::table::{optional, required};
use super::{Attribute, Block, Kind, Label, Presence, Times};

const ENABLED: Attribute = optional(
    "enabled",
    Kind::Boolean,
    Presence::Default("true"),
    "false",
    "Whether the castle has this layer.",
);

const OWNER: Attribute = optional(
    "owner",
    Kind::Choice(&["castle", "flux"]),
    Presence::Default("\"castle\""),
    "\"flux\"",
    "Who installs the layer. With `\"flux\"` castle applies nothing of it and only looks, after the handover, whether \
     it is there and works: see [layers](../layers.md).",
);

/// The version, with an example of the component.
const fn version(example: &'static str) -> Attribute {
    optional(
        "version",
        Kind::Version,
        Presence::Derived("the one that this castle was made with"),
        example,
        "The version that is installed.",
    )
}

pub(super) const ENGINE: Block = Block {
    keyword: "engine",
    label: Label::OneOf(&["external-secrets"]),
    times: Times::AtMostOnce,
    doc: "External Secrets, which brings secrets into the cluster. Left out, it is installed with the defaults.",
    attributes: &[
        ENABLED,
        OWNER,
        version("\"1.3.2\""),
        optional(
            "replicas",
            Kind::Integer(1, 10),
            Presence::Derived("as released: 1"),
            "2",
            "Copies of each of its Deployments; they elect a leader among them.",
        ),
    ],
    open: None,
    blocks: &[RESOURCES, PATCH],
};

const RESOURCES: Block = Block {
    keyword: "resources",
    label: Label::None,
    times: Times::AtMostOnce,
    doc: "What each of the layer's containers asks for. What is left out stays as released.",
    attributes: &[
        optional(
            "cpu",
            Kind::Cpu,
            Presence::Optional,
            "\"50m\"",
            "Processor time that is set aside.",
        ),
        optional(
            "memory",
            Kind::Memory,
            Presence::Optional,
            "\"64Mi\"",
            "Memory that is set aside.",
        ),
        optional(
            "memory_limit",
            Kind::Memory,
            Presence::Optional,
            "\"256Mi\"",
            "Memory beyond which the container is ended.",
        ),
    ],
    open: None,
    blocks: &[],
};

pub(super) const NETWORKING: Block = Block {
    keyword: "networking",
    label: Label::OneOf(&["metallb"]),
    times: Times::AtMostOnce,
    doc: "MetalLB, which announces the addresses of `pool`. Left out, it is installed with the defaults.",
    attributes: &[
        ENABLED,
        OWNER,
        version("\"0.15.3\""),
        optional(
            "control_planes",
            Kind::Boolean,
            Presence::Default("true"),
            "false",
            "Whether control planes announce addresses too. Talos labels them \
             `node.kubernetes.io/exclude-from-external-load-balancers`, at which MetalLB would stay silent there: with \
             `true` its speakers run on control planes and are told to pass over the label, with `false` they do not \
             run there at all.",
        ),
    ],
    open: None,
    blocks: &[PATCH],
};

pub(super) const STORAGE: Block = Block {
    keyword: "storage",
    label: Label::OneOf(&["longhorn"]),
    times: Times::AtMostOnce,
    doc: "Longhorn, which keeps volumes. Left out, it is installed with the defaults. Volumes live on the machines \
          with a `data_disk`; if there are none, on the workers' system disks.",
    attributes: &[
        ENABLED,
        OWNER,
        version("\"1.10.0\""),
        optional(
            "replicas",
            Kind::Integer(1, 20),
            Presence::Derived("2, or 1 if only one machine carries volumes"),
            "2",
            "Copies of each volume, each on a machine of its own.",
        ),
        optional(
            "data_path",
            Kind::NodePath,
            Presence::Derived(
                "`/var/mnt/longhorn`, where Talos mounts a `data_disk`; `/var/lib/longhorn` if no machine has one",
            ),
            "\"/var/mnt/volumes\"",
            "The folder of each machine that volumes live in. It must be one that Talos shows to kubelet, such as that \
             of a user volume.",
        ),
        optional(
            "over_provisioning",
            Kind::Integer(100, 1000),
            Presence::Derived("as released: 100"),
            "200",
            "How much of a disk may be promised to volumes, in percent of it: they rarely are full.",
        ),
    ],
    open: None,
    blocks: &[PATCH],
};

pub(super) const GITOPS: Block = Block {
    keyword: "gitops",
    label: Label::OneOf(&["flux"]),
    times: Times::AtMostOnce,
    doc: "Flux and the repository that it follows. Left out, nothing is handed over.",
    attributes: &[
        ENABLED,
        optional(
            "owner",
            Kind::Choice(&["castle", "flux"]),
            Presence::Default("\"castle\""),
            "\"castle\"",
            "Who installs the layer: castle. Flux can not install itself, so `\"flux\"` is refused here.",
        ),
        version("\"2.8.0\""),
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
            "credentials",
            Kind::Choice(&["engine", "direct"]),
            Presence::Derived(
                "`\"engine\"` where castle installs External Secrets and Infisical is a source, else `\"direct\"`",
            ),
            "\"direct\"",
            "How the token comes into the cluster: `\"engine\"`, fetched by External Secrets from Infisical and renewed \
             with it, or `\"direct\"`, placed by castle.",
        ),
        optional(
            "vars",
            Kind::TextMap,
            Presence::Default("{}"),
            "{ domain = \"tazlab.net\" }",
            "Values for the ConfigMap `cluster-vars`, which Kustomizations may substitute. Not for secrets: a plain \
             value under a name such as `db_password` is refused.",
        ),
        optional(
            "milestones",
            Kind::NameList,
            Presence::Default("[]"),
            "[\"apps-static\"]",
            "Kustomizations whose being ready is told as it happens, before all of the tree is.",
        ),
    ],
    open: None,
    blocks: &[PATCH],
};

const PATCH: Block = Block {
    keyword: "patch",
    label: Label::None,
    times: Times::Any,
    doc: "A patch of the objects that the layer's release brings, applied in the order of the file after all other \
          settings. It is one YAML document with the part of the object as it should be: maps are merged, `null` \
          removes, and lists whose entries have a `name` (or another key that Kubernetes merges them by) are merged \
          entry by entry; other lists are replaced. A patch that fits no object of the release is an error, and a patch \
          holds no secrets.",
    attributes: &[
        required("kind", Kind::Word, "\"Deployment\"", "The kind of the objects that it changes."),
        optional(
            "name",
            Kind::Text,
            Presence::Derived("all objects of the kind"),
            "\"controller\"",
            "The name of the one that it changes.",
        ),
        optional(
            "file",
            Kind::ProjectPath,
            Presence::Derived("`text` is required"),
            "\"patches/controller.yaml\"",
            "A file in the project folder with the patch.",
        ),
        optional(
            "text",
            Kind::Lines,
            Presence::Derived("`file` is required"),
            "\"spec: {replicas: 2}\"",
            "The patch itself, usually in a heredoc (`<<EOT`).",
        ),
    ],
    open: None,
    blocks: &[],
};

pub(super) const LAYER: Block = Block {
    keyword: "layer",
    label: Label::Name("metrics"),
    times: Times::Any,
    doc: "A layer of your own, beyond those built in: the manifests of a folder, or one that is fetched.",
    attributes: &[
        optional(
            "after",
            Kind::LayerList,
            Presence::Default("[]"),
            "[\"networking\"]",
            "Layers that must be finished before. Every layer comes after `platform`.",
        ),
        optional(
            "manifests",
            Kind::ProjectPath,
            Presence::Derived("`url` is required"),
            "\"./metrics\"",
            "A folder (or one file) of the project with manifests: all that end in `.yaml`, `.yml` or `.json`, in folders below it too, in the order of their paths. \
             There must be at least one that is not empty.",
        ),
        optional(
            "url",
            Kind::ManifestUrl,
            Presence::Derived("`manifests` is required"),
            "\"https://example.com/v1.2.3/install.yaml\"",
            "The https or file address of a manifest; together with `sha256`.",
        ),
        optional(
            "sha256",
            Kind::Sha256,
            Presence::Derived("required with `url`, refused without"),
            "\"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\"",
            "The SHA-256 of the manifest: anything else that the address gives is refused.",
        ),
        optional(
            "chart",
            Kind::Text,
            Presence::Optional,
            "\"oci://example.com/charts/metrics\"",
            "A chart of Helm: not in this version yet.",
        ),
        optional(
            "module",
            Kind::Text,
            Presence::Optional,
            "\"./modules/metrics\"",
            "A module of OpenTofu: not in this version yet.",
        ),
    ],
    open: None,
    blocks: &[],
};
