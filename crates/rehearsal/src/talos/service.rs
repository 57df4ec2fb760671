//! Puts the machines' answers on the wire: the gRPC services of one machine, for one connection.

use std::pin::Pin;
use std::sync::Arc;

use castle_talos_proto::cosi::state_server::{State, StateServer};
use castle_talos_proto::cosi::{
    Event, EventType, GetRequest, GetResponse, ListRequest, ListResponse, Metadata, Resource, Spec,
    WatchRequest, WatchResponse,
};
use castle_talos_proto::machine::apply_configuration_request::Mode;
use castle_talos_proto::machine::machine_service_server::{MachineService, MachineServiceServer};
use castle_talos_proto::machine::{
    ApplyConfiguration, ApplyConfigurationRequest, ApplyConfigurationResponse, Bootstrap,
    BootstrapRequest, BootstrapResponse, EtcdMember, EtcdMemberListRequest, EtcdMemberListResponse,
    EtcdMemberStatus, EtcdMembers, EtcdStatus, EtcdStatusResponse, FeaturesInfo, ServiceHealth,
    ServiceInfo, ServiceList, ServiceListResponse, Version, VersionInfo, VersionResponse,
};
use futures::Stream;
use futures::stream::{self, StreamExt as _};
use tonic::{Code, Request, Response, Status};

use super::{Call, ConfigText, Member, Refusal, Reply};
use crate::turn::{Door, Listen, Peer};

/// The services of one machine as one caller may use them.
pub fn routes(door: Arc<dyn Door>, vmid: u32, listen: Listen, peer: Option<Peer>) -> axum::Router {
    let organizations = peer.map(|peer| peer.organizations).unwrap_or_default();
    let caller = Caller { door, vmid, role: role(listen, &organizations) };
    tonic::service::Routes::new(MachineServiceServer::new(caller.clone()))
        .add_service(StateServer::new(caller))
        .into_axum_router()
}

/// What a caller may do, from the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// Nothing.
    Nobody,
    /// Read.
    Reader,
    /// Read, and configure a machine that has no config yet.
    Maintenance,
    /// Everything.
    Admin,
}

fn role(listen: Listen, organizations: &[String]) -> Role {
    let has = |name: &str| organizations.iter().any(|organization| organization == name);
    match listen {
        Listen::Maintenance { .. } => Role::Maintenance,
        Listen::Secure { .. } if has("os:admin") => Role::Admin,
        Listen::Secure { .. } if has("os:reader") || has("os:operator") => Role::Reader,
        _ => Role::Nobody,
    }
}

#[derive(Clone)]
struct Caller {
    door: Arc<dyn Door>,
    vmid: u32,
    role: Role,
}

impl Caller {
    /// Puts a call, if the caller may, and waits where the machine says nothing yet.
    async fn put(&self, least: Role, call: Call) -> Result<Reply, Status> {
        if self.role < least {
            return Err(Status::permission_denied("not authorized"));
        }
        loop {
            let changed = self.door.changed();
            match self.door.call(self.vmid, call.clone()) {
                Ok(reply) => return Ok(reply),
                Err(Refusal::Status(code, text)) => return Err(Status::new(code, text)),
                Err(Refusal::Waits) => changed.await,
            }
        }
    }

    async fn resources(&self, namespace: String, kind: String) -> Result<Vec<Resource>, Status> {
        let call = Call::Resources { namespace: namespace.clone(), kind: kind.clone() };
        let Reply::Resources(found) = self.put(Role::Reader, call).await? else {
            return Err(mixed_up());
        };
        let resource = |(id, yaml): (String, String)| Resource {
            metadata: Some(Metadata {
                namespace: namespace.clone(),
                r#type: kind.clone(),
                id,
                version: "1".to_owned(),
                phase: "running".to_owned(),
                ..Metadata::default()
            }),
            spec: Some(Spec { proto_spec: Vec::new(), yaml_spec: yaml }),
        };
        Ok(found.into_iter().map(resource).collect())
    }
}

fn mixed_up() -> Status {
    Status::internal("the machine answered something else")
}

#[tonic::async_trait]
impl MachineService for Caller {
    async fn version(&self, _: Request<()>) -> Result<Response<VersionResponse>, Status> {
        let Reply::Version(tag) = self.put(Role::Reader, Call::Version).await? else {
            return Err(mixed_up());
        };
        let info = VersionInfo {
            tag,
            os: "linux".to_owned(),
            arch: "amd64".to_owned(),
            ..VersionInfo::default()
        };
        let version = Version {
            version: Some(info),
            features: Some(FeaturesInfo { rbac: self.role == Role::Admin }),
            ..Version::default()
        };
        Ok(Response::new(VersionResponse { messages: vec![version] }))
    }

    async fn apply_configuration(
        &self,
        request: Request<ApplyConfigurationRequest>,
    ) -> Result<Response<ApplyConfigurationResponse>, Status> {
        let request = request.into_inner();
        // Stricter than Talos 1.13: 1.14 refuses the mode that is the protocol's default.
        if request.mode() != Mode::Auto {
            return Err(Status::unimplemented("only the mode AUTO is emulated"));
        }
        let config = String::from_utf8(request.data)
            .map_err(|_| Status::invalid_argument("the config is not text"))?;
        let call = Call::Apply { config: ConfigText(config), dry_run: request.dry_run };
        let Reply::Applied(mode_details) = self.put(Role::Maintenance, call).await? else {
            return Err(mixed_up());
        };
        let applied = ApplyConfiguration {
            mode: Mode::NoReboot.into(),
            mode_details,
            ..ApplyConfiguration::default()
        };
        Ok(Response::new(ApplyConfigurationResponse { messages: vec![applied] }))
    }

