//! Which command does what: one line per command, one file per command.

mod check;
mod graph;
mod plan;
mod reference;
mod rehearse;
mod repeat;
mod run;
mod shell;
mod status;

use crate::args::{Cli, Command, RehearseAct};
use crate::exit::{Exit, Problem};
use crate::project::{self, Which};
use crate::settings::Settings;
use castle_model::plan::Direction;

/// Carries a command out.
pub(crate) fn run(cli: &Cli, settings: &Settings) -> Result<Exit, Problem> {
    let everywhere = &cli.everywhere;
    let json = everywhere.json;
    let which = project::find(everywhere.file.as_deref(), settings);
    match &cli.command {
        Command::Check => check::run(&which, everywhere, settings),
        Command::Graph(args) => graph::run(&which, args, everywhere, settings),
        Command::Up(args) => {
            only_rehearsed(&which, "up", json, settings)?;
            run::run(Direction::Up, &which, args, everywhere, settings)
        }
        Command::Down(args) => {
            only_rehearsed(&which, "down", json, settings)?;
            run::run(Direction::Down, &which, args, everywhere, settings)
        }
        Command::Plan(pace) => {
            only_rehearsed(&which, "plan", json, settings)?;
            plan::run(&which, pace, everywhere, settings)
        }
        Command::Status => {
            only_rehearsed(&which, "status", json, settings)?;
            status::run(&which, everywhere, settings)
        }
        Command::Rehearse(args) => match &args.act {
            RehearseAct::Up(args) => run::run(Direction::Up, &which, args, everywhere, settings),
            RehearseAct::Down(args) => {
                run::run(Direction::Down, &which, args, everywhere, settings)
            }
            RehearseAct::Plan(pace) => plan::run(&which, pace, everywhere, settings),
            RehearseAct::Status => status::run(&which, everywhere, settings),
            RehearseAct::Inventory => rehearse::inventory(&which, everywhere, settings),
            RehearseAct::Repeat(args) => repeat::run(&which, args, everywhere, settings),
            RehearseAct::Reset { yes } => rehearse::reset(&which, *yes, everywhere, settings),
        },
        Command::Completions { shell } => Ok(shell::completions(*shell)),
        Command::Man => shell::man(),
        Command::Reference => Ok(shell::reference()),
    }
}

/// A castle file of one's own is never silently rehearsed, and this version goes nowhere else yet.
fn only_rehearsed(
    which: &Which,
    command: &str,
    json: bool,
    settings: &Settings,
) -> Result<(), Problem> {
    let Which::Own(path) = which else { return Ok(()) };
    // A file that is not there, or wrong, is told first: that can be mended now.
    project::spec(which, json, settings)?;
    let shown = path.strip_prefix(&settings.directory).unwrap_or(path).display();
    Err(Problem::usage(format!(
        "this version of castle does not go to real endpoints yet, so `castle {command}` can not use {shown}"
    ))
    .hint(format!("`castle rehearse -f {shown} {command}` does it in the built-in datacenter; `castle check -f {shown}` judges the file")))
}
