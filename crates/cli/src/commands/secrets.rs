//! `castle secrets`: what people ask the secret sources, and what they do with SOPS files.

mod check;
mod decrypt;
mod encrypt;
mod escrow;
mod get;
mod list;
mod text;
mod verify;

use castle_layers::secrets::source::{Access, Sources};
use castle_wire::World;

use crate::args::{Ask, Everywhere, SecretsAct};
use crate::castle::{Castle, Place};
use crate::exit::{Exit, Problem};
use crate::output;
use crate::project::Which;
use crate::real;
use crate::rehearsal::{self, Rehearsal};
use crate::settings::Settings;

/// A castle with its sources open, and how to answer.
struct Asked<'a> {
    castle: &'a Castle,
    sources: Sources,
    json: bool,
    settings: &'a Settings,
}

/// Carries out what was asked for. SOPS files need no castle.
pub(crate) fn run(
    which: &Which,
    place: Place,
    act: &SecretsAct,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    match act {
        SecretsAct::Ask(act) => {
            if *which == Which::Example {
                // A script in a wrong folder must not take an invented token for a real one.
                output::say(
                    "notice: there is no castle.hcl here: this is the built-in example, rehearsed, and every value is invented",
                );
            }
            ask(which, place, act, everywhere, settings)
        }
        SecretsAct::Verify(args) => verify::run(args, everywhere.json, settings),
        SecretsAct::Encrypt(args) => encrypt::run(args, settings),
        SecretsAct::Decrypt(args) => decrypt::run(args, everywhere.json, settings),
    }
}

/// Asks the sources of a castle.
pub(crate) fn ask(
    which: &Which,
    place: Place,
    act: &Ask,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let json = everywhere.json;
    if place == Place::Real {
        let castle = Castle::find(which, place, everywhere, settings)?;
        let reached =
            real::access(&castle, settings).and_then(|access| Ok((access, real::world(settings)?)));
        let (access, world) = reached.inspect_err(|_| unasked(act, &castle, json, settings))?;
        let answer = answer(&castle, &world, &access, act, json, settings);
        return real::runtime()?.block_on(answer);
    }
    let mut rehearsal = Rehearsal::find(which, everywhere, None, settings)?;
    rehearsal::runtime()?.block_on(async {
        let host = rehearsal.look()?;
        host.spawn_driver();
        let (world, access) = (host.world(), rehearsal.access(&host));
        answer(&rehearsal.castle, &world, &access, act, json, settings).await
    })
}

async fn answer(
    castle: &Castle,
    world: &World,
    access: &Access,
    act: &Ask,
    json: bool,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let answered = async {
        let sources = Sources::open(&castle.spec, world, access)?;
        let asked = Asked { castle, sources, json, settings };
        match act {
            Ask::List => list::run(&asked).await,
            Ask::Check => check::run(&asked).await,
            Ask::Get(args) => get::run(&asked, args).await,
            Ask::Escrow => escrow::run(&asked).await,
        }
    };
    match answered.await {
        Ok(result) => result,
        Err(failure) => {
            unasked(act, castle, json, settings);
            Err(Problem::failure(&failure))
        }
    }
}

/// What can be told although a source can not be asked: which keys there must be.
fn unasked(act: &Ask, castle: &Castle, json: bool, settings: &Settings) {
    if let Ask::List = act {
        list::show(&list::keys(castle, None), json, settings);
    }
}
