//! One run from lock to report: survey, plan, consent, run, closing words. The same for both directions.

use std::collections::BTreeSet;
use std::sync::Arc;

use castle_engine::survey::Surveyor;
use castle_engine::{Graph, Outputs, Report, RunError, Runner, Stop};
use castle_journal::{Journals, Records, Start, StepState};
use castle_layers::secrets::source::Access;
use castle_model::event::{RunOutcome, SCHEMA};
use castle_model::plan::Direction;
use castle_model::time::Moment;
use castle_model::{Event, EventKind, Plan, RunId, StepId};
use castle_plan::{Look, Survey};
use castle_rehearsal::host::Host;
use castle_wire::World;

use crate::castle::{self, Castle};
use crate::clearing;
use crate::exit::{Exit, Problem};
use crate::face::Face;
use crate::output;
use crate::real::{self, Heard};
use crate::rehearsal::rehearse;
use crate::settings::Settings;
use crate::signals::{Signals, survive_hangup};
use crate::state::{next_run, state_problem};

/// Everything that one run holds.
pub(crate) struct Session<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) castle: &'a Castle,
    /// Everything outside: the real one, or the rehearsal's.
    pub(crate) world: World,
    /// How the secret sources are reached.
    pub(crate) access: Access,
    /// The rehearsal's datacenter, if it is one.
    pub(crate) rehearsal: Option<&'a Host>,
    pub(crate) json: bool,
    /// Who of the world answers.
    pub(crate) heard: Heard,
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
    /// Raises or razes the castle; with `yes`, somebody has agreed beforehand. Until somebody has agreed, a signal simply ends the process: nothing was done.
    pub(crate) async fn run(
        &self,
        direction: Direction,
        yes: bool,
        journals: &mut Journals,
    ) -> Result<Exit, Problem> {
        let _hangup = survive_hangup()?;
        let graph = castle::graph(&self.castle.spec, &self.world, self.access.clone())?;
        let run = next_run(journals.records(), self.now());
        let face = Face::new(self.json, self.settings, graph.decls());
        let mut work = Work { journals, graph, outputs: Arc::default(), face, run, told: 0 };
        let plan = self.plan(direction, &mut work).await?;
        self.consent(&plan, yes)?;
        let mut signals = Signals::listen()?;
        let stop = Stop::default();
        tokio::select! {
            biased;
            exit = self.carry_out(direction, &plan, work, &stop) => exit,
            () = signals.pass_on(&stop) => Ok(Exit::Interrupted),
        }
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
            None => real::patiently(look, &self.heard, &work.outputs).await,
        };
        for (step, seen) in &survey {
            if let Some((observed, evidence)) = surveyed(seen) {
                self.tell(work, EventKind::Surveyed { step: step.clone(), observed, evidence });
            }
        }
        if direction == Direction::Down {
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
    ) -> Result<Exit, Problem> {
        let start = Start {
            run: work.run.clone(),
            castle: self.castle.spec.name.clone(),
            direction,
            plan: plan.hash.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        work.journals.start_run(self.now(), start).map_err(|e| state_problem(&e))?;
        let clock = self.world.clock.clone();
        let face = &mut work.face;
        let mut told = work.told;
        let report = Runner {
            graph: &work.graph,
            plan,
            journals: &mut *work.journals,
            outputs: work.outputs.clone(),
            deadlines: &self.castle.spec.deadlines,
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
        work.journals.compact_if_grown(self.now()).map_err(|e| state_problem(&e))?;
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

    fn surveyor<'a>(&'a self, work: &'a Work<'_>) -> Surveyor<'a> {
        Surveyor {
            graph: &work.graph,
            records: work.journals.records(),
            outputs: work.outputs.clone(),
            deadlines: &self.castle.spec.deadlines,
        }
    }

    fn tell(&self, work: &mut Work<'_>, kind: EventKind) {
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
                self.castle.command,
                word(direction)
            ))
    }

    /// Asks before anything is removed or replaced.
    fn consent(&self, plan: &Plan, yes: bool) -> Result<(), Problem> {
        let destructive: Vec<_> = plan.destructive().collect();
        if destructive.is_empty() || yes {
            return Ok(());
        }
        let name = &self.castle.spec.name;
        output::say(&format!(
            "This will destroy of castle `{name}` ({} in all):",
            destructive.len()
        ));
        for step in &destructive {
            output::say(&format!("  {} {}: {}", step.word(), step.decl.title, step.reason));
        }
        if !self.settings.stdin_is_terminal {
            return Err(Problem::refused("nothing was done: nobody is there to agree")
                .hint("add --yes to agree beforehand"));
        }
        output::say(&format!("Type the castle's name ({name}) to agree:"));
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
        _work: &Work<'_>,
    ) -> Vec<(StepId, String)> {
        if direction == Direction::Up || report.outcome == RunOutcome::Interrupted {
            return Vec::new();
        }
        clearing::left(self.castle, (&self.world, &self.access), self.json, self.settings).await
    }

    fn close(
        &self,
        direction: Direction,
        plan: &Plan,
        report: &Report,
        left: &[(StepId, String)],
        face: &Face,
    ) {
        let go_on = format!("{} {}", self.castle.command, word(direction));
        face.close(report, plan, &go_on, left);
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
        if direction == Direction::Up && report.outcome == RunOutcome::Done {
            output::say(&format!("next: {next}"));
        }
    }

    fn now(&self) -> Moment {
        self.world.clock.now()
    }
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