    async fn bootstrap(
        &self,
        _: Request<BootstrapRequest>,
    ) -> Result<Response<BootstrapResponse>, Status> {
        self.put(Role::Admin, Call::Bootstrap).await?;
        Ok(Response::new(BootstrapResponse { messages: vec![Bootstrap::default()] }))
    }

    async fn etcd_member_list(
        &self,
        _: Request<EtcdMemberListRequest>,
    ) -> Result<Response<EtcdMemberListResponse>, Status> {
        let Reply::Members(members) = self.put(Role::Reader, Call::EtcdMembers).await? else {
            return Err(mixed_up());
        };
        let members = members.into_iter().map(shown).collect();
        let list = EtcdMembers { members, ..EtcdMembers::default() };
        Ok(Response::new(EtcdMemberListResponse { messages: vec![list] }))
    }

    async fn etcd_status(&self, _: Request<()>) -> Result<Response<EtcdStatusResponse>, Status> {
        let reply = self.put(Role::Reader, Call::EtcdStatus).await?;
        let Reply::Status { member, leader, learner } = reply else { return Err(mixed_up()) };
        let status = EtcdMemberStatus {
            protocol_version: "3.6.12".to_owned(),
            storage_version: "3.6.0".to_owned(),
            member_id: member,
            leader,
            is_learner: learner,
            ..EtcdMemberStatus::default()
        };
        let status = EtcdStatus { member_status: Some(status), ..EtcdStatus::default() };
        Ok(Response::new(EtcdStatusResponse { messages: vec![status] }))
    }

    async fn service_list(&self, _: Request<()>) -> Result<Response<ServiceListResponse>, Status> {
        let Reply::Services(services) = self.put(Role::Reader, Call::Services).await? else {
            return Err(mixed_up());
        };
        let info = |(id, state, healthy): (String, String, Option<bool>)| ServiceInfo {
            id,
            state,
            events: None,
            health: Some(ServiceHealth {
                unknown: healthy.is_none(),
                healthy: healthy.unwrap_or(false),
                ..ServiceHealth::default()
            }),
        };
        let services = services.into_iter().map(info).collect();
        let list = ServiceList { services, ..ServiceList::default() };
        Ok(Response::new(ServiceListResponse { messages: vec![list] }))
    }
}

fn shown(member: Member) -> EtcdMember {
    let url = |port: u16| format!("https://{}:{port}", member.address);
    EtcdMember {
        id: member.id,
        client_urls: if member.hostname.is_empty() { Vec::new() } else { vec![url(2379)] },
        peer_urls: vec![url(2380)],
        hostname: member.hostname,
        is_learner: member.learner,
    }
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl State for Caller {
    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        let GetRequest { namespace, r#type, id } = request.into_inner();
        let missing = format!("resource {type}({namespace}/{id}) doesn't exist");
        let found = self.resources(namespace, r#type).await?;
        let resource = found.into_iter().find(|resource| is_called(resource, &id));
        let resource = resource.ok_or_else(|| Status::new(Code::NotFound, missing))?;
        Ok(Response::new(GetResponse { resource: Some(resource) }))
    }

    type ListStream = Answers<ListResponse>;

    async fn list(
        &self,
        request: Request<ListRequest>,
    ) -> Result<Response<Answers<ListResponse>>, Status> {
        let ListRequest { namespace, r#type } = request.into_inner();
        let found = self.resources(namespace, r#type).await?;
        let answers =
            found.into_iter().map(|resource| Ok(ListResponse { resource: Some(resource) }));
        Ok(Response::new(stream::iter(answers).boxed()))
    }

    type WatchStream = Answers<WatchResponse>;

    /// Follows one resource: what it says now, then whatever it says anew.
    async fn watch(
        &self,
        request: Request<WatchRequest>,
    ) -> Result<Response<Answers<WatchResponse>>, Status> {
        let request = request.into_inner();
        let Some(id) = request.id.clone() else {
            return Err(Status::unimplemented("only the watch of one resource is emulated"));
        };
        // The first look is made at once, so that a refusal is the answer to the call itself.
        self.resources(request.namespace.clone(), request.r#type.clone()).await?;
        let start = (self.clone(), request, id, None::<Resource>);
        let answers = stream::unfold(start, |(caller, request, id, last)| async move {
            loop {
                let changed = caller.door.changed();
                let found =
                    match caller.resources(request.namespace.clone(), request.r#type.clone()).await
                    {
                        Ok(found) => found,
                        Err(status) => return Some((Err(status), (caller, request, id, last))),
                    };
                let now = found.into_iter().find(|resource| is_called(resource, &id));
                if now.is_some() && now != last {
                    let kind = if last.is_none() { EventType::Created } else { EventType::Updated };
                    let event = Event {
                        resource: now.clone(),
                        event_type: kind.into(),
                        ..Event::default()
                    };
                    let answer = WatchResponse { event: vec![event] };
                    return Some((Ok(answer), (caller, request, id, now)));
                }
                changed.await;
            }
        });
        Ok(Response::new(answers.boxed()))
    }
}

fn is_called(resource: &Resource, id: &str) -> bool {
    resource.metadata.as_ref().is_some_and(|metadata| metadata.id == id)
}
