//! One download: limited, resumed where it broke off, and never sent away from https.
//!
//! ```text
//! GET ─▶ 200, pieces … broken ─▶ GET from there on, if the content is still the same ─▶ 206, the rest
//!                                                                                    └▶ 200: all of it anew
//! ```

use std::ops::ControlFlow;

use castle_model::Class;
use castle_wire::{CallError, Rest, Verify, World};
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::response::Parts;

use crate::ArtefactError;
use crate::redirect::{REDIRECTS, not_https, redirect, split, target};

/// How often a download that broke off is taken up again, as long as each time brings something.
const RESUMES: usize = 8;

/// Takes what comes.
pub(crate) trait Sink: Send {
    /// Forgets everything: it comes anew.
    fn restart(&mut self);
    /// Takes the next bytes.
    fn take(&mut self, bytes: &[u8]);
}

/// Hears how far a download has come: so many bytes, of so many if that is known.
pub type Progress<'a> = &'a mut (dyn FnMut(u64, Option<u64>) + Send);

/// A download and how far it has come.
pub(crate) struct Download<'a> {
    world: &'a World,
    url: &'a str,
    limit: u64,
    done: u64,
    total: Option<u64>,
    /// Names the content while it is the same: a strong `ETag`.
    tag: Option<HeaderValue>,
}

impl<'a> Download<'a> {
    /// A download of so many bytes at most; nothing is sent yet.
    pub(crate) fn new(world: &'a World, url: &'a str, limit: u64) -> Self {
        Self { world, url, limit, done: 0, total: None, tag: None }
    }

    /// Fetches all of it, and says how long it is.
    pub(crate) async fn run(
        mut self,
        sink: &mut dyn Sink,
        progress: Progress<'_>,
    ) -> Result<u64, ArtefactError> {
        let mut resumes = 0;
        loop {
            let before = self.done;
            let error = match self.attempt(sink, progress).await {
                Ok(()) => return Ok(self.done),
                Err(error) => error,
            };
            let worth_it = error.class() == Class::Transient && self.done > before;
            if !worth_it || resumes == RESUMES {
                return Err(error);
            }
            resumes += 1;
        }
    }

    /// Asks for what is missing. Every attempt begins at the first address: those that it leads to may be of short life.
    async fn attempt(
        &mut self,
        sink: &mut dyn Sink,
        progress: Progress<'_>,
    ) -> Result<(), ArtefactError> {
        let mut next = self.url.to_owned();
        for _ in 0..=REDIRECTS {
            let (base, path) = split(&next).ok_or_else(|| not_https(self.url, &next))?;
            let rest = Rest::open(self.world, &base, &Verify::Roots(self.world.roots.clone()))
                .map_err(|source| ArtefactError::Open { url: next.clone(), source })?;
            let headers = self.headers();
            let mut first = true;
            let mut wrong = None;
            let piece = |head: &Parts, bytes: &[u8]| {
                if std::mem::take(&mut first) {
                    wrong = self.begin(head, sink).err();
                }
                if wrong.is_none() {
                    wrong = self.take(bytes, sink, progress).err();
                }
                if wrong.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let reply = rest.pieces(&path, headers, piece).await;
            if let Some(wrong) = wrong {
                return Err(wrong);
            }
            let reply = reply.map_err(|source| match source {
                CallError::Broken { .. } if self.done > 0 => self.cut_short(),
                source => ArtefactError::Call { url: self.url.to_owned(), source },
            })?;
            if reply.status.is_success() {
                return self.end();
            }
            if reply.status == StatusCode::RANGE_NOT_SATISFIABLE && self.done > 0 {
                return Err(self.cut_short());
            }
            next = target(self.url, &base, &reply)?;
        }
        Err(redirect(self.url, format!("more than {REDIRECTS} times")))
    }

    /// Asks for plain bytes, and for the rest alone where the content can be named.
    fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        let mut headers = vec![(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"))];
        if let (Some(tag), true) = (&self.tag, self.done > 0)
            && let Ok(range) = HeaderValue::try_from(format!("bytes={}-", self.done))
        {
            headers.extend([(header::RANGE, range), (header::IF_RANGE, tag.clone())]);
        }
        headers
    }

    /// Looks at the head of a reply before its first piece is taken.
    fn begin(&mut self, head: &Parts, sink: &mut dyn Sink) -> Result<(), ArtefactError> {
        let encoding = text(&head.headers, &header::CONTENT_ENCODING).unwrap_or("identity");
        if encoding != "identity" {
            let (url, encoding) = (self.url.to_owned(), encoding.chars().take(40).collect());
            return Err(ArtefactError::Encoded { url, encoding });
        }
        if head.status == StatusCode::PARTIAL_CONTENT {
            let range = text(&head.headers, &header::CONTENT_RANGE).unwrap_or_default();
            let Some((_, total)) = content_range(range).filter(|(from, _)| *from == self.done)
            else {
                let text = format!("the bytes `{range}`, asked were those from {} on", self.done);
                let (url, status) = (self.url.to_owned(), head.status.as_u16());
                return Err(ArtefactError::Answer { url, status, text });
            };
            self.total = total.or(self.total);
        } else {
            if self.done > 0 {
                sink.restart();
            }
            let length = text(&head.headers, &header::CONTENT_LENGTH);
            let tag = head.headers.get(header::ETAG).filter(|tag| is_strong(tag)).cloned();
            (self.done, self.total, self.tag) = (0, length.and_then(|n| n.parse().ok()), tag);
        }
        self.within(self.total.unwrap_or_default())
    }

    fn take(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn Sink,
        progress: Progress<'_>,
    ) -> Result<(), ArtefactError> {
        self.done += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.within(self.done)?;
        sink.take(bytes);
        progress(self.done, self.total);
        Ok(())
    }

    fn end(&self) -> Result<(), ArtefactError> {
        if self.done == 0 {
            return Err(ArtefactError::Empty { url: self.url.to_owned() });
        }
        if self.total.is_some_and(|total| total != self.done) {
            return Err(self.cut_short());
        }
        Ok(())
    }

    fn cut_short(&self) -> ArtefactError {
        let (url, size) = (self.url.to_owned(), self.done);
        ArtefactError::BrokenOff { url, promised: self.total, size }
    }

    fn within(&self, size: u64) -> Result<(), ArtefactError> {
        if size > self.limit {
            return Err(ArtefactError::TooLarge { url: self.url.to_owned(), limit: self.limit });
        }
        Ok(())
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// A weak tag names content that is alike, not content that is the same.
fn is_strong(tag: &HeaderValue) -> bool {
    tag.as_bytes().starts_with(b"\"")
}

/// Where a `Content-Range` begins, and the whole length if it tells it.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (span, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let begins = span.split_once('-')?.0.parse().ok()?;
    let total = if total == "*" { None } else { Some(total.parse().ok()?) };
    Some((begins, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_tells_where_it_begins_and_how_long_all_is() {
        assert_eq!(content_range("bytes 10-19/20"), Some((10, Some(20))));
        assert_eq!(content_range("bytes 10-19/*"), Some((10, None)));
        for wrong in ["bytes */20", "10-19/20", "bytes 10-19", "bytes x-19/20", "bytes 1-2/x", ""] {
            assert_eq!(content_range(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_a_strong_tag_names_content() {
        assert!(is_strong(&HeaderValue::from_static("\"ab\"")));
        assert!(!is_strong(&HeaderValue::from_static("W/\"ab\"")));
    }
}
