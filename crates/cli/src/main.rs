//! The program `castle`: arguments and settings in, one command, an exit code out.

mod age;
mod args;
mod castle;
mod clearing;
mod commands;
mod exit;
mod face;
mod faults;
mod git;
mod hardening;
mod lock;
mod output;
mod progress;
mod project;
mod real;
mod rehearsal;
mod session;
mod settings;
mod signals;
mod state;
mod trace;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, refuse_private_keys};
use crate::exit::Exit;
use crate::settings::Settings;

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
            error.print().ok();
            return exit.into();
        }
    };
    match commands::run(&cli, &Settings::read()) {
        Ok(Exit::Done) if output::lost() => {
            output::talk("error: standard output could not be written to the end");
            Exit::Failed.into()
        }
        Ok(exit) => exit.into(),
        Err(problem) => {
            output::say(&problem.to_string());
            problem.exit.into()
        }
    }
}
