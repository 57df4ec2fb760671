//! The plain text face: one line for each event that a person cares about.

use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::step::Wording;
use castle_model::time::length;
use castle_model::{Change, Event, EventKind, StepId, Verb};

use crate::progress::Progress;
use crate::style::{Signs, Style, Tone, amount, count};

/// How many characters of a reason to wait a line shows: whoever reads lines in a file has no other place to look at.
const REASON_SHOWN: usize = 400;

/// A step's column is at most so wide; longer names push their own line to the right.
const STEP_COLUMN: usize = 22;

/// How often the strikes of one rule of a rehearsal are told one by one.
pub const STRIKES_TOLD: u32 = 3;

/// What is told of an event, not yet laid out: the screen that shows it may become narrower.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    prefix: String,
    text: String,
    tone: Option<Tone>,
}

impl News {
    /// The line, in as many as it takes on this screen.
    #[must_use]
    pub fn lay(&self, style: Style) -> String {
        style.hang(&self.prefix, &self.text, self.tone)
    }
}

/// The line for an event, given the fold of all events up to and with it; none if it is not worth one.
#[must_use]
pub fn line(event: &Event, progress: &Progress, style: Style) -> Option<String> {
    told(event, progress, style.signs, 1).map(|news| news.lay(style))
}

/// The line for an event, where of a step's failed tries the last line was told so many tries ago.
fn told(event: &Event, progress: &Progress, signs: Signs, since: u32) -> Option<News> {
    let sheet = Sheet { event, progress };
    match &event.kind {
        EventKind::RunStarted { castle, direction, rehearsal, steps } => {
            let way = match direction {
                Direction::Up => "up",
                Direction::Down => "down",
            };
            let world = if *rehearsal { "a rehearsal, " } else { "" };
            let text = format!("castle {castle}: {way}, {world}{}", count(*steps, "step"));
            Some(News { prefix: String::new(), text, tone: Some(Tone::Title) })
        }
        EventKind::Surveyed { step, observed, evidence } => (observed == "foreign")
            .then(|| sheet.step(step, "!", &format!("not ours: {evidence}"), Some(Tone::Bad))),
        EventKind::Planned { plan, counts } => {
            let short: String = plan.chars().take(8).collect();
            let counts: Vec<String> =
                counts.iter().map(|(verb, number)| format!("{verb} {number}")).collect();
            Some(sheet.run(&format!("plan {short}: {}", counts.join(", ")), None))
        }
        EventKind::StepStarted { step, verb, reason } => sheet.started(step, *verb, reason),
        EventKind::StepWaiting { step, reason } => {
            // The same kind of reason with another number is no news; `status` and JSON have each of them.
            progress.steps.get(step).filter(|s| s.news)?;
            let text = format!("waiting: {}", brief(reason, REASON_SHOWN, signs));
            Some(sheet.step(step, ".", &text, Some(Tone::Wait)))
        }
        EventKind::StepRetrying { step, failure, tries, delay_ms } => {
            let next = format!("try {} in {}", tries + 1, length(*delay_ms));
            // The same paragraph again and again hides what is new.
            let same = progress.steps.get(step).is_some_and(|known| known.alike > since);
            let text =
                if same { format!("as before; {next}") } else { format!("{failure}; {next}") };
            Some(sheet.step(step, "?", &text, Some(Tone::Wait)))
        }
        EventKind::StepDone { step, change, proof, took_ms } => {
            sheet.done(step, *change, proof, *took_ms)
        }
        EventKind::StepFailed { step, failure, took_ms } => {
            let text = format!("failed after {}: {failure}", length(*took_ms));
            Some(sheet.step(step, "!", &text, Some(Tone::Bad)))
        }
        EventKind::Leftover { step, what } => {
            Some(sheet.step(step, "!", &format!("left over: {what}"), Some(Tone::Bad)))
        }
        EventKind::LayerDone { layer, took_ms } => {
            let tally = progress.tally(layer);
            let changed = match tally.changed {
                0 => "nothing changed".to_owned(),
                number => format!("{number} changed"),
            };
            let down = progress.direction == Some(Direction::Down);
            let stands = if down { "is gone" } else { "stands" };
            let steps = count(tally.steps, "step");
            let took = length(*took_ms);
            let text = format!("layer {layer} {stands} after {took}: {steps}, {changed}");
            Some(sheet.run(&text, Some(Tone::Good)))
        }
        EventKind::Handover { source } => {
            let text = format!("handover: Flux owns what the cluster hosts, from {source}");
            Some(sheet.run(&text, Some(Tone::Title)))
        }
        EventKind::Milestone { name, revision } => {
            let since = length(progress.elapsed(event.at));
            let text = format!("milestone: {name} is ready at {revision}, {since} after the start");
            Some(sheet.run(&text, Some(Tone::Good)))
        }
        EventKind::Notice { step: Some(step), text } => {
            Some(sheet.step(step, "i", text, Some(Tone::Wait)))
        }
        EventKind::Notice { step: None, text } => {
            Some(sheet.run(&format!("notice: {text}"), Some(Tone::Wait)))
        }
        EventKind::Fault(struck) => {
            // What goes on and on is told a few times, and when it is over.
            let tell = struck.number <= STRIKES_TOLD || struck.what.ends_with("no more");
            tell.then(|| sheet.run(&format!("fault: {}", struck.what), Some(Tone::Wait)))
        }
        EventKind::Poke(struck) => {
            Some(sheet.run(&format!("poke: {}", struck.what), Some(Tone::Wait)))
        }
        EventKind::Interrupted { settling } => Some(sheet.interrupted(*settling)),
        EventKind::RunEnded { outcome: RunOutcome::Interrupted, .. } => {
            Some(sheet.run("stopped; everything done is recorded", Some(Tone::Wait)))
        }
        EventKind::StepProgress { step, done, total } => {
            let quarter = progress.steps.get(step).is_some_and(|known| known.quarter);
            let text = format!("downloaded {}", amount(*done, *total));
            quarter.then(|| sheet.step(step, ".", &text, Some(Tone::Wait)))
        }
        EventKind::StepTask { .. }
        | EventKind::StepActed { .. }
        | EventKind::StepBlocked { .. }
        | EventKind::RunEnded { .. } => None,
    }
}

