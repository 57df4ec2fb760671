//! Knows which settings sound like secrets, and where their values stand in the text, whatever form they have.
//!
//! It works on the text and not on the syntax tree: a file that does not even parse is shown too.

use std::ops::Range;

use castle_model::deadline::TABLE;
use castle_model::spec::BUILT_IN_LAYERS;

use crate::function::FUNCTIONS;
use crate::grammar::{Block, CASTLE, Kind};
use crate::scan::{line_around, unclosed_quotes, value_end};
use crate::suggest::nearest;

/// Pieces of a name that make it sound like a secret wherever they stand in it.
const PIECES: &[&str] =
    &["passw", "passphrase", "secret", "token", "credential", "apikey", "privatekey"];
/// Whole words of a name that do so.
const WORDS: &[&str] = &[
    "pass", "pwd", "pw", "key", "keys", "auth", "cred", "creds", "bearer", "jwt", "psk", "otp",
    "pin", "salt",
];
/// Last words of a name that make it the name of something about a secret, not of the secret itself.
const ABOUT: &[&str] = &[
    "name",
    "names",
    "namespace",
    "ref",
    "path",
    "file",
    "url",
    "issuer",
    "length",
    "policy",
    "store",
    "provider",
    "enabled",
    "ttl",
    "age",
    "days",
    "type",
    "id",
];
/// Last words of a name that say that the value is the secret itself.
const PLAIN: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "credential",
    "credentials",
    "apikey",
    "jwt",
    "psk",
];
/// A setting that sounds like a secret and is a choice of words; those are shown, anything else in its place is not.
const CHOICE: (&str, [&str; 2]) = ("credentials", ["\"engine\"", "\"direct\""]);
/// The longest name that is shown as that of a function; what is longer may be anything.
const FUNCTION_MAX: usize = 24;
/// What joins a line to the next one in somebody's mind.
const JOINS: [char; 8] = ['=', ':', '+', '\\', '.', '?', '&', '|'];
/// The most lines that a value may go on.
const OPEN_LINES: usize = 64;

/// Whether the value of a setting of this name may be a secret, so that it is not shown. Generous on purpose.
pub(crate) fn sounds_secret(name: &str) -> bool {
    let keys = secret_keys(&CASTLE);
    let lower = name.to_ascii_lowercase();
    if keys.contains(&lower.as_str()) {
        return true;
    }
    if name.is_empty() || (is_known(&lower) && lower != CHOICE.0) {
        return false;
    }
    PIECES.iter().any(|piece| lower.contains(piece))
        || words(name).iter().any(|word| WORDS.contains(&word.as_str()))
        || lower.ends_with("key")
        || (lower.len() > 3
            && nearest(&lower, keys.into_iter().filter(|key| *key != "username")).is_some())
}

/// Whether the name says that its value is a secret. Strict on purpose: a plain value is then refused.
pub(crate) fn is_name_of_secret(name: &str) -> bool {
    let words = words(name);
    let Some(last) = words.last().map(String::as_str) else { return false };
    let before = words.len().checked_sub(2).map(|i| words[i].as_str());
    let lower = name.to_ascii_lowercase();
    (lower.contains("passw") && !ABOUT.contains(&last))
        || PLAIN.contains(&last)
        || (last == "key" && matches!(before, Some("api" | "access" | "secret" | "private")))
}

/// Whether a name may be shown as that of a function that was misspelt: it looks like one.
pub(crate) fn is_function_name(name: &str) -> bool {
    FUNCTIONS.iter().any(|f| f.name == name)
        || (name.len() <= FUNCTION_MAX
            && !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
}

/// The words of `snake_case`, `kebab-case` and `camelCase`, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut lower_before = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && lower_before) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        lower_before = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

fn secret_keys(block: &Block) -> Vec<&'static str> {
    let own = block.attributes.iter().filter(|a| a.kind == Kind::Secret).map(|a| a.key);
    own.chain(block.blocks.iter().flat_map(secret_keys)).collect()
}

