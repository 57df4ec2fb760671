//! What a server does to the head of a request that it does not take, before anybody hears of the request.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Version, header};

use super::dial::pause;
use super::serve::Target;
use super::shared::Shared;
use crate::turn::{HttpBody, HttpReply, Listen, Server};

/// Where Proxmox' daemon gives up counting the lines of a head, the empty one at its end among them.
const PROXMOX_LINES_MAX: usize = 64;
/// How long it holds a connection on which nothing happens.
const PROXMOX_PATIENCE: Duration = Duration::from_secs(5);

/// The answer to a request that is not heard; none if it is.
pub(super) async fn refused<B>(
    shared: &Shared,
    target: &Target,
    request: &Request<B>,
) -> Result<Option<HttpReply>, io::Error> {
    match target {
        // It dies of them in a place where nobody answers.
        Target::Endpoint { server: Server::Proxmox, .. }
            if request.headers().len() + 1 >= PROXMOX_LINES_MAX =>
        {
            pause(shared.time.real(PROXMOX_PATIENCE)).await;
            Err(io::ErrorKind::TimedOut.into())
        }
        Target::Machine { listen: Listen::KubeApi { .. }, .. }
            if request.version() == Version::HTTP_11
                && !request.headers().contains_key(header::HOST) =>
        {
            let words = "Bad Request: missing required Host header";
            Ok(Some(HttpReply {
                reason: Some(words.to_owned()),
                headers: vec![
                    ("content-type".to_owned(), "text/plain; charset=utf-8".to_owned()),
                    ("connection".to_owned(), "close".to_owned()),
                ],
                body: HttpBody::Whole(Bytes::from(format!("400 {words}"))),
                ..HttpReply::empty(400)
            }))
        }
        _ => Ok(None),
    }
}
