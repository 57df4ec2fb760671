//! Several secrets in one call: all of it or nothing.

use serde_json::{Value, json};

use super::reply::{Answer, Refusal, required};
use super::request::{Body, Place};
use super::secrets::{good_name, note};
use super::shown::{View, shown};
use super::vault::Kept;
use super::{Infisical, Turn};
use crate::turn::HttpCall;

impl Infisical {
    /// `POST`, `PATCH` and `DELETE /api/v4/secrets/batch`: all of it or nothing.
    pub(super) fn batch(
        &mut self,
        turn: &Turn<'_>,
        (call, caller): (&HttpCall, &str),
    ) -> Result<Answer, Refusal> {
        let body = Body::read(call)?;
        body.need(&["projectId", "environment"])?;
        let place = body.place("secretPath");
        let wanted = wanted(&body, &place, call.method != "DELETE")?;
        let (project, _) = self.project(&place.project, caller)?;
        if !project.environments.contains_key(&place.environment) {
            return Err(Refusal::not_found(format!(
                "Environment with slug '{}' in project with ID '{}' not found",
                place.environment, place.project
            )));
        }
        let mode = match call.method.as_str() {
            "POST" => "create",
            "DELETE" => "delete",
            _ => body.get("mode").and_then(Value::as_str).unwrap_or("failOnNotFound"),
        };
        // Judged whole before anything is written.
        for entry in &wanted {
            self.judge_entry(caller, entry, mode)?;
        }
        let mut listed = Vec::new();
        for entry in &wanted {
            let Some(folder) = self.folder_mut(&entry.place) else { continue };
            let there = folder.secrets.get(&entry.key).cloned();
            if mode == "delete" {
                folder.secrets.remove(&entry.key);
                listed.extend(there.map(|kept| entry.shown(&kept)));
            } else if there.is_some() || mode != "ignore" {
                let kept = folder.write(&entry.key, &entry.value, turn.now);
                note(kept, &|field| entry.fields.get(field));
                listed.push(entry.shown(kept));
            }
        }
        let answer = json!({"secrets": listed});
        Ok(if listed.is_empty() { Answer::read(answer) } else { Answer::changed(answer) })
    }

    fn judge_entry(&self, caller: &str, entry: &Entry, mode: &str) -> Result<(), Refusal> {
        let Entry { place, key, .. } = entry;
        let there = self.folder(place).map(|folder| folder.secrets.contains_key(key));
        let action = match (mode, there) {
            ("delete", _) => "delete",
            ("create", _) | ("upsert", Some(false) | None) => "create",
            _ => "edit",
        };
        self.may_write(place, caller, key, action)?;
        match (mode, there) {
            (_, None) => Err(Refusal::not_found(format!(
                "Folder with path '{}' in environment '{}' not found",
                place.path, place.environment
            ))),
            ("create", Some(true)) => {
                Err(Refusal::bad_request(format!("Secret already exists: {key}")))
            }
            ("failOnNotFound" | "delete", Some(false)) => Err(Refusal::not_found(format!(
                "Secret does not exist: {key} in path {}",
                place.path
            ))),
            _ => Ok(()),
        }
    }
}

/// One secret of a batch.
struct Entry {
    place: Place,
    key: String,
    value: String,
    fields: Value,
}

impl Entry {
    fn shown(&self, kept: &Kept) -> Value {
        shown(&self.place, &self.key, kept, &kept.value.0, View::Batched)
    }
}

/// Reads the secrets of a batch, and names every field that is missing.
fn wanted(body: &Body, place: &Place, values: bool) -> Result<Vec<Entry>, Refusal> {
    let Some(listed) = body.get("secrets").and_then(Value::as_array) else {
        return Err(Refusal::invalid(vec![required("secrets", "array")]));
    };
    let mut found = Vec::new();
    for (number, fields) in listed.iter().enumerate() {
        let text = |field: &str| fields.get(field).and_then(Value::as_str);
        let Some(key) = text("secretKey") else {
            return Err(Refusal::invalid(vec![required("secretKey", "string")]));
        };
        if values && text("secretValue").is_none() {
            return Err(Refusal::invalid(vec![required("secretValue", "string")]));
        }
        good_name(&json!(["secrets", number, "secretKey"]), key)?;
        let path = text("secretPath").map(super::request::normal_path);
        found.push(Entry {
            place: Place { path: path.unwrap_or_else(|| place.path.clone()), ..place.clone() },
            key: key.to_owned(),
            value: text("secretValue").unwrap_or_default().to_owned(),
            fields: fields.clone(),
        });
    }
    Ok(found)
}
