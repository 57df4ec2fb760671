//! Files as their servers give them: with a tag, from any byte on, and with what goes wrong on the way.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Sources, text_reply};
use crate::turn::{HttpBody, HttpCall, HttpReply};

/// Something that goes wrong with files whose address (host and path) holds a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcesTrouble {
    /// The text.
    pub address: String,
    /// What goes wrong.
    pub how: Download,
}

/// What goes wrong with a download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Download {
    /// The next one breaks off after so many bytes of its body.
    BreaksOff(usize),
    /// The file is not there.
    Missing,
    /// One byte in the middle is another one.
    Tampered,
    /// It is filled up with empty lines to so many bytes.
    Swollen(usize),
    /// So many bytes more are promised than come.
    PromisesMore(u64),
    /// It comes packed, whatever was asked for.
    Packed,
    /// Whoever asks is sent to this address.
    Elsewhere(String),
}

impl Sources {
    /// Lets something go wrong from now on; a download that breaks off does so once.
    pub fn suffer(&mut self, trouble: &SourcesTrouble) {
        self.troubles.push(trouble.clone());
    }

    /// How often a call has used up a trouble so far: such a call changes the world.
    #[must_use]
    pub fn troubles_met(&self) -> u64 {
        self.met
    }

    /// Gives a file as it was asked for, unless a trouble is in the way.
    pub(super) fn file(&mut self, call: &HttpCall, content: impl Into<Bytes>) -> HttpReply {
        let address = format!("{}{}", call.host, call.path);
        let hit = |trouble: &&SourcesTrouble| address.contains(&trouble.address);
        let mut content = content.into().to_vec();
        let (mut more, mut packed) = (0, false);
        for trouble in self.troubles.iter().filter(hit) {
            match &trouble.how {
                Download::BreaksOff(_) => {}
                Download::Missing => return text_reply(404, PLAIN, "Not Found"),
                Download::Tampered => {
                    let middle = content.len() / 2;
                    content[middle] ^= 1;
                }
                Download::Swollen(length) => content.resize(*length, b'\n'),
                Download::PromisesMore(bytes) => more = *bytes,
                Download::Packed => packed = true,
                Download::Elsewhere(place) => {
                    let location = ("location".to_owned(), place.clone());
                    return HttpReply { headers: vec![location], ..HttpReply::empty(302) };
                }
            }
        }
        let mut reply = ranged(call, content);
        if packed {
            reply.headers.push(("content-encoding".to_owned(), "gzip".to_owned()));
        }
        let broken = |trouble: &SourcesTrouble| match trouble.how {
            Download::BreaksOff(after) if hit(&trouble) => Some(after),
            _ => None,
        };
        let next = self.troubles.iter().position(|trouble| broken(trouble).is_some());
        let after = next.and_then(|at| broken(&self.troubles.remove(at)));
        self.met += u64::from(after.is_some());
        if let HttpBody::Whole(bytes) = &reply.body
            && reply.status < 300
            && (more > 0 || after.is_some())
        {
            let promised = u64::try_from(bytes.len()).unwrap_or(u64::MAX) + more;
            let sent = bytes.slice(..after.unwrap_or(bytes.len()).min(bytes.len()));
            reply.body = HttpBody::Broken { sent, promised };
        }
        reply
    }
}

const PLAIN: &str = "text/plain; charset=utf-8";

/// The content, or the part of it that was asked for while its tag is still the same.
fn ranged(call: &HttpCall, content: Vec<u8>) -> HttpReply {
    let tag = format!("\"{}\"", &hex::encode(Sha256::digest(&content))[..32]);
    let content = Bytes::from(content);
    let from = call
        .header("range")
        .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok())
        .filter(|_| call.header("if-range").is_none_or(|wanted| wanted == tag));
    let mut reply = text_reply(200, "application/octet-stream", content.clone());
    reply.headers.push(("accept-ranges".to_owned(), "bytes".to_owned()));
    reply.headers.push(("etag".to_owned(), tag));
    let length = content.len();
    let Some(from) = from else { return reply };
    if from >= length {
        let range = ("content-range".to_owned(), format!("bytes */{length}"));
        return HttpReply { headers: vec![range], ..HttpReply::empty(416) };
    }
    let range = format!("bytes {from}-{}/{length}", length - 1);
    reply.headers.push(("content-range".to_owned(), range));
    HttpReply { status: 206, body: HttpBody::Whole(content.slice(from..)), ..reply }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(headers: &[(&str, &str)]) -> HttpCall {
        HttpCall {
            method: "GET".to_owned(),
            host: "github.com".to_owned(),
            path: "/a.yaml".to_owned(),
            query: String::new(),
            headers: headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
            body: Vec::new(),
            peer: None,
        }
    }

    fn given(headers: &[(&str, &str)]) -> (u16, HttpBody) {
        let reply = Sources::default().file(&call(headers), "0123456789");
        (reply.status, reply.body)
    }

    #[test]
    fn a_part_is_given_only_while_the_content_is_the_same() {
        let whole = |text: &'static str| HttpBody::Whole(Bytes::from(text));
        let (status, tag) = {
            let reply = Sources::default().file(&call(&[]), "0123456789");
            (reply.status, reply.headers.into_iter().find(|(name, _)| name == "etag").unwrap().1)
        };
        assert_eq!(status, 200);
        let range = ("range", "bytes=7-");
        assert_eq!(given(&[range]), (206, whole("789")));
        assert_eq!(given(&[range, ("if-range", &tag)]), (206, whole("789")));
        assert_eq!(given(&[range, ("if-range", "\"other\"")]), (200, whole("0123456789")));
        assert_eq!(given(&[("range", "bytes=10-")]).0, 416);
    }

    #[test]
    fn a_download_breaks_off_once() {
        let mut sources = Sources::default();
        let how = Download::BreaksOff(4);
        sources.suffer(&SourcesTrouble { address: "github.com/a".to_owned(), how });
        let reply = sources.file(&call(&[]), "0123456789");
        let broken = HttpBody::Broken { sent: Bytes::from("0123"), promised: 10 };
        assert_eq!((reply.body, sources.troubles_met()), (broken, 1));
        let reply = sources.file(&call(&[]), "0123456789");
        assert_eq!(reply.body, HttpBody::Whole(Bytes::from("0123456789")));
        assert_eq!(sources.troubles_met(), 1);
    }
}
