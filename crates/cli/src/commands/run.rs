//! `castle up`, `castle down` and `castle rebirth`: from the locks to the exit code, for real or in the rehearsal.

use std::collections::BTreeSet;
use std::sync::Arc;

use castle_journal::StateRoot;
use castle_model::StepId;
use castle_model::plan::Direction;

use crate::args::{Everywhere, Run};
use crate::castle::{Castle, Place};
use crate::commands::{layer, rebirth, wipe};
use crate::detach;
use crate::exit::{Exit, Problem};
use crate::faults::{self, Struck};
use crate::lock;
use crate::output;
use crate::project::Which;
use crate::real::{self, Heard};
use crate::rehearsal::{self, Rehearsal};
use crate::session::{Consent, Session, Steady};
use crate::settings::Settings;
use crate::state::{self, state_problem};

/// What is done to a castle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Up,
    Down,
    /// Down and up, so many times if a verdict is wanted.
    Rebirth(Option<u32>),
    /// One layer alone goes.
    Layer,
    /// The emergency.
    Wipe,
}

impl Act {
    /// The word of its command.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down | Self::Layer => "down",
            Self::Rebirth(_) => "rebirth",
            Self::Wipe => "wipe",
        }
    }

    /// Which way it goes first.
    pub(crate) fn first(self) -> Direction {
        match self {
            Self::Up => Direction::Up,
            Self::Down | Self::Rebirth(_) | Self::Layer | Self::Wipe => Direction::Down,
        }
    }

    fn raises(self) -> bool {
        matches!(self, Self::Up | Self::Rebirth(_))
    }
}

/// How far this process went.
enum Went {
    /// To the end.
    Through(Exit),
    /// Up to somebody's agreement: another process goes on.
    Agreed(BTreeSet<StepId>),
}

/// Raises or razes a castle, or both.
pub(crate) fn run(
    act: Act,
    which: &Which,
    place: Place,
    args: &Run,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let (went, command) = match place {
        Place::Real => for_real(act, which, args, everywhere, settings)?,
        Place::Rehearsal => rehearsed(act, which, args, everywhere, settings)?,
    };
    match went {
        Went::Through(exit) => Ok(exit),
        // The locks were given back: the other process takes them.
        Went::Agreed(agreed) => detach::start(agreed, &command, everywhere.json, settings),
    }
}

