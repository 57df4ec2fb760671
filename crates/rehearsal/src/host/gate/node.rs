//! Heads as Node's http reads them, with Fastify above it: so Infisical's backend is made.
//!
//! Measured with Node 22.22.0 and Fastify 4.29.1, which Infisical's image and its `package.json` name, set up as its
//! `app.ts` does: what it says to each kind of request is in the tests. It looks at every byte as it comes, and answers the
//! first one that is wrong.

use bytes::Bytes;
use castle_model::time::Moment;

use super::head::{Plain, Reader, Verdict, bare, date, is, is_text, is_token, trimmed};
use super::target;

/// At how many bytes of target, names and values a head is too large.
const HEAD_MAX: usize = 16 * 1024;
/// What it knows of methods.
const METHODS: &[&str] = &[
    "ACL",
    "BIND",
    "CHECKOUT",
    "CONNECT",
    "COPY",
    "DELETE",
    "GET",
    "HEAD",
    "LINK",
    "LOCK",
    "M-SEARCH",
    "MERGE",
    "MKACTIVITY",
    "MKCALENDAR",
    "MKCOL",
    "MOVE",
    "NOTIFY",
    "OPTIONS",
    "PATCH",
    "POST",
    "PROPFIND",
    "PROPPATCH",
    "PURGE",
    "PUT",
    "QUERY",
    "REBIND",
    "REPORT",
    "SEARCH",
    "SOURCE",
    "SUBSCRIBE",
    "TRACE",
    "UNBIND",
    "UNLINK",
    "UNLOCK",
    "UNSUBSCRIBE",
];
/// The versions that it can read; it serves those of HTTP/1.
const VERSIONS: [(&str, (u8, u8)); 4] =
    [("HTTP/0.9", (0, 9)), ("HTTP/1.0", (1, 0)), ("HTTP/1.1", (1, 1)), ("HTTP/2.0", (2, 0))];

/// A head that is being read.
pub(super) struct Head {
    now: Moment,
    request: Option<Request>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// How much of target, names and values came.
    size: usize,
    chunked: bool,
    encoded: bool,
    length: Option<u64>,
}

struct Request {
    method: Vec<u8>,
    target: Vec<u8>,
    version: (u8, u8),
}

/// What its error handler writes.
fn said(status: &str, message: &str) -> Bytes {
    let (code, error) = status.split_once(' ').unwrap_or((status, ""));
    let body = format!(r#"{{"error":"{error}","message":"{message}","statusCode":{code}}}"#);
    let length = body.len();
    Bytes::from(format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nContent-Type: application/json\r\n\r\n{body}"
    ))
}

/// What it says to what it can not read.
pub(super) fn bad_request() -> Bytes {
    said("400 Bad Request", "Client Error")
}

fn bad() -> Verdict {
    Verdict::Refused(bad_request())
}

fn too_large() -> Verdict {
    let message = "Exceeded maximum allowed HTTP header size";
    Verdict::Refused(said("431 Request Header Fields Too Large", message))
}

impl Head {
    pub(super) fn new(now: Moment) -> Self {
        let (size, length) = (0, None);
        Self {
            now,
            request: None,
            fields: Vec::new(),
            size,
            chunked: false,
            encoded: false,
            length,
        }
    }

    fn first(&mut self, line: &[u8]) -> Option<Verdict> {
        let Some(request) = request(line) else { return Some(bad()) };
        self.size += request.target.len();
        self.request = Some(request);
        if self.size >= HEAD_MAX { Some(too_large()) } else { None }
    }

    fn field(&mut self, line: &[u8]) -> Option<Verdict> {
        let colon = line.iter().position(|byte| *byte == b':');
        let Some((name, value)) = colon.map(|colon| (&line[..colon], &line[colon + 1..])) else {
            return Some(bad());
        };
        let value = value.trim_ascii_start();
        self.size += name.len() + value.len();
        if self.size >= HEAD_MAX {
            return Some(too_large());
        }
        let value = trimmed(value);
        let known = if is(name, "content-length") {
            self.announce(value)
        } else if is(name, "transfer-encoding") {
            self.encode(value)
        } else {
            Some(())
        };
        if known.is_none() {
            return Some(bad());
        }
        self.fields.push((name.to_vec(), value.to_vec()));
        None
    }

