//! Findings as a person reads them: the place in the file with a caret, the reason, the cure.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::Sources;
use crate::finding::{Finding, Severity, Span};
use crate::scan::boundary;
use crate::secrets::hide;

/// The most bytes of one line that are shown around a place; the terminal cuts the rest anyway.
const LINE_MAX: usize = 240;
/// The columns before the words of a reason or a cure: the number of a line, and its label.
const BEFORE_NOTE: usize = 14;
/// The most bytes between two places that are shown in one picture.
const PICTURE_MAX: usize = 16 * 1024;

/// All findings for a terminal of this width, and a last line that counts them.
#[must_use]
pub fn render(findings: &[Finding], sources: &Sources, colour: bool, width: usize) -> String {
    let text = String::from_utf8_lossy(&sources.text);
    // Text that is not UTF-8 changes its length when mended, so its places mean nothing.
    let text = if text.len() == sources.text.len() { hide(&text, findings) } else { String::new() };
    // The renderer shows ASCII control characters as signs, but not these, which some terminals obey.
    let text = text.replace(|c: char| ('\u{80}'..='\u{9f}').contains(&c), "\u{bf}");
    let width = width.max(40);
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.term_width(width);
    let mut shown = String::new();
    for finding in findings {
        shown.push_str(&renderer.render(&[group(finding, &text, width)]));
        shown.push_str("\n\n");
    }
    shown.push_str(&count(findings, &sources.file));
    shown.push('\n');
    shown
}

/// One line that says how many findings of each kind there are.
fn count(findings: &[Finding], file: &str) -> String {
    let number = |severity| findings.iter().filter(|f| f.severity == severity).count();
    let words = |count: usize, word: &str| match count {
        0 => None,
        1 => Some(format!("1 {word}")),
        _ => Some(format!("{count} {word}s")),
    };
    let errors = words(number(Severity::Error), "error");
    let warnings = words(number(Severity::Warning), "warning");
    let parts: Vec<String> = errors.into_iter().chain(warnings).collect();
    if parts.is_empty() {
        format!("{file}: no findings")
    } else {
        format!("{file}: {}", parts.join(", "))
    }
}

fn group<'a>(finding: &'a Finding, text: &'a str, width: usize) -> Group<'a> {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(finding.title.as_str()).id(finding.code));
    group = match finding.place {
        Some(place) if !text.is_empty() => snippet(group, finding, &place, text),
        Some(place) => group.element(origin(finding, &place)),
        None => group.element(Origin::path(finding.file.as_str())),
    };
    // The same labels as wherever castle tells of something that is wrong.
    for note in &finding.notes {
        group = group.element(Level::NOTE.with_name("why").message(folded(note, width)));
    }
    if let Some(help) = &finding.help {
        group = group.element(Level::HELP.with_name("hint").message(folded(help, width)));
    }
    group
}

/// A sentence in lines that a terminal of this width does not break: the renderer puts them under each other.
fn folded(sentence: &str, width: usize) -> String {
    let room = width.saturating_sub(BEFORE_NOTE).max(20);
    let mut lines: Vec<String> = Vec::new();
    for word in sentence.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// Adds the lines around the place, with carets.
fn snippet<'a>(group: Group<'a>, finding: &'a Finding, place: &Span, text: &'a str) -> Group<'a> {
    let near = |other: &Span| other.start.abs_diff(place.start) < PICTURE_MAX;
    let others: Vec<_> = finding.related.iter().filter(|r| near(&r.place)).collect();
    let mut places: Vec<Span> = others.iter().map(|r| r.place).chain([*place]).collect();
    places.sort_by_key(|p| p.start);
    let (first, last) = (places[0], places[places.len() - 1]);
    let window = window(text, first.start, last.start);
    let inside = |span: &Span| clip(text, span, &window);
    let label = Some(finding.label.as_str()).filter(|l| !l.is_empty());
    let mut snippet = Snippet::source(&text[window.clone()])
        .line_start(first.line)
        .annotation(AnnotationKind::Primary.span(inside(place)).label(label));
    for related in others {
        let annotation = AnnotationKind::Context.span(inside(&related.place));
        snippet = snippet.annotation(annotation.label(related.label.as_str()));
    }
    // Where the beginning of a long line is cut off, columns can not be counted in what is left of it.
    if window.start == 0 || text[..window.start].ends_with('\n') {
        group.element(snippet.path(finding.file.as_str()))
    } else {
        group.element(origin(finding, place))
    }
}

fn origin<'a>(finding: &'a Finding, place: &Span) -> Origin<'a> {
    Origin::path(finding.file.as_str()).line(place.line).char_column(place.column)
}

/// The whole lines from one place to another; of a very long line only what is near the place.
fn window(text: &str, first: usize, last: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let back = boundary(text, first.saturating_sub(LINE_MAX));
    let start = bytes[back..first].iter().rposition(|b| *b == b'\n').map_or(back, |i| back + i + 1);
    let ahead = boundary(text, last.saturating_add(LINE_MAX));
    let end = bytes[last..ahead].iter().position(|b| *b == b'\n').map_or(ahead, |i| last + i);
    start..end
}

/// The part of a span that is in the window and on one line.
fn clip(text: &str, span: &Span, window: &Range<usize>) -> Range<usize> {
    let start = boundary(text, span.start.clamp(window.start, window.end));
    let end = boundary(text, span.end.clamp(start, window.end)).max(start);
    let line = text.as_bytes()[start..end].iter().position(|b| *b == b'\n');
    let end = line.map_or(end, |line| start + line);
    start - window.start..end - window.start
}
