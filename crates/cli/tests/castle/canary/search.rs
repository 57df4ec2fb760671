//! Finds canaries in bytes, in every form in which a program would write them without meaning to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::inflate::unpacked;

/// Shorter than this, a form could stand anywhere by chance.
const SHORTEST: usize = 12;

/// How deep packed streams are looked into.
const DEEPEST: usize = 3;

/// The forms of one text, each with its name; the plainest first.
type Forms = Vec<(&'static str, Vec<u8>)>;

/// Everything that is searched for.
pub(crate) struct Search {
    /// Patterns by how they begin, each with which canary in which form it is.
    patterns: Vec<Vec<(Vec<u8>, String)>>,
}

impl Search {
    /// A search for texts, each under the name that a hit is told by: a hit must not show the secret itself.
    pub(crate) fn new(canaries: &BTreeMap<String, Vec<u8>>) -> Self {
        let mut patterns = BTreeMap::new();
        for (name, canary) in canaries {
            for part in parts(canary) {
                for (form, pattern) in forms(part) {
                    if pattern.len() >= SHORTEST {
                        patterns.entry(pattern).or_insert_with(|| format!("{name} ({form})"));
                    }
                }
            }
        }
        let mut by_beginning = vec![Vec::new(); 1 << 16];
        for (pattern, name) in patterns {
            by_beginning[beginning(pattern[0], pattern[1])].push((pattern, name));
        }
        Self { patterns: by_beginning }
    }

    /// Which canaries are in some bytes, and in which form.
    pub(crate) fn hits(&self, place: &str, bytes: &[u8]) -> BTreeSet<String> {
        let mut hits = BTreeSet::new();
        self.look(place, bytes, 0, &mut hits);
        hits
    }

    fn look(&self, place: &str, bytes: &[u8], depth: usize, hits: &mut BTreeSet<String>) {
        // Codes are broken into lines, with and without an indent: they are read across.
        let joined: Vec<u8> =
            bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        for text in [bytes, &joined] {
            for (start, two) in text.windows(2).enumerate() {
                for (pattern, name) in &self.patterns[beginning(two[0], two[1])] {
                    if text[start..].starts_with(pattern) {
                        hits.insert(format!("{name} in {place}"));
                    }
                }
            }
        }
        if depth == DEEPEST {
            return;
        }
        for start in 0..bytes.len() {
            if let Some(inside) = unpacked(&bytes[start..]) {
                self.look(&format!("{place}, packed"), &inside, depth + 1, hits);
            }
        }
        // A packed stream in base64 always begins like this.
        for (start, _) in joined.windows(4).enumerate().filter(|(_, four)| four == b"H4sI") {
            let code = joined[start..].iter().copied();
            let code: Vec<u8> =
                code.take_while(|b| b.is_ascii_alphanumeric() || b"+/".contains(b)).collect();
            if let Ok(bytes) = STANDARD.decode(&code[..code.len() / 4 * 4]) {
                self.look(&format!("{place}, in base64"), &bytes, depth + 1, hits);
            }
        }
    }

    /// Which canaries are in the files and file names below a folder, but for what is excepted.
    pub(crate) fn hits_below(&self, folder: &Path, excepted: &[PathBuf]) -> BTreeSet<String> {
        let mut hits = BTreeSet::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.symlink_metadata().unwrap().file_type();
            hits.extend(self.hits("a file name", path.as_os_str().as_encoded_bytes()));
            if excepted.contains(&path) {
                continue;
            }
            if kind.is_dir() {
                hits.extend(self.hits_below(&path, excepted));
            } else if kind.is_file() {
                hits.extend(self.hits(&path.display().to_string(), &std::fs::read(&path).unwrap()));
            }
        }
        hits
    }
}

fn beginning(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

/// A text and its lines: YAML and logs indent them, and a line is as secret as the whole.
fn parts(canary: &[u8]) -> BTreeSet<&[u8]> {
    let mut parts: BTreeSet<&[u8]> =
        canary.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).collect();
    parts.retain(|part| part.len() >= SHORTEST && !part.starts_with(b"-----"));
    parts.insert(canary);
    parts
}

/// Every form of a text.
fn forms(canary: &[u8]) -> Forms {
    let mut forms = vec![("raw", canary.to_vec())];
    for code in in_base64(canary) {
        forms.extend(in_base64(&code).map(|twice| ("base64 twice", twice)));
        forms.push(("base64", code));
    }
    let hex = hex(canary);
    forms.push(("hex", hex.to_uppercase().into_bytes()));
    forms.push(("hex", hex.into_bytes()));
    for (plain, space) in [("-_.~", "%20"), ("-_.~/", "%20"), ("-_.*", "+"), ("-_.!~*'()", "%20")] {
        for upper in [true, false] {
            forms.push(("URL-escaped", in_url(canary, plain, space, upper)));
        }
    }
    if let Ok(text) = std::str::from_utf8(canary) {
        let json = in_json(text, |_| false);
        forms.push(("JSON in JSON", in_json(&json, |_| false).into_bytes()));
        forms.push(("JSON-escaped", json.replace('/', "\\/").into_bytes()));
        forms.push(("JSON-escaped", json.into_bytes()));
        let html = |c| "<>&\u{2028}\u{2029}".contains(c);
        forms.push(("JSON-escaped", in_json(text, html).into_bytes()));
        let ascii = in_json(text, |c| !c.is_ascii());
        forms.push(("JSON-escaped", ascii.into_bytes()));
        let shown = format!("{text:?}");
        forms.push(("shown by Debug", shown.as_bytes()[1..shown.len() - 1].to_vec()));
    }
    forms
}

/// The digits that only depend on the text, wherever it begins in a stream and whatever stands around it.
fn in_base64(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    [&STANDARD, &URL_SAFE].into_iter().flat_map(move |engine| {
        (0..3_usize).map(move |before| {
            let code = engine.encode([&[0; 2][..before], text].concat());
            let whole = (before + text.len()) * 8 / 6;
            code.as_bytes()[(before * 8).div_ceil(6)..whole].to_vec()
        })
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn in_url(bytes: &[u8], plain: &str, space: &str, upper: bool) -> Vec<u8> {
    let mut text = String::new();
    for byte in bytes {
        match (byte, upper) {
            (b' ', _) => text.push_str(space),
            (b, _) if b.is_ascii_alphanumeric() || plain.as_bytes().contains(b) => {
                text.push(char::from(*b));
            }
            (b, true) => write!(text, "%{b:02X}").unwrap(),
            (b, false) => write!(text, "%{b:02x}").unwrap(),
        }
    }
    text.into_bytes()
}

/// As serde writes it, with more characters as numbers if somebody wants them so.
fn in_json(text: &str, as_number: impl Fn(char) -> bool) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    let mut escaped = String::new();
    for c in quoted[1..quoted.len() - 1].chars() {
        if as_number(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(escaped, "\\u{unit:04x}").unwrap();
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}
