//! YAML text to tree. Aliases, foreign tags, doubled keys and bottomless nesting are refused.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use castle_model::Secret;
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::comments::{Comment, Gaps};
use crate::tree::{Branch, Bytes, Element, Item, List, Tree, Value};
use crate::{SopsError, limits, scalar};

pub(super) const CURE_ALIAS: &str = "write the value out in each place; sops would do so too";
pub(super) const CURE_KEY: &str = "put the key in quotes: sops takes only text for a key";
const CURE_NUMBER: &str = "put the number in quotes: sops has no type for one this large";
const CURE_TAG: &str = "leave the tag away; sops would lose it";
pub(super) const CURE_ROOT: &str = "put it under a key: sops takes only mappings";
pub(super) const CURE_TWICE: &str = "keep one of the two";

/// Reads a text whose size is checked already.
pub(crate) fn read(text: &str) -> Result<Tree, SopsError> {
    let mut reader = Reader {
        gaps: Gaps::new(text),
        pending: Vec::new(),
        frames: Vec::new(),
        documents: Vec::new(),
        nodes: 0,
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| told(&error))?;
        reader.take(event, span)?;
    }
    if reader.documents.is_empty() {
        let comments = reader.pending.into_iter().map(|comment| Item::Comment(comment.text));
        reader.documents.push(Branch(comments.collect()));
    }
    Ok(Tree { documents: reader.documents })
}

/// The parser's words name at most one character of the text, never a value.
pub(super) fn told(error: &ScanError) -> SopsError {
    let line = error.marker().line();
    // It has a limit of its own for brackets, and looks ahead of us.
    if error.info().contains("recursion limit") {
        return SopsError::TooDeep { place: format!("line {line}") };
    }
    SopsError::Syntax { format: "YAML", line, why: error.info().to_owned() }
}

/// A collection that is not closed yet.
struct Frame {
    holds: Holds,
    /// The column of its keys or dashes; none for one in brackets.
    column: Option<usize>,
    /// The line on which its latest value ended.
    last_line: usize,
}

enum Holds {
    Branch {
        items: Vec<Item>,
        /// A key that waits for its value.
        key: Option<String>,
        /// The keys so far.
        known: BTreeSet<String>,
    },
    List(Vec<Element>),
}

struct Reader<'text> {
    gaps: Gaps<'text>,
    /// Comments that have not found their place.
    pending: Vec<Comment>,
    frames: Vec<Frame>,
    documents: Vec<Branch>,
    nodes: usize,
}

pub(super) fn place(span: Span) -> String {
    format!("line {}", span.start.line())
}

pub(super) fn refused(span: Span, what: &str, cure: &'static str) -> SopsError {
    SopsError::Refused { place: place(span), what: what.to_owned(), cure }
}

