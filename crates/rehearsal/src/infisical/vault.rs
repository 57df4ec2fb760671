//! Projects, environments, folders and secrets as they are kept, and who may touch them.

use std::collections::BTreeMap;
use std::fmt;

use castle_model::secret::REDACTED;
use castle_model::time::Moment;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::permission::Member;
use super::reply::Refusal;
use super::request::Place;
use super::{BIRTH, Infisical};

/// How many old versions of a secret are kept.
const HISTORY: usize = 10;
/// A day, in milliseconds.
const DAY: u64 = 86_400_000;

/// A value that is kept but never shown by `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Sealed(pub(super) String);

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// A project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Project {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) organization: String,
    pub(super) made: u64,
    pub(super) environments: BTreeMap<String, Environment>,
    /// Who belongs to it, by the identity's id.
    pub(super) members: BTreeMap<String, Member>,
}

/// An environment of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Environment {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) position: usize,
    /// Folders by path; the root is always there.
    pub(super) folders: BTreeMap<String, Folder>,
}

/// A folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Folder {
    pub(super) id: String,
    pub(super) made: u64,
    /// When a secret in it was last written.
    pub(super) modified: Option<u64>,
    pub(super) secrets: BTreeMap<String, Kept>,
    /// Folders whose secrets show here too, environment and path, in their order.
    pub(super) imports: Vec<(String, String)>,
}

/// A secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) id: String,
    pub(super) version: u64,
    pub(super) value: Sealed,
    pub(super) comment: String,
    pub(super) metadata: Vec<Metadata>,
    /// A mark for those who write it into one line.
    pub(super) multiline: bool,
    pub(super) made: u64,
    pub(super) changed: u64,
    /// Earlier ones by version.
    pub(super) earlier: BTreeMap<u64, Earlier>,
}

/// What a secret was once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Earlier {
    pub(super) value: Sealed,
    pub(super) comment: String,
    pub(super) written: u64,
}

/// A note on a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Metadata {
    pub(super) key: String,
    #[serde(default)]
    pub(super) value: String,
}

impl Project {
    /// A project with the environments that every new one has.
    pub(super) fn new(slug: &str, organization: &str, now: u64) -> Self {
        let mut project = Self {
            id: id(&["project", slug]),
            name: slug.to_owned(),
            organization: organization.to_owned(),
            made: now,
            environments: BTreeMap::new(),
            members: BTreeMap::new(),
        };
        for (slug, name) in [("dev", "Development"), ("staging", "Staging"), ("prod", "Production")]
        {
            name.clone_into(&mut project.environment(slug).name);
        }
        project
    }

    /// An environment, made if it is not there.
    pub(super) fn environment(&mut self, slug: &str) -> &mut Environment {
        let made = id(&["environment", &self.id, slug]);
        let position = self.environments.len() + 1;
        self.environments.entry(slug.to_owned()).or_insert_with(|| {
            let folders = BTreeMap::new();
            let mut fresh = Environment { id: made, name: slug.to_owned(), position, folders };
            fresh.folder("/", 0);
            fresh
        })
    }

    /// The project as the API shows it.
    pub(super) fn shown(&self, slug: &str) -> Value {
        let mut environments: Vec<(&String, &Environment)> = self.environments.iter().collect();
        environments.sort_by_key(|(_, environment)| environment.position);
        let environments: Vec<Value> = environments
            .into_iter()
            .map(|(slug, there)| json!({"name": there.name, "slug": slug, "id": there.id}))
            .collect();
        json!({
            "id": self.id,
            "name": self.name,
            "description": null,
            "type": "secret-manager",
            "defaultProduct": null,
            "slug": slug,
            "autoCapitalization": false,
            "orgId": self.organization,
            "createdAt": stamp(self.made),
            "updatedAt": stamp(self.made),
            "version": 3,
            "upgradeStatus": null,
            "pitVersionLimit": HISTORY,
            "kmsCertificateKeyId": null,
            "auditLogsRetentionDays": null,
            "hasDeleteProtection": false,
            "secretSharing": true,
            "showSnapshotsLegacy": false,
            "secretDetectionIgnoreValues": null,
            "enforceEncryptedSecretManagerSecretMetadata": null,
            "_id": self.id,
            "environments": environments,
            "deletedEnvironments": [],
        })
    }
}

impl Environment {
    /// A folder, made with its parents if it is not there.
    pub(super) fn folder(&mut self, path: &str, now: u64) -> &mut Folder {
        if let Some((parent, name)) = path.rsplit_once('/').filter(|(_, name)| !name.is_empty()) {
            debug_assert!(!name.is_empty());
            self.folder(if parent.is_empty() { "/" } else { parent }, now);
        }
        let made = id(&["folder", &self.id, path]);
        self.folders.entry(path.to_owned()).or_insert_with(|| Folder {
            id: made,
            made: now,
            modified: None,
            secrets: BTreeMap::new(),
            imports: Vec::new(),
        })
    }
}

