//! Folders that show what is in other folders.

use serde_json::{Value, json};

use super::permission::{DESCRIBE, IMPORTS, READ_VALUE, SECRETS, Target};
use super::reply::{Answer, Refusal};
use super::request::{Body, Place, normal_path};
use super::vault::{Kept, id, stamp};
use super::{Infisical, Turn};
use crate::turn::HttpCall;

/// How far imports of imports are followed.
const DEPTH: u8 = 8;

/// A secret that shows in another folder than its own.
pub(super) struct Imported<'a> {
    pub(super) place: Place,
    pub(super) key: &'a str,
    pub(super) kept: &'a Kept,
}

impl Infisical {
    /// `POST /api/v2/secret-imports`.
    pub(super) fn create_import(
        &mut self,
        turn: &Turn<'_>,
        (call, caller): (&HttpCall, &str),
    ) -> Result<Answer, Refusal> {
        let body = Body::read(call)?;
        body.need(&["projectId", "environment"])?;
        let place = body.place("path");
        let from = body.get("import").cloned().unwrap_or_default();
        let source = Place {
            project: place.project.clone(),
            environment: from["environment"].as_str().unwrap_or_default().to_owned(),
            path: normal_path(from["path"].as_str().unwrap_or("/")),
        };
        let (project, member) = self.project(&place.project, caller)?;
        let target = Target { environment: &place.environment, path: &place.path, key: None };
        if !member.may(IMPORTS, "create", &target) {
            return Err(Refusal::denied("create", IMPORTS, member.details(IMPORTS, "create")));
        }
        let Some(there) = project.environments.get(&source.environment) else {
            return Err(Refusal::not_found(format!(
                "Imported environment with slug '{}' in project with ID '{}' not found",
                source.environment, place.project
            )));
        };
        let environment = json!({"name": there.name, "slug": source.environment, "id": there.id});
        let folder = self.folder_mut(&place).ok_or_else(|| {
            Refusal::not_found(format!(
                "Folder with path '{}' in environment with slug '{}' not found",
                place.path, place.environment
            ))
        })?;
        let own = (source.environment.clone(), source.path.clone());
        if folder.imports.contains(&own) {
            return Err(Refusal::bad_request("Secret import already exist"));
        }
        folder.imports.push(own);
        let number = folder.imports.len();
        Ok(Answer::changed(json!({
            "message": "Successfully created secret import",
            "secretImport": {
                "id": id(&["import", &folder.id, &number.to_string()]),
                "version": 1,
                "importPath": source.path,
                "position": number,
                "createdAt": stamp(turn.now),
                "updatedAt": stamp(turn.now),
                "folderId": folder.id,
                "isReplication": false,
                "isReplicationSuccess": null,
                "replicationStatus": null,
                "lastReplicated": null,
                "isReserved": false,
                "importEnv": environment,
            },
        })))
    }

    /// What a folder imports, one list for each import; of a key that several have, the last import's counts.
    pub(super) fn imports(&self, place: &Place, caller: &str) -> Vec<(Place, Vec<Imported<'_>>)> {
        let Some(folder) = self.folder(place) else { return Vec::new() };
        let source = |(environment, path): &(String, String)| Place {
            project: place.project.clone(),
            environment: environment.clone(),
            path: path.clone(),
        };
        let all = folder.imports.iter().map(source);
        all.map(|source| {
            let found = self.readable(&source, caller, DEPTH);
            (source, found)
        })
        .collect()
    }

    /// The secret of this name that a folder imports.
    pub(super) fn imported(&self, place: &Place, caller: &str, key: &str) -> Option<Imported<'_>> {
        let all = self.imports(place, caller).into_iter().rev();
        all.flat_map(|(_, found)| found).find(|imported| imported.key == key)
    }

    /// Everything that shows in a folder and that the caller may read: its own, and what it imports itself.
    fn readable(&self, place: &Place, caller: &str, depth: u8) -> Vec<Imported<'_>> {
        let Ok((_, member)) = self.project(&place.project, caller) else { return Vec::new() };
        let Some(folder) = self.folder(place) else { return Vec::new() };
        let may = |key: &str| {
            let target =
                Target { environment: &place.environment, path: &place.path, key: Some(key) };
            member.may(SECRETS, DESCRIBE, &target) && member.may(SECRETS, READ_VALUE, &target)
        };
        let own = folder.secrets.iter().filter(|(key, _)| may(key));
        let mut found: Vec<Imported<'_>> =
            own.map(|(key, kept)| Imported { place: place.clone(), key, kept }).collect();
        if depth > 0 {
            for (environment, path) in folder.imports.iter().rev() {
                let source = Place {
                    project: place.project.clone(),
                    environment: environment.clone(),
                    path: path.clone(),
                };
                for imported in self.readable(&source, caller, depth - 1) {
                    if !found.iter().any(|there| there.key == imported.key) {
                        found.push(imported);
                    }
                }
            }
        }
        found
    }

    /// The imports of a folder as a list shows them.
    pub(super) fn imports_shown(
        &self,
        place: &Place,
        caller: &str,
        value: impl Fn(&Place, &Kept) -> String,
    ) -> Value {
        let all = self.imports(place, caller).into_iter().map(|(source, found)| {
            let folder = self.folder(&source).map(|folder| folder.id.clone());
            let secrets: Vec<Value> = found
                .iter()
                .map(|imported| {
                    let Kept { id, version, comment, .. } = imported.kept;
                    let value = value(&imported.place, imported.kept);
                    json!({
                        "id": id, "_id": id, "workspace": "", "environment": imported.place.environment,
                        "version": version, "type": "shared", "secretKey": imported.key,
                        "secretValueHidden": value == super::shown::HIDDEN, "secretValue": value,
                        "secretComment": comment, "skipMultilineEncoding": imported.kept.multiline, "isRotatedSecret": false,
                        "rotationId": null, "secretPath": place.path,
                        "secretMetadata": super::shown::notes(imported.kept),
                    })
                })
                .collect();
            json!({
                "secretPath": source.path, "environment": source.environment, "folderId": folder,
                "secrets": secrets,
            })
        });
        all.collect()
    }
}
