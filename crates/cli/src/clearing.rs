//! A run that only removes, over a part of the graph: what `wipe` and `down --layer` do once somebody has agreed. And the
//! audit that every way down ends with.

use std::sync::Arc;

use castle_engine::survey::Surveyor;
use castle_engine::{Graph, Outputs, Runner, Stop};
use castle_journal::{Journals, Records, Start};
use castle_layers::audit::audit_after;
use castle_layers::secrets::source::Access;
use castle_model::audit::Kind;
use castle_model::event::{RunOutcome, SCHEMA};
use castle_model::plan::Direction;
use castle_model::{Audit, Event, EventKind, Failure, Plan, RunId, Secret, StepId};
use castle_platforms::handed::KEPT;
use castle_wire::World;

use crate::address;
use crate::answer;
use crate::castle::{self, Castle};
use crate::exit::{Exit, Problem};
use crate::face::{Face, style};
use crate::kept::{killed, past};
use crate::output;
use crate::session::Session;
use crate::settings::{Settings, Stream};
use crate::signals::{Signals, survive_hangup};
use crate::state::{next_run, state_problem};

/// Such a run.
pub(crate) struct Clearing<'a> {
    pub(crate) session: &'a Session<'a>,
    /// The command that goes on where this one ended.
    pub(crate) go_on: String,
    /// Whether the whole castle should be gone once it is over, which is looked at then.
    pub(crate) whole: bool,
}

impl Clearing<'_> {
    /// A surveyor of the steps of a graph.
    pub(crate) fn surveyor<'s>(
        &'s self,
        graph: &'s Graph,
        records: &'s Records,
        outputs: &Arc<Outputs>,
    ) -> Surveyor<'s> {
        let deadlines = &self.session.castle.spec.deadlines;
        Surveyor { graph, records, outputs: outputs.clone(), deadlines }
    }

    /// Carries a plan out that somebody has agreed to, and shows how it went.
    pub(crate) async fn run(
        &self,
        graph: &Graph,
        plan: &Plan,
        outputs: Arc<Outputs>,
        journals: &mut Journals,
    ) -> Result<Exit, Problem> {
        let _hangup = survive_hangup()?;
        let mut signals = Signals::listen()?;
        let stop = Stop::default();
        tokio::select! {
            biased;
            ended = self.carry_out((graph, plan), outputs, journals, &stop) => ended,
            () = signals.pass_on(&stop) => Err(Problem::new(Exit::Interrupted, "interrupted")),
        }
    }

    async fn carry_out(
        &self,
        (graph, plan): (&Graph, &Plan),
        outputs: Arc<Outputs>,
        journals: &mut Journals,
        stop: &Stop,
    ) -> Result<Exit, Problem> {
        let Session { castle, clock, runs, settings, json, .. } = self.session;
        let kept = runs.and_then(|runs| runs.list().ok()).unwrap_or_default();
        let run = next_run(journals.records(), kept.last(), clock.now());
        let mut face = Face::new(*json, settings, graph.decls());
        let start = Start {
            run: run.clone(),
            castle: castle.spec.name.clone(),
            direction: Direction::Down,
            plan: plan.hash.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let all = castle::declare(&castle.spec);
        let cut = runs.and_then(|runs| killed(runs, journals.records(), &all));
        journals.start_run(clock.now(), start).map_err(|e| state_problem(&e))?;
        self.session.remember(cut);
        self.session.make_room(journals);
        face.keep(*runs, &run);
        let mut told = self.begin(plan, &run, &mut face);
        self.session.go_live(plan, graph.decls(), journals, &mut face);
        let found = outputs.clone();
        let steady = clock.clone();
        let hearing = &mut face;
        let runner = Runner {
            graph,
            plan,
            journals: &mut *journals,
            outputs,
            deadlines: &castle.spec.deadlines,
            now: Arc::new(move || steady.now()),
            told,
            face: &mut |event: &Event| {
                self.session.tell_struck(hearing, &mut told, &event.run);
                told += 1;
                hearing.hear(&Event { seq: told, ..event.clone() });
            },
            run: run.clone(),
            stop: stop.clone(),
        };
        let ran = runner.run().await;
        let report = ran.map_err(|error| {
            let heard = (&mut face, told);
            self.session.broken_off(&error, &self.go_on, heard, graph.decls(), &run)
        })?;
        self.session.shorten(journals);
        let left = tokio::select! {
            biased;
            () = stop.asked(1) => Vec::new(),
            left = self.left(report.outcome, &found) => left,
        };
        for (step, what) in &left {
            told += 1;
            let kind = EventKind::Leftover { step: step.clone(), what: what.clone() };
            let (v, at, run) = (SCHEMA, clock.now(), run.clone());
            face.hear(&Event { v, seq: told, at, run, kind });
        }
        let exit = exit_of(report.outcome, !left.is_empty());
        let name = &castle.spec.name;
        let done = past(name, Direction::Down, graph.decls(), &face.progress(), exit);
        self.session.remember(done);
        face.calm();
        let page = self.session.keep_page(&face, graph.decls(), &run);
        self.session.close(self.go_on.clone(), plan, &face, page.as_deref());
        Ok(exit)
    }

    /// Tells that the run begins; says how many events that were.
    fn begin(&self, plan: &Plan, run: &RunId, face: &mut Face) -> u64 {
        let started = EventKind::RunStarted {
            castle: self.session.castle.spec.name.clone(),
            direction: Direction::Down,
            rehearsal: self.session.rehearsal.is_some(),
            steps: plan.steps.len(),
        };
        let planned = EventKind::Planned { plan: plan.hash.clone(), counts: plan.counts() };
        for (seq, kind) in [(1, started), (2, planned)] {
            let (v, at, run) = (SCHEMA, self.session.now(), run.clone());
            face.hear(&Event { v, seq, at, run, kind });
        }
        2
    }

    /// What is left of the castle where all of it should be gone, as [`left`] finds it, shown in JSON too.
    async fn left(&self, outcome: RunOutcome, outputs: &Outputs) -> Vec<(StepId, String)> {
        if !self.whole || outcome == RunOutcome::Interrupted {
            return Vec::new();
        }
        let Session { castle, world, access, settings, json, .. } = self.session;
        match audit_after(&castle.spec, world, access, kept(outputs).as_deref()).await {
            Ok(found) => {
                show(&found, *json, settings);
                amiss(&found)
            }
            Err(failure) => blind(&failure),
        }
    }
}