impl Folder {
    /// Writes a secret: every write is a new version, even of the same value.
    pub(super) fn write(&mut self, key: &str, value: &str, now: u64) -> &mut Kept {
        let value = Sealed(trimmed(value));
        let made = id(&["secret", &self.id, key, &now.to_string()]);
        let kept = self.secrets.entry(key.to_owned()).or_insert_with(|| Kept {
            id: made,
            version: 0,
            value: value.clone(),
            comment: String::new(),
            metadata: Vec::new(),
            multiline: false,
            made: now,
            changed: now,
            earlier: BTreeMap::new(),
        });
        if kept.version > 0 {
            let (value, comment) = (kept.value.clone(), kept.comment.clone());
            let written = kept.changed;
            kept.earlier.insert(kept.version, Earlier { value, comment, written });
        }
        // Those too many go in the night after they were written.
        while kept.earlier.len() > HISTORY
            && kept
                .earlier
                .first_entry()
                .is_some_and(|oldest| oldest.get().written / DAY < now / DAY)
        {
            kept.earlier.pop_first();
        }
        kept.version += 1;
        kept.value = value;
        kept.changed = now;
        self.modified = Some(now);
        kept
    }
}

impl Infisical {
    /// A project by its id, for an identity that belongs to it.
    pub(super) fn project(&self, id: &str, caller: &str) -> Result<(&Project, &Member), Refusal> {
        let project = self.projects.values().find(|project| project.id == id).ok_or_else(|| {
            Refusal::not_found(format!(
                "Project with ID '{id}' not found during bot lookup. Are you sure you are using \
                 the correct project ID?"
            ))
        })?;
        match project.members.get(caller) {
            Some(member) => Ok((project, member)),
            None => Err(outsider(id)),
        }
    }

    /// A folder, if it is there.
    pub(super) fn folder(&self, place: &Place) -> Option<&Folder> {
        let project = self.projects.values().find(|project| project.id == place.project)?;
        project.environments.get(&place.environment)?.folders.get(&place.path)
    }

    /// The same, for a change.
    pub(super) fn folder_mut(&mut self, place: &Place) -> Option<&mut Folder> {
        let project = self.projects.values_mut().find(|project| project.id == place.project)?;
        project.environments.get_mut(&place.environment)?.folders.get_mut(&place.path)
    }

    /// Puts other secrets in place of `${KEY}` and `${environment.folder.KEY}`; what leads nowhere stays.
    pub(super) fn expand(&self, place: &Place, value: &str, depth: u8) -> String {
        let mut text = String::new();
        let mut rest = value;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((reference, behind)) = after.split_once('}') else { break };
            text.push_str(before);
            match self.referenced(place, reference).filter(|_| depth > 0) {
                Some((there, found)) => text.push_str(&self.expand(&there, &found, depth - 1)),
                None => text.extend(["${", reference, "}"]),
            }
            rest = behind;
        }
        text.push_str(rest);
        text
    }

    fn referenced(&self, place: &Place, reference: &str) -> Option<(Place, String)> {
        let names: Vec<&str> = reference.split('.').collect();
        let (key, folders) = names.split_last()?;
        let there = match folders.split_first() {
            None => place.clone(),
            Some((environment, path)) => Place {
                project: place.project.clone(),
                environment: (*environment).to_owned(),
                path: format!("/{}", path.join("/")),
            },
        };
        let value = self.folder(&there)?.secrets.get(*key)?.value.0.clone();
        Some((there, value))
    }
}

/// What an identity hears that does not belong to a project.
pub(super) fn outsider(id: &str) -> Refusal {
    let message = format!(
        "You are not a member of this project with ID {id}. Please assign this identity to the \
         project with the appropriate permissions, then try again."
    );
    Refusal::new(403, "ProjectMembershipNotFound", message)
}

/// A value as it is kept: white space (as JavaScript knows it) at its ends goes, one line end at most stays.
pub(super) fn trimmed(value: &str) -> String {
    let text =
        value.trim_matches(|c: char| (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}');
    if value.ends_with('\n') { format!("{text}\n") } else { text.to_owned() }
}

/// An id that is the same in every world: made from what it names.
pub(super) fn id(names: &[&str]) -> String {
    let text = hex::encode(Sha256::digest(names.join("\n")));
    [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..32]].join("-")
}

/// A virtual time as the API shows it.
pub(super) fn stamp(now: u64) -> String {
    Moment(BIRTH + now).to_string()
}
