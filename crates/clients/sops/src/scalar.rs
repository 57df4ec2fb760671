//! What an unquoted YAML scalar means to sops, and the bytes of each value that its MAC is made of.
//!
//! sops reads YAML as go-yaml version 3 does. A value in clear is part of the MAC by its meaning (`010` is 8), so
//! the meaning has to be the same here.

use castle_model::Secret;
use zeroize::Zeroizing;

use crate::tree::Value;

/// The meaning of an unquoted scalar. None: a number that sops has no type for.
pub(crate) fn resolve(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "true" | "True" | "TRUE" => return Some(Value::Boolean(true)),
        "false" | "False" | "FALSE" => return Some(Value::Boolean(false)),
        ".nan" | ".NaN" | ".NAN" => return Some(Value::Float(f64::NAN)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Some(Value::Float(f64::INFINITY));
        }
        "-.inf" | "-.Inf" | "-.INF" => return Some(Value::Float(f64::NEG_INFINITY)),
        _ => {}
    }
    match text.as_bytes().first() {
        Some(b'.') if is_float(text) => Some(float(text)),
        Some(b'0'..=b'9' | b'+' | b'-') => number(text),
        _ => Some(Value::Text(Secret::new(text))),
    }
}

fn number(text: &str) -> Option<Value> {
    if let Some(moment) = time(text) {
        return Some(Value::Time(moment));
    }
    let plain = text.replace('_', "");
    match integer(&plain) {
        Some(Ok(whole)) => Some(Value::Integer(whole)),
        Some(Err(TooBig)) => None,
        None if is_float(&plain) => Some(match float(&plain) {
            Value::Text(_) => Value::Text(Secret::new(text)),
            number => number,
        }),
        None => Some(Value::Text(Secret::new(text))),
    }
}

/// An integer that fits 64 bits only without a sign; sops refuses those.
struct TooBig;

/// A whole number in any of the bases; a leading zero alone means octal.
fn integer(plain: &str) -> Option<Result<i64, TooBig>> {
    let (negative, digits) = match plain.as_bytes().first()? {
        b'-' => (true, &plain[1..]),
        b'+' => (false, &plain[1..]),
        _ => (false, plain),
    };
    let lower = digits.get(..2).map(str::to_ascii_lowercase);
    let (radix, digits) = match lower.as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        Some(two) if two.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    // More than 64 bits are no integer to sops; decimal ones become a float then.
    let size = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        return 0_i64.checked_sub_unsigned(size).map(Ok);
    }
    Some(i64::try_from(size).map_err(|_| TooBig))
}

/// `[-+]? ( .digits | digits [. digits] ) [e [-+] digits]`
fn is_float(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let mantissa_fits = digits(whole)
        && fraction.is_none_or(digits)
        && (!whole.is_empty() || fraction.is_some_and(|fraction| !fraction.is_empty()));
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    mantissa_fits && exponent_fits
}

/// A float, or the text where it is beyond what a float holds.
fn float(text: &str) -> Value {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Value::Float(number),
        _ => Value::Text(Secret::new(text)),
    }
}

/// A moment in any of the forms that count as one, in the form that is sealed: `2024-01-02T03:04:05.6Z`.
pub(crate) fn time(text: &str) -> Option<String> {
    let mut rest = text;
    let year = take(&mut rest, 4, 4)?;
    let month = after(&mut rest, '-', 2)?;
    let day = after(&mut rest, '-', 2)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    let date = format!("{year:04}-{month:02}-{day:02}");
    if rest.is_empty() {
        return Some(format!("{date}T00:00:00Z"));
    }
    let zoned = match rest.chars().next()? {
        'T' | 't' => true,
        ' ' => false,
        _ => return None,
    };
    rest = &rest[1..];
    let hour = take(&mut rest, 1, 2)?;
    let minute = after(&mut rest, ':', 2)?;
    let second = after(&mut rest, ':', 2)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let fraction = fraction(&mut rest)?;
    let zone = match (zoned, rest) {
        (false, "") | (true, "Z" | "+00:00" | "-00:00") => "Z",
        (true, zone) if is_zone(zone) => zone,
        _ => return None,
    };
    Some(format!("{date}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}"))
}

/// The moment without its fraction, as the MAC is bound to it.
pub(crate) fn time_in_seconds(text: &str) -> Option<String> {
    let text = time(text)?;
    let Some((whole, rest)) = text.split_once('.') else { return Some(text) };
    let zone = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
    Some(format!("{whole}{zone}"))
}

fn is_zone(zone: &str) -> bool {
    let bytes = zone.as_bytes();
    let shaped = bytes.len() == 6 && matches!(bytes[0], b'+' | b'-') && bytes[3] == b':';
    let number =
        |range: std::ops::Range<usize>| zone.get(range).and_then(|part| part.parse::<u8>().ok());
    shaped
        && number(1..3).is_some_and(|hour| hour < 24)
        && number(4..6).is_some_and(|minute| minute < 60)
}

fn after(rest: &mut &str, mark: char, most: usize) -> Option<u32> {
    *rest = rest.strip_prefix(mark)?;
    take(rest, 1, most)
}

