//! The plain text face: one line for each event that a person cares about.

use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::step::Wording;
use castle_model::time::length;
use castle_model::{Change, Event, EventKind, StepId, Verb};

use crate::progress::Progress;
use crate::style::{Signs, Style, Tone, count};

/// How many characters of a reason to wait a line shows.
const REASON_SHOWN: usize = 110;

/// A step's column is at most so wide; longer names push their own line to the right.
const STEP_COLUMN: usize = 22;

/// How often the strikes of one rule of a rehearsal are told one by one.
pub const STRIKES_TOLD: u32 = 3;

/// The line for an event, given the fold of all events up to and with it; none if it is not worth one.
#[must_use]
pub fn line(event: &Event, progress: &Progress, style: Style) -> Option<String> {
    let sheet = Sheet { event, progress, style };
    match &event.kind {
        EventKind::RunStarted { castle, direction, rehearsal, steps } => {
            let way = match direction {
                Direction::Up => "up",
                Direction::Down => "down",
            };
            let world = if *rehearsal { "a rehearsal, " } else { "" };
            let text = format!("castle {castle}: {way}, {world}{}", count(*steps, "step"));
            Some(style.hang("", &text, Some(Tone::Title)))
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
            let text = format!("waiting: {}", brief(reason, REASON_SHOWN, style.signs));
            Some(sheet.step(step, ".", &text, Some(Tone::Wait)))
        }
        EventKind::StepRetrying { step, failure, tries, delay_ms } => {
            let text = format!("{failure}; try {} in {}", tries + 1, length(*delay_ms));
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
            let since = progress.started.map_or(0, |start| event.at.since(start));
            let text = format!(
                "milestone: {name} is ready at {revision}, {} after the start",
                length(since)
            );
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
        EventKind::StepTask { .. }
        | EventKind::StepActed { .. }
        | EventKind::StepBlocked { .. }
        | EventKind::RunEnded { .. } => None,
    }
}

struct Sheet<'a> {
    event: &'a Event,
    progress: &'a Progress,
    style: Style,
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

    fn run(&self, text: &str, tone: Option<Tone>) -> String {
        self.style.hang(&self.clock(), text, tone)
    }

    fn step(&self, step: &StepId, mark: &str, text: &str, tone: Option<Tone>) -> String {
        let column = self.progress.longest_id.clamp(12, STEP_COLUMN);
        let prefix = format!("{}{step:<column$} {mark} ", self.clock());
        self.style.hang(&prefix, text, tone)
    }

    fn started(&self, step: &StepId, verb: Verb, reason: &str) -> Option<String> {
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

    fn done(&self, step: &StepId, change: Change, proof: &str, took_ms: u64) -> Option<String> {
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

    fn interrupted(&self, settling: usize) -> String {
        let text = match settling {
            0 => "stopping: nothing has to be brought to a safe point".to_owned(),
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

/// The beginning and the end of a long reason, cut between words: whom it is about stands first, and the cause last. It
/// comes again with every change, and whole in the report.
pub(crate) fn brief(reason: &str, shown: usize, signs: Signs) -> String {
    let fits = reason.chars().count() <= shown;
    // Who else is late matters least.
    let reason = match reason.rsplit_once("; also ") {
        Some((first, _)) if !fits => first,
        _ => reason,
    };
    let place = |nth: usize| reason.char_indices().nth(nth).map_or(reason.len(), |(at, _)| at);
    let length = reason.chars().count();
    if length <= shown {
        return reason.to_owned();
    }
    let (head, tail) = (place(shown / 2), place(length - shown / 2));
    let end = reason[..head].rfind(' ').unwrap_or(head);
    let begin = reason[tail..].find(' ').map_or(tail, |at| tail + at + 1);
    format!("{} {} {}", &reason[..end], signs.pick("…", "~"), &reason[begin..])
}

/// The line for an event where a screen below shows the rest: what began, waits and is done as planned is seen there.
#[must_use]
pub fn news(event: &Event, progress: &Progress, style: Style) -> Option<String> {
    let told = match &event.kind {
        EventKind::StepStarted { .. }
        | EventKind::StepWaiting { .. }
        | EventKind::StepDone { .. } => false,
        // One failed try is ordinary; many are not, and are told less and less often.
        EventKind::StepRetrying { tries, .. } => *tries > 1 && tries.is_power_of_two(),
        _ => true,
    };
    told.then(|| line(event, progress, style)).flatten()
}

#[cfg(test)]
mod tests {
    use castle_model::event::EventKind;

    use super::*;
    use crate::example::{Tape, decls, failed_run, good_run};

    fn shown(events: &[Event], style: Style) -> String {
        let mut progress = Progress::new(&decls());
        let mut lines = Vec::new();
        for event in events {
            progress.apply(event);
            lines.extend(line(event, &progress, style));
        }
        lines.join("\n")
    }

    #[test]
    fn a_good_run() {
        insta::assert_snapshot!(shown(&good_run(), Style::default()), @"
        castle blue: up, a rehearsal, 6 steps
        [ 0:00] plan c0ffee12: create 5, leave 1
        [ 0:00] layer secrets stands after 0.5 s: 1 step, nothing changed
        [ 0:00] platform/image    > create Talos 1.13.9 image on pve:local
        [ 0:01] platform/image    . waiting: Proxmox downloads it (31 %)
        [ 0:12] platform/image    + created in 11.3 s: sha256 of 118 MB agrees
        [ 0:12] platform/vm/cp-01 > create VM cp-01 (421) on pve
        [ 0:12] platform/vm/w-01  > create VM w-01 (431) on pve
        [ 0:13] platform/vm/w-01  ? create VM 431 on node pve: 595 no answer; try 2 in
                                    1.0 s
        [ 0:31] platform/vm/cp-01 + created in 18.8 s: VM 421 runs with our mark
        [ 0:33] platform/vm/w-01  + created in 20.8 s: VM 431 runs with our mark
        [ 0:33] platform/vip      > create API server at 192.168.1.210
        [ 0:34] platform/vip      . waiting: connection refused at 192.168.1.210:6443
        [ 1:10] platform/vip      . waiting: answered 2 of 5 times in a row
        [ 1:23] platform/vip      + created in 50.4 s: 5 of 5 answers over verified TLS
        [ 1:23] layer platform stands after 1:22: 4 steps, 4 changed
        [ 1:23] gitops/flux       > create Flux and its controllers
        [ 1:36] gitops/flux       + created in 12.6 s: 4 controllers run
        [ 1:36] layer gitops stands after 12.6 s: 1 step, 1 changed
        [ 1:36] handover: Flux owns what the cluster hosts, from
                https://github.com/example/tazlab-k8s, main, clusters/blue at 3f2a91c
        ");
    }

    #[test]
    fn above_a_live_screen_stands_only_what_is_not_seen_in_it() {
        let mut progress = Progress::new(&decls());
        let mut lines = Vec::new();
        for event in good_run() {
            progress.apply(&event);
            lines.extend(news(&event, &progress, Style::default()));
        }
        insta::assert_snapshot!(lines.join("\n"), @"
        castle blue: up, a rehearsal, 6 steps
        [ 0:00] plan c0ffee12: create 5, leave 1
        [ 0:00] layer secrets stands after 0.5 s: 1 step, nothing changed
        [ 1:23] layer platform stands after 1:22: 4 steps, 4 changed
        [ 1:36] layer gitops stands after 12.6 s: 1 step, 1 changed
        [ 1:36] handover: Flux owns what the cluster hosts, from
                https://github.com/example/tazlab-k8s, main, clusters/blue at 3f2a91c
        ");
    }

    #[test]
    fn of_many_failed_tries_few_are_told() {
        let step = StepId::of("platform", "vm", "w-01");
        let failure =
            castle_model::Failure::new(castle_model::Class::Transient, "ask pve", "no answer");
        let told = |tries| {
            let mut tape = Tape::begun();
            let (step, failure) = (step.clone(), failure.clone());
            tape.at(0, EventKind::StepRetrying { step, failure, tries, delay_ms: 1000 });
            news(&tape.events[1], &Progress::new(&decls()), Style::default()).is_some()
        };
        let shown: Vec<u32> = (1..=20).filter(|tries| told(*tries)).collect();
        assert_eq!(shown, [2, 4, 8, 16]);
    }

    #[test]
    fn a_failed_run_on_a_narrow_screen() {
        let style = Style { width: 60, ..Style::default() };
        insta::assert_snapshot!(shown(&failed_run(), style), @"
        castle blue: up, a rehearsal, 6 steps
        [ 0:00] plan c0ffee12: create 5, leave 1
        [ 0:00] layer secrets stands after 0.5 s: 1 step, nothing
                changed
        [ 0:00] platform/image    > create Talos 1.13.9 image on
                                    pve:local
        [ 0:12] platform/image    + created in 11.3 s: sha256 of 118
                                    MB agrees
        [ 0:12] platform/vm/cp-01 > create VM cp-01 (421) on pve
        [ 0:12] platform/vm/w-01  > create VM w-01 (431) on pve
        [ 0:12] platform/vm/w-01  ! failed after 0.7 s: create VM
                                    431 on node pve: 403 Permission
                                    check failed (/vms/431,
                                    VM.Allocate)
        [ 0:31] platform/vm/cp-01 + created in 18.8 s: VM 421 runs
                                    with our mark
        ");
    }

    #[test]
    fn a_stopped_run_with_notices_and_strangers() {
        let mut tape = Tape::begun();
        tape.at(0, EventKind::Notice { step: None, text: "the last run was killed".into() });
        tape.at(
            61_000,
            EventKind::Surveyed {
                step: StepId::of("platform", "vm", "cp-01"),
                observed: "foreign".into(),
                evidence: "VM 421 has no mark of a castle".into(),
            },
        );
        tape.at(3_700_000, EventKind::Interrupted { settling: 2 });
        tape.end(3_701_000, RunOutcome::Interrupted);
        insta::assert_snapshot!(shown(&tape.events, Style::default()), @"
        castle blue: up, a rehearsal, 6 steps
        [ 0:00] notice: the last run was killed
        [ 1:01] platform/vm/cp-01 ! not ours: VM 421 has no mark of a castle
        [1:01:40] stopping: 2 steps are brought to a safe point; once more stops at once
        [1:01:41] stopped; everything done is recorded
        ");
    }

    #[test]
    fn no_line_is_wider_than_the_screen() {
        for width in [50, 60, 80, 120] {
            let style = Style { width, ..Style::default() };
            for events in [good_run(), failed_run()] {
                for line in shown(&events, style).lines() {
                    let long = line.chars().count();
                    assert!(long <= width.max(8 + STEP_COLUMN + 3 + 24), "{width}: {line}");
                }
            }
        }
    }

    #[test]
    fn a_long_reason_is_cut_at_a_word() {
        let brief = |text: &str| brief(text, REASON_SHOWN, Signs::Unicode);
        assert_eq!(brief("short"), "short");
        let long = "replica ".repeat(40);
        let shown = brief(long.trim_end());
        assert!(shown.contains("replica … replica") && shown.chars().count() < 115, "{shown}");
        let long = format!("Deployment a/b: {}; Pod c: ImagePullBackOff", "0 of 1 ".repeat(40));
        let shown = brief(&long);
        assert!(shown.starts_with("Deployment a/b: 0 of 1 "), "{shown}");
        assert!(shown.ends_with("; Pod c: ImagePullBackOff"), "the cause is kept: {shown}");
        assert_eq!(brief(&format!("{long}; also DaemonSet d and 3 more")), shown);
    }
}
