//! Heads as Go's net/http reads them, set up as kube-apiserver does: a megabyte is enough.
//!
//! Held against the real server, byte by byte: the case `raw bytes` of the contract.

use bytes::Bytes;
use castle_model::time::Moment;

use super::head::{Plain, Reader, Verdict, bare, date, is, is_text, is_token, trimmed};
use super::target;

/// The largest head: `MaxHeaderBytes` of kube-apiserver, and what Go adds to it.
const HEAD_MAX: usize = (1 << 20) + 4096;
/// How much of what comes before a request, and is no part of it, is passed over after a POST.
const SLACK: usize = 4;

/// A head that is being read.
pub(super) struct Head {
    now: Moment,
    /// How much may be passed over.
    slack: usize,
    request: Option<Request>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// The last line of a field, which the next one may go on with.
    open: Option<Vec<u8>>,
}

/// The first line.
struct Request {
    method: Vec<u8>,
    target: Vec<u8>,
    version: (u8, u8),
}

fn said(status: &str, body: &str) -> Bytes {
    let head = "Content-Type: text/plain; charset=utf-8\r\nConnection: close";
    Bytes::from(format!("HTTP/1.1 {status}\r\n{head}\r\n\r\n{body}"))
}

fn refused(status: &str) -> Verdict {
    Verdict::Refused(said(status, status))
}

/// A head that is none; why is not said.
fn bad() -> Verdict {
    refused("400 Bad Request")
}

impl Head {
    pub(super) fn new(now: Moment, posted: bool) -> Self {
        let slack = if posted { SLACK } else { 0 };
        Self { now, slack, request: None, fields: Vec::new(), open: None }
    }

    fn first(&mut self, line: &[u8]) -> Option<Verdict> {
        let Some(request) = request(bare(line)) else { return Some(bad()) };
        self.request = Some(request);
        None
    }

    /// The field that is open has no more lines.
    fn close(&mut self) -> Result<(), ()> {
        let Some(line) = self.open.take() else { return Ok(()) };
        let colon = line.iter().position(|byte| *byte == b':').ok_or(())?;
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        // Spaces in names are found later, and told.
        let solid: Vec<u8> = name.iter().copied().filter(|byte| *byte != b' ').collect();
        let named = !name.is_empty() && (solid.is_empty() || is_token(&solid));
        if !named || !value.iter().all(|byte| is_text(*byte)) {
            return Err(());
        }
        let value = trimmed(value);
        self.fields.push((name.to_vec(), value.to_vec()));
        Ok(())
    }

    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let named = move |field: &&(Vec<u8>, Vec<u8>)| is(&field.0, name);
        self.fields.iter().filter(named).map(|field| &*field.1)
    }

    /// The head is whole.
    fn whole(&mut self) -> Option<Verdict> {
        let Request { method, target, version } = self.request.take()?;
        if self.values("host").count() > 1 {
            return Some(bad());
        }
        let chunked = match self.chunked(version) {
            Ok(chunked) => chunked,
            Err(answer) => return Some(Verdict::Refused(answer)),
        };
        let Ok(length) = self.length() else { return Some(bad()) };
        if chunked && !self.trailers_are_named() {
            return Some(bad());
        }
        let preface = method == b"PRI" && target == b"*" && version == (2, 0);
        let preface = preface && self.fields.is_empty();
        if version.0 != 1 && !preface {
            return Some(refused("505 HTTP Version Not Supported: unsupported protocol version"));
        }
        if let Some(reason) = self.reason(&method, version, preface) {
            return Some(refused(&format!("400 Bad Request: {reason}")));
        }
        if let Some(wish) = self.values("expect").next()
            && !wish.is_empty()
            && !has_word(wish, b"100-continue")
        {
            return Some(Verdict::Refused(self.unexpected(version)));
        }
        let parts = self.values("connection").next().is_some_and(|v| has_word(v, b"close"));
        let mut fields = std::mem::take(&mut self.fields);
        if preface || parts {
            fields.push((b"connection".to_vec(), b"close".to_vec()));
        }
        let old = version == (1, 0);
        Some(Plain { method, target, old, fields, chunked, length }.sound())
    }

    /// Whether the body comes in chunks.
    fn chunked(&self, version: (u8, u8)) -> Result<bool, Bytes> {
        let mut codings = self.values("transfer-encoding");
        let Some(coding) = codings.next() else { return Ok(false) };
        if version.0 == 0 && version.1 != 0 || version == (1, 0) {
            return Ok(false);
        }
        if codings.next().is_none() && is(coding, "chunked") {
            return Ok(true);
        }
        Err(said("501 Not Implemented", "Unsupported transfer encoding"))
    }

    /// The length that is announced.
    fn length(&self) -> Result<Option<u64>, ()> {
        let mut lengths = self.values("content-length");
        let Some(first) = lengths.next() else { return Ok(None) };
        if lengths.any(|other| other != first) || !first.iter().all(u8::is_ascii_digit) {
            return Err(());
        }
        let length = str::from_utf8(first).ok().and_then(|text| text.parse::<u64>().ok());
        length.filter(|length| i64::try_from(*length).is_ok()).map(Some).ok_or(())
    }

    fn trailers_are_named(&self) -> bool {
        let wrong = ["transfer-encoding", "trailer", "content-length"];
        !self.values("trailer").flat_map(tokens).any(|name| wrong.iter().any(|w| is(name, w)))
    }

    /// Why a request that can be read is none, in words that are told.
    fn reason(&self, method: &[u8], version: (u8, u8), preface: bool) -> Option<&'static str> {
        let mut hosts = self.values("host");
        match hosts.next() {
            None if version != (1, 0) && !preface && method != b"CONNECT" => {
                return Some("missing required Host header");
            }
            Some(host) if !host.iter().all(|byte| is_of_host(*byte)) => {
                return Some("malformed Host header");
            }
            _ => {}
        }
        let named = self.fields.iter().all(|(name, _)| is_token(name));
        (!named).then_some("invalid header name")
    }

    /// What is said to who expects what is not known.
    fn unexpected(&self, version: (u8, u8)) -> Bytes {
        let proto = if version == (1, 0) { "HTTP/1.0" } else { "HTTP/1.1" };
        let date = date(self.now);
        Bytes::from(format!(
            "{proto} 417 Expectation Failed\r\nConnection: close\r\nDate: {date}\r\nContent-Length: 0\r\n\r\n"
        ))
    }
}

