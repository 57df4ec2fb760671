//! Secrets in their folders: reading all of one, storing several at once, removing one.

use std::collections::BTreeMap;

use castle_model::Secret;
use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{Infisical, InfisicalError};

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

impl Infisical {
    /// The id of a project by its slug.
    ///
    /// # Errors
    /// If the server does not answer, or the identity is not a member of such a project.
    pub async fn project(&self, slug: &str) -> Result<String, InfisicalError> {
        let path = format!("/api/v1/projects/slug/{}", utf8_percent_encode(slug, ESCAPED));
        Ok(self.call::<Project>(Method::GET, &path, None).await?.id)
    }

    /// Every secret of a folder, as stored: references in values are not expanded.
    ///
    /// # Errors
    /// If the server does not answer, the folder does not exist ([`InfisicalError::is_missing`]), or values are hidden.
    pub async fn list(&self, place: &Place) -> Result<Found, InfisicalError> {
        let query = [
            ("projectId", place.project.as_str()),
            ("environment", &place.environment),
            ("secretPath", &place.path),
            ("recursive", "false"),
            ("includeImports", "true"),
            ("expandSecretReferences", "false"),
            ("viewSecretValue", "true"),
        ];
        let query: Vec<String> = query
            .iter()
            .map(|(key, value)| format!("{key}={}", utf8_percent_encode(value, ESCAPED)))
            .collect();
        let path = format!("/api/v4/secrets?{}", query.join("&"));
        let listed: Listed = self.call(Method::GET, &path, None).await?;
        let mut found = Found::default();
        for secret in listed.secrets {
            let (key, entry) = self.entry(secret)?;
            found.own.insert(key, entry);
        }
        for secret in listed.imports.into_iter().flat_map(|import| import.secrets) {
            let (key, entry) = self.entry(secret)?;
            found.imported.insert(key, entry);
        }
        Ok(found)
    }

    /// Stores secrets, each made or overwritten, all or none. Every write makes a new version: compare first.
    ///
    /// # Errors
    /// If the server does not answer, or refuses; a missing folder is [`InfisicalError::is_missing`].
    pub async fn upsert(
        &self,
        place: &Place,
        secrets: &[(&str, &Secret, &BTreeMap<String, String>)],
    ) -> Result<(), InfisicalError> {
        let secrets: Vec<Value> = secrets
            .iter()
            .map(|(key, value, metadata)| {
                let metadata: Vec<Value> = metadata
                    .iter()
                    .map(|(key, value)| json!({ "key": key, "value": value }))
                    .collect();
                json!({
                    "secretKey": key,
                    "secretValue": value.expose(),
                    "secretMetadata": metadata,
                })
            })
            .collect();
        let mut body = place_body(place);
        body["mode"] = json!("upsert");
        body["secrets"] = json!(secrets);
        let answer: Value = self.call(Method::PATCH, "/api/v4/secrets/batch", Some(&body)).await?;
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
        let trimmed = place.path.trim_matches('/');
        let (parent, name) = trimmed.rsplit_once('/').unwrap_or(("", trimmed));
        if name.is_empty() {
            return Ok(());
        }
        let body = json!({
            "projectId": place.project,
            "environment": place.environment,
            "name": name,
            "path": format!("/{parent}"),
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
        let path = format!("/api/v4/secrets/{}", utf8_percent_encode(key, ESCAPED));
        match self.call::<Value>(Method::DELETE, &path, Some(&place_body(place))).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_missing() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn entry(&self, stored: Stored) -> Result<(String, Entry), InfisicalError> {
        if stored.secret_value_hidden {
            return Err(InfisicalError::Hidden {
                host: self.host().to_owned(),
                key: stored.secret_key,
            });
        }
        let metadata = stored.secret_metadata.unwrap_or_default();
        let entry = Entry {
            value: Secret::new(stored.secret_value),
            version: stored.version,
            metadata: metadata.into_iter().map(|meta| (meta.key, meta.value)).collect(),
        };
        Ok((stored.secret_key, entry))
    }
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
