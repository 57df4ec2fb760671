//! An encrypted file: read, opened, checked, and changed under its own data key.

use castle_model::Secret;
use castle_model::time::Moment;

use crate::cipher::{DataKey, Nonces, Plain};
use crate::error::AgeFault;
use crate::keys::Identities;
use crate::opening::{InClear, Mac, Opening};
use crate::rules::Rules;
use crate::sealing::Sealing;
use crate::tree::{Branch, Item, Tree, Value};
use crate::walk::walk;
use crate::{Format, SopsError, age_file, scalar};

/// The key of the metadata, in each document.
pub(crate) const SOPS: &str = "sops";

/// Sections of the metadata whose keys castle has no use for.
const OTHER_KEYS: [&str; 6] = ["pgp", "kms", "gcp_kms", "azure_kv", "hc_vault", "hckms"];

/// An encrypted file that has been read, and not been opened.
#[derive(Debug)]
pub struct Sealed {
    format: Format,
    /// The documents without their metadata, encrypted as they are.
    documents: Vec<Branch>,
    metadata: Branch,
    rules: Rules,
    keys: Vec<SealedKey>,
    last_modified: String,
    mac: String,
}

/// The data key as it is encrypted for one recipient.
#[derive(Debug)]
struct SealedKey {
    recipient: String,
    file: String,
}

impl Sealed {
    /// Reads an encrypted file.
    ///
    /// # Errors
    /// If it is not encrypted, not well-formed, or only to be opened by means that castle does not have.
    pub fn read(text: &str, format: Format) -> Result<Self, SopsError> {
        let mut documents = Tree::read(text, format)?.documents;
        let metadata = match documents.first().and_then(|document| document.get(SOPS)) {
            Some(Value::Branch(metadata)) => metadata.clone(),
            Some(_) => return Err(metadata_error("", "not a mapping")),
            None => return Err(SopsError::NotSealed),
        };
        for document in &mut documents {
            document.0.retain(|item| !matches!(item, Item::Entry(key, _) if key == SOPS));
        }
        let rules = Rules::of_metadata(&metadata)?;
        let keys = keys(&metadata)?;
        let last_modified = match metadata.get("lastmodified") {
            Some(Value::Text(text)) => scalar::time_in_seconds(text.expose()),
            Some(Value::Time(text)) => scalar::time_in_seconds(text),
            _ => None,
        };
        let last_modified =
            last_modified.ok_or_else(|| metadata_error("lastmodified", "not a moment"))?;
        let mac = match metadata.get("mac") {
            Some(Value::Text(mac)) if !mac.expose().is_empty() => mac.expose().to_owned(),
            _ => {
                return Err(metadata_error(
                    "mac",
                    "missing: nothing tells whether the file was changed",
                ));
            }
        };
        match metadata.get("version") {
            Some(Value::Text(version)) if !version.expose().is_empty() => {}
            _ => return Err(metadata_error("version", "missing")),
        }
        Ok(Self { format, documents, metadata, rules, keys, last_modified, mac })
    }

