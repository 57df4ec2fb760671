//! The lines of a picture: a layer, a step, a failure, the critical path; names to the left, times to the right.

use std::fmt::Write;

use castle_model::time::length;
use castle_model::{LayerName, StepDecl, StepId};

use super::Scene;
use crate::critical_path::Path;
use crate::progress::{LayerTally, StepProgress};
use crate::report::blocked_by;
use crate::style::{Line, Span, Style, Tone, amount, clean, columns, count, cut, pad, wrap};

/// The column of names is at least and at most so wide.
const NAMES: (usize, usize) = (10, 16);

/// On screens that are narrower, a time is told without what is usual.
const NARROW: usize = 50;

/// Marks of the bar of a step whose length is known.
const METER: u64 = 10;

/// Lines of what a step does, below its own.
const MORE: usize = 2;

/// Lines of each part of a failure.
const PART_LINES: usize = 3;

/// One step under way.
pub(super) struct Row {
    line: Line,
    /// The same in as many lines as it takes, up to [`MORE`] below the first.
    pub(super) whole: Vec<Line>,
    /// Whether it is shown so.
    pub(super) unfolded: bool,
    /// The larger, the more it is worth a line: failed tries, late, waiting, for how long.
    pub(super) interest: (bool, bool, bool, u64),
}

impl Row {
    /// What is shown of it.
    pub(super) fn lines(self) -> Vec<Line> {
        if self.unfolded { self.whole } else { vec![self.line] }
    }
}

/// How the lines of one picture are laid out.
pub(super) struct Sheet<'a> {
    pub(super) scene: Scene<'a>,
    pub(super) style: Style,
    names: usize,
}

