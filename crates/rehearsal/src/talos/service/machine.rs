//! The machine service and the storage service of one machine.

use std::pin::Pin;

use castle_talos_proto::common::{Data, Error};
use castle_talos_proto::machine::machine_service_server::MachineService;
use castle_talos_proto::machine::{
    ApplyConfiguration, ApplyConfigurationRequest, ApplyConfigurationResponse, Bootstrap,
    BootstrapRequest, BootstrapResponse, EtcdForfeitLeadership, EtcdForfeitLeadershipRequest,
    EtcdForfeitLeadershipResponse, EtcdLeaveCluster, EtcdLeaveClusterRequest,
    EtcdLeaveClusterResponse, EtcdMember, EtcdMemberListRequest, EtcdMemberListResponse,
    EtcdMemberStatus, EtcdMembers, EtcdRemoveMemberById, EtcdRemoveMemberByIdRequest,
    EtcdRemoveMemberByIdResponse, EtcdStatus, EtcdStatusResponse, Event, EventsRequest,
    FeaturesInfo, FileInfo, Hostname, HostnameResponse, ListRequest, MemInfo, Memory,
    MemoryResponse, PlatformInfo, ReadRequest, Reboot, RebootRequest, RebootResponse, Reset,
    ResetRequest, ResetResponse, ServiceEvent, ServiceEvents, ServiceHealth, ServiceInfo,
    ServiceList, ServiceListResponse, ServiceRestart, ServiceRestartRequest,
    ServiceRestartResponse, Shutdown, ShutdownRequest, ShutdownResponse, SystemStat,
    SystemStatResponse, Version, VersionInfo, VersionResponse, apply_configuration_request,
    reset_request,
};
use castle_talos_proto::storage::storage_service_server::StorageService;
use castle_talos_proto::storage::{Disk, Disks, DisksResponse};
use futures::Stream;
use futures::stream::{self, StreamExt};
use tonic::{Request, Response, Status};

use super::archive::{archive, kubeconfig};
use super::methods::Mode;
use super::watch::follow;
use super::{Caller, mixed_up};
use crate::talos::{About, ApplyMode, Call, ConfigText, Member, Reply, ResetCall, ServiceShown};

/// Where the kernel shows the id of its boot.
const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";

/// Answers one after the other.
pub(super) type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Caller {
    async fn about(&self) -> Result<About, Status> {
        match self.put(Call::About).await? {
            Reply::About(about) => Ok(about),
            _ => Err(mixed_up()),
        }
    }

    async fn begin(&self, call: Call) -> Result<String, Status> {
        match self.put(call).await? {
            Reply::Begun(actor_id) => Ok(actor_id),
            _ => Err(mixed_up()),
        }
    }

    fn service(&self, service: ServiceShown) -> ServiceInfo {
        let last = service.events.last();
        let health = ServiceHealth {
            unknown: service.healthy.is_none(),
            healthy: service.healthy == Some(true),
            last_message: String::new(),
            last_change: last.map(|(at, _, _)| self.timestamp(*at)),
        };
        let event = |(at, state, msg): (u64, String, String)| ServiceEvent {
            msg,
            state,
            ts: Some(self.timestamp(at)),
        };
        ServiceInfo {
            id: service.id,
            state: service.state,
            events: Some(ServiceEvents { events: service.events.into_iter().map(event).collect() }),
            health: Some(health),
        }
    }
}

#[tonic::async_trait]
impl MachineService for Caller {
    async fn version(&self, _: Request<()>) -> Result<Response<VersionResponse>, Status> {
        let info = VersionInfo {
            tag: self.about().await?.version,
            os: "linux".to_owned(),
            arch: "amd64".to_owned(),
            ..VersionInfo::default()
        };
        let version = Version {
            version: Some(info),
            platform: Some(PlatformInfo { name: "nocloud".to_owned(), mode: "cloud".to_owned() }),
            features: Some(FeaturesInfo { rbac: self.mode == Mode::Configured }),
            ..Version::default()
        };
        Ok(Response::new(VersionResponse { messages: vec![version] }))
    }