    fn announce(&mut self, value: &[u8]) -> Option<()> {
        let whole = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        if !whole || self.length.is_some() || self.encoded {
            return None;
        }
        self.length = Some(str::from_utf8(value).ok()?.parse().ok()?);
        Some(())
    }

    fn encode(&mut self, value: &[u8]) -> Option<()> {
        if self.chunked || self.length.is_some() {
            return None;
        }
        let mut codings = value.split(|byte| *byte == b',').map(trimmed);
        let last = codings.next_back().unwrap_or_default();
        self.encoded = true;
        self.chunked = is(last, "chunked");
        let twice = codings.any(|coding| is(coding, "chunked"));
        (!twice).then_some(())
    }

    fn value(&self, name: &str) -> Option<&[u8]> {
        let found = self.fields.iter().find(|(other, _)| is(other, name));
        found.map(|(_, value)| &**value)
    }

    fn whole(&mut self) -> Option<Verdict> {
        let Request { method, target, version } = self.request.take()?;
        if method == b"CONNECT" {
            // Nobody listens for it.
            return Some(Verdict::Refused(Bytes::new()));
        }
        if self.encoded && !self.chunked {
            return Some(bad());
        }
        let date = date(self.now);
        let answered = |text: String| Some(Verdict::Refused(Bytes::from(text)));
        let none = "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        if version == (1, 1) && self.value("host").is_none() {
            return answered(format!(
                "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nDate: {date}\r\n{none}"
            ));
        }
        let wish = self.value("expect").filter(|wish| !is(wish, "100-continue"));
        if version == (1, 1) && wish.is_some() {
            return answered(format!(
                "HTTP/1.1 417 Expectation Failed\r\nDate: {date}\r\nConnection: close\r\n{none}"
            ));
        }
        let told = |status: &str, body: &str| {
            let length = body.len();
            format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nDate: {date}\r\nConnection: close\r\n\r\n{body}"
            )
        };
        if version.0 != 1 {
            let words = "HTTP Version Not Supported";
            let body = format!(r#"{{"error":"{words}","message":"{words}","statusCode":505}}"#);
            return answered(told(&format!("505 {words}"), &body));
        }
        let path = path_of(&target);
        if !is_escaped(path) {
            let path = String::from_utf8_lossy(path).replace('\\', "\\\\").replace('"', "\\\"");
            let body = format!(
                r#"{{"error":"Bad Request","code":"FST_ERR_BAD_URL","message":"'{path}' is not a valid url component","statusCode":400}}"#
            );
            return answered(told("400 Bad Request", &body));
        }
        let target = plain(&target);
        let fields = std::mem::take(&mut self.fields);
        let (old, chunked, length) = (version == (1, 0), self.chunked, self.length);
        Some(Plain { method, target, old, fields, chunked, length }.sound())
    }
}

impl Reader for Head {
    fn line(&mut self, line: &[u8]) -> Option<Verdict> {
        if self.request.is_none() {
            if line.iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
                return None;
            }
            return self.first(line);
        }
        if !line.ends_with(b"\r\n") {
            return Some(bad());
        }
        let line = bare(line);
        if line.is_empty() { self.whole() } else { self.field(line) }
    }

    fn part(&mut self, _: usize, part: &[u8]) -> Option<Verdict> {
        let (body, whole) = match part.strip_suffix(b"\r\n") {
            Some(body) => (body, true),
            None => (part.strip_suffix(b"\r").unwrap_or(part), part.ends_with(b"\r")),
        };
        if !whole && self.size + body.len() >= HEAD_MAX + FRAME {
            return Some(too_large());
        }
        let right = match &self.request {
            None => may_be_request(behind_ends(part)),
            Some(_) => may_be_field(body, whole),
        };
        if right { None } else { Some(bad()) }
    }

    fn end(&self) -> Option<Bytes> {
        Some(bad_request())
    }

    fn late(&self) -> Option<Bytes> {
        Some(said("408 Request Timeout", "Client Timeout"))
    }
}

/// How much of a line is neither target, nor name, nor value.
const FRAME: usize = 16;

