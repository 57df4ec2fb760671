//! The state root of a castle as a command meets it: held by one process, sound, and of this castle alone.

use std::path::PathBuf;

use castle_journal::{
    Holder, INCARNATION_LAYER, Rebirth, Records, SetAside, StateError, StateRoot, StepState, number,
};
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::time::Moment;
use castle_model::{LayerName, RunId, Verb};

use crate::castle::{Castle, Place};
use crate::commands::rebirth::refuse_half_razed;
use crate::commands::run::Act;
use crate::exit::Problem;
use crate::output;
use crate::patience::{Patience, until_free};
use crate::rehearsal::rehearse;
use crate::session::{REBIRTH, word};
use crate::settings::Settings;

/// Who holds a lock, for others to read.
pub(crate) fn holder(castle: &Castle, settings: &Settings, command: &str) -> Holder {
    Holder::this(settings.host.clone(), wall_clock(), format!("{} {command}", castle.command))
}

/// Opens and locks the state of a castle, and refuses what is not its own or not sound.
pub(crate) fn hold(
    castle: &Castle,
    settings: &Settings,
    act: Act,
    patience: Option<Patience>,
) -> Result<StateRoot, Problem> {
    other_world(castle)?;
    let direction = act.first();
    let busy =
        |error: &StateError| matches!(error, StateError::Locked { .. }).then(|| error.to_string());
    // Whoever waited holds the state since now, and not since it began to wait.
    let holder = || holder(castle, settings, act.word());
    let open = || StateRoot::open(&castle.state, &holder());
    let mut root = match until_free(patience, open, busy) {
        Err(damage @ StateError::Corrupt(_)) => {
            let (root, aside) =
                StateRoot::open_anew(&castle.state, &holder()).map_err(|e| state_problem(&e))?;
            tell_anew(&damage, &aside);
            root
        }
        other => other.map_err(|error| refused(castle, &error))?,
    };
    for torn in root.journals().notices() {
        output::talk(&format!("notice: {torn}"));
    }
    of_this_castle(castle, root.journals().records())?;
    let lost = set_damage_aside(&mut root)?;
    let records = root.journals().records();
    // Where the journal that knows the life is lost, the end of the last run tells whether all of it went.
    let ended = records.last_run.as_ref().and_then(|run| run.ended);
    let finished = ended.is_some_and(|(_, outcome)| outcome == RunOutcome::Done);
    let unknown = lost.iter().any(|layer| layer.as_str() == INCARNATION_LAYER);
    let alive = records.incarnation.is_some() || (unknown && !finished);
    if let Some(rebirth) = root.journals().open_rebirth()
        && direction == Direction::Up
        && half_razed(records, alive)
    {
        return Err(refuse_half_razed(castle, rebirth));
    }
    refuse_half(castle, records, direction, alive)?;
    Ok(root)
}

/// Why a state that somebody else holds, or that can not be used, is refused.
fn refused(castle: &Castle, error: &StateError) -> Problem {
    match error {
        StateError::Locked { .. } if castle.place == Place::Rehearsal => {
            let hint = error.hint();
            let explicit = rehearse(&castle.command);
            state_problem(error).hint(format!(
                "{hint}, `{explicit} inventory` looks into the datacenter, and `{explicit} poke` changes something there"
            ))
        }
        _ => state_problem(error),
    }
}

/// Refuses to tell of this castle what the state of another one says, or that of another world. What can not be read at all is told by
/// whoever reads it.
pub(crate) fn its_own(castle: &Castle) -> Result<(), Problem> {
    other_world(castle)?;
    match StateRoot::peek(&castle.state) {
        Ok(Some(peek)) => of_this_castle(castle, &peek.records),
        Ok(None) | Err(_) => Ok(()),
    }
}

/// Refuses the state of another castle.
fn of_this_castle(castle: &Castle, records: &Records) -> Result<(), Problem> {
    if let Some(last) = records.last_run.as_ref().filter(|run| run.castle != castle.spec.name) {
        let (other, folder) = (&last.castle, castle.state.display());
        return Err(Problem::refused(format!(
            "the state in {folder} belongs to the castle `{other}`"
        ))
        .hint("give each castle a state root of its own with --state or CASTLE_STATE"));
    }
    Ok(())
}

/// Sets the damaged journals of layers aside: what such a layer has is read back from the world, and the others go on
/// with what they know. Nothing is destroyed by that, so nobody is asked. What a later castle wrote is refused.
fn set_damage_aside(root: &mut StateRoot) -> Result<Vec<LayerName>, Problem> {
    let problems = root.journals().problems();
    if let Some(newer) = problems.values().find(|e| !matches!(e, StateError::Corrupt(_))) {
        return Err(state_problem(newer));
    }
    let damaged: Vec<(LayerName, String)> =
        problems.iter().map(|(layer, error)| (layer.clone(), damage_words(error))).collect();
    for (layer, why) in &damaged {
        let aside = root.journals_mut().set_aside(layer).map_err(|e| state_problem(&e))?;
        let kept = aside.kept_as.map(|name| format!(" The file is kept as {name}."));
        output::talk(&format!(
            "notice: the journal of the layer {layer} is damaged: {why}.{} What the layer has is read back from the world and \
             adopted where it is proven ours; the other layers go on with what they know.",
            kept.unwrap_or_default()
        ));
    }
    Ok(damaged.into_iter().map(|(layer, _)| layer).collect())
}

