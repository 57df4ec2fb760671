//! Writes YAML as the server's own library does, to the byte: its order of keys, its quotes, its folds.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// Where lines are folded, at the next space.
const WIDTH: usize = 80;
/// How long a key may be that needs no mark.
const KEY_MAX: usize = 128;

/// A value as a document.
pub(super) fn write(value: &Value) -> String {
    let mut writer = Writer::default();
    writer.node(value, 0);
    writer.fresh();
    writer.text
}

#[derive(Default)]
struct Writer {
    text: String,
    column: usize,
}

impl Writer {
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
        self.column = match text.rsplit_once('\n') {
            Some((_, last)) => last.chars().count(),
            None => self.column + text.chars().count(),
        };
    }

    /// Begins a line, unless one is begun.
    fn fresh(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.put("\n");
        }
    }

    fn line(&mut self, indent: usize) {
        self.fresh();
        self.put(&" ".repeat(indent));
    }

    /// A value that goes on in this line, and whose other lines are indented so far.
    fn node(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(map) if !map.is_empty() => self.mapping(map, indent, true),
            Value::Array(list) if !list.is_empty() => self.sequence(list, indent, true),
            scalar => self.scalar(scalar, indent),
        }
    }

    fn mapping(&mut self, map: &Map<String, Value>, indent: usize, mut begun: bool) {
        let mut pairs: Vec<(&String, &Value)> = map.iter().collect();
        pairs.sort_by(|(one, _), (other, _)| order(one, other));
        for (key, value) in pairs {
            if !std::mem::take(&mut begun) {
                self.line(indent);
            }
            if key.len() > KEY_MAX || key.chars().any(is_break) {
                self.put("? ");
                self.string(key, indent + 2, false);
                self.line(indent);
                self.put(": ");
                self.node(value, indent + 2);
                continue;
            }
            self.string(key, indent + 2, true);
            self.put(":");
            match value {
                Value::Object(map) if !map.is_empty() => self.mapping(map, indent + 2, false),
                Value::Array(list) if !list.is_empty() => self.sequence(list, indent, false),
                scalar => {
                    self.put(" ");
                    self.scalar(scalar, indent + 2);
                }
            }
        }
    }

    fn sequence(&mut self, list: &[Value], indent: usize, mut begun: bool) {
        for value in list {
            if !std::mem::take(&mut begun) {
                self.line(indent);
            }
            self.put("- ");
            self.node(value, indent + 2);
        }
    }

    fn scalar(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Null => self.put("null"),
            Value::Bool(known) => self.put(if *known { "true" } else { "false" }),
            Value::Number(number) => self.put(&written(number)),
            Value::String(text) => self.string(text, indent, false),
            Value::Array(_) => self.put("[]"),
            Value::Object(_) => self.put("{}"),
        }
    }

    fn string(&mut self, text: &str, indent: usize, key: bool) {
        match Fit::of(text).style(text, key) {
            Style::Plain => self.folded(text, indent, key),
            Style::Single => {
                self.put("'");
                self.folded(&text.replace('\'', "''"), indent, key);
                self.put("'");
            }
            Style::Double => self.double(text, indent, key),
            Style::Literal => self.literal(text, indent),
        }
    }

    /// Text whose spaces become ends of lines where these are too long.
    fn folded(&mut self, text: &str, indent: usize, key: bool) {
        let (mut spaces, mut breaks) = (false, false);
        let mut rest = text.chars().peekable();
        let mut first = true;
        while let Some(sign) = rest.next() {
            let last = rest.peek().is_none();
            let next = rest.peek() == Some(&' ');
            let room = self.column <= WIDTH || key || spaces || next || first || last;
            if sign == ' ' && !room {
                self.line(indent);
            } else {
                if breaks && !is_edge(sign) {
                    self.put(&" ".repeat(indent));
                }
                self.put(sign.encode_utf8(&mut [0; 4]));
            }
            (spaces, breaks) = (sign == ' ', is_break(sign) || (breaks && sign == ' '));
            first = false;
        }
    }

    fn double(&mut self, text: &str, indent: usize, key: bool) {
        self.put("\"");
        let mut spaces = false;
        let mut rest = text.chars().peekable();
        let mut first = true;
        while let Some(sign) = rest.next() {
            let last = rest.peek().is_none();
            if sign == ' ' && !key && !spaces && self.column > WIDTH && !first && !last {
                self.line(indent);
                if rest.peek() == Some(&' ') {
                    self.put("\\");
                }
            } else if !is_printable(sign) || is_break(sign) || matches!(sign, '"' | '\\') {
                self.put(&escaped(sign));
            } else {
                self.put(sign.encode_utf8(&mut [0; 4]));
            }
            spaces = sign == ' ';
            first = false;
        }
        self.put("\"");
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.put("|");
        if text.starts_with(|sign| sign == ' ' || is_break(sign)) {
            self.put("2");
        }
        let ends = text.chars().rev().take_while(|sign| is_break(*sign)).count();
        match ends {
            0 => self.put("-"),
            1 if text.chars().count() > 1 => {}
            _ => self.put("+"),
        }
        self.put("\n");
        for line in text.split_inclusive(is_break) {
            if !line.starts_with(is_break) {
                self.put(&" ".repeat(indent));
            }
            self.put(line);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// In which styles a text may stand.
struct Fit {
    plain: bool,
    single: bool,
    literal: bool,
}

impl Fit {
    fn of(text: &str) -> Self {
        let edge = text.starts_with(is_edge) || text.ends_with(is_edge);
        let mut indicator = text.starts_with("---") || text.starts_with("...");
        let (mut special, mut breaks, mut before_break, mut after_break) = Default::default();
        let signs: Vec<char> = text.chars().collect();
        for (place, sign) in signs.iter().copied().enumerate() {
            let before = place.checked_sub(1).map(|before| signs[before]);
            let blank = signs.get(place + 1).is_none_or(|next| matches!(next, ' ' | '\t'));
            indicator |= match (place, sign) {
                (0, '#') => true,
                (0, sign) if FIRST.contains(sign) => true,
                (0, '?' | '-') | (_, ':') => blank,
                (_, '#') => before.is_some_and(|b| matches!(b, ' ' | '\t') || is_break(b)),
                _ => false,
            };
            special |= !is_printable(sign);
            breaks |= is_break(sign);
            after_break |= sign == ' ' && before.is_some_and(is_break);
            before_break |= is_break(sign) && before == Some(' ');
        }
        let single = !(after_break || before_break || special);
        let plain = single && !(edge || indicator || breaks);
        Self { plain, single, literal: !(text.ends_with(' ') || before_break || special) }
    }

    fn style(&self, text: &str, key: bool) -> Style {
        if text.contains('\n') {
            return if self.literal && !key { Style::Literal } else { Style::Double };
        }
        match (is_text(text), self.plain, self.single) {
            (true, true, _) => Style::Plain,
            (true, false, true) => Style::Single,
            _ => Style::Double,
        }
    }
}

/// What no plain text begins with.
const FIRST: &str = ",[]{}&*!|>'\"%@`";

fn is_edge(sign: char) -> bool {
    sign == ' ' || is_break(sign)
}

fn is_break(sign: char) -> bool {
    matches!(sign, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_printable(sign: char) -> bool {
    matches!(sign, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && sign != '\u{feff}'
}

fn escaped(sign: char) -> String {
    match sign {
        '\0' => "\\0".to_owned(),
        '\u{7}' => "\\a".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\t' => "\\t".to_owned(),
        '\n' => "\\n".to_owned(),
        '\u{b}' => "\\v".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\r' => "\\r".to_owned(),
        '\u{1b}' => "\\e".to_owned(),
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\u{85}' => "\\N".to_owned(),
        '\u{a0}' => "\\_".to_owned(),
        '\u{2028}' => "\\L".to_owned(),
        '\u{2029}' => "\\P".to_owned(),
        other => match u32::from(other) {
            code @ ..=0xff => format!("\\x{code:02X}"),
            code @ ..=0xffff => format!("\\u{code:04X}"),
            code => format!("\\U{code:08X}"),
        },
    }
}

/// Whether a text would be read as text if nothing were around it.
pub(super) fn is_text(text: &str) -> bool {
    let words = [
        "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "n", "N", "no",
        "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", "", "~", "null", "Null",
        "NULL", ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf",
        "-.Inf", "-.INF",
    ];
    if words.contains(&text) {
        return false;
    }
    match text.as_bytes().first() {
        Some(b'.') => !is_float(text),
        Some(b'+' | b'-' | b'0'..=b'9') => {
            let plain = text.replace('_', "");
            !(is_float(&plain) || is_based(&plain) || is_sexagesimal(text) || is_time(text))
        }
        _ => true,
    }
}

/// Whether a text begins with digits, and what follows them.
fn digits(text: &str) -> (usize, &str) {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    (count, &text[count..])
}

fn is_float(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, rest) = digits(text);
    let (part, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => (0, rest),
    };
    let exponent = rest.strip_prefix(['e', 'E']).map(|rest| {
        let (count, rest) = digits(rest.strip_prefix(['+', '-']).unwrap_or(rest));
        count > 0 && rest.is_empty()
    });
    let finite = || text.parse::<f64>().is_ok_and(f64::is_finite);
    (whole > 0 || part > 0) && exponent.unwrap_or(rest.is_empty()) && finite()
}

/// Whether it is a number in another base.
fn is_based(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let base = match text.get(..2).unwrap_or_default().to_ascii_lowercase().as_str() {
        "0x" => 16,
        "0o" => 8,
        "0b" => 2,
        _ => return false,
    };
    let rest = &text[2..];
    rest.bytes().all(|byte| byte.is_ascii_alphanumeric()) && u64::from_str_radix(rest, base).is_ok()
}

/// Whether it is a number in base 60, as YAML once knew them.
fn is_sexagesimal(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let of = |byte: u8| byte.is_ascii_digit() || byte == b'_';
    let text = match text.split_once('.') {
        Some((text, part)) if part.bytes().all(of) => text,
        Some(_) => return false,
        None => text,
    };
    let mut parts = text.split(':');
    let first = parts.next().unwrap_or_default();
    let mut rest = parts.peekable();
    let small = |part: &str| match part.as_bytes() {
        [one] => one.is_ascii_digit(),
        [ten, one] => matches!(ten, b'0'..=b'5') && one.is_ascii_digit(),
        _ => false,
    };
    first.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
        && first.bytes().all(of)
        && rest.peek().is_some()
        && rest.all(small)
}

/// Whether it is a date, or a moment.
fn is_time(text: &str) -> bool {
    let number = |text: &str| -> Option<u32> {
        let short = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        if short { text.parse().ok() } else { None }
    };
    let cut = text.find(['T', 't', ' ']);
    let (date, time) = match cut {
        Some(cut) => (&text[..cut], Some(&text[cut..])),
        None => (text, None),
    };
    let parts: Vec<&str> = date.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let (Ok(years), Some(month), Some(day)) = (year.parse::<u32>(), number(month), number(day))
    else {
        return false;
    };
    let leap = years % 4 == 0 && (years % 100 != 0 || years % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    if year.len() != 4 || !(1..=days).contains(&day) {
        return false;
    }
    let Some(time) = time else { return true };
    let (zoned, time) = (!time.starts_with(' '), &time[1..]);
    let zone = time.find(['Z', '+', '-']).unwrap_or(time.len());
    let (time, zone) = time.split_at(zone);
    let zone_fits = match zone.as_bytes() {
        [] => !zoned,
        [b'Z'] => zoned,
        [b'+' | b'-', a, b, b':', c, d] => {
            zoned && [a, b, c, d].iter().all(|digit| digit.is_ascii_digit())
        }
        _ => false,
    };
    let (time, part) = time.split_once(['.', ',']).unwrap_or((time, "0"));
    let clock: Vec<Option<u32>> = time.split(':').map(number).collect();
    let [Some(hour), Some(minute), Some(second)] = clock[..] else { return false };
    let fraction = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    zone_fits && fraction && hour < 24 && minute < 60 && second < 60
}

/// A number as Go writes it, shortest form.
fn written(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else {
        return number.to_string();
    };
    let short = format!("{float:e}");
    let Some((digits, exponent)) = short.split_once('e') else { return short };
    match exponent.parse::<i32>() {
        Ok(exponent @ (-4..=5)) if exponent < 6 => format!("{float}"),
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        Err(_) => short,
    }
}

/// Which key comes first: letters after everything else, numbers in them by their size.
fn order(one: &str, other: &str) -> Ordering {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let Some(place) = one.iter().zip(&other).position(|(one, other)| one != other) else {
        return one.len().cmp(&other.len());
    };
    let (a, b) = (one[place], other[place]);
    match (a.is_alphabetic(), b.is_alphabetic()) {
        (true, true) => return a.cmp(&b),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let before = one[..place].iter().rev().take_while(|sign| sign.is_ascii_digit());
    let zero = a == '0' || b == '0';
    let begin = i64::from(zero && before.into_iter().any(|sign| *sign != '0'));
    let number = |signs: &[char]| {
        let digits = signs[place..].iter().take_while(|sign| sign.is_ascii_digit());
        let count = digits.clone().count();
        let value = digits.fold(begin, |value, digit| {
            let digit = digit.to_digit(10).unwrap_or_default();
            value.wrapping_mul(10).wrapping_add(i64::from(digit))
        });
        (value, count)
    };
    number(&one).cmp(&number(&other)).then(a.cmp(&b))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Written by `sigs.k8s.io/yaml` 1.6.0, which the real server has, from the same value.
    #[test]
    fn documents_are_written_as_the_servers_library_writes_them() {
        let value = serde_json::from_str(include_str!("goyaml/all.json")).unwrap();
        assert_eq!(write(&value), include_str!("goyaml/all.yaml"));
    }

    #[test]
    fn scalars_alone_are_documents_too() {
        for (value, text) in [(json!(null), "null\n"), (json!({}), "{}\n"), (json!([]), "[]\n")] {
            assert_eq!(write(&value), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_as_the_same(
            text in proptest::collection::vec(proptest::char::any(), 0..40),
            words in "[a-z0-9 :#'\"\\-?,\\[\\]{}.\n\t]{0,120}",
        ) {
            let text: String = text.into_iter().collect();
            let value = json!({"a": text, "b": [words, {"c": words}], "d": {"e": text}});
            // The reader has its own idea of what few signs are.
            let odd = |sign: char| !is_printable(sign) || is_break(sign) || sign > '\u{ffff}';
            if !text.contains(odd) {
                let read: Value = yaml_serde::from_str(&write(&value)).unwrap();
                proptest::prop_assert_eq!(read, value);
            }
        }
    }
}
