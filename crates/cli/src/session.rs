//! One run from lock to report: survey, plan, consent, run, closing words. The same for both directions.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use castle_engine::survey::Surveyor;
use castle_engine::{Graph, Outputs, Report, RunError, Runner, Stop};
use castle_journal::{Journals, RUNS_KEPT, Records, Runs, Start, StepState};
use castle_layers::secrets::source::Access;
use castle_model::event::{RunOutcome, SCHEMA};
use castle_model::plan::Direction;
use castle_model::time::Moment;
use castle_model::{Event, EventKind, PastRun, Plan, PlannedStep, RunId, Spec, StepDecl, StepId};
use castle_plan::{Look, Survey};
use castle_platforms::handed::SECRETS;
use castle_rehearsal::host::Host;
use castle_view::history::{Expected, expected};
use castle_wire::{Clock, World};

use crate::castle::{self, Castle};
use crate::clearing;
use crate::commands::rebirth::turn;
use crate::exit::{Exit, Problem};
use crate::face::{Backdrop, Face};
use crate::faults::Struck;
use crate::kept;
use crate::output;
use crate::page;
use crate::real::{self, Heard};
use crate::rehearsal::rehearse;
use crate::settings::Settings;
use crate::signals::{Signals, survive_hangup};
use crate::state::{next_run, state_problem};

mod consent;
mod steady;

pub(crate) use self::consent::Consent;
pub(crate) use self::steady::Steady;

/// Everything that one run holds.
pub(crate) struct Session<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) castle: &'a Castle,
    /// Everything outside: the real one, or the rehearsal's.
    pub(crate) world: World,
    /// Tells when what happens in this process happens. The time of day may jump, this does not.
    pub(crate) clock: Arc<dyn Clock>,
    /// How the secret sources are reached.
    pub(crate) access: Access,
    /// The rehearsal's datacenter, if it is one.
    pub(crate) rehearsal: Option<&'a Host>,
    pub(crate) json: bool,
    /// Who of the world answers.
    pub(crate) heard: Heard,
    /// Where events and times are kept, if they are.
    pub(crate) runs: Option<&'a Runs>,
    /// What has struck in the rehearsal and is not yet told as an event.
    pub(crate) struck: Struck,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) exit: Exit,
    pub(crate) run: RunId,
    /// What failed first, or is left, in a few words.
    pub(crate) why: Option<String>,
}

