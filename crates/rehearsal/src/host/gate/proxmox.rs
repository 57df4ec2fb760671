//! Heads as Proxmox' daemon reads them: of what libpve-http-server-perl's `AnyEvent.pm` does with lines, these are the facts.
//!
//! A line ends with LF, before which CR may stand. A request is found anywhere in its line: two words and a version, with
//! one space between; empty lines before it do not count. A version other than 1 is answered 506, a URL with `@` before its
//! first slash 400, a line that is nothing of this 400. Of the lines after it 63 may come, and less than 8 KiB of them: at
//! the next one the daemon dies in a place where nobody answers, and the connection with it five seconds later. A line that
//! has no name and no colon, nor begins with a space, is answered 506; then come methods that are not known, and encodings.
//! Until the request is found answers are of HTTP/1.0. More than 64 KiB without an end of line is cut off without a word.

use bytes::Bytes;
use castle_model::time::Moment;

use super::head::{Plain, Reader, Verdict, bare, date, is};
use super::target;

/// At how many lines, and at how many bytes of them, it dies.
const LINES_MAX: usize = 64;
const HEAD_MAX: usize = 8 * 1024;
/// The longest line that may come.
const LINE_MAX: usize = 64 * 1024;
const METHODS: [&[u8]; 4] = [b"GET", b"POST", b"PUT", b"DELETE"];

/// A head that is being read.
pub(super) struct Head {
    now: Moment,
    request: Option<Request>,
    lines: usize,
    size: usize,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
}

struct Request {
    method: Vec<u8>,
    url: Vec<u8>,
    minor: String,
}

impl Head {
    pub(super) fn new(now: Moment) -> Self {
        Self { now, request: None, lines: 0, size: 0, fields: Vec::new() }
    }

    /// An answer with nothing but its first line, as the daemon words it.
    fn answer(&self, status: &str) -> Verdict {
        let minor = self.request.as_ref().map_or("0", |request| &request.minor);
        let date = date(self.now);
        Verdict::Refused(Bytes::from(format!(
            "HTTP/1.{minor} {status}\r\nCache-Control: max-age=0\r\nConnection: close\r\nDate: {date}\r\nPragma: no-cache\r\n\
             Server: pve-api-daemon/3.0\r\nExpires: {date}\r\n\r\n"
        )))
    }

    fn first(&mut self, line: &[u8]) -> Option<Verdict> {
        if line.is_empty() {
            return None;
        }
        let Some((method, url, major, minor)) = request(line) else {
            return Some(self.answer("400 bad request"));
        };
        if number(major) != 1 {
            let version = format!("{}.{minor}", String::from_utf8_lossy(major));
            return Some(
                self.answer(&format!("506 http protocol version {version} not supported")),
            );
        }
        let authority = url.split(|byte| *byte == b'/').next().unwrap_or_default();
        if authority.contains(&b'@') {
            return Some(self.answer("400 invalid url"));
        }
        self.request = Some(Request { method: method.to_vec(), url: url.to_vec(), minor });
        None
    }

    fn field(&mut self, line: &[u8]) -> Option<Verdict> {
        let colon = line.iter().position(|byte| *byte == b':');
        let name = line.split(|byte| *byte == b':' || is_space(*byte)).next().unwrap_or_default();
        let between = colon.and_then(|colon| line.get(name.len()..colon));
        match (colon, between) {
            (Some(colon), Some(between))
                if !name.is_empty() && between.iter().all(|byte| is_space(*byte)) =>
            {
                let value = line[colon + 1..].trim_ascii_start();
                self.fields.push((name.to_vec(), value.to_vec()));
                None
            }
            _ if line.first().is_some_and(|byte| is_space(*byte)) => {
                if let Some((_, value)) = self.fields.last_mut() {
                    value.push(b' ');
                    value.extend_from_slice(line.trim_ascii_start());
                }
                None
            }
            _ => Some(self.answer("506 unable to parse request header")),
        }
    }

    /// A field, of which several lines are one.
    fn value(&self, name: &str) -> Option<String> {
        let all: Vec<_> = self.fields.iter().filter(|(other, _)| is(other, name)).collect();
        let texts = all.iter().map(|(_, value)| String::from_utf8_lossy(value).into_owned());
        (!all.is_empty()).then(|| texts.collect::<Vec<_>>().join(", "))
    }