/// What is left of a castle that has just gone, by a look at the world; each with the step that would have removed it.
pub(crate) async fn left(
    castle: &Castle,
    (world, access): (&World, &Access),
    outputs: &Outputs,
    json: bool,
    settings: &Settings,
) -> Vec<(StepId, String)> {
    let found = match audit_after(&castle.spec, world, access, kept(outputs).as_deref()).await {
        Ok(found) => found,
        Err(failure) => return blind(&failure),
    };
    show(&found, json, settings);
    amiss(&found)
}

/// The Talos secrets as the run found them in escrow, before they went.
fn kept(outputs: &Outputs) -> Option<Arc<Secret>> {
    outputs.get(&KEPT).ok()
}

fn amiss(found: &Audit) -> Vec<(StepId, String)> {
    found.amiss().map(|item| (remover(item.kind), item.words())).collect()
}

fn blind(failure: &Failure) -> Vec<(StepId, String)> {
    let why = format!("nobody can say what is left: {failure}");
    vec![(StepId::new("platform", "audit"), why)]
}

/// The step under which a thing is told.
fn remover(kind: Kind) -> StepId {
    match kind {
        Kind::Guest => StepId::new("platform", "guests"),
        Kind::Disk => StepId::new("platform", "disks"),
        Kind::Image => StepId::new("platform", "image"),
        Kind::Task => StepId::new("platform", "tasks"),
        Kind::Escrow => StepId::new("secrets", "escrow"),
        Kind::Address => StepId::new("platform", "addresses"),
    }
}

/// Shows an audit as a page or as a line of JSON.
pub(crate) fn show(found: &Audit, json: bool, settings: &Settings) {
    output::page(&if json {
        answer::line("audit", found)
    } else {
        let mut found = found.clone();
        address::audit(&mut found);
        castle_view::audit::text(&found, style(settings, Stream::Data))
    });
}

/// How a command ends whose run ended so. That something is left weighs more than that a step failed, which the report tells.
pub(crate) fn exit_of(outcome: RunOutcome, is_left: bool) -> Exit {
    match outcome {
        RunOutcome::Interrupted => Exit::Interrupted,
        RunOutcome::Done | RunOutcome::Failed if is_left => Exit::Leftovers,
        RunOutcome::Failed => Exit::Failed,
        RunOutcome::Done => Exit::Done,
    }
}

/// Asks whoever sits there for the castle's name; with `yes`, somebody has agreed beforehand.
pub(crate) fn agreed(castle: &Castle, settings: &Settings, yes: bool) -> Result<(), Problem> {
    if yes {
        return Ok(());
    }
    if !settings.stdin_is_terminal {
        return Err(Problem::refused("nothing was done: nobody is there to agree")
            .hint("add --yes to agree beforehand"));
    }
    let name = &castle.spec.name;
    output::say(&format!("Type the castle's name ({name}) to agree:"));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).ok();
    if answer.trim() == name.as_str() {
        return Ok(());
    }
    Err(Problem::refused("nothing was done: that is not the castle's name"))
}
