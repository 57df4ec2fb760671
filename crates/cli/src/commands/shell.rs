//! `castle completions`, `castle man` and the reference of the command line: all from the same definition.

mod manual;
mod values;

use std::path::Path;

use clap::{Command, CommandFactory};

pub(crate) use self::values::{Values, complete};
use crate::args::Cli;
use crate::exit::{Exit, Problem};
use crate::output;
use crate::settings::Settings;

/// Prints a completion script.
pub(crate) fn completions(shell: clap_complete::Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(&Cli::command()), "castle", &mut script);
    output::data(&values::woven(shell, &String::from_utf8_lossy(&script)));
    Exit::Done
}

/// The same commands without those that only castle itself uses: a shell would offer them.
fn visible(command: &Command) -> Command {
    // Names must live as long as the program, which ends with the script.
    let name: &'static str = command.get_name().to_owned().leak();
    let mut shown = Command::new(name).args(command.get_arguments().cloned());
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    if command.get_version().is_some() {
        shown = shown.version(env!("CARGO_PKG_VERSION"));
    }
    let inner = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    shown.subcommands(inner.map(visible))
}

/// Prints the manual page, or writes one for every command into a folder.
pub(crate) fn man(out: Option<&Path>, settings: &Settings) -> Result<Exit, Problem> {
    let made = |e| Problem::new(Exit::Failed, "the manual could not be made").because(&e);
    let pages = manual::pages().map_err(made)?;
    if let Some(folder) = out {
        let folder = settings.directory.join(folder);
        let failed = |error: &std::io::Error| {
            let what = format!("the manual pages could not be written to {}", folder.display());
            Problem::new(Exit::Failed, what).because(error)
        };
        std::fs::create_dir_all(&folder).map_err(|error| failed(&error))?;
        for page in &pages {
            std::fs::write(folder.join(&page.file), &page.text).map_err(|error| failed(&error))?;
        }
        return Ok(Exit::Done);
    }
    if let Some(page) = pages.first() {
        output::data(&String::from_utf8_lossy(&page.text));
    }
    Ok(Exit::Done)
}

/// Prints the reference of the command line, the environment and the exit codes as Markdown.
pub(crate) fn reference() -> Exit {
    output::data(&crate::commands::reference::text());
    Exit::Done
}