    fn whole(&mut self) -> Option<Verdict> {
        let request = self.request.as_ref()?;
        if !METHODS.contains(&&*request.method) {
            let method = String::from_utf8_lossy(&request.method);
            return Some(self.answer(&format!("501 method '{method}' not available")));
        }
        match self.value("transfer-encoding") {
            Some(coding) if coding.eq_ignore_ascii_case("chunked") => {
                return Some(self.answer("501 chunked transfer encoding not supported"));
            }
            Some(coding) if !coding.is_empty() && coding != "0" => {
                let coding: String = coding.chars().filter(|c| !c.is_control()).collect();
                return Some(self.answer(&format!("501 Unknown transfer encoding '{coding}'")));
            }
            _ => {}
        }
        let length = self.value("content-length").map(|text| number(text.as_bytes()));
        let request = self.request.take()?;
        let fields = std::mem::take(&mut self.fields);
        let target = target_of(&request.url);
        let old = request.minor.trim_start_matches('0').is_empty();
        Some(Plain { method: request.method, target, old, fields, chunked: false, length }.sound())
    }
}

impl Reader for Head {
    fn line(&mut self, line: &[u8]) -> Option<Verdict> {
        let line = bare(line);
        if self.request.is_none() {
            return self.first(line);
        }
        self.lines += 1;
        self.size += line.len();
        if self.lines >= LINES_MAX || self.size >= HEAD_MAX {
            return Some(Verdict::Deaf);
        }
        if line.is_empty() { self.whole() } else { self.field(line) }
    }

    fn part(&mut self, _: usize, part: &[u8]) -> Option<Verdict> {
        (part.len() > LINE_MAX).then(|| Verdict::Refused(Bytes::new()))
    }

    fn end(&self) -> Option<Bytes> {
        Some(Bytes::new())
    }
}

/// What the daemon's language takes for a space.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// The number that a text begins with, as the daemon's language reads it.
fn number(text: &[u8]) -> u64 {
    let digits = text.trim_ascii_start().iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: u64, digit| {
        number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    })
}

/// A method, a URL, and the two numbers of a version.
type Words<'a> = (&'a [u8], &'a [u8], &'a [u8], String);

/// The first place of a line where a method, a URL and a version stand, with one space between.
fn request(line: &[u8]) -> Option<Words<'_>> {
    let words: Vec<(usize, &[u8])> = line
        .split(|byte| is_space(*byte))
        .scan(0, |place, word| {
            let begin = *place;
            *place += word.len() + 1;
            Some((begin, word))
        })
        .filter(|(_, word)| !word.is_empty())
        .collect();
    let next_to = |one: (usize, &[u8]), other: (usize, &[u8])| {
        let end = one.0 + one.1.len();
        other.0 == end + 1 && line.get(end) == Some(&b' ')
    };
    words.windows(3).find_map(|three| {
        let [method, url, proto] = three else { return None };
        if !next_to(*method, *url) || !next_to(*url, *proto) {
            return None;
        }
        let rest = proto.1.strip_prefix(b"HTTP/")?;
        let major = rest.split(|byte| !byte.is_ascii_digit()).next()?;
        let minor = rest.get(major.len()..)?.strip_prefix(b".")?;
        let minor = minor.split(|byte| !byte.is_ascii_digit()).next()?;
        let told = !major.is_empty() && !minor.is_empty();
        told.then(|| (method.1, url.1, major, String::from_utf8_lossy(minor).into_owned()))
    })
}

/// The path and query of a URL, whatever stands before them.
fn target_of(url: &[u8]) -> Vec<u8> {
    let begin = url.windows(3).position(|three| three == b"://");
    let url = match begin {
        Some(begin) if url[..begin].iter().all(u8::is_ascii_alphanumeric) => {
            let rest = &url[begin + 3..];
            let path = rest.iter().position(|byte| matches!(byte, b'/' | b'?'));
            path.map_or(&b"/"[..], |path| &rest[path..])
        }
        _ => url,
    };
    let url = url.split(|byte| *byte == b'#').next().unwrap_or_default();
    match url.iter().position(|byte| *byte == b'?') {
        Some(cut) => target::plain(&url[..cut], Some(&url[cut + 1..])),
        None => target::plain(url, None),
    }
}
