//! Findings as a person reads them: the place in the file with a caret, the reason, the cure.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::Sources;
use crate::finding::{Finding, Severity, Span};
use crate::scan::line_around;
use crate::secrets::hide;

/// The most bytes of one line that are shown around a place; the terminal cuts the rest anyway.
const LINE_MAX: usize = 240;
/// The most bytes between two places that are shown in one picture.
const PICTURE_MAX: usize = 64 * 1024;

/// All findings for a terminal of this width, and a last line that counts them.
#[must_use]
pub fn render(findings: &[Finding], sources: &Sources, colour: bool, width: usize) -> String {
    let text = String::from_utf8_lossy(&sources.text);
    // Text that is not UTF-8 changes its length when mended, so its places mean nothing.
    let text = if text.len() == sources.text.len() { hide(&text, findings) } else { String::new() };
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.term_width(width.max(40));
    let mut shown = String::new();
    for finding in findings {
        shown.push_str(&renderer.render(&[group(finding, &text)]));
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

fn group<'a>(finding: &'a Finding, text: &'a str) -> Group<'a> {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(finding.title.as_str()).id(finding.code));
    group = match finding.place {
        Some(place) if !text.is_empty() => group.element(snippet(finding, &place, text)),
        Some(place) => group.element(
            Origin::path(finding.file.as_str()).line(place.line).char_column(place.column),
        ),
        None => group.element(Origin::path(finding.file.as_str())),
    };
    for note in &finding.notes {
        group = group.element(Level::NOTE.message(note.as_str()));
    }
    if let Some(help) = &finding.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    group
}

fn snippet<'a>(
    finding: &'a Finding,
    place: &Span,
    text: &'a str,
) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let near = |other: &Span| other.start.abs_diff(place.start) < PICTURE_MAX;
    let others: Vec<_> = finding.related.iter().filter(|r| near(&r.place)).collect();
    let first = others.iter().map(|r| r.place).chain([*place]).min_by_key(|p| p.start);
    let first = first.unwrap_or(*place);
    let last =
        others.iter().map(|r| r.place.start).chain([place.start]).max().unwrap_or(place.start);
    let window = window(text, first.start, last);
    let inside = |span: &Span| clip(text, span, &window);
    let label = Some(finding.label.as_str()).filter(|l| !l.is_empty());
    let mut snippet = Snippet::source(&text[window.clone()])
        .line_start(first.line)
        .path(finding.file.as_str())
        .annotation(AnnotationKind::Primary.span(inside(place)).label(label));
    for related in others {
        let annotation = AnnotationKind::Context.span(inside(&related.place));
        snippet = snippet.annotation(annotation.label(related.label.as_str()));
    }
    snippet
}

/// The whole lines from one place to another; of a very long first line only what is near the place.
fn window(text: &str, first: usize, last: usize) -> Range<usize> {
    let (start, end) = (line_around(text, first).start, line_around(text, last).end);
    let start = start.max(first.saturating_sub(LINE_MAX));
    let end = end.min(last + LINE_MAX);
    boundary(text, start)..boundary(text, end)
}

/// The part of a span that is in the window and on one line, at least one character where there is one.
fn clip(text: &str, span: &Span, window: &Range<usize>) -> Range<usize> {
    let start = boundary(text, span.start.clamp(window.start, window.end));
    let line = line_around(text, start).end;
    let end = boundary(text, span.end.clamp(start, window.end.min(line.max(start))));
    start - window.start..end.max(start) - window.start
}

/// The nearest start of a character at or before a byte.
fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
