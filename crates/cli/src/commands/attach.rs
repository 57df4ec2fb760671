//! `castle attach`: the run that is going on, or the last one, from its first event to its end.

use std::sync::Arc;
use std::time::Duration;

use castle_journal::{EventReader, Holder, Peek, Presence, Runs, StateRoot, number};
use castle_model::plan::Direction;
use castle_model::{RunId, StepDecl};
use castle_view::Progress;
use castle_view::history::{Expected, expected};
use castle_wire::{Clock, SystemClock};

use crate::args::Everywhere;
use crate::castle::{self, Castle, Place};
use crate::clearing::exit_of;
use crate::commands::rebirth;
use crate::exit::{Exit, Problem};
use crate::face::{Backdrop, Face};
use crate::kept;
use crate::output;
use crate::project::Which;
use crate::real;
use crate::session::word;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::state::{self, state_problem};

/// How often it is looked whether there is more.
const BETWEEN: Duration = Duration::from_millis(100);

/// Shows a run to its end, and ends as it did.
pub(crate) fn run(
    which: &Which,
    place: Place,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let castle = Castle::find(which, place, everywhere, settings)?;
    state::its_own(&castle)?;
    let decls = castle::declare(&castle.spec);
    let Some(runs) = Runs::at(&castle.state).map_err(|e| state_problem(&e))? else {
        return Ok(nothing(&castle));
    };
    let json = everywhere.json;
    let mut watch = Watch { castle: &castle, settings, json, decls, runs, shown: None };
    real::runtime()?.block_on(async {
        let mut signals = Signals::listen()?;
        tokio::select! {
            biased;
            () = signals.any() => Ok(watch.leave()),
            exit = watch.follow() => exit,
        }
    })
}

fn nothing(castle: &Castle) -> Exit {
    let (name, command) = (&castle.spec.name, &castle.command);
    output::talk(&format!("no run of castle `{name}` is known; `{command} up` begins one"));
    Exit::Done
}

/// Somebody who watches a castle's runs.
struct Watch<'a> {
    castle: &'a Castle,
    settings: &'a Settings,
    json: bool,
    decls: Vec<StepDecl>,
    runs: Runs,
    shown: Option<Shown>,
}

/// The run that is being shown.
struct Shown {
    run: RunId,
    reader: EventReader,
    face: Face,
}

