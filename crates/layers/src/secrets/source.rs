//! A secret source: something that has values by keys, and one way to ask it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use castle_infisical::Credentials;
use castle_model::spec::{EscrowPlace, SourceSpec};
use castle_model::{Class, Failure, Secret, Spec};
use castle_platforms::escrow::Escrow;
use castle_sops::Identities;
use castle_wire::World;

use super::environment::Environment;
use super::files::{Files, Memory};
use super::infisical::Folder;
use super::invented::Invented;
use super::private::Private;
use super::sealed::{EscrowInFile, SopsSource};

/// Values by key.
pub type Values = BTreeMap<String, Secret>;

/// Something that has secrets by keys.
#[async_trait]
pub trait Source: Send + Sync {
    /// The source in words.
    fn place(&self) -> String;

    /// Where exactly a key would be, for a person who is to put it there.
    fn place_of(&self, key: &str) -> String {
        format!("{key} in {}", self.place())
    }

    /// Those of the wanted keys that it has, and perhaps others. It is asked once in a run.
    async fn read(&self, wanted: &[String]) -> Result<Values, Failure>;

    /// What else may be the reason that keys are not there, where that can be found out.
    async fn doubt(&self, _missing: &[String]) -> Option<String> {
        None
    }
}

/// How the sources of a castle are reached. A castle file never holds it, so it is given from outside.
#[derive(Clone)]
pub struct Access {
    /// Machine identities of Infisical, by the place of the block among the sources.
    pub identities: BTreeMap<usize, Credentials>,
    /// The private keys of age, for files that are encrypted with it.
    pub age: Arc<Identities>,
    /// The environment, for sources of that kind.
    pub environment: Values,
    /// Where files are.
    pub files: Arc<dyn Files>,
    /// In a rehearsal, the values that stand for those of the castle file's own sources: none of them is ever read.
    pub invented: Option<Values>,
}

impl Access {
    /// The access to one Infisical and to nothing else.
    #[must_use]
    pub fn to_infisical(credentials: Credentials) -> Self {
        Self {
            identities: BTreeMap::from([(0, credentials)]),
            age: Arc::default(),
            environment: Values::new(),
            files: Arc::new(Memory::default()),
            invented: None,
        }
    }
}

/// The sources of a castle in their order, and the place where what it makes is kept.
pub struct Sources {
    pub(crate) list: Vec<Arc<dyn Source>>,
    pub(crate) escrow: Escrow,
    /// Who castle is to the first Infisical.
    pub(crate) identity: Option<Credentials>,
}

impl Sources {
    /// Opens what the castle file names; nobody is asked yet.
    ///
    /// # Errors
    /// If an address can not be used, or an identity is missing.
    pub fn open(spec: &Spec, world: &World, access: &Access) -> Result<Self, Failure> {
        let mut list: Vec<Arc<dyn Source>> = Vec::new();
        let (mut escrow, mut identity) = (None, None);
        for (number, source) in spec.secrets.sources.iter().enumerate() {
            if let Some(invented) = invented(spec, number, access) {
                list.push(Arc::new(invented));
                continue;
            }
            match source {
                SourceSpec::Infisical(infisical) => {
                    let Some(credentials) = access.identities.get(&number) else {
                        let what = format!("log in to {}", infisical.host);
                        return Err(Failure::bug(what, "no machine identity was given"));
                    };
                    let folder = Arc::new(Folder::new(spec, infisical, world, credentials)?);
                    if escrow.is_none() {
                        escrow = Some(Escrow(folder.clone()));
                        identity = Some(credentials.clone());
                    }
                    list.push(folder);
                }
                SourceSpec::Env(env) => {
                    list.push(Arc::new(Environment::new(env, &access.environment)));
                }
                SourceSpec::File(file) => {
                    list.push(Arc::new(Private::new(file, access.files.clone())));
                }
                SourceSpec::Sops(sops) => {
                    let (files, identities) = (access.files.clone(), access.age.clone());
                    list.push(Arc::new(SopsSource::new(sops, files, identities)));
                }
            }
        }
        let escrow = match &spec.secrets.escrow.place {
            EscrowPlace::Infisical => escrow.ok_or_else(|| {
                Failure::new(
                    Class::Invalid,
                    "find a place for the secrets that the castle makes",
                    "there is neither an Infisical nor a file",
                )
            })?,
            EscrowPlace::File(file) => {
                let (files, identities) = (access.files.clone(), access.age.clone());
                Escrow(Arc::new(EscrowInFile::new(file, files, identities, world)))
            }
        };
        Ok(Self { list, escrow, identity })
    }
}

/// What stands for a source in a rehearsal, where only the first Infisical is played by a server.
fn invented(spec: &Spec, number: usize, access: &Access) -> Option<Invented> {
    let values = access.invented.as_ref()?;
    let is_infisical = |source: &SourceSpec| matches!(source, SourceSpec::Infisical(_));
    let played = spec.secrets.sources.iter().position(is_infisical);
    if played == Some(number) {
        return None;
    }
    // Every value is in one place, so that all of them are found wherever castle looks first.
    let has_all = played.is_none() && number == 0;
    let place = spec.secrets.sources[number].to_string();
    Some(Invented { place, values: if has_all { values.clone() } else { Values::new() } })
}
