//! The calls on folders: a new one brings its parents along, and a missing one lists as empty.

use serde_json::{Value, json};

use super::permission::{FOLDERS, Target};
use super::reply::{Answer, Refusal, disliked};
use super::request::{Body, Query, normal_path};
use super::vault::{Environment, Folder, stamp};
use super::{Infisical, Turn};
use crate::turn::HttpCall;

impl Infisical {
    /// `POST /api/v2/folders`.
    pub(super) fn create_folder(
        &mut self,
        turn: &Turn<'_>,
        (call, caller): (&HttpCall, &str),
    ) -> Result<Answer, Refusal> {
        let body = Body::read(call)?;
        body.need(&["projectId", "environment", "name"])?;
        let (name, place) = (body.text("name"), body.place("path"));
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
            let message = "Invalid folder name. Only alphanumeric characters, dashes, and \
                           underscores are allowed.";
            return Err(Refusal::invalid(vec![disliked(&json!(["name"]), message)]));
        }
        let (_, member) = self.project(&place.project, caller)?;
        let target = Target { environment: &place.environment, path: &place.path, key: None };
        if !member.may(FOLDERS, "create", &target) {
            return Err(Refusal::denied("create", FOLDERS, member.details(FOLDERS, "create")));
        }
        let path = normal_path(&format!("{}/{name}", place.path));
        let environment = self
            .projects
            .values_mut()
            .find(|project| project.id == place.project)
            .and_then(|project| project.environments.get_mut(&place.environment));
        let Some(environment) = environment else {
            return Err(Refusal::not_found(format!(
                "Environment with slug '{}' in project with ID '{}' not found",
                place.environment, place.project
            )));
        };
        if environment.folders.contains_key(&path) {
            return Err(Refusal::bad_request(format!(
                "Folder with name '{name}' already exists in path '{}'",
                place.path
            )));
        }
        let folder = environment.folder(&path, turn.now).clone();
        let mut shown = shown(environment, &path, &folder);
        shown["path"] = json!(path);
        Ok(Answer::changed(json!({"folder": shown})))
    }

    /// `GET /api/v2/folders`.
    pub(super) fn list_folders(&self, call: &HttpCall, caller: &str) -> Result<Answer, Refusal> {
        let query = Query::read(call);
        let recursive = query.loose_switch("recursive");
        let place = query.place("path");
        let (project, _) = self.project(&place.project, caller)?;
        let environment = project.environments.get(&place.environment).ok_or_else(|| {
            let message = format!("Environment with slug '{}' not found", place.environment);
            Refusal::not_found(message)
        })?;
        let root = format!("{}/", place.path.trim_end_matches('/'));
        let mut listed = Vec::new();
        let mut folders: Vec<(&String, &Folder)> = environment.folders.iter().collect();
        folders.sort_by_key(|(path, _)| path.matches('/').count());
        for (path, folder) in folders {
            let Some(name) = path.strip_prefix(&root).filter(|name| !name.is_empty()) else {
                continue;
            };
            if name.contains('/') && !recursive {
                continue;
            }
            let mut shown = shown(environment, path, folder);
            if recursive {
                shown["relativePath"] = json!(format!("/{name}"));
            }
            listed.push(shown);
        }
        Ok(Answer::read(json!({"folders": listed})))
    }
}

fn shown(environment: &Environment, path: &str, folder: &Folder) -> Value {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    let parent = environment.folders.get(if parent.is_empty() { "/" } else { parent });
    json!({
        "id": folder.id,
        "name": name,
        "version": 1,
        "createdAt": stamp(folder.made),
        "updatedAt": stamp(folder.modified.unwrap_or(folder.made)),
        "envId": environment.id,
        "parentId": parent.map(|parent| parent.id.as_str()),
        "isReserved": false,
        "description": null,
        "lastSecretModified": folder.modified.map(stamp),
    })
}