/// Whether a word is one of the castle file that has nothing secret behind it.
fn is_known(word: &str) -> bool {
    CASTLE.knows(word)
        || TABLE.iter().any(|entry| entry.key == word)
        || BUILT_IN_LAYERS.contains(&word)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Where values stand that may be secrets by the names of their settings, in order.
pub(crate) fn masked(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let (mut at, mut line_end) = (0, line_around(text, 0).end);
    while at < text.len() {
        if at > line_end {
            line_end = line_around(text, at).end;
        }
        match setting(text, at..line_end) {
            Some(from) => {
                let (from, over) = skip_reference(text, from);
                let end = if over { from } else { end(text, from) };
                if !over {
                    ranges.push(skip_function(text, from)..end);
                }
                // The rest of the line may hold another setting.
                at = end.max(at + 1);
            }
            None => at = line_end + 1,
        }
        while !text.is_char_boundary(at.min(text.len())) {
            at += 1;
        }
    }
    ranges
}

/// Where what follows the first name that sounds like a secret begins, in a line or the rest of one.
fn setting(text: &str, line: Range<usize>) -> Option<usize> {
    let content = &text[line.clone()];
    let first = content.trim_start();
    let indent = content.len() - first.len();
    let word = &first[..first.find(|c| !is_word(c)).unwrap_or(first.len())];
    let whole = line.start == 0 || text.as_bytes()[line.start - 1] == b'\n';
    if whole && sounds_secret(word) && !is_misspelt_block(word, content) {
        let from = line.start + indent + word.len();
        let rest = text[from..].trim_start_matches([' ', '\t', '\r']);
        // A name alone on its line is followed by its value only if the next line goes on with `=`.
        let alone = rest.is_empty() || rest.starts_with('\n');
        if (!alone && !rest.starts_with('(')) || (alone && rest.trim_start().starts_with('=')) {
            let value = rest.trim_start();
            return Some(text.len() - value.strip_prefix(['=', ':']).unwrap_or(value).len());
        }
    }
    content.match_indices(['=', ':']).find_map(|(at, _)| {
        let before = content[..at].trim_end().trim_end_matches(['"', ')', '\'']);
        let word = before.rsplit(|c| !is_word(c)).next().unwrap_or_default();
        // `secrets` is a block; with a value after it, somebody took it for a setting.
        (sounds_secret(word) || word == "secrets").then_some(line.start + at + 1)
    })
}

/// Where values stand in a sentence that were written right after a name, as in `password=…`.
pub(crate) fn assigned(sentence: &str) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (at, _) in sentence.match_indices('=') {
        let word = sentence[..at].rsplit(|c| !is_word(c)).next().unwrap_or_default();
        let value = &sentence[at + 1..];
        let length = value.find(|c: char| c.is_whitespace() || "\"`".contains(c));
        let length = length.unwrap_or(value.len());
        let first = ranges.last().is_none_or(|last| last.end <= at);
        if first && length > 0 && sounds_secret(word) && !value.starts_with("secret(") {
            ranges.push(at + 1..at + 1 + length);
        }
    }
    ranges
}

/// A line such as `secretss "infisical" {` opens a block; what it holds is looked at by itself.
fn is_misspelt_block(word: &str, line: &str) -> bool {
    line.trim_end().ends_with('{')
        && nearest(word, CASTLE.blocks.iter().map(|b| b.keyword)).is_some()
}

/// Where a call of `secret` with a proper key ends (or a word of a choice), which is shown, and whether nothing follows it.
fn skip_reference(text: &str, from: usize) -> (usize, bool) {
    let rest = text[from..].trim_start_matches([' ', '\t']);
    let after = rest.strip_prefix("secret(\"").and_then(|inside| {
        let key = inside.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c))?;
        inside[key..].strip_prefix("\")")
    });
    let after = after.or_else(|| CHOICE.1.into_iter().find_map(|word| rest.strip_prefix(word)));
    let Some(after) = after else { return (from, false) };
    let next = after.trim_start_matches([' ', '\t', '\r']);
    let over = next.is_empty() || next.starts_with(['\n', '#', ',', '}']) || next.starts_with("//");
    (text.len() - after.len(), over)
}

/// Where the arguments begin of a function that is called in the beginning: its name is no value.
fn skip_function(text: &str, from: usize) -> usize {
    let rest = text[from..].trim_start_matches([' ', '\t']);
    match rest.split_once('(') {
        Some((name, after)) if is_function_name(name) => text.len() - after.len(),
        _ => from,
    }
}

/// Where the value that begins here ends, rather too late than too early.
fn end(text: &str, from: usize) -> usize {
    let line = line_around(text, from);
    let before = &text[line.start..from];
    if before.contains('#') || before.trim_start().starts_with("//") {
        return line.end;
    }
    let Some(end) = value_end(text, from) else {
        return if before.ends_with(':') { line.end } else { text.len() };
    };
    let mut end = line_around(text, end).end;
    // A quote that is not closed may go on in the next lines, until a line that is clearly a setting; so may a
    // value that has not begun or is not finished.
    let mut open = !unclosed_quotes(&text[from..text.len().min(end + 1)]).is_empty();
    let mut last = text[from..end].trim();
    for _ in 0..OPEN_LINES {
        let next = line_around(text, end + 1);
        let content = text[next.clone()].trim();
        let word = content.split(|c| !is_word(c)).next().unwrap_or_default();
        let goes_on = open || last.is_empty() || last.ends_with(JOINS) || is_continued(content);
        if !goes_on || next.end <= end || content.starts_with('}') || is_known(word) {
            break;
        }
        open = open && !content.contains('"');
        last = content;
        end = next.end;
    }
    end
}

