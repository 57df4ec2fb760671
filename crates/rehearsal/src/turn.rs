//! What every emulated server shares: the turn it acts in, the calls it answers, the effects it leaves due.

use std::fmt;
use std::future::Future;
use std::net::Ipv4Addr;
use std::pin::Pin;

use bytes::Bytes;
use castle_model::time::Moment;
use serde::{Deserialize, Serialize};

use crate::durations::{Draw, Draws, Process};

/// One turn of the world: a part of the datacenter handles one call or one due effect in it.
pub struct Turn<'a> {
    /// Virtual milliseconds since the world was born.
    pub now: u64,
    /// Seeded randomness.
    pub dice: &'a mut Dice,
    /// Effects to come, with the delay from now in milliseconds.
    pub due: &'a mut Vec<(u64, Effect)>,
    /// What other parts of the datacenter must hear of at once, in order.
    pub signals: &'a mut Vec<Signal>,
    /// Every length of time that was drawn.
    pub draws: &'a mut Draws,
}

impl Turn<'_> {
    /// Leaves an effect due after `delay` milliseconds.
    pub fn after(&mut self, delay: u64, effect: impl Into<Effect>) {
        self.due.push((delay, effect.into()));
    }

    /// Leaves an effect due after a drawn time, given in milliseconds as shortest, usual, longest.
    pub fn after_about(&mut self, span: (u64, u64, u64), effect: impl Into<Effect>) {
        let delay = self.dice.triangular(span);
        self.after(delay, effect);
    }

    /// Draws how long a process takes for a subject (a machine by its number, say), in milliseconds, and keeps
    /// it on record.
    pub fn draw(&mut self, what: Process, subject: &(impl ToString + ?Sized)) -> u64 {
        let ms = self.dice.triangular(what.span());
        self.draws.record(Draw { what, subject: subject.to_string(), begun_at: self.now, ms });
        ms
    }

    /// Leaves an effect due after a process that begins now.
    pub fn after_draw(
        &mut self,
        what: Process,
        subject: &(impl ToString + ?Sized),
        effect: impl Into<Effect>,
    ) {
        let delay = self.draw(what, subject);
        self.after(delay, effect);
    }

    /// Tells the other parts.
    pub fn signal(&mut self, signal: Signal) {
        self.signals.push(signal);
    }
}

/// An effect that is due at some time, by the part that will handle it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// For Proxmox.
    Proxmox(crate::proxmox::Effect),
    /// For the Talos machines.
    Talos(crate::talos::Effect),
    /// For the Kubernetes cluster.
    Kubernetes(crate::kubernetes::Effect),
}

impl From<crate::proxmox::Effect> for Effect {
    fn from(effect: crate::proxmox::Effect) -> Self {
        Self::Proxmox(effect)
    }
}

impl From<crate::talos::Effect> for Effect {
    fn from(effect: crate::talos::Effect) -> Self {
        Self::Talos(effect)
    }
}

impl From<crate::kubernetes::Effect> for Effect {
    fn from(effect: crate::kubernetes::Effect) -> Self {
        Self::Kubernetes(effect)
    }
}

/// What one part of the datacenter tells the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Signal {
    /// A VM was switched on.
    VmStarted(VmFacts),
    /// A VM was switched off; its disks keep what they hold.
    VmStopped {
        /// Which.
        vmid: u32,
    },
    /// A VM and its disks are gone.
    VmDestroyed {
        /// Which.
        vmid: u32,
    },
    /// A machine switched itself off.
    MachineHalted {
        /// Which.
        vmid: u32,
    },
    /// A new cluster was born: etcd started on its first control plane with nothing in it.
    ClusterBorn {
        /// The cluster's id, from its machine config.
        cluster: String,
    },
    /// A cluster is gone for good: no disk remembers anything of its etcd.
    ClusterLost {
        /// The cluster's id.
        cluster: String,
    },
    /// A machine's kubelet has joined the cluster (its Node object appears, not Ready until its network is up).
    NodeJoined {
        /// The cluster that it belongs to.
        cluster: String,
        /// The node's name.
        name: String,
        /// Its address.
        address: Ipv4Addr,
        /// Whether it is a control plane.
        control_plane: bool,
        /// Whether it has a disk for user volumes.
        data_disk: bool,
        /// System extensions in its image.
        extensions: Vec<String>,
    },
    /// A node is Ready, or not any more.
    NodeReady {
        /// The cluster that it belongs to.
        cluster: String,
        /// The node's name.
        name: String,
        /// Whether it is.
        ready: bool,
    },
    /// A machine that was a node is gone or off.
    NodeLost {
        /// The cluster that it belonged to.
        cluster: String,
        /// The node's name.
        name: String,
    },
}