    /// For whom the file is sealed, as far as age goes.
    pub fn recipients(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|key| key.recipient.as_str())
    }

    /// When the file was last changed, as it says itself.
    #[must_use]
    pub fn last_modified(&self) -> &str {
        &self.last_modified
    }

    /// The version of sops that the file names.
    #[must_use]
    pub fn version(&self) -> Option<Secret> {
        self.metadata.get("version").and_then(Value::text)
    }

    /// What is encrypted in it.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The keys at the top, which are never encrypted.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.documents.iter().flat_map(Branch::keys)
    }

    /// Decrypts every value and checks the MAC over all of them.
    ///
    /// # Errors
    /// If no identity fits, or anything was changed since it was sealed.
    pub fn open(&self, identities: &Identities) -> Result<Tree, SopsError> {
        let key = self.data_key(identities)?;
        self.open_with(&key, None)
    }

    /// The file with other values, under the same data key, recipients and rules. A value that is the same in the
    /// same place keeps its ciphertext, so that a change is seen for what it is.
    ///
    /// # Errors
    /// If the file does not open, or the tree can not be written.
    pub fn reseal(
        &self,
        tree: &Tree,
        identities: &Identities,
        now: Moment,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<String, SopsError> {
        let key = self.data_key(identities)?;
        let mut nonces = Nonces::default();
        self.open_with(&key, Some(&mut nonces))?;
        let sealing = Sealing { key, nonces, rules: &self.rules, format: self.format };
        sealing.seal(tree, self.metadata.clone(), now, fill)
    }

    /// Where something stands in clear that the rules want encrypted. Needs no identity.
    #[must_use]
    pub fn in_clear(&self) -> Vec<String> {
        let mut places = InClear::default();
        let mut documents = self.documents.clone();
        let walked = walk(&mut documents, &self.rules, &mut places);
        // It only collects.
        debug_assert!(walked.is_ok());
        places.places
    }

    fn data_key(&self, identities: &Identities) -> Result<DataKey, SopsError> {
        if identities.is_empty() {
            return Err(SopsError::NoIdentities);
        }
        let mut damaged = None;
        for key in &self.keys {
            match age_file::open(key.file.as_bytes(), identities) {
                Ok(bytes) => {
                    return DataKey::of_bytes(&bytes).ok_or_else(|| SopsError::DataKey {
                        recipient: key.recipient.clone(),
                        why: "it has not 32 bytes".to_owned(),
                    });
                }
                Err(AgeFault::NoMatch) => {}
                Err(why) => {
                    let recipient = key.recipient.clone();
                    damaged = Some(SopsError::DataKey { recipient, why: why.to_string() });
                }
            }
        }
        Err(damaged.unwrap_or_else(|| {
            let list = |texts: Vec<&str>| {
                if texts.is_empty() { "a passphrase".to_owned() } else { texts.join(", ") }
            };
            let offered = list(identities.recipients().texts().collect());
            SopsError::NoIdentity { wanted: list(self.recipients().collect()), offered }
        }))
    }

    pub(crate) fn open_with(
        &self,
        key: &DataKey,
        nonces: Option<&mut Nonces>,
    ) -> Result<Tree, SopsError> {
        let mut documents = self.documents.clone();
        let mut opening = Opening { key, nonces, mac: Mac::new(&self.rules), in_clear: Vec::new() };
        walk(&mut documents, &self.rules, &mut opening)?;
        if !opening.in_clear.is_empty() {
            return Err(SopsError::InClear { places: opening.in_clear });
        }
        let computed = opening.mac.text();
        let sealed = key.open(&self.mac, &self.last_modified, None);
        match sealed.map_err(|why| SopsError::Damaged { place: "sops.mac".to_owned(), why })? {
            Plain::Value(Value::Text(mac)) if mac.expose() == computed => Ok(Tree { documents }),
            _ => Err(SopsError::Mac),
        }
    }
}

pub(crate) fn metadata_error(field: &str, why: &str) -> SopsError {
    SopsError::Metadata { field: field.to_owned(), why: why.to_owned() }
}

/// The data keys for age recipients. Any one key opens a file that has no key groups.
fn keys(metadata: &Branch) -> Result<Vec<SealedKey>, SopsError> {
    if section(metadata, "key_groups")? > 0 {
        return Err(SopsError::OtherKeys { names: "key groups (shamir)".to_owned() });
    }
    let mut keys = Vec::new();
    if let Some(Value::List(list)) = metadata.get("age") {
        for value in list.values() {
            let Value::Branch(entry) = value else {
                return Err(metadata_error("age", "not a list of mappings"));
            };
            let text = |name: &str| match entry.get(name) {
                Some(Value::Text(text)) => Ok(text.expose().to_owned()),
                _ => Err(metadata_error(&format!("age.{name}"), "missing, or not text")),
            };
            keys.push(SealedKey { recipient: text("recipient")?, file: text("enc")? });
        }
    } else if section(metadata, "age")? > 0 {
        return Err(metadata_error("age", "not a list of mappings"));
    }
    if keys.is_empty() {
        let mut names = Vec::new();
        for name in OTHER_KEYS {
            if section(metadata, name)? > 0 {
                names.push(name);
            }
        }
        if names.is_empty() {
            return Err(metadata_error("age", "missing: the file names no recipient"));
        }
        return Err(SopsError::OtherKeys { names: names.join(", ") });
    }
    Ok(keys)
}

/// How many keys a section of the metadata has.
fn section(metadata: &Branch, name: &str) -> Result<usize, SopsError> {
    match metadata.get(name) {
        None | Some(Value::Null) => Ok(0),
        Some(Value::List(list)) => Ok(list.values().count()),
        Some(_) => Err(metadata_error(name, "not a list")),
    }
}
