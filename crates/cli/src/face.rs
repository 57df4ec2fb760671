//! Who hears the events of a run: a live screen or plain lines on standard error, or JSON lines on standard output.

use std::sync::{Arc, MutexGuard};

use castle_journal::Runs;
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::{Event, RunId, StepDecl};
use castle_view::history::Expected;
use castle_view::screen::Turn;
use castle_view::{Palette, Progress, Style, plain, report};
use castle_wire::Clock;

use crate::address;
use crate::kept::Keep;
use crate::output;
use crate::settings::{Settings, Stream};
use crate::stage::{Fold, Show, Stage};
use crate::trace::Trace;

/// Folds events and shows them as they come.
pub(crate) struct Face {
    json: bool,
    hushed: bool,
    /// Of what happens, on standard error.
    style: Style,
    /// Of the report, on standard output.
    page: Style,
    fold: Fold,
    trace: Trace,
    keep: Keep,
    /// The live screen, while it is up.
    stage: Option<Stage>,
    live: bool,
}

/// What a live screen is told besides the events.
pub(crate) struct Backdrop {
    /// Which run it is of several.
    pub(crate) turn: Option<Turn>,
    /// Tells the time of the run; without one, its last event does.
    pub(crate) clock: Option<Arc<dyn Clock>>,
}

/// How what goes to a stream is laid out.
pub(crate) fn style(settings: &Settings, stream: Stream) -> Style {
    let palette = if settings.colour(stream) { Palette::Ansi } else { Palette::None };
    Style { width: settings.width(stream), palette, signs: settings.signs(stream) }
}

impl Face {
    pub(crate) fn new(json: bool, settings: &Settings, decls: &[StepDecl]) -> Self {
        Self {
            json,
            hushed: false,
            style: style(settings, Stream::Talk),
            page: style(settings, Stream::Data),
            fold: Fold::new(Progress::new(decls)),
            trace: Trace::default(),
            keep: Keep::default(),
            stage: None,
            live: settings.live() && !json,
        }
    }

    /// From here on everything is shown on a live screen, if somebody looks at one. Must be called within a runtime.
    pub(crate) fn go_live(&mut self, decls: Vec<StepDecl>, expected: Expected, scene: Backdrop) {
        if !self.live || self.hushed {
            return;
        }
        let (fold, style) = (self.fold.clone(), self.style);
        let Backdrop { turn, clock } = scene;
        self.stage = Stage::open(Show { fold, decls, expected, turn, clock, style });
    }

    /// Takes the live screen away; what is said from here on stands below what scrolled.
    pub(crate) fn calm(&mut self) {
        self.stage = None;
        // Somebody may have changed the size of the terminal meanwhile.
        if self.live {
            self.style.width = output::columns(Stream::Talk).unwrap_or(self.style.width);
            self.page.width = output::columns(Stream::Data).unwrap_or(self.page.width);
        }
    }

    /// Shows one event.
    pub(crate) fn hear(&mut self, event: &Event) {
        let event = &*address::event(event);
        self.trace.hear(event);
        self.keep.hear(event);
        let mut progress = self.fold.held();
        progress.apply(event);
        if self.hushed {
            return;
        }
        if let Some(stage) = &self.stage {
            return stage.hear(event, &progress);
        }
        if self.json {
            if let Ok(line) = serde_json::to_string(event) {
                output::data(&line);
            }
        } else if let Some(line) = plain::line(event, &progress, self.style) {
            output::talk(&line);
        }
    }

    /// Takes in what struck in the rehearsal. People were told at once; it is no part of the trace, which tells what castle did.
    pub(crate) fn hear_struck(&mut self, event: &Event) {
        let event = &*address::event(event);
        self.fold.held().apply(event);
        self.keep.hear(event);
        if self.json && !self.hushed {
            output::data(&serde_json::to_string(event).unwrap_or_default());
        }
    }

    /// The trace of the run so far, with that of the requests.
    pub(crate) fn trace(&self, requests: &str) -> String {
        self.trace.seal(requests)
    }

    /// Shows no event from here on, if so.
    pub(crate) fn hush(&mut self, hushed: bool) {
        self.hushed = hushed;
    }

    /// The plan is carried out: what was told and will be told is kept as the events of this run.
    pub(crate) fn keep(&mut self, runs: Option<&Runs>, run: &RunId) {
        self.keep.begin(runs, run);
    }

    /// Keeps one event that nobody is shown.
    pub(crate) fn keep_only(&mut self, event: &Event) {
        self.keep.hear(event);
    }

    /// Whether the events of the run are kept, all of them.
    pub(crate) fn is_kept(&self) -> bool {
        self.keep.is_whole()
    }

    /// Which way the run goes, and how it ended, as far as was heard.
    pub(crate) fn end(&self) -> (Option<Direction>, Option<RunOutcome>) {
        let progress = self.fold.held();
        (progress.direction, progress.outcome)
    }

    /// The fold of everything that was heard. The face itself can not go on while somebody has it.
    pub(crate) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.fold.held()
    }

    /// Whether something is left to do once the run is over.
    pub(crate) fn is_unfinished(&self) -> bool {
        let progress = self.fold.held();
        progress.outcome != Some(RunOutcome::Done) || !progress.left.is_empty()
    }

    /// Shows the closing report. What is left of a razed castle stands in the table of its audit already. `decls` stand as in a plan; `go_on` are the commands that
    /// go on with a run that is not finished.
    pub(crate) fn close(&self, decls: &[&StepDecl], go_on: &[String]) {
        if self.json {
            return;
        }
        let go_on = if self.is_unfinished() { go_on } else { &[] };
        output::page(&report::end(&self.fold.held(), decls, go_on, self.page));
    }
}
