//! The reference of the language: one table for each who, from the table that the parser reads.

use std::fmt::Write;

use super::kind::{Kind, Shape, Slot, kinds};
use super::phase::Phase;
use super::rule::Who;

/// What may stand behind a kind, with what it means.
const CONDITIONS: [(&str, &str); 7] = [
    (
        "on METHOD PATH",
        "only calls of this method (or `ANY`) whose path ends so; `*` stands for anything",
    ),
    ("the 3rd", "not before the third of these calls; alone, that one only"),
    (
        "once, twice, 5 times",
        "so often; without it a fault on the wire strikes every call in its window",
    ),
    (
        "from M:SS",
        "not before this time of the run, counted from its first look; the screen's clock begins some four seconds later",
    ),
    ("until M:SS", "until this time of the run; a change of the world is undone then"),
    ("for M:SS", "for so long, counted from `from`, else from the first strike"),
    ("during PHASE", "only while the datacenter is in this phase, as it knows itself"),
];

/// The whole page, as Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = String::from(
        "# Faults\n\nMade from the program's own table by `cargo xtask docs`; tidy compares them. [rehearsal.md](../rehearsal.md) tells how they are used.\n\n\
         ```text\nWHO [OBJECT]: KIND [ARGUMENT…] [CONDITION…]\n\ntalos cp-02: dead from 0:40\n```\n\n\
         A word with spaces stands in double quotes. Conditions come in any order:\n\n| condition | meaning |\n|---|---|\n",
    );
    for (condition, meaning) in CONDITIONS {
        writeln!(page, "| `{condition}` | {meaning} |").ok();
    }
    let phases: Vec<String> =
        Phase::ALL.iter().map(|phase| format!("`{}`", phase.name())).collect();
    writeln!(page, "\nPhases: {}.", phases.join(", ")).ok();
    let wire: Vec<&Kind> = kinds().filter(|kind| kind.who.len() > 1).collect();
    section(&mut page, "On the wire", &wire);
    for who in Who::ALL {
        let own: Vec<&Kind> = kinds().filter(|kind| kind.who == [who]).collect();
        section(&mut page, who.name(), &own);
    }
    page
}

fn section(page: &mut String, title: &str, kinds: &[&Kind]) {
    write!(page, "\n## {title}\n").ok();
    if let [first, ..] = kinds
        && first.who.len() > 1
    {
        let most = kinds.iter().max_by_key(|kind| kind.who.len()).map_or(first.who, |k| k.who);
        let servers: Vec<&str> = most.iter().map(|who| who.name()).collect();
        write!(
            page,
            "\nSERVER is one of {}; OBJECT a node, for proxmox also a VM's number or a storage, else a part of the address.\n",
            servers.join(", ")
        )
        .ok();
    }
    let most = kinds.iter().max_by_key(|kind| kind.who.len()).map_or(&[][..], |kind| kind.who);
    page.push_str("\n| fault | what it does | an example |\n|---|---|---|\n");
    for kind in kinds {
        let poke = if kind.is_change() { "" } else { " *" };
        writeln!(
            page,
            "| `{}`{poke} | {}{}{} | `{}` |",
            kind.form(),
            kind.about,
            words(kind),
            not_of(kind, most),
            kind.example
        )
        .ok();
    }
    if kinds.iter().any(|kind| !kind.is_change()) {
        page.push_str(
            "\n`*`: only while a run goes on; `castle rehearse poke` has no use for it.\n",
        );
    }
}

/// Which of the servers of a table do not know a kind.
fn not_of(kind: &Kind, all: &[Who]) -> String {
    let without = all.iter().filter(|who| !kind.who.contains(who));
    let without: Vec<&str> = without.map(|who| who.name()).collect();
    if without.is_empty() { String::new() } else { format!(" Not of {}.", without.join(", ")) }
}

/// The words that an argument can be, where that is a list.
fn words(kind: &Kind) -> String {
    let list = |slot: &Slot| match slot.shape {
        Shape::Word(words) => Some(format!(" {}: {}.", slot.name, words.join(", "))),
        _ => None,
    };
    kind.arguments.iter().filter_map(list).collect()
}
