//! What can be asked of a machine, and what it answers.

use std::fmt;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tonic::Code;

use crate::turn::Authority;

/// A machine config on its way; it holds keys, so it is never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigText(pub String);

impl fmt::Debug for ConfigText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConfigText(…)")
    }
}

/// How a config is to be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApplyMode {
    /// With a reboot.
    Reboot,
    /// As the machine sees fit.
    Auto,
    /// At once or not at all.
    NoReboot,
    /// At the next reboot.
    Staged,
    /// At once, and not for good.
    Try,
}

/// What is wiped, and how the machine goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetCall {
    /// Whether it leaves etcd first.
    pub graceful: bool,
    /// Whether it comes up again afterwards.
    pub reboot: bool,
    /// The labels of the partitions to wipe; none of them means the whole system disk.
    pub partitions: Vec<String>,
    /// Whether the system disk is touched at all.
    pub system_disk: bool,
    /// Devices of other disks to wipe, such as `/dev/sdb`.
    pub user_disks: Vec<String>,
}

/// A call to a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// What it is: version, name, memory, disks.
    About,
    /// Take this config.
    Apply {
        /// Its text.
        config: ConfigText,
        /// How.
        mode: ApplyMode,
        /// Only judge it.
        dry_run: bool,
        /// For how long it is tried, if it is.
        try_seconds: Option<u64>,
        /// Whether the caller may do everything.
        admin: bool,
    },
    /// Start a new etcd.
    Bootstrap,
    /// Who is in etcd.
    EtcdMembers,
    /// How its own member of etcd is.
    EtcdStatus,
    /// Put a member out of etcd.
    EtcdRemove {
        /// Its id.
        member: u64,
    },
    /// Leave etcd.
    EtcdLeave,
    /// Let another lead etcd.
    EtcdForfeit,
    /// Which services there are.
    Services,
    /// The resources of a kind.
    Resources {
        /// The namespace.
        namespace: String,
        /// The type.
        kind: String,
        /// Whether the caller may see secrets.
        admin: bool,
    },
    /// What a kubeconfig is made from.
    Kubeconfig,
    /// What lies in a folder.
    Files {
        /// The folder.
        root: String,
    },
    /// Stop a service and start it again.
    ServiceRestart {
        /// Its name.
        id: String,
    },
    /// Go down and come up again.
    Reboot,
    /// Go down.
    Shutdown,
    /// Forget.
    Reset(ResetCall),
    /// What has happened since a number.
    Events {
        /// The last one that is known.
        after: u64,
    },
    /// Which machine a name or an address of the cluster belongs to, as this one sees it.
    Route {
        /// The name or address.
        target: String,
    },
    /// How the cluster is, as this machine sees it; if no machine is named, of those that discovery knows.
    Health {
        /// The control planes that there should be.
        control_planes: Vec<Ipv4Addr>,
        /// The workers that there should be.
        workers: Vec<Ipv4Addr>,
    },
}

impl Call {
    /// Whether the call can change the machine, so that it must be logged; it is counted if it succeeds.
    #[must_use]
    pub fn mutates(&self) -> bool {
        match self {
            Self::Apply { dry_run, .. } => !dry_run,
            Self::Bootstrap
            | Self::EtcdRemove { .. }
            | Self::EtcdLeave
            | Self::EtcdForfeit
            | Self::ServiceRestart { .. }
            | Self::Reboot
            | Self::Shutdown
            | Self::Reset(_) => true,
            Self::About
            | Self::EtcdMembers
            | Self::EtcdStatus
            | Self::Services
            | Self::Resources { .. }
            | Self::Kubeconfig
            | Self::Files { .. }
            | Self::Events { .. }
            | Self::Route { .. }
            | Self::Health { .. } => false,
        }
    }
}

