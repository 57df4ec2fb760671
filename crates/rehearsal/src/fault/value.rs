//! The values in a rule: times, numbers, machines, and how they are written.

use std::net::Ipv4Addr;

use super::names::Names;

/// The longest time that a rule can name: a hundred years, so that a clock can fall back to 1970.
const TIME_MAX: u64 = 100 * 365 * 24 * 3_600_000;

/// Something that a rule names, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// A machine or guest, by its number; its address is known if the castle file has it.
    Machine(u32, Option<Ipv4Addr>),
    /// A number.
    Number(u64),
    /// An address.
    Address(Ipv4Addr),
    /// Milliseconds.
    Time(u64),
    /// Anything else, as it stands.
    Text(String),
}

/// What a rule gives to its kind. The parser has seen to it that everything has the shape that the kind asks for.
pub(super) struct Given<'a> {
    pub(super) object: Option<&'a Value>,
    pub(super) arguments: &'a [Value],
    pub(super) names: &'a Names,
}

impl Given<'_> {
    /// The number of the machine or guest that the rule is about.
    pub(super) fn machine(&self) -> u32 {
        match self.object {
            Some(Value::Machine(number, _)) => *number,
            _ => 0,
        }
    }

    /// The address that the rule is about.
    pub(super) fn address(&self) -> Ipv4Addr {
        match self.object {
            Some(Value::Address(address) | Value::Machine(_, Some(address))) => *address,
            _ => Ipv4Addr::UNSPECIFIED,
        }
    }

    /// The text that the rule is about.
    pub(super) fn object_text(&self) -> String {
        match self.object {
            Some(Value::Text(text)) => text.clone(),
            _ => String::new(),
        }
    }

    /// A number or time among the arguments.
    pub(super) fn number(&self, place: usize) -> u64 {
        match self.arguments.get(place) {
            Some(Value::Number(number) | Value::Time(number)) => *number,
            _ => 0,
        }
    }

    /// An address among the arguments.
    pub(super) fn argument_address(&self, place: usize) -> Ipv4Addr {
        match self.arguments.get(place) {
            Some(Value::Address(address)) => *address,
            _ => Ipv4Addr::UNSPECIFIED,
        }
    }

    /// A text among the arguments, if it was given.
    pub(super) fn text(&self, place: usize) -> Option<String> {
        match self.arguments.get(place) {
            Some(Value::Text(text)) => Some(text.clone()),
            _ => None,
        }
    }
}

/// A time as people write it, `M:SS` or `H:MM:SS`, with thousandths if need be; in milliseconds.
pub(super) fn time(text: &str) -> Option<u64> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(fraction) || fraction.len() > 3 {
        return None;
    }
    let parts: Vec<&str> = clock.split(':').collect();
    let (first, rest) = parts.split_first()?;
    let fits = |part: &&str| part.len() == 2 && part.parse::<u64>().is_ok_and(|n| n < 60);
    if !(1..=2).contains(&rest.len()) || !digits(first) || !rest.iter().all(fits) {
        return None;
    }
    if !rest.iter().all(|part| digits(part)) {
        return None;
    }
    let mut seconds: u64 = first.parse().ok()?;
    for part in rest {
        seconds = seconds.checked_mul(60)?.checked_add(part.parse().ok()?)?;
    }
    let thousandths: u64 = format!("{fraction:0<3}").parse().ok()?;
    seconds.checked_mul(1000)?.checked_add(thousandths).filter(|ms| *ms <= TIME_MAX)
}

/// A time as a rule writes it.
pub(super) fn span(ms: u64) -> String {
    let (seconds, rest) = (ms / 1000, ms % 1000);
    let clock = if seconds < 3600 {
        format!("{}:{:02}", seconds / 60, seconds % 60)
    } else {
        format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
    };
    if rest == 0 { clock } else { format!("{clock}.{rest:03}") }
}

/// A word as a rule writes it: in quotes where it would not be one word of its own.
pub(super) fn written(word: &str) -> String {
    let keyword = super::parse::is_keyword(word) || word == "times";
    let whole = !word.is_empty() && !word.starts_with('"') && !word.contains(char::is_whitespace);
    if whole && !keyword { word.to_owned() } else { quoted(word) }
}

/// The same before the colon, which must be the first one.
pub(super) fn written_object(word: &str) -> String {
    if word.contains(':') { quoted(word) } else { written(word) }
}

fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}
