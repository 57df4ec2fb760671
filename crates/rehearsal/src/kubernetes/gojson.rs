//! Reads JSON as the server's own library does: the same words where it is broken, and keys that come twice.

use serde_json::Value;

/// How deep values may be nested; serde reads no deeper.
const DEPTH_MAX: usize = 120;

/// A body that was read.
#[derive(Debug, PartialEq)]
pub(super) struct Read {
    pub(super) value: Value,
    /// The paths of the keys that come more than once in one object, the last one counts.
    pub(super) twice: Vec<Twice>,
}

/// A key that was there already.
#[derive(Debug, PartialEq)]
pub(super) struct Twice {
    pub(super) path: String,
}

/// Reads a body.
///
/// # Errors
/// Go's words for what is wrong.
pub(super) fn read(bytes: &[u8]) -> Result<Read, String> {
    let mut scan = Scan { bytes, at: 0, path: Vec::new(), twice: Vec::new() };
    scan.value("looking for beginning of value")?;
    scan.space();
    if scan.at < bytes.len() {
        return Err(scan.invalid("after top-level value"));
    }
    // What is right to the letter may still hold half of a surrogate pair, which Go replaces.
    let value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    Ok(Read { value, twice: scan.twice })
}

/// What Go calls the type of a value.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The keys that lead here.
    path: Vec<String>,
    twice: Vec<Twice>,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Why the byte here can not be; or that there is none.
    fn invalid(&self, place: &str) -> String {
        let shown = match self.peek() {
            None => return "unexpected end of JSON input".to_owned(),
            Some(b'\'') => "\\'".to_owned(),
            Some(b'"') => "\"".to_owned(),
            Some(b'\\') => "\\\\".to_owned(),
            Some(b'\n') => "\\n".to_owned(),
            Some(b'\r') => "\\r".to_owned(),
            Some(b'\t') => "\\t".to_owned(),
            Some(byte @ (..0x20 | 0x7f)) => format!("\\x{byte:02x}"),
            Some(byte) => char::from(byte).to_string(),
        };
        format!("invalid character '{shown}' {place}")
    }

    fn value(&mut self, place: &str) -> Result<(), String> {
        self.space();
        match self.peek() {
            Some(b'{') if self.path.len() < DEPTH_MAX => self.object(),
            Some(b'[') if self.path.len() < DEPTH_MAX => self.array(),
            Some(b'{' | b'[') => Err("exceeded max depth".to_owned()),
            Some(b'"') => self.string().map(drop),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.invalid(place)),
        }
    }

    fn object(&mut self) -> Result<(), String> {
        let mut known: Vec<String> = Vec::new();
        self.at += 1;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.invalid("looking for beginning of object key string"));
            }
            let key = self.string()?;
            self.path.push(key.clone());
            if known.contains(&key) {
                let path = self.path.concat().trim_start_matches('.').to_owned();
                self.twice.push(Twice { path });
            }
            known.push(key);
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.invalid("after object key"));
            }
            self.at += 1;
            self.value("looking for beginning of value")?;
            self.path.pop();
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.invalid("after object key:value pair")),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn array(&mut self) -> Result<(), String> {
        self.at += 1;
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        for index in 0.. {
            self.path.push(format!("[{index}]"));
            self.value("looking for beginning of value")?;
            self.path.pop();
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.invalid("after array element")),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// A string, as the part of a path that it is as a key.
    fn string(&mut self) -> Result<String, String> {
        let begin = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                None | Some(..0x20) => return Err(self.invalid("in string literal")),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        let text = serde_json::from_slice::<String>(&self.bytes[begin..self.at]);
        Ok(format!(".{}", text.unwrap_or_default()))
    }

    fn escape(&mut self) -> Result<(), String> {
        self.at += 1;
        match self.peek() {
            Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.invalid("in \\u hexadecimal character escape"));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.invalid("in string escape code")),
        }
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                let expected = char::from(expected);
                return Err(self.invalid(&format!("in literal {word} (expecting '{expected}')")));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits("in numeric literal")?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn digits(&mut self, place: &str) -> Result<(), String> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(self.invalid(place));
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_broken_is_told_in_gos_words() {
        let said = |text: &str| read(text.as_bytes()).err().unwrap_or_default();
        for (text, words) in [
            ("", "unexpected end of JSON input"),
            ("{\"a\"", "unexpected end of JSON input"),
            ("nonsense", "invalid character 'o' in literal null (expecting 'u')"),
            ("a", "invalid character 'a' looking for beginning of value"),
            ("{a", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 2}", "invalid character '2' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("01", "invalid character '1' after top-level value"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("\"a\nb\"", "invalid character '\\n' in string literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
        ] {
            assert_eq!(said(text), words, "{text}");
        }
    }

    #[test]
    fn a_key_that_comes_twice_is_told_by_its_path() {
        let text = "{\"a\": {\"b\": 1,\n\"b\": 2}, \"l\": [{\"c\": 1, \"c\": 2}], \"a\": {}}";
        let twice = read(text.as_bytes()).unwrap().twice;
        let told: Vec<_> = twice.iter().map(|twice| twice.path.as_str()).collect();
        assert_eq!(told, ["a.b", "l[0].c", "a"]);
    }

    proptest::proptest! {
        #[test]
        fn whatever_serde_reads_is_read(text in "[\\[\\]{}\",:0-9aetrufnl. \\\\-]{0,40}") {
            let serde = serde_json::from_str::<Value>(&text).ok();
            let own = read(text.as_bytes()).map(|read| read.value).ok();
            proptest::prop_assert_eq!(serde, own);
        }
    }
}