impl Reader<'_> {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), SopsError> {
        match event {
            Event::Alias(_) => Err(refused(span, "a YAML alias", CURE_ALIAS)),
            Event::Scalar(text, style, anchor, tag) => {
                no_anchor(anchor, span)?;
                self.scalar(&text, style, tag.as_deref(), span)
            }
            Event::SequenceStart(anchor, tag) => {
                no_anchor(anchor, span)?;
                no_tag(tag.as_deref(), "seq", span)?;
                self.open(Holds::List(Vec::new()), span)
            }
            Event::MappingStart(anchor, tag) => {
                no_anchor(anchor, span)?;
                no_tag(tag.as_deref(), "map", span)?;
                self.open(
                    Holds::Branch { items: Vec::new(), key: None, known: BTreeSet::new() },
                    span,
                )
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.gaps.up_to(span.start.index(), &mut self.pending);
                self.close(span)
            }
            Event::DocumentEnd | Event::StreamEnd => {
                self.gaps.up_to(span.start.index(), &mut self.pending);
                // What follows the last value still belongs to it.
                if let Some(document) = self.documents.last_mut() {
                    document
                        .0
                        .extend(self.pending.drain(..).map(|comment| Item::Comment(comment.text)));
                }
                Ok(())
            }
            Event::DocumentStart(_) | Event::StreamStart | Event::Nothing => Ok(()),
        }
    }

    fn count(&mut self, span: Span) -> Result<(), SopsError> {
        self.nodes += 1;
        if self.nodes + self.pending.len() > limits::NODES {
            return Err(SopsError::TooMany { place: place(span) });
        }
        Ok(())
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: Span,
    ) -> Result<(), SopsError> {
        self.gaps.up_to(span.start.index(), &mut self.pending);
        self.settle_inline();
        let before = std::mem::take(&mut self.pending);
        self.gaps.pass(span, style, &mut self.pending);
        self.count(span)?;
        let value = value(text, style, tag, span)?;
        let Some(frame) = self.frames.last_mut() else {
            // An empty document is an empty mapping; its comments come with its end.
            if value == Value::Null {
                self.documents.push(Branch::default());
                self.pending.splice(0..0, before);
                return Ok(());
            }
            return Err(refused(span, "a document that is a single value", CURE_ROOT));
        };
        self.nodes += before.len();
        match &mut frame.holds {
            Holds::Branch { items, key, known } => {
                items.extend(before.into_iter().map(|comment| Item::Comment(comment.text)));
                if let Some(name) = key.take() {
                    items.push(Item::Entry(name, value));
                } else {
                    let Value::Text(name) = value else {
                        return Err(refused(span, "a key that is not text", CURE_KEY));
                    };
                    let name = name.expose().to_owned();
                    if !known.insert(name.clone()) {
                        let what = format!("the key `{name}` stands twice in one mapping");
                        return Err(refused(span, &what, CURE_TWICE));
                    }
                    *key = Some(name);
                }
            }
            Holds::List(elements) => {
                elements.extend(before.into_iter().map(|comment| Element::Comment(comment.text)));
                elements.push(Element::Value(value));
            }
        }
        frame.last_line = span.end.line();
        Ok(())
    }

    /// A comment on the line of a value belongs before it, where sops puts it too.
    fn settle_inline(&mut self) {
        let Some(frame) = self.frames.last_mut() else { return };
        let line = frame.last_line;
        let here = self
            .pending
            .iter()
            .take_while(|comment| comment.inline && comment.line == line)
            .count();
        match &mut frame.holds {
            Holds::Branch { items, key: None, .. } if !items.is_empty() => {
                let comments = self.pending.drain(..here).map(|comment| comment.text);
                let last = items.len() - 1;
                match &mut items[last] {
                    // Behind the bracket of a collection it counts as its first.
                    Item::Entry(_, Value::List(list)) if !list.is_bare() => {
                        list.0.splice(0..0, comments.map(Element::Comment));
                    }
                    Item::Entry(_, Value::Branch(branch)) if !branch.is_bare() => {
                        branch.0.splice(0..0, comments.map(Item::Comment));
                    }
                    _ => {
                        let comments: Vec<Item> = comments.map(Item::Comment).collect();
                        items.splice(last..last, comments);
                    }
                }
            }
            Holds::List(elements) if !elements.is_empty() => {
                let comments =
                    self.pending.drain(..here).map(|comment| Element::Comment(comment.text));
                let last = elements.len() - 1;
                elements.splice(last..last, comments);
            }
            _ => {}
        }
    }

    fn open(&mut self, holds: Holds, span: Span) -> Result<(), SopsError> {
        let place = span.start.index();
        let indentation = self.gaps.indentation(place, &mut self.pending);
        self.count(span)?;
        self.settle_inline();
        if self.frames.len() >= limits::DEPTH {
            return Err(SopsError::TooDeep { place: self::place(span) });
        }
        let mut column = span.start.col();
        match self.frames.last_mut().map(|frame| &mut frame.holds) {
            None if matches!(holds, Holds::List(_)) => {
                return Err(refused(span, "a document that is a list", CURE_ROOT));
            }
            Some(Holds::Branch { key: None, .. }) => {
                return Err(refused(span, "a key that is not text", CURE_KEY));
            }
            // The parser tells the column of the first item where the dashes are not indented.
            Some(Holds::Branch { .. }) if matches!(holds, Holds::List(_)) => column = indentation,
            None | Some(Holds::Branch { .. }) => {}
            // What stands before an item of a list stands in the list, wherever its dash is.
            Some(Holds::List(elements)) => {
                let comments = self.pending.drain(..).map(|comment| Element::Comment(comment.text));
                elements.extend(comments);
            }
        }
        let column = span.is_empty().then_some(column);
        self.frames.push(Frame { holds, column, last_line: 0 });
        Ok(())
    }

    fn close(&mut self, span: Span) -> Result<(), SopsError> {
        self.settle_inline();
        let Some(mut frame) = self.frames.pop() else { return Ok(()) };
        let above = self.frames.last().map(|frame| frame.column);
        // Comments at the column of its keys, or to the right of it, end a collection; the others follow it.
        let stays = |comment: &Comment| match (frame.column, above) {
            (None, _) | (_, None) => true,
            (Some(own), Some(Some(above))) => comment.column >= own && comment.column > above,
            (Some(own), Some(None)) => comment.column >= own,
        };
        let count = self.pending.iter().take_while(|comment| stays(comment)).count();
        let last: Vec<Secret> = self.pending.drain(..count).map(|comment| comment.text).collect();
        self.nodes += last.len();
        match &mut frame.holds {
            Holds::Branch { items, .. } => items.extend(last.into_iter().map(Item::Comment)),
            Holds::List(elements) => elements.extend(last.into_iter().map(Element::Comment)),
        }
        self.put(frame.holds, span)
    }

    /// Puts a closed collection where it belongs. Comments of an empty one stand before it.
    fn put(&mut self, holds: Holds, span: Span) -> Result<(), SopsError> {
        let (value, comments) = match holds {
            Holds::Branch { items, .. } => {
                let branch = Branch(items);
                if self.frames.is_empty() {
                    self.documents.push(branch);
                    return Ok(());
                }
                if branch.is_bare() {
                    (Value::Branch(Branch::default()), texts(branch))
                } else {
                    (Value::Branch(branch), Vec::new())
                }
            }
            Holds::List(elements) => {
                let list = List(elements);
                if list.is_bare() {
                    (Value::List(List::default()), list_texts(list))
                } else {
                    (Value::List(list), Vec::new())
                }
            }
        };
        let Some(frame) = self.frames.last_mut() else {
            return Err(refused(span, "a document that is a list", CURE_ROOT));
        };
        frame.last_line = span.end.line();
        match &mut frame.holds {
            Holds::Branch { items, key, .. } => {
                items.extend(comments.into_iter().map(Item::Comment));
                if let Some(name) = key.take() {
                    items.push(Item::Entry(name, value));
                }
            }
            Holds::List(elements) => {
                elements.extend(comments.into_iter().map(Element::Comment));
                elements.push(Element::Value(value));
            }
        }
        Ok(())
    }
}