/// The state of a thing, as its sign and its colour tell.
type Sign = (&'static str, Option<Tone>);

impl<'a> Sheet<'a> {
    pub(super) fn new(scene: Scene<'a>, style: Style) -> Self {
        let (least, most) = NAMES;
        let steps = scene.decls.iter().map(|decl| columns(short(&decl.id)));
        let layers = scene.progress.layers.iter().map(|layer| columns(layer.as_str()));
        let longest = steps.chain(layers).max().unwrap_or(0);
        let most = if style.width < NARROW { least } else { most };
        let names = longest.clamp(least, most);
        Self { scene, style, names }
    }

    fn sign(&self, unicode: &'static str, ascii: &'static str, tone: Option<Tone>) -> Sign {
        (self.style.signs.pick(unicode, ascii), tone)
    }

    /// The line of a layer.
    pub(super) fn layer(&self, layer: &LayerName, tally: &LayerTally, busy: bool) -> Line {
        let steps = count(tally.steps, "step");
        let changed = match tally.changed {
            0 => "nothing changed".to_owned(),
            number => format!("{number} changed"),
        };
        let expected = self.scene.expected.layers.get(layer).copied();
        if tally.failed == 0 && tally.done == tally.steps {
            let took = tally.span.map_or_else(String::new, |_| length(tally.took_ms()));
            let sign = self.sign("✓", "+", Some(Tone::Good));
            let text = Span::new(format!("{steps}, {changed}"), Some(Tone::Quiet));
            return self.row(0, sign, layer.as_str(), &text, &Span::new(took, None));
        }
        let Some((first, _)) = tally.span else {
            let text = Span::new(format!("{steps} to come"), Some(Tone::Quiet));
            return self.row(0, (" ", None), layer.as_str(), &text, &Span::new("", None));
        };
        let (sign, text) = if tally.failed > 0 {
            let text = format!("{} of {steps} failed, {} done", tally.failed, tally.done);
            (self.sign("✗", "!", Some(Tone::Bad)), Span::new(text, Some(Tone::Bad)))
        } else {
            let text = format!("{} of {steps}", tally.done);
            // A look ahead is done long before its layer begins.
            if !busy {
                let text = Span::new(format!("{text} done"), Some(Tone::Quiet));
                return self.row(0, (" ", None), layer.as_str(), &text, &Span::new("", None));
            }
            (self.sign("▸", ">", Some(Tone::Title)), Span::new(text, None))
        };
        let time = self.time(self.scene.now.since(first), expected);
        self.row(0, sign, layer.as_str(), &text, &time)
    }

    /// One line for several layers that are done, or to come.
    pub(super) fn layers(&self, done: bool, names: &[String]) -> Line {
        let (sign, what) = if done {
            (self.sign("✓", "+", Some(Tone::Good)), "done")
        } else {
            ((" ", None), "to come")
        };
        let text = Span::new(names.join(", "), Some(Tone::Quiet));
        let name = format!("{} {what}", names.len());
        self.row(0, sign, &name, &text, &Span::new("", None))
    }

    /// The line of a step that is under way.
    pub(super) fn step(&self, decl: &StepDecl, step: &StepProgress) -> Row {
        let took = step.started.map_or(0, |started| self.scene.now.since(started));
        let expected = self.scene.expected.steps.get(&decl.id).copied();
        let (sign, text) = match (step.fetched, &step.waiting, &step.tried) {
            // How far it is says more than that it goes on.
            (Some((done, total)), ..) => {
                let (full, rest) = super::meter::marks(self.style.signs, METER, done, total);
                (self.sign("▸", ">", None), format!("{full}{rest} {}", amount(done, total)))
            }
            (None, Some((reason, _)), _) => {
                let sign = self.sign("·", ".", Some(Tone::Wait));
                (sign, format!("{}{}", self.word("waiting: "), clean(reason)))
            }
            (None, None, Some(failure)) => {
                let text = format!("try {}, after: {}", step.retries + 1, clean(&failure.why));
                (self.sign("?", "?", Some(Tone::Wait)), text)
            }
            (None, None, None) => {
                let word = step.verb.map_or("look at", |verb| verb.word_for(step.wording));
                (self.sign("▸", ">", None), format!("{word} {}", clean(&decl.title)))
            }
        };
        let tone = Some(sign.1.unwrap_or(Tone::Title)).filter(|_| sign.1.is_some());
        let time = self.time(took, expected);
        let late = time.tone.is_some();
        let name = short(&decl.id);
        let whole = self.whole(sign, name, &Span::new(text.clone(), tone), &time);
        let line = self.row(1, sign, name, &Span::new(text, tone), &time);
        let interest = (step.retries > 0, late, step.waiting.is_some(), took);
        Row { line, whole, unfolded: false, interest }
    }

    /// The line of a step and those below it that its text needs: how it stands is often at the end of that.
    fn whole(&self, sign: Sign, name: &str, text: &Span, time: &Span) -> Vec<Line> {
        let used: usize = self
            .row(1, sign, name, &Span::new("", None), time)
            .iter()
            .map(|span| columns(&span.text))
            .sum();
        let room = self.style.width.saturating_sub(used);
        if columns(&text.text) <= room {
            return Vec::new();
        }
        let (mut first, mut rest) = ("", text.text.as_str());
        for (at, _) in text.text.match_indices(' ') {
            if columns(&text.text[..at]) > room {
                break;
            }
            (first, rest) = (&text.text[..at], &text.text[at + 1..]);
        }
        let mut lines = vec![self.row(1, sign, name, &Span::new(first, text.tone), time)];
        let room = self.style.width.saturating_sub(6).max(16);
        let mut below = wrap(rest, room, self.style.signs);
        if below.len() > MORE {
            below.truncate(MORE);
            // There is more, whether its last line is full or not.
            let mark = self.style.signs.pick(" …", " ~");
            below.iter_mut().skip(MORE - 1).for_each(|line| {
                *line = cut(&format!("{line}{mark}"), room, self.style.signs);
            });
        }
        lines.extend(
            below.into_iter().map(|line| vec![Span::new(format!("      {line}"), text.tone)]),
        );
        lines
    }

    /// Everything about a failure.
    pub(super) fn failure(&self, decl: &StepDecl, step: &StepProgress) -> Vec<Line> {
        let sign = self.sign("✗", "!", Some(Tone::Bad));
        let took = step.took_ms.map_or_else(String::new, length);
        let said = step.failure.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        let head = Span::new(clean(&format!("failed{said}")), Some(Tone::Bad));
        let mut lines = vec![self.row(1, sign, short(&decl.id), &head, &Span::new(took, None))];
        let Some(failure) = &step.failure else { return lines };
        let mut told = failure.parts();
        told.extend(blocked_by(self.scene.progress, &[&decl.id]).map(|text| ("blocks", text)));
        let room = self.style.width.saturating_sub(18).max(16);
        for (label, text) in told {
            let mut wrapped = wrap(&clean(&text), room, self.style.signs);
            if wrapped.len() > PART_LINES {
                wrapped.truncate(PART_LINES);
                let mark = self.style.signs.pick(" …", " ~");
                wrapped.iter_mut().skip(PART_LINES - 1).for_each(|line| line.push_str(mark));
            }
            for (index, line) in wrapped.into_iter().enumerate() {
                let label = if index == 0 { label } else { "" };
                let label = Span::new(format!("      {label:<10}"), Some(Tone::Quiet));
                lines.push(vec![label, Span::new(line, None)]);
            }
        }
        lines
    }

    /// The chain of steps that decided how far the run is, its last ones.
    pub(super) fn path(&self, path: &Path) -> Option<Line> {
        let told: Vec<(&StepId, u64)> = path
            .steps
            .iter()
            .filter(|(_, took)| *took >= 1000)
            .map(|(id, took)| (id, *took))
            .collect();
        if told.is_empty() {
            return None;
        }
        let head = format!("critical path so far {}: ", clock(path.total_ms));
        let room = self.style.width.saturating_sub(columns(&head));
        let mut text = String::new();
        for (index, (id, took)) in told.iter().enumerate().rev() {
            let link = if index + 1 == told.len() { "" } else { " > " };
            let longer = format!("{} {}{link}{text}", short(id), clock(*took));
            // What comes before must be marked as left out.
            let mark = if index == 0 { "" } else { self.style.signs.pick("… > ", "~ > ") };
            if columns(&longer) + columns(mark) > room && !text.is_empty() {
                text = format!("{}{text}", self.style.signs.pick("… > ", "~ > "));
                break;
            }
            text = longer;
        }
        Some(vec![Span::new(head, Some(Tone::Quiet)), Span::new(text, None)])
    }

    /// Ends a line with a text and a time.
    pub(super) fn close(&self, line: &mut Line, text: &Span, took: u64, expected: Option<u64>) {
        let time = self.time(took, expected);
        let used: usize = line.iter().map(|span| columns(&span.text)).sum();
        let room = self.style.width.saturating_sub(used + columns(&time.text) + 2);
        line.push(Span::new(cut(&text.text, room, self.style.signs), text.tone));
        line.push(Span::new(", ", None));
        line.push(time);
    }

    /// Sign, name, time, text. The time stands before the text: a line is no longer than what it says, so that a terminal
    /// that becomes narrower breaks few of them, and the eye need not cross a wide one.
    fn row(&self, level: usize, sign: Sign, name: &str, text: &Span, time: &Span) -> Line {
        let indent = 2 * level;
        let signs = self.style.signs;
        let name = pad(name, self.names + 2 - indent, signs);
        let times = format!("{:>width$}  ", time.text, width = self.times());
        let used = indent + 2 + columns(&name) + 2 + columns(&times);
        let room = self.style.width.saturating_sub(used);
        vec![
            Span::new(format!("{}{} ", " ".repeat(indent), sign.0), sign.1),
            Span::new(name + "  ", sign.1.filter(|_| level == 0)),
            Span::new(times, time.tone),
            // What it is about and how that stands come first, so the end is what goes.
            Span::new(cut(&text.text, room, signs), text.tone),
        ]
    }

    /// How wide the column of times is, the same for a whole run.
    fn times(&self) -> usize {
        let usual = self.scene.expected.whole.filter(|_| self.style.width >= NARROW);
        match usual {
            Some(3_600_000..) => 19,
            Some(_) if self.style.width < super::WIDE => 10,
            Some(_) => 13,
            None => 6,
        }
    }

    /// How long, and how long usually; coloured if that is by far exceeded.
    fn time(&self, took: u64, expected: Option<u64>) -> Span {
        let Some(usual) = expected.filter(|usual| *usual >= 1000) else {
            return Span::new(clock(took), None);
        };
        let late = took > usual + usual / 4 + 2000;
        // What is only declared is nobody's experience yet.
        let declared = self.scene.expected.runs == 0;
        let sign = if declared { self.style.signs.pick("≈", "~") } else { "~" };
        let text = if self.style.width < NARROW {
            clock(took)
        } else if self.style.width < super::WIDE {
            format!("{}/{sign}{}", clock(took), clock(usual))
        } else {
            format!("{} of {sign}{}", clock(took), clock(usual))
        };
        Span::new(text, (late && !declared).then_some(Tone::Wait))
    }

    /// A word that is said where there is room for it; the sign before says the same.
    fn word(&self, word: &'static str) -> &'static str {
        if self.style.width < super::WIDE { "" } else { word }
    }
}

/// Adds to the line of a layer how many of its steps are not shown.
pub(super) fn count_hidden(head: &mut Line, hidden: usize) {
    if let Some(text) = head.last_mut() {
        write!(text.text, ", + {hidden} more").ok();
    }
}

/// A step's name without its layer, which stands above.
fn short(id: &StepId) -> &str {
    let id = id.as_str();
    id.split_once('/').map_or(id, |(_, rest)| rest)
}

/// Whole seconds, as a watch shows them: tenths would only flicker.
fn clock(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    if seconds < 3600 {
        format!("{}:{:02}", seconds / 60, seconds % 60)
    } else {
        format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
    }
}
