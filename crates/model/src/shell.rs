//! Words as a shell reads them: what is shown to be copied must mean one thing, whatever is in the name of a folder.

use std::fmt::Display;

/// A word for a command line, in quotes where it needs them.
#[must_use]
pub fn word(text: impl Display) -> String {
    let text = text.to_string();
    let plain = |c: char| c.is_alphanumeric() || "_-./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The beginning of a command that needs the variables of a file.
#[must_use]
pub fn with_environment(file: impl Display) -> String {
    format!("env -S \"$(cat {})\"", word(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_needs_quotes_gets_them() {
        assert_eq!(word("/srv/anna/served.hcl"), "/srv/anna/served.hcl");
        assert_eq!(word("/srv/anna k/$x"), "'/srv/anna k/$x'");
        assert_eq!(word("it's"), "'it'\\''s'");
        assert_eq!(word(""), "''");
        assert_eq!(with_environment("/a b/c"), "env -S \"$(cat '/a b/c')\"");
    }
}
