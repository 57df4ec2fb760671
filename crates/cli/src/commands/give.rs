//! `castle talosconfig`, `kubeconfig` and `machineconfig`: what people are given, made from the Talos secrets.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use castle_layers::secrets::kept::{Kept, kept};
use castle_layers::secrets::source;
use castle_model::spec::SecretRef;
use castle_model::{Failure, Secret};
use castle_platforms::handout::Handout;
use castle_wire::World;

use crate::args::{Access, Everywhere, MachineConfig};
use crate::castle::{Castle, Place};
use crate::exit::{Exit, Problem};
use crate::git::{self, Exposed};
use crate::output;
use crate::project::{Which, read_named};
use crate::real;
use crate::rehearsal::{self, Rehearsal};
use crate::settings::Settings;

/// What is asked for.
pub(crate) enum Wish<'a> {
    /// For `talosctl`.
    Talosconfig(&'a Access),
    /// For `kubectl`.
    Kubeconfig(&'a Access),
    /// The config that a machine would be sent.
    MachineConfig(&'a MachineConfig),
}

impl Wish<'_> {
    fn bundle(&self) -> Option<&Path> {
        match self {
            Self::Talosconfig(args) | Self::Kubeconfig(args) => args.bundle.as_deref(),
            Self::MachineConfig(args) => args.bundle.as_deref(),
        }
    }

    /// Refuses a machine that the castle does not have, before anybody is asked for secrets.
    fn check(&self, castle: &Castle) -> Result<(), Problem> {
        let Self::MachineConfig(MachineConfig { node, .. }) = self else { return Ok(()) };
        let names: Vec<&str> = castle.spec.nodes.iter().map(|node| node.name.as_str()).collect();
        if names.contains(&node.as_str()) {
            return Ok(());
        }
        let name = &castle.spec.name;
        Err(Problem::usage(format!("there is no machine `{node}` in the castle `{name}`"))
            .hint(format!("its machines are {}", names.join(", "))))
    }
}

/// Where the Talos secrets come from, and the values that a castle file refers to.
struct Source {
    bundle: Secret,
    /// None if they were not read: placeholders then stand in their places.
    values: Option<BTreeMap<String, Secret>>,
}

/// Gives it out.
pub(crate) fn run(
    which: &Which,
    place: Place,
    wish: &Wish<'_>,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    if let Some(file) = wish.bundle() {
        // With the secrets in hand nothing else is needed: no network, no credentials, no rehearsal.
        let castle = Castle::find(which, place, everywhere, settings)?;
        wish.check(&castle)?;
        let text = String::from_utf8(read_named(file, settings)?)
            .map_err(|_| Problem::usage(format!("{} is not text", file.display())))?;
        let source = Source { bundle: Secret::new(text), values: None };
        return give(&castle, &real::world_without_roots(), &source, wish, settings);
    }
    match place {
        Place::Real => {
            let castle = Castle::find(which, place, everywhere, settings)?;
            wish.check(&castle)?;
            let access = real::access(&castle, settings)?;
            let world = real::world(settings)?;
            let source = real::runtime()?.block_on(from_vault(&castle, &world, &access))?;
            give(&castle, &world, &source, wish, settings)
        }
        Place::Rehearsal => {
            let mut rehearsal = Rehearsal::find(which, everywhere, None, settings)?;
            wish.check(&rehearsal.castle)?;
            rehearsal::runtime()?.block_on(async {
                let host = rehearsal.look()?;
                host.spawn_driver();
                let (world, access) = (host.world(), rehearsal.access(&host));
                let source = from_vault(&rehearsal.castle, &world, &access).await?;
                give(&rehearsal.castle, &world, &source, wish, settings)
            })
        }
    }
}

async fn from_vault(
    castle: &Castle,
    world: &World,
    access: &source::Access,
) -> Result<Source, Problem> {
    let Kept { bundle, values } = kept(&Arc::new(castle.spec.clone()), world, access)
        .await
        .map_err(|failure| Problem::failure(&failure))?;
    Ok(Source { bundle, values: Some(values) })
}

