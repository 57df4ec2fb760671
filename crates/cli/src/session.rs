//! One run from lock to report: survey, plan, consent, run, closing words. The same for both directions.

use std::collections::BTreeSet;
use std::sync::Arc;

use castle_engine::survey::Surveyor;
use castle_engine::{Graph, Outputs, Report, RunError, Runner, Stop};
use castle_journal::{Holder, Records, Start, StateError, StateRoot, StepState};
use castle_model::event::{RunOutcome, SCHEMA};
use castle_model::plan::Direction;
use castle_model::time::Moment;
use castle_model::{Event, EventKind, Plan, RunId, StepId, UndoKind, Verb};
use castle_plan::{Look, Survey};
use castle_rehearsal::host::Host;

use crate::args::Run;
use crate::castle;
use crate::exit::{Exit, Problem};
use crate::face::Face;
use crate::output;
use crate::rehearsal::{Rehearsal, rehearse};
use crate::settings::Settings;
use crate::signals::{Signals, survive_hangup};

/// Everything that one run holds.
pub(crate) struct Session<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) rehearsal: &'a Rehearsal,
    pub(crate) host: &'a Host,
    pub(crate) json: bool,
}

/// What a run works with until it is over.
struct Work {
    root: StateRoot,
    graph: Graph,
    outputs: Arc<Outputs>,
    face: Face,
    run: RunId,
    told: u64,
}