/// Tells that nothing of the journals is believed any more, and where they are.
fn tell_anew(damage: &StateError, aside: &[SetAside]) {
    let kept: Vec<&str> = aside.iter().filter_map(|file| file.kept_as.as_deref()).collect();
    output::talk(&format!(
        "notice: the journals are damaged as a whole: {}. Without the run journal those of the layers can not be held against \
         anything, so all are set aside ({}). The castle is read back from the world and adopted where it is proven ours.",
        damage_words(damage),
        kept.join(", ")
    ));
}

/// What is wrong with a journal: file, entry and why, where it is known.
pub(crate) fn damage_words(error: &StateError) -> String {
    match error {
        StateError::Corrupt(corruption) => corruption.to_string(),
        other => other.to_string(),
    }
}

/// Refuses to raise what is half razed.
pub(crate) fn whole(
    castle: &Castle,
    records: &Records,
    direction: Direction,
) -> Result<(), Problem> {
    refuse_half(castle, records, direction, records.incarnation.is_some())
}

fn refuse_half(
    castle: &Castle,
    records: &Records,
    direction: Direction,
    alive: bool,
) -> Result<(), Problem> {
    if direction == Direction::Up && half_razed(records, alive) {
        return Err(Problem::refused("a `down` of this castle was begun and not finished").hint(
            format!("finish it with `{0} down`, then `{0} up` begins a new life", castle.command),
        ));
    }
    Ok(())
}

/// What `up` will refuse for, if a `down` was begun and not finished, by itself or in a rebirth; nothing else is in its way.
pub(crate) fn half(
    castle: &Castle,
    records: &Records,
    rebirth: Option<&Rebirth>,
) -> Option<Problem> {
    let problem = whole(castle, records, Direction::Up).err()?;
    let open = rebirth.filter(|rebirth| rebirth.ended.is_none());
    Some(open.map_or(problem, |rebirth| refuse_half_razed(castle, rebirth)))
}

/// The command that goes on with a run that is not finished: that of the rebirth which it is a half of, if there is one.
pub(crate) fn goes_on(castle: &Castle, direction: Direction) -> String {
    let known = StateRoot::peek(&castle.state).ok().flatten().and_then(|peek| peek.rebirth.ok());
    let open = known.flatten().is_some_and(|rebirth| rebirth.ended.is_none());
    format!("{} {}", castle.command, if open { REBIRTH } else { word(direction) })
}

/// Refuses the state of another world: what a rehearsal knows is not true of real machines, and the reverse.
pub(crate) fn other_world(castle: &Castle) -> Result<(), Problem> {
    let datacenter = datacenter(castle).exists();
    let of_other = match castle.place {
        Place::Real => datacenter.then_some("a rehearsal"),
        // A rehearsal in its usual place may have lost its datacenter; one that was put elsewhere has not.
        Place::Rehearsal => {
            (castle.state_given && !datacenter && castle.state.join("run.journal").exists())
                .then_some("a castle that is not rehearsed")
        }
    };
    let Some(other) = of_other else { return Ok(()) };
    Err(Problem::refused(format!("the state in {} is that of {other}", castle.state.display()))
        .hint("give each of them a state root of its own with --state or CASTLE_STATE"))
}

/// Where the datacenter of a rehearsal is: beside the state, because deleting the state must not delete the world.
pub(crate) fn datacenter(castle: &Castle) -> PathBuf {
    let mut path = castle.state.clone().into_os_string();
    path.push(".datacenter");
    path.into()
}

/// Whether some of a life was removed and the rest not yet: what is left can not carry a castle any more.
/// After an `up` nothing is: it would have been refused, so that what is undone went with an earlier life.
fn half_razed(records: &Records, alive: bool) -> bool {
    if records.last_run.as_ref().is_some_and(|run| run.direction == Direction::Up) {
        return false;
    }
    let razed = |state: &StepState| match state {
        StepState::Undone { .. } => true,
        StepState::Intended { verb, .. } => *verb == Verb::Remove,
        StepState::Absent | StepState::Done { .. } | StepState::Failed { .. } => false,
    };
    // A layer inside the cluster may go alone, and come back.
    let mut carrying =
        records.steps.iter().filter(|(id, _)| matches!(id.layer(), "platform" | "secrets"));
    alive && carrying.any(|(_, state)| razed(state))
}

/// Names the next run: numbered, because two runs of a rehearsal may begin at the same virtual moment. Runs whose events
/// are kept count too: the journals may have been begun anew since.
pub(crate) fn next_run(records: &Records, kept: Option<&RunId>, now: Moment) -> RunId {
    let known = records.last_id();
    let last = known.into_iter().chain(kept).map(number).max();
    let (year, month, day) = now.date();
    RunId::new(format!("r{:04}-{year:04}{month:02}{day:02}", last.unwrap_or(0) + 1))
}

/// A problem with the state root, in a user's words.
pub(crate) fn state_problem(error: &StateError) -> Problem {
    Problem::refused("the state can not be used").because(error).hint(error.hint())
}

/// The time on the wall, for the lock: other processes and people look at it, rehearsal or not.
#[expect(
    clippy::disallowed_methods,
    reason = "who holds a lock, and since when, is about the real world"
)]
pub(crate) fn wall_clock() -> Moment {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Moment(since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(0)))
}
