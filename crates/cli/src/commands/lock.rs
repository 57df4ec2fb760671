//! `castle lock`: reads what the castle is made from to its end, and pins it by content.

use castle_model::Spec;
use castle_model::lock::{ImagePin, Lock};
use castle_platforms::proxmox::image::pin;
use castle_wire::World;

use crate::args::{Everywhere, LockArgs};
use crate::castle::{Castle, Place};
use crate::exit::{Exit, Problem};
use crate::lock;
use crate::output;
use crate::project::Which;
use crate::real;
use crate::rehearsal::{self, Rehearsal};
use crate::settings::Settings;

/// Pins the images, or compares them with what is pinned.
pub(crate) fn run(
    which: &Which,
    place: Place,
    args: &LockArgs,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    match place {
        Place::Real => {
            let castle = Castle::find(which, place, everywhere, settings)?;
            let world = real::world(settings)?;
            let image = real::runtime()?.block_on(read(&world, &castle.spec))?;
            finish(which, &castle, args, image)
        }
        Place::Rehearsal => {
            let mut rehearsal = Rehearsal::find(which, everywhere, None, settings)?;
            rehearsal::runtime()?.block_on(async {
                // Opened, not only looked at: the schematic stays registered at the rehearsal's factory.
                let host = rehearsal.open()?;
                host.spawn_driver();
                let image = read(&host.world(), &rehearsal.castle.spec).await?;
                host.close().map_err(|error| rehearsal.unusable(&error))?;
                finish(which, &rehearsal.castle, args, image)
            })
        }
    }
}

async fn read(world: &World, spec: &Spec) -> Result<(String, ImagePin), Problem> {
    if spec.platform.proxmox().is_none() {
        let name = &spec.name;
        return Err(Problem::usage(format!(
            "castle makes no machine of the castle `{name}` from an image: they stand already, so there is none to pin"
        ))
        .hint("nothing was done; pins are for castles of platform \"proxmox\""));
    }
    output::talk(&format!(
        "reading the image of Talos {} from the image factory to its end; nothing of it is kept",
        spec.talos
    ));
    pin(world, spec).await.map_err(|failure| Problem::failure(&failure))
}

fn finish(
    which: &Which,
    castle: &Castle,
    args: &LockArgs,
    (key, found): (String, ImagePin),
) -> Result<Exit, Problem> {
    let path = lock::path(which, castle);
    let pinned = castle.spec.lock.images.get(&key);
    let words = format!("{key}: sha256 {}, {} bytes", found.sha256, found.size);
    if args.check {
        let Some(pinned) = pinned.filter(|pinned| **pinned != found) else {
            let exit = if pinned.is_some() { Exit::Done } else { Exit::Failed };
            let how = if pinned.is_some() { "as pinned" } else { "not pinned" };
            output::data(&format!("{how}: {words}"));
            return Ok(exit);
        };
        output::data(&format!("pinned: {key}: sha256 {}, {} bytes", pinned.sha256, pinned.size));
        output::data(&format!("found:  {words}"));
        return Err(Problem::new(
            Exit::Failed,
            "the image at the factory is not the one that castle.lock pins",
        )
        .hint(
            "find out why before you pin it anew: the same name should never give other content",
        ));
    }
    if let Some(pinned) = pinned.filter(|pinned| **pinned != found) {
        output::talk(&format!("notice: it was pinned as sha256 {} before", pinned.sha256));
    }
    // What other versions and extensions were pinned by is kept: somebody may go back to them.
    let mut images = castle.spec.lock.images.clone();
    images.insert(key, found);
    lock::write(&path, &Lock { images, manifests: castle.spec.lock.manifests.clone() })?;
    output::data(&words);
    output::talk(&format!("pinned in {}", path.display()));
    Ok(Exit::Done)
}
