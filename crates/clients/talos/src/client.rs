//! A client of one machine's API: in maintenance mode (anyone, read mostly) or as the cluster's administrator.

use std::error::Error as _;
use std::future::Future;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use castle_model::{Class, Failure, Secret};
use castle_talos_proto::cosi::state_client::StateClient;
use castle_talos_proto::machine::apply_configuration_request::Mode;
use castle_talos_proto::machine::machine_service_client::MachineServiceClient;
use castle_talos_proto::machine::{
    ApplyConfigurationRequest, BootstrapRequest, EtcdMemberListRequest,
};
use castle_wire::connector::{End, EndRecord};
use castle_wire::failure::chain;
use castle_wire::tls::{Fingerprint, Recorded, client_config};
use castle_wire::{ClientIdentity, ConnectError, Connector, TlsError, Verify, World};
use thiserror::Error;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};

use crate::access::TalosAccess;
use crate::catalogue;

/// The port of Talos' API.
pub const PORT: u16 = 50_000;

/// How long dialling and the handshake may take. Machines are near; one that boots does not answer at all, and the
/// sooner it is asked again, the sooner it is seen.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);

/// How long one call may take, unless the caller says otherwise.
pub const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// How often an idle connection is tried, and how long the answer may take. Without it a connection to a
/// machine that vanished would stay "open" for ever.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(5));

/// Why a call to a machine did not succeed.
#[derive(Debug, Error)]
pub enum TalosError {
    /// The certificates for the connection are unusable.
    #[error("the certificates for machine {address} cannot be used")]
    Tls {
        /// Which machine.
        address: Ipv4Addr,
        /// Why not.
        #[source]
        source: TlsError,
    },
    /// No connection came about; nothing was sent.
    #[error("cannot reach the Talos API of machine {address}")]
    Connect {
        /// Which machine.
        address: Ipv4Addr,
        /// Why not.
        #[source]
        source: ConnectError,
    },
    /// The connection broke before the first call.
    #[error("the connection to the Talos API of machine {address} broke: {words}")]
    Broken {
        /// Which machine.
        address: Ipv4Addr,
        /// What the layers below say.
        words: String,
    },
    /// The machine did not do as asked.
    #[error("machine {address} answered {call} with {code:?}: {text}")]
    Refused {
        /// Which machine.
        address: Ipv4Addr,
        /// Which call.
        call: &'static str,
        /// The gRPC code.
        code: tonic::Code,
        /// Its words.
        text: String,
        /// How the connection ended, if it did.
        ended: Option<End>,
    },
    /// The machine did not answer in time.
    #[error("machine {address} did not answer {call} within {} s", .after.as_secs())]
    Deadline {
        /// Which machine.
        address: Ipv4Addr,
        /// Which call.
        call: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// The answer does not have the shape it should.
    #[error("the answer of machine {address} to {call} cannot be understood: {problem}")]
    Shape {
        /// Which machine.
        address: Ipv4Addr,
        /// Which call.
        call: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

impl TalosError {
    /// Decides whether the same call may be tried again, with a hint where one is known.
    #[must_use]
    pub fn class(&self) -> (Class, Option<String>) {
        match self {
            Self::Tls { .. } => (Class::Invalid, None),
            Self::Connect { source, .. } => (source.class(), source.hint()),
            Self::Broken { .. } | Self::Deadline { .. } => (Class::Transient, None),
            Self::Refused { code, text, ended, .. } => {
                let (class, hint) = catalogue::judge(*code, text, ended.as_ref());
                (class, hint.map(str::to_owned))
            }
            Self::Shape { .. } => (Class::Bug, None),
        }
    }

    /// The failure of something that needed this call.
    #[must_use]
    pub fn failure(&self, what: impl Into<String>) -> Failure {
        let (class, hint) = self.class();
        let mut failure = Failure::new(class, what, chain(self));
        failure.hint = hint;
        failure
    }

    /// Whether the machine says that what was asked for is there already.
    #[must_use]
    pub fn is_already_there(&self) -> bool {
        self.code() == Some(tonic::Code::AlreadyExists)
    }

    /// The gRPC code, if the machine itself answered.
    #[must_use]
    pub fn code(&self) -> Option<tonic::Code> {
        match self {
            Self::Refused { code, ended: None, .. } => Some(*code),
            _ => None,
        }
    }
}

/// A connection to one machine. Clones share it; when it breaks, the next call makes it anew, proven as before.
#[derive(Clone)]
pub struct Talos {
    pub(crate) address: Ipv4Addr,
    pub(crate) channel: Channel,
    ends: EndRecord,
    recorded: Option<Arc<Recorded>>,
}

/// What the machine did with a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// In Talos' words, such as `Applied configuration without a reboot`.
    pub details: String,
    /// What it dislikes but accepts.
    pub warnings: Vec<String>,
}

/// A member of etcd.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// Its id.
    pub id: u64,
    /// Its machine's name; empty while it is new.
    pub hostname: String,
    /// Where its peers reach it.
    pub peer_urls: Vec<String>,
    /// Whether it only listens yet.
    pub learner: bool,
}

/// What one member of etcd says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    /// Its id.
    pub id: u64,
    /// The id of the leader it follows; 0 if there is none.
    pub leader: u64,
    /// Whether it only listens yet.
    pub learner: bool,
    /// What it complains of.
    pub errors: Vec<String>,
}

