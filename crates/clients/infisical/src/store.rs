//! Secrets in their folders: reading all of one, storing several at once, removing one.

use std::collections::BTreeMap;

use castle_model::Secret;
use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{Again, Infisical};
use crate::error::InfisicalError;

/// Everything but RFC 3986's unreserved characters.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A folder of an environment of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The project's id (not its slug).
    pub project: String,
    /// The environment's slug.
    pub environment: String,
    /// The folder's path, such as `/ephemeral-castle/blue`.
    pub path: String,
}

/// One stored secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its value.
    pub value: Secret,
    /// How often it was written.
    pub version: u64,
    /// Its metadata, which is not secret.
    pub metadata: BTreeMap<String, String>,
}

/// Everything in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// The folder's own secrets.
    pub own: BTreeMap<String, Entry>,
    /// Those it imports from elsewhere.
    pub imported: BTreeMap<String, Entry>,
}

impl Found {
    /// A secret of the folder, its own before an imported one.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.own.get(key).or_else(|| self.imported.get(key))
    }

    /// Whether the folder itself holds a secret just as it is to be stored: writing it would only push an earlier
    /// version out.
    #[must_use]
    pub fn holds(&self, key: &str, value: &Secret, metadata: &BTreeMap<String, String>) -> bool {
        self.own.get(key).is_some_and(|entry| {
            entry.value.expose() == stored_as(value.expose()) && entry.metadata == *metadata
        })
    }
}

#[derive(Deserialize)]
struct Project {
    id: String,
}

#[derive(Deserialize)]
struct Listed {
    secrets: Vec<Stored>,
    #[serde(default)]
    imports: Vec<Import>,
}

#[derive(Deserialize)]
struct Import {
    #[serde(default)]
    secrets: Vec<Stored>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    secret_key: String,
    #[serde(default)]
    secret_value: String,
    #[serde(default)]
    version: u64,
    #[serde(default)]
    secret_value_hidden: bool,
    #[serde(default)]
    secret_metadata: Option<Vec<Meta>>,
}

#[derive(Deserialize)]
struct Meta {
    key: String,
    #[serde(default)]
    value: String,
}

/// A value as the server will keep it: it trims white space and any run of newlines at the end to one.
#[must_use]
pub fn stored_as(value: &str) -> String {
    // JavaScript's idea of white space, which differs from Rust's in two characters.
    let blank = |c: char| (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}';
    let trimmed = value.trim_matches(blank);
    if value.ends_with('\n') { format!("{trimmed}\n") } else { trimmed.to_owned() }
}

/// The longest name that can stand in a path; longer ones go in bodies.
pub(crate) const LONGEST_IN_PATH: usize = 100;
/// The longest name that the server was seen to keep is longer than 200 characters, and 600 are too many for it.
const LONGEST_NAME: usize = 500;

impl Infisical {
    /// The id of a project by its slug; asked for once.
    ///
    /// # Errors
    /// If the server does not answer, or the identity is not a member of such a project.
    pub async fn project(&self, slug: &str) -> Result<String, InfisicalError> {
        if let Some(id) = self.session.lock().await.projects.get(slug) {
            return Ok(id.clone());
        }
        let path = format!("/api/v1/projects/slug/{}", escaped(slug));
        let id = self.call::<Project>(Method::GET, &path, None).await?.id;
        self.session.lock().await.projects.insert(slug.to_owned(), id.clone());
        Ok(id)
    }

    /// Every secret of a folder, as stored: references in values are not expanded.
    ///
    /// # Errors
    /// If the server does not answer, the folder does not exist ([`InfisicalError::is_missing`]), or values are hidden.
    pub async fn list(&self, place: &Place) -> Result<Found, InfisicalError> {
        let query = place_query(place, &[("recursive", "false"), ("includeImports", "true")]);
        let path = format!("/api/v4/secrets?{query}");
        let listed: Listed = match self.call(Method::GET, &path, None).await {
            Err(error) if error.is_missing() => {
                return Err(self.environment_or(place, error).await);
            }
            other => other?,
        };
        let mut hidden: Vec<String> = Vec::new();
        let mut found = Found::default();
        for secret in listed.secrets {
            if let Some((key, entry)) = entry(secret, &mut hidden) {
                found.own.insert(key, entry);
            }
        }
        // The import that was added last wins, as it does in the server.
        for secret in listed.imports.into_iter().flat_map(|import| import.secrets) {
            if let Some((key, entry)) = entry(secret, &mut hidden) {
                found.imported.insert(key, entry);
            }
        }
        if hidden.is_empty() {
            return Ok(found);
        }
        let (host, key) = (self.host().to_owned(), hidden.join("`, `"));
        Err(InfisicalError::Hidden { host, key })
    }

