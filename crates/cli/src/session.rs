//! One run from lock to report: survey, plan, consent, run, closing words. The same for both directions.

use std::collections::BTreeSet;
use std::sync::Arc;

use castle_engine::survey::Surveyor;
use castle_engine::{Graph, Outputs, Report, Runner, Stop};
use castle_journal::{Holder, Records, Start, StateError, StateRoot, StepState};
use castle_model::event::{RunOutcome, SCHEMA};
use castle_model::plan::Direction;
use castle_model::time::Moment;
use castle_model::{Event, EventKind, Plan, RunId, StepId};
use castle_plan::{Look, Survey};
use castle_rehearsal::host::Host;

use crate::args::Run;
use crate::castle;
use crate::exit::{Exit, Problem};
use crate::face::Face;
use crate::output;
use crate::rehearsal::{Rehearsal, rehearse};
use crate::settings::Settings;
use crate::signals::Signals;

/// Everything that one run holds.
pub(crate) struct Session<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) rehearsal: &'a Rehearsal,
    pub(crate) host: &'a Host,
    pub(crate) json: bool,
}

impl Session<'_> {
    /// Raises or razes the castle.
    pub(crate) async fn run(&self, direction: Direction, args: &Run) -> Result<Exit, Problem> {
        let mut signals = Signals::listen()?;
        let stop = Stop::default();
        let work = self.work(direction, args, &stop);
        tokio::select! {
            biased;
            exit = work => exit,
            () = signals.pass_on(&stop) => Ok(Exit::Interrupted),
        }
    }

    async fn work(&self, direction: Direction, args: &Run, stop: &Stop) -> Result<Exit, Problem> {
        let mut root = self.lock(direction)?;
        let graph = castle::graph(&self.rehearsal.spec, self.host)?;
        let outputs = Arc::<Outputs>::default();
        let mut face = Face::new(self.json, self.settings, graph.decls());
        let mut told = 0;
        let run = next_run(root.journals().records(), self.now());
        let mut tell = |face: &mut Face, kind: EventKind| {
            told += 1;
            face.hear(&Event { v: SCHEMA, seq: told, at: self.now(), run: run.clone(), kind });
        };
        tell(
            &mut face,
            EventKind::RunStarted {
                castle: self.rehearsal.spec.name.clone(),
                direction,
                rehearsal: true,
                steps: graph.decls().len(),
            },
        );
        let surveyor = Surveyor {
            graph: &graph,
            records: root.journals().records(),
            outputs: outputs.clone(),
            deadlines: &self.rehearsal.spec.deadlines,
        };
        let survey = tokio::select! {
            biased;
            () = stop.asked(1) => {
                output::talk("interrupted before anything was done");
                return Ok(Exit::Interrupted);
            }
            survey = look(&surveyor, direction) => survey,
        };
        for (step, seen) in &survey {
            if let Some((observed, evidence)) = surveyed(seen) {
                tell(&mut face, EventKind::Surveyed { step: step.clone(), observed, evidence });
            }
        }
        let known = known(root.journals().records());
        let plan = make_plan(direction, &self.rehearsal.spec.name, &graph, &survey, &known)?;
        tell(&mut face, EventKind::Planned { plan: plan.hash.clone(), counts: plan.counts() });
        self.consent(&plan, args)?;
        let start = Start {
            run: run.clone(),
            castle: self.rehearsal.spec.name.clone(),
            direction,
            plan: plan.hash.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        root.journals_mut().start_run(self.now(), start).map_err(|e| state_problem(&e))?;
        let clock = self.host.clock();
        let report = Runner {
            graph: &graph,
            plan: &plan,
            journals: root.journals_mut(),
            outputs: outputs.clone(),
            deadlines: &self.rehearsal.spec.deadlines,
            now: Arc::new(move || clock.now()),
            face: &mut |event: &Event| face.hear(event),
            told,
            run,
            stop: stop.clone(),
        }
        .run()
        .await
        .map_err(|e| {
            let castle_engine::RunError::Journal(state) = &e;
            Problem::refused(
                "the run stopped before its next act: the journal could not be written",
            )
            .because(state)
            .hint(format!(
                "{}; then run `{} {}` to go on",
                state.hint(),
                self.rehearsal.command,
                word(direction)
            ))
        })?;
        root.journals_mut().compact_if_grown(self.now()).map_err(|e| state_problem(&e))?;
        let surveyor = Surveyor {
            graph: &graph,
            records: root.journals().records(),
            outputs,
            deadlines: &self.rehearsal.spec.deadlines,
        };
        let left = self.leftovers(direction, &report, &surveyor).await;
        self.close(direction, &plan, &report, &left, &face);
        Ok(exit_of(&report, &left))
    }

    fn lock(&self, direction: Direction) -> Result<StateRoot, Problem> {
        let root = hold(self.rehearsal, self.settings, word(direction))?;
        for torn in root.journals().notices() {
            output::talk(&format!("notice: {torn}"));
        }
        if let Some(problem) = root.journals().problems().values().next() {
            return Err(state_problem(problem));
        }
        Ok(root)
    }

    /// Asks before anything is removed or replaced.
    fn consent(&self, plan: &Plan, args: &Run) -> Result<(), Problem> {
        let destructive: Vec<_> = plan.destructive().collect();
        if destructive.is_empty() || args.yes {
            return Ok(());
        }
        let name = &self.rehearsal.spec.name;
        output::talk(&format!(
            "This will destroy {} thing(s) of castle `{name}`:",
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
        surveyor: &Surveyor<'_>,
    ) -> Vec<(StepId, String)> {
        if direction == Direction::Up || report.outcome == RunOutcome::Interrupted {
            return Vec::new();
        }
        let survey = surveyor.look_for_leftovers().await;
        survey
            .into_iter()
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

/// Opens and locks the state of a castle.
pub(crate) fn hold(
    rehearsal: &Rehearsal,
    settings: &Settings,
    command: &str,
) -> Result<StateRoot, Problem> {
    let holder = Holder {
        pid: std::process::id(),
        host: settings.host.clone(),
        since: wall_clock(),
        command: format!("castle {command}"),
    };
    StateRoot::open(&rehearsal.state, &holder).map_err(|e| state_problem(&e))
}

/// The word of a direction, which is the command's.
pub(crate) fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    }
}

async fn look(surveyor: &Surveyor<'_>, direction: Direction) -> Survey {
    match direction {
        Direction::Up => surveyor.look().await,
        Direction::Down => surveyor.look_for_leftovers().await,
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
