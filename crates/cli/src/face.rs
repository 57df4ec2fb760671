//! Who hears the events of a run: plain lines on standard error, or JSON lines on standard output.

use castle_engine::Report;
use castle_model::{Event, Plan, StepDecl, StepId};
use castle_view::{Palette, Progress, Style, plain, report};

use crate::output;
use crate::settings::Settings;
use crate::trace::Trace;

/// Folds events and shows them as they come.
pub(crate) struct Face {
    json: bool,
    style: Style,
    progress: Progress,
    trace: Trace,
}

/// How text is laid out for this terminal.
pub(crate) fn style(settings: &Settings) -> Style {
    let palette = if settings.colour() { Palette::Ansi } else { Palette::None };
    Style { width: settings.width(), palette }
}

impl Face {
    pub(crate) fn new(json: bool, settings: &Settings, decls: &[StepDecl]) -> Self {
        Self {
            json,
            style: style(settings),
            progress: Progress::new(decls),
            trace: Trace::default(),
        }
    }

    /// Shows one event.
    pub(crate) fn hear(&mut self, event: &Event) {
        self.progress.apply(event);
        self.trace.hear(event);
        if self.json {
            if let Ok(line) = serde_json::to_string(event) {
                output::data(&line);
            }
        } else if let Some(line) = plain::line(event, &self.progress, self.style) {
            output::talk(&line);
        }
    }

    /// The trace of the run so far, with that of the requests.
    pub(crate) fn trace(&self, requests: &str) -> String {
        self.trace.seal(requests)
    }

    /// Shows the closing report, and what is left of a razed castle.
    pub(crate) fn close(
        &self,
        report: &Report,
        plan: &Plan,
        go_on: &str,
        left: &[(StepId, String)],
    ) {
        if self.json {
            return;
        }
        let decls: Vec<&StepDecl> = plan.steps.iter().map(|s| &s.decl).collect();
        let unfinished =
            !report.failures.is_empty() || !report.not_run.is_empty() || !left.is_empty();
        output::data(&report::end(&self.progress, &decls, unfinished.then_some(go_on), self.style));
        if !left.is_empty() {
            output::data("left over:");
            for (step, what) in left {
                output::data(&format!("  {step}: {what}"));
            }
        }
    }
}