/// What a VM brings along when it is switched on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VmFacts {
    /// Its number.
    pub vmid: u32,
    /// Its name in Proxmox, which cloud-init hands to the machine as its host name.
    pub name: String,
    /// The SMBIOS UUID, lower case with hyphens.
    pub uuid: String,
    /// The static address that cloud-init gives, if any.
    pub address: Option<Ipv4Addr>,
    /// Changes whenever the system disk is made anew, so that a machine knows whether its disk remembers.
    pub disk: String,
    /// The file name of the imported image, such as `talos-1.13.9-88d1f7a5….qcow2`; none if there is no bootable disk.
    pub image: Option<String>,
    /// Size of the system disk in GiB.
    pub disk_gib: u64,
    /// Size of the second disk in GiB, if there is one.
    pub data_disk_gib: Option<u64>,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// System extensions in the image. Proxmox leaves it empty: the world then fills it in on the way to the
    /// machine, from the schematic whose id is in the image's file name.
    pub extensions: Vec<String>,
}

/// The servers that speak HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Server {
    /// Proxmox VE.
    Proxmox,
    /// Infisical.
    Infisical,
    /// The image factory, the manifests and the Git host.
    Sources,
    /// The Kubernetes API.
    Kubernetes,
}

impl Server {
    /// The name in traces and counts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Proxmox => "proxmox",
            Self::Infisical => "infisical",
            Self::Sources => "sources",
            Self::Kubernetes => "kubernetes",
        }
    }
}

/// What answers at an address of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Listen {
    /// Talos' API without client certificates, before the machine has a config.
    Maintenance {
        /// Whose.
        vmid: u32,
    },
    /// Talos' API with client certificates.
    Secure {
        /// Whose.
        vmid: u32,
    },
    /// The Kubernetes API server of a control plane, at its own address or at the shared one.
    KubeApi {
        /// Whose.
        vmid: u32,
    },
    /// Talos' API of a machine that belongs to somebody else.
    Foreign {
        /// Whose.
        vmid: u32,
    },
    /// Something takes connections and says nothing.
    Mute {
        /// Whose.
        vmid: u32,
    },
    /// The host is there and nothing listens at that port.
    Refused,
}

/// What a listener's TLS certificate is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    /// The authority that issues it; none for a self-signed one.
    pub authority: Option<Authority>,
    /// CN of the certificate.
    pub common_name: String,
    /// DNS names in it.
    pub names: Vec<String>,
    /// Addresses in it.
    pub addresses: Vec<Ipv4Addr>,
    /// The certificate (PEM) of the authority that client certificates are verified by. Talos' secure API
    /// demands one, the Kubernetes API takes a client without one for anonymous; none: never asked for.
    pub client_authority: Option<String>,
    /// Changes whenever open connections must break: the boot, and what changed in it.
    pub generation: (u64, u64),
    /// By how many seconds the clock that it was made by is ahead of the world's.
    pub clock_off: i64,
}

/// A certificate authority with its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    /// The certificate, PEM.
    pub certificate: String,
    /// The private key, PEM: PKCS#8, SEC 1, or PKCS#8 under Talos' own label `ED25519 PRIVATE KEY`.
    pub key: String,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authority(…)")
    }
}

/// The way from a machine's gRPC services into the world.
pub trait Door: Send + Sync {
    /// Puts one call to a machine.
    ///
    /// # Errors
    /// What the machine refuses with.
    fn call(
        &self,
        vmid: u32,
        call: crate::talos::Call,
    ) -> Result<crate::talos::Reply, crate::talos::Refusal>;

    /// The time of day at a moment of the world.
    fn time_of_day(&self, at: u64) -> Moment;

    /// Waits until the world has changed after this call was *made* (not after it is first polled): take the
    /// future, look, and then wait, so that no change is missed.
    fn changed(&self) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// What the cluster reads beyond its own walls: secrets from Infisical, repositories from the Git host.
pub trait Neighbours {
    /// One secret, as External Secrets asks for it.
    ///
    /// # Errors
    /// The server's words, as they stand in a condition's message.
    fn secret(&self, query: &SecretQuery<'_>) -> Result<String, String>;

    /// The commit that a branch is at, as Flux asks for it. Credentials are user and password.
    ///
    /// # Errors
    /// The server's words, as they stand in a condition's message.
    fn git_head(
        &self,
        url: &str,
        branch: &str,
        credentials: Option<(&str, &str)>,
    ) -> Result<String, String>;

    /// The Kustomizations that the folder of a repository declares; none if there is no such folder.
    fn kustomizations(&self, url: &str, path: &str) -> Option<Vec<Declared>>;
}

/// Which secret, and who asks.
#[derive(Clone, Copy)]
pub struct SecretQuery<'a> {
    /// The server, such as `https://eu.infisical.com`.
    pub host: &'a str,
    /// Universal-auth client id.
    pub client_id: &'a str,
    /// Universal-auth client secret.
    pub client_secret: &'a str,
    /// The project's slug.
    pub project: &'a str,
    /// The environment's slug.
    pub environment: &'a str,
    /// The folder.
    pub path: &'a str,
    /// The key.
    pub key: &'a str,
}

/// A Kustomization that a repository declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    /// Its name, in the namespace `flux-system`.
    pub name: String,
    /// The folder it applies.
    pub path: String,
    /// Kustomizations that must be Ready before.
    pub depends_on: Vec<String>,
}