/// Whether a line goes on with a value: it begins with a text that is not the key of a setting.
fn is_continued(line: &str) -> bool {
    let Some((_, after)) = line.strip_prefix('"').and_then(|rest| rest.split_once('"')) else {
        return line.starts_with(['"', '+', '.', '?', '&', '|']);
    };
    !after.trim_start().starts_with(['=', ':'])
}

/// The text with these ranges blanked, byte for byte, so that places stay the same.
pub(crate) fn blank(text: &str, ranges: impl IntoIterator<Item = Range<usize>>) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for range in ranges {
        let end = range.end.min(bytes.len());
        for byte in &mut bytes[range.start.min(end)..end] {
            if !matches!(byte, b'\n' | b'\r' | b'"' | b' ' | b'(' | b')') {
                *byte = b'*';
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| " ".repeat(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        blank(text, masked(text))
    }

    #[test]
    fn names_that_sound_secret_do_and_words_of_the_file_do_not() {
        for name in [
            "token_secret",
            "token_secrt",
            "tokn",
            "passwd",
            "db_password",
            "dbPassword",
            "api-key",
            "sshKey",
            "PASSPHRASE",
            "aws_credentials",
            "client.secret",
            "pwd",
        ] {
            assert!(sounds_secret(name), "{name}");
        }
        for name in ["secrets", "store", "domain", "cluster_name", "node", "monkeys", "talos", ""] {
            assert!(!sounds_secret(name), "{name}");
        }
    }

    #[test]
    fn names_of_secrets_are_told_from_names_about_secrets() {
        for name in ["db_password", "dbPassword", "api_key", "admin-token", "passwords", "apikey"] {
            assert!(is_name_of_secret(name), "{name}");
        }
        for name in ["password_secret_name", "token_issuer", "key", "ssh_key", "domain", "secrets"]
        {
            assert!(!is_name_of_secret(name), "{name}");
        }
    }

    #[test]
    fn values_are_blanked_and_the_rest_is_not() {
        for (text, expected) in [
            ("token = \"ab c\"\nx = 1\n", "token = \"** *\"\nx = 1\n"),
            ("token = ab.c\nx = 1", "token = ****\nx = 1"),
            ("token = secret(\"A\") # b\n", "token = secret(\"A\") # b\n"),
            ("token = secret(\"A\") + \"b\"\n", "token = secret(\"A\") * \"*\"\n"),
            ("token = secret(\"a b!\")\n", "token = secret(\"* **\")\n"),
            ("token = secrt(\"A\")\n", "token = secrt(\"*\")\n"),
            ("token = Ab1(\"A\")\n", "token = ***(\"*\")\n"),
            ("token ab c\n", "token ** *\n"),
            ("token \"ab\"\nx\n", "token \"**\"\nx\n"),
            ("token\n = ab\nx\n", "token\n = **\nx\n"),
            ("token = \"ab\ncd\"\nnode = 1\n", "token = \"**\n**\"\nnode = 1\n"),
            ("token = \"ab\nnode = \"x\"\n", "token = \"**\nnode = \"x\"\n"),
            ("token = <<E\nab\nE\nx\n", "token = ***\n**\n*\nx\n"),
            ("v = { a = 1, \"b_pw\" = \"x\" }\ny", "v = { a = 1, \"b_pw\" = \"*\" *\ny"),
            ("v = { t_token = secret(\"A\"), pw : 7 }", "v = { t_token = secret(\"A\"), pw : * *"),
            ("# passwd: ab [\nx\n", "# passwd: ** *\nx\n"),
            ("passwd \"ab\" {\n v = \"cd\"\n}\nx\n", "passwd \"**\" *\n * * \"**\"\n*\nx\n"),
            ("secretss \"infisical\" {\n", "secretss \"infisical\" {\n"),
            ("token =\n\n  \"ab\"\nnode = 1\n", "token =\n\n  \"**\"\nnode = 1\n"),
            ("token = \"a\" +\n \"b\"\nnode = 1\n", "token = \"*\" *\n \"*\"\nnode = 1\n"),
            ("token = \"a\"\n \"b\"\n\"c\" = 1\n", "token = \"*\"\n \"*\"\n\"c\" = 1\n"),
            ("token =\nnode = 1\n", "token =\nnode = 1\n"),
            ("credentials = \"engine\"\nx\n", "credentials = \"engine\"\nx\n"),
            ("credentials = \"engines\"\nx\n", "credentials = \"*******\"\nx\n"),
            ("secrets = ab\n", "secrets = **\n"),
            ("é = 1 # é\ntoken = é\n", "é = 1 # é\ntoken = **\n"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}