/// What a run works with until it is over.
struct Work<'j> {
    journals: &'j mut Journals,
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
        consent: &Consent,
        journals: &mut Journals,
    ) -> Result<Ended, Problem> {
        let _hangup = survive_hangup()?;
        // Where nobody is asked, or a first half has run already, a signal is heard from the first look on.
        let early = !matches!(consent, Consent::Ask) || journals.open_rebirth().is_some();
        let heard = early.then(Signals::listen).transpose()?;
        let mut work = self.work(journals)?;
        let plan = match heard {
            None => self.plan(direction, &mut work).await?,
            Some(mut signals) => tokio::select! {
                biased;
                () = signals.any() => return Err(interrupted()),
                plan = self.plan(direction, &mut work) => plan?,
            },
        };
        self.consent(&plan, consent)?;
        let mut signals = Signals::listen()?;
        let stop = Stop::default();
        tokio::select! {
            biased;
            ended = self.carry_out(direction, &plan, work, &stop) => ended,
            () = signals.pass_on(&stop) => Err(interrupted()),
        }
    }

    /// Shows the plan and asks, and does nothing: another process carries it out. Says what was agreed to.
    pub(crate) async fn agree(
        &self,
        direction: Direction,
        consent: &Consent,
        journals: &mut Journals,
    ) -> Result<BTreeSet<StepId>, Problem> {
        let mut work = self.work(journals)?;
        // In JSON there are the events of runs, and this is none.
        work.face.hush(self.json);
        let plan = self.plan(direction, &mut work).await?;
        self.consent(&plan, consent)?;
        Ok(plan.destructive().map(|step| step.decl.id.clone()).collect())
    }

    fn work<'j>(&self, journals: &'j mut Journals) -> Result<Work<'j>, Problem> {
        let graph = castle::graph(&self.castle.spec, &self.world, self.access.clone())?;
        let kept = self.runs.and_then(|runs| runs.list().ok()).unwrap_or_default();
        let run = next_run(journals.records(), kept.last(), self.now());
        let face = Face::new(self.json, self.settings, graph.decls());
        Ok(Work { journals, graph, outputs: Arc::default(), face, run, told: 0 })
    }

    /// Looks at the world and says what will be done.
    async fn plan(&self, direction: Direction, work: &mut Work<'_>) -> Result<Plan, Problem> {
        let castle = self.castle.spec.name.clone();
        let steps = work.graph.decls().len();
        self.tell(
            work,
            EventKind::RunStarted {
                castle: castle.clone(),
                direction,
                rehearsal: self.rehearsal.is_some(),
                steps,
            },
        );
        let surveyor = self.surveyor(work);
        let look = async {
            match direction {
                Direction::Up => surveyor.look().await,
                Direction::Down => surveyor.look_for_leftovers().await,
            }
        };
        let survey = match self.rehearsal {
            Some(_) => look.await,
            None => real::patiently(look, &self.heard, &work.outputs, self.settings).await,
        };
        for (step, seen) in &survey {
            if let Some((observed, evidence)) = surveyed(seen) {
                self.tell(work, EventKind::Surveyed { step: step.clone(), observed, evidence });
            }
        }
        if direction == Direction::Down && !opens(&self.castle.spec, &work.outputs) {
            sighted(&work.graph, &survey)?;
        }
        let known = known(work.journals.records());
        let plan = make_plan(direction, &castle, &work.graph, &survey, &known)?;
        self.tell(work, EventKind::Planned { plan: plan.hash.clone(), counts: plan.counts() });
        Ok(plan)
    }

    async fn carry_out(
        &self,
        direction: Direction,
        plan: &Plan,
        mut work: Work<'_>,
        stop: &Stop,
    ) -> Result<Ended, Problem> {
        let start = Start {
            run: work.run.clone(),
            castle: self.castle.spec.name.clone(),
            direction,
            plan: plan.hash.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let records = work.journals.records();
        let killed = self.runs.and_then(|runs| kept::killed(runs, records, work.graph.decls()));
        work.journals.start_run(self.now(), start).map_err(|e| state_problem(&e))?;
        self.remember(killed);
        self.make_room(work.journals);
        work.face.keep(self.runs, &work.run);
        self.settings.begun(&work.run);
        self.go_live(plan, work.graph.decls(), work.journals, &mut work.face);
        let clock = self.clock.clone();
        let face = &mut work.face;
        let mut told = work.told;
        let ran = Runner {
            graph: &work.graph,
            plan,
            journals: &mut *work.journals,
            outputs: work.outputs.clone(),
            deadlines: &self.castle.spec.deadlines,
            now: Arc::new(move || clock.now()),
            face: &mut |event: &Event| {
                self.tell_struck(face, &mut told, &event.run);
                told += 1;
                face.hear(&Event { seq: told, ..event.clone() });
            },
            told: work.told,
            run: work.run.clone(),
            stop: stop.clone(),
        }
        .run()
        .await;
        work.told = told;
        let rebirth = work.journals.open_rebirth().is_some();
        let go_on = if rebirth { REBIRTH } else { word(direction) };
        let go_on = format!("{} {go_on}", self.castle.command);
        let report = ran.map_err(|error| {
            let (told, decls) = (work.told, work.graph.decls());
            self.broken_off(&error, &go_on, (&mut work.face, told), decls, &work.run)
        })?;
        self.shorten(work.journals);
        let left = tokio::select! {
            biased;
            () = stop.asked(1) => Vec::new(),
            left = self.leftovers(direction, &report, &work) => left,
        };
        for (step, what) in &left {
            self.tell(&mut work, EventKind::Leftover { step: step.clone(), what: what.clone() });
        }
        let exit = clearing::exit_of(report.outcome, !left.is_empty());
        let (name, decls) = (&self.castle.spec.name, work.graph.decls());
        self.remember(kept::past(name, direction, decls, &work.face.progress(), exit));
        work.face.calm();
        let page = self.keep_page(&work.face, work.graph.decls(), &work.run);
        self.close(go_on, plan, &work.face, page.as_deref());
        Ok(Ended { exit, run: work.run, why: why(&report, &left) })
    }

    /// Shows the run on a live screen, if somebody looks at one.
    pub(crate) fn go_live(
        &self,
        plan: &Plan,
        decls: &[StepDecl],
        journals: &Journals,
        face: &mut Face,
    ) {
        let name = &self.castle.spec.name;
        let direction = face.progress().direction.unwrap_or(Direction::Up);
        let this = kept::past(name, direction, decls, &face.progress(), Exit::Done);
        let history = self.runs.and_then(|runs| runs.history().ok()).unwrap_or_default();
        let expected = this.map(|this| expected(&this, &history.runs)).unwrap_or_default();
        let first = expected.runs == 0 && direction == Direction::Up;
        let expected = if first { Expected::declared(&acting(plan)) } else { expected };
        let turn = journals.open_rebirth().and_then(|rebirth| turn(rebirth, direction));
        let decls = plan.steps.iter().map(PlannedStep::in_turn).collect();
        let clock = Some(self.clock.clone());
        face.go_live(decls, expected, Backdrop { turn, clock });
    }

    /// Lets the oldest events go, but none of the last rebirth, whether it is over or not.
    pub(crate) fn make_room(&self, journals: &Journals) {
        let rebirth = journals.rebirth().ok().flatten();
        let needed = |run: &RunId| rebirth.is_some_and(|rebirth| rebirth.is_of(run));
        if let Some(Err(error)) = self.runs.map(|runs| runs.prune(RUNS_KEPT - 1, needed)) {
            kept::tell("the events of old runs can not be removed", &error);
        }
    }

    /// Adds what a run took to the history.
    pub(crate) fn remember(&self, past: Option<PastRun>) {
        if let Some(runs) = self.runs
            && let Some(past) = past
            && let Err(error) = runs.remember(&past)
        {
            kept::tell("what this run took can not be remembered", &error);
        }
    }

    /// A run without an end: something was done, and it is told to whoever looks at its events later. `go_on` is the command
    /// that goes on with it.
    pub(crate) fn broken_off(
        &self,
        error: &RunError,
        go_on: &str,
        (face, told): (&mut Face, u64),
        decls: &[StepDecl],
        run: &RunId,
    ) -> Problem {
        let problem = journal_problem(error, go_on);
        let kind = EventKind::Notice { step: None, text: problem.to_string().replace('\n', ";") };
        let (v, at) = (SCHEMA, self.now());
        face.keep_only(&Event { v, seq: told + 1, at, run: run.clone(), kind });
        self.keep_page(face, decls, run);
        problem
    }

    /// Writes journals anew that have grown. What the run did is recorded already, so that a disk which refuses this takes
    /// neither the report nor the exit code from it.
    pub(crate) fn shorten(&self, journals: &mut Journals) {
        if let Err(error) = journals.compact_if_grown(self.now()) {
            kept::tell("the journals can not be made shorter; they hold what this run did", &error);
        }
    }

    fn surveyor<'a>(&'a self, work: &'a Work<'_>) -> Surveyor<'a> {
        Surveyor {
            graph: &work.graph,
            records: work.journals.records(),
            outputs: work.outputs.clone(),
            deadlines: &self.castle.spec.deadlines,
        }
    }

    /// Tells what has struck in the rehearsal, before what came of it.
    pub(crate) fn tell_struck(&self, face: &mut Face, told: &mut u64, run: &RunId) {
        for (at, kind) in self.struck.take() {
            *told += 1;
            face.hear_struck(&Event { v: SCHEMA, seq: *told, at, run: run.clone(), kind });
        }
    }

    fn tell(&self, work: &mut Work<'_>, kind: EventKind) {
        if !matches!(kind, EventKind::RunStarted { .. }) {
            self.tell_struck(&mut work.face, &mut work.told, &work.run);
        }
        work.told += 1;
        let event =
            Event { v: SCHEMA, seq: work.told, at: self.now(), run: work.run.clone(), kind };
        work.face.hear(&event);
    }

    /// What is left of the castle after it went, by a look at the world and not at our records.
    async fn leftovers(
        &self,
        direction: Direction,
        report: &Report,
        work: &Work<'_>,
    ) -> Vec<(StepId, String)> {
        if direction == Direction::Up || report.outcome == RunOutcome::Interrupted {
            return Vec::new();
        }
        let seen = (&self.world, &self.access);
        clearing::left(self.castle, seen, &work.outputs, self.json, self.settings).await
    }

    /// Leaves the page of the run beside its events. One that can not be written is told, and changes nothing else.
    pub(crate) fn keep_page(
        &self,
        face: &Face,
        decls: &[StepDecl],
        run: &RunId,
    ) -> Option<PathBuf> {
        if !face.is_kept() {
            // That there are no events was told when they could not be kept.
            return None;
        }
        let kept = page::keep(self.castle, decls, self.runs?, run);
        kept.unwrap_or_else(|error| {
            kept::tell("the page of this run can not be kept", &error);
            None
        })
    }

    /// The closing words: the report, what the rehearsal did, where the page is, what comes next. `go_on` is the command that
    /// goes on with a run that is not finished.
    pub(crate) fn close(&self, go_on: String, plan: &Plan, face: &Face, page: Option<&Path>) {
        let mut go_on = vec![go_on];
        if let Some(host) = self.rehearsal.filter(|_| face.is_unfinished() && !self.json) {
            // What a rule of the user's own broke stands in the way of the next run too.
            let command = rehearse(&self.castle.command);
            go_on.splice(0..0, self.struck.tell_remains(host, &command));
        }
        let decls: Vec<StepDecl> = plan.steps.iter().map(PlannedStep::in_turn).collect();
        face.close(&decls.iter().collect::<Vec<_>>(), &go_on);
        if self.json {
            return;
        }
        let command = &self.castle.command;
        let mut next = format!("`{command} status`, or `{command} down`");
        if let Some(host) = self.rehearsal {
            let changes: u64 = host.mutations().values().sum();
            output::say(&format!(
                "rehearsal: {} requests, {changes} of them changed the datacenter; trace {}",
                host.requests().len(),
                face.trace(&host.trace_hash())
            ));
            let explicit = rehearse(command);
            next = format!("`{command} status`, `{explicit} inventory`, or `{command} down`");
        }
        if let Some(page) = page {
            output::say(&format!("timeline: {}", page.display()));
        }
        if face.end() == (Some(Direction::Up), Some(RunOutcome::Done)) {
            output::say(&format!("next: {next}"));
        }
    }

    /// The time of what happens in this process: as it was when it began, and how long that is ago by a clock that nobody sets.
    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }
}

