//! A run that is going on, seen from outside: which steps are under way, what each waits for and since when.

use castle_model::plan::Direction;
use castle_model::time::{Moment, length};
use castle_model::{RunId, StepId};
use serde::Serialize;

use crate::progress::{Progress, StepStatus};
use crate::style::{Style, Tone, clean};

/// One step that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Busy {
    /// Which.
    pub step: StepId,
    /// What it does: `create`, `waiting`.
    pub doing: String,
    /// What it waits for, if it does.
    pub reason: Option<String>,
    /// Since when it does that, in milliseconds.
    pub for_ms: u64,
    /// Tries that met a transient failure.
    pub retries: u32,
}

/// A run that is going on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Live {
    /// Which.
    pub run: RunId,
    /// Which way it goes.
    pub direction: Direction,
    /// For how long, in milliseconds.
    pub for_ms: u64,
    /// Steps that are over and well.
    pub done: usize,
    /// All its steps.
    pub steps: usize,
    /// Those that are under way.
    pub busy: Vec<Busy>,
}

/// What is going on at a moment, by the events so far; none if the run has not begun or is over.
#[must_use]
pub fn live(progress: &Progress, now: Moment) -> Option<Live> {
    if progress.outcome.is_some() {
        return None;
    }
    let over =
        |status| matches!(status, StepStatus::Done | StepStatus::Undone | StepStatus::Skipped);
    let under_way = progress
        .steps
        .iter()
        .filter(|(_, step)| matches!(step.status, StepStatus::Running | StepStatus::Waiting));
    let busy = under_way.map(|(id, step)| {
        let word = step.verb.map_or("running", |verb| verb.word_for(step.wording));
        let (doing, reason, since) = match &step.waiting {
            Some((reason, since)) => ("waiting", Some(reason.clone()), Some(*since)),
            None => (word, None, step.started),
        };
        Busy {
            step: id.clone(),
            doing: doing.to_owned(),
            reason,
            for_ms: since.map_or(0, |since| now.since(since)),
            retries: step.retries,
        }
    });
    Some(Live {
        run: progress.run.clone()?,
        direction: progress.direction?,
        for_ms: progress.elapsed(now),
        done: progress.steps.values().filter(|step| over(step.status)).count(),
        steps: progress.steps.len(),
        busy: busy.collect(),
    })
}

/// The same as text.
#[must_use]
pub fn text(live: &Live, style: Style) -> String {
    let way = match live.direction {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    let head = format!(
        "{way}, {} of {} steps done after {} ({})",
        live.done,
        live.steps,
        length(live.for_ms),
        live.run
    );
    let mut text = style.hang("now: ", &head, Some(Tone::Title)) + "\n";
    let widest = live.busy.iter().map(|busy| busy.step.as_str().len()).max().unwrap_or(0).min(28);
    for busy in &live.busy {
        let prefix = format!("  {:<widest$}  ", busy.step.as_str());
        let tries = match busy.retries {
            0 => String::new(),
            1 => ", after 1 failed try".to_owned(),
            more => format!(", after {more} failed tries"),
        };
        let reason = busy.reason.as_deref().map(|reason| format!(": {}", clean(reason)));
        let told = format!(
            "{} for {}{tries}{}",
            busy.doing,
            length(busy.for_ms),
            reason.unwrap_or_default()
        );
        text.push_str(&style.hang(&prefix, &told, None));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{START, decls, good_run};

    fn after(events: usize, now: u64) -> Option<Live> {
        let mut progress = Progress::new(&decls());
        for event in &good_run()[..events] {
            progress.apply(event);
        }
        live(&progress, Moment(START + now))
    }

    #[test]
    fn what_is_under_way_is_told_with_what_it_waits_for() {
        insta::assert_snapshot!(text(&after(13, 14_000).unwrap(), Style::default()), @"
        now: up, 2 of 6 steps done after 13.6 s (20260202-120000-1)
          platform/vm/cp-01  create for 1.8 s
          platform/vm/w-01   create for 1.8 s, after 1 failed try
        ");
        insta::assert_snapshot!(text(&after(17, 60_000).unwrap(), Style::default()), @"
        now: up, 4 of 6 steps done after 59.6 s (20260202-120000-1)
          platform/vip  waiting for 26.0 s: connection refused at 192.168.1.210:6443
        ");
    }

    #[test]
    fn a_clock_that_went_back_shows_no_negative_length() {
        let live = after(17, 0).unwrap();
        assert_eq!(live.for_ms, 0);
        assert!(live.busy.iter().all(|busy| busy.for_ms == 0), "{live:?}");
    }

    #[test]
    fn a_run_that_is_over_is_not_live() {
        assert_eq!(after(good_run().len(), 99_000), None);
    }
}
