//! The calls on secrets: list, get, create, update, delete, and the batch that creates or updates.

use serde_json::{Value, json};

use super::reply::{Answer, Refusal, disliked, required};
use super::request::{Body, Place, Query};
use super::vault::{Kept, Metadata, Role, stamp};
use super::{Infisical, Turn};
use crate::turn::HttpCall;

/// What stands in the place of a value that was not asked for.
const HIDDEN: &str = "<hidden-by-infisical>";
/// How deep references are followed.
const DEPTH: u8 = 8;

/// How much of a secret a reply shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    /// Everything, as reads do.
    Read,
    /// As a create shows it.
    Created,
    /// As an update shows it.
    Updated,
}

impl Infisical {
    /// `GET /api/v4/secrets`.
    pub(super) fn list_secrets(&self, call: &HttpCall, caller: &str) -> Result<Answer, Refusal> {
        let query = Query::read(call);
        let recursive = query.switch("recursive", false)?;
        query.switch("includeImports", true)?;
        let expand = query.switch("expandSecretReferences", true)?;
        let view = query.switch("viewSecretValue", true)?;
        if query.get("projectId").is_none() || query.get("environment").is_none() {
            return Err(Refusal::bad_request("Missing project id or environment"));
        }
        let place = query.place("secretPath");
        let (project, role) = self.project(&place.project, caller)?;
        may_read(role)?;
        if self.folder(&place).is_none() {
            let message = format!(
                "Folder with path '{}' in environment '{}' was not found. Please ensure the \
                 environment slug and secret path is correct.",
                place.path, place.environment
            );
            return Err(Refusal::new(404, "SecretPathNotFound", message));
        }
        let folders = project.environments.get(&place.environment).map(|there| &there.folders);
        let mut listed = Vec::new();
        for (path, folder) in folders.into_iter().flatten() {
            let below = path.starts_with(&format!("{}/", place.path.trim_end_matches('/')));
            if *path != place.path && !(recursive && below) {
                continue;
            }
            let there = Place { path: path.clone(), ..place.clone() };
            for (key, kept) in &folder.secrets {
                let value = self.value(&there, &kept.value.0, (view, expand));
                listed.push(shown(&there, key, kept, &value, View::Read));
            }
        }
        Ok(Answer::read(json!({"secrets": listed, "imports": []})))
    }

    /// `GET /api/v4/secrets/{name}`.
    pub(super) fn get_secret(
        &self,
        call: &HttpCall,
        caller: &str,
        name: &str,
    ) -> Result<Answer, Refusal> {
        let query = Query::read(call);
        let expand = query.switch("expandSecretReferences", true)?;
        let view = query.switch("viewSecretValue", true)?;
        let place = query.place("secretPath");
        let (_, role) = self.project(&place.project, caller)?;
        may_read(role)?;
        let folder = self.folder(&place).ok_or_else(|| no_folder(&place, "GetSecretByName"))?;
        let missing = || Refusal::not_found(format!("Secret with name '{name}' not found"));
        let mut kept = folder.secrets.get(name).ok_or_else(missing)?.clone();
        if let Some(version) = query.get("version").and_then(|text| text.parse().ok())
            && version != kept.version
        {
            kept.value = kept.earlier.get(&version).ok_or_else(missing)?.clone();
            kept.version = version;
        }
        let value = self.value(&place, &kept.value.0, (view, expand));
        Ok(Answer::read(json!({"secret": shown(&place, name, &kept, &value, View::Read)})))
    }

    fn value(&self, place: &Place, kept: &str, (view, expand): (bool, bool)) -> String {
        match (view, expand) {
            (false, _) => HIDDEN.to_owned(),
            (true, true) => self.expand(place, kept, DEPTH),
            (true, false) => kept.to_owned(),
        }
    }

    /// `POST /api/v4/secrets/{name}`.
    pub(super) fn create_secret(
        &mut self,
        turn: &Turn<'_>,
        (call, caller, name): (&HttpCall, &str, &str),
    ) -> Result<Answer, Refusal> {
        let body = Body::read(call)?;
        body.need(&["projectId", "environment", "secretValue"])?;
        good_name("secretName", name)?;
        let place = body.place("secretPath");
        self.may_write(&place, caller, "create")?;
        let folder = self.folder_mut(&place).ok_or_else(|| no_folder(&place, "CreateSecret"))?;
        if folder.secrets.contains_key(name) {
            return Err(Refusal::bad_request("Secret already exists"));
        }
        let kept = folder.write(name, body.text("secretValue"), turn.now);
        note(kept, &|field| body.get(field));
        let value = kept.value.0.clone();
        Ok(Answer::changed(json!({"secret": shown(&place, name, kept, &value, View::Created)})))
    }

