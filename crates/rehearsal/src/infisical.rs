//! The emulated Infisical: identities, tokens, projects, folders and secrets as pure data behind the true API.
//!
//! A call goes `auth` (who) → `request` (where) → `secrets` or `folders`, on what `vault` keeps.

mod auth;
mod folders;
mod reply;
mod request;
mod secrets;
#[cfg(test)]
mod tests;
mod vault;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use castle_model::secret::REDACTED;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::auth::{Access, Identity};
use self::reply::{Answer, Refusal};
use self::request::{Place, decoded, normal_path};
pub use self::vault::Role;
use self::vault::{Project, outsider, stamp};
use crate::turn::{HttpCall, HttpReply, SecretQuery, Turn};

/// The first moment of every rehearsal, 2026-02-02T00:00:00Z, in milliseconds since 1970.
const BIRTH: u64 = 1_769_990_400_000;
/// The longest name that a route takes.
const LONGEST_NAME: usize = 100;

/// What a castle file says about its Infisical, with the secrets that were invented for it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfisicalBirth {
    /// The server, such as `https://eu.infisical.com`.
    pub host: String,
    /// The project's slug.
    pub project: String,
    /// The environment's slug.
    pub environment: String,
    /// The folder.
    pub path: String,
    /// Universal-auth client id.
    pub client_id: String,
    /// Universal-auth client secret.
    pub client_secret: String,
    /// Keys and values in the folder.
    pub secrets: BTreeMap<String, String>,
}

impl fmt::Debug for InfisicalBirth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InfisicalBirth")
            .field("host", &self.host)
            .field("project", &self.project)
            .field("environment", &self.environment)
            .field("path", &self.path)
            .field("client_id", &self.client_id)
            .field("client_secret", &REDACTED)
            .field("secrets", &self.secrets.keys())
            .finish()
    }
}

/// The server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Infisical {
    /// The names it is reached by.
    hosts: BTreeSet<String>,
    /// Machine identities by client id.
    identities: BTreeMap<String, Identity>,
    /// Tokens by their hash.
    tokens: BTreeMap<String, Access>,
    /// Projects by slug.
    projects: BTreeMap<String, Project>,
}

/// Whether a call that changed the world counts as a mutation. Logging in and out changes which tokens are
/// good, and a wrong secret is remembered: that is logged for the replay, and never counted.
#[must_use]
pub fn counts(call: &HttpCall) -> bool {
    call.method != "GET" && !call.path.starts_with("/api/v1/auth/")
}

impl Infisical {
    /// A server with one project and the secrets in it.
    #[must_use]
    pub fn new(birth: &InfisicalBirth) -> Self {
        let mut fresh = Self {
            hosts: BTreeSet::new(),
            identities: BTreeMap::new(),
            tokens: BTreeMap::new(),
            projects: BTreeMap::new(),
        };
        fresh.ensure(birth);
        fresh
    }

    /// Adds what a changed castle file names and the server does not have. What is there is not touched.
    pub fn ensure(&mut self, birth: &InfisicalBirth) {
        self.hosts.insert(host_name(&birth.host).to_owned());
        self.add_identity(&birth.client_id, &birth.client_secret);
        self.add_member(&birth.project, &birth.client_id, Role::Member);
        let Some(project) = self.projects.get_mut(&birth.project) else { return };
        let folder = project.environment(&birth.environment).folder(&normal_path(&birth.path), 0);
        for (key, value) in &birth.secrets {
            if !folder.secrets.contains_key(key) {
                folder.write(key, value, 0);
            }
        }
    }

    /// Adds a machine identity.
    pub fn add_identity(&mut self, client_id: &str, client_secret: &str) {
        self.identities.entry(client_id.to_owned()).or_insert_with(|| Identity::new(client_secret));
    }

    /// Gives an identity a role in a project, which is made if it is not there.
    pub fn add_member(&mut self, project: &str, client_id: &str, role: Role) {
        let project =
            self.projects.entry(project.to_owned()).or_insert_with(|| Project::new(project));
        project.members.insert(client_id.to_owned(), role);
    }

    /// Serves one call.
    pub fn call(&mut self, turn: &mut Turn<'_>, call: &HttpCall) -> HttpReply {
        match self.serve(turn, call) {
            Ok(answer) => answer.reply(),
            Err(refusal) => refusal.reply(call, turn.now),
        }
    }

    fn serve(&mut self, turn: &mut Turn<'_>, call: &HttpCall) -> Result<Answer, Refusal> {
        let no_route = || Refusal::no_route(&call.method, &call.path);
        let rest = call.path.strip_prefix("/api/").ok_or_else(no_route)?;
        let pieces: Vec<&str> = rest.split('/').collect();
        match (call.method.as_str(), pieces.as_slice()) {
            ("GET", ["status"]) => Ok(status(turn.now)),
            ("POST", ["v1", "auth", "universal-auth", "login"]) => self.login(turn, call),
            ("POST", ["v1", "auth", "token", "renew"]) => self.renew(turn, call),
            ("POST", ["v1", "auth", "token", "revoke"]) => self.revoke(turn, call),
            ("GET", ["v1", "projects", rest @ ..]) if rest.len() < 3 => {
                let caller = self.caller(call, turn.now)?;
                self.route_projects(&caller, rest).unwrap_or_else(|| Err(no_route()))
            }
            ("GET" | "POST", ["v2", "folders"]) => {
                let caller = self.caller(call, turn.now)?;
                if call.method == "GET" {
                    self.list_folders(call, &caller)
                } else {
                    self.create_folder(turn, (call, &caller))
                }
            }
            (_, ["v4", "secrets", name @ ..]) if name.len() < 2 => {
                let name = name.first().map(|name| decoded(name));
                if name.as_ref().is_some_and(|name| name.chars().count() > LONGEST_NAME) {
                    return Err(no_route());
                }
                self.route_secrets(turn, call, name.as_deref()).unwrap_or_else(|| Err(no_route()))
            }
            _ => Err(no_route()),
        }
    }

