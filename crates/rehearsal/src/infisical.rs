//! The emulated Infisical: identities, tokens, projects, folders and secrets as pure data behind the true API.
//!
//! A call goes `limit` (troubles) → `old` (yesterday's words) → `auth` (who) → `permission` (may they) → `secrets`,
//! `batch`, `folders`, `imports`, `project` or `identity`, on what `vault` keeps.

mod auth;
mod batch;
mod folders;
mod identity;
mod imports;
mod limit;
mod old;
mod permission;
mod project;
mod reply;
mod request;
mod secrets;
mod shown;
#[cfg(test)]
mod tests;
mod vault;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use castle_model::secret::REDACTED;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::auth::Access;
use self::identity::Identity;
pub use self::limit::InfisicalTrouble;
use self::limit::Troubles;
use self::permission::Member;
pub use self::permission::Role;
pub(crate) use self::reply::refusal;
use self::reply::{Answer, Refusal};
use self::request::{Place, decoded, normal_path};
use self::secrets::Wish;
use self::vault::{Project, id, stamp};
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
    /// Client id and client secret of an identity that only reads.
    pub reader: Option<(String, String)>,
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
            .field("reader", &self.reader.as_ref().map(|(id, _)| id))
            .field("secrets", &self.secrets.keys())
            .finish()
    }
}