/// A service of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Its name, such as `etcd`.
    pub id: String,
    /// Its state, such as `Running` or `Preparing`.
    pub state: String,
    /// Whether it is healthy, if that is known.
    pub healthy: Option<bool>,
}

impl Talos {
    /// Connects to a machine without an identity: any certificate is accepted and recorded, none is shown.
    ///
    /// # Errors
    /// If nothing answers.
    pub async fn maintenance(world: &World, address: Ipv4Addr) -> Result<Self, TalosError> {
        let recorded = Arc::new(Recorded::default());
        let verify = Verify::RecordOnly(recorded.clone());
        let mut talos = Self::connect(world, address, &verify, None).await?;
        talos.recorded = Some(recorded);
        Ok(talos)
    }

    /// Connects to a machine of the cluster that `access` opens, each side proving who it is.
    ///
    /// # Errors
    /// If nothing answers, or a machine that is not of this cluster.
    pub async fn secure(
        world: &World,
        address: Ipv4Addr,
        access: &TalosAccess,
    ) -> Result<Self, TalosError> {
        let identity = ClientIdentity::from_pem(&access.certificate, &access.key)
            .map_err(|source| TalosError::Tls { address, source })?;
        let verify = Verify::Authority(access.authority.clone());
        Self::connect(world, address, &verify, Some(identity)).await
    }

    async fn connect(
        world: &World,
        address: Ipv4Addr,
        verify: &Verify,
        identity: Option<ClientIdentity>,
    ) -> Result<Self, TalosError> {
        let config = client_config(verify, identity, world.clock.clone(), &[b"h2"])
            .map_err(|source| TalosError::Tls { address, source })?;
        let connector = Connector::new(world.dialer.clone(), config).deadline(CONNECT_DEADLINE);
        let ends = connector.ends();
        let uri = format!("https://{address}:{PORT}");
        let broken = |error: &tonic::transport::Error| connect_error(address, error);
        let channel = Endpoint::from_shared(uri)
            .map_err(|error| broken(&error))?
            .http2_keep_alive_interval(KEEP_ALIVE.0)
            .keep_alive_timeout(KEEP_ALIVE.1)
            .keep_alive_while_idle(true)
            .connect_with_connector(connector)
            .await
            .map_err(|error| broken(&error))?;
        Ok(Self { address, channel, ends, recorded: None })
    }

