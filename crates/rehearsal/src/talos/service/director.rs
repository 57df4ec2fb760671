//! Sends a request where its metadata say: to this machine, through it to another one, or to many at once.

use axum::body::Body;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::Frame;
use tonic::{Code, Status};

use super::frame::{Frames, Next, add, complaint, field, framed, signed};
use super::methods::Mode;
use super::{Caller, mixed_up};
use crate::talos::{Call, Reply};

/// The largest request that is sent on to several machines; Talos takes messages of 32 MiB.
const BODY_MAX: usize = 32 * 1024 * 1024;

/// The services whose answers say whom they are from, so that many may be asked at once.
const MANY: [&str; 5] = [
    "/machine.MachineService/",
    "/cluster.ClusterService/",
    "/inspect.InspectService/",
    "/storage.StorageService/",
    "/time.TimeService/",
];

/// The methods of those services that answer with a stream.
const STREAMS: [&str; 5] = [
    "/machine.MachineService/Events",
    "/machine.MachineService/Kubeconfig",
    "/machine.MachineService/List",
    "/machine.MachineService/Read",
    "/cluster.ClusterService/HealthCheck",
];

pub(super) async fn direct(caller: Caller, request: Request<Body>) -> Response<Body> {
    let (nodes, node) = (values(request.headers(), "nodes"), values(request.headers(), "node"));
    // A machine without a config sends nothing on.
    if caller.mode == Mode::Maintenance || (nodes.is_empty() && node.is_empty()) {
        return caller.local(request).await;
    }
    if node.len() > 1 {
        let status = Status::invalid_argument("node metadata must be single-valued");
        return status.into_http();
    }
    if nodes.is_empty() {
        return match caller.to(&node[0]).await {
            Ok(there) => there.local(request).await,
            Err(status) => status.into_http(),
        };
    }
    if caller.is_alone(&nodes).await {
        return caller.local(request).await;
    }
    let path = request.uri().path().to_owned();
    if !MANY.iter().any(|service| path.starts_with(service)) {
        let text = format!("one-2-many proxying is not supported for method {path}");
        return Status::invalid_argument(text).into_http();
    }
    many(caller, &path, nodes, request).await
}

fn values(headers: &HeaderMap, name: &str) -> Vec<String> {
    let found = headers.get_all(name).iter();
    found.filter_map(|value| value.to_str().ok()).map(str::to_owned).collect()
}

impl Caller {
    /// The same caller at another machine of the cluster.
    async fn to(&self, target: &str) -> Result<Self, Status> {
        match self.put(Call::Route { target: target.to_owned() }).await? {
            Reply::Route { to: None, .. } => Ok(self.clone()),
            Reply::Route { to: Some(vmid), .. } => Ok(Self { vmid, ..self.clone() }),
            _ => Err(mixed_up()),
        }
    }

    /// Whether a machine that sends nothing on is asked for itself alone.
    async fn is_alone(&self, nodes: &[String]) -> bool {
        let [target] = nodes else { return false };
        let route = self.put(Call::Route { target: target.clone() }).await;
        matches!(route, Ok(Reply::Route { to: None, forwards: false }))
    }
}

async fn many(
    caller: Caller,
    path: &str,
    targets: Vec<String>,
    request: Request<Body>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, BODY_MAX).collect().await else {
        return Status::resource_exhausted("the request is too large").into_http();
    };
    let body = body.to_bytes();
    let mut answers = Vec::new();
    for target in targets {
        let there = match caller.to(&target).await {
            // Workers do not even try: the whole call is refused.
            Err(status) if status.code() == Code::PermissionDenied => return status.into_http(),
            there => there,
        };
        let mut request = Request::new(Body::new(Full::new(body.clone())));
        *request.uri_mut() = head.uri.clone();
        *request.method_mut() = head.method.clone();
        *request.version_mut() = head.version;
        *request.headers_mut() = head.headers.clone();
        answers.push((target, there, request));
    }
    if STREAMS.contains(&path) {
        return streamed(answers);
    }
    let mut all = Vec::new();
    for (target, there, request) in answers {
        all.extend(match there {
            Err(status) => field(&complaint(&target, &status)),
            Ok(there) => told(&target, Frames::of(there.local(request).await)).await,
        });
    }
    respond(stream::iter([Ok(Frame::data(framed(&all)))]))
}

/// The one message of a machine, signed, or its complaint.
async fn told(target: &str, mut frames: Frames) -> Vec<u8> {
    let mut message = Bytes::new();
    loop {
        match frames.next().await {
            Next::Message(next) => message = next,
            Next::End(status) if status.code() == Code::Ok => {
                return add(&message, &signed(target));
            }
            Next::End(status) => return field(&complaint(target, &status)),
        }
    }
}

type Answer = (String, Result<Caller, Status>, Request<Body>);

fn streamed(answers: Vec<Answer>) -> Response<Body> {
    let streams = answers.into_iter().map(|(target, there, request)| {
        let start = (target, Some((there, request)), None::<Frames>, false);
        let next = stream::unfold(start, |(target, asked, frames, ended)| async move {
            if ended {
                return None;
            }
            let mut frames = match (asked, frames) {
                (Some((Err(status), _)), _) => {
                    return Some((complaint(&target, &status), (target, None, None, true)));
                }
                (Some((Ok(there), request)), _) => Frames::of(there.local(request).await),
                (None, Some(frames)) => frames,
                (None, None) => return None,
            };
            match frames.next().await {
                Next::Message(message) => {
                    let signed = [&message[..], &signed(&target)].concat();
                    Some((signed, (target, None, Some(frames), false)))
                }
                Next::End(status) if status.code() == Code::Ok => None,
                Next::End(status) => {
                    Some((complaint(&target, &status), (target, None, None, true)))
                }
            }
        });
        next.boxed()
    });
    let all = stream::select_all(streams.collect::<Vec<_>>());
    respond(all.map(|message| Ok(Frame::data(framed(&message)))))
}

/// A response that goes well in the end, whatever stands in it.
fn respond(
    frames: impl futures::Stream<Item = Result<Frame<Bytes>, Status>> + Send + 'static,
) -> Response<Body> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
    let frames = frames.chain(stream::iter([Ok(Frame::trailers(trailers))]));
    let mut response = Response::new(Body::new(StreamBody::new(frames)));
    let kind = http::HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
    response
}
