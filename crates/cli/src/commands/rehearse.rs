//! What only a rehearsal can do: throw the datacenter away.

use std::path::Path;

use crate::answer;
use crate::args::Everywhere;
use crate::exit::{Exit, Problem};
use crate::output;
use crate::project::Which;
use crate::rehearsal::{ESCROW_FILE, Rehearsal, runtime};
use crate::settings::Settings;
use crate::state::{self, state_problem};
use castle_journal::{StateError, StateRoot};

/// Removes the datacenter and the state of a rehearsal.
pub(crate) fn reset(
    which: &Which,
    yes: bool,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let rehearsal = Rehearsal::find(which, everywhere, None, settings)?;
    if !yes && !settings.stdin_is_terminal {
        return Err(
            Problem::refused("nothing was done: nobody is there to agree").hint("add --yes")
        );
    }
    if !yes {
        output::talk(&format!(
            "Throw the rehearsal of `{}` away? Type yes:",
            rehearsal.castle.spec.name
        ));
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).ok();
        if answer.trim() != "yes" {
            return Err(Problem::refused("nothing was done"));
        }
    }
    // What somebody works with is not pulled from under them; damage is no reason to keep it.
    let root = match StateRoot::open(
        &rehearsal.castle.state,
        &state::holder(&rehearsal.castle, settings, "rehearse reset"),
    ) {
        Err(error @ StateError::Locked { .. }) => return Err(state_problem(&error)),
        other => other.ok(),
    };
    runtime()?.block_on(async { rehearsal.check_unused() })?;
    remove_served(&rehearsal.datacenter)?;
    for (folder, files) in
        [(&rehearsal.datacenter, DATACENTER_FILES), (&rehearsal.castle.state, STATE_FILES)]
    {
        remove(folder, files)?;
    }
    drop(root);
    output::talk("the rehearsal is gone");
    if everywhere.json {
        let gone = serde_json::json!({
            "castle": rehearsal.castle.spec.name,
            "folders": [rehearsal.datacenter, rehearsal.castle.state],
        });
        output::data(&answer::line("reset", &gone));
    }
    Ok(Exit::Done)
}

/// What the datacenter writes into its folder.
const DATACENTER_FILES: &[&str] = &[
    "world.json",
    "world.json.new",
    "world.log",
    "castle.lock",
    ESCROW_FILE,
    ".escrow.enc.yaml.new",
    "desk",
    "lock",
];
/// What the journals write into the state root; folders last.
const STATE_FILES: &[&str] = &[
    "layers/",
    "runs/",
    "run.journal",
    ".run.journal.new",
    "rebirth.journal",
    ".rebirth.journal.new",
    "history.jsonl",
    ".history.jsonl.new",
    "lock",
];

/// Removes the files that castle writes, then the folder if nothing else is in it: it may be somebody's own.
fn remove(folder: &Path, files: &[&str]) -> Result<(), Problem> {
    for name in files {
        let path = folder.join(name);
        if let Some(inner) = name.strip_suffix('/') {
            remove_journals(&folder.join(inner))?;
        } else {
            gone(std::fs::remove_file(&path), &path)?;
        }
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        // A journal that was damaged, and set aside.
        let (name, damaged) =
            (entry.file_name(), ["run.journal.damaged-", "rebirth.journal.damaged-"]);
        if damaged.iter().any(|ours| name.to_string_lossy().starts_with(ours)) {
            gone(std::fs::remove_file(entry.path()), &entry.path())?;
        }
    }
    if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        output::talk(&format!("notice: {} holds other files too, so it stays", folder.display()));
        return Ok(());
    }
    gone(std::fs::remove_dir(folder), folder)
}

/// Removes what `rehearse serve` wrote beside the datacenter: all of that folder is castle's own.
fn remove_served(datacenter: &Path) -> Result<(), Problem> {
    let served = datacenter.join(super::serve::FOLDER);
    gone(std::fs::remove_dir_all(&served), &served)
}

fn remove_journals(folder: &Path) -> Result<(), Problem> {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if [".journal", ".jsonl", ".timeline.html"]
            .iter()
            .any(|ours| path.to_string_lossy().contains(ours))
        {
            gone(std::fs::remove_file(&path), &path)?;
        }
    }
    if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none()) {
        gone(std::fs::remove_dir(folder), folder)?;
    }
    Ok(())
}

fn gone(result: std::io::Result<()>, path: &Path) -> Result<(), Problem> {
    match result {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Problem::new(Exit::Failed, format!("{} could not be removed", path.display()))
                .because(&e))
        }
        _ => Ok(()),
    }
}