impl Reader for Head {
    fn line(&mut self, line: &[u8]) -> Option<Verdict> {
        if self.request.is_none() {
            if line.iter().all(|byte| matches!(byte, b'\r' | b'\n')) && line.len() <= self.slack {
                self.slack -= line.len();
                return None;
            }
            return self.first(line);
        }
        let line = bare(line);
        if line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
            // More of the field before it; there has to be one.
            let Some(open) = &mut self.open else { return Some(bad()) };
            open.push(b' ');
            open.extend_from_slice(trimmed(line));
            return None;
        }
        if self.close().is_err() {
            return Some(bad());
        }
        if line.is_empty() {
            return self.whole();
        }
        if !line.contains(&b':') {
            return Some(bad());
        }
        self.open = Some(trimmed(line).to_vec());
        None
    }

    fn part(&mut self, before: usize, part: &[u8]) -> Option<Verdict> {
        if before + part.len() > HEAD_MAX {
            return Some(refused("431 Request Header Fields Too Large"));
        }
        None
    }

    fn end(&self) -> Option<Bytes> {
        Some(said("400 Bad Request", "400 Bad Request"))
    }
}

/// A first line: three words, the third with whatever follows.
fn request(line: &[u8]) -> Option<Request> {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let (method, uri, proto) = (words.next()?, words.next()?, words.next()?);
    if !is_token(method) {
        return None;
    }
    let version = match proto {
        [b'H', b'T', b'T', b'P', b'/', major @ b'0'..=b'9', b'.', minor @ b'0'..=b'9'] => {
            (major - b'0', minor - b'0')
        }
        _ => return None,
    };
    let target = if method == b"CONNECT" && !uri.starts_with(b"/") {
        target::of_uri(&[b"http://", uri].concat())?
    } else {
        target::of_uri(uri)?
    };
    Some(Request { method: method.to_vec(), target, version })
}

/// What is between commas.
fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(trimmed)
}

/// Whether a word is in a value, between spaces or commas.
fn has_word(value: &[u8], word: &[u8]) -> bool {
    let mut words = value.split(|byte| matches!(byte, b' ' | b'\t' | b','));
    words.any(|other| other.eq_ignore_ascii_case(word))
}

/// Whether a byte may be in the name of a host.
fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!$%&()*+,-.:;=['[]_~".contains(&byte)
}
