//! What a struck call looks like on the wire.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use http::Response;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::sync::Notify;
use tonic::{Code, Status};

use super::dial::{Found, pause};
use super::serve::Target;
use super::shared::Shared;
use crate::fault::{Blow, Seen, Who};
use crate::sources::FACTORY_HOST;
use crate::turn::{HttpCall, HttpReply, Listen, Server};
use crate::{infisical, kubernetes, proxmox, sources};

/// How many pieces a dripping answer comes in.
const DRIPS: u64 = 10;
/// How long an answer takes that nobody thought about.
const QUICK: Duration = Duration::from_millis(4);

/// Cuts one connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Cut(Arc<Notify>);

impl Cut {
    /// Ends when the connection is to be cut.
    pub(super) async fn made(&self) {
        self.0.notified().await;
    }

    fn make(&self) -> io::Error {
        self.0.notify_one();
        io::Error::from(io::ErrorKind::ConnectionReset)
    }
}

/// A call as rules see it.
pub(super) fn seen<'a>(target: &'a Target, method: &'a str, path: &'a str) -> Seen<'a> {
    match target {
        Target::Endpoint { server, host } => {
            let who = match server {
                Server::Proxmox => Who::Proxmox,
                Server::Infisical => Who::Infisical,
                Server::Kubernetes => Who::Kubernetes,
                Server::Sources if path.contains("/info/refs") || path.ends_with("-pack") => {
                    Who::Git
                }
                Server::Sources => Who::Downloads,
            };
            Seen { who, host: host.into(), machine: None, method, path, again: false }
        }
        Target::Machine { vmid, listen, address, .. } => {
            let who = match listen {
                Listen::KubeApi { .. } => Who::Kubernetes,
                _ => Who::Talos,
            };
            Seen {
                who,
                host: address.to_string().into(),
                machine: Some(*vmid),
                method,
                path,
                again: false,
            }
        }
    }
}

/// Whether a connection can be opened.
pub(super) fn dial(shared: &Shared, found: &Found, host: &str) -> Option<Blow> {
    // Where nobody is, only the address can be meant.
    let nobody = Seen {
        who: Who::Network,
        host: host.into(),
        machine: None,
        method: "",
        path: "",
        again: false,
    };
    match found {
        Found::Target(target) => connection(shared, target),
        _ => shared.meet_dial(&nobody),
    }
}

/// Whether a connection to somebody who is there can be opened.
pub(super) fn connection(shared: &Shared, target: &Target) -> Option<Blow> {
    let seen = seen(target, "", "");
    // One host can give files and repositories.
    let git = matches!(target, Target::Endpoint { server: Server::Sources, host } if host != FACTORY_HOST);
    let other = git.then(|| Seen { who: Who::Git, ..seen.clone() });
    shared.meet_dial(&seen).or_else(|| shared.meet_dial(&other?))
}

/// What happens before a call is heard.
pub(super) async fn before(
    shared: &Arc<Shared>,
    blow: Option<&Blow>,
    cut: &Cut,
) -> Result<(), io::Error> {
    match blow {
        Some(Blow::Refused | Blow::DropBefore) => Err(cut.make()),
        Some(Blow::Unreachable | Blow::Hangs) => std::future::pending().await,
        Some(Blow::KillBefore) => {
            shared.kill().await;
            Ok(())
        }
        Some(Blow::Slow(ms)) => {
            pause(shared.time.real(Duration::from_millis(*ms))).await;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// What happens after a call was carried out.
pub(super) async fn after(
    shared: &Arc<Shared>,
    blow: Option<&Blow>,
    cut: &Cut,
) -> Result<(), io::Error> {
    match blow {
        Some(Blow::DropAfter) => Err(cut.make()),
        Some(Blow::KillAfter) => {
            shared.kill().await;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The reply to a call, and how long it takes; none once the world has ended.
pub(super) fn reply(
    shared: &Shared,
    server: Server,
    call: HttpCall,
    blow: Option<&Blow>,
) -> Option<(HttpReply, Duration)> {
    let struck = match blow {
        Some(Blow::Answers(status, again)) => {
            let mut reply = match server {
                Server::Proxmox => proxmox::refusal(*status),
                Server::Infisical => infisical::refusal(&call, shared.time.now(), *status),
                Server::Kubernetes => kubernetes::refusal(*status),
                Server::Sources => sources::refusal(*status),
            };
            if let Some(ms) = again {
                reply.headers.push(("retry-after".to_owned(), ms.div_ceil(1000).to_string()));
            }
            Some(reply)
        }
        Some(Blow::Stale) => shared.kept(&call),
        _ => None,
    };
    if let Some(reply) = struck {
        shared.note_struck(server.name(), (&call.method, &call.path), reply.status);
        return Some((reply, QUICK));
    }
    if blow == Some(&Blow::Twice) {
        shared.request(server, call.clone())?;
    }
    if !shared.keeps_answers() {
        return shared.request(server, call);
    }
    let (reply, delay) = shared.request(server, call.clone())?;
    shared.keep(&call, &reply);
    Some((reply, delay))
}

/// The answer of a machine that did not hear the call.
pub(super) fn machine_answer(blow: Option<&Blow>) -> Option<Response<Body>> {
    let Some(Blow::Answers(status, _)) = blow else { return None };
    let (code, words) = match status {
        400 => (Code::InvalidArgument, "invalid argument"),
        401 => (Code::Unauthenticated, "authentication handshake failed"),
        403 => (Code::PermissionDenied, "not authorized"),
        404 => (Code::NotFound, "not found"),
        409 => (Code::AlreadyExists, "already exists"),
        429 => (Code::ResourceExhausted, "too many requests"),
        500 => (Code::Unknown, "rpc error"),
        501 => (Code::Unimplemented, "not implemented"),
        504 => (Code::DeadlineExceeded, "context deadline exceeded"),
        _ => (Code::Unavailable, "error reading from server: EOF"),
    };
    Some(Status::new(code, words).into_http())
}

/// An answer that comes in small pieces.
pub(super) fn dripped(
    shared: Arc<Shared>,
    blow: Option<&Blow>,
    response: Response<Body>,
) -> Response<Body> {
    let Some(Blow::Drips(ms)) = blow else { return response };
    let step = Duration::from_millis(ms / DRIPS);
    response.map(|body| {
        Body::new(StreamBody::new(stream::unfold(Drip::Waits(body), move |drip| {
            let shared = shared.clone();
            async move {
                let mut rest = match drip {
                    Drip::Waits(body) => body.collect().await.ok()?.to_bytes(),
                    Drip::Rest(rest, _) if rest.is_empty() => return None,
                    Drip::Rest(rest, size) => {
                        let mut rest = rest;
                        let piece = rest.split_to(size.min(rest.len()));
                        pause(shared.time.real(step)).await;
                        return Some((
                            Ok::<_, io::Error>(Frame::data(piece)),
                            Drip::Rest(rest, size),
                        ));
                    }
                };
                let size = rest.len().div_ceil(usize::try_from(DRIPS).unwrap_or(1)).max(1);
                let piece = rest.split_to(size.min(rest.len()));
                Some((Ok(Frame::data(piece)), Drip::Rest(rest, size)))
            }
        })))
    })
}

/// How far a dripping answer has come.
enum Drip {
    Waits(Body),
    Rest(Bytes, usize),
}
