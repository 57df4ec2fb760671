//! The head of a request, line by line: what the server behind makes of it, and the plain form in which it goes on.

use bytes::Bytes;
use castle_model::time::Moment;

use super::super::serve::Target;
use super::body::Body;
use super::{go, node, proxmox};
use crate::turn::Server;

/// How many fields go on. Nobody behind reads more than a few.
pub(in crate::host) const FIELDS_MAX: usize = 2000;

/// By whose rules a head is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::host) enum Kind {
    /// Go's net/http, as kube-apiserver sets it up.
    Go,
    /// Proxmox' own, in Perl.
    Proxmox,
    /// Node's http with Fastify, as Infisical's backend has it.
    Node,
}

impl Target {
    /// By whose rules its HTTP/1.1 is read.
    pub(in crate::host) fn kind(&self) -> Kind {
        match self {
            Self::Endpoint { server: Server::Proxmox, .. } => Kind::Proxmox,
            Self::Endpoint { server: Server::Infisical, .. } => Kind::Node,
            Self::Endpoint { .. } | Self::Machine { .. } => Kind::Go,
        }
    }
}

/// What a server makes of a head.
pub(super) enum Verdict {
    /// It goes on to whom it is for.
    Sound(Sound),
    /// It is answered so, and the connection ends.
    Refused(Bytes),
    /// Nobody says anything, and nothing more is heard.
    Deaf,
}

/// A head in plain form.
#[derive(Debug)]
pub(super) struct Sound {
    /// As our library reads it.
    pub(super) head: Vec<u8>,
    /// What follows it; none if there is nothing.
    pub(super) body: Option<Body>,
    /// Whether its method is POST.
    pub(super) posts: bool,
}

/// Reads a head by the rules of one server.
pub(super) trait Reader: Send {
    /// Takes a whole line, with its end.
    fn line(&mut self, line: &[u8]) -> Option<Verdict>;
    /// Looks at the beginning of a line, after so many bytes of whole ones. It may come again, and longer.
    fn part(&mut self, before: usize, part: &[u8]) -> Option<Verdict>;
    /// What is said to a client that stops in the middle of a head.
    fn end(&self) -> Option<Bytes>;
    /// What is said to a client that takes too long for one.
    fn late(&self) -> Option<Bytes> {
        None
    }
}

/// A head that is being read.
pub(super) struct Head {
    reader: Box<dyn Reader>,
    /// How many bytes of whole lines came.
    size: usize,
    empty: bool,
}

impl Head {
    /// Begins one, at a moment of the server's clock; a request before it may have been a POST.
    pub(super) fn new(kind: Kind, now: Moment, posted: bool) -> Self {
        let reader: Box<dyn Reader> = match kind {
            Kind::Go => Box::new(go::Head::new(now, posted)),
            Kind::Proxmox => Box::new(proxmox::Head::new(now)),
            Kind::Node => Box::new(node::Head::new(now)),
        };
        Self { reader, size: 0, empty: true }
    }

    /// Whether nothing of it has come.
    pub(super) fn is_empty(&self) -> bool {
        self.empty
    }

    pub(super) fn line(&mut self, line: &[u8]) -> Option<Verdict> {
        self.empty = false;
        // A line that came at once is no shorter than one that came in parts.
        let verdict = self.reader.part(self.size, line).or_else(|| self.reader.line(line));
        self.size += line.len();
        verdict
    }

    pub(super) fn part(&mut self, part: &[u8]) -> Option<Verdict> {
        self.empty &= part.is_empty();
        if part.is_empty() { None } else { self.reader.part(self.size, part) }
    }

    /// The client stops, after this beginning of a line.
    pub(super) fn end(&self, part: &[u8]) -> Option<Bytes> {
        if self.size == 0 && part.is_empty() { None } else { self.reader.end() }
    }

    pub(super) fn late(&self) -> Option<Bytes> {
        self.reader.late()
    }
}

/// What a server says at once to a body that is broken; none if it leaves that to whom the request was for.
pub(super) fn broken(kind: Kind) -> Option<Bytes> {
    (kind == Kind::Node).then(node::bad_request)
}

/// A request as it goes on.
pub(super) struct Plain {
    pub(super) method: Vec<u8>,
    pub(super) target: Vec<u8>,
    /// Whether it is one of HTTP/1.0.
    pub(super) old: bool,
    pub(super) fields: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) chunked: bool,
    /// The length that was announced, if one was.
    pub(super) length: Option<u64>,
}

impl Plain {
    pub(super) fn sound(self) -> Verdict {
        let mut head = self.method.clone();
        head.push(b' ');
        head.extend_from_slice(&self.target);
        head.extend_from_slice(if self.old { b" HTTP/1.0\r\n" } else { b" HTTP/1.1\r\n" });
        let framing = |name: &[u8]| is(name, "content-length") || is(name, "transfer-encoding");
        let readable = |value: &[u8]| value.iter().all(|byte| is_text(*byte));
        let (first, others): (Vec<_>, Vec<_>) = self
            .fields
            .iter()
            .filter(|(name, value)| !framing(name) && is_token(name) && readable(value))
            .partition(|(name, _)| is(name, "connection"));
        for (name, value) in first.into_iter().chain(others).take(FIELDS_MAX) {
            head.extend_from_slice(name);
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
        if self.chunked {
            head.extend_from_slice(b"transfer-encoding: chunked\r\n");
        } else if let Some(length) = self.length {
            head.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        let body = Body::announced(self.chunked, self.length.unwrap_or_default());
        Verdict::Sound(Sound { head, body, posts: self.method == b"POST" })
    }
}

/// A line without its end.
pub(super) fn bare(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Whether a name is this one.
pub(super) fn is(name: &[u8], wanted: &str) -> bool {
    name.eq_ignore_ascii_case(wanted.as_bytes())
}

/// Whether bytes are a token, as names and methods are.
pub(super) fn is_token(bytes: &[u8]) -> bool {
    let of_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(of_token)
}

/// Whether a byte may be in a value.
pub(super) fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Spaces and tabs around bytes are none of theirs.
pub(super) fn trimmed(bytes: &[u8]) -> &[u8] {
    let inner = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let first = bytes.iter().position(inner).unwrap_or(bytes.len());
    let last = bytes.iter().rposition(inner).map_or(first, |last| last + 1);
    &bytes[first..last]
}

/// A moment as headers tell it.
pub(super) fn date(now: Moment) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (year, month, day) = now.date();
    let place = |number: u64, of: u64| usize::try_from(number % of).unwrap_or_default();
    let weekday = DAYS[place(now.0 / 86_400_000, 7)];
    let month = MONTHS[place(month.saturating_sub(1), 12)];
    let seconds = now.0 / 1000 % 86_400;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}