/// Its answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// What the machine is.
    About(About),
    /// What was done with a config.
    Applied {
        /// How it was applied.
        mode: ApplyMode,
        /// In words.
        details: String,
    },
    /// Done, and there is nothing to say about it.
    Done,
    /// Begun, by an actor whose id stands in the events to come.
    Begun(String),
    /// The name of somebody, such as a new leader.
    Name(String),
    /// The members of etcd.
    Members(Vec<Member>),
    /// The member of the machine itself.
    Status {
        /// Its id.
        member: u64,
        /// The leader's id.
        leader: u64,
        /// Whether it only listens.
        learner: bool,
    },
    /// The services, by name.
    Services(Vec<ServiceShown>),
    /// Resources.
    Resources(Vec<ResourceShown>),
    /// What a kubeconfig is made from.
    Kubeconfig {
        /// The cluster's name.
        cluster: String,
        /// The API server, `https://…`.
        server: String,
        /// Who issues certificates for it.
        authority: Authority,
    },
    /// The names of what lies in a folder.
    Files(Vec<String>),
    /// What happened.
    Events(Vec<Happening>),
    /// Where a call goes.
    Route {
        /// A machine by its number; none for the asked one itself.
        to: Option<u32>,
        /// Whether the asked one could call others at all.
        forwards: bool,
    },
    /// How the cluster is.
    Health {
        /// The machines that there should be.
        nodes: Vec<Ipv4Addr>,
        /// Each check with what is missing, in the order in which they are made.
        checks: Vec<Check>,
    },
}

/// What a machine is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The version's tag.
    pub version: String,
    /// Its name.
    pub hostname: String,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// When it booted, in milliseconds since the world's birth.
    pub booted: u64,
    /// The id of this boot, as the kernel gives it.
    pub boot_id: String,
    /// Its disks: device and size in GiB; the first is the system disk.
    pub disks: Vec<(&'static str, u64)>,
    /// Whether it has a config.
    pub configured: bool,
}

/// A service as it is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceShown {
    /// Its name.
    pub id: String,
    /// What it does, such as `Running`.
    pub state: String,
    /// Whether it is well, if that is known.
    pub healthy: Option<bool>,
    /// What it said last, and before: when, in which state, what.
    pub events: Vec<(u64, String, String)>,
}

/// A resource as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceShown {
    /// Its id.
    pub id: String,
    /// How often it has changed.
    pub version: u64,
    /// When it was made and changed last, in milliseconds since the world's birth.
    pub times: (u64, u64),
    /// The controller that owns it; empty if nobody cares.
    pub owner: &'static str,
    /// What it says.
    pub spec: Value,
}

/// Something that happened on a machine in this boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Happening {
    /// Its number.
    pub number: u64,
    /// Who caused it, if it was a call.
    pub actor: String,
    /// What.
    pub what: What,
}

/// What can happen on a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// The machine's status changed.
    Status(Value),
    /// A service changed.
    Service {
        /// Which.
        id: String,
        /// To what.
        state: String,
        /// In words.
        message: String,
        /// Whether it is well.
        healthy: Option<bool>,
    },
    /// A sequence of tasks began or ended.
    Sequence {
        /// Which, such as `reset`.
        name: String,
        /// Whether it began.
        begins: bool,
        /// Why it failed, if it did.
        error: Option<String>,
    },
    /// A task of a sequence began.
    Task(String),
}

/// One check of a cluster's health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What should be so.
    pub name: &'static str,
    /// What is missing; none if it is so.
    pub missing: Option<String>,
}

/// A member of etcd as it is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Its id.
    pub id: u64,
    /// Its machine's name; empty while it is new.
    pub hostname: String,
    /// Its machine's address.
    pub address: Ipv4Addr,
    /// Whether it only listens.
    pub learner: bool,
}

/// Why not.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The machine says why.
    Status(Code, String),
    /// The machine says nothing until its state changes: the caller waits, up to its own deadline.
    Waits,
}

impl Refusal {
    /// The machine is not there any more.
    #[must_use]
    pub fn gone() -> Self {
        Self::Status(Code::Unavailable, "the machine is gone".to_owned())
    }

    pub(super) fn new(code: Code, text: impl Into<String>) -> Self {
        Self::Status(code, text.into())
    }
}
