//! Finds secrets that were written into a castle file, and hides them wherever the file is shown.

use std::ops::Range;

use crate::finding::{Finding, Findings};
use crate::grammar::{Block, CASTLE, Kind};

/// How a well-known secret begins, how many further characters it has at least, and what it is.
const SHAPES: &[(&str, usize, &str)] = &[
    ("AGE-SECRET-KEY-", 20, "the private key of age"),
    ("github_pat_", 20, "a token of GitHub"),
    ("ghp_", 20, "a token of GitHub"),
    ("gho_", 20, "a token of GitHub"),
    ("ghs_", 20, "a token of GitHub"),
    ("glpat-", 16, "a token of GitLab"),
    ("xoxb-", 20, "a token of Slack"),
    ("hvs.", 20, "a token of Vault"),
];

const PEM_BEGIN: &str = "-----BEGIN ";
const PEM_KEY: &str = "PRIVATE KEY-----";
/// No title of a PEM block is longer.
const PEM_TITLE_MAX: usize = 64;

/// Whether a text holds something that has the shape of a well-known secret.
pub(crate) fn looks_like_secret(text: &str) -> bool {
    !find_secrets(text).is_empty()
}

/// Every well-known secret in a text, and what it is.
pub(crate) fn find_secrets(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut found = Vec::new();
    for (begin, least, what) in SHAPES {
        // A run of beginnings is one secret: each byte is looked at once.
        let mut done = 0;
        for (at, _) in text.match_indices(begin) {
            if at < done {
                continue;
            }
            let tail = text.as_bytes()[at + begin.len()..]
                .iter()
                .take_while(|b| b.is_ascii_alphanumeric() || b"_-".contains(b))
                .count();
            done = at + begin.len() + tail;
            if tail >= *least {
                found.push((at..at + begin.len() + tail, *what));
            }
        }
    }
    let mut done = 0;
    for (at, _) in text.match_indices(PEM_BEGIN) {
        if at < done {
            continue;
        }
        let title = &text.as_bytes()[at..text.len().min(at + PEM_TITLE_MAX)];
        let key = title.windows(PEM_KEY.len()).position(|w| w == PEM_KEY.as_bytes());
        if let Some(key) = key.filter(|key| !title[..*key].contains(&b'\n')) {
            let body = at + key + PEM_KEY.len();
            let length = text[body..].find("-----END ").unwrap_or(text.len() - body);
            done = body + length;
            found.push((at..done, "a private key"));
        }
    }
    for (at, _) in text.match_indices("://") {
        let rest = &text[at + 3..];
        let end = rest
            .find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '?'))
            .unwrap_or(rest.len());
        let Some((user, _)) = rest[..end].rsplit_once('@') else { continue };
        if let Some((name, password)) =
            user.split_once(':').filter(|(_, p)| !p.is_empty() && !p.contains("${"))
        {
            let start = at + 3 + name.len() + 1;
            found.push((start..start + password.len(), "a password in an address"));
        }
    }
    found.sort_by_key(|(range, _)| range.start);
    found
}

/// Reports every well-known secret in the text of the file, comments included.
pub(crate) fn report(text: &str, findings: &mut Findings) {
    for (range, what) in find_secrets(text) {
        findings.add(standing_secret(what, &range));
    }
}

/// The finding about a secret that stands in the file.
pub(crate) fn standing_secret(what: &str, range: &Range<usize>) -> Finding {
    Finding::error("C0303", format!("{what} stands in the castle file"))
        .at(range, "not shown")
        .hidden()
        .note("a castle file is kept in Git, where a secret stays for good")
        .note("renew it: it must be taken as known")
        .help("put it into the secret source and write secret(\"KEY\") here")
}

/// The finding about a plain value in the place of a secret.
pub(crate) fn plain_value(key: &str, range: &Range<usize>) -> Finding {
    let name = match key {
        "token_id" => "PROXMOX_TOKEN_ID",
        "token_secret" => "PROXMOX_TOKEN_SECRET",
        _ => "GITHUB_TOKEN",
    };
    Finding::error("C0302", format!("`{key}` is a secret, and here stands a plain value"))
        .at(range, "not shown")
        .hidden()
        .note("a castle file is kept in Git, where a secret stays for good")
        .help(format!("put it into the secret source and write {key} = secret(\"{name}\")"))
}

/// The text with every secret in it blanked, byte for byte, so that places stay the same.
pub(crate) fn hide(text: &str, findings: &[Finding]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let hidden =
        findings.iter().filter(|f| f.secret).filter_map(|f| f.place.map(|p| p.start..p.end));
    let known = find_secrets(text).into_iter().map(|(range, _)| range);
    for range in hidden.chain(known).chain(secret_lines(text)) {
        let end = range.end.min(bytes.len());
        for byte in &mut bytes[range.start.min(end)..end] {
            if !matches!(byte, b'\n' | b'\r' | b'"' | b' ') {
                *byte = b'*';
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| " ".repeat(text.len()))
}

/// What follows the keys of secrets line by line, unless it is a call of `secret`: text that does not even parse
/// may be shown too.
fn secret_lines(text: &str) -> Vec<Range<usize>> {
    let keys = secret_keys(&CASTLE);
    let mut start = 0;
    let mut ranges = Vec::new();
    for line in text.split_inclusive('\n') {
        for (equals, _) in line.match_indices('=') {
            let before = line[..equals].trim_end();
            let key = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next();
            let value = line[equals + 1..].trim_start();
            if key.is_some_and(|k| keys.contains(&k)) && !value.starts_with("secret(\"") {
                ranges.push(start + equals + 1..start + line.len());
                break;
            }
        }
        start += line.len();
    }
    ranges
}

fn secret_keys(block: &Block) -> Vec<&'static str> {
    let own = block.attributes.iter().filter(|a| a.kind == Kind::Secret).map(|a| a.key);
    own.chain(block.blocks.iter().flat_map(secret_keys)).collect()
}