fn texts(branch: Branch) -> Vec<Secret> {
    let text = |item| match item {
        Item::Comment(text) => Some(text),
        Item::Entry(..) => None,
    };
    branch.0.into_iter().filter_map(text).collect()
}

fn list_texts(list: List) -> Vec<Secret> {
    let text = |element| match element {
        Element::Comment(text) => Some(text),
        Element::Value(_) => None,
    };
    list.0.into_iter().filter_map(text).collect()
}

fn no_anchor(anchor: usize, span: Span) -> Result<(), SopsError> {
    if anchor == 0 { Ok(()) } else { Err(refused(span, "a YAML anchor", CURE_ALIAS)) }
}

fn no_tag(tag: Option<&Tag>, own: &str, span: Span) -> Result<(), SopsError> {
    match tag {
        Some(tag) if !(tag.is_yaml_core_schema() && tag.suffix == own) => {
            Err(refused(span, "a YAML tag", CURE_TAG))
        }
        _ => Ok(()),
    }
}

fn value(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    span: Span,
) -> Result<Value, SopsError> {
    let plain = || {
        scalar::resolve(text).ok_or_else(|| refused(span, "an integer beyond 64 bits", CURE_NUMBER))
    };
    let Some(tag) = tag else {
        return if style == ScalarStyle::Plain {
            plain()
        } else {
            Ok(Value::Text(Secret::new(text)))
        };
    };
    let suffix = if tag.is_yaml_core_schema() { tag.suffix.as_str() } else { "" };
    let value = match (suffix, tag.handle.as_str(), tag.suffix.as_str()) {
        // sops writes the text `<<` with the tag of a merge, and means the text.
        ("str" | "merge", ..) | (_, "", "!") | (_, "!", "") => Some(Value::Text(Secret::new(text))),
        ("binary", ..) => {
            let packed: String =
                text.chars().filter(|character| !character.is_whitespace()).collect();
            // What is text after all is text to sops too.
            STANDARD.decode(packed).ok().map(|bytes| match String::from_utf8(bytes) {
                Ok(text) => Value::Text(Secret::new(text)),
                Err(error) => Value::Bytes(Bytes(error.into_bytes())),
            })
        }
        ("float", ..) => match plain()? {
            #[expect(clippy::cast_precision_loss, reason = "the tag asks for a float")]
            Value::Integer(number) => Some(Value::Float(number as f64)),
            value @ Value::Float(_) => Some(value),
            _ => None,
        },
        ("int", ..) => Some(plain()?).filter(|value| matches!(value, Value::Integer(_))),
        ("bool", ..) => Some(plain()?).filter(|value| matches!(value, Value::Boolean(_))),
        ("null", ..) => Some(plain()?).filter(|value| matches!(value, Value::Null)),
        ("timestamp", ..) => Some(plain()?).filter(|value| matches!(value, Value::Time(_))),
        _ => return Err(refused(span, "a YAML tag", CURE_TAG)),
    };
    value.ok_or_else(|| refused(span, "a value that does not fit its YAML tag", CURE_TAG))
}
