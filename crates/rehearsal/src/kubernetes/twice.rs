//! Keys of YAML that come twice, as the server's own library tells them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::goyaml;

/// How its words begin.
const PREFIX: &str = "yaml: unmarshal errors:";

/// What is said of the keys that come twice in the first document of a text; nothing if none does.
pub(super) fn found(text: &str) -> Option<String> {
    let mut finder = Finder::default();
    for event in Parser::new_from_str(text) {
        // What can not be read was refused before, or will be.
        let Ok((event, span)) = event else { break };
        if matches!(event, Event::DocumentEnd) {
            break;
        }
        finder.take(&event, span.start.line());
    }
    (!finder.said.is_empty()).then(|| format!("{PREFIX}{}", finder.said))
}

/// The warnings that are made of a fault: one for each of its lines, if it is one of ours.
pub(super) fn warnings(fault: &str) -> Vec<&str> {
    match fault.strip_prefix(PREFIX) {
        Some(lines) => lines.trim_start().split('\n').map(str::trim).collect(),
        None => vec![fault],
    }
}

/// A collection that is not closed yet.
enum Frame {
    Map {
        known: BTreeSet<String>,
        /// A key that waits for its value.
        key: Option<String>,
        /// Where its value begins.
        line: usize,
    },
    List,
}

#[derive(Default)]
struct Finder {
    frames: Vec<Frame>,
    said: String,
}

impl Finder {
    fn take(&mut self, event: &Event<'_>, line: usize) {
        match event {
            Event::Scalar(text, style, ..) => {
                let plain = *style == ScalarStyle::Plain && !goyaml::is_text(text);
                let shown = if plain { text.to_string() } else { format!("{text:?}") };
                self.begin(line, Some(&shown));
            }
            Event::Alias(_) => self.begin(line, Some("")),
            Event::MappingStart(..) => {
                self.begin(line, None);
                self.frames.push(Frame::Map { known: BTreeSet::new(), key: None, line: 0 });
            }
            Event::SequenceStart(..) => {
                self.begin(line, None);
                self.frames.push(Frame::List);
            }
            Event::MappingEnd | Event::SequenceEnd => {
                self.frames.pop();
                self.end();
            }
            _ => {}
        }
    }

    /// A node begins; one that is no collection ends at once.
    fn begin(&mut self, at: usize, scalar: Option<&str>) {
        let mut is_key = false;
        if let Some(Frame::Map { key, line, .. }) = self.frames.last_mut() {
            if key.is_none() {
                is_key = true;
                *key = Some(scalar.unwrap_or_default().to_owned());
            } else {
                *line = at;
            }
        }
        if scalar.is_some() && !is_key {
            self.end();
        }
    }

    /// A value is over: whether its key was there is found now, after all that is in it.
    fn end(&mut self) {
        if let Some(Frame::Map { known, key, line }) = self.frames.last_mut()
            && *line > 0
            && let Some(name) = key.take()
        {
            let at = std::mem::take(line);
            if !known.insert(name.clone()) {
                // Writing to a text does not fail.
                let _ = write!(self.said, "\n  line {at}: key {name} already set in map");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the library of the real one says it, given the same.
    #[test]
    fn keys_are_told_by_the_lines_of_their_values() {
        let text = "a: 1\na:\n  b: 1\n  b: 2\nb: 1\n? b\n: 2\n1: 2\n1: 3\n\"b\": 3\nl:\n- c: 1\n  c: 2\n- {d: 1, d: 2}\n";
        insta::assert_snapshot!(found(text).unwrap(), @r#"
        yaml: unmarshal errors:
          line 4: key "b" already set in map
          line 3: key "a" already set in map
          line 7: key "b" already set in map
          line 9: key 1 already set in map
          line 10: key "b" already set in map
          line 13: key "c" already set in map
          line 14: key "d" already set in map
        "#);
        assert_eq!(found("a: 1\n---\na: 1\na: 2\n"), None);
        let one = found("{\"a\":1,\n\"a\":\n{\"b\":1}}").unwrap();
        assert_eq!(warnings(&one), ["line 3: key \"a\" already set in map"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_looked_through(text in "[ab:?\\-\\[\\]{}, \n\"'&*|>#]{0,60}") {
            drop(found(&text));
        }
    }
}