/// An HTTP request as a part sees it: parsed and decrypted, with who sent it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpCall {
    /// `GET`, `POST`, …
    pub method: String,
    /// The host that was asked, without port.
    pub host: String,
    /// The path, still percent-encoded.
    pub path: String,
    /// The query without `?`, still percent-encoded; empty if none.
    pub query: String,
    /// Header names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(with = "body")]
    pub body: Vec<u8>,
    /// The client certificate that was presented and verified, if any.
    pub peer: Option<Peer>,
}

impl fmt::Debug for HttpCall {
    /// Without headers, query and body, where secrets travel.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} https://{}{}", self.method, self.host, self.path)
    }
}

/// Bodies are logged as text where they are text, so that a log can be read.
mod body {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Saved {
        Text(String),
        Base64(String),
    }

    pub(super) fn serialize<S: Serializer>(body: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        let saved = match std::str::from_utf8(body) {
            Ok(text) => Saved::Text(text.to_owned()),
            Err(_) => Saved::Base64(STANDARD.encode(body)),
        };
        saved.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        match Saved::deserialize(from)? {
            Saved::Text(text) => Ok(text.into_bytes()),
            Saved::Base64(text) => STANDARD.decode(text).map_err(D::Error::custom),
        }
    }
}

impl HttpCall {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// Whom a client certificate names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// CN.
    pub common_name: String,
    /// O, all of them.
    pub organizations: Vec<String>,
}

/// The answer to an [`HttpCall`].
#[derive(Debug, Clone, PartialEq)]
pub struct HttpReply {
    /// The status.
    pub status: u16,
    /// The reason phrase, where the real server sends its own.
    pub reason: Option<String>,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// What follows.
    pub body: HttpBody,
    /// Whether the call changed the world, so that it must be logged and counted.
    pub mutated: bool,
}

/// The body of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum HttpBody {
    /// All at once.
    Whole(Bytes),
    /// A Kubernetes watch: lines are read from the cluster by [`crate::kubernetes::Kubernetes::watch_lines`]
    /// from this place on, whenever the world has changed, until the client goes.
    Watch(crate::kubernetes::WatchCursor),
    /// None: the connection is cut instead of an answer.
    Cut,
}

impl HttpReply {
    /// A JSON answer that changed nothing.
    #[must_use]
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self {
            status,
            reason: None,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: HttpBody::Whole(Bytes::from(body.to_string())),
            mutated: false,
        }
    }

    /// An answer with no body.
    #[must_use]
    pub fn empty(status: u16) -> Self {
        Self {
            status,
            reason: None,
            headers: Vec::new(),
            body: HttpBody::Whole(Bytes::new()),
            mutated: false,
        }
    }

    /// Says that the call changed the world.
    #[must_use]
    pub fn changed(mut self) -> Self {
        self.mutated = true;
        self
    }
}

/// Seeded randomness (SplitMix64): the same seed gives the same world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// Dice from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A whole number from 0 to `below` − 1 (0 if `below` is 0).
    pub fn below(&mut self, below: u64) -> u64 {
        if below == 0 { 0 } else { self.next_u64() % below }
    }

    /// Fills a buffer.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            let bytes = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }

    /// A draw from the triangular distribution over (shortest, usual, longest), whole milliseconds.
    pub fn triangular(&mut self, (low, mode, high): (u64, u64, u64)) -> u64 {
        // All in integers, so that every machine draws the same.
        if high <= low {
            return low;
        }
        let (span, rise) = (high - low, mode.saturating_sub(low));
        let scale = 1_u64 << 32;
        let u = self.below(scale);
        let root = |n: u128| u64::try_from(n.isqrt()).unwrap_or(u64::MAX);
        let threshold = u128::from(scale) * u128::from(rise) / u128::from(span);
        if u128::from(u) < threshold {
            low + root(u128::from(u) * u128::from(span) * u128::from(rise) / u128::from(scale))
        } else {
            let rest = u128::from(scale - u) * u128::from(span) * u128::from(high - mode.max(low));
            high - root(rest / u128::from(scale))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn draws_stay_within_their_span(seed: u64, low in 0_u64..1000, rise in 0_u64..1000, fall in 0_u64..1000) {
            let mut dice = Dice::new(seed);
            let span = (low, low + rise, low + rise + fall);
            for _ in 0..20 {
                let drawn = dice.triangular(span);
                prop_assert!((span.0..=span.2).contains(&drawn), "{drawn} of {span:?}");
            }
        }
    }

    #[test]
    fn the_usual_value_is_usual() {
        let mut dice = Dice::new(7);
        let near = (0..2000)
            .filter(|_| (8000..20_000).contains(&dice.triangular((8000, 14_000, 25_000))))
            .count();
        assert!(near > 1600, "{near}");
    }
}
