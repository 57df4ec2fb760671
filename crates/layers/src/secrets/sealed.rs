//! Files that are encrypted with age in the form of SOPS: as a secret source, and as the place for the castle's own.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use castle_model::spec::{EscrowFile, SopsSpec};
use castle_model::{Class, Failure, Incarnation, Secret};
use castle_platforms::escrow::Keeper;
use castle_sops::{Format, Identities, Recipients, Rules, Sealed, SopsError, Tree, seal};
use castle_wire::World;

use super::files::{Files, Privacy};
use super::source::{Source, Values};

/// An encrypted file and the keys that open it.
struct SealedFile {
    path: String,
    files: Arc<dyn Files>,
    identities: Arc<Identities>,
}

impl SealedFile {
    fn failure(&self, doing: &str, error: &SopsError) -> Failure {
        error.failure(format!("{doing} {}", self.path))
    }

    fn unusable(&self, doing: &str, why: String) -> Failure {
        Failure::new(Class::Denied, format!("{doing} {}", self.path), why)
            .hint("look at the file, its folder and their owners; nothing was changed")
    }

    /// The file as it is; none if there is none.
    fn read(&self) -> Result<Option<(Sealed, Tree)>, Failure> {
        let content = self.files.read(&self.path, Privacy::Any);
        let Some(content) = content.map_err(|why| self.unusable("read", why))? else {
            return Ok(None);
        };
        let text = std::str::from_utf8(&content)
            .map_err(|_| self.unusable("read", "it is not text (UTF-8)".to_owned()))?;
        let failed = |error| self.failure("open", &error);
        let format = Format::of_path(Path::new(&self.path)).map_err(failed)?;
        let sealed = Sealed::read(text, format).map_err(failed)?;
        let tree = sealed.open(&self.identities).map_err(failed)?;
        Ok(Some((sealed, tree)))
    }
}

/// A secret source: entries of a file, one inside of another by a key with dots.
pub(crate) struct SopsSource(SealedFile);

impl SopsSource {
    pub(crate) fn new(spec: &SopsSpec, files: Arc<dyn Files>, identities: Arc<Identities>) -> Self {
        Self(SealedFile { path: spec.file.clone(), files, identities })
    }
}

#[async_trait]
impl Source for SopsSource {
    fn place(&self) -> String {
        self.0.path.clone()
    }

    async fn read(&self, wanted: &[String]) -> Result<Values, Failure> {
        let Some((_, tree)) = self.0.read()? else {
            return Err(Failure::new(
                Class::Gone,
                format!("read secrets from {}", self.0.path),
                "there is no such file",
            )
            .hint(
                "make it with `castle secrets encrypt`, or take its block out of the castle file",
            ));
        };
        let value = |key: &String| {
            let found = tree.secret(key).or_else(|| tree.text(&key.split('.').collect::<Vec<_>>()));
            found.map(|found| (key.clone(), found))
        };
        Ok(wanted.iter().filter_map(value).collect())
    }
}

/// The place for the castle's own secrets where no source can be written to.
pub(crate) struct EscrowInFile {
    file: SealedFile,
    recipients: Vec<String>,
    world: World,
    /// What was read last; whatever is written makes it void.
    seen: Mutex<Option<Values>>,
}

impl EscrowInFile {
    pub(crate) fn new(
        spec: &EscrowFile,
        files: Arc<dyn Files>,
        identities: Arc<Identities>,
        world: &World,
    ) -> Self {
        let file = SealedFile { path: spec.file.clone(), files, identities };
        let recipients = spec.recipients.clone();
        Self { file, recipients, world: world.clone(), seen: Mutex::default() }
    }

