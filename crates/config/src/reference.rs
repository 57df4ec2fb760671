//! Writes the reference of the castle file from the tables that the reader itself uses.

use std::fmt::Write as _;

use castle_model::deadline;

use crate::EXAMPLE;
use crate::codes::CODES;
use crate::function::FUNCTIONS;
use crate::grammar::{Attribute, Block, CASTLE, Label, Presence, STORY, Times};
use crate::limits::{
    MAX_BYTES, MAX_DEPTH, MAX_FINDINGS, MAX_LAYERS, MAX_MACHINES, MAX_SETTINGS, MAX_TOKENS,
};
use crate::versions;

const OPENING: &str = "\
# The castle file

One file, `castle.hcl`, describes one castle. It is written in HCL: blocks, attributes, comments (`#`, `//`, `/* */`),
text in quotes, numbers, `true` and `false`, lists, objects. `castle check` reads it and reports everything that is
wrong in one pass; `castle check --json` gives the same as JSON lines.

This page is generated from the tables that the reader uses (`cargo xtask docs`); do not edit it by hand.
";

const EXPRESSIONS: &str = "\
Values may be computed: text with `${…}` inside, `+ - * / %` on whole numbers, comparisons, `&& || !`,
`condition ? one : other`, and these functions. There are no variables and no loops: each value stands where it is
used, and `castle plan` shows what came out.
";

const FINDINGS: &str = "\
Each finding has a code that never changes its meaning. An error keeps castle from doing anything; a warning does not.
A line of `castle check --json` is one finding, in the order of their places:

| field | what |
|---|---|
| `code` | The code. |
| `severity` | `error` or `warning`. |
| `title` | What is wrong, in one sentence. |
| `file` | The castle file, as it was named. |
| `place` | `start` and `end` in bytes from 0, `line` and `column` (in characters) from 1; `null` for the whole file. |
| `label` | What stands at the place. |
| `notes` | Why it is wrong, sentence by sentence. |
| `help` | What to do, or `null`. |
| `related` | Other places that have to do with it, each with `place` and `label`. |

A secret that stands in the file by mistake is never printed, neither in a finding nor in the lines shown with it: the
values of secret settings, of settings whose names sound like secrets, known or not, and everything that has the shape
of a well-known secret are shown as `***`.
";

/// The reference of the castle file, in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = String::from(OPENING);
    let _ = write!(page, "\n## A whole example\n\n```hcl\n{EXAMPLE}```\n");
    page.push_str("\n## Blocks\n");
    block(&mut page, &CASTLE, "", None);
    for inner in CASTLE.blocks {
        blocks(&mut page, inner, "castle");
    }
    functions(&mut page);
    versions_table(&mut page);
    deadlines(&mut page);
    limits(&mut page);
    let _ = write!(page, "\n## Findings\n\n{FINDINGS}\n| code | meaning |\n|---|---|\n");
    for (code, meaning) in CODES {
        let _ = writeln!(page, "| {code} | {} |", cell(meaning));
    }
    page
}

/// What may stand in a story, in Markdown.
#[must_use]
pub fn story_reference() -> String {
    let mut page = String::from("\n## What may stand in a story\n");
    blocks(&mut page, &STORY, "");
    page
}

/// A block and those inside; one whose settings depend on its label is shown once for each label.
fn blocks(page: &mut String, outer: &Block, parent: &str) {
    match outer.label {
        Label::OneOf(words) if outer.varies_by_label() => {
            for word in words {
                block(page, outer, parent, Some(word));
            }
        }
        _ => block(page, outer, parent, None),
    }
    for inner in outer.blocks {
        blocks(page, inner, outer.keyword);
    }
}

fn block(page: &mut String, block: &Block, parent: &str, only: Option<&str>) {
    let label = match (only, block.label) {
        (Some(word), _) => format!(" \"{word}\""),
        (None, Label::None) => String::new(),
        (None, Label::Name(_)) => " \"name\"".to_owned(),
        (None, Label::OneOf(words)) => {
            let quoted: Vec<String> = words.iter().map(|w| format!("\"{w}\"")).collect();
            format!(" {}", quoted.join(" | "))
        }
    };
    let _ = write!(page, "\n### `{}{label}`\n\n", block.keyword);
    let times = match block.times {
        Times::Once if only.is_some() => "One of its kinds exactly once",
        Times::Once => "Exactly once",
        Times::AtMostOnce if matches!(block.label, Label::OneOf([_, _, ..])) => {
            "Once for each label"
        }
        Times::AtMostOnce => "At most once",
        Times::Several => "One or more of its kinds, in the order in which they are asked,",
        Times::Any | Times::PerName => "Any number of times",
    };
    let place = if parent.is_empty() { "in the file".to_owned() } else { format!("in `{parent}`") };
    let _ = writeln!(page, "{times} {place}. {}", block.doc);
    if block.attributes.is_empty() {
        return;
    }
    page.push_str("\n| key | takes | if left out | what | example |\n|---|---|---|---|---|\n");
    for attribute in block.attributes.iter().filter(|a| a.fits(only)) {
        row(page, attribute, only.is_none());
    }
}

