//! Property strings (`local:4,discard=on`): taken apart, judged and put together again.

use std::collections::BTreeMap;

/// A property string in pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Property {
    /// The value that needs no key, such as the volume of a drive.
    pub(super) default: Option<String>,
    /// The others.
    pub(super) options: BTreeMap<String, String>,
}

impl Property {
    /// Takes a property string apart. `default` names the key that may be left out, if there is one.
    ///
    /// # Errors
    /// What Proxmox says about a string that does not parse.
    pub(super) fn parse(text: &str, default: Option<&str>) -> Result<Self, String> {
        let mut found = Self::default();
        for piece in text.split(',') {
            match (piece.split_once('='), default) {
                (Some((key, value)), _) if Some(key) == default => found.first(value, key)?,
                (Some((key, value)), _) => {
                    if found.options.insert(key.to_owned(), value.to_owned()).is_some() {
                        return Err(duplicate(key));
                    }
                }
                (None, Some(key)) => found.first(piece, key)?,
                (None, None) => {
                    return Err(
                        "invalid format - value without key, but schema does not define a \
                                default key\n"
                            .to_owned(),
                    );
                }
            }
        }
        Ok(found)
    }

    fn first(&mut self, value: &str, key: &str) -> Result<(), String> {
        match self.default.replace(value.to_owned()) {
            None => Ok(()),
            Some(_) => Err(duplicate(key)),
        }
    }

    /// Puts it together: the default first, the others by name.
    pub(super) fn text(&self) -> String {
        let mut pieces: Vec<String> = self.default.iter().cloned().collect();
        pieces.extend(self.options.iter().map(|(key, value)| format!("{key}={value}")));
        pieces.join(",")
    }
}

fn duplicate(key: &str) -> String {
    format!("invalid format - duplicate key in comma-separated list property: {key}\n")
}

/// Reads a size such as `10G`, `+512M` (without the sign) or `8589934592`, in bytes.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = match text.char_indices().last()? {
        (at, 'K') => (&text[..at], 1 << 10),
        (at, 'M') => (&text[..at], 1 << 20),
        (at, 'G') => (&text[..at], 1 << 30),
        (at, 'T') => (&text[..at], 1 << 40),
        _ => (text, 1_u64),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 9 || !fraction.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let mut extra = 0;
    if !fraction.is_empty() {
        let scale = 10_u64.pow(u32::try_from(fraction.len()).ok()?);
        let tail: u64 = fraction.parse().ok()?;
        extra = u64::try_from(u128::from(unit) * u128::from(tail) / u128::from(scale)).ok()?;
    }
    whole.checked_mul(unit)?.checked_add(extra)
}

/// Writes a size with the largest unit that keeps it whole.
pub(super) fn size(bytes: u64) -> String {
    for (unit, name) in [(1 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1_u64 << 10, "K")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_read_as_people_write_them() {
        for (text, expected) in [
            ("4", Some(4)),
            ("10G", Some(10 << 30)),
            ("0.5G", Some(512 << 20)),
            ("1246M", Some(1246 << 20)),
            ("xx", None),
            ("", None),
            ("99999999999T", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_written_size_reads_back(bytes_: u64) {
            prop_assert_eq!(bytes(&size(bytes_)), Some(bytes_));
        }

        #[test]
        fn a_property_string_keeps_its_meaning(options in proptest::collection::btree_map("[a-z]{1,6}", "[a-z0-9]{1,6}", 0..5)) {
            prop_assume!(!options.contains_key("file"));
            let property = Property { default: Some("store:1".to_owned()), options };
            prop_assert_eq!(Property::parse(&property.text(), Some("file")), Ok(property));
        }
    }
}
