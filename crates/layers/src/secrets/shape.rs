//! The form of a value: what people paste around a token is left out, what is wrong is named, the value never is.

use castle_model::Secret;
use castle_model::spec::Shape;
use castle_sops::{SopsError, check_yaml};

/// A value that can be used, and what was left out around it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Clean {
    pub(crate) value: Secret,
    /// "quotes", "white space".
    pub(crate) left_out: Option<&'static str>,
}

/// Cleans a value and checks its form.
///
/// # Errors
/// Says in words what is wrong, never with the value.
pub(crate) fn clean(shape: Shape, value: &Secret) -> Result<Clean, String> {
    if value.is_blank() {
        return Err("it is empty".to_owned());
    }
    let clean = match shape {
        Shape::Token | Shape::AgeKey => trimmed(value),
        Shape::Pem | Shape::Yaml | Shape::Free => Clean { value: value.clone(), left_out: None },
    };
    let text = clean.value.expose();
    match shape {
        Shape::Token => token(text)?,
        Shape::AgeKey => age_key(text)?,
        Shape::Pem => pem(text)?,
        Shape::Yaml => yaml(text)?,
        Shape::Free => {}
    }
    Ok(clean)
}

/// A credential as it is given from outside: what is pasted around it is left out, and said.
///
/// # Errors
/// Says in words what is wrong, never with the value.
pub fn credential(value: &Secret) -> Result<(Secret, Option<&'static str>), String> {
    clean(Shape::Token, value).map(|clean| (clean.value, clean.left_out))
}

/// Leaves out white space around a value, and one pair of quotes.
fn trimmed(value: &Secret) -> Clean {
    let whole = value.expose();
    let bare = whole.trim();
    let unquoted = ['"', '\'', '`'].iter().find_map(|quote| {
        let inside = bare.strip_prefix(*quote)?.strip_suffix(*quote)?;
        (!inside.contains(*quote)).then(|| inside.trim())
    });
    match unquoted {
        Some(inside) => Clean { value: Secret::new(inside), left_out: Some("quotes") },
        None if bare.len() < whole.len() => {
            Clean { value: Secret::new(bare), left_out: Some("white space") }
        }
        None => Clean { value: value.clone(), left_out: None },
    }
}

fn token(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    if text.contains("-----BEGIN ") {
        return Err("it is a PEM block, and a token is wanted: one word".to_owned());
    }
    if text.chars().any(char::is_whitespace) {
        return Err("it holds white space, and a token is wanted: one word".to_owned());
    }
    if text.chars().any(char::is_control) {
        return Err("it holds a control character".to_owned());
    }
    Ok(())
}

fn age_key(text: &str) -> Result<(), String> {
    let mut keys =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let is_key = |line: &str| {
        line.strip_prefix("AGE-SECRET-KEY-").is_some_and(|rest| {
            rest.len() >= 50
                && rest.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'-')
        })
    };
    match (keys.next(), keys.next()) {
        (Some(key), None) if is_key(key) => Ok(()),
        (Some(_), Some(_)) => {
            Err("it holds several lines, and one private key of age is wanted".to_owned())
        }
        (Some(key), None) if key.starts_with("age1") => {
            Err("it is a recipient of age (the public half), and the private key is wanted"
                .to_owned())
        }
        _ => Err("it is not a private key of age: AGE-SECRET-KEY-…".to_owned()),
    }
}

/// Blocks of PEM: each begun and ended on lines of their own, with base64 between.
fn pem(text: &str) -> Result<(), String> {
    if !text.contains('\n') && text.contains("\\n") {
        return Err("its line breaks are written as \\n: store it with real ones".to_owned());
    }
    let (mut open, mut blocks, mut empty): (Option<&str>, u32, bool) = (None, 0, true);
    for line in text.lines().map(str::trim_end) {
        let label = |edge: &str| line.strip_prefix(edge)?.strip_suffix("-----");
        match (open, label("-----BEGIN "), label("-----END ")) {
            (None, Some(begun), _) => (open, empty) = (Some(begun), true),
            (Some(begun), _, Some(ended)) if begun == ended && !empty => {
                open = None;
                blocks += 1;
            }
            (Some(_), None, None) => {
                let body = |b: u8| b.is_ascii_alphanumeric() || b"+/=: -,".contains(&b);
                if !line.bytes().all(body) {
                    return Err(format!(
                        "block {} of its PEM holds something else than base64",
                        blocks + 1
                    ));
                }
                empty &= line.is_empty();
            }
            // Words around blocks are allowed.
            (None, None, None) => {}
            (Some(_), _, Some(_)) if empty => {
                return Err(format!("block {} of its PEM is empty", blocks + 1));
            }
            _ => {
                return Err(format!(
                    "block {} of its PEM is not begun and ended properly",
                    blocks + 1
                ));
            }
        }
    }
    match (open, blocks) {
        (Some(_), _) => Err(format!("block {} of its PEM has no end: was it cut?", blocks + 1)),
        (None, 0) => Err("it holds no PEM block: -----BEGIN …".to_owned()),
        _ => Ok(()),
    }
}

