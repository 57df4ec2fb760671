//! `castle rehearse serve`: the datacenter on loopback sockets, for whatever program wants to speak to it.

use std::net::{SocketAddrV4, TcpListener};

use castle_model::Secret;
use castle_platforms::escrow::BUNDLE_KEY;
use castle_platforms::handout::Handout;
use castle_rehearsal::fault::{Rule, Who};
use castle_rehearsal::host::front::{Front, FrontError};
use castle_rehearsal::host::{Host, Pace};

use self::holder::holder;
use self::place::{Place, refuse_other_sources};
use self::sheet::Folder;
use crate::args::{Everywhere, Serve};
use crate::exit::{Exit, Problem};
use crate::faults;
use crate::output;
use crate::project::{self, Which};
use crate::real;
use crate::rehearsal::Rehearsal;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::state;

mod holder;
mod place;
pub(crate) mod sheet;

pub(super) use self::sheet::FOLDER;

/// Serves the datacenter until somebody ends it.
pub(crate) fn run(
    which: &Which,
    args: &Serve,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let mut rehearsal = Rehearsal::find(which, everywhere, None, settings)?;
    rehearsal.seed = args.seed;
    let spec = &rehearsal.castle.spec;
    refuse_other_sources(spec)?;
    let place = Place::new(args.at, spec)?;
    let sources = project::load(which, settings)?;
    let (_, served) = place.castle_file(&sources, spec, None)?;
    let rules = faults::rules(&args.faults, &served, everywhere.json)?;
    refuse_own(&rules)?;
    real::runtime()?.block_on(async {
        let mut signals = Signals::listen()?;
        let pace = Pace { now: state::wall_clock(), speed: args.speed };
        let host = rehearsal.served(&served, pace)?;
        check_ports(&place, &served, args)?;
        let front = Front::open_moved(&host, Some(place.network()))
            .await
            .map_err(|error| not_served(&error, args))?;
        let fingerprint = host.proxmox_fingerprint().map_err(|e| rehearsal.unusable(&e))?;
        let (text, served) =
            place.castle_file(&sources, &rehearsal.castle.spec, Some(&fingerprint))?;
        let folder = Folder::make(&rehearsal.datacenter)?;
        folder.write_all(&host, &place, &served, &text, &sources)?;
        let sheet = sheet::Sheet {
            folder: &folder,
            place: &place,
            spec: &served,
            fingerprint: &fingerprint,
            speed: args.speed,
        };
        output::data(&if everywhere.json { sheet.json() } else { sheet.text() });
        // After the sheet: whoever copies a line from it is struck, and nobody before.
        faults::arm(&host, rules, everywhere.json, None);
        let keys = hand_out(&host, &served, &folder);
        let refusals = tell_refusals(&front);
        let ended = tokio::select! {
            biased;
            () = signals.any() => Ok(()),
            error = host.trouble() => Err(rehearsal.unusable(&error)),
            () = keys => Ok(()),
            () = refusals => Ok(()),
        };
        front.stop().await;
        ended?;
        faults::close(&host, everywhere.json);
        host.close().map_err(|e| {
            Problem::new(Exit::Failed, "the rehearsal's datacenter could not be saved").because(&e)
        })?;
        output::talk("the sockets are closed and the datacenter is saved");
        Ok(Exit::Done)
    })
}

/// Refuses rules about castle itself: here it is somebody else's process.
fn refuse_own(rules: &[Rule]) -> Result<(), Problem> {
    let own = rules.iter().find(|rule| rule.who() == Who::Castle);
    own.map_or(Ok(()), |rule| {
        Err(Problem::usage(format!("`{rule}` can not be served: castle is another process here"))
            .hint("give it to the run: `castle rehearse up --fault …` has a datacenter of its own"))
    })
}

/// Writes the ways into the cluster as soon as its secrets are in the vault, and anew for each life.
async fn hand_out(host: &Host, spec: &castle_model::Spec, folder: &Folder) {
    let world = host.world();
    let mut last: Option<Secret> = None;
    loop {
        let changed = host.changed();
        let now = host.vault(BUNDLE_KEY);
        if now.as_ref().map(Secret::expose) != last.as_ref().map(Secret::expose) {
            let written: Result<(), Problem> = now.as_ref().map_or(Ok(()), |bundle| {
                let handout = Handout::read(bundle).map_err(|f| Problem::failure(&f))?;
                let ways = [
                    (sheet::KUBECONFIG, handout.kubeconfig(spec, &world)),
                    (sheet::TALOSCONFIG, handout.talosconfig(spec, &world)),
                ];
                for (name, text) in ways {
                    let text = text.map_err(|failure| Problem::failure(&failure))?;
                    folder.write(name, text.expose().as_bytes())?;
                }
                output::talk(&format!(
                    "{} and {} written for this life of the castle",
                    sheet::KUBECONFIG,
                    sheet::TALOSCONFIG
                ));
                Ok(())
            });
            if let Err(problem) = written {
                output::say(&problem.to_string().replacen("error: ", "notice: ", 1));
            }
            last = now;
        }
        changed.await;
    }
}

/// Tells of machines whose ports somebody else has taken meanwhile, and of crowds.
async fn tell_refusals(front: &Front) {
    loop {
        let error = front.refusal().await;
        output::say(&format!("notice: {}", refused(&error).what));
    }
}

/// Looks whether every port is free before anything is served: a machine's would be missed minutes later.
fn check_ports(place: &Place, served: &castle_model::Spec, args: &Serve) -> Result<(), Problem> {
    for (address, port, _) in place.sockets(served) {
        let socket = SocketAddrV4::new(address, port);
        if let Err(source) = TcpListener::bind(socket) {
            return Err(not_served(&FrontError::Bind { socket, source }, args));
        }
    }
    Ok(())
}

/// A port that can not be had, with who has it, and what to do about it where that is known.
fn refused(error: &FrontError) -> Problem {
    let holder = match error {
        FrontError::Bind { socket, .. } => holder(*socket),
        FrontError::NotLoopback { .. } | FrontError::Crowded { .. } => None,
    };
    let what = match &holder {
        Some(holder) => format!("{error}: it is in use by {}", holder.who),
        None => error.to_string(),
    };
    let mut problem = Problem::new(Exit::Failed, what);
    if let FrontError::Bind { source, .. } = error {
        problem.causes.push(source.to_string());
    }
    if holder.is_some_and(|holder| holder.everywhere) {
        return problem
            .hint("stop it: it listens at all addresses, so no other one is free either");
    }
    problem
}

fn not_served(error: &FrontError, args: &Serve) -> Problem {
    let [first, second, third, last] = args.at.octets();
    let other = std::net::Ipv4Addr::new(first, second, third, last.wrapping_add(1).max(1));
    let problem = refused(error);
    if problem.hint.is_some() {
        return problem;
    }
    problem.hint(format!("serve it at another address: --at {other}"))
}