    /// A missing environment is told as a missing folder; the folders' own call knows better.
    async fn environment_or(&self, place: &Place, error: InfisicalError) -> InfisicalError {
        let root = [("projectId", &*place.project), ("environment", &place.environment)];
        let path = format!("/api/v2/folders?{}&path=%2F", joined(&root));
        match self.call::<Value>(Method::GET, &path, None).await {
            Err(better) if asked(&better).starts_with("Environment with slug") => better,
            _ => error,
        }
    }

    /// Stores secrets, each made or overwritten, all or none. Every write makes a new version: compare first.
    ///
    /// A server that stumbles is looked at before the same is sent once more, because somebody may have been faster: where
    /// something else stands by then, it is for the caller to look and to decide, never for us to write over it.
    ///
    /// # Errors
    /// If the server does not answer, or refuses; a missing folder is [`InfisicalError::is_missing`].
    pub async fn upsert(
        &self,
        place: &Place,
        secrets: &[(&str, &Secret, &BTreeMap<String, String>)],
    ) -> Result<(), InfisicalError> {
        for (key, ..) in secrets {
            good_name(key)?;
        }
        if secrets.is_empty() {
            return Ok(());
        }
        let mut body = place_body(place);
        body["mode"] = json!("upsert");
        body["secrets"] = secrets.iter().map(written).collect();
        match self.store(&body).await {
            Err(error) if error.is_undecided() => match self.list(place).await {
                Ok(found)
                    if secrets.iter().all(|(key, value, notes)| found.holds(key, value, notes)) =>
                {
                    Ok(())
                }
                Ok(found) if secrets.iter().all(|(key, ..)| !found.own.contains_key(*key)) => {
                    self.store(&body).await
                }
                _ => Err(error),
            },
            outcome => outcome,
        }
    }

    async fn store(&self, body: &Value) -> Result<(), InfisicalError> {
        let request = (Method::PATCH, "/api/v4/secrets/batch", Some(body));
        let answer: Value = self.call_again(request, Again::IfUnheard).await?;
        // A change that waits for somebody's approval is answered with 200 too.
        if answer.get("secrets").is_none() {
            return Err(
                self.malformed("PATCH batch", "nothing was stored; does it wait for an approval?")
            );
        }
        Ok(())
    }

