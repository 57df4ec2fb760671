//! `castle completions`, `castle man` and the reference of the command line: all from the same definition.

use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::{Exit, Problem};
use crate::output;

/// Prints a completion script.
pub(crate) fn completions(shell: clap_complete::Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "castle", &mut script);
    output::data(&String::from_utf8_lossy(&script));
    Exit::Done
}

/// Prints the manual page.
pub(crate) fn man() -> Result<Exit, Problem> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command())
        .render(&mut page)
        .map_err(|e| Problem::new(Exit::Failed, "the manual page could not be made").because(&e))?;
    output::data(&String::from_utf8_lossy(&page));
    Ok(Exit::Done)
}

/// Prints the reference of the command line, the environment and the exit codes as Markdown.
pub(crate) fn reference() -> Exit {
    output::data(&crate::commands::reference::text());
    Exit::Done
}
