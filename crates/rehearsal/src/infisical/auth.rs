//! Machine identities: universal-auth logins with their lock-out, and the tokens they get.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::reply::{Answer, Refusal};
use super::request::Body;
use super::{Infisical, Turn};
use crate::turn::HttpCall;

/// How long a token lives, and how far it can be renewed, in seconds.
const TOKEN_LIFE: u64 = 2_592_000;
/// How many wrong secrets lock an identity.
const LOCK_AFTER: u32 = 3;
/// How long it stays locked, in milliseconds.
const LOCKED_FOR: u64 = 300_000;
/// How long a wrong secret is remembered, in milliseconds.
const REMEMBERED_FOR: u64 = 30_000;

/// A machine identity. Only the hash of its secret is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    secret: String,
    /// Wrong secrets in a row, and when the last one came.
    failures: u32,
    failed: u64,
    locked_until: u64,
}

impl Identity {
    /// An identity with a secret.
    pub(super) fn new(secret: &str) -> Self {
        Self { secret: hashed(secret), failures: 0, failed: 0, locked_until: 0 }
    }
}

/// A token that was handed out. It is found by its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Access {
    client_id: String,
    born: u64,
    expires: u64,
    revoked: bool,
}

impl Infisical {
    /// `POST /api/v1/auth/universal-auth/login`.
    pub(super) fn login(
        &mut self,
        turn: &mut Turn<'_>,
        call: &HttpCall,
    ) -> Result<Answer, Refusal> {
        let body = Body::read(call)?;
        body.need(&["clientId", "clientSecret"])?;
        let (client_id, secret) = (body.text("clientId"), body.text("clientSecret"));
        let invalid = || Refusal::unauthorized("Invalid credentials");
        let identity = self.identities.get_mut(client_id).ok_or_else(invalid)?;
        if turn.now < identity.locked_until {
            return Err(Refusal::unauthorized(
                "This identity auth method is temporarily locked, please try again later",
            ));
        }
        if identity.secret != hashed(secret) {
            if turn.now.saturating_sub(identity.failed) > REMEMBERED_FOR {
                identity.failures = 0;
            }
            identity.failures += 1;
            identity.failed = turn.now;
            if identity.failures >= LOCK_AFTER {
                identity.failures = 0;
                identity.locked_until = turn.now + LOCKED_FOR;
            }
            return Err(invalid().changed());
        }
        if let Some(slug) = body.get("organizationSlug").and_then(Value::as_str) {
            let message = format!("Sub organization with name {slug} not found");
            return Err(Refusal::not_found(message));
        }
        identity.failures = 0;
        let client_id = client_id.to_owned();
        Ok(self.hand_out(turn, client_id, turn.now))
    }

    /// `POST /api/v1/auth/token/renew`.
    pub(super) fn renew(
        &mut self,
        turn: &mut Turn<'_>,
        call: &HttpCall,
    ) -> Result<Answer, Refusal> {
        let body = Body::read(call)?;
        body.need(&["accessToken"])?;
        let access = self.access(body.text("accessToken"), turn.now)?;
        let (client_id, born) = (access.client_id.clone(), access.born);
        Ok(self.hand_out(turn, client_id, born))
    }

    /// `POST /api/v1/auth/token/revoke`.
    pub(super) fn revoke(&mut self, turn: &Turn<'_>, call: &HttpCall) -> Result<Answer, Refusal> {
        let body = Body::read(call)?;
        body.need(&["accessToken"])?;
        let token = body.text("accessToken");
        self.access(token, turn.now)?;
        if let Some(access) = self.tokens.get_mut(&hashed(token)) {
            access.revoked = true;
        }
        Ok(Answer::changed(json!({"message": "Successfully revoked access token"})))
    }

    /// Who sent a call, by the token in its header.
    pub(super) fn caller(&self, call: &HttpCall, now: u64) -> Result<String, Refusal> {
        let token = call
            .header("authorization")
            .and_then(|value| value.strip_prefix("Bearer "))
            .ok_or_else(|| Refusal::unauthorized("Token missing"))?;
        Ok(self.access(token, now)?.client_id.clone())
    }

    /// Whether a client id and secret belong together, for those who log in elsewhere.
    pub(super) fn knows(&self, client_id: &str, secret: &str) -> bool {
        self.identities.get(client_id).is_some_and(|identity| identity.secret == hashed(secret))
    }

    fn access(&self, token: &str, now: u64) -> Result<&Access, Refusal> {
        if token.split('.').count() != 3 {
            return Err(Refusal::token(
                "The provided access token is malformed. Please use a valid token or generate a \
                 new one and try again.",
            ));
        }
        let access =
            self.tokens.get(&hashed(token)).ok_or_else(|| Refusal::token("invalid signature"))?;
        if access.revoked {
            return Err(Refusal::unauthorized("Failed to authorize: token has been revoked"));
        }
        if now >= access.expires {
            return Err(Refusal::token("Your token has expired. Please re-authenticate."));
        }
        Ok(access)
    }

    fn hand_out(&mut self, turn: &mut Turn<'_>, client_id: String, born: u64) -> Answer {
        // Those that are over are forgotten one life later: a long world does not grow by its logins.
        let now = turn.now;
        self.tokens.retain(|_, access| now < access.expires + TOKEN_LIFE * 1000);
        let mut bytes = [0; 32];
        turn.dice.fill(&mut bytes);
        // Shaped like the real one: three parts of letters and digits.
        let token = format!("eyJhbGciOiJIUzI1NiJ9.{}.rehearsal", hex::encode(bytes));
        let expires = born + TOKEN_LIFE * 1000;
        let left = expires.saturating_sub(now) / 1000;
        self.tokens.insert(hashed(&token), Access { client_id, born, expires, revoked: false });
        Answer::changed(json!({
            "accessToken": token,
            "expiresIn": left,
            "accessTokenMaxTTL": TOKEN_LIFE,
            "tokenType": "Bearer",
        }))
    }
}

fn hashed(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}
