//! Where a castle's secrets come from, which form each must have, and where what the castle makes is kept.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Trust;

/// A reference to a secret by its key in the secret sources. It stays a reference until the moment of use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretRef(pub String);

/// Where secrets come from, and where those that the castle makes are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretsSpec {
    /// At least one. The first that has a key wins.
    pub sources: Vec<SourceSpec>,
    /// Keys that must be there beyond those the castle itself uses.
    pub require: Vec<String>,
    /// The forms that the castle file declares for keys.
    pub shapes: BTreeMap<String, Shape>,
    /// Where the secrets that the castle makes are kept.
    pub escrow: EscrowSpec,
}

/// One secret source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SourceSpec {
    /// A folder in Infisical.
    Infisical(InfisicalSpec),
    /// A file that is encrypted by SOPS with age.
    Sops(SopsSpec),
    /// The environment that castle is started in.
    Env(EnvSpec),
    /// A file or folder that only its owner can read.
    File(FileSpec),
}

/// A folder in Infisical.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfisicalSpec {
    /// The server, such as `https://eu.infisical.com`, without a trailing slash.
    pub host: String,
    /// How its certificate is verified.
    pub trust: Trust,
    /// The project's slug.
    pub project: String,
    /// The environment's slug.
    pub environment: String,
    /// The folder with the castle's secrets.
    pub path: String,
    /// A file of the owner's alone with the machine identity; without one it comes from the environment.
    pub credentials: Option<String>,
    /// The machine identity that External Secrets reads with; without one, castle's own.
    pub reader: Option<ReaderSpec>,
}

/// A machine identity that only reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderSpec {
    /// Its client id.
    pub id: SecretRef,
    /// Its client secret.
    pub secret: SecretRef,
}

/// A file that is encrypted by SOPS with age.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SopsSpec {
    /// Its path, relative to the project folder.
    pub file: String,
}

/// The environment that castle is started in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvSpec {
    /// What stands before a key in the name of its variable.
    pub prefix: String,
}

/// A file or folder that only its owner can read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSpec {
    /// Its path: absolute, below the home folder (`~/…`), or relative to the project folder.
    pub path: String,
}

/// The form that the value of a key must have.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// One word without white space: a token, a password, a name.
    Token,
    /// Blocks of PEM.
    Pem,
    /// The private key of age.
    AgeKey,
    /// A YAML document.
    Yaml,
    /// Anything that is not empty.
    #[default]
    Free,
}

/// Where the secrets that the castle makes are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EscrowSpec {
    /// The place.
    pub place: EscrowPlace,
    /// What `down` does with them.
    pub after_down: EscrowAfterDown,
}

/// A place that is written to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EscrowPlace {
    /// The folder of the first Infisical among the sources.
    Infisical,
    /// A file that castle encrypts with age.
    File(EscrowFile),
}

/// A file that castle encrypts with age, in the form of SOPS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EscrowFile {
    /// Its path, relative to the project folder.
    pub file: String,
    /// Whom it is encrypted for; none means for the holder of the age identity that castle is given.
    pub recipients: Vec<String>,
}

/// What becomes of escrowed entries when the castle goes.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EscrowAfterDown {
    /// Removed, once no VM of the castle is left.
    #[default]
    Remove,
    /// Kept; the next birth overwrites them.
    Keep,
}

impl SecretsSpec {
    /// The first Infisical among the sources: External Secrets reads there.
    #[must_use]
    pub fn infisical(&self) -> Option<&InfisicalSpec> {
        self.sources.iter().find_map(|source| match source {
            SourceSpec::Infisical(infisical) => Some(infisical),
            _ => None,
        })
    }

    /// The keys that the sources' own settings name.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretRef> {
        let readers = self.sources.iter().filter_map(|source| match source {
            SourceSpec::Infisical(infisical) => infisical.reader.as_ref(),
            _ => None,
        });
        readers.flat_map(|reader| [&reader.id, &reader.secret])
    }
}

impl fmt::Display for SourceSpec {
    /// The source in words, for plans and messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Infisical(infisical) => f.write_str(&infisical.host),
            Self::Sops(sops) => f.write_str(&sops.file),
            Self::Env(env) if env.prefix.is_empty() => f.write_str("the environment"),
            Self::Env(env) => write!(f, "the environment ({}*)", env.prefix),
            Self::File(file) => f.write_str(&file.path),
        }
    }
}

impl fmt::Display for InfisicalSpec {
    /// The folder in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, project, environment, path, .. } = self;
        write!(f, "{host}, project {project}, environment {environment}, path {path}")
    }
}

impl Shape {
    /// The words of the castle file.
    pub const NAMES: [&'static str; 5] = ["token", "pem", "age-key", "yaml", "free"];

    /// The shape that a word of the castle file names.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Some(match word {
            "token" => Self::Token,
            "pem" => Self::Pem,
            "age-key" => Self::AgeKey,
            "yaml" => Self::Yaml,
            "free" => Self::Free,
            _ => return None,
        })
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Token => "token",
            Self::Pem => "pem",
            Self::AgeKey => "age-key",
            Self::Yaml => "yaml",
            Self::Free => "free",
        })
    }
}