struct Sheet<'a> {
    event: &'a Event,
    progress: &'a Progress,
}

impl Sheet<'_> {
    fn clock(&self) -> String {
        let seconds = self.progress.elapsed(self.event.at) / 1000;
        if seconds < 3600 {
            format!("[{:2}:{:02}] ", seconds / 60, seconds % 60)
        } else {
            format!("[{}:{:02}:{:02}] ", seconds / 3600, seconds / 60 % 60, seconds % 60)
        }
    }

    fn run(&self, text: &str, tone: Option<Tone>) -> News {
        News { prefix: self.clock(), text: text.to_owned(), tone }
    }

    fn step(&self, step: &StepId, mark: &str, text: &str, tone: Option<Tone>) -> News {
        let column = self.progress.longest_id.clamp(12, STEP_COLUMN);
        let prefix = format!("{}{step:<column$} {mark} ", self.clock());
        News { prefix, text: text.to_owned(), tone }
    }

    fn started(&self, step: &StepId, verb: Verb, reason: &str) -> Option<News> {
        if !verb.acts() && verb != Verb::Adopt {
            return None;
        }
        let known = self.progress.steps.get(step);
        let title = known.map_or("", |known| known.title.as_str());
        let title = if title.is_empty() { step.as_str() } else { title };
        let word = verb.word_for(known.and_then(|known| known.wording));
        // That it is not there yet is what "create" means; any other verb says why.
        let text = if verb == Verb::Create {
            format!("{word} {title}")
        } else {
            format!("{word} {title}: {reason}")
        };
        Some(self.step(step, ">", &text, None))
    }

    fn done(&self, step: &StepId, change: Change, proof: &str, took_ms: u64) -> Option<News> {
        let known = self.progress.steps.get(step).map(|known| (known.verb, known.wording));
        let word = match change {
            Change::Unchanged if known.is_some_and(|known| known.0 == Some(Verb::Adopt)) => {
                "adopted".to_owned()
            }
            Change::Unchanged if known == Some((Some(Verb::Create), Some(Wording::Prove))) => {
                "proven".to_owned()
            }
            Change::Unchanged | Change::Skipped => return None,
            Change::Created | Change::Updated | Change::Removed => change.to_string(),
        };
        let text = format!("{word} in {}: {proof}", length(took_ms));
        Some(self.step(step, "+", &text, Some(Tone::Good)))
    }

    fn interrupted(&self, settling: usize) -> News {
        let text = match settling {
            0 => "stopping: every step is at a safe point".to_owned(),
            1 => {
                "stopping: one step is brought to a safe point; once more stops at once".to_owned()
            }
            _ => format!(
                "stopping: {settling} steps are brought to a safe point; once more stops at once"
            ),
        };
        self.run(&text, Some(Tone::Wait))
    }
}

/// The beginning of a long reason, cut between words: what it is about and how that stands come first. It comes again with
/// every change, and whole in the report.
fn brief(reason: &str, shown: usize, signs: Signs) -> String {
    if reason.chars().count() <= shown {
        return reason.to_owned();
    }
    // Who else is late matters least.
    let reason = reason.rsplit_once("; also ").map_or(reason, |(first, _)| first);
    let Some((end, _)) = reason.char_indices().nth(shown) else { return reason.to_owned() };
    let end = reason[..end].rfind(' ').unwrap_or(end);
    format!("{} {}", &reason[..end], signs.pick("…", "~"))
}

/// What is told of an event where a screen below shows the rest: what began, waits and is done as planned is seen there.
#[must_use]
pub fn news(event: &Event, progress: &Progress, signs: Signs) -> Option<News> {
    match &event.kind {
        // One failed try is ordinary; many are not, and are told less and less often.
        EventKind::StepRetrying { tries, .. } if *tries > 1 && tries.is_power_of_two() => {
            let since = if *tries == 2 { *tries } else { tries / 2 };
            told(event, progress, signs, since)
        }
        EventKind::StepStarted { .. }
        | EventKind::StepWaiting { .. }
        | EventKind::StepProgress { .. }
        | EventKind::StepRetrying { .. }
        | EventKind::StepDone { .. } => None,
        _ => told(event, progress, signs, 1),
    }
}

#[cfg(test)]
mod tests;
