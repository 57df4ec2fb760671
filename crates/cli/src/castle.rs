//! The castle that a command is about: its spec, where its state is kept, and its steps over whichever wire.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use castle_engine::Graph;
use castle_layers::secrets::source::Access;
use castle_model::shell::{with_environment, word};
use castle_model::{LayerName, Spec, StepDecl};
use castle_wire::World;

use crate::address;
use crate::args::Everywhere;
use crate::commands::serve::sheet;
use crate::exit::{Exit, Problem};
use crate::lock;
use crate::project::{self, Which};
use crate::settings::Settings;

/// Folders below the one that holds state roots which hold those of rehearsals.
const REHEARSED: [&str; 2] = ["rehearsal", "example"];

/// Which world a castle stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The real one.
    Real,
    /// The built-in datacenter.
    Rehearsal,
}

impl Place {
    /// Where plain commands go: a castle file of one's own is never silently rehearsed, and the example never real.
    pub(crate) fn of(which: &Which) -> Self {
        match which {
            Which::Example => Self::Rehearsal,
            Which::Own(_) => Self::Real,
        }
    }
}

/// A castle, and where its state is kept.
pub(crate) struct Castle {
    pub(crate) spec: Spec,
    pub(crate) place: Place,
    /// What was read, in words.
    pub(crate) source: String,
    /// The words that a user types to come back to this castle: `castle`, `castle rehearse -f FILE`.
    pub(crate) command: String,
    /// The folder of the castle file, which paths in it are relative to.
    pub(crate) folder: PathBuf,
    pub(crate) state: PathBuf,
    /// Whether the state root was named, and is not the usual one.
    pub(crate) state_given: bool,
}

impl Castle {
    /// Reads the castle file and finds the state root.
    pub(crate) fn find(
        which: &Which,
        place: Place,
        everywhere: &Everywhere,
        settings: &Settings,
    ) -> Result<Self, Problem> {
        let spec = project::spec(which, place, everywhere.json, settings)?;
        let given =
            everywhere.state.clone().or_else(|| settings.get("CASTLE_STATE").map(PathBuf::from));
        let state = match &given {
            Some(given) => settings.directory.join(given),
            None => usual_state(which, place, &spec, settings)?,
        };
        let (source, mut command) = match which {
            Which::Example => {
                (format!("the built-in example castle `{}`", spec.name), "castle".to_owned())
            }
            Which::Own(path) => {
                let shown = path.strip_prefix(&settings.directory).unwrap_or(path).display();
                let file = word(&shown);
                let command = match (place, &everywhere.file) {
                    (Place::Rehearsal, _) => format!("castle rehearse -f {file}"),
                    (Place::Real, None) => "castle".to_owned(),
                    (Place::Real, Some(_)) => format!("{}castle -f {file}", served(path)),
                };
                (format!("`{}` from {shown}", spec.name), command)
            }
        };
        if let Some(state) = &everywhere.state {
            write!(command, " --state {}", word(state.display())).ok();
        }
        address::lead_to(&command);
        let state_given = given.is_some();
        let folder = match which {
            Which::Own(path) => path.parent().unwrap_or(&settings.directory).to_owned(),
            Which::Example => settings.directory.clone(),
        };
        let mut castle = Self { spec, place, source, command, folder, state, state_given };
        if place == Place::Rehearsal {
            castle.spec.lock = lock::of_rehearsal(&castle)?;
        }
        Ok(castle)
    }
}

/// What must stand before a command for a castle file that `castle rehearse serve` wrote: it needs its environment.
fn served(castle_file: &Path) -> String {
    let environment = castle_file.with_file_name(sheet::ENVIRONMENT);
    let is = castle_file.ends_with(sheet::CASTLE_FILE) && environment.is_file();
    if is { format!("{} ", with_environment(environment.display())) } else { String::new() }
}

fn usual_state(
    which: &Which,
    place: Place,
    spec: &Spec,
    settings: &Settings,
) -> Result<PathBuf, Problem> {
    let home = settings.state_home().ok_or_else(|| {
        Problem::usage("there is no place for the state")
            .hint("set HOME or XDG_STATE_HOME, or give a folder with --state")
    })?;
    let name = spec.name.as_str();
    Ok(match (place, which) {
        (Place::Real, _) if REHEARSED.contains(&name) => {
            return Err(Problem::usage(format!(
                "the usual state root of a castle `{name}` is the folder of the rehearsals"
            ))
            .hint("give the castle another name, or its state a folder with --state"));
        }
        (Place::Real, _) => home.join(name),
        (Place::Rehearsal, Which::Own(_)) => home.join(REHEARSED[0]).join(name),
        (Place::Rehearsal, Which::Example) => home.join(REHEARSED[1]).join(name),
    })
}

/// The steps of a castle, without the code behind them.
pub(crate) fn declare(spec: &Spec) -> Vec<StepDecl> {
    castle_layers::declare(spec)
}

/// The layers of a castle, in the order of their first step.
pub(crate) fn layers(spec: &Spec) -> Vec<LayerName> {
    let mut layers: Vec<LayerName> = Vec::new();
    for decl in declare(spec) {
        if !layers.contains(&decl.layer) {
            layers.push(decl.layer);
        }
    }
    layers
}

/// The steps of a castle, with the code behind them.
pub(crate) fn graph(spec: &Spec, world: &World, access: Access) -> Result<Graph, Problem> {
    let graph = castle_layers::build(&Arc::new(spec.clone()), world, access);
    graph
        .check()
        .map_err(|e| Problem::new(Exit::Failed, "the steps do not fit together").because(&e))?;
    Ok(graph)
}