/// A row of the table, with the platform that the attribute belongs to where that is not said already.
fn row(page: &mut String, attribute: &Attribute, name_platform: bool) {
    let platform = match attribute.variant.filter(|_| name_platform) {
        Some(platform) => format!("(platform \"{platform}\") "),
        None => String::new(),
    };
    let absent = match attribute.presence {
        Presence::Required => "**required**".to_owned(),
        Presence::Optional => "nothing".to_owned(),
        Presence::Default(text) => format!("`{text}`"),
        Presence::Derived(text) => text.to_owned(),
    };
    let _ = writeln!(
        page,
        "| `{}` | {} | {} | {platform}{} | `{}` |",
        attribute.key,
        cell(&attribute.kind.expected()),
        cell(&absent),
        cell(attribute.doc),
        cell(attribute.example)
    );
}

fn functions(page: &mut String) {
    let _ = write!(page, "\n## Expressions and functions\n\n{EXPRESSIONS}\n");
    page.push_str("| function | gives | example |\n|---|---|---|\n");
    for function in FUNCTIONS {
        let _ = writeln!(
            page,
            "| `{}` | {} | `{}` |",
            function.signature,
            cell(function.doc),
            cell(function.example)
        );
    }
    page.push_str(
        "\nSizes are `\"512MiB\"`, `\"8GiB\"`, `\"1TiB\"`, in powers of 1024. Lengths of time are `\"90s\"`, `\"5m\"`, \
         `\"1h30m\"`,\na day at most.\n",
    );
}

fn versions_table(page: &mut String) {
    page.push_str("\n## Versions\n\n| Talos | Kubernetes | usual pair |\n|---|---|---|\n");
    for pair in versions::TABLE {
        let (talos, kubernetes) = pair.usual;
        let _ = writeln!(
            page,
            "| 1.{} | 1.{} to 1.{} | {talos} and {kubernetes} |",
            pair.talos, pair.first, pair.last
        );
    }
}

fn deadlines(page: &mut String) {
    page.push_str(
        "\n## Deadlines\n\nEach kind of wait has a deadline. `deadlines { vip = \"10m\" }` sets one, `deadlines { platform = \
         \"20m\" }` all of a layer;\nthe nearer setting wins. The name of a layer of your own sets the wait for its \
         manifests.\n\n| key | layer | default | castle waits until |\n|---|---|---|---|\n",
    );
    for entry in deadline::TABLE {
        let layer = if entry.layer.is_empty() { "of your own" } else { entry.layer };
        let _ = writeln!(
            page,
            "| `{}` | {layer} | {} | {} |",
            entry.key,
            length(entry.seconds),
            cell(entry.what)
        );
    }
}

fn limits(page: &mut String) {
    let _ = write!(
        page,
        "\n## Limits\n\n| what | limit |\n|---|---|\n| size of the file | {} KiB |\n| nesting | {MAX_DEPTH} levels |\n\
         | settings | {MAX_SETTINGS} |\n| words and signs outside of text and comments | {MAX_TOKENS} |\n| layers of your own | {MAX_LAYERS} |\n| machines of one role | {MAX_MACHINES} |\n| findings shown | {MAX_FINDINGS} |\n",
        MAX_BYTES / 1024
    );
}

fn length(seconds: u64) -> String {
    if seconds.is_multiple_of(60) { format!("{}m", seconds / 60) } else { format!("{seconds}s") }
}

/// Text that may stand in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_repository_is_fresh() {
        let page = include_str!("../../../docs/reference/castle-file.md");
        assert!(
            page == reference(),
            "docs/reference/castle-file.md is stale: run `cargo xtask docs`"
        );
    }

    #[test]
    fn codes_are_in_order_and_each_stands_once() {
        assert!(CODES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
