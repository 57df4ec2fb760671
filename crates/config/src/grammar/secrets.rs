//! The part of the grammar about secrets: where they come from, and where the castle's own are kept.

use super::table::{optional, required};
use super::{Block, Kind, Label, Presence, Times};

const INFISICAL: &str = "infisical";
const SOPS: &str = "sops";
const ENV: &str = "env";
const FILE: &str = "file";

pub(super) const SECRETS: Block = Block {
    keyword: "secrets",
    label: Label::OneOf(&[INFISICAL, SOPS, ENV, FILE]),
    times: Times::Several,
    doc: "A secret source. Every `secret(\"KEY\")` names a key in it: a secret of a folder of Infisical; an entry of a \
          file that SOPS encrypted with age (`a.b` for an entry inside of another); a variable of the environment; an \
          entry of a file, or a file in a folder, that only you can read. Of several blocks the first that has a key \
          wins. The access to a source never stands in this file.",
    attributes: &[
        required("host", Kind::Server, "\"https://eu.infisical.com\"", "The server of Infisical.")
            .only(INFISICAL),
        optional(
            "fingerprint",
            Kind::Fingerprint,
            Presence::Optional,
            "\"5D:0E:…\"",
            "The SHA-256 fingerprint of the server's certificate. Without `fingerprint` and `ca` it is verified by the \
             roots of the system; both together are refused.",
        )
        .only(INFISICAL),
        optional(
            "ca",
            Kind::Certificates,
            Presence::Optional,
            "file(\"infisical-ca.pem\")",
            "The PEM certificate of the authority that signed the server's certificate.",
        )
        .only(INFISICAL),
        required("project", Kind::Text, "\"tazlab\"", "The slug of the project.").only(INFISICAL),
        required("environment", Kind::Text, "\"dev\"", "The slug of the environment.").only(INFISICAL),
        required(
            "path",
            Kind::VaultPath,
            "\"/ephemeral-castle/blue/proxmox\"",
            "The folder with the secrets of this castle.",
        )
        .only(INFISICAL),
        optional(
            "credentials_file",
            Kind::Text,
            Presence::Derived("`INFISICAL_CLIENT_ID` and `INFISICAL_CLIENT_SECRET` of the environment"),
            "\"~/.config/castle/infisical\"",
            "A file that only you can read, with the machine identity (universal auth) in two lines: \
             `INFISICAL_CLIENT_ID=…` and `INFISICAL_CLIENT_SECRET=…`.",
        )
        .only(INFISICAL),
        optional(
            "reader_id",
            Kind::Secret,
            Presence::Derived("the machine identity that castle itself has"),
            "secret(\"ESO_CLIENT_ID\")",
            "The client id of the machine identity that External Secrets reads with; one that may only read is enough.",
        )
        .only(INFISICAL),
        optional(
            "reader_secret",
            Kind::Secret,
            Presence::Derived("the machine identity that castle itself has"),
            "secret(\"ESO_CLIENT_SECRET\")",
            "Its client secret.",
        )
        .only(INFISICAL),
        required(
            "file",
            Kind::ProjectPath,
            "\"secrets.enc.yaml\"",
            "The encrypted file, YAML or JSON. The age identity comes from `SOPS_AGE_KEY`, `SOPS_AGE_KEY_FILE` or the \
             usual file of SOPS.",
        )
        .only(SOPS),
        optional(
            "prefix",
            Kind::Word,
            Presence::Optional,
            "\"CASTLE_\"",
            "What stands before a key in the name of its variable.",
        )
        .only(ENV),
        required(
            "path",
            Kind::Text,
            "\"~/secrets/blue\"",
            "A file of `KEY=value` lines, a YAML or JSON file, or a folder with one file for each key. It must belong to \
             you, and nobody else may read it.",
        )
        .only(FILE),
        optional(
            "require",
            Kind::KeyList,
            Presence::Default("[]"),
            "[\"AWS_ACCESS_KEY_ID\"]",
            "Keys that must be there before anything is made, beyond those this file names by `secret`; in whichever \
             source they are.",
        ),
        optional(
            "shapes",
            Kind::TextMap,
            Presence::Default("{}"),
            "{ TLS_KEY = \"pem\" }",
            "The form that the value of a key must have: `token`, `pem`, `age-key`, `yaml` or `free`. What the castle \
             itself logs in with is a `token`; anything else is `free` unless it stands here.",
        ),
    ],
    open: None,
    blocks: &[],
};

pub(super) const ESCROW: Block = Block {
    keyword: "escrow",
    label: Label::None,
    times: Times::AtMostOnce,
    doc: "Where the secrets are kept that the castle makes: the bundle of Talos secrets (`TALOS_SECRETS_BUNDLE`), which \
          could not be made again, before the first machine gets its config; the kubeconfig (`KUBECONFIG_CONTENT`) and the \
          talosconfig (`TALOSCONFIG_CONTENT`) once they have opened the castle. Each begins with a line that names the \
          castle and its life; one that names another castle is never overwritten. Left out, they are kept in the folder of \
          the first `secrets \"infisical\"`; where there is none, `file` is required.",
    attributes: &[
        optional(
            "file",
            Kind::ProjectPath,
            Presence::Derived("the folder in Infisical"),
            "\"blue.escrow.enc.yaml\"",
            "A file that castle encrypts with age, in the form of SOPS; it ends with `.enc.yaml` and may be kept in Git.",
        ),
        optional(
            "recipients",
            Kind::RecipientList,
            Presence::Derived("the age identity that castle is given"),
            "[\"age1…\"]",
            "Whom the file is encrypted for.",
        ),
        optional(
            "after_down",
            Kind::Choice(&["remove", "keep"]),
            Presence::Default("\"remove\""),
            "\"keep\"",
            "What `castle down` does with them. By default all three are removed once no machine of the castle is left: they \
             open nothing any more. With `\"keep\"` they stay, which needs no right to delete, and the next birth overwrites \
             them.",
        ),
    ],
    open: None,
    blocks: &[],
};
