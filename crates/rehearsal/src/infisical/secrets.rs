//! The calls on single secrets: list, get, create, update, delete.

use serde_json::{Value, json};

use super::permission::{DESCRIBE, Member, READ_VALUE, SECRETS, Target};
use super::reply::{Answer, Refusal, disliked};
use super::request::{Body, Place, Query};
use super::shown::{HIDDEN, View, shown, version_shown};
use super::vault::{Earlier, Kept, Metadata};
use super::{Infisical, Turn};
use crate::turn::HttpCall;

/// How deep references are followed.
const DEPTH: u8 = 8;
/// The longest name that is kept.
const LONGEST_KEPT: usize = 500;

/// How a read wants its values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    /// Shown, or hidden.
    pub(super) view: bool,
    /// With references followed.
    pub(super) expand: bool,
    /// With what a folder imports.
    pub(super) imports: bool,
}

impl Wish {
    fn read(query: &Query) -> Result<Self, Refusal> {
        let expand = query.switch("expandSecretReferences", true)?;
        let view = query.switch("viewSecretValue", true)?;
        Ok(Self { view, expand, imports: query.switch("includeImports", true)? })
    }
}

impl Infisical {
    /// `GET /api/v4/secrets`.
    pub(super) fn list_secrets(&self, call: &HttpCall, caller: &str) -> Result<Answer, Refusal> {
        let query = Query::read(call);
        let recursive = query.switch("recursive", false)?;
        let wish = Wish::read(&query)?;
        if query.get("projectId").is_none() || query.get("environment").is_none() {
            return Err(Refusal::bad_request("Missing project id or environment"));
        }
        let place = query.place("secretPath");
        let asked = match query.get("secretPath").unwrap_or_default().trim_end_matches('/') {
            "" => "/",
            path => path,
        };
        let (project, member) = self.project(&place.project, caller)?;
        if !member.may_somewhere(SECRETS, DESCRIBE) {
            return Err(denied(member, DESCRIBE));
        }
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
                // What may not be seen is not there; what may be seen and not read is a refusal.
                if !may(member, &there, key, DESCRIBE) {
                    continue;
                }
                if wish.view && !may(member, &there, key, READ_VALUE) {
                    return Err(denied(member, READ_VALUE));
                }
                let value = self.value(&there, &kept.value.0, wish);
                let mut secret = shown(&there, key, kept, &value, View::Read);
                if *path == place.path {
                    // As it was asked for, which need not be how it is written.
                    secret["secretPath"] = json!(asked);
                }
                listed.push(secret);
            }
        }
        let value = |there: &Place, kept: &Kept| self.value(there, &kept.value.0, wish);
        let imports =
            if wish.imports { self.imports_shown(&place, caller, value) } else { json!([]) };
        Ok(Answer::tagged(json!({"secrets": listed, "imports": imports})))
    }

    /// `GET /api/v4/secrets/{name}`.
    pub(super) fn get_secret(
        &self,
        call: &HttpCall,
        caller: &str,
        name: &str,
    ) -> Result<Answer, Refusal> {
        let query = Query::read(call);
        let wish = Wish::read(&query)?;
        let version = query.get("version").and_then(|text| text.parse().ok());
        let secret = self.secret((&query.place("secretPath"), name), caller, wish, version)?;
        Ok(Answer::read(json!({"secret": secret})))
    }

    /// One secret, for whoever asks for it by name.
    pub(super) fn secret(
        &self,
        (place, name): (&Place, &str),
        caller: &str,
        wish: Wish,
        version: Option<u64>,
    ) -> Result<Value, Refusal> {
        let (_, member) = self.project(&place.project, caller)?;
        if !may(member, place, name, DESCRIBE) {
            return Err(denied(member, DESCRIBE));
        }
        let folder = self.folder(place).ok_or_else(|| no_folder(place, "GetSecretByName"))?;
        let missing = || Refusal::not_found(format!("Secret with name '{name}' not found"));
        let Some(kept) = folder.secrets.get(name) else {
            let found = self.imported(place, caller, name).filter(|_| wish.imports);
            let imported = found.ok_or_else(missing)?;
            let value = self.value(&imported.place, &imported.kept.value.0, wish);
            return Ok(shown(&imported.place, name, imported.kept, &value, View::Read));
        };
        if wish.view && !may(member, place, name, READ_VALUE) {
            let message = format!(
                "You do not have permission to view secret value on secret with name '{name}'"
            );
            return Err(Refusal::new(403, "ForbiddenReadSecretError", message));
        }
        let Some(version) = version else {
            let value = self.value(place, &kept.value.0, wish);
            return Ok(shown(place, name, kept, &value, View::Read));
        };
        let now = Earlier {
            value: kept.value.clone(),
            comment: kept.comment.clone(),
            written: kept.changed,
        };
        let once = match kept.earlier.get(&version) {
            Some(earlier) => earlier,
            None if version == kept.version => &now,
            None => return Err(missing()),
        };
        let value = self.value(place, &once.value.0, wish);
        Ok(version_shown((place, name), (kept, version), once, &value))
    }

    fn value(&self, place: &Place, kept: &str, wish: Wish) -> String {
        match (wish.view, wish.expand) {
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
        good_name(&json!(["secretName"]), name)?;
        let place = body.place("secretPath");
        self.may_write(&place, caller, name, "create")?;
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
        body.need(&["projectId", "environment"])?;
        let renamed = body.get("newSecretName").and_then(Value::as_str);
        good_name(&json!(["newSecretName"]), renamed.unwrap_or_default())?;
        let place = body.place("secretPath");
        self.may_write(&place, caller, name, "edit")?;
        let folder = self.folder_mut(&place).ok_or_else(|| no_folder(&place, "UpdateSecret"))?;
        let Some(there) = folder.secrets.get(name) else {
            return Err(Refusal::not_found(format!("Secret with name {name} not found")));
        };
        let value = body.get("secretValue").and_then(Value::as_str);
        let value = value.unwrap_or(&there.value.0).to_owned();
        let new = renamed.unwrap_or(name);
        if new != name {
            if folder.secrets.contains_key(new) {
                return Err(Refusal::bad_request(format!("Secret with name {new} already exists")));
            }
            if let Some(moved) = folder.secrets.remove(name) {
                folder.secrets.insert(new.to_owned(), moved);
            }
        }
        let kept = folder.write(new, &value, turn.now);
        note(kept, &|field| body.get(field));
        let value = kept.value.0.clone();
        Ok(Answer::changed(json!({"secret": shown(&place, new, kept, &value, View::Updated)})))
    }

    /// `DELETE /api/v4/secrets/{name}`.
    pub(super) fn delete_secret(
        &mut self,
        turn: &Turn<'_>,
        (call, caller, name): (&HttpCall, &str, &str),
    ) -> Result<Answer, Refusal> {
        let body = Body::read(call)?;
        body.need(&["projectId", "environment"])?;
        let place = body.place("secretPath");
        self.may_write(&place, caller, name, "delete")?;
        let folder = self.folder_mut(&place).ok_or_else(|| no_folder(&place, "DeleteSecret"))?;
        let missing = || Refusal::not_found("Secret not found");
        let kept = folder.secrets.remove(name).ok_or_else(missing)?;
        folder.modified = Some(turn.now);
        let shown = shown(&place, name, &kept, &kept.value.0, View::Updated);
        Ok(Answer::changed(json!({"secret": shown})))
    }

    /// Whether an identity may change a secret.
    pub(super) fn may_write(
        &self,
        place: &Place,
        caller: &str,
        key: &str,
        action: &str,
    ) -> Result<(), Refusal> {
        let (_, member) = self.project(&place.project, caller)?;
        if may(member, place, key, action) { Ok(()) } else { Err(denied(member, action)) }
    }
}