    /// The machine's address.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The fingerprint of the certificate that a machine in maintenance mode showed.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.recorded.as_ref().and_then(|recorded| recorded.fingerprint())
    }

    /// The version of Talos that runs, such as `v1.13.9`.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn version(&self) -> Result<String, TalosError> {
        let mut client = self.machine();
        let reply = self.call("Version", CALL_DEADLINE, client.version(())).await?;
        let version = reply.messages.into_iter().next().and_then(|message| message.version);
        version.map(|version| version.tag).ok_or_else(|| self.empty("Version"))
    }

    /// Sends the machine its config. Talos chooses itself whether that needs a reboot.
    ///
    /// # Errors
    /// If the call fails; the machine's own words never quote a secret.
    pub async fn apply(&self, config: &Secret) -> Result<Applied, TalosError> {
        let request = ApplyConfigurationRequest {
            data: config.expose().as_bytes().to_vec(),
            mode: Mode::Auto.into(),
            ..ApplyConfigurationRequest::default()
        };
        let mut client = self.machine();
        let call = client.apply_configuration(request);
        let reply = self.call("ApplyConfiguration", CALL_DEADLINE, call).await?;
        let message = reply.messages.into_iter().next();
        message
            .map(|done| Applied { details: done.mode_details, warnings: done.warnings })
            .ok_or_else(|| self.empty("ApplyConfiguration"))
    }

    /// Starts a new etcd on this machine. Nothing in Talos prevents a second one elsewhere: the caller must.
    ///
    /// # Errors
    /// If the call fails. After a broken connection its outcome is unknown.
    pub async fn bootstrap(&self) -> Result<(), TalosError> {
        let mut client = self.machine();
        let call = client.bootstrap(BootstrapRequest::default());
        self.call("Bootstrap", CALL_DEADLINE, call).await?;
        Ok(())
    }

    /// The members of etcd as this machine's own member knows them, ordered by id. Before bootstrap the machine does
    /// not answer at all, so the caller says how long to wait.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn etcd_members(&self, deadline: Duration) -> Result<Vec<Member>, TalosError> {
        let mut client = self.machine();
        let call = client.etcd_member_list(EtcdMemberListRequest { query_local: true });
        let reply = self.call("EtcdMemberList", deadline, call).await?;
        let members =
            reply.messages.into_iter().next().ok_or_else(|| self.empty("EtcdMemberList"))?;
        let mut members: Vec<Member> = members
            .members
            .into_iter()
            .map(|member| Member {
                id: member.id,
                hostname: member.hostname,
                peer_urls: member.peer_urls,
                learner: member.is_learner,
            })
            .collect();
        members.sort();
        Ok(members)
    }

    /// What this machine's member of etcd says of itself. It hangs before bootstrap as [`Talos::etcd_members`] does.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn etcd_status(&self, deadline: Duration) -> Result<MemberStatus, TalosError> {
        let mut client = self.machine();
        let reply = self.call("EtcdStatus", deadline, client.etcd_status(())).await?;
        let status = reply.messages.into_iter().next().and_then(|message| message.member_status);
        status
            .map(|status| MemberStatus {
                id: status.member_id,
                leader: status.leader,
                learner: status.is_learner,
                errors: status.errors,
            })
            .ok_or_else(|| self.empty("EtcdStatus"))
    }

    /// The machine's services.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn services(&self) -> Result<Vec<Service>, TalosError> {
        let mut client = self.machine();
        let reply = self.call("ServiceList", CALL_DEADLINE, client.service_list(())).await?;
        let list = reply.messages.into_iter().next().ok_or_else(|| self.empty("ServiceList"))?;
        let known = |health: castle_talos_proto::machine::ServiceHealth| {
            (!health.unknown).then_some(health.healthy)
        };
        Ok(list
            .services
            .into_iter()
            .map(|service| Service {
                id: service.id,
                state: service.state,
                healthy: service.health.and_then(known),
            })
            .collect())
    }

    fn machine(&self) -> MachineServiceClient<Channel> {
        MachineServiceClient::new(self.channel.clone())
    }

    pub(crate) fn state(&self) -> StateClient<Channel> {
        StateClient::new(self.channel.clone())
    }

    /// Waits for one answer, and words what goes wrong.
    pub(crate) async fn call<T>(
        &self,
        call: &'static str,
        deadline: Duration,
        answer: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>,
    ) -> Result<T, TalosError> {
        match timeout(deadline, answer).await {
            Err(_) => Err(TalosError::Deadline { address: self.address, call, after: deadline }),
            Ok(Err(status)) => Err(self.refused(call, &status)),
            Ok(Ok(reply)) => Ok(reply.into_inner()),
        }
    }

    pub(crate) fn refused(&self, call: &'static str, status: &tonic::Status) -> TalosError {
        let mut text = status.message().to_owned();
        if let Some(below) = status.source() {
            text = format!("{text}: {}", chain(below));
        }
        // A status that the machine sent has no source: then the connection is as good as before.
        let ended = status.source().and_then(|_| self.ends.last());
        TalosError::Refused { address: self.address, call, code: status.code(), text, ended }
    }

    pub(crate) fn empty(&self, call: &'static str) -> TalosError {
        TalosError::Shape { address: self.address, call, problem: "it is empty".to_owned() }
    }
}

/// Finds our own error in what tonic made of it.
fn connect_error(address: Ipv4Addr, error: &tonic::transport::Error) -> TalosError {
    let mut step = error.source();
    while let Some(current) = step {
        if let Some(found) = current.downcast_ref::<ConnectError>() {
            return TalosError::Connect { address, source: found.clone() };
        }
        step = current.source();
    }
    TalosError::Broken { address, words: chain(error) }
}
