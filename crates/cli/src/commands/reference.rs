//! The reference of the command line, made from the same definition that parses it.

use std::fmt::Write;

use clap::CommandFactory;

use crate::args::Cli;
use crate::settings::VARIABLES;

/// Exit codes and what they mean.
const EXITS: &[(u8, &str)] = &[
    (0, "done: everything that was asked for is true"),
    (
        1,
        "a step failed; the report names it, why, and the command to go on (`judge`: an object is not ready)",
    ),
    (2, "the command line, the castle file or the input is wrong; nothing was done"),
    (3, "refused for safety, or another process holds the state; nothing was done"),
    (4, "`down` is over and something of the castle is left; it is listed"),
    (130, "interrupted; nothing is lost, the same command goes on"),
];

/// The whole page.
pub(crate) fn text() -> String {
    let mut page = String::from(
        "# The command line\n\nMade from the program's own definition by `cargo xtask docs`; a test compares them.\n",
    );
    let mut command = Cli::command().term_width(100);
    command.build();
    section(&mut page, &mut command, "castle");
    page.push_str("\n## Exit codes\n\n| code | meaning |\n|---|---|\n");
    for (code, meaning) in EXITS {
        writeln!(page, "| {code} | {meaning} |").ok();
    }
    page.push_str("\n## Environment\n\n| variable | meaning |\n|---|---|\n");
    for variable in VARIABLES {
        writeln!(page, "| `{}` | {} |", variable.name, variable.what).ok();
    }
    page
}

fn section(page: &mut String, command: &mut clap::Command, path: &str) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    write!(page, "\n## `{path}`\n\n```text\n{}\n```\n", lines.join("\n")).ok();
    for inner in command.get_subcommands_mut() {
        if !inner.is_hide_set() && inner.get_name() != "help" {
            let path = format!("{path} {}", inner.get_name());
            section(page, inner, &path);
        }
    }
}