    /// Whom the file is encrypted for. One of them must be us: what is written is read again, in each run.
    fn recipients(&self) -> Result<Recipients, Failure> {
        let failed = |error| self.file.failure("encrypt", &error);
        let ours = self.file.identities.recipients();
        if ours.is_empty() {
            return Err(failed(SopsError::NoIdentities));
        }
        if self.recipients.is_empty() {
            return Ok(self.file.identities.own_recipients());
        }
        let recipients = Recipients::parse(&self.recipients.join("\n")).map_err(failed)?;
        if recipients.texts().any(|recipient| ours.texts().any(|our| our == recipient)) {
            return Ok(recipients);
        }
        Err(Failure::new(
            Class::Denied,
            format!("encrypt {}", self.file.path),
            "none of its recipients is of the age identity that castle was given, so castle could not read it again",
        )
        .hint(format!("add {} to `recipients` in escrow", ours.texts().collect::<Vec<_>>().join(" or "))))
    }

    /// Seals a tree as the file is to be: under its old data key, unless it is for others now.
    fn sealed(&self, old: Option<&Sealed>, tree: &Tree) -> Result<String, Failure> {
        let recipients = self.recipients()?;
        let now = self.world.clock.now();
        let mut fill = |bytes: &mut [u8]| self.world.entropy.fill(bytes);
        let same = |old: &&Sealed| {
            let (mut had, mut has): (Vec<&str>, Vec<&str>) =
                (old.recipients().collect(), recipients.texts().collect());
            had.sort_unstable();
            has.sort_unstable();
            had == has
        };
        let sealed = match old.filter(same) {
            Some(old) => old.reseal(tree, &self.file.identities, now, &mut fill),
            None => seal(tree, Format::Yaml, &recipients, &Rules::default(), now, &mut fill),
        };
        sealed.map_err(|error| self.file.failure("encrypt", &error))
    }

    /// The file as it is. One that is damaged for good must not hold a castle for ever: what can still be done is told.
    fn read(&self) -> Result<Option<(Sealed, Tree)>, Failure> {
        self.file.read().map_err(|failure| {
            if failure.class != Class::Invalid {
                return failure;
            }
            let cure = failure.hint.clone().unwrap_or_default();
            failure.hint(format!("{cure}. If no good copy is left, move the file away: any kubeconfig of that life still opens the cluster until it expires, `castle down` then removes the machines and `castle up` begins a new life"))
        })
    }

    fn remember(&self, values: Option<Values>) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = values;
    }

    fn store(&self, text: &str) -> Result<(), Failure> {
        self.remember(None);
        let stored = self.file.files.write(&self.file.path, text.as_bytes());
        stored.map_err(|why| self.file.unusable("write", why))
    }
}

#[async_trait]
impl Keeper for EscrowInFile {
    fn place(&self) -> String {
        self.file.path.clone()
    }

    fn writable(&self) -> Result<(), Failure> {
        self.recipients().map(drop)
    }

    async fn kept(&self) -> Result<Values, Failure> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match seen {
            Some(values) => Ok(values),
            None => self.kept_now().await,
        }
    }

    async fn kept_now(&self) -> Result<Values, Failure> {
        let values: Values = match self.read()? {
            None => Values::new(),
            Some((_, tree)) => {
                let entry = |key: &str| Some((key.to_owned(), tree.secret(key)?));
                tree.keys().filter_map(entry).collect()
            }
        };
        self.remember(Some(values.clone()));
        Ok(values)
    }

    async fn write(&self, _life: &Incarnation, entries: &[(&str, &Secret)]) -> Result<(), Failure> {
        let old = self.read()?;
        let (sealed, mut tree) = match old {
            Some((sealed, tree)) => (Some(sealed), tree),
            None => (None, Tree::flat([])),
        };
        for (key, text) in entries {
            tree.set(key, (*text).clone());
        }
        self.store(&self.sealed(sealed.as_ref(), &tree)?)
    }

    async fn remove(&self, keys: &[&str]) -> Result<(), Failure> {
        let Some((sealed, mut tree)) = self.read()? else { return Ok(()) };
        let there = keys.iter().filter(|key| tree.remove(key)).count();
        if there == 0 {
            return Ok(());
        }
        if tree.keys().next().is_some() {
            return self.store(&self.sealed(Some(&sealed), &tree)?);
        }
        self.remember(None);
        let removed = self.file.files.remove(&self.file.path);
        removed.map_err(|why| self.file.unusable("remove", why))
    }
}