fn take(rest: &mut &str, least: usize, most: usize) -> Option<u32> {
    let length = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    if length < least {
        return None;
    }
    let (number, after) = rest.split_at(length);
    *rest = after;
    number.parse().ok()
}

/// The fraction of a second, nanoseconds at most and no zeros at the end; empty if there is none.
fn fraction(rest: &mut &str) -> Option<String> {
    let Some(digits) = rest.strip_prefix(['.', ',']) else { return Some(String::new()) };
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 {
        return None;
    }
    *rest = &digits[length..];
    let kept = digits[..length.min(9)].trim_end_matches('0');
    Some(if kept.is_empty() { String::new() } else { format!(".{kept}") })
}

/// The bytes that stand for a value in the MAC, and under the cipher. None for what is no leaf.
pub(crate) fn bytes(value: &Value) -> Option<Zeroizing<Vec<u8>>> {
    let bytes = match value {
        Value::Text(text) => text.expose().as_bytes().to_vec(),
        Value::Integer(number) => number.to_string().into_bytes(),
        Value::Float(number) => float_text(*number).into_bytes(),
        Value::Boolean(truth) => if *truth { "True" } else { "False" }.as_bytes().to_vec(),
        Value::Bytes(bytes) => bytes.expose().to_vec(),
        Value::Time(moment) => moment.clone().into_bytes(),
        Value::Null | Value::List(_) | Value::Branch(_) => return None,
    };
    Some(Zeroizing::new(bytes))
}

fn float_text(number: f64) -> String {
    match number {
        number if number.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        // Never an exponent, and no more digits than tell it from its neighbours.
        number => number.to_string(),
    }
}

/// A float from its sealed text.
pub(crate) fn sealed_float(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "+Inf" | "Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        _ => text.parse::<f64>().ok().filter(|number| number.is_finite()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match resolve(text) {
            None => "refused".to_owned(),
            Some(Value::Text(text)) => format!("text {}", text.expose()),
            Some(Value::Null) => "null".to_owned(),
            Some(value) => {
                let kind = value.kind().to_owned();
                let bytes = bytes(&value).unwrap().to_vec();
                let float = if matches!(value, Value::Float(_)) { "float" } else { &kind };
                format!("{float} {}", String::from_utf8(bytes).unwrap())
            }
        }
    }

    #[test]
    fn scalars_mean_what_they_mean_to_go_yaml() {
        let meanings = [
            ("~", "null"),
            ("Null", "null"),
            ("nuLL", "text nuLL"),
            ("yes", "text yes"),
            ("on", "text on"),
            ("TRUE", "true or false True"),
            ("tRUE", "text tRUE"),
            ("12", "a number 12"),
            ("+12", "a number 12"),
            ("-12", "a number -12"),
            ("1_000", "a number 1000"),
            ("010", "a number 8"),
            ("08", "float 8"),
            ("0x1F", "a number 31"),
            ("0o17", "a number 15"),
            ("-0b11", "a number -3"),
            ("0x", "text 0x"),
            ("0", "a number 0"),
            ("-0", "a number 0"),
            ("9223372036854775807", "a number 9223372036854775807"),
            ("-9223372036854775808", "a number -9223372036854775808"),
            ("9223372036854775808", "refused"),
            ("18446744073709551616", "float 18446744073709552000"),
            ("1.50", "float 1.5"),
            ("1e3", "float 1000"),
            (".5", "float 0.5"),
            ("5.", "float 5"),
            ("1e400", "text 1e400"),
            ("1_0.5", "float 10.5"),
            ("-.inf", "float -Inf"),
            (".NaN", "float NaN"),
            ("1.2.3", "text 1.2.3"),
            ("1:20", "text 1:20"),
            ("-", "text -"),
            (".", "text ."),
            ("192.168.1.1", "text 192.168.1.1"),
            ("2024-01-02", "a moment 2024-01-02T00:00:00Z"),
            ("2024-1-2 3:4:5.600", "a moment 2024-01-02T03:04:05.6Z"),
            (
                "2024-01-02T03:04:05.1234567891+02:00",
                "a moment 2024-01-02T03:04:05.123456789+02:00",
            ),
            ("2024-01-02T03:04:05+00:00", "a moment 2024-01-02T03:04:05Z"),
            ("2024-02-30", "text 2024-02-30"),
            ("2023-02-29", "text 2023-02-29"),
            ("2000-02-29", "a moment 2000-02-29T00:00:00Z"),
            ("2024-01-02T03:04:05", "text 2024-01-02T03:04:05"),
            ("2024-01-02T24:04:05Z", "text 2024-01-02T24:04:05Z"),
            ("20240102", "a number 20240102"),
        ];
        for (text, meaning) in meanings {
            assert_eq!(shown(text), meaning, "{text}");
        }
    }

    #[test]
    fn the_mac_is_bound_to_seconds() {
        assert_eq!(time_in_seconds("2024-01-02T03:04:05.678Z").unwrap(), "2024-01-02T03:04:05Z");
        assert_eq!(
            time_in_seconds("2024-01-02T03:04:05.6+01:00").unwrap(),
            "2024-01-02T03:04:05+01:00"
        );
        assert_eq!(time_in_seconds("soon"), None);
    }
}