impl Session<'_> {
    /// Raises or razes the castle. Until somebody has agreed, a signal simply ends the process: nothing was done.
    pub(crate) async fn run(
        &self,
        direction: Direction,
        args: &Run,
        root: StateRoot,
    ) -> Result<Exit, Problem> {
        let _hangup = survive_hangup()?;
        let graph = castle::graph(&self.rehearsal.spec, self.host)?;
        let run = next_run(root.journals().records(), self.now());
        let face = Face::new(self.json, self.settings, graph.decls());
        let mut work = Work { root, graph, outputs: Arc::default(), face, run, told: 0 };
        let plan = self.plan(direction, &mut work).await?;
        self.consent(&plan, args)?;
        let mut signals = Signals::listen()?;
        let stop = Stop::default();
        tokio::select! {
            biased;
            exit = self.carry_out(direction, &plan, work, &stop) => exit,
            () = signals.pass_on(&stop) => Ok(Exit::Interrupted),
        }
    }

    /// Looks at the world and says what will be done.
    async fn plan(&self, direction: Direction, work: &mut Work) -> Result<Plan, Problem> {
        let castle = self.rehearsal.spec.name.clone();
        let steps = work.graph.decls().len();
        self.tell(
            work,
            EventKind::RunStarted { castle: castle.clone(), direction, rehearsal: true, steps },
        );
        let surveyor = self.surveyor(work);
        let survey = match direction {
            Direction::Up => surveyor.look().await,
            Direction::Down => surveyor.look_for_leftovers().await,
        };
        for (step, seen) in &survey {
            if let Some((observed, evidence)) = surveyed(seen) {
                self.tell(work, EventKind::Surveyed { step: step.clone(), observed, evidence });
            }
        }
        let known = known(work.root.journals().records());
        let plan = make_plan(direction, &castle, &work.graph, &survey, &known)?;
        self.tell(work, EventKind::Planned { plan: plan.hash.clone(), counts: plan.counts() });
        Ok(plan)
    }

    async fn carry_out(
        &self,
        direction: Direction,
        plan: &Plan,
        mut work: Work,
        stop: &Stop,
    ) -> Result<Exit, Problem> {
        let start = Start {
            run: work.run.clone(),
            castle: self.rehearsal.spec.name.clone(),
            direction,
            plan: plan.hash.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        work.root.journals_mut().start_run(self.now(), start).map_err(|e| state_problem(&e))?;
        let clock = self.host.clock();
        let face = &mut work.face;
        let mut told = work.told;
        let report = Runner {
            graph: &work.graph,
            plan,
            journals: work.root.journals_mut(),
            outputs: work.outputs.clone(),
            deadlines: &self.rehearsal.spec.deadlines,
            now: Arc::new(move || clock.now()),
            face: &mut |event: &Event| {
                told = event.seq;
                face.hear(event);
            },
            told: work.told,
            run: work.run.clone(),
            stop: stop.clone(),
        }
        .run()
        .await
        .map_err(|error| self.journal_problem(direction, &error))?;
        work.told = told;
        work.root.journals_mut().compact_if_grown(self.now()).map_err(|e| state_problem(&e))?;
        let left = tokio::select! {
            biased;
            () = stop.asked(1) => Vec::new(),
            left = self.leftovers(direction, &report, &work) => left,
        };
        for (step, what) in &left {
            self.tell(&mut work, EventKind::Leftover { step: step.clone(), what: what.clone() });
        }
        self.close(direction, plan, &report, &left, &work.face);
        Ok(exit_of(&report, &left))
    }

    fn surveyor<'a>(&'a self, work: &'a Work) -> Surveyor<'a> {
        Surveyor {
            graph: &work.graph,
            records: work.root.journals().records(),
            outputs: work.outputs.clone(),
            deadlines: &self.rehearsal.spec.deadlines,
        }
    }

    fn tell(&self, work: &mut Work, kind: EventKind) {
        work.told += 1;
        let event =
            Event { v: SCHEMA, seq: work.told, at: self.now(), run: work.run.clone(), kind };
        work.face.hear(&event);
    }

    fn journal_problem(&self, direction: Direction, error: &RunError) -> Problem {
        let RunError::Journal(state) = error;
        Problem::refused("the run stopped before its next act: the journal could not be written")
            .because(state)
            .hint(format!(
                "{}; then `{} {}` goes on",
                state.hint(),
                self.rehearsal.command,
                word(direction)
            ))
    }

    /// Asks before anything is removed or replaced.
    fn consent(&self, plan: &Plan, args: &Run) -> Result<(), Problem> {
        let destructive: Vec<_> = plan.destructive().collect();
        if destructive.is_empty() || args.yes {
            return Ok(());
        }
        let name = &self.rehearsal.spec.name;
        output::talk(&format!(
            "This will destroy of castle `{name}` ({} in all):",
            destructive.len()
        ));
        for step in &destructive {
            output::talk(&format!("  {} {}: {}", step.verb, step.decl.title, step.reason));
        }
        if !self.settings.stdin_is_terminal {
            return Err(Problem::refused("nothing was done: nobody is there to agree")
                .hint("add --yes to agree beforehand"));
        }
        output::talk(&format!("Type the castle's name ({name}) to agree:"));
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).ok();
        if answer.trim() == name.as_str() {
            Ok(())
        } else {
            Err(Problem::refused("nothing was done: that is not the castle's name"))
        }
    }

    /// What is left of the castle after it went, by a look at the world and not at our records.
    async fn leftovers(
        &self,
        direction: Direction,
        report: &Report,
        work: &Work,
    ) -> Vec<(StepId, String)> {
        if direction == Direction::Up || report.outcome == RunOutcome::Interrupted {
            return Vec::new();
        }
        let surveyor = self.surveyor(work);
        let survey = surveyor.look_for_leftovers().await;
        let makes = |id: &StepId| {
            let decl = work.graph.decls().iter().find(|decl| decl.id == *id);
            decl.is_some_and(|decl| decl.undo == UndoKind::Explicit)
        };
        survey
            .into_iter()
            .filter(|(step, _)| makes(step))
            .filter_map(|(step, look)| match look {
                Look::Leftover(Some(what)) => Some((step, what)),
                Look::Leftover(None) | Look::Seen(_) => None,
                Look::Failed(failure) => Some((step, format!("could not be looked at: {failure}"))),
                Look::After(need) => {
                    Some((step, format!("could not be looked at, for want of {need}")))
                }
            })
            .collect()
    }

    fn close(
        &self,
        direction: Direction,
        plan: &Plan,
        report: &Report,
        left: &[(StepId, String)],
        face: &Face,
    ) {
        let go_on = format!("{} {}", self.rehearsal.command, word(direction));
        face.close(report, plan, &go_on, left);
        if !self.json {
            let changes: u64 = self.host.mutations().values().sum();
            output::talk(&format!(
                "rehearsal: {} requests, {changes} of them changed the datacenter; trace {}",
                self.host.requests().len(),
                face.trace(&self.host.trace_hash())
            ));
            if direction == Direction::Up && report.outcome == RunOutcome::Done {
                let explicit = rehearse(&self.rehearsal.command);
                output::talk(&format!(
                    "next: `{0} status`, `{1} inventory`, or `{0} down`",
                    self.rehearsal.command, explicit
                ));
            }
        }
    }

    fn now(&self) -> Moment {
        self.host.clock().now()
    }
}

/// Who holds a lock, for others to read.
pub(crate) fn holder(rehearsal: &Rehearsal, settings: &Settings, command: &str) -> Holder {
    Holder {
        pid: std::process::id(),
        host: settings.host.clone(),
        since: wall_clock(),
        command: format!("{} {command}", rehearsal.command),
    }
}

