//! `castle up` and `castle down`.

use castle_model::plan::Direction;

use crate::args::{Everywhere, Run};
use crate::castle::{Castle, Place};
use crate::exit::{Exit, Problem};
use crate::faults;
use crate::lock;
use crate::output;
use crate::project::Which;
use crate::real::{self, Heard};
use crate::rehearsal::{self, Rehearsal};
use crate::session::{Session, word};
use crate::settings::Settings;
use crate::state;

/// Raises or razes a castle.
pub(crate) fn run(
    direction: Direction,
    which: &Which,
    place: Place,
    args: &Run,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    match place {
        Place::Real => for_real(direction, which, args, everywhere, settings),
        Place::Rehearsal => rehearsed(direction, which, args, everywhere, settings),
    }
}

fn for_real(
    direction: Direction,
    which: &Which,
    args: &Run,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    real::refuse_pace(&args.pace)?;
    let castle = Castle::find(which, Place::Real, everywhere, settings)?;
    let access = real::access(&castle, settings)?;
    let (world, heard) = real::noted_world(settings)?;
    if !everywhere.json {
        output::say(&real::announce(&castle));
    }
    if direction == Direction::Up {
        lock::judge(&castle, everywhere.json)?;
    }
    let mut root = state::hold(&castle, settings, direction)?;
    real::runtime()?.block_on(async {
        let (json, rehearsal) = (everywhere.json, None);
        let session = Session { settings, castle: &castle, world, heard, access, rehearsal, json };
        session.run(direction, args.yes, root.journals_mut()).await
    })
}

fn rehearsed(
    direction: Direction,
    which: &Which,
    args: &Run,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let mut rehearsal = Rehearsal::find(which, everywhere, Some(&args.pace), settings)?;
    let json = everywhere.json;
    let rules = faults::rules(&args.pace.faults, &rehearsal.castle.spec, json)?;
    if !json {
        let speed = rehearsal.speed.map_or("as fast as it goes".to_owned(), |s| {
            format!("{s} times faster than real time")
        });
        output::say(&format!(
            "rehearsal of {}, {speed}: no real machine is touched",
            rehearsal.castle.source
        ));
    }
    if direction == Direction::Up {
        lock::judge(&rehearsal.castle, json)?;
    }
    // The state first: its checks (git, lock, damage) come before anything is written beside it.
    let mut root = state::hold(&rehearsal.castle, settings, direction)?;
    rehearsal::runtime()?.block_on(async {
        let host = rehearsal.open(word(direction))?;
        host.spawn_driver();
        faults::arm(&host, rules, json);
        let session = Session {
            settings,
            castle: &rehearsal.castle,
            world: host.world(),
            access: rehearsal.access(&host),
            rehearsal: Some(&host),
            json,
            heard: Heard::default(),
        };
        let work = session.run(direction, args.yes, root.journals_mut());
        let braked = async {
            match rehearsal.speed {
                None => std::future::pending().await,
                Some(speed) => castle_rehearsal::brake::hold(speed).await,
            }
        };
        let exit = tokio::select! {
            biased;
            // A world that can not be written any more answers nobody: say so now, not after every deadline.
            error = host.trouble() => return Err(rehearsal.unusable(&error)),
            exit = work => exit,
            () = braked => Ok(Exit::Interrupted),
        };
        faults::close(&host, json);
        host.close().map_err(|e| {
            Problem::new(Exit::Failed, "the rehearsal's datacenter could not be saved").because(&e)
        })?;
        exit
    })
}