    /// `PATCH /api/v4/secrets/{name}`.
    pub(super) fn update_secret(
        &mut self,
        turn: &Turn<'_>,
        (call, caller, name): (&HttpCall, &str, &str),
    ) -> Result<Answer, Refusal> {
        let body = Body::read(call)?;
        body.need(&["projectId", "environment", "secretValue"])?;
        let place = body.place("secretPath");
        self.may_write(&place, caller, "edit")?;
        let folder = self.folder_mut(&place).ok_or_else(|| no_folder(&place, "UpdateSecret"))?;
        if !folder.secrets.contains_key(name) {
            return Err(Refusal::not_found(format!("Secret with name {name} not found")));
        }
        let kept = folder.write(name, body.text("secretValue"), turn.now);
        note(kept, &|field| body.get(field));
        let value = kept.value.0.clone();
        Ok(Answer::changed(json!({"secret": shown(&place, name, kept, &value, View::Updated)})))
    }

    /// `DELETE /api/v4/secrets/{name}`.
    pub(super) fn delete_secret(
        &mut self,
        (call, caller, name): (&HttpCall, &str, &str),
    ) -> Result<Answer, Refusal> {
        let body = Body::read(call)?;
        body.need(&["projectId", "environment"])?;
        let place = body.place("secretPath");
        self.may_write(&place, caller, "delete")?;
        let folder = self.folder_mut(&place).ok_or_else(|| no_folder(&place, "DeleteSecret"))?;
        let missing = || Refusal::not_found("Secret not found");
        let kept = folder.secrets.remove(name).ok_or_else(missing)?;
        let shown = shown(&place, name, &kept, &kept.value.0, View::Updated);
        Ok(Answer::changed(json!({"secret": shown})))
    }

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
        self.may_write(place, caller, action)?;
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

    fn may_write(&self, place: &Place, caller: &str, action: &str) -> Result<(), Refusal> {
        match self.project(&place.project, caller)?.1 {
            Role::Member => Ok(()),
            Role::Viewer | Role::NoAccess => Err(Refusal::denied(action, "secrets")),
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
        shown(&self.place, &self.key, kept, &kept.value.0, View::Updated)
    }
}

/// Reads the secrets of a batch, and names every field that is missing.
fn wanted(body: &Body, place: &Place, values: bool) -> Result<Vec<Entry>, Refusal> {
    let Some(listed) = body.get("secrets").and_then(Value::as_array) else {
        return Err(Refusal::invalid(vec![required("secrets", "array")]));
    };
    let mut found = Vec::new();
    for fields in listed {
        let text = |field: &str| fields.get(field).and_then(Value::as_str);
        let Some(key) = text("secretKey") else {
            return Err(Refusal::invalid(vec![required("secretKey", "string")]));
        };
        if values && text("secretValue").is_none() {
            return Err(Refusal::invalid(vec![required("secretValue", "string")]));
        }
        good_name("secretKey", key)?;
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

/// Takes over comment and metadata; what a write leaves out stays as it was.
fn note<'a>(kept: &mut Kept, field: &dyn Fn(&str) -> Option<&'a Value>) {
    if let Some(comment) = field("secretComment").and_then(Value::as_str) {
        comment.clone_into(&mut kept.comment);
    }
    let metadata = field("secretMetadata").cloned();
    if let Some(notes) =
        metadata.and_then(|notes| serde_json::from_value::<Vec<Metadata>>(notes).ok())
    {
        kept.metadata = notes;
    }
}

fn shown(place: &Place, key: &str, kept: &Kept, value: &str, view: View) -> Value {
    // An update shows no comment although it is kept; so does the real one.
    let comment = if view == View::Updated { "" } else { &kept.comment };
    let mut shown = json!({
        "id": kept.id,
        "_id": kept.id,
        "workspace": place.project,
        "environment": place.environment,
        "version": kept.version,
        "type": "shared",
        "secretKey": key,
        "secretValue": value,
        "secretComment": comment,
        "secretReminderNote": null,
        "secretReminderRepeatDays": null,
        "skipMultilineEncoding": false,
        "createdAt": stamp(kept.made),
        "updatedAt": stamp(kept.changed),
        "isRotatedSecret": false,
        "rotationId": null,
    });
    if view != View::Created {
        shown["secretValueHidden"] = json!(value == HIDDEN);
    }
    if view == View::Read {
        let notes: Vec<Value> = kept
            .metadata
            .iter()
            .map(|note| json!({"key": note.key, "value": note.value, "isEncrypted": false}))
            .collect();
        shown["secretPath"] = json!(place.path);
        shown["tags"] = json!([]);
        shown["secretMetadata"] = json!(notes);
    }
    shown
}

fn may_read(role: Role) -> Result<(), Refusal> {
    match role {
        Role::Member | Role::Viewer => Ok(()),
        Role::NoAccess => Err(Refusal::denied("describeSecret", "secrets")),
    }
}

fn no_folder(place: &Place, operation: &str) -> Refusal {
    let message = format!(
        "Folder with path '{}' in environment with slug '{}' not found",
        place.path, place.environment
    );
    Refusal::new(404, operation, message)
}

fn good_name(field: &str, name: &str) -> Result<(), Refusal> {
    if name.contains([':', '/']) {
        let message = "Secret name cannot contain colon or forward slash.";
        return Err(Refusal::invalid(vec![disliked(field, message)]));
    }
    Ok(())
}
