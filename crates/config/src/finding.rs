//! One thing that is wrong, or doubtful, in a castle file: its code, place, reason and cure.

use std::ops::Range;

use castle_model::secret::REDACTED;
use serde::Serialize;

use crate::codes::explain;
use crate::limits::MAX_FINDINGS;
use crate::mask::assigned;
use crate::scan::boundary;
use crate::secrets::find_secrets;

/// The most bytes of one sentence; a longer one repeats something that nobody wants to read.
const SENTENCE_MAX: usize = 400;

/// How grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// There is no spec until it is mended.
    Error,
    /// Allowed, but probably not what was meant.
    Warning,
}

/// A place in the castle file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The first byte, counted from 0.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
    /// The line of the first byte, counted from 1.
    pub line: usize,
    /// The character in that line, counted from 1.
    pub column: usize,
}

/// Another place that has to do with a finding, such as the first of two equal addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Related {
    /// Where it is.
    pub place: Span,
    /// What is there.
    pub label: String,
}

/// One finding about a castle file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Names the kind of finding for good, such as `C0102`; [`crate::explain`] says what it means.
    pub code: &'static str,
    /// How grave it is.
    pub severity: Severity,
    /// What is wrong, in one sentence.
    pub title: String,
    /// The name of the castle file, as it was given.
    pub file: String,
    /// Where it is; none if it concerns the file as a whole.
    pub place: Option<Span>,
    /// What stands at that place.
    pub label: String,
    /// Why it is wrong, sentence by sentence.
    pub notes: Vec<String>,
    /// What to do about it.
    pub help: Option<String>,
    /// Other places that have to do with it.
    pub related: Vec<Related>,
    /// Whether a secret stands at the place, so that nobody may print what is there.
    #[serde(skip)]
    pub secret: bool,
}

impl Finding {
    /// An error without a place yet.
    pub(crate) fn error(code: &'static str, title: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            title: title.into(),
            file: String::new(),
            place: None,
            label: String::new(),
            notes: Vec::new(),
            help: None,
            related: Vec::new(),
            secret: false,
        }
    }

    /// A manifest of a layer of one's own that can not be applied, told by whoever reads manifests: `why` begins with
    /// the place in it.
    #[must_use]
    pub fn of_manifest(file: &str, layer: &str, why: &str) -> Self {
        let finding = Self::error("C0708", why)
            .note(format!("it is a manifest of the layer `{layer}`"))
            .help("correct the manifest at that place; `castle check` reads it again");
        Self { file: file.to_owned(), ..finding }
    }

    /// A warning without a place yet.
    pub(crate) fn warning(code: &'static str, title: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, title) }
    }

    /// Puts it to a place and says what stands there.
    pub(crate) fn at(mut self, range: &Range<usize>, label: impl Into<String>) -> Self {
        self.place = Some(bare(range));
        self.label = label.into();
        self
    }

    /// Adds a reason.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Says what to do.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Points at another place.
    pub(crate) fn related(mut self, range: &Range<usize>, label: impl Into<String>) -> Self {
        self.related.push(Related { place: bare(range), label: label.into() });
        self
    }

    /// Makes every sentence fit to be shown: what is repeated from the file in it may be anything.
    fn tidy(&mut self) {
        let related = self.related.iter_mut().map(|r| &mut r.label);
        let own = [&mut self.title, &mut self.label].into_iter().chain(&mut self.notes);
        for text in own.chain(&mut self.help).chain(related) {
            for (range, _) in find_secrets(text).into_iter().rev() {
                text.replace_range(range, REDACTED);
            }
            for range in assigned(text).into_iter().rev() {
                text.replace_range(range, REDACTED);
            }
            if text.len() > SENTENCE_MAX {
                text.truncate(boundary(text, SENTENCE_MAX));
                text.push('…');
            }
            if text.contains(char::is_control) {
                *text = text.replace(char::is_control, "\u{fffd}");
            }
        }
    }

    /// Leaves nothing in it that may repeat the value at its place, unless the code alone says that it repeats none.
    fn seal(&mut self) {
        if matches!(self.code, "C0301" | "C0302" | "C0303" | "C0304" | "C0305") {
            return;
        }
        explain(self.code).unwrap_or("This is wrong.").clone_into(&mut self.title);
        self.notes =
            vec!["the name of the setting sounds like a secret, so nothing of it is shown".into()];
        self.help = None;
        self.secret = true;
    }

    /// Forbids to print what stands at the place.
    pub(crate) fn hidden(mut self) -> Self {
        self.secret = true;
        self
    }
}