    fn route_projects(&self, caller: &str, rest: &[&str]) -> Option<Result<Answer, Refusal>> {
        match rest {
            [] => {
                let own = self.projects.iter().filter(|(_, p)| p.members.contains_key(caller));
                let listed: Vec<Value> = own.map(|(slug, project)| project.shown(slug)).collect();
                Some(Ok(Answer::read(json!({"projects": listed}))))
            }
            ["slug", slug] => Some(self.project_by_slug(caller, &decoded(slug))),
            [id] => Some(self.project(id, caller).map(|(project, _)| {
                let found = self.projects.iter().find(|(_, other)| other.id == project.id);
                let slug = found.map_or("", |(slug, _)| slug.as_str());
                Answer::read(json!({"project": project.shown(slug)}))
            })),
            _ => None,
        }
    }

    fn project_by_slug(&self, caller: &str, slug: &str) -> Result<Answer, Refusal> {
        let project = self
            .projects
            .get(slug)
            .ok_or_else(|| Refusal::not_found(format!("Project with slug '{slug}' not found")))?;
        if !project.members.contains_key(caller) {
            return Err(outsider(&project.id));
        }
        Ok(Answer::read(project.shown(slug)))
    }

    fn route_secrets(
        &mut self,
        turn: &mut Turn<'_>,
        call: &HttpCall,
        name: Option<&str>,
    ) -> Option<Result<Answer, Refusal>> {
        if !matches!(call.method.as_str(), "GET" | "POST" | "PATCH" | "DELETE") {
            return None;
        }
        let caller = match self.caller(call, turn.now) {
            Ok(caller) => caller,
            Err(refusal) => return Some(Err(refusal)),
        };
        Some(match (call.method.as_str(), name) {
            ("GET", None) => self.list_secrets(call, &caller),
            ("GET", Some(name)) => self.get_secret(call, &caller, name),
            ("POST" | "PATCH" | "DELETE", Some("batch")) => self.batch(turn, (call, &caller)),
            ("POST", Some(name)) => self.create_secret(turn, (call, &caller, name)),
            ("PATCH", Some(name)) => self.update_secret(turn, (call, &caller, name)),
            ("DELETE", Some(name)) => self.delete_secret((call, &caller, name)),
            _ => return None,
        })
    }

    /// One secret, as External Secrets reads it. The project is named by its slug or its id.
    ///
    /// # Errors
    /// The server's words.
    pub fn read(&self, query: &SecretQuery<'_>) -> Result<String, String> {
        let host = host_name(query.host);
        if !self.hosts.contains(host) {
            return Err(format!("dial tcp: lookup {host}: no such host"));
        }
        if !self.knows(query.client_id, query.client_secret) {
            return Err(Refusal::unauthorized("Invalid credentials").text());
        }
        let project = self.projects.get(query.project).map(|project| project.id.as_str());
        let place = Place {
            project: project.unwrap_or(query.project).to_owned(),
            environment: query.environment.to_owned(),
            path: normal_path(query.path),
        };
        let (_, role) =
            self.project(&place.project, query.client_id).map_err(|refusal| refusal.text())?;
        if role == Role::NoAccess {
            return Err(Refusal::denied("readValue", "secrets").text());
        }
        let folder = self.folder(&place).ok_or_else(|| {
            format!(
                "Folder with path '{}' in environment with slug '{}' not found",
                place.path, place.environment
            )
        })?;
        let kept = folder.secrets.get(query.key);
        let kept = kept.ok_or_else(|| format!("Secret with name '{}' not found", query.key))?;
        Ok(self.expand(&place, &kept.value.0, 8))
    }

    /// Where every secret is, for the datacenter's own view: project, environment, folder and key, no values.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (project, kept) in &self.projects {
            for (environment, there) in &kept.environments {
                for (path, folder) in &there.folders {
                    let path = path.trim_end_matches('/');
                    let keys = folder.secrets.keys();
                    found.extend(keys.map(|key| format!("{project}/{environment}{path}/{key}")));
                }
            }
        }
        found
    }
}

fn status(now: u64) -> Answer {
    Answer::read(json!({
        "date": stamp(now),
        "message": "Ok",
        "emailConfigured": false,
        "inviteOnlySignup": false,
        "redisConfigured": true,
        "secretScanningConfigured": false,
        "auditLogStorageDisabled": false,
        "maxIdentityAccessTokenTTL": 7_776_000,
    }))
}

/// The name of a host in an address.
fn host_name(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split(['/', ':']).next().unwrap_or_default()
}