    async fn hostname(&self, _: Request<()>) -> Result<Response<HostnameResponse>, Status> {
        let hostname = self.about().await?.hostname;
        let hostname = Hostname { hostname, ..Hostname::default() };
        Ok(Response::new(HostnameResponse { messages: vec![hostname] }))
    }

    async fn memory(&self, _: Request<()>) -> Result<Response<MemoryResponse>, Status> {
        let total = self.about().await?.memory_mib * 1024;
        let meminfo = MemInfo { memtotal: total, memfree: total / 2, memavailable: total / 2 };
        let memory = Memory { meminfo: Some(meminfo), ..Memory::default() };
        Ok(Response::new(MemoryResponse { messages: vec![memory] }))
    }

    async fn system_stat(&self, _: Request<()>) -> Result<Response<SystemStatResponse>, Status> {
        let booted = self.door.time_of_day(self.about().await?.booted);
        let stat = SystemStat { boot_time: booted.0 / 1000, ..SystemStat::default() };
        Ok(Response::new(SystemStatResponse { messages: vec![stat] }))
    }

    async fn apply_configuration(
        &self,
        request: Request<ApplyConfigurationRequest>,
    ) -> Result<Response<ApplyConfigurationResponse>, Status> {
        use apply_configuration_request::Mode as Asked;
        let request = request.into_inner();
        let mode = match request.mode() {
            Asked::Reboot => ApplyMode::Reboot,
            Asked::Auto => ApplyMode::Auto,
            Asked::NoReboot => ApplyMode::NoReboot,
            Asked::Staged => ApplyMode::Staged,
            Asked::Try => ApplyMode::Try,
        };
        let seconds = request.try_mode_timeout.map(|timeout| timeout.seconds);
        let config = String::from_utf8(request.data)
            .map_err(|_| Status::invalid_argument("the config is not text"))?;
        let call = Call::Apply {
            config: ConfigText(config),
            mode,
            dry_run: request.dry_run,
            try_seconds: seconds.and_then(|seconds| u64::try_from(seconds).ok()),
            admin: self.is_admin(),
        };
        let Reply::Applied { mode, details } = self.put(call).await? else {
            return Err(mixed_up());
        };
        let mode = match mode {
            ApplyMode::Reboot => Asked::Reboot,
            ApplyMode::Auto => Asked::Auto,
            ApplyMode::NoReboot => Asked::NoReboot,
            ApplyMode::Staged => Asked::Staged,
            ApplyMode::Try => Asked::Try,
        };
        let applied = ApplyConfiguration {
            mode: mode.into(),
            mode_details: details,
            ..ApplyConfiguration::default()
        };
        Ok(Response::new(ApplyConfigurationResponse { messages: vec![applied] }))
    }

    async fn bootstrap(
        &self,
        _: Request<BootstrapRequest>,
    ) -> Result<Response<BootstrapResponse>, Status> {
        self.put(Call::Bootstrap).await?;
        Ok(Response::new(BootstrapResponse { messages: vec![Bootstrap::default()] }))
    }

    async fn etcd_member_list(
        &self,
        _: Request<EtcdMemberListRequest>,
    ) -> Result<Response<EtcdMemberListResponse>, Status> {
        let Reply::Members(members) = self.put(Call::EtcdMembers).await? else {
            return Err(mixed_up());
        };
        let members = members.into_iter().map(shown).collect();
        let list = EtcdMembers { members, ..EtcdMembers::default() };
        Ok(Response::new(EtcdMemberListResponse { messages: vec![list] }))
    }