fn may(member: &Member, place: &Place, key: &str, action: &str) -> bool {
    let target = Target { environment: &place.environment, path: &place.path, key: Some(key) };
    member.may(SECRETS, action, &target)
}

fn denied(member: &Member, action: &str) -> Refusal {
    Refusal::denied(action, SECRETS, member.details(SECRETS, action))
}

/// Takes over comment and metadata; what a write leaves out stays as it was.
pub(super) fn note<'a>(kept: &mut Kept, field: &dyn Fn(&str) -> Option<&'a Value>) {
    if let Some(comment) = field("secretComment").and_then(Value::as_str) {
        comment.clone_into(&mut kept.comment);
    }
    if let Some(multiline) = field("skipMultilineEncoding").and_then(Value::as_bool) {
        kept.multiline = multiline;
    }
    let metadata = field("secretMetadata").cloned();
    if let Some(notes) =
        metadata.and_then(|notes| serde_json::from_value::<Vec<Metadata>>(notes).ok())
    {
        kept.metadata = notes;
    }
}

fn no_folder(place: &Place, operation: &str) -> Refusal {
    let message = format!(
        "Folder with path '{}' in environment with slug '{}' not found",
        place.path, place.environment
    );
    Refusal::new(404, operation, message)
}

/// Whether a name can be one; `path` is where it stands in the request.
pub(super) fn good_name(path: &Value, name: &str) -> Result<(), Refusal> {
    if name.contains([':', '/']) {
        let message = "Secret name cannot contain colon or forward slash.";
        return Err(Refusal::invalid(vec![disliked(path, message)]));
    }
    if name.chars().count() > LONGEST_KEPT {
        let message =
            "One or more field values exceed the maximum length allowed for this resource";
        return Err(Refusal::new(422, "ValidationFailure", message));
    }
    Ok(())
}
