//! The program `castle`: arguments and settings in, one command, an exit code out.

mod age;
mod answer;
mod args;
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

use clap::Parser;

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
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output and are no mistake; clap knows which is which.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            if exit == Exit::Usage && std::env::args_os().any(|word| word == "--json") {
                output::data(&answer::error(&misread(&error)));
            }
            error.print().ok();
            return exit.into();
        }
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
            if cli.everywhere.json {
                output::data(&answer::error(&problem));
            }
            output::say(&problem.to_string());
            problem.exit.into()
        }
    }
}

/// A command line that can not be read, in the words of whoever tried.
fn misread(error: &clap::Error) -> Problem {
    let text = error.render().to_string();
    let mut said = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = said.next().unwrap_or_default();
    let mut problem = Problem::usage(first.strip_prefix("error: ").unwrap_or(first));
    for line in said.take_while(|line| !line.starts_with("Usage:")) {
        match line.strip_prefix("tip: ") {
            Some(tip) => problem.hint = Some(tip.to_owned()),
            None => problem.causes.push(line.to_owned()),
        }
    }
    problem
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
