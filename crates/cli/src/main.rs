//! The program `castle`: arguments and settings in, one command, an exit code out.

mod address;
mod age;
mod answer;
mod args;
mod broken;
mod browser;
mod castle;
mod clearing;
mod commands;
mod detach;
mod exit;
mod face;
mod faults;
mod git;
mod hardening;
mod kept;
mod lock;
mod misread;
mod output;
mod page;
mod patience;
mod progress;
mod project;
mod real;
mod rehearsal;
mod session;
mod settings;
mod signals;
mod stage;
mod state;
mod trace;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser};

use crate::args::{Cli, Command, refuse_private_keys};
use crate::exit::{Exit, Problem};
use crate::settings::Settings;

/// A sixth of a rehearsed bring-up went into the C library's own, and far more with musl's (docs/decisions/0008).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    hardening::harden();
    if let Err(problem) = refuse_private_keys(std::env::args_os()) {
        output::say(&problem.to_string());
        return problem.exit.into();
    }
    let cli = match read() {
        Ok(cli) => cli,
        Err(error) => return unread(&error),
    };
    if matches!(cli.command, Command::Detached) {
        return detached();
    }
    match commands::run(&cli, &Settings::read().asked(&cli.everywhere)) {
        Ok(Exit::Done) if output::lost() => {
            output::talk("error: standard output could not be written to the end");
            Exit::Failed.into()
        }
        Ok(exit) => exit.into(),
        Err(problem) => {
            let problem = problem.addressed();
            if cli.everywhere.json {
                output::data(&answer::error(&problem));
            }
            output::say(&problem.to_string());
            problem.exit.into()
        }
    }
}

/// Reads the command line. What clap says itself is painted as `--color` says.
fn read() -> Result<Cli, clap::Error> {
    let mut command = Cli::command().color(misread::colour(&words()));
    let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

fn words() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Ends where the words are no command: with help or the version, or with what is wrong in the form of every other error.
fn unread(error: &clap::Error) -> ExitCode {
    // Help and version go to standard output and are no mistake; clap knows which is which.
    if !error.use_stderr() {
        error.print().ok();
        return Exit::Done.into();
    }
    let words = words();
    let problem = misread::problem(error, &words);
    if words.iter().any(|word| word == "--json") {
        output::data(&answer::error(&problem));
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        error.print().ok();
    } else {
        output::say(&problem.to_string());
    }
    Exit::Usage.into()
}

/// The process that goes on without a terminal: told what to do by the one that has it.
fn detached() -> ExitCode {
    let (words, settings) = match detach::take_over() {
        Ok(taken) => taken,
        Err(problem) => {
            output::say(&problem.to_string());
            return problem.exit.into();
        }
    };
    let result = match Cli::try_parse_from(words) {
        Ok(cli) => commands::run(&cli, &settings),
        Err(error) => Err(Problem::usage(error.to_string())),
    };
    if let Some(detached) = &settings.launch.detached {
        detached.ended(&result);
    }
    result.map_or_else(|problem| problem.exit.into(), ExitCode::from)
}
