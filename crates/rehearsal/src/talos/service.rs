//! Puts the machines' answers on the wire: the gRPC services of one machine, for one caller.
//!
//! ```text
//!  request --> director: here, one other, or many --> who may (methods) --> typed service --> Door
//! ```

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use castle_talos_proto::cluster::cluster_service_server::ClusterServiceServer;
use castle_talos_proto::cosi::state_server::StateServer;
use castle_talos_proto::machine::machine_service_server::MachineServiceServer;
use castle_talos_proto::storage::storage_service_server::StorageServiceServer;
use http::{Request, Response};
use prost_types::Timestamp;
use tonic::Status;
use tonic::server::NamedService;
use tower::{Service, ServiceExt};

use super::{Call, Refusal, Reply};
use crate::fidelity;
use crate::turn::{Door, Listen, Peer};

mod archive;
mod director;
mod frame;
mod machine;
mod methods;
mod state;
#[cfg(test)]
mod tests;
mod watch;

use methods::{Method, Mode};

/// Every method that is known.
pub(crate) fn known_methods() -> Vec<fidelity::Method> {
    Method::all().iter().map(Method::known).collect()
}

/// Answers one request to a machine.
pub async fn answer(
    door: Arc<dyn Door>,
    vmid: u32,
    listen: Listen,
    peer: Option<Peer>,
    request: Request<Body>,
) -> Response<Body> {
    let mode = match listen {
        Listen::Maintenance { .. } => Mode::Maintenance,
        _ => Mode::Configured,
    };
    let roles = match mode {
        // Whoever comes to a machine without a config may read.
        Mode::Maintenance => vec!["os:reader".to_owned()],
        Mode::Configured => peer.map(|peer| peer.organizations).unwrap_or_default(),
    };
    director::direct(Caller { door, vmid, mode, roles: roles.into() }, request).await
}

/// Somebody who calls a machine.
#[derive(Clone)]
struct Caller {
    door: Arc<dyn Door>,
    vmid: u32,
    mode: Mode,
    roles: Arc<[String]>,
}

impl Caller {
    fn is(&self, role: &str) -> bool {
        self.roles.iter().any(|own| own.strip_prefix("os:") == Some(role))
    }

    fn is_admin(&self) -> bool {
        self.is("admin")
    }

    /// Answers a request to this very machine.
    async fn local(self, request: Request<Body>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let refuse = |status: Status| status.into_http::<Body>();
        let Some(method) = Method::find(&path) else {
            let mut parts = path.trim_start_matches('/').splitn(2, '/');
            let (service, name) =
                (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let text = if Method::is_service(service) {
                format!("unknown method {name} for service {service}")
            } else {
                format!("unknown service {service}")
            };
            return refuse(Status::unimplemented(text));
        };
        if !method.allows(|role| self.is(role)) {
            return refuse(Status::permission_denied("not authorized"));
        }
        if !method.is_emulated() {
            return refuse(method.recorded_refusal(self.mode));
        }
        // One service alone is set up: a router of all would cost more than most answers.
        match path.split('/').nth(1).unwrap_or_default() {
            StateServer::<Self>::NAME => called(StateServer::new(self), request).await,
            StorageServiceServer::<Self>::NAME => {
                called(StorageServiceServer::new(self), request).await
            }
            ClusterServiceServer::<Self>::NAME => {
                called(ClusterServiceServer::new(self), request).await
            }
            _ => called(MachineServiceServer::new(self), request).await,
        }
    }

    /// Puts a call, and waits where the machine says nothing yet.
    async fn put(&self, call: Call) -> Result<Reply, Status> {
        loop {
            let changed = self.door.changed();
            match self.door.call(self.vmid, call.clone()) {
                Ok(reply) => return Ok(reply),
                Err(Refusal::Status(code, text)) => return Err(Status::new(code, text)),
                Err(Refusal::Waits) => changed.await,
            }
        }
    }

    /// A moment of the world as protobuf writes it.
    fn timestamp(&self, at: u64) -> Timestamp {
        let moment = self.door.time_of_day(at).0;
        Timestamp {
            seconds: i64::try_from(moment / 1000).unwrap_or(i64::MAX),
            nanos: i32::try_from(moment % 1000).unwrap_or(0) * 1_000_000,
        }
    }
}

/// Has one service answer.
async fn called<S, B>(service: S, request: Request<Body>) -> Response<Body>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible>,
    B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
{
    match service.oneshot(request).await {
        Ok(response) => response.map(Body::new),
        Err(never) => match never {},
    }
}

fn mixed_up() -> Status {
    Status::internal("the machine answered something else")
}
