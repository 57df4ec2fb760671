//! Machine identities: how they are made, how they get their credentials, and how they go.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::auth::hashed;
use super::reply::{Answer, Refusal};
use super::request::Body;
use super::vault::{id, stamp};
use super::{Infisical, Turn};
use crate::turn::HttpCall;

/// How long a token lives unless told otherwise, and how far it can be renewed, in seconds.
const TOKEN_LIFE: u64 = 2_592_000;

/// A machine identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) name: String,
    pub(super) made: u64,
    /// Whether it runs the server.
    pub(super) admin: bool,
    pub(super) login: Option<Login>,
}

/// Universal auth of an identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Login {
    pub(super) id: String,
    pub(super) client_id: String,
    /// In seconds.
    pub(super) token_life: u64,
    pub(super) token_longest: u64,
    /// How often a token may be used; 0: without limit.
    pub(super) token_uses: u64,
    pub(super) made: u64,
    pub(super) secrets: Vec<ClientSecret>,
    /// Wrong secrets in a row, and when the last one came.
    pub(super) failures: u32,
    pub(super) failed: u64,
    pub(super) locked_until: u64,
}

/// A client secret. Only its hash is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClientSecret {
    pub(super) id: String,
    pub(super) hash: String,
    pub(super) made: u64,
    /// In seconds; 0: for ever.
    pub(super) life: u64,
    pub(super) uses: u64,
    /// 0: without limit.
    pub(super) uses_limit: u64,
    pub(super) revoked: bool,
}

impl ClientSecret {
    fn new(id: String, secret: &str, now: u64) -> Self {
        let hash = hashed(secret);
        Self { id, hash, made: now, life: 0, uses: 0, uses_limit: 0, revoked: false }
    }
}

impl Identity {
    /// An identity with one client secret that never ends.
    pub(super) fn with_secret(client_id: &str, client_secret: &str) -> Self {
        let mut login = Login::new(id(&["login", client_id]), client_id.to_owned(), 0);
        let secret = ClientSecret::new(id(&["client secret", client_id]), client_secret, 0);
        login.secrets.push(secret);
        Self { name: client_id.to_owned(), made: 0, admin: false, login: Some(login) }
    }

    fn shown(&self, id: &str, organization: &str) -> Value {
        json!({
            "id": id,
            "name": self.name,
            "authMethod": null,
            "createdAt": stamp(self.made),
            "updatedAt": stamp(self.made),
            "hasDeleteProtection": false,
            "orgId": organization,
            "projectId": null,
        })
    }
}

impl Login {
    fn new(id: String, client_id: String, now: u64) -> Self {
        Self {
            id,
            client_id,
            token_life: TOKEN_LIFE,
            token_longest: TOKEN_LIFE,
            token_uses: 0,
            made: now,
            secrets: Vec::new(),
            failures: 0,
            failed: 0,
            locked_until: 0,
        }
    }

    fn shown(&self, identity: &str) -> Value {
        let anywhere = json!([
            {"type": "ipv4", "prefix": 0, "ipAddress": "0.0.0.0"},
            {"type": "ipv6", "prefix": 0, "ipAddress": "::"},
        ]);
        json!({
            "id": self.id,
            "clientId": self.client_id,
            "accessTokenTTL": self.token_life,
            "accessTokenMaxTTL": self.token_longest,
            "accessTokenNumUsesLimit": self.token_uses,
            "clientSecretTrustedIps": anywhere,
            "accessTokenTrustedIps": anywhere,
            "createdAt": stamp(self.made),
            "updatedAt": stamp(self.made),
            "identityId": identity,
            "accessTokenPeriod": 0,
            "lockoutEnabled": true,
            "lockoutThreshold": 3,
            "lockoutDurationSeconds": 300,
            "lockoutCounterResetSeconds": 30,
        })
    }
}

impl Infisical {
    /// `POST /api/v1/admin/bootstrap`: the first call to a server that nobody has set up yet.
    pub(super) fn bootstrap(
        &mut self,
        turn: &mut Turn<'_>,
        call: &HttpCall,
    ) -> Result<Answer, Refusal> {
        let body = Body::read(call)?;
        body.need(&["email", "password", "organization"])?;
        if !self.organization.is_empty() {
            return Err(Refusal::bad_request("Instance has already been set up"));
        }
        body.text("organization").clone_into(&mut self.organization);
        let (email, user) = (body.text("email"), self.fresh_id("user"));
        let identity = self.fresh_id("identity");
        let name = "Instance Admin Identity";
        let kept = Identity { name: name.to_owned(), made: turn.now, admin: true, login: None };
        self.identities.insert(identity.clone(), kept);
        self.made += 1;
        let token = self.token_for(turn, &identity, (turn.now, u64::MAX / 2), 0);
        Ok(Answer::changed(json!({
            "message": "Successfully bootstrapped instance",
            "user": {
                "username": email, "firstName": "Admin", "lastName": "User", "email": email, "id": user,
                "superAdmin": true,
            },
            "organization": self.organization_shown(),
            "identity": {"id": identity, "name": name, "credentials": {"token": token}},
        })))
    }

    /// The organization as the API shows it.
    pub(super) fn organization_shown(&self) -> Value {
        let slug = format!("{}-{}", self.organization, &self.organization_id()[..4]);
        json!({"id": self.organization_id(), "name": self.organization, "slug": slug})
    }

