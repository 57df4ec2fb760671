//! What may stand in a story of the rehearsal: the reader of stories and their reference use this table.

use super::table::{optional, required};
use super::{Attribute, Block, Kind, Label, Presence, Times};

/// A whole story.
pub(crate) const STORY: Block = Block {
    keyword: "story",
    label: Label::Name("A machine dies half way"),
    times: Times::Once,
    doc: "One story. Its label is its title; the name of its file is the name that it is called by. What happens in it \
          happens in the order of its blocks.",
    attributes: &[
        required(
            "told",
            Kind::Lines,
            "\"Once, a machine fell silent while it joined.\"",
            "What happened once, in a sentence or three.",
        ),
        required(
            "from",
            Kind::TextList,
            "[\"D 5\"]",
            "Where it comes from: the row of the list of failures, and whoever wrote of it.",
        ),
    ],
    open: None,
    blocks: &[CASTLE_OF, RUN, MEANWHILE, WORLD],
};

const fn may(key: &'static str, kind: Kind, example: &'static str, doc: &'static str) -> Attribute {
    optional(key, kind, Presence::Optional, example, doc)
}

const CHANGE: Block = Block {
    keyword: "change",
    label: Label::None,
    times: Times::Any,
    doc: "A change of the castle file: a text that stands in it once becomes another.",
    attributes: &[
        required("from", Kind::Text, "\"replicas = 2\"", "What stands there now."),
        required("to", Kind::Lines, "\"replicas = 1\"", "What stands there from then on."),
    ],
    open: None,
    blocks: &[],
};

const CASTLE_OF: Block = Block {
    keyword: "castle",
    label: Label::None,
    times: Times::AtMostOnce,
    doc: "The castle of the story, where it is not the built-in example as it is.",
    attributes: &[may(
        "file",
        Kind::ProjectPath,
        "\"small.hcl\"",
        "A castle file beside the story; without it, the built-in example.",
    )],
    open: None,
    blocks: &[CHANGE],
};

const RUN: Block = Block {
    keyword: "run",
    label: Label::OneOf(&["up", "down", "plan", "status", "audit", "wipe"]),
    times: Times::Any,
    doc: "A command, and what is expected of it. Each is a new process that knows what the state tells it.",
    attributes: &[
        may(
            "break",
            Kind::TextList,
            "[\"talos cp-02: dead from 0:40\"]",
            "What goes wrong meanwhile, as rules of `--fault`; each of them has to strike.",
        ),
        optional(
            "exit",
            Kind::Integer(0, 255),
            Presence::Default("0"),
            "1",
            "The exit code; 137 if a rule kills castle.",
        ),
        may(
            "says",
            Kind::TextList,
            "[\"VM 421 is not ours\"]",
            "What it says, each somewhere in what is shown.",
        ),
        may("hides", Kind::TextList, "[\"panicked\"]", "What it does not say anywhere."),
        may(
            "fails",
            Kind::TextList,
            "[\"platform/vm/cp-02: conflict\"]",
            "The steps that fail, all of them, each with the class of its failure.",
        ),
        may(
            "changes",
            Kind::Integer(0, 1_000_000),
            "0",
            "How many calls change something in the datacenter.",
        ),
        may("within", Kind::Duration, "\"10m\"", "How long it takes at most, by its own clock."),
        optional(
            "yes",
            Kind::Boolean,
            Presence::Default("true"),
            "false",
            "Whether somebody has agreed beforehand to what is replaced or removed.",
        ),
    ],
    open: None,
    blocks: &[],
};

const MEANWHILE: Block = Block {
    keyword: "meanwhile",
    label: Label::None,
    times: Times::Any,
    doc: "What happens while castle does not run.",
    attributes: &[
        may(
            "poke",
            Kind::TextList,
            "[\"proxmox 431: edited memory 4096\"]",
            "What is done to the datacenter, as `castle rehearse poke` takes it. Each must change something.",
        ),
        may(
            "mend",
            Kind::TextList,
            "[\"proxmox: node down\"]",
            "What was done is made good again, as `castle rehearse poke --mend` takes it.",
        ),
        may("later", Kind::Duration, "\"5m\"", "How much time goes by."),
        optional(
            "forget",
            Kind::Boolean,
            Presence::Default("false"),
            "true",
            "Whether castle's state folder is lost.",
        ),
    ],
    open: None,
    blocks: &[CHANGE],
};

const WORLD: Block = Block {
    keyword: "world",
    label: Label::None,
    times: Times::Any,
    doc: "What is true of the datacenter at this point, by its own books and not by castle's.",
    attributes: &[
        may("guests", Kind::TextList, "[421, 422, 423, 431, 432]", "The guests, all of them."),
        may("running", Kind::TextList, "[421, 422, 423]", "The guests that run, all of them."),
        may(
            "ready",
            Kind::TextList,
            "[\"cp-01\", \"worker-01\"]",
            "The nodes that are Ready, all.",
        ),
        may("disks", Kind::Integer(0, 10_000), "7", "How many disks of guests there are."),
        may("images", Kind::Integer(0, 10_000), "1", "How many image files there are."),
        may("tasks", Kind::Integer(0, 10_000), "0", "How many tasks of Proxmox still run."),
        may("members", Kind::Integer(0, 100), "3", "How many members the castle's etcd has."),
        may(
            "bootstraps",
            Kind::Integer(0, 100),
            "1",
            "How often an etcd was bootstrapped since the story began.",
        ),
        may("vault", Kind::TextList, "[\"KUBECONFIG_CONTENT\"]", "Keys that the vault holds."),
        may("vault_lacks", Kind::TextList, "[\"KUBECONFIG_CONTENT\"]", "Keys that it does not."),
        may(
            "units",
            Kind::TextList,
            "[\"apps\"]",
            "The Kustomizations that are Ready, all of them.",
        ),
        may("handover", Kind::Boolean, "true", "Whether Flux has what it needs to take over."),
        may(
            "untouched",
            Kind::TextList,
            "[421]",
            "Guests of somebody else that are exactly as they were made.",
        ),
        may(
            "nothing_left",
            Kind::Boolean,
            "true",
            "Whether nothing is there that was not there before castle came, somebody else's things aside.",
        ),
    ],
    open: None,
    blocks: &[],
};