impl Watch<'_> {
    async fn follow(&mut self) -> Result<Exit, Problem> {
        let problem = |e| state_problem(&e);
        let mut told = None;
        loop {
            let holder = StateRoot::holder(&self.castle.state).map_err(problem)?;
            // Whoever ended meanwhile wrote its last words before: they are read after that was seen.
            self.catch_up(holder.as_ref())?;
            let Some(holder) = holder else { return Ok(self.close()) };
            self.tell_of(&holder, &mut told);
            self.pause().await;
        }
    }

    /// Shows what is new, of the run that is shown and of one that came after it.
    fn catch_up(&mut self, holder: Option<&Holder>) -> Result<(), Problem> {
        let problem = |e| state_problem(&e);
        loop {
            if let Some(shown) = &mut self.shown {
                for event in shown.reader.more().map_err(problem)? {
                    shown.face.hear(&event);
                }
            }
            let Some(last) = self.runs.list().map_err(problem)?.pop() else { return Ok(()) };
            if self.shown.as_ref().is_some_and(|shown| number(&shown.run) >= number(&last)) {
                return Ok(());
            }
            let Some(reader) = self.runs.events(&last).map_err(problem)? else { return Ok(()) };
            let told = self.heard(&last)?;
            // With somebody at work, a run that is over is not his: he still looks at the world.
            let is_over = told.as_ref().is_none_or(|progress| progress.outcome.is_some());
            if self.shown.is_none() && holder.is_some() && is_over {
                return Ok(());
            }
            // What is usual is known by what is planned, and that is just being written down.
            let is_early = |told: &Progress| told.counts.is_empty() && told.at_work.is_none();
            if holder.is_some() && told.as_ref().is_some_and(is_early) {
                return Ok(());
            }
            self.report();
            let mut face = Face::new(self.json, self.settings, &self.decls);
            if let (Some(_), Some(progress)) = (holder, &told) {
                self.go_live(&mut face, progress);
            }
            self.shown = Some(Shown { run: last, reader, face });
        }
    }

    /// What a run has told so far.
    fn heard(&self, run: &RunId) -> Result<Option<Progress>, Problem> {
        let problem = |e| state_problem(&e);
        let Some(mut reader) = self.runs.events(run).map_err(problem)? else { return Ok(None) };
        let mut progress = Progress::new(&self.decls);
        for event in reader.more().map_err(problem)? {
            progress.apply(&event);
        }
        Ok(Some(progress))
    }

    /// Shows a run that is going on on a live screen. A rehearsal's time is seen only by what happens in it.
    fn go_live(&self, face: &mut Face, progress: &Progress) {
        let clock: Option<Arc<dyn Clock>> = match self.castle.place {
            Place::Real => Some(Arc::new(SystemClock)),
            Place::Rehearsal => None,
        };
        let decls = self.ordered().into_iter().cloned().collect();
        face.go_live(decls, self.usual(progress), Backdrop { turn: None, clock });
    }

    /// How long things usually take: by runs like this one, else by what its steps declare, as whoever carries it out sees it.
    fn usual(&self, progress: &Progress) -> Expected {
        let direction = progress.direction.unwrap_or(Direction::Up);
        let name = &self.castle.spec.name;
        let this = kept::past(name, direction, &self.decls, progress, Exit::Done);
        let history = rebirth::history_of(self.castle);
        let found = this.map(|this| expected(&this, &history.runs)).unwrap_or_default();
        if found.runs > 0 || direction == Direction::Down {
            return found;
        }
        acting(&self.ordered(), progress).map_or(found, |decls| Expected::declared(&decls))
    }

    /// The steps, each after what it needs.
    fn ordered(&self) -> Vec<&StepDecl> {
        let order = castle_plan::order(&self.decls).unwrap_or_default();
        order.iter().filter_map(|at| self.decls.get(*at)).collect()
    }

    /// Says who is waited for while nothing of his run is to be seen, and if he does not move.
    fn tell_of(&self, holder: &Holder, told: &mut Option<String>) {
        let words = match (holder.presence(), &self.shown) {
            (Presence::Stopped, _) => {
                format!("{holder} is stopped (state T): `kill -CONT {0}` lets it go on", holder.pid)
            }
            (_, None) => format!("{holder} has begun no run yet"),
            (_, Some(_)) => return,
        };
        if told.as_ref() != Some(&words) {
            output::talk(&words);
            *told = Some(words);
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "another process writes in real time, and nobody tells when"
    )]
    async fn pause(&self) {
        tokio::time::sleep(BETWEEN).await;
    }

    /// The closing report of the run that was shown.
    fn report(&mut self) {
        if let Some(shown) = &mut self.shown {
            shown.face.calm();
        }
        let Some(shown) = &self.shown else { return };
        let (direction, outcome) = shown.face.end();
        let way = direction.unwrap_or(Direction::Up);
        let decls = self.ordered();
        if outcome.is_some() {
            shown.face.close(&decls, &[format!("{} {}", self.castle.command, word(way))]);
        }
        if shown.reader.skipped() > 0 {
            output::talk(&format!(
                "notice: {} lines of the events of {} could not be read and were passed over",
                shown.reader.skipped(),
                shown.run
            ));
        }
    }

    /// Nobody is at work any more: tells how it ended.
    fn close(&mut self) -> Exit {
        self.report();
        let Some(shown) = &self.shown else { return nothing(self.castle) };
        let progress = shown.face.progress();
        let history = rebirth::history_of(self.castle);
        let past = history.runs.iter().rfind(|past| past.run == shown.run);
        let command = &self.castle.command;
        let direction = progress.direction.or_else(|| self.recorded(&shown.run));
        let way = word(direction.unwrap_or(Direction::Up));
        let (run, at) = (&shown.run, progress.now);
        let exit = match (past, progress.outcome) {
            (Some(past), _) => Exit::of_code(past.exit),
            (None, Some(outcome)) => exit_of(outcome, !progress.left.is_empty()),
            (None, None) => Exit::Failed,
        };
        output::talk(&match progress.outcome {
            Some(_) => format!(
                "{way} ({run}) ended at {at} with exit code {}; nothing runs now",
                exit as u8
            ),
            None if progress.started.is_none() => format!(
                "{way} ({run}) was ended before its end, and its events are lost; `{command} {way}` goes on"
            ),
            None => format!(
                "{way} ({run}) was ended before its end, the last word at {at}; `{command} {way}` goes on"
            ),
        });
        self.reborn(run, &history).unwrap_or(exit)
    }

    /// Which way a run goes, as its journal has it.
    fn recorded(&self, run: &RunId) -> Option<Direction> {
        let records = StateRoot::peek(&self.castle.state).ok().flatten()?.records;
        records.last_run.filter(|last| last.id == *run).map(|last| last.direction)
    }

    /// If the run was the last of a rebirth: how that ended.
    fn reborn(&self, run: &RunId, history: &castle_journal::History) -> Option<Exit> {
        let Peek { rebirth, .. } = StateRoot::peek(&self.castle.state).ok().flatten()?;
        let rebirth = rebirth.ok().flatten().filter(|rebirth| rebirth.runs().contains(run))?;
        if let Some(line) = rebirth::open_line(&rebirth, &self.castle.command) {
            output::talk(&line);
            return None;
        }
        Some(rebirth::show(&rebirth, history, self.castle, self.json, self.settings))
    }

    /// Somebody has seen enough.
    fn leave(&mut self) -> Exit {
        if let Some(shown) = &mut self.shown {
            shown.face.calm();
        }
        let command = &self.castle.command;
        let holder = StateRoot::holder(&self.castle.state).ok().flatten();
        output::talk(&match holder {
            Some(holder) => format!(
                "left alone: {holder} goes on; `{command} attach` comes back to it, `kill -INT {}` asks it to stop",
                holder.pid
            ),
            None => "nothing runs any more".to_owned(),
        });
        Exit::Interrupted
    }
}

