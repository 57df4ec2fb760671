//! Reading what Proxmox writes now as a number, now as text.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A whole number, however it is written; 0 if it is absent.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Number(number) => number
            .as_u64()
            .or_else(|| number.as_f64().filter(|n| *n >= 0.0).map(whole))
            .unwrap_or_default(),
        Value::String(text) => text.trim().parse().unwrap_or_default(),
        Value::Bool(flag) => u64::from(flag),
        _ => 0,
    })
}

/// Yes or no, written as 1, "1", true, or left out.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(number(deserializer)? != 0)
}

/// The text of a value, whatever its kind.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes beyond 2^53 bytes do not occur, and negative ones are filtered out before"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Sample {
        #[serde(default, deserialize_with = "number")]
        size: u64,
        #[serde(default, deserialize_with = "flag")]
        active: bool,
    }

    #[test]
    fn numbers_may_be_text_and_flags_may_be_numbers() {
        for (json, size, active) in [
            (r#"{"size":"256","active":1}"#, 256, true),
            (r#"{"size":256,"active":"0"}"#, 256, false),
            (r#"{"size":1.5e3,"active":true}"#, 1500, true),
            (r#"{"size":null}"#, 0, false),
        ] {
            let sample: Sample = serde_json::from_str(json).unwrap();
            assert_eq!((sample.size, sample.active), (size, active), "{json}");
        }
    }
}
