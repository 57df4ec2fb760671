//! Gives the datacenter addresses, TLS and time: whoever dials through it speaks to real servers over real wires.
//!
//! ```text
//!  client --dial--> Dialer --pipe--> connection task --TLS, HTTP/1, HTTP/2--> Shared::request --> Datacenter::input
//!                                                                                  |                  |
//!  clock, entropy, roots                                      driver: first due effect at its time    log, then reply
//! ```
//! All of it lives on one current-thread runtime with a paused clock. The world is behind a lock that is never
//! held over an await.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;

use castle_model::Secret;
use castle_model::spec::Spec;
use castle_wire::{Clock, Dialer, Entropy, World};
use rustls_pki_types::CertificateDer;
use thiserror::Error;
use tokio::runtime::Runtime;

use crate::birth::{Birth, Endpoint, dice_for};
use crate::fault::{Own, Rule, Strike};
use crate::inventory::Inventory;
use crate::store::{Store, StoreError};
use crate::trace::Request;
use crate::trouble::Trouble;
use crate::turn::{SecretQuery, Server};
use crate::world::{Datacenter, Input};

pub mod desk;
mod dial;
mod echo;
pub mod front;
mod gate;
mod idle;
mod patience;
mod serve;
mod shared;
mod strike;
mod supply;
mod tls;

use desk::Desk;
use dial::HostDialer;
use shared::Shared;
pub use shared::{Stage, Told};
pub use supply::Pace;
use supply::{HostClock, HostEntropy, VirtualTime};
use tls::Certificates;

/// Why a datacenter cannot be hosted.
#[derive(Debug, Error)]
pub enum HostError {
    /// Its folder cannot be used.
    #[error("the rehearsal's world cannot be opened")]
    Store(#[from] StoreError),
    /// Its log could not be written: nobody may speak for it any more.
    #[error("the rehearsal's world can not be kept any more")]
    Ended(#[source] Arc<StoreError>),
    /// The certificates of its servers cannot be made.
    #[error("the certificates of the rehearsal's servers cannot be made")]
    Tls(#[from] tls::IdentityError),
}

impl HostError {
    /// Whether another process hosts the world.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        matches!(self.store(), Some(StoreError::Locked { .. }))
    }

    /// What to do next, where throwing the world away is not it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        self.store().and_then(StoreError::hint)
    }

    fn store(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            Self::Ended(error) => Some(error),
            Self::Tls(_) => None,
        }
    }
}

/// The runtime that a rehearsal lives on: one thread, and a clock that jumps when nothing is left to do.
///
/// # Errors
/// If the operating system refuses.
pub fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()
}

/// A running datacenter. Dropping it is like pulling the plug: what was answered is kept, nothing more.
pub struct Host {
    /// Where others ask and poke; closed before the world ends.
    desk: Option<Desk>,
    shared: Arc<Shared>,
    entropy: Arc<HostEntropy>,
    /// The servers with fixed addresses that the castle file names; the world may know others from before.
    endpoints: Vec<Endpoint>,
}

impl Host {
    /// Hosts the world in a folder, or a passing one in memory. A world that exists is taken as it is, and what
    /// the castle file names beyond it is added; the seed is then the one it was born with.
    ///
    /// Must be called on the runtime that the rehearsal runs on.
    ///
    /// # Errors
    /// If the folder is in use, damaged, written by a newer castle, or cannot be written.
    pub fn open(folder: Option<&Path>, spec: &Spec, seed: u64) -> Result<Self, HostError> {
        Self::open_for(folder, spec, seed, "")
    }

    /// As [`Host::open`], for a command that others are told of while it holds the world.
    ///
    /// # Errors
    /// As [`Host::open`].
    pub fn open_for(
        folder: Option<&Path>,
        spec: &Spec,
        seed: u64,
        command: &str,
    ) -> Result<Self, HostError> {
        let (store, datacenter) = match folder {
            None => (None, Datacenter::new(Birth::of(spec, seed))),
            Some(folder) => {
                let (store, datacenter) =
                    Store::open(folder, command, || Datacenter::new(Birth::of(spec, seed)))?;
                (Some(store), datacenter)
            }
        };
        let time = VirtualTime::from(datacenter.now, datacenter.dawn);
        let host = Self::over(datacenter, store, spec, time)?;
        Ok(match folder {
            Some(folder) => host.with_desk(folder),
            None => host,
        })
    }

    /// With a desk in its folder. A file system without sockets is no reason not to rehearse: then nobody can poke.
    fn with_desk(mut self, folder: &Path) -> Self {
        self.desk = Desk::open(folder, &self.shared).ok();
        self
    }

