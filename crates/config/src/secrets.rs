//! Finds secrets that were written into a castle file, and hides them wherever the file is shown.

use std::ops::Range;

use crate::finding::{Finding, Findings};
use crate::mask::{blank, masked};
use crate::scan::boundary;

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
/// The least length of the first two parts of a JSON web token.
const PART_LEAST: usize = 10;
/// How the header of an API token of Proxmox begins.
const PROXMOX: &str = "PVEAPIToken=";
/// How far before a key of AWS its name is looked for.
const NAME_MAX: usize = 64;

/// Whether a text holds something that has the shape of a well-known secret.
pub(crate) fn looks_like_secret(text: &str) -> bool {
    !find_secrets(text).is_empty()
}

/// Every well-known secret in a text, and what it is.
pub(crate) fn find_secrets(text: &str) -> Found {
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
    private_keys(text, &mut found);
    addresses(text, &mut found);
    tokens(text, &mut found);
    access_keys(text, &mut found);
    found.sort_by_key(|(range, _)| (range.start, range.end));
    // Two shapes of one secret are one secret, so that it is reported and replaced once.
    found.dedup_by(|next, first| {
        let same = next.0.start < first.0.end;
        first.0.end = if same { first.0.end.max(next.0.end) } else { first.0.end };
        same
    });
    found
}

type Found = Vec<(Range<usize>, &'static str)>;

fn private_keys(text: &str, found: &mut Found) {
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
}

fn addresses(text: &str, found: &mut Found) {
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
}

/// Tokens with a form of their own: those of JSON (three parts of base64, the first an object) and of Proxmox.
fn tokens(text: &str, found: &mut Found) {
    let run = |at: usize| {
        let part = |b: &&u8| b.is_ascii_alphanumeric() || b"_-".contains(*b);
        text.as_bytes()[at.min(text.len())..].iter().take_while(part).count()
    };
    let mut done = 0;
    for (at, _) in text.match_indices("eyJ") {
        if at < done {
            continue;
        }
        let first = at + run(at);
        let second = first + 1 + run(first + 1);
        let third = second + 1 + run(second + 1);
        let dots = [first, second].iter().all(|dot| text.as_bytes().get(*dot) == Some(&b'.'));
        done = first;
        if dots && first - at >= PART_LEAST && second - first > PART_LEAST {
            done = third.min(text.len());
            found.push((at..done, "a JSON web token"));
        }
    }
    done = 0;
    for (at, begin) in text.match_indices(PROXMOX) {
        if at < done {
            continue;
        }
        let start = at + begin.len();
        let end = text[start..].find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`'));
        let end = end.map_or(text.len(), |end| start + end);
        done = end;
        if end > start {
            found.push((start..end, "an API token of Proxmox"));
        }
    }
}

/// The two halves of an access key of AWS: the id by its beginning; the secret, which may be any base64, only
/// after a name on its line that says so.
fn access_keys(text: &str, found: &mut Found) {
    let inside = |b: u8| b.is_ascii_alphanumeric() || b"/+".contains(&b);
    let mut start = 0;
    for piece in text.split_inclusive(|c: char| !c.is_ascii() || !inside(c as u8)) {
        let word = piece.trim_end_matches(|c: char| !c.is_ascii() || !inside(c as u8));
        let range = start..start + word.len();
        let has = |what: fn(&u8) -> bool| word.bytes().any(|b| what(&b));
        if word.len() == 20
            && (word.starts_with("AKIA") || word.starts_with("ASIA"))
            && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
        {
            found.push((range, "an access key id of AWS"));
        } else if word.len() == 40
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_lowercase)
            && has(u8::is_ascii_digit)
            && is_named_before(text, start)
        {
            found.push((range, "a secret key of AWS"));
        }
        start += piece.len();
    }
}

/// Whether shortly before this place, on its line, something is named that a key of AWS may belong to.
fn is_named_before(text: &str, at: usize) -> bool {
    let near = &text[boundary(text, at.saturating_sub(NAME_MAX))..at];
    let near = near.rsplit('\n').next().unwrap_or_default().to_ascii_lowercase();
    ["aws", "secret", "key"].iter().any(|word| near.contains(word))
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

/// The finding about a plain value in an object under a name that is one of a secret.
pub(crate) fn named_secret(name: &str, range: &Range<usize>) -> Finding {
    Finding::error("C0305", format!("`{name}` sounds like a secret, and here stands a plain value"))
        .at(range, "not shown")
        .hidden()
        .note("a castle file is kept in Git, where a secret stays for good")
        .note("`vars` become a ConfigMap, which many may read")
        .help("put it into the secret source and bring it into the cluster by an ExternalSecret; if it is no secret, give it another name")
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
    let hidden =
        findings.iter().filter(|f| f.secret).filter_map(|f| f.place.map(|p| p.start..p.end));
    let known = find_secrets(text).into_iter().map(|(range, _)| range);
    blank(text, hidden.chain(known).chain(masked(text)))
}