/// A span whose line and column are filled in at the end, for the findings that are kept.
fn bare(range: &Range<usize>) -> Span {
    Span { start: range.start, end: range.end.max(range.start), line: 0, column: 0 }
}

/// Collects findings in any order; [`Findings::finish`] sorts, cuts and places them.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    dropped: usize,
}

impl Findings {
    /// Keeps a finding. Far beyond the limit only the number is kept, so that memory stays small.
    pub(crate) fn add(&mut self, finding: Finding) {
        if self.list.len() < 4 * MAX_FINDINGS {
            self.list.push(finding);
        } else {
            self.dropped += 1;
        }
    }

    /// Keeps a finding, if there is one.
    pub(crate) fn add_some(&mut self, finding: Option<Finding>) {
        if let Some(finding) = finding {
            self.add(finding);
        }
    }

    /// How many there are, for [`Findings::seal`].
    pub(crate) fn mark(&self) -> usize {
        self.list.len()
    }

    /// Seals every finding since the mark: they concern a value that may be a secret.
    pub(crate) fn seal(&mut self, mark: usize) {
        self.list.iter_mut().skip(mark).for_each(Finding::seal);
    }

    /// Whether a spec may not be given out.
    pub(crate) fn any_error(&self) -> bool {
        self.dropped > 0 || self.list.iter().any(|f| f.severity == Severity::Error)
    }

    /// The findings sorted by place, with lines and columns, cut at [`MAX_FINDINGS`].
    pub(crate) fn finish(mut self, file: &str, text: &[u8]) -> Vec<Finding> {
        let start = |f: &Finding| f.place.map_or(usize::MAX, |p| p.start);
        self.list.sort_by(|a, b| (start(a), a.code).cmp(&(start(b), b.code)));
        self.list.dedup();
        let cut = self.dropped + self.list.len().saturating_sub(MAX_FINDINGS);
        self.list.truncate(MAX_FINDINGS);
        locate(&mut self.list, text);
        if cut > 0 {
            let title = format!("{cut} further findings are not shown");
            self.list.push(
                Finding::error("C0008", title)
                    .note(format!("only the first {MAX_FINDINGS} by place are kept"))
                    .help("mend some of those shown and check again"),
            );
        }
        for finding in &mut self.list {
            file.clone_into(&mut finding.file);
            finding.tidy();
        }
        self.list
    }
}

/// Fills in lines and columns in one walk over the text.
fn locate(findings: &mut [Finding], text: &[u8]) {
    let mut spans: Vec<&mut Span> = findings
        .iter_mut()
        .flat_map(|f| f.place.iter_mut().chain(f.related.iter_mut().map(|r| &mut r.place)))
        .collect();
    spans.sort_by_key(|s| s.start);
    let (mut at, mut line, mut column) = (0, 1, 1);
    for span in spans {
        span.start = span.start.min(text.len());
        span.end = span.end.min(text.len());
        for byte in &text[at..span.start] {
            if *byte == b'\n' {
                (line, column) = (line + 1, 1);
            } else if byte & 0xC0 != 0x80 {
                column += 1;
            }
        }
        at = span.start;
        (span.line, span.column) = (line, column);
    }
}

/// The findings as JSON, one object a line, with the fields of [`Finding`].
#[must_use]
pub fn to_json_lines(findings: &[Finding]) -> String {
    let line = |f: &Finding| serde_json::to_string(f).map(|text| text + "\n").unwrap_or_default();
    findings.iter().map(line).collect()
}