    /// Hosts a passing world in memory for people and programs outside, on a runtime whose clock runs: its time of
    /// day is theirs, and its time may run faster. A [`front::Front`] gives it real sockets.
    ///
    /// # Errors
    /// If the certificates of its servers cannot be made.
    pub fn live(spec: &Spec, seed: u64, pace: Pace) -> Result<Self, HostError> {
        let datacenter = Datacenter::new(Birth::of(spec, seed));
        let time = VirtualTime::live(datacenter.now, datacenter.dawn, pace);
        Self::over(datacenter, None, spec, time)
    }

    /// The same with the world in a folder, held until the host is closed or dropped.
    ///
    /// # Errors
    /// If the folder is in use, damaged, written by a newer castle, or cannot be written.
    pub fn served(folder: &Path, spec: &Spec, seed: u64, pace: Pace) -> Result<Self, HostError> {
        let birth = || Datacenter::new(Birth::of(spec, seed));
        let (store, datacenter) = Store::open(folder, "castle rehearse serve", birth)?;
        let time = VirtualTime::live(datacenter.now, datacenter.dawn, pace);
        Ok(Self::over(datacenter, Some(store), spec, time)?.with_desk(folder))
    }

    /// Hosts the world in a folder for somebody who only looks: nothing is written, neither now nor by closing,
    /// and no lock is taken or heeded. What happens meanwhile happens in memory; so does a world that is not
    /// there yet.
    ///
    /// Must be called on the runtime that the rehearsal runs on.
    ///
    /// # Errors
    /// If the folder is damaged, written by a newer castle, or cannot be read.
    pub fn look(folder: Option<&Path>, spec: &Spec, seed: u64) -> Result<Self, HostError> {
        let found = folder.map(Store::look).transpose()?.flatten();
        let datacenter = found.unwrap_or_else(|| Datacenter::new(Birth::of(spec, seed)));
        let time = VirtualTime::from(datacenter.now, datacenter.dawn);
        Self::over(datacenter, None, spec, time)
    }

    /// Hosts a world that is at hand as a value, in memory: as a process that opens what another one left.
    ///
    /// Must be called on the runtime that the rehearsal runs on.
    ///
    /// # Errors
    /// If the certificates of its servers cannot be made.
    pub fn of(datacenter: Datacenter, spec: &Spec) -> Result<Self, HostError> {
        let time = VirtualTime::from(datacenter.now, datacenter.dawn);
        Self::over(datacenter, None, spec, time)
    }

    fn over(
        datacenter: Datacenter,
        store: Option<Store>,
        spec: &Spec,
        time: VirtualTime,
    ) -> Result<Self, HostError> {
        let wanted = Birth::of(spec, datacenter.birth.seed);
        let endpoints = wanted.endpoints.clone();
        let birth = datacenter.birth.lacks(&wanted).then(|| Box::new(wanted));
        let certificates = Certificates::new(datacenter.birth.seed)?;
        let shared = Shared::new(datacenter, store, certificates, time);
        let dawn = shared.time.dawn();
        let dawn = (shared.read(|world| world.dawn) != dawn).then_some(dawn);
        shared.input(&Input::Open { birth, dawn });
        if let Some(error) = shared.trouble() {
            return Err(HostError::Ended(error));
        }
        let (seed, opens) = shared.read(|world| (world.birth.seed, world.opens));
        let entropy = Arc::new(HostEntropy::new(seed, opens));
        Ok(Self { desk: None, shared: Arc::new(shared), entropy, endpoints })
    }

    /// Ends the process that hosts a passing world, and lets another one open what it left: connections and what was
    /// counted end, the world stays, and what the castle file names beyond it is added. The driver must be started again.
    ///
    /// # Errors
    /// If the certificates of its servers cannot be made.
    pub fn begin_anew(&mut self, spec: &Spec) -> Result<(), HostError> {
        self.shared.input(&Input::Rest);
        let datacenter = self.read(Clone::clone);
        let time = VirtualTime::from(datacenter.now, datacenter.dawn);
        // What it replaces is dropped, and with it everything that still runs there.
        *self = Self::over(datacenter, None, spec, time)?;
        Ok(())
    }

    /// The outside, as castle sees it when this datacenter is all there is.
    #[must_use]
    pub fn world(&self) -> World {
        World {
            dialer: self.dialer(),
            clock: self.clock(),
            entropy: self.entropy(),
            roots: Arc::new(self.roots()),
            cache: None,
        }
    }