    /// The organization's id.
    pub(super) fn organization_id(&self) -> String {
        id(&["organization", &self.organization])
    }

    /// Everything under `/api/v1/identities` and below `/api/v1/auth/universal-auth/identities`.
    pub(super) fn route_identities(
        &mut self,
        turn: &mut Turn<'_>,
        (call, caller): (&HttpCall, &str),
        rest: &[&str],
    ) -> Option<Result<Answer, Refusal>> {
        let found = match (call.method.as_str(), rest) {
            ("GET", ["identities", "details"]) => {
                let organization = self.organization_shown();
                return Some(Ok(Answer::read(
                    json!({"identityDetails": {"organization": organization}}),
                )));
            }
            ("POST", ["identities"]) => Self::create_identity,
            ("DELETE", ["identities", _]) => Self::delete_identity,
            ("POST", ["auth", "universal-auth", "identities", _]) => Self::attach_login,
            ("POST", ["auth", "universal-auth", "identities", _, "client-secrets"]) => {
                Self::create_client_secret
            }
            _ => return None,
        };
        let identity = match rest {
            ["identities", id] | ["auth", "universal-auth", "identities", id, ..] => *id,
            _ => "",
        };
        if !self.identities.get(caller).is_some_and(|identity| identity.admin) {
            let action = if call.method == "DELETE" { "delete" } else { "create" };
            return Some(Err(Refusal::denied(action, "identity", json!([]))));
        }
        Some(found(self, turn, call, identity))
    }

    fn create_identity(
        &mut self,
        turn: &mut Turn<'_>,
        call: &HttpCall,
        _: &str,
    ) -> Result<Answer, Refusal> {
        let body = Body::read(call)?;
        body.need(&["name", "organizationId"])?;
        let name = body.text("name").to_owned();
        let kept = Identity { name, made: turn.now, admin: false, login: None };
        let id = self.fresh_id("identity");
        let mut shown = kept.shown(&id, &self.organization_id());
        shown["authMethods"] = json!([]);
        shown["metadata"] = json!([]);
        self.identities.insert(id, kept);
        self.made += 1;
        Ok(Answer::changed(json!({"identity": shown})))
    }

    fn delete_identity(
        &mut self,
        _: &mut Turn<'_>,
        _: &HttpCall,
        identity: &str,
    ) -> Result<Answer, Refusal> {
        let gone = self.identities.remove(identity).ok_or_else(|| nobody(identity))?;
        for project in self.projects.values_mut() {
            project.members.remove(identity);
        }
        Ok(Answer::changed(json!({"identity": gone.shown(identity, &self.organization_id())})))
    }

    fn attach_login(
        &mut self,
        turn: &mut Turn<'_>,
        call: &HttpCall,
        identity: &str,
    ) -> Result<Answer, Refusal> {
        let body = Body::read(call)?;
        if body.get("clientSecretTrustedIps").or(body.get("accessTokenTrustedIps")).is_some() {
            return Err(Refusal::bad_request(
                "Failed to add IP access range to service token due to plan restriction. Upgrade \
                 plan to add IP access range.",
            ));
        }
        let (own, client_id) = (self.fresh_id("login"), self.fresh_id("client id"));
        let mut login = Login::new(own, client_id, turn.now);
        let number = |field: &str| body.get(field).and_then(Value::as_u64);
        login.token_life = number("accessTokenTTL").unwrap_or(login.token_life);
        login.token_longest = number("accessTokenMaxTTL").unwrap_or(login.token_longest);
        login.token_uses = number("accessTokenNumUsesLimit").unwrap_or(0);
        let kept = self.identities.get_mut(identity).ok_or_else(|| nobody(identity))?;
        if kept.login.is_some() {
            return Err(Refusal::bad_request(
                "Failed to add universal auth to already configured identity",
            ));
        }
        let shown = login.shown(identity);
        kept.login = Some(login);
        self.made += 1;
        Ok(Answer::changed(json!({"identityUniversalAuth": shown})))
    }

    fn create_client_secret(
        &mut self,
        turn: &mut Turn<'_>,
        call: &HttpCall,
        identity: &str,
    ) -> Result<Answer, Refusal> {
        let body = Body::read(call)?;
        let own = self.fresh_id("client secret");
        let kept = self.identities.get_mut(identity).and_then(|kept| kept.login.as_mut());
        let login = kept.ok_or_else(|| nobody(identity))?;
        let mut bytes = [0; 32];
        turn.dice.fill(&mut bytes);
        let value = hex::encode(bytes);
        let number = |field: &str| body.get(field).and_then(Value::as_u64).unwrap_or(0);
        let mut secret = ClientSecret::new(own, &value, turn.now);
        (secret.life, secret.uses_limit) = (number("ttl"), number("numUsesLimit"));
        let shown = json!({
            "id": secret.id,
            "createdAt": stamp(turn.now),
            "updatedAt": stamp(turn.now),
            "description": body.text("description"),
            "clientSecretPrefix": value[..4],
            "clientSecretNumUses": 0,
            "clientSecretNumUsesLimit": secret.uses_limit,
            "clientSecretTTL": secret.life,
            "identityUAId": login.id,
            "isClientSecretRevoked": false,
        });
        login.secrets.push(secret);
        self.made += 1;
        Ok(Answer::changed(json!({"clientSecret": value, "clientSecretData": shown})))
    }
}

fn nobody(identity: &str) -> Refusal {
    Refusal::not_found(format!("Failed to find identity with ID {identity}"))
}
