//! Which command does what: one line per command, one file per command.

mod attach;
pub(crate) mod audit;
mod check;
mod faults;
mod give;
mod graph;
mod history;
mod inventory;
mod judge;
mod layer;
mod lock;
mod plan;
mod poke;
pub(crate) mod rebirth;
mod reference;
mod rehearse;
mod repeat;
mod report;
pub(crate) mod run;
mod scenario;
mod secrets;
pub(crate) mod serve;
mod shell;
mod status;
mod why;
pub(crate) mod wipe;

use self::give::Wish;
use self::run::Act;
pub(crate) use self::shell::Values;
use crate::args::{Cli, Command, Everywhere, RehearseAct};
use crate::castle::Place;
use crate::exit::{Exit, Problem};
use crate::project::{self, Which};
use crate::settings::Settings;

/// Carries a command out.
pub(crate) fn run(cli: &Cli, settings: &Settings) -> Result<Exit, Problem> {
    let everywhere = &cli.everywhere;
    let which = project::find(everywhere.file.as_deref(), settings);
    let place = Place::of(&which);
    refuse_json(&cli.command, everywhere)?;
    refuse_castle(&cli.command, everywhere)?;
    match &cli.command {
        Command::Check => check::run(&which, everywhere, settings),
        Command::Graph(args) => graph::run(&which, args, everywhere, settings),
        Command::Up(args) => run::run(Act::Up, &which, place, args, everywhere, settings),
        Command::Down(args) => {
            let (act, args) = args.act();
            run::run(act, &which, place, &args, everywhere, settings)
        }
        Command::Rebirth(args) => {
            run::run(Act::Rebirth(args.certify), &which, place, &args.run, everywhere, settings)
        }
        Command::Plan(pace) => plan::run(&which, place, pace, everywhere, settings),
        Command::Status => status::run(&which, place, everywhere, settings),
        Command::Why(args) => why::run(&which, place, args, everywhere, settings),
        Command::Audit(args) => audit::run(&which, place, args, everywhere, settings),
        Command::Wipe(args) => {
            run::run(Act::Wipe, &which, place, &args.run(), everywhere, settings)
        }
        Command::Attach => attach::run(&which, place, everywhere, settings),
        Command::History => history::run(&which, place, everywhere, settings),
        Command::Report(args) => report::run(&which, place, args, everywhere, settings),
        Command::Talosconfig(args) => {
            give::run(&which, place, &Wish::Talosconfig(args), everywhere, settings)
        }
        Command::Kubeconfig(args) => {
            give::run(&which, place, &Wish::Kubeconfig(args), everywhere, settings)
        }
        Command::Machineconfig(args) => {
            give::run(&which, place, &Wish::MachineConfig(args), everywhere, settings)
        }
        Command::Lock(args) => lock::run(&which, place, args, everywhere, settings),
        Command::Secrets(args) => secrets::run(&which, place, &args.act, everywhere, settings),
        Command::Judge(args) => judge::run(args, everywhere.json, settings),
        Command::Rehearse(args) => match &args.act {
            _ if args.list_faults => Ok(faults::list(everywhere.json)),
            Some(act) => rehearse(&which, act, everywhere, settings),
            None => Err(Problem::usage("it is not said what is to be rehearsed")
                .hint("`castle rehearse up`, or see `castle rehearse --help`")),
        },
        Command::Completions { shell } => Ok(shell::completions(*shell)),
        Command::Man { out } => shell::man(out.as_deref(), settings),
        Command::Complete { kind, rehearsed } => {
            let place = if *rehearsed { Place::Rehearsal } else { place };
            Ok(shell::complete(&which, (*kind, place), everywhere, settings))
        }
        Command::Reference => Ok(shell::reference()),
        Command::Detached => Err(Problem::usage("castle starts this itself")),
    }
}