    /// Opens connections into the datacenter.
    #[must_use]
    pub fn dialer(&self) -> Arc<dyn Dialer> {
        Arc::new(HostDialer { shared: self.shared.clone(), outside: false })
    }

    /// The same for those who are met as strangers on sockets are: every byte of theirs is judged, and they are given so long.
    #[must_use]
    pub fn dialer_outside(&self) -> Arc<dyn Dialer> {
        Arc::new(HostDialer { shared: self.shared.clone(), outside: true })
    }

    /// The datacenter's time of day.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(HostClock { time: self.shared.time, shift: self.shared.clock_shift.clone() })
    }

    /// The world's own time, which no rule sets.
    #[must_use]
    pub fn steady_clock(&self) -> Arc<dyn Clock> {
        Arc::new(HostClock { time: self.shared.time, shift: Arc::default() })
    }

    /// Randomness from the world's seed, different in each process that opens the world.
    #[must_use]
    pub fn entropy(&self) -> Arc<dyn Entropy> {
        self.entropy.clone()
    }

    /// The authority that issues the certificates of the servers with public names.
    #[must_use]
    pub fn roots(&self) -> Vec<CertificateDer<'static>> {
        vec![self.shared.certificates.root()]
    }

    /// The same authority as a PEM file holds it.
    #[must_use]
    pub fn root_pem(&self) -> String {
        self.shared.certificates.root_pem()
    }

    /// What the vault has under a key in the castle's folder, read as castle reads it.
    #[must_use]
    pub fn vault(&self, key: &str) -> Option<Secret> {
        let at = self.now();
        self.shared.read(|datacenter| {
            let birth = &datacenter.birth.infisical;
            let query = SecretQuery {
                at,
                host: &birth.host,
                client_id: &birth.client_id,
                client_secret: &birth.client_secret,
                project: &birth.project,
                environment: &birth.environment,
                path: &birth.path,
                key,
            };
            datacenter.infisical.read(&query).ok().map(Secret::new)
        })
    }

    /// The token that Proxmox gave to the castle: its id and its secret.
    #[must_use]
    pub fn proxmox_token(&self) -> (String, Secret) {
        self.shared.read(|datacenter| {
            let birth = &datacenter.birth.proxmox;
            (birth.token_id.clone(), Secret::new(birth.token_secret.clone()))
        })
    }

    /// A future that ends after the next change of the world, counted from now.
    pub fn changed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.shared.changed()
    }

    /// The SHA-256 fingerprint of Proxmox' certificate, 64 lower-case hexadecimal digits.
    ///
    /// # Errors
    /// If its certificate cannot be made.
    pub fn proxmox_fingerprint(&self) -> Result<String, HostError> {
        let proxmox = self.endpoints.iter().find(|endpoint| endpoint.server == Server::Proxmox);
        let host = proxmox.map(|endpoint| endpoint.host.as_str()).unwrap_or_default();
        Ok(self.shared.certificates.fingerprint(host)?)
    }

    /// Client id and client secret of the Infisical identity that the castle uses.
    #[must_use]
    pub fn credentials(&self) -> (Secret, Secret) {
        self.shared.read(|datacenter| {
            let birth = &datacenter.birth.infisical;
            (Secret::new(birth.client_id.clone()), Secret::new(birth.client_secret.clone()))
        })
    }

    /// What the rehearsal's private key of age is made from.
    #[must_use]
    pub fn age_seed(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        let seed = self.shared.read(|datacenter| datacenter.birth.seed);
        dice_for(seed, "age identity").fill(&mut bytes);
        bytes
    }

    /// Every secret that was invented for the castle file, by its key.
    #[must_use]
    pub fn invented_secrets(&self) -> BTreeMap<String, Secret> {
        self.shared.read(|datacenter| {
            let secrets = datacenter.birth.infisical.secrets.iter();
            secrets.map(|(key, value)| (key.clone(), Secret::new(value.clone()))).collect()
        })
    }

    /// Changing calls by server since this process opened the world; logins and dry runs do not count.
    #[must_use]
    pub fn mutations(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for request in self.requests().iter().filter(|request| request.counted) {
            let server = request.server.split('/').next().unwrap_or_default();
            *counts.entry(server.to_owned()).or_default() += 1;
        }
        counts
    }

    /// The requests that the servers have seen since this process opened the world.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests()
    }

    /// The hash over all requests and effects since this process opened the world.
    #[must_use]
    pub fn trace_hash(&self) -> String {
        self.shared.trace_hash()
    }

    /// Virtual milliseconds since the world's birth.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.shared.time.now()
    }

    /// Reads from the datacenter as it is.
    pub fn read<T>(&self, look: impl FnOnce(&Datacenter) -> T) -> T {
        self.shared.read(look)
    }

    /// Lets something go wrong in the datacenter.
    pub fn cause(&self, trouble: impl Into<Trouble>) {
        self.shared.input(&Input::Trouble(trouble.into()));
    }

    /// Lets things happen now, and says whether anything is different; none once the world has ended.
    #[must_use]
    pub fn poke(&self, troubles: &[Trouble]) -> Option<desk::Poked> {
        desk::poke(&self.shared, troubles)
    }

    /// What is there.
    #[must_use]
    pub fn inventory(&self) -> Inventory {
        desk::inventory(&self.shared)
    }

    /// Arms rules for as long as this host lives. Their times are counted from now.
    pub fn arm(&self, rules: Vec<Rule>) {
        self.shared.arm(rules);
    }

    /// What the rules have struck so far.
    #[must_use]
    pub fn strikes(&self) -> Vec<Strike> {
        self.shared.strikes()
    }

    /// The rules that have not struck, as they are written.
    #[must_use]
    pub fn unstruck(&self) -> Vec<String> {
        self.shared.unstruck()
    }

    /// The rules whose changes are still there and could be mended, without their times.
    #[must_use]
    pub fn unmended(&self) -> Vec<String> {
        self.shared.unmended()
    }

    /// The rules that are armed, as they are written.
    #[must_use]
    pub fn rules(&self) -> Vec<String> {
        self.shared.rules()
    }

    /// Tells each strike at the moment when it happens. The world is locked then: the listener must not ask it anything.
    pub fn on_strike(&self, listener: impl Fn(&Strike) + Send + 'static) {
        self.shared.listen_to_strikes(Box::new(listener));
    }

    /// Tells of every call, at each stage of it. The world is locked then: the listener must not ask it anything.
    pub fn on_call(&self, listener: impl Fn(&Told<'_>) + Send + 'static) {
        self.shared.listen_to_calls(Box::new(listener));
    }

    /// How often the world has changed since this process opened it, and how many requests were answered.
    #[must_use]
    pub fn counted(&self) -> (u64, usize) {
        self.shared.counted()
    }

    /// Says how the program ends when a rule kills it; without it, only [`Self::killed`] tells.
    pub fn on_kill(&self, end: impl Fn() + Send + Sync + 'static) {
        self.shared.end_by(Arc::new(end));
    }

    /// Says how the computer that the program runs on breaks, and is mended; what it gives is whether that changed anything. It is
    /// called while the world is locked: it must not ask it anything. Without it, rules about it change nothing.
    pub fn on_break(&self, breaks: impl Fn(Own) -> bool + Send + Sync + 'static) {
        self.shared.break_by(Arc::new(breaks));
    }

    /// Ends the program that runs against this host, for whoever breaks its computer while the world is not locked.
    pub fn ender(&self) -> impl Fn() + Send + Sync + use<> {
        let shared = self.shared.clone();
        move || shared.end()
    }

    /// Whether a rule has killed the program.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.shared.has_ended()
    }

    /// Waits until a rule has killed the program that runs against this host: drop it then.
    pub fn killed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.shared.when_killed()
    }

    /// Delivers effects when they are due, one at a time, for as long as it is polled. Without it, effects come
    /// only with the next request.
    pub fn run_driver(&self) -> impl Future<Output = ()> + Send + 'static {
        shared::drive(self.shared.clone())
    }

    /// Runs the driver as a task of the host, which ends with it.
    pub fn spawn_driver(&self) {
        self.shared.spawn(shared::drive(self.shared.clone()));
    }

    /// Waits until the world's log cannot be written any more, and says why. From then on nobody answers, so whoever
    /// runs against this host should stop at once; without trouble it never ends.
    pub fn trouble(&self) -> impl Future<Output = HostError> + Send + use<> {
        let shared = self.shared.clone();
        async move {
            loop {
                let failed = shared.failed();
                if let Some(error) = shared.trouble() {
                    return HostError::Ended(error);
                }
                failed.await;
            }
        }
    }

    /// Ends the datacenter's day: the next process starts at this moment, and from a snapshot if much has happened.
    ///
    /// # Errors
    /// If it cannot be written now, or some input could not be written before.
    pub fn close(mut self) -> Result<(), HostError> {
        self.desk = None;
        self.shared.close().map_err(HostError::Ended)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.desk = None;
        self.shared.unplug();
    }
}

#[cfg(test)]
mod tests;
