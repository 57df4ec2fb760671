//! `castle up` and `castle down`.

use castle_model::plan::Direction;

use crate::args::{Everywhere, Run};
use crate::exit::{Exit, Problem};
use crate::output;
use crate::project::Which;
use crate::rehearsal::{Rehearsal, runtime};
use crate::session::{self, Session};
use crate::settings::Settings;

/// Raises or razes a castle in the rehearsal.
pub(crate) fn run(
    direction: Direction,
    which: &Which,
    args: &Run,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let mut rehearsal = Rehearsal::find(which, everywhere, Some(&args.pace), settings)?;
    let json = everywhere.json;
    if !json {
        let speed = rehearsal.speed.map_or("as fast as it goes".to_owned(), |s| {
            format!("{s} times faster than real time")
        });
        output::talk(&format!(
            "rehearsal of {}, {speed}: no real machine is touched",
            rehearsal.source
        ));
    }
    // The state first: its checks (git, lock, damage) come before anything is written beside it.
    let root = session::hold(&rehearsal, settings, direction)?;
    runtime()?.block_on(async {
        let host = rehearsal.open()?;
        host.spawn_driver();
        let session = Session { settings, rehearsal: &rehearsal, host: &host, json };
        let work = session.run(direction, args, root);
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
        host.close().map_err(|e| {
            Problem::new(Exit::Failed, "the rehearsal's datacenter could not be saved").because(&e)
        })?;
        exit
    })
}
