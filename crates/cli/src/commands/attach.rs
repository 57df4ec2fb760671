//! `castle attach`: the run that is going on, or the last one, from its first event to its end.

use std::sync::Arc;
use std::time::Duration;

use castle_journal::{EventReader, Holder, Peek, Presence, Runs, StateRoot, number};
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::{RunId, StepDecl};
use castle_view::Progress;
use castle_view::history::expected;
use castle_wire::{Clock, SystemClock};

use crate::args::Everywhere;
use crate::castle::{self, Castle, Place};
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
use crate::state::state_problem;

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
            // With somebody at work, a run that is over is not his: he still looks at the world.
            if self.shown.is_none() && holder.is_some() && self.is_over(&last)? {
                return Ok(());
            }
            self.report();
            let mut face = Face::new(self.json, self.settings, &self.decls);
            if holder.is_some() {
                self.go_live(&mut face, &last)?;
            }
            self.shown = Some(Shown { run: last, reader, face });
        }
    }

    fn is_over(&self, run: &RunId) -> Result<bool, Problem> {
        Ok(self.heard(run)?.is_none_or(|progress| progress.outcome.is_some()))
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
    fn go_live(&self, face: &mut Face, run: &RunId) -> Result<(), Problem> {
        let Some(progress) = self.heard(run)? else { return Ok(()) };
        let direction = progress.direction.unwrap_or(Direction::Up);
        let name = &self.castle.spec.name;
        let this = kept::past(name, direction, &self.decls, &progress, Exit::Done);
        let history = rebirth::history_of(self.castle);
        let expected = this.map(|this| expected(&this, &history.runs)).unwrap_or_default();
        let clock: Option<Arc<dyn Clock>> = match self.castle.place {
            Place::Real => Some(Arc::new(SystemClock)),
            Place::Rehearsal => None,
        };
        let decls = self.ordered().into_iter().cloned().collect();
        face.go_live(decls, expected, Backdrop { turn: None, clock });
        Ok(())
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
        let progress = shown.face.progress();
        let way = progress.direction.unwrap_or(Direction::Up);
        let decls = self.ordered();
        if progress.outcome.is_some() {
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
        let way = word(progress.direction.unwrap_or(Direction::Up));
        let (run, at) = (&shown.run, progress.now);
        let exit = match (past, progress.outcome) {
            (Some(past), _) => Exit::of_code(past.exit),
            (None, Some(RunOutcome::Done)) if !progress.left.is_empty() => Exit::Leftovers,
            (None, Some(RunOutcome::Done)) => Exit::Done,
            (None, Some(RunOutcome::Interrupted)) => Exit::Interrupted,
            (None, Some(RunOutcome::Failed) | None) => Exit::Failed,
        };
        output::talk(&match progress.outcome {
            Some(_) => format!(
                "{way} ({run}) ended at {at} with exit code {}; nothing runs now",
                exit as u8
            ),
            None => format!(
                "{way} ({run}) was ended before its end, the last word at {at}; `{command} {way}` goes on"
            ),
        });
        self.reborn(run, &history).unwrap_or(exit)
    }

    /// If the run was the last of a rebirth: how that ended.
    fn reborn(&self, run: &RunId, history: &castle_journal::History) -> Option<Exit> {
        let Peek { rebirth, .. } = StateRoot::peek(&self.castle.state).ok().flatten()?;
        let rebirth = rebirth.filter(|rebirth| rebirth.runs().contains(run))?;
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