/// The steps of a run that was planned elsewhere; what is left alone usually takes no time. None if its events do not tell
/// which these are.
fn acting(decls: &[&StepDecl], progress: &Progress) -> Option<Vec<StepDecl>> {
    let is_right = |decl: &StepDecl| {
        let surveyed = progress.steps.get(&decl.id).and_then(|step| step.surveyed.as_ref());
        surveyed.is_some_and(|(seen, _)| seen == "right")
    };
    let left_alone = ["adopt", "forget", "leave", "refused"];
    let planned = progress.counts.iter().filter(|(word, _)| !left_alone.contains(&word.as_str()));
    let planned: usize = planned.map(|(_, steps)| steps).sum();
    let usual = |decl: &&StepDecl| {
        let usual = if is_right(decl) { 0 } else { decl.weight };
        (*decl).clone().weight(usual)
    };
    let acts = decls.iter().filter(|decl| !is_right(decl)).count();
    (acts == planned).then(|| decls.iter().map(usual).collect())
}

#[cfg(test)]
mod tests {
    use castle_model::event::SCHEMA;
    use castle_model::time::Moment;
    use castle_model::{Event, EventKind, StepId};

    use super::*;

    #[test]
    fn what_is_left_alone_usually_takes_no_time_and_who_does_not_know_says_nothing() {
        let id = |name: &str| StepId::new("platform", name);
        let decl = |name: &str| StepDecl::new(id(name), name, "vm", "it runs").weight(7_000);
        let decls = [decl("image"), decl("vm"), decl("vip")];
        let run = |counts: &[(&str, usize)]| {
            let mut progress = Progress::new(&decls);
            let surveyed = |step, observed: &str| EventKind::Surveyed {
                step,
                observed: observed.to_owned(),
                evidence: "seen".to_owned(),
            };
            let counts = counts.iter().map(|(word, steps)| ((*word).to_owned(), *steps));
            let planned = EventKind::Planned { plan: "c0ffee".into(), counts: counts.collect() };
            // What stands behind something else was not looked at.
            for kind in [surveyed(id("image"), "right"), surveyed(id("vm"), "absent"), planned] {
                let (run, at) = (RunId::new("r1"), Moment(0));
                progress.apply(&Event { v: SCHEMA, seq: 1, at, run, kind });
            }
            let acting = acting(&decls.iter().collect::<Vec<_>>(), &progress);
            acting.map(|decls| decls.iter().map(|decl| decl.weight).collect::<Vec<_>>())
        };
        assert_eq!(run(&[("adopt", 1), ("create", 1), ("prove", 1)]), Some(vec![0, 7_000, 7_000]));
        assert_eq!(run(&[("leave", 2), ("create", 1)]), None, "one of them stands behind another");
    }
}