/// Opens and locks the state of a castle, and refuses what is not its own or not sound.
pub(crate) fn hold(
    rehearsal: &Rehearsal,
    settings: &Settings,
    direction: Direction,
) -> Result<StateRoot, Problem> {
    let holder = holder(rehearsal, settings, word(direction));
    let root = StateRoot::open(&rehearsal.state, &holder).map_err(|e| state_problem(&e))?;
    for torn in root.journals().notices() {
        output::talk(&format!("notice: {torn}"));
    }
    if let Some(problem) = root.journals().problems().values().next() {
        return Err(state_problem(problem));
    }
    let records = root.journals().records();
    if let Some(last) = records.last_run.as_ref().filter(|run| run.castle != rehearsal.spec.name) {
        let (other, folder) = (&last.castle, rehearsal.state.display());
        return Err(Problem::refused(format!(
            "the state in {folder} belongs to the castle `{other}`"
        ))
        .hint("give each castle a state root of its own with --state or CASTLE_STATE"));
    }
    if direction == Direction::Up && half_razed(records) {
        return Err(Problem::refused("a `down` of this castle was begun and not finished").hint(
            format!(
                "finish it with `{0} down`, then `{0} up` begins a new life",
                rehearsal.command
            ),
        ));
    }
    Ok(root)
}

/// Whether some of a life was removed and the rest not yet: what is left can not carry a castle any more.
fn half_razed(records: &Records) -> bool {
    let razed = |state: &StepState| match state {
        StepState::Undone { .. } => true,
        StepState::Intended { verb, .. } => *verb == Verb::Remove,
        StepState::Absent | StepState::Done { .. } | StepState::Failed { .. } => false,
    };
    records.incarnation.is_some() && records.steps.values().any(razed)
}

/// The word of a direction, which is the command's.
pub(crate) fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    }
}

/// The plan from what was seen and what the journals know.
pub(crate) fn make_plan(
    direction: Direction,
    castle: &castle_model::CastleName,
    graph: &Graph,
    survey: &Survey,
    known: &BTreeSet<StepId>,
) -> Result<Plan, Problem> {
    let plan = match direction {
        Direction::Up => castle_plan::up(castle, graph.decls(), survey, known),
        Direction::Down => castle_plan::down(castle, graph.decls(), survey),
    };
    plan.map_err(|e| Problem::new(Exit::Failed, "the steps do not fit together").because(&e))
}

/// The steps whose outcome a journal of ours holds.
pub(crate) fn known(records: &Records) -> BTreeSet<StepId> {
    let done = |state: &StepState| matches!(state, StepState::Done { .. });
    records.steps.iter().filter(|(_, state)| done(state)).map(|(id, _)| id.clone()).collect()
}

fn surveyed(look: &Look) -> Option<(String, String)> {
    use castle_model::Observed;
    let (word, evidence) = match look {
        Look::Seen(Observed::Absent) => ("absent", "not there".to_owned()),
        Look::Seen(Observed::Right { evidence }) => ("right", evidence.clone()),
        Look::Seen(Observed::Wrong { why, .. }) => ("wrong", why.clone()),
        Look::Seen(Observed::Foreign { owner }) => ("foreign", owner.clone()),
        Look::Seen(Observed::Unknown { why }) => ("unknown", why.clone()),
        Look::Failed(failure) => ("unknown", failure.to_string()),
        Look::Leftover(Some(what)) => ("right", what.clone()),
        Look::Leftover(None) => ("absent", "nothing there".to_owned()),
        Look::After(_) => return None,
    };
    Some((word.to_owned(), evidence))
}

/// Names the next run: numbered, because two runs of a rehearsal may begin at the same virtual moment.
fn next_run(records: &Records, now: Moment) -> RunId {
    let last = records
        .last_run
        .as_ref()
        .and_then(|run| run.id.as_str().strip_prefix('r')?.split('-').next()?.parse::<u64>().ok());
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
fn wall_clock() -> Moment {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Moment(since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(0)))
}

fn exit_of(report: &Report, left: &[(StepId, String)]) -> Exit {
    match report.outcome {
        RunOutcome::Interrupted => Exit::Interrupted,
        RunOutcome::Failed => Exit::Failed,
        RunOutcome::Done if !left.is_empty() => Exit::Leftovers,
        RunOutcome::Done => Exit::Done,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_exit_code_tells_the_truth() {
        let report = |outcome| Report {
            outcome,
            done: 0,
            failures: BTreeMap::new(),
            not_run: BTreeMap::new(),
            syncs: 0,
        };
        let left = [(StepId::new("platform", "image"), "image".to_owned())];
        assert_eq!(exit_of(&report(RunOutcome::Done), &[]), Exit::Done);
        assert_eq!(exit_of(&report(RunOutcome::Done), &left), Exit::Leftovers);
        assert_eq!(exit_of(&report(RunOutcome::Failed), &left), Exit::Failed);
        assert_eq!(exit_of(&report(RunOutcome::Interrupted), &left), Exit::Interrupted);
    }
}