/// The server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Infisical {
    /// The names it is reached by.
    hosts: BTreeSet<String>,
    /// Whose server it is; nobody's until it is set up.
    organization: String,
    /// Machine identities by id.
    identities: BTreeMap<String, Identity>,
    /// Tokens by their hash.
    tokens: BTreeMap<String, Access>,
    /// Projects by slug.
    projects: BTreeMap<String, Project>,
    /// What goes wrong.
    troubles: Troubles,
    /// How many things were made by calls: their ids come from it.
    made: u64,
    /// How often a call left a mark that its answer does not tell of, such as a token used up.
    touched: u64,
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
        let mut fresh = Self { organization: "rehearsal".to_owned(), ..Self::default() };
        fresh.ensure(birth);
        fresh
    }

    /// Adds what a changed castle file names and the server does not have. What is there is not touched.
    pub fn ensure(&mut self, birth: &InfisicalBirth) {
        self.hosts.insert(host_name(&birth.host).to_owned());
        self.add_identity(&birth.client_id, &birth.client_secret);
        self.add_member(&birth.project, &birth.client_id, Role::Member);
        if let Some((client_id, client_secret)) = &birth.reader {
            self.add_identity(client_id, client_secret);
            self.add_member(&birth.project, client_id, Role::Viewer);
        }
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
        let fresh = || Identity::with_secret(client_id, client_secret);
        self.identities.entry(identity_of(client_id)).or_insert_with(fresh);
    }

    /// Gives an identity a role in a project, which is made if it is not there.
    pub fn add_member(&mut self, project: &str, client_id: &str, role: Role) {
        let organization = self.organization_id();
        let fresh = || Project::new(project, &organization, 0);
        let project = self.projects.entry(project.to_owned()).or_insert_with(fresh);
        project.members.insert(identity_of(client_id), Member { role, rules: Vec::new() });
    }

    /// An id that nothing has yet: whoever uses it counts `made` up.
    fn fresh_id(&self, kind: &str) -> String {
        id(&[kind, &self.made.to_string()])
    }

    /// Serves one call.
    pub fn call(&mut self, turn: &mut Turn<'_>, call: &HttpCall) -> HttpReply {
        let (now, touched) = (turn.now, self.touched);
        let reply = self.call_in_trouble(now, call, |this| {
            let modern = match this.modern(call) {
                Some(Err(refusal)) => return refusal.reply(call, now),
                Some(Ok(modern)) => Some(modern),
                None => None,
            };
            match this.serve(turn, modern.as_ref().unwrap_or(call)) {
                Ok(answer) => answer.reply(call),
                Err(refusal) => refusal.reply(call, now),
            }
        });
        if self.touched == touched { reply } else { reply.changed() }
    }

    fn serve(&mut self, turn: &mut Turn<'_>, call: &HttpCall) -> Result<Answer, Refusal> {
        let no_route = || Refusal::no_route(&call.method, &call.path);
        let rest = call.path.strip_prefix("/api/").ok_or_else(no_route)?;
        let pieces: Vec<&str> = rest.split('/').collect();
        match (call.method.as_str(), pieces.as_slice()) {
            ("GET", ["status"]) => return Ok(status(turn.now)),
            ("POST", ["v1", "admin", "bootstrap"]) => return self.bootstrap(turn, call),
            ("POST", ["v1", "auth", "universal-auth", "login"]) => return self.login(turn, call),
            ("POST", ["v1", "auth", "token", "renew"]) => return self.renew(turn, call),
            ("POST", ["v1", "auth", "token", "revoke"]) => return self.revoke(turn, call),
            (_, ["v4", "secrets", name]) if decoded(name).chars().count() > LONGEST_NAME => {
                return Err(no_route());
            }
            (_, ["v1", "projects" | "identities" | "auth" | "secret-approvals", ..])
            | ("GET" | "POST", ["v2", "folders"])
            | ("POST", ["v2", "secret-imports" | "identity-project-additional-privilege"])
            | ("GET" | "POST" | "PATCH" | "DELETE", ["v4", "secrets"] | ["v4", "secrets", _]) => {}
            _ => return Err(no_route()),
        }
        let caller = self.caller(call, turn.now)?;
        let who = (call, caller.as_str());
        self.route(turn, who, &pieces).unwrap_or_else(|| Err(no_route()))
    }

    fn route(
        &mut self,
        turn: &mut Turn<'_>,
        (call, caller): (&HttpCall, &str),
        pieces: &[&str],
    ) -> Option<Result<Answer, Refusal>> {
        let who = (call, caller);
        Some(match (call.method.as_str(), pieces) {
            (_, ["v1", "projects", rest @ ..]) => return self.route_projects(turn, who, rest),
            ("POST", ["v1", "secret-approvals"]) => Err(Refusal::bad_request(
                "Failed to create secret approval policy due to plan restriction. Upgrade plan to \
                 create secret approval policy.",
            )),
            (_, ["v1", rest @ ..]) => return self.route_identities(turn, who, rest),
            ("GET", ["v2", "folders"]) => self.list_folders(call, caller),
            ("POST", ["v2", "folders"]) => self.create_folder(turn, who),
            ("POST", ["v2", "secret-imports"]) => self.create_import(turn, who),
            ("POST", ["v2", _]) => self.give_privilege(turn, who),
            ("GET", [_, _]) => self.list_secrets(call, caller),
            ("GET", [_, _, name]) => self.get_secret(call, caller, &decoded(name)),
            (_, [_, _, "batch"]) => self.batch(turn, who),
            ("POST", [_, _, name]) => self.create_secret(turn, (call, caller, &decoded(name))),
            ("PATCH", [_, _, name]) => self.update_secret(turn, (call, caller, &decoded(name))),
            ("DELETE", [_, _, name]) => self.delete_secret(turn, (call, caller, &decoded(name))),
            _ => return None,
        })
    }

    /// One secret, as External Secrets reads it: by a login and a call like anybody's. The project is named by its
    /// slug or its id.
    ///
    /// # Errors
    /// The server's words.
    pub fn read(&self, query: &SecretQuery<'_>) -> Result<String, String> {
        let host = host_name(query.host);
        if !self.hosts.contains(host) {
            return Err(format!("dial tcp: lookup {host}: no such host"));
        }
        let words = |refusal: Refusal| refusal.text();
        let caller = self.known(query.client_id, query.client_secret, query.at).map_err(words)?;
        let project = self.projects.get(query.project).map(|project| project.id.as_str());
        let place = Place {
            project: project.unwrap_or(query.project).to_owned(),
            environment: query.environment.to_owned(),
            path: normal_path(query.path),
        };
        let wish = Wish { view: true, expand: true, imports: true };
        let secret = self.secret((&place, query.key), &caller, wish, None).map_err(words)?;
        Ok(secret["secretValue"].as_str().unwrap_or_default().to_owned())
    }

    /// The id of a project, for those who speak to the server past our client.
    #[must_use]
    pub fn project_id(&self, slug: &str) -> Option<String> {
        self.projects.get(slug).map(|project| project.id.clone())
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

/// The id of the identity that the world gave this client id.
fn identity_of(client_id: &str) -> String {
    id(&["identity of", client_id])
}
