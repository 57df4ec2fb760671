//! The reference of the command line, made from the same definition that parses it.

use std::fmt::Write;

use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::Exit;
use crate::settings::VARIABLES;

/// The whole page.
pub(crate) fn text() -> String {
    let mut page = String::from(
        "# The command line\n\nMade from the program's own definition by `cargo xtask docs`; a test compares them.\n",
    );
    let mut command = Cli::command().term_width(100);
    command.build();
    section(&mut page, &mut command, "castle");
    page.push_str("\n## Exit codes\n\n| code | meaning |\n|---|---|\n");
    for (exit, _, _, meaning) in Exit::ALL {
        writeln!(page, "| {} | {meaning} |", exit as u8).ok();
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