    async fn etcd_status(&self, _: Request<()>) -> Result<Response<EtcdStatusResponse>, Status> {
        let reply = self.put(Call::EtcdStatus).await?;
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

    async fn etcd_remove_member_by_id(
        &self,
        request: Request<EtcdRemoveMemberByIdRequest>,
    ) -> Result<Response<EtcdRemoveMemberByIdResponse>, Status> {
        self.put(Call::EtcdRemove { member: request.into_inner().member_id }).await?;
        let messages = vec![EtcdRemoveMemberById::default()];
        Ok(Response::new(EtcdRemoveMemberByIdResponse { messages }))
    }

    async fn etcd_leave_cluster(
        &self,
        _: Request<EtcdLeaveClusterRequest>,
    ) -> Result<Response<EtcdLeaveClusterResponse>, Status> {
        self.put(Call::EtcdLeave).await?;
        let messages = vec![EtcdLeaveCluster::default()];
        Ok(Response::new(EtcdLeaveClusterResponse { messages }))
    }

    async fn etcd_forfeit_leadership(
        &self,
        _: Request<EtcdForfeitLeadershipRequest>,
    ) -> Result<Response<EtcdForfeitLeadershipResponse>, Status> {
        let Reply::Name(member) = self.put(Call::EtcdForfeit).await? else {
            return Err(mixed_up());
        };
        let messages = vec![EtcdForfeitLeadership { member, ..EtcdForfeitLeadership::default() }];
        Ok(Response::new(EtcdForfeitLeadershipResponse { messages }))
    }

    async fn service_list(&self, _: Request<()>) -> Result<Response<ServiceListResponse>, Status> {
        let Reply::Services(services) = self.put(Call::Services).await? else {
            return Err(mixed_up());
        };
        let services = services.into_iter().map(|service| self.service(service)).collect();
        let list = ServiceList { services, ..ServiceList::default() };
        Ok(Response::new(ServiceListResponse { messages: vec![list] }))
    }

    async fn service_restart(
        &self,
        request: Request<ServiceRestartRequest>,
    ) -> Result<Response<ServiceRestartResponse>, Status> {
        let id = request.into_inner().id;
        self.put(Call::ServiceRestart { id: id.clone() }).await?;
        let resp = format!("Service {id:?} restarted");
        let messages = vec![ServiceRestart { resp, ..ServiceRestart::default() }];
        Ok(Response::new(ServiceRestartResponse { messages }))
    }

    type KubeconfigStream = Answers<Data>;

    async fn kubeconfig(&self, _: Request<()>) -> Result<Response<Answers<Data>>, Status> {
        let reply = self.put(Call::Kubeconfig).await?;
        let Reply::Kubeconfig { cluster, server, authority } = reply else {
            return Err(mixed_up());
        };
        let text = kubeconfig(&cluster, &server, &authority)?;
        let data = Data { bytes: archive("kubeconfig", &text), ..Data::default() };
        Ok(Response::new(stream::iter([Ok(data)]).boxed()))
    }

    type ListStream = Answers<FileInfo>;

    async fn list(
        &self,
        request: Request<ListRequest>,
    ) -> Result<Response<Answers<FileInfo>>, Status> {
        let root = request.into_inner().root;
        let Reply::Files(names) = self.put(Call::Files { root: root.clone() }).await? else {
            return Err(mixed_up());
        };
        let path = |name: &str| format!("{}/{name}", root.trim_end_matches('/'));
        let file = |name: &str, relative: &str| FileInfo {
            name: name.to_owned(),
            relative_name: relative.to_owned(),
            is_dir: true,
            ..FileInfo::default()
        };
        // The folder itself comes first.
        let mut found = vec![Ok(file(&root, "."))];
        found.extend(names.iter().map(|name| Ok(file(&path(name), name))));
        Ok(Response::new(stream::iter(found).boxed()))
    }

    type ReadStream = Answers<Data>;

    /// The one file that is there is the one by which talosctl knows that a machine has rebooted.
    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Answers<Data>>, Status> {
        let path = request.into_inner().path;
        let boot_id = self.about().await?.boot_id;
        if path != BOOT_ID_FILE {
            return Err(Status::not_found(format!("stat {path}: no such file or directory")));
        }
        let data = Data { bytes: format!("{boot_id}\n").into_bytes(), ..Data::default() };
        Ok(Response::new(stream::iter([Ok(data)]).boxed()))
    }

    type EventsStream = Answers<Event>;

    async fn events(
        &self,
        request: Request<EventsRequest>,
    ) -> Result<Response<Answers<Event>>, Status> {
        let request = request.into_inner();
        let Reply::Events(past) = self.put(Call::Events { after: 0 }).await? else {
            return Err(mixed_up());
        };
        // Nobody is told of the past unless he asks; a negative number asks for all of it.
        let last = past.last().map_or(0, |happening| happening.number);
        let after = match u64::try_from(request.tail_events) {
            Ok(0) if request.tail_seconds == 0 && request.tail_id.is_empty() => last,
            Ok(tail) if tail > 0 => last.saturating_sub(tail),
            _ => 0,
        };
        Ok(Response::new(follow(self.clone(), after, request.with_actor_id)))
    }

    async fn reboot(&self, _: Request<RebootRequest>) -> Result<Response<RebootResponse>, Status> {
        let actor_id = self.begin(Call::Reboot).await?;
        let messages = vec![Reboot { actor_id, ..Reboot::default() }];
        Ok(Response::new(RebootResponse { messages }))
    }

    async fn shutdown(
        &self,
        _: Request<ShutdownRequest>,
    ) -> Result<Response<ShutdownResponse>, Status> {
        let actor_id = self.begin(Call::Shutdown).await?;
        let messages = vec![Shutdown { actor_id, ..Shutdown::default() }];
        Ok(Response::new(ShutdownResponse { messages }))
    }

    async fn reset(
        &self,
        request: Request<ResetRequest>,
    ) -> Result<Response<ResetResponse>, Status> {
        let actor_id = self.begin(Call::Reset(wish(request.into_inner())?)).await?;
        let messages = vec![Reset { actor_id, ..Reset::default() }];
        Ok(Response::new(ResetResponse { messages }))
    }
}

/// What a reset asks for, if it makes sense.
fn wish(request: ResetRequest) -> Result<ResetCall, Status> {
    use reset_request::WipeMode;
    let mode = request.mode();
    if mode == WipeMode::SystemDisk && !request.user_disks_to_wipe.is_empty() {
        let text = "reset failed: invalid input, wipe mode SYSTEM_DISK doesn't support UserDisksToWipe parameter";
        return Err(Status::unknown(text));
    }
    if mode == WipeMode::UserDisks && !request.system_partitions_to_wipe.is_empty() {
        let text = "reset failed: invalid input, wipe mode USER_DISKS doesn't support SystemPartitionsToWipe parameter";
        return Err(Status::unknown(text));
    }
    let named = !request.system_partitions_to_wipe.is_empty();
    let partitions: Vec<String> = request
        .system_partitions_to_wipe
        .into_iter()
        .filter(|partition| partition.wipe)
        .map(|partition| partition.label)
        .collect();
    Ok(ResetCall {
        graceful: request.graceful,
        reboot: request.reboot,
        system_disk: mode != WipeMode::UserDisks && !(named && partitions.is_empty()),
        partitions,
        user_disks: request.user_disks_to_wipe,
    })
}

#[tonic::async_trait]
impl StorageService for Caller {
    async fn disks(&self, _: Request<()>) -> Result<Response<DisksResponse>, Status> {
        let disk = |(index, (name, gib)): (usize, (&str, u64))| Disk {
            size: gib << 30,
            model: "QEMU HARDDISK".to_owned(),
            device_name: format!("/dev/{name}"),
            system_disk: index == 0,
            subsystem: "/sys/class/block".to_owned(),
            ..Disk::default()
        };
        let disks = self.about().await?.disks.into_iter().enumerate().map(disk).collect();
        let disks = Disks { disks, ..Disks::default() };
        Ok(Response::new(DisksResponse { messages: vec![disks] }))
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

/// Why a sequence failed, as an event tells it.
pub(super) fn error(message: String) -> Error {
    Error { code: 0, message }
}