/// Bytes behind the ends of lines that they begin with.
fn behind_ends(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()..]
}

/// Whether a line may go on to be the first one.
fn may_be_request(line: &[u8]) -> bool {
    let method = line.split(|byte| *byte == b' ').next().unwrap_or_default();
    let rest = &line[method.len()..];
    if rest.is_empty() {
        return METHODS.iter().any(|other| other.as_bytes().starts_with(method));
    }
    if !METHODS.iter().any(|other| other.as_bytes() == method) {
        return false;
    }
    let rest = trim_spaces(rest);
    let target = rest.split(|byte| matches!(byte, b' ' | b'\r' | b'\n')).next().unwrap_or_default();
    if !may_be_target(method, target) {
        return false;
    }
    let proto = &rest[target.len()..];
    if !proto.starts_with(b" ") {
        return matches!(proto, b"" | b"\r" | b"\r\n");
    }
    let proto = trim_spaces(proto);
    VERSIONS.iter().any(|(name, _)| format!("{name}\r\n").as_bytes().starts_with(proto))
}

fn trim_spaces(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.iter().take_while(|byte| **byte == b' ').count()..]
}

/// Whether bytes may begin a target.
fn may_be_target(method: &[u8], target: &[u8]) -> bool {
    let printed = target.iter().all(|byte| (0x21..=0x7e).contains(byte));
    let begins = match target.first() {
        None | Some(b'/' | b'*') => true,
        Some(_) if method == b"CONNECT" => true,
        Some(first) if first.is_ascii_alphabetic() => {
            let scheme = target.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
            let rest = &target[scheme..];
            rest.starts_with(b"://") || b"://".starts_with(rest)
        }
        Some(_) => false,
    };
    printed && begins
}

/// Whether a line may go on to be a field.
fn may_be_field(line: &[u8], whole: bool) -> bool {
    let colon = line.iter().position(|byte| *byte == b':');
    match colon {
        Some(colon) => {
            is_token(&line[..colon]) && line[colon + 1..].iter().all(|byte| is_text(*byte))
        }
        None => line.is_empty() || (is_token(line) && !whole),
    }
}

/// A whole first line.
fn request(line: &[u8]) -> Option<Request> {
    if !may_be_request(line) || !line.ends_with(b"\r\n") {
        return None;
    }
    let mut words = bare(line).split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let (method, target) = (words.next()?, words.next()?);
    let version = match words.next() {
        // Nobody says so any more: a request of HTTP/0.9.
        None => (0, 9),
        Some(proto) => VERSIONS.iter().find(|(name, _)| name.as_bytes() == proto)?.1,
    };
    let schemed = matches!(target.first(), Some(b'/' | b'*'))
        || method == b"CONNECT"
        || target.windows(3).any(|three| three == b"://");
    schemed.then(|| Request { method: method.to_vec(), target: target.to_vec(), version })
}

/// The path of a target, as Fastify sees it.
fn path_of(target: &[u8]) -> &[u8] {
    target.split(|byte| matches!(byte, b'?' | b'#' | b';')).next().unwrap_or_default()
}

/// Whether every `%` of a path is of something that can be read.
fn is_escaped(path: &[u8]) -> bool {
    let digits = |place: usize| path.get(place + 1..place + 3);
    let signs = path.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    let well = signs.into_iter().all(|(place, _)| {
        digits(place).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    well && percent_encoding::percent_decode(path).decode_utf8().is_ok()
}

/// A target as it goes on: Fastify looks at the path alone.
fn plain(target: &[u8]) -> Vec<u8> {
    if target == b"*" {
        return target.to_vec();
    }
    let web = [&b"http://"[..], b"https://"];
    let rest = web.iter().find_map(|web| target.strip_prefix(*web));
    let local = rest
        .and_then(|rest| rest.iter().position(|byte| *byte == b'/').map(|slash| &rest[slash..]));
    let target = local.unwrap_or(target);
    let target = target.split(|byte| *byte == b'#').next().unwrap_or_default();
    match target.iter().position(|byte| *byte == b'?') {
        Some(cut) => target::plain(&target[..cut], Some(&target[cut + 1..])),
        None => target::plain(target, None),
    }
}