    /// Makes a folder and those above it; one that exists is fine.
    ///
    /// # Errors
    /// If the server does not answer, or refuses.
    pub async fn create_folder(&self, place: &Place) -> Result<(), InfisicalError> {
        let names: Vec<&str> = place.path.split('/').filter(|name| !name.is_empty()).collect();
        let dull =
            |name: &&&str| !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        if let Some(name) = names.iter().find(dull) {
            let (path, name) = (place.path.clone(), (*name).to_owned());
            return Err(InfisicalError::Folder { path, name });
        }
        let Some((name, parents)) = names.split_last() else { return Ok(()) };
        let body = json!({
            "projectId": place.project,
            "environment": place.environment,
            "name": name,
            "path": format!("/{}", parents.join("/")),
        });
        match self.call::<Value>(Method::POST, "/api/v2/folders", Some(&body)).await {
            Err(error) if !error.is_existing() => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes a secret; one that does not exist is fine. Says whether it was there.
    ///
    /// # Errors
    /// If the server does not answer, or refuses.
    pub async fn remove(&self, place: &Place, key: &str) -> Result<bool, InfisicalError> {
        good_name(key)?;
        // Such a name cannot stand in the path: too long for a route, or a route itself.
        let by_body = key == "batch" || key.chars().count() > LONGEST_IN_PATH;
        let mut body = place_body(place);
        let path = if by_body {
            body["secrets"] = json!([{ "secretKey": key }]);
            "/api/v4/secrets/batch".to_owned()
        } else {
            format!("/api/v4/secrets/{}", escaped(key))
        };
        match self.call::<Value>(Method::DELETE, &path, Some(&body)).await {
            Ok(answer) if answer.get("secret").or(answer.get("secrets")).is_some() => Ok(true),
            Ok(_) => {
                Err(self.malformed("DELETE", "nothing was removed; does it wait for an approval?"))
            }
            Err(error) if error.is_missing() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Reads one secret; the key of one whose value is hidden is noted instead.
fn entry(stored: Stored, hidden: &mut Vec<String>) -> Option<(String, Entry)> {
    if stored.secret_value_hidden {
        hidden.push(stored.secret_key);
        return None;
    }
    let metadata = stored.secret_metadata.unwrap_or_default();
    let entry = Entry {
        value: Secret::new(stored.secret_value),
        version: stored.version,
        metadata: metadata.into_iter().map(|meta| (meta.key, meta.value)).collect(),
    };
    Some((stored.secret_key, entry))
}

/// A secret as a batch takes it. Without metadata, what is noted there stays.
fn written((key, value, metadata): &(&str, &Secret, &BTreeMap<String, String>)) -> Value {
    let mut written = json!({ "secretKey": key, "secretValue": value.expose() });
    if !metadata.is_empty() {
        written["secretMetadata"] =
            metadata.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect();
    }
    written
}

/// What the server says in an error.
pub(crate) fn asked(error: &InfisicalError) -> &str {
    match error {
        InfisicalError::Answer { refusal, .. } => &refusal.message,
        _ => "",
    }
}

fn good_name(key: &str) -> Result<(), InfisicalError> {
    let why = if key.is_empty() {
        "it is empty"
    } else if key.contains([':', '/']) {
        "it holds a colon or a slash"
    } else if key.chars().count() > LONGEST_NAME {
        "it is too long"
    } else {
        return Ok(());
    };
    Err(InfisicalError::Name { key: key.chars().take(LONGEST_IN_PATH).collect(), why })
}

/// A piece of a path or query.
pub(crate) fn escaped(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, ESCAPED)
}

/// The query of a read: values are asked for as stored.
pub(crate) fn place_query(place: &Place, more: &[(&str, &str)]) -> String {
    let mut query = vec![
        ("projectId", place.project.as_str()),
        ("environment", &place.environment),
        ("secretPath", &place.path),
    ];
    query.extend(more);
    query.extend([("expandSecretReferences", "false"), ("viewSecretValue", "true")]);
    joined(&query)
}

fn joined(query: &[(&str, &str)]) -> String {
    let pairs: Vec<String> =
        query.iter().map(|(key, value)| format!("{key}={}", escaped(value))).collect();
    pairs.join("&")
}

fn place_body(place: &Place) -> Value {
    json!({
        "projectId": place.project,
        "environment": place.environment,
        "secretPath": place.path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_as_the_server_keeps_them() {
        for (sent, kept) in [
            ("a\nb\n\n", "a\nb\n"),
            ("  a: 1\n", "a: 1\n"),
            ("a  ", "a"),
            ("a\r\nb\r\n", "a\r\nb\n"),
            ("", ""),
            ("\n \n", "\n"),
            ("\u{feff}a", "a"),
        ] {
            assert_eq!(stored_as(sent), kept, "{sent:?}");
            assert_eq!(stored_as(kept), kept, "keeping twice changes nothing");
        }
    }

    #[test]
    fn a_listed_secret_is_read_with_and_without_metadata() {
        let stored: Stored = serde_json::from_str(
            r#"{"secretKey":"A","secretValue":"v","version":4,"secretValueHidden":false,
                "secretMetadata":[{"key":"incarnation","value":"00","isEncrypted":false}]}"#,
        )
        .unwrap();
        assert_eq!(stored.secret_metadata.unwrap()[0].value, "00");
        let bare: Stored =
            serde_json::from_str(r#"{"secretKey":"A","secretMetadata":null}"#).unwrap();
        assert!(bare.secret_value.is_empty() && !bare.secret_value_hidden);
    }
}
