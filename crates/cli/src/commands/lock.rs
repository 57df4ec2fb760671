//! `castle lock`: reads what the castle is made from to its end, and pins it by content.

use std::time::Duration;

use castle_artefact::{ManifestSource, fetch, installed};
use castle_model::lock::{ImagePin, Lock, ManifestPin};
use castle_model::{Failure, Spec};
use castle_platforms::proxmox::image::pin;
use castle_wire::World;
use serde_json::json;

use crate::answer;
use crate::args::{Everywhere, LockArgs};
use crate::castle::{Castle, Place};
use crate::exit::{Exit, Problem};
use crate::lock;
use crate::output;
use crate::progress::Bar;
use crate::project::Which;
use crate::real;
use crate::rehearsal::{self, Rehearsal};
use crate::settings::Settings;

/// How long is waited before a download that failed for the moment is tried again.
const PAUSES: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(3), Duration::from_secs(9)];

/// Pins what the castle is made from, or compares it with what is pinned.
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
            prepare(&castle, args)?;
            let world = real::world(settings)?;
            let found = real::runtime()?.block_on(read(&world, &castle.spec, args, settings))?;
            finish(which, &castle, (args, everywhere.json), &found)
        }
        Place::Rehearsal => {
            let mut rehearsal = Rehearsal::find(which, everywhere, None, settings)?;
            prepare(&rehearsal.castle, args)?;
            rehearsal::runtime()?.block_on(async {
                // Opened, not only looked at: the schematic stays registered at the rehearsal's factory.
                let host = rehearsal.open("lock", None)?;
                host.spawn_driver();
                let found = read(&host.world(), &rehearsal.castle.spec, args, settings).await;
                host.close().map_err(|error| rehearsal.unusable(&error))?;
                finish(which, &rehearsal.castle, (args, everywhere.json), &found?)
            })
        }
    }
}

/// Refuses what can be refused before anything is downloaded.
fn prepare(castle: &Castle, args: &LockArgs) -> Result<(), Problem> {
    let spec = &castle.spec;
    if args.images && spec.platform.proxmox().is_none() {
        let name = &spec.name;
        return Err(Problem::usage(format!(
            "castle makes no machine of the castle `{name}` from an image: they stand already, so there is none to pin"
        ))
        .hint("nothing was done; without --images the manifests alone are pinned"));
    }
    if !args.wants_manifests() {
        return Ok(());
    }
    for component in installed(spec) {
        let (name, offered) = (component.name, component.offered(spec));
        lock::tell_unknown(component, offered.version);
        let pinned = spec.lock.manifests.get(name).map(|pin| pin.version);
        let Some(pinned) = pinned.filter(|pinned| *pinned > offered.version) else { continue };
        if !args.check && !args.allow_downgrade {
            let by = match component.asked(spec) {
                Some(_) => "the castle file wants",
                None => "this version of castle has",
            };
            return Err(Problem::refused(format!(
                "castle.lock pins {name} {pinned}, {by} the older {}",
                offered.version
            ))
            .hint("--allow-downgrade pins the older one; nothing was done"));
        }
    }
    Ok(())
}

/// Reads everything that is meant to its end.
async fn read(
    world: &World,
    spec: &Spec,
    args: &LockArgs,
    settings: &Settings,
) -> Result<Lock, Problem> {
    let mut found = Lock::default();
    if args.wants_manifests() {
        for component in installed(spec) {
            let source = component.offered(spec);
            let pin = manifest(world, spec, &source, settings).await?;
            found.manifests.insert(component.name.to_owned(), pin);
        }
    }
    if args.wants_images() && spec.platform.proxmox().is_some() {
        output::say(&format!(
            "reading the image of Talos {} from the image factory to its end; nothing of it is kept",
            spec.talos
        ));
        let (key, pin) = image(world, spec, settings).await?;
        found.images.insert(key, pin);
    }
    Ok(found)
}

async fn manifest(
    world: &World,
    spec: &Spec,
    source: &ManifestSource,
    settings: &Settings,
) -> Result<ManifestPin, Problem> {
    let name = format!("{} {}", source.component, source.version);
    let mut pauses = PAUSES.into_iter();
    loop {
        let mut bar = Bar::new(&name, settings);
        let mut told = |done, total| bar.show(done, total);
        let fetched = fetch(world, &spec.downloads, &source.url, &mut told).await;
        drop(bar);
        match fetched {
            Ok(manifest) => return Ok(manifest.pin(source)),
            Err(error) => again(&error.failure(format!("fetch {name}")), pauses.next()).await?,
        }
    }
}

async fn image(
    world: &World,
    spec: &Spec,
    settings: &Settings,
) -> Result<(String, ImagePin), Problem> {
    let name = format!("Talos {}", spec.talos);
    let mut pauses = PAUSES.into_iter();
    loop {
        let mut bar = Bar::new(&name, settings);
        let read = pin(world, spec, &mut |done, total| bar.show(done, total)).await;
        drop(bar);
        match read {
            Ok(pinned) => return Ok(pinned),
            Err(failure) => again(&failure, pauses.next()).await?,
        }
    }
}

