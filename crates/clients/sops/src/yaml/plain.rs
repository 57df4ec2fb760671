//! YAML that nobody encrypts: entries as they stand in the text, and whether a text is YAML at all, within the limits.

use std::collections::BTreeMap;

use castle_model::Secret;
use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::read::{CURE_ALIAS, CURE_KEY, CURE_ROOT, CURE_TWICE, place, refused, told};
use crate::{SopsError, limits};

/// Whether a text is YAML, of whatever kind, that a program could read without falling over.
///
/// # Errors
/// If it is not, or larger, deeper or of more values than anybody writes.
pub fn check_yaml(text: &str) -> Result<(), SopsError> {
    events(text, |_, _| Ok(()))
}

/// The entries of a YAML or JSON text; one inside of another has a key with a dot. Each value is the very text that stands
/// there, so that a token of digits stays what it is. Lists and what is empty have no entry.
///
/// # Errors
/// If it is not one mapping, or a key is none, or stands twice, or the limits are exceeded.
pub fn plain_entries(text: &str) -> Result<BTreeMap<String, Secret>, SopsError> {
    let mut entries = Entries::default();
    events(text, |event, span| entries.take(event, span))?;
    Ok(entries.values)
}

/// Goes through the events of a text. Aliases are not followed, so no bomb goes off.
fn events(
    text: &str,
    mut take: impl FnMut(&Event<'_>, Span) -> Result<(), SopsError>,
) -> Result<(), SopsError> {
    if text.len() > limits::BYTES {
        return Err(SopsError::TooLarge);
    }
    let (mut depth, mut nodes) = (0_usize, 0_usize);
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| told(&error))?;
        match event {
            Event::SequenceStart(..) | Event::MappingStart(..) => depth += 1,
            Event::SequenceEnd | Event::MappingEnd => depth = depth.saturating_sub(1),
            _ => {}
        }
        nodes += 1;
        if depth > limits::DEPTH {
            return Err(SopsError::TooDeep { place: place(span) });
        }
        if nodes > limits::NODES {
            return Err(SopsError::TooMany { place: place(span) });
        }
        take(&event, span)?;
    }
    Ok(())
}

/// The entries so far.
#[derive(Default)]
struct Entries {
    values: BTreeMap<String, Secret>,
    open: Vec<Open>,
    documents: usize,
}

/// A collection that is not closed yet.
enum Open {
    /// A mapping: what its keys begin with, and the whole key that waits for its value.
    Mapping { prefix: String, key: Option<String> },
    /// A list, or something in one: no key names it.
    Nameless,
}

