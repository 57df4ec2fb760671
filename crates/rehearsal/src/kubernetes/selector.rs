//! Label selectors, read by the server's own grammar and refused in its words.

use serde_json::Value;

use super::admission::{LABEL, is_label};

/// How the name part of a label's key is written.
const NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// What a selector wants of one label.
#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    In(Vec<String>),
    NotIn(Vec<String>),
    There,
    Absent,
    Above(i64),
    Below(i64),
}

/// What is wanted of all labels.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Labels(Vec<(String, Wanted)>);

impl Labels {
    /// Reads a selector.
    ///
    /// # Errors
    /// The server's words for what is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut tokens = Tokens { all: tokens(text), at: 0 };
        let mut wanted = Vec::new();
        loop {
            match tokens.peek() {
                "" => return Ok(Self(wanted)),
                found if is_symbol(found) && found != "!" => {
                    return Err(format!(
                        "found '{found}', expected: !, identifier, or 'end of string'"
                    ));
                }
                _ => {}
            }
            let one = tokens.requirement();
            wanted.push(one.map_err(|why| format!("unable to parse requirement: {why}"))?);
            match tokens.next().as_str() {
                "" => return Ok(Self(wanted)),
                "," => {}
                found => return Err(format!("found '{found}', expected: ',' or 'end of string'")),
            }
            let found = tokens.peek();
            if found.is_empty() || (is_symbol(found) && found != "!") {
                return Err(format!("found '{found}', expected: identifier after ','"));
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object's labels are as wanted.
    pub(super) fn match_object(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.0.iter().all(|(name, wanted)| {
            let there = labels[name.as_str()].as_str();
            let is = |value: &String| there == Some(value);
            let number = || there.and_then(|text| text.parse::<i64>().ok());
            match wanted {
                Wanted::In(values) => values.iter().any(is),
                Wanted::NotIn(values) => !values.iter().any(is),
                Wanted::There => there.is_some(),
                Wanted::Absent => there.is_none(),
                Wanted::Above(least) => number().is_some_and(|number| number > *least),
                Wanted::Below(most) => number().is_some_and(|number| number < *most),
            }
        })
    }
}

fn is_symbol(token: &str) -> bool {
    token.starts_with(['=', '!', '(', ')', ',', '>', '<'])
}

/// Words and symbols; the longest symbol that there is counts.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = if is_symbol(rest) {
            let long = rest.starts_with("==") || rest.starts_with("!=");
            if long { 2 } else { first.len_utf8() }
        } else {
            let ends = |c: char| c.is_ascii_whitespace() || is_symbol(c.encode_utf8(&mut [0; 4]));
            rest.find(ends).unwrap_or(rest.len())
        };
        tokens.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    tokens
}

struct Tokens {
    all: Vec<String>,
    at: usize,
}

impl Tokens {
    /// The next token; empty at the end.
    fn peek(&self) -> &str {
        self.all.get(self.at).map_or("", String::as_str)
    }

    fn next(&mut self) -> String {
        let next = self.peek().to_owned();
        self.at += 1;
        next
    }

    fn word(&mut self) -> Result<String, String> {
        let found = self.next();
        if found.is_empty() || is_symbol(&found) {
            return Err(format!("found '{found}', expected: identifier"));
        }
        Ok(found)
    }

    fn requirement(&mut self) -> Result<(String, Wanted), String> {
        let absent = self.peek() == "!";
        self.at += usize::from(absent);
        let key = self.word()?;
        let name = key.rsplit('/').next().unwrap_or_default();
        if name.is_empty() || !is_label(name) {
            return Err(format!("<nil>: Invalid value: {key:?}: {NAME}"));
        }
        if absent {
            return Ok((key, Wanted::Absent));
        }
        if matches!(self.peek(), "" | ",") {
            return Ok((key, Wanted::There));
        }
        let operator = self.next();
        let values = match operator.as_str() {
            "in" | "notin" => self.values()?,
            "=" | "==" | "!=" | ">" | "<" => match self.peek() {
                "" | "," => vec![String::new()],
                _ => vec![self.word()?],
            },
            found => {
                return Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt"));
            }
        };
        if matches!(operator.as_str(), ">" | "<") {
            let number = values[0].parse::<i64>().map_err(|_| {
                format!("values[0]: Invalid value: {:?}: for 'Gt', 'Lt' operators, the value must be an integer", values[0])
            })?;
            let above = operator == ">";
            return Ok((key, if above { Wanted::Above(number) } else { Wanted::Below(number) }));
        }
        if let Some((at, value)) = values.iter().enumerate().find(|(_, value)| !is_label(value)) {
            return Err(format!("values[{at}][{key}]: Invalid value: {value:?}: {LABEL}"));
        }
        let without = matches!(operator.as_str(), "notin" | "!=");
        Ok((key, if without { Wanted::NotIn(values) } else { Wanted::In(values) }))
    }

    /// Values in parentheses; between two commas is an empty one.
    fn values(&mut self) -> Result<Vec<String>, String> {
        let open = self.next();
        if open != "(" {
            return Err(format!("found '{open}' expected: '('"));
        }
        let mut values = Vec::new();
        loop {
            match self.next().as_str() {
                ")" => return Ok(values),
                "," => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    if matches!(self.peek(), ")" | ",") {
                        values.push(String::new());
                    }
                }
                found if found.is_empty() || is_symbol(found) => {
                    return Err(format!("found '{found}', expected: ',', or identifier"));
                }
                word => {
                    values.push(word.to_owned());
                    let found = self.peek();
                    if !matches!(found, "," | ")") {
                        return Err(format!("found '{found}', expected: ',' or ')'"));
                    }
                }
            }
        }
    }
}