/// Waits before the next try, where another one may help.
#[expect(clippy::disallowed_methods, reason = "no engine runs here that would wait for it")]
async fn again(failure: &Failure, pause: Option<Duration>) -> Result<(), Problem> {
    let Some(pause) = pause.filter(|_| failure.is_transient()) else {
        return Err(Problem::failure(failure));
    };
    output::say(&format!("{failure}; once more in {} s", pause.as_secs()));
    tokio::time::sleep(pause).await;
    Ok(())
}

/// How something that was found stands to what is pinned.
struct Line {
    /// For a program: what it is, what was found of it, and what is pinned.
    told: serde_json::Value,
    found: String,
    /// What is pinned in its stead, if it is something else.
    pinned: Option<String>,
    /// Whether only the content is another one.
    same_name: bool,
    new: bool,
}

impl Line {
    fn manifest(component: &str, found: &ManifestPin, pinned: Option<&ManifestPin>) -> Self {
        let words = |pin: &ManifestPin| {
            format!("{component} {}: sha256 {}, {} bytes", pin.version, pin.sha256, pin.size)
        };
        let other = pinned.filter(|pinned| *pinned != found);
        Self {
            told: json!({ "kind": "manifest", "name": component, "found": found, "pinned": pinned }),
            found: words(found),
            pinned: other.map(|pin| {
                let elsewhere = format!(", from {}", pin.url);
                words(pin) + if pin.url == found.url { "" } else { &elsewhere }
            }),
            same_name: other
                .is_some_and(|pin| (pin.version, &pin.url) == (found.version, &found.url)),
            new: pinned.is_none(),
        }
    }

    fn image(key: &str, found: &ImagePin, pinned: Option<&ImagePin>) -> Self {
        let words = |pin: &ImagePin| format!("{key}: sha256 {}, {} bytes", pin.sha256, pin.size);
        let other = pinned.filter(|pinned| *pinned != found);
        Self {
            told: json!({ "kind": "image", "name": key, "found": found, "pinned": pinned }),
            found: words(found),
            pinned: other.map(words),
            same_name: other.is_some(),
            new: pinned.is_none(),
        }
    }
}

fn finish(
    which: &Which,
    castle: &Castle,
    (args, json): (&LockArgs, bool),
    found: &Lock,
) -> Result<Exit, Problem> {
    let lock = &castle.spec.lock;
    let images = found.images.iter().map(|(k, pin)| Line::image(k, pin, lock.images.get(k)));
    let manifests =
        found.manifests.iter().map(|(k, pin)| Line::manifest(k, pin, lock.manifests.get(k)));
    let lines: Vec<Line> = images.chain(manifests).collect();
    if json {
        for line in &lines {
            output::data(&answer::line("pin", &line.told));
        }
    }
    if args.check {
        return check(&lines, json, &castle.command);
    }
    if let Some(line) = lines.iter().find(|line| line.same_name) {
        compare(line, json);
        return Err(changed(Exit::Refused).hint(
            "nothing was pinned: find out why before you do; if the new content is right, remove its entry from castle.lock and run the same command again",
        ));
    }
    for line in &lines {
        if let Some(pinned) = &line.pinned {
            output::say(&format!("notice: it was pinned as {pinned}"));
        }
        if !json {
            output::page(&line.found);
        }
    }
    // What other versions and extensions were pinned by is kept: somebody may go back to them.
    let mut new = lock.clone();
    new.images.extend(found.images.clone());
    new.manifests.extend(found.manifests.clone());
    let path = lock::path(which, castle);
    lock::write(&path, &new)?;
    output::say(&format!("pinned in {}", path.display()));
    Ok(Exit::Done)
}

/// Tells how everything stands to what is pinned, and changes nothing.
fn check(lines: &[Line], json: bool, command: &str) -> Result<Exit, Problem> {
    for line in lines {
        if line.pinned.is_some() {
            compare(line, json);
        } else if !json {
            let how = if line.new { "not pinned" } else { "as pinned" };
            output::page(&format!("{how}: {}", line.found));
        }
    }
    if lines.iter().any(|line| line.same_name) {
        return Err(changed(Exit::Failed).hint(
            "find out why before you pin it anew: the same name should never give other content",
        ));
    }
    let right = |line: &Line| line.pinned.is_none() && !line.new;
    if lines.iter().all(right) {
        return Ok(Exit::Done);
    }
    Err(Problem::new(Exit::Failed, "castle.lock does not pin everything that was found")
        .hint(format!("`{command} lock` pins it")))
}

fn compare(line: &Line, json: bool) {
    if json {
        return;
    }
    output::page(&format!("pinned: {}", line.pinned.as_deref().unwrap_or_default()));
    output::page(&format!("found:  {}", line.found));
}

fn changed(exit: Exit) -> Problem {
    Problem::new(exit, "what was found is not the one that castle.lock pins under the same name")
}