impl Entries {
    fn take(&mut self, event: &Event<'_>, span: Span) -> Result<(), SopsError> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(refused(span, "a second document", "put all keys into one"));
                }
                Ok(())
            }
            Event::Alias(_) => Err(refused(span, "a YAML alias", CURE_ALIAS)),
            Event::Scalar(text, style, ..) => self.scalar(text, *style, span),
            Event::MappingStart(..) => {
                let opened = match self.open.last() {
                    None => Open::Mapping { prefix: String::new(), key: None },
                    Some(Open::Nameless) => Open::Nameless,
                    Some(Open::Mapping { key: Some(key), .. }) => {
                        Open::Mapping { prefix: format!("{key}."), key: None }
                    }
                    Some(Open::Mapping { key: None, .. }) => {
                        return Err(refused(span, "a key that is not text", CURE_KEY));
                    }
                };
                self.open.push(opened);
                Ok(())
            }
            Event::SequenceStart(..) => match self.open.last() {
                None => Err(refused(span, "a document that is a list", CURE_ROOT)),
                Some(Open::Mapping { key: None, .. }) => {
                    Err(refused(span, "a key that is not text", CURE_KEY))
                }
                Some(_) => {
                    self.open.push(Open::Nameless);
                    Ok(())
                }
            },
            Event::MappingEnd | Event::SequenceEnd => {
                self.open.pop();
                if let Some(Open::Mapping { key, .. }) = self.open.last_mut() {
                    *key = None;
                }
                Ok(())
            }
            Event::DocumentEnd | Event::StreamStart | Event::StreamEnd | Event::Nothing => Ok(()),
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, span: Span) -> Result<(), SopsError> {
        let nothing =
            style == ScalarStyle::Plain && matches!(text, "" | "~" | "null" | "Null" | "NULL");
        match self.open.last_mut() {
            None if nothing => Ok(()),
            None => Err(refused(span, "a document that is a single value", CURE_ROOT)),
            Some(Open::Nameless) => Ok(()),
            Some(Open::Mapping { prefix, key }) => {
                let Some(whole) = key.take() else {
                    *key = Some(format!("{prefix}{text}"));
                    return Ok(());
                };
                if self.values.contains_key(&whole) {
                    return Err(refused(
                        span,
                        &format!("the key `{whole}` stands twice"),
                        CURE_TWICE,
                    ));
                }
                if !nothing {
                    self.values.insert(whole, Secret::new(text));
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<Vec<String>, String> {
        let entries = plain_entries(text).map_err(|error| error.to_string())?;
        Ok(entries.iter().map(|(key, value)| format!("{key}={}", value.expose())).collect())
    }

    #[test]
    fn a_value_is_the_text_that_stands_there() {
        let text = "A: x\npin: 0123\nlong: 12345678901234567890123\nday: 2024-01-02\nexp: 1e5\nb: {c: 7, d: {e: true}, l: [1, {m: n}]}\nnone: ~\nquoted: \"null\"\nempty: ''\nblock: |\n  one\n  two\n";
        insta::assert_snapshot!(shown(text).unwrap().join("; "), @r"
        A=x; b.c=7; b.d.e=true; block=one
        two
        ; day=2024-01-02; empty=; exp=1e5; long=12345678901234567890123; pin=0123; quoted=null
        ");
        assert_eq!(
            shown("{\"a\": {\"b\": \"x\\ty\"},\n\t\"n\": 1.10}").unwrap(),
            ["a.b=x\ty", "n=1.10"]
        );
        assert_eq!(shown("# nothing\n"), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_mapping_of_texts_is_refused() {
        for (text, why) in [
            ("hunter2", "line 1: a document that is a single value"),
            ("- hunter2", "line 1: a document that is a list"),
            ("? [a]\n: hunter2\n", "line 1: a key that is not text"),
            ("a: 1\nb: 2\na: hunter2\n", "line 3: the key `a` stands twice"),
            ("a: 1\n---\nb: 2\n", "line 2: a second document"),
            ("a: &x 1\nb: *x\n", "line 2: a YAML alias"),
            ("a: [hunter2", "not YAML"),
        ] {
            let error = shown(text).unwrap_err();
            assert!(error.contains(why) && !error.contains("hunter2"), "{text}: {error}");
        }
    }

    #[test]
    fn what_nobody_writes_by_accident_is_answered_soon() {
        let bomb = (1..12).fold("a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned(), |text, n| {
            let alias = vec![format!("*a{}", n - 1); 9].join(",");
            text + &format!("a{n}: &a{n} [{alias}]\n")
        });
        assert!(check_yaml(&bomb).is_ok(), "it only looks");
        assert!(shown(&bomb).unwrap_err().contains("a YAML alias"));
        for open in ["[", "{a: ", "- ", "? "] {
            let error = check_yaml(&open.repeat(1_000_000)).unwrap_err().to_string();
            assert!(error.contains("nested deeper than 128"), "{open}: {error}");
        }
        let many = format!("a: [{}]", "1,".repeat(limits::NODES));
        assert!(shown(&many).unwrap_err().contains("more than 200000"));
        assert_eq!(check_yaml(&" ".repeat(limits::BYTES + 1)), Err(SopsError::TooLarge));
    }
}