fn journal_problem(error: &RunError, go_on: &str) -> Problem {
    let RunError::Journal(state) = error;
    let what = "the run stopped before its next act: the journal could not be written";
    let hint = format!("{}; then `{go_on}` goes on", state.hint());
    Problem::new(Exit::Failed, what).because(state).hint(hint)
}

/// The command that goes on with either half of a rebirth; `castle down` would give it up.
pub(crate) const REBIRTH: &str = "rebirth";

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

/// The steps of a plan as they are declared; what is left alone usually takes no time.
fn acting(plan: &Plan) -> Vec<StepDecl> {
    let declared = |step: &PlannedStep| {
        let usual = if step.verb.acts() { step.decl.weight } else { 0 };
        step.in_turn().weight(usual)
    };
    plan.steps.iter().map(declared).collect()
}

/// Whether the keys are at hand that open the platform: what else is missing in the source stops nobody who razes.
fn opens(spec: &Spec, outputs: &Outputs) -> bool {
    let held = outputs.get(&SECRETS);
    spec.platform.proxmox().is_some()
        && held.is_ok_and(|held| spec.platform.secrets().all(|key| held.get(key).is_ok()))
}

/// Refuses to raze blindly: without what every removal needs (the credentials) nothing can be removed, and not even be
/// looked for.
fn sighted(graph: &Graph, survey: &Survey) -> Result<(), Problem> {
    for decl in graph.decls().iter().filter(|decl| decl.always) {
        if let Some(Look::Failed(failure)) = survey.get(&decl.id) {
            output::say(&format!(
                "nothing was removed: without {} castle can not look for what is there",
                decl.title
            ));
            return Err(Problem::failure(failure));
        }
    }
    Ok(())
}

fn surveyed(look: &Look) -> Option<(String, String)> {
    use castle_model::Observed;
    let (word, evidence) = match look {
        Look::Seen(Observed::Absent) => ("absent", "not there".to_owned()),
        Look::Seen(Observed::Unused { why }) => ("absent", why.clone()),
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

fn interrupted() -> Problem {
    Problem::new(Exit::Interrupted, "interrupted before anything was done")
}

/// What went wrong, in a few words.
fn why(report: &Report, left: &[(StepId, String)]) -> Option<String> {
    if let Some((step, failure)) = report.failures.iter().next() {
        return Some(format!("{step} failed: {failure}"));
    }
    left.first().map(|(step, what)| format!("left over: {step}: {what}"))
}

#[cfg(test)]
mod tests;