fn yaml(text: &str) -> Result<(), String> {
    check_yaml(text).map_err(|error| match error {
        // The place without the words: those may repeat a piece of the value.
        SopsError::Syntax { line, .. } => format!("it is not YAML (line {line})"),
        other => format!("it is not YAML that can be used ({other})"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(shape: Shape, text: &str) -> Result<(String, Option<&'static str>), String> {
        clean(shape, &Secret::new(text)).map(|c| (c.value.expose().to_owned(), c.left_out))
    }

    #[test]
    fn what_is_pasted_around_a_token_is_left_out_and_said() {
        for (text, left_out) in [
            ("ghp_x", None),
            (" ghp_x\n", Some("white space")),
            ("\"ghp_x\"", Some("quotes")),
            ("'ghp_x'\n", Some("quotes")),
            ("\" ghp_x \"", Some("quotes")),
        ] {
            assert_eq!(cleaned(Shape::Token, text), Ok(("ghp_x".to_owned(), left_out)), "{text:?}");
        }
        // A quote that belongs to the token is no pair around it.
        assert_eq!(cleaned(Shape::Token, "\"a").unwrap().0, "\"a");
        for wrong in ["a b", "", " ", "\"\"", "-----BEGIN X-----", "a\u{7}"] {
            assert!(cleaned(Shape::Token, wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn bodies_are_never_touched() {
        let pem = "-----BEGIN CERTIFICATE-----\nMIIB\nAA==\n-----END CERTIFICATE-----\n\n";
        assert_eq!(cleaned(Shape::Pem, pem), Ok((pem.to_owned(), None)));
        let free = "  \"two words\"  \n";
        assert_eq!(cleaned(Shape::Free, free), Ok((free.to_owned(), None)));
        let yaml = "a: 1\n\n\n";
        assert_eq!(cleaned(Shape::Yaml, yaml), Ok((yaml.to_owned(), None)));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_value() {
        let wrong = [
            (Shape::Pem, "hunter2"),
            (Shape::Pem, "-----BEGIN KEY-----\nhunter2\n"),
            (Shape::Pem, "-----BEGIN KEY-----\nhunter2!\n-----END KEY-----"),
            (Shape::Pem, "-----BEGIN KEY-----\\nhunter2\\n-----END KEY-----"),
            (Shape::Pem, "-----BEGIN A-----\nhunter2\n-----END B-----"),
            (Shape::Pem, "-----BEGIN KEY-----\n-----END KEY-----\nhunter2\n"),
            (Shape::AgeKey, "hunter2"),
            (Shape::AgeKey, "age1hunter2"),
            (Shape::Yaml, "a: [hunter2"),
            (Shape::Yaml, "hunter2: 1: 2"),
            (Shape::Token, "hunter2 hunter2"),
        ];
        for (shape, text) in wrong {
            let why = cleaned(shape, text).unwrap_err();
            assert!(!why.contains("hunter2"), "{shape}: {why}");
        }
    }

    #[test]
    fn yaml_that_nobody_writes_by_accident_is_answered_soon() {
        for open in ["[", "{a: ", "- ", "? "] {
            let why = cleaned(Shape::Yaml, &open.repeat(1_000_000)).unwrap_err();
            assert!(why.starts_with("it is not YAML"), "{why}");
        }
    }

    #[test]
    fn a_key_of_age_may_stand_in_its_file_with_comments() {
        let key = format!("AGE-SECRET-KEY-1{}", "Q".repeat(58));
        assert!(cleaned(Shape::AgeKey, &format!("# created: 2026\n{key}\n")).is_ok());
        assert!(cleaned(Shape::AgeKey, &format!("{key}\n{key}")).is_err());
    }
}