fn for_real(
    act: Act,
    which: &Which,
    args: &Run,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<(Went, String), Problem> {
    real::refuse_pace(&args.pace)?;
    let castle = Castle::find(which, Place::Real, everywhere, settings)?;
    let access = real::access(&castle, settings)?;
    let (world, heard) = real::noted_world(settings)?;
    if !everywhere.json {
        output::say(&real::announce(&castle));
    }
    if act.raises() {
        lock::judge(&castle, everywhere.json)?;
    }
    let mut root = state::hold(&castle, settings, act, args.wait)?;
    let runs = root.runs().map_err(|e| state_problem(&e))?;
    let went = real::runtime()?.block_on(async {
        let (json, rehearsal, runs) = (everywhere.json, None, Some(&runs));
        let castle = &castle;
        let struck = Struck::default();
        let clock = Arc::new(Steady::from(world.clock.now()));
        let session = Session {
            settings,
            castle,
            world,
            clock,
            access,
            rehearsal,
            json,
            heard,
            runs,
            struck,
        };
        perform(act, &session, args, &mut root).await
    })?;
    Ok((went, castle.command))
}

fn rehearsed(
    act: Act,
    which: &Which,
    args: &Run,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<(Went, String), Problem> {
    let mut rehearsal = Rehearsal::find(which, everywhere, Some(&args.pace), settings)?;
    let json = everywhere.json;
    let mut rules = faults::rules(&args.pace.faults, &rehearsal.castle.spec, json)?;
    if is_asking(args, settings) {
        // They strike where the work is done.
        rules.clear();
    }
    if !json {
        output::say(&announce(&rehearsal));
    }
    if act.raises() {
        lock::judge(&rehearsal.castle, json)?;
    }
    // The state first: its checks (git, lock, damage) come before anything is written beside it.
    let mut root = state::hold(&rehearsal.castle, settings, act, args.wait)?;
    let runs = root.runs().map_err(|e| state_problem(&e))?;
    let went = rehearsal::runtime()?.block_on(async {
        let host = rehearsal.open(act.word(), args.wait)?;
        host.spawn_driver();
        let struck = faults::arm(&host, rules, json, Some(&mut root));
        let session = Session {
            settings,
            castle: &rehearsal.castle,
            world: host.world(),
            clock: host.steady_clock(),
            access: rehearsal.access(&host),
            rehearsal: Some(&host),
            json,
            heard: Heard::default(),
            runs: Some(&runs),
            struck: struck.clone(),
        };
        let work = perform(act, &session, args, &mut root);
        let braked = async {
            match rehearsal.speed {
                None => std::future::pending().await,
                Some(speed) => castle_rehearsal::brake::hold(speed).await,
            }
        };
        let went = tokio::select! {
            biased;
            // A world that can not be written any more answers nobody: say so now, not after every deadline.
            error = host.trouble() => return Err(rehearsal.ended(&error)),
            went = work => went,
            () = braked => Ok(Went::Through(Exit::Interrupted)),
        };
        struck.tell_alone(json);
        faults::close(&host, json);
        let command = rehearsal::rehearse(&rehearsal.castle.command);
        faults::remains(&host, json, &command, &struck);
        host.close().map_err(|e| {
            Problem::new(Exit::Failed, "the rehearsal's datacenter could not be saved").because(&e)
        })?;
        went
    })?;
    Ok((went, rehearsal.castle.command))
}

fn announce(rehearsal: &Rehearsal) -> String {
    let speed = rehearsal
        .speed
        .map_or("as fast as it goes".to_owned(), |s| format!("{s} times faster than real time"));
    format!("rehearsal of {}, {speed}: no real machine is touched", rehearsal.castle.source)
}

/// Whether this process only asks, and another does the work.
fn is_asking(args: &Run, settings: &Settings) -> bool {
    args.detach && settings.launch.detached.is_none()
}

/// Does it, once everything is open and held.
async fn perform(
    act: Act,
    session: &Session<'_>,
    args: &Run,
    root: &mut StateRoot,
) -> Result<Went, Problem> {
    let journals = root.journals_mut();
    match act {
        Act::Wipe => {
            let agreed = (args.yes, args.force_foreign.as_slice());
            return wipe::go(session, agreed, journals).await.map(Went::Through);
        }
        Act::Layer => return layer::go(session, args, journals).await.map(Went::Through),
        Act::Up | Act::Down | Act::Rebirth(_) => {}
    }
    let consent = match (&session.settings.launch.detached, args.yes) {
        (Some(detached), false) => detached.consent(),
        (_, yes) => Consent::of(yes),
    };
    if is_asking(args, session.settings) {
        rebirth::tell_cycles(session, act);
        let open = journals.open_rebirth().filter(|_| matches!(act, Act::Rebirth(_)));
        let first = open.map_or(act.first(), |rebirth| rebirth.due().unwrap_or(Direction::Up));
        return session.agree(first, &consent, journals).await.map(Went::Agreed);
    }
    let direction = match act {
        Act::Up => Direction::Up,
        Act::Down | Act::Layer | Act::Wipe => Direction::Down,
        Act::Rebirth(certify) => {
            return rebirth::carry_on(session, certify, &consent, journals)
                .await
                .map(Went::Through);
        }
    };
    let consent = rebirth::make_way(session, direction, consent, journals).await?;
    let ended = session.run(direction, &consent, journals).await?;
    if direction == Direction::Up {
        rebirth::after_up(session, &ended, journals)?;
    }
    Ok(Went::Through(ended.exit))
}