/// Refuses `--json` where there is nothing to be said in JSON, instead of ignoring it.
fn refuse_json(command: &Command, everywhere: &Everywhere) -> Result<(), Problem> {
    use RehearseAct as Act;
    let act = match command {
        Command::Rehearse(args) => args.act.as_ref(),
        _ => None,
    };
    let what = match (command, act) {
        (Command::Talosconfig(_), _) | (_, Some(Act::Talosconfig(_))) => "a talosconfig is YAML",
        (Command::Kubeconfig(_), _) | (_, Some(Act::Kubeconfig(_))) => "a kubeconfig is YAML",
        (Command::Machineconfig(_), _) | (_, Some(Act::Machineconfig(_))) => {
            "a machine config is YAML"
        }
        (Command::Completions { .. }, _) => "a completion script is for a shell",
        (Command::Man { .. }, _) => "a manual page is for people",
        (Command::Report(_), _) | (_, Some(Act::Report(_))) => {
            "the page of a run is HTML, and its events are JSON already"
        }
        (_, Some(Act::Scenario(args))) if !args.list => "a story is for people",
        (_, Some(Act::Repeat(_))) => "the trace of a repeated run is text",
        (Command::Reference, _) => "the reference is Markdown",
        _ => return Ok(()),
    };
    if !everywhere.json {
        return Ok(());
    }
    Err(Problem::usage(format!("{what}: this command has no answer in JSON"))
        .hint("leave --json out"))
}

/// Refuses a castle file and a state root where a story brings its own, instead of ignoring them.
fn refuse_castle(command: &Command, everywhere: &Everywhere) -> Result<(), Problem> {
    let Command::Rehearse(args) = command else { return Ok(()) };
    let Some(RehearseAct::Scenario(_)) = &args.act else { return Ok(()) };
    if everywhere.file.is_some() {
        return Err(Problem::usage(
            "a story brings its own castle file: `-f` has no meaning for it",
        )
        .hint("leave -f out, or write a story with `castle { file = \"…\" }` in it"));
    }
    if everywhere.state.is_some() {
        return Err(Problem::usage("a story is played in memory: `--state` has no meaning for it")
            .hint("leave --state out"));
    }
    Ok(())
}

fn rehearse(
    which: &Which,
    act: &RehearseAct,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let place = Place::Rehearsal;
    match act {
        RehearseAct::Up(args) => run::run(Act::Up, which, place, args, everywhere, settings),
        RehearseAct::Down(args) => {
            let (act, args) = args.act();
            run::run(act, which, place, &args, everywhere, settings)
        }
        RehearseAct::Rebirth(args) => {
            run::run(Act::Rebirth(args.certify), which, place, &args.run, everywhere, settings)
        }
        RehearseAct::Plan(pace) => plan::run(which, place, pace, everywhere, settings),
        RehearseAct::Status => status::run(which, place, everywhere, settings),
        RehearseAct::Why(args) => why::run(which, place, args, everywhere, settings),
        RehearseAct::Audit(args) => audit::run(which, place, args, everywhere, settings),
        RehearseAct::Wipe(args) => {
            run::run(Act::Wipe, which, place, &args.run(), everywhere, settings)
        }
        RehearseAct::Attach => attach::run(which, place, everywhere, settings),
        RehearseAct::History => history::run(which, place, everywhere, settings),
        RehearseAct::Report(args) => report::run(which, place, args, everywhere, settings),
        RehearseAct::Talosconfig(args) => {
            give::run(which, place, &Wish::Talosconfig(args), everywhere, settings)
        }
        RehearseAct::Kubeconfig(args) => {
            give::run(which, place, &Wish::Kubeconfig(args), everywhere, settings)
        }
        RehearseAct::Machineconfig(args) => {
            give::run(which, place, &Wish::MachineConfig(args), everywhere, settings)
        }
        RehearseAct::Lock(args) => lock::run(which, place, args, everywhere, settings),
        RehearseAct::Secrets(args) => secrets::ask(which, place, &args.act, everywhere, settings),
        RehearseAct::Serve(args) => serve::run(which, args, everywhere, settings),
        RehearseAct::Inventory => inventory::run(which, everywhere, settings),
        RehearseAct::Scenario(args) => scenario::run(args, everywhere.json, settings),
        RehearseAct::Poke(args) => poke::run(which, args, everywhere, settings),
        RehearseAct::Repeat(args) => repeat::run(which, args, everywhere, settings),
        RehearseAct::Reset { yes } => rehearse::reset(which, *yes, everywhere, settings),
    }
}