fn give(
    castle: &Castle,
    world: &World,
    source: &Source,
    wish: &Wish<'_>,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let problem = |failure: Failure| Problem::failure(&failure);
    let handout = Handout::read(&source.bundle).map_err(problem)?;
    let (text, out) = match wish {
        Wish::Talosconfig(args) => {
            (handout.talosconfig(&castle.spec, world).map_err(problem)?, args.out.as_deref())
        }
        Wish::Kubeconfig(args) => {
            (handout.kubeconfig(&castle.spec, world).map_err(problem)?, args.out.as_deref())
        }
        Wish::MachineConfig(args) => {
            let secrets = |key: &SecretRef| value(source, key);
            let shown = handout.machine_config(&castle.spec, &args.node, &secrets, args.reveal);
            let shown = shown.map_err(problem)?;
            for warning in &shown.warnings {
                output::talk(&format!("warning: {warning}"));
            }
            if args.reveal && shown.text.expose().contains("<secret ") {
                output::talk(
                    "warning: `<secret KEY>` stands for what only the secret source has: a machine can not be sent this",
                );
            }
            (shown.text, None)
        }
    };
    match out {
        None => output::data(text.expose()),
        Some(path) => write(path, &text, settings)?,
    }
    Ok(Exit::Done)
}

/// The value of a secret that the castle file refers to, or a placeholder where no value was read.
fn value(source: &Source, key: &SecretRef) -> Result<Secret, Failure> {
    let Some(values) = &source.values else {
        return Ok(Secret::new(format!("<secret {}>", key.0)));
    };
    values.get(&key.0).cloned().ok_or_else(|| {
        Failure::new(
            castle_model::Class::Gone,
            format!("use the secret `{}`", key.0),
            "the secret source does not have it",
        )
        .hint("add it there, or give the Talos secrets by --bundle FILE: then placeholders stand for all others")
    })
}

/// Writes secrets to a new file that only its owner can read. An old one is never overwritten: it may hold other keys.
pub(super) fn write(path: &Path, text: &Secret, settings: &Settings) -> Result<(), Problem> {
    let whole = settings.directory.join(path);
    keep_out_of_git(path, &whole, settings)?;
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&whole);
    let failed = |error: &std::io::Error| {
        let problem =
            Problem::new(Exit::Failed, format!("{} could not be written", path.display()));
        let problem = problem.because(error);
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => problem.hint(
                "choose another name, or remove it first: it may hold the keys of something else",
            ),
            _ => problem,
        }
    };
    let mut file = opened.map_err(|error| failed(&error))?;
    file.write_all(text.expose().as_bytes()).map_err(|error| failed(&error))?;
    file.sync_all().map_err(|error| failed(&error))?;
    output::talk(&format!("{} written, for you alone to read", path.display()));
    Ok(())
}

/// Refuses a place from which the keys of an administrator would get into a repository.
fn keep_out_of_git(path: &Path, whole: &Path, settings: &Settings) -> Result<(), Problem> {
    let (Some(folder), Some(name)) = (whole.parent(), whole.file_name()) else { return Ok(()) };
    // A folder that is not there is told by who opens the file.
    let Ok(folder) = folder.canonicalize() else { return Ok(()) };
    let Some(exposed) = git::exposed(&folder, Path::new(name), settings) else { return Ok(()) };
    let why = match exposed {
        Exposed::Tracked => "the repository already tracks a file of that name",
        Exposed::NotIgnored => {
            "no rule of the repository ignores it, so the next `git add` would take it"
        }
        Exposed::Unknown(ref why) => why,
    };
    let mut problem = Problem::refused(format!(
        "{} was not written: {} is in a git work tree, and keys of an administrator do not belong into a repository",
        path.display(),
        folder.display()
    ));
    problem.causes.push(why.to_owned());
    Err(problem.hint(match exposed {
        Exposed::Tracked => "choose a path outside of the work tree, or take it out first: git rm --cached, then a line in .gitignore",
        Exposed::NotIgnored => "choose a path outside of the work tree, or add it to .gitignore",
        Exposed::Unknown(_) => "choose a path outside of the work tree",
    }))
}
