//! A rehearsal: its datacenter on the disk, and the runtime whose time it owns.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use castle_layers::Credentials;
use castle_layers::secrets::files::{Content, Disk, Files, Memory, Privacy};
use castle_layers::secrets::source::{Access, Values};
use castle_model::Spec;
use castle_model::spec::{DownloadsSpec, Trust};
use castle_rehearsal::host::desk::DeskError;
use castle_rehearsal::host::{Host, HostError};
use castle_rehearsal::sources::manifest::invented;
use castle_sops::Identities;
use sha2::{Digest, Sha256};

use crate::args::{Everywhere, Pace, Speed};
use crate::castle::{Castle, Place};
use crate::exit::{Exit, Problem};
use crate::output;
use crate::patience::{Patience, until_free};
use crate::project::Which;
use crate::settings::Settings;
use crate::signals::survive_large_files;
use crate::state;

/// How much faster than real time a person can still follow: a bring-up of three minutes takes ten seconds.
const WATCHABLE: u32 = 20;

/// The seed of a new world where none is asked for.
pub(crate) const SEED: u64 = 1;

/// A castle to be rehearsed, and the datacenter that it stands in.
pub(crate) struct Rehearsal {
    pub(crate) castle: Castle,
    pub(crate) datacenter: PathBuf,
    /// The seed that was asked for; a world that exists keeps its own.
    pub(crate) seed: Option<u64>,
    pub(crate) speed: Option<u32>,
}

impl Rehearsal {
    /// Reads the castle file and finds the folders.
    pub(crate) fn find(
        which: &Which,
        everywhere: &Everywhere,
        pace: Option<&Pace>,
        settings: &Settings,
    ) -> Result<Self, Problem> {
        let castle = Castle::find(which, Place::Rehearsal, everywhere, settings)?;
        let speed = match pace.and_then(|p| p.speed) {
            Some(Speed::Max) => None,
            Some(Speed::Times(times)) => Some(times),
            None => settings.interactive().then_some(WATCHABLE),
        };
        let seed = pace.and_then(|p| p.seed);
        let datacenter = state::datacenter(&castle);
        Ok(Self { castle, datacenter, seed, speed })
    }

    /// Checks that nobody else hosts the datacenter. Must be called within [`runtime`].
    pub(crate) fn check_unused(&self) -> Result<(), Problem> {
        match self.host("rehearse reset") {
            Err(error) if error.is_locked() => Err(self.unusable(&error)),
            _ => Ok(()),
        }
    }

    /// Opens the datacenter to work in it, and waits so long for whoever holds it. Must be called within [`runtime`].
    pub(crate) fn open(&mut self, act: &str, patience: Option<Patience>) -> Result<Host, Problem> {
        let busy = |error: &HostError| error.is_locked().then(|| told(error));
        let host = until_free(patience, || self.host(act), busy);
        self.opened(host)
    }

    /// The datacenter, held for an act (`up`) that others are told of meanwhile. Must be called within [`runtime`].
    pub(crate) fn host(&self, act: &str) -> Result<Host, HostError> {
        let command = format!("{} {act}", self.castle.command);
        let seed = self.seed.unwrap_or(SEED);
        Host::open_for(Some(&self.datacenter), &self.castle.spec, seed, &command)
    }

    /// Opens the datacenter to look at it: nothing is written, and nobody is disturbed. Must be called within [`runtime`].
    pub(crate) fn look(&mut self) -> Result<Host, Problem> {
        let host = Host::look(Some(&self.datacenter), &self.castle.spec, self.seed.unwrap_or(SEED));
        self.opened(host)
    }

    /// Opens the datacenter for those outside: the castle that a castle file moved there describes, in real time.
    pub(crate) fn served(
        &mut self,
        spec: &Spec,
        pace: castle_rehearsal::host::Pace,
    ) -> Result<Host, Problem> {
        let seed = self.seed.unwrap_or(SEED);
        let host = Host::served(&self.datacenter, spec, seed, pace);
        let host = host.map_err(|error| self.unusable(&error))?;
        self.tell_seed(&host);
        Ok(host)
    }

    fn tell_seed(&self, host: &Host) {
        let born = host.read(|world| world.birth.seed);
        if let Some(asked) = self.seed.filter(|asked| *asked != born) {
            output::talk(&format!(
                "notice: this rehearsal was born with seed {born} and keeps it; for seed {asked} begin anew with `{} reset`",
                rehearse(&self.castle.command)
            ));
        }
    }

    fn opened(&mut self, host: Result<Host, HostError>) -> Result<Host, Problem> {
        let host = host.map_err(|error| self.unusable(&error))?;
        self.tell_seed(&host);
        self.castle.spec = trusting(self.castle.spec.clone(), &host)?;
        Ok(host)
    }

    /// How its secret sources are reached.
    pub(crate) fn access(&self, host: &Host) -> Access {
        access(&self.castle.spec, host, Some(&self.datacenter))
    }

    /// The datacenter can not be used any more, in the middle of what was done in it.
    pub(crate) fn ended(&self, error: &HostError) -> Problem {
        Problem { exit: Exit::Failed, ..self.unusable(error) }
    }

    /// The datacenter can not be used; nothing was done.
    pub(crate) fn unusable(&self, error: &HostError) -> Problem {
        let reset = || format!("`{} reset` throws it away", rehearse(&self.castle.command));
        Problem::refused(format!(
            "the rehearsal's datacenter in {} can not be used",
            self.datacenter.display()
        ))
        .because(error)
        .hint(error.hint().unwrap_or_else(reset))
    }
}

/// An error with what it came from, on one line.
fn told(error: &HostError) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    source.unwrap_or_else(|| error.to_string())
}

/// The process that hosts the world can not be asked.
pub(crate) fn unanswered(error: &DeskError) -> Problem {
    Problem::refused("the running rehearsal can not be asked").because(error).hint(error.hint())
}

/// The spec, trusting the rehearsal: its Proxmox has a certificate of its own, and what lies at addresses that only the
/// castle file knows is invented there, whatever the castle file pins. It has releases of its own, so no mirror is asked.
pub(crate) fn trusting(mut spec: Spec, host: &Host) -> Result<Spec, Problem> {
    let fingerprint = host.proxmox_fingerprint().map_err(|e| {
        Problem::new(Exit::Failed, "the rehearsal's Proxmox has no certificate").because(&e)
    })?;
    if let Some(proxmox) = spec.platform.proxmox_mut() {
        proxmox.trust = Trust::Fingerprint(fingerprint);
    }
    for url in spec.layers.iter_mut().filter_map(|layer| layer.url.as_mut()) {
        if url.url.starts_with("https://") {
            url.sha256 = hex::encode(Sha256::digest(invented(&url.url)));
        }
    }
    spec.downloads = DownloadsSpec::default();
    Ok(spec)
}

/// How the rehearsal's secret sources are reached: the datacenter plays Infisical, every other value is invented. Files
/// that castle writes go into the datacenter's folder, which plays the vault; without one, they stay in memory.
pub(crate) fn access(spec: &Spec, host: &Host, datacenter: Option<&Path>) -> Access {
    let (client_id, client_secret) = host.credentials();
    let credentials = Credentials { client_id, client_secret };
    let files: Arc<dyn Files> = match datacenter {
        Some(folder) => Arc::new(InDatacenter(Disk { project: folder.to_owned(), home: None })),
        None => Arc::new(Memory::default()),
    };
    Access {
        identities: (0..spec.secrets.sources.len()).map(|n| (n, credentials.clone())).collect(),
        age: Arc::new(Identities::of_seed(&host.age_seed())),
        environment: Values::new(),
        files,
        invented: Some(host.invented_secrets()),
    }
}

/// The name of the escrow file in the datacenter's folder, whatever the castle file calls it.
pub(crate) const ESCROW_FILE: &str = "escrow.enc.yaml";

/// The one file that castle keeps secrets in while it rehearses, in the datacenter's folder.
struct InDatacenter(Disk);

impl Files for InDatacenter {
    fn read(&self, _path: &str, privacy: Privacy) -> Result<Option<Content>, String> {
        self.0.read(ESCROW_FILE, privacy)
    }

    fn names(&self, _path: &str) -> Result<Option<Vec<String>>, String> {
        Ok(None)
    }

    fn write(&self, _path: &str, content: &[u8]) -> Result<(), String> {
        self.0.write(ESCROW_FILE, content)
    }

    fn remove(&self, _path: &str) -> Result<(), String> {
        self.0.remove(ESCROW_FILE)
    }
}

/// The command by which a rehearsal is named explicitly.
pub(crate) fn rehearse(command: &str) -> String {
    if command.contains(" rehearse") {
        command.to_owned()
    } else {
        command.replacen("castle", "castle rehearse", 1)
    }
}

/// A runtime whose clock stands still unless everybody waits: then it jumps to the next thing that is due.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .map_err(|e| Problem::new(Exit::Failed, "the runtime could not be started").because(&e))?;
    survive_large_files(&runtime)?;
    Ok(runtime)
}
