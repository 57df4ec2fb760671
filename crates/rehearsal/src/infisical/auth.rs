//! Logins with their lock-out, and the tokens they give.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::identity::{Identity, Login};
use super::reply::{Answer, Refusal};
use super::request::Body;
use super::{Infisical, Turn};
use crate::turn::HttpCall;

/// How many wrong secrets lock an identity.
const LOCK_AFTER: u32 = 3;
/// How long it stays locked, in milliseconds.
const LOCKED_FOR: u64 = 300_000;
/// How long a wrong secret is remembered, in milliseconds.
const REMEMBERED_FOR: u64 = 30_000;
/// How long a token that is over is remembered as one, in milliseconds.
const FORGOTTEN_AFTER: u64 = 2_592_000_000;

/// A token that was handed out. It is found by its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Access {
    identity: String,
    born: u64,
    expires: u64,
    revoked: bool,
    uses: u64,
    /// 0: without limit.
    uses_limit: u64,
}

/// What is wrong with a login.
enum Wrong {
    Unknown,
    Locked,
    Secret,
    Expired(usize),
    Spent(usize),
}

impl Wrong {
    fn refusal(&self) -> Refusal {
        Refusal::unauthorized(match self {
            Self::Unknown | Self::Secret => "Invalid credentials",
            Self::Locked => {
                "This identity auth method is temporarily locked, please try again later"
            }
            Self::Expired(_) => "Access denied due to expired client secret",
            Self::Spent(_) => "Access denied due to client secret usage limit reached",
        })
    }
}

impl Login {
    /// Which of the client secrets this is, if it is good now.
    fn judge(&self, secret: &str, now: u64) -> Result<usize, Wrong> {
        if now < self.locked_until {
            return Err(Wrong::Locked);
        }
        let hash = hashed(secret);
        let found = self.secrets.iter().position(|kept| !kept.revoked && kept.hash == hash);
        let at = found.ok_or(Wrong::Secret)?;
        let kept = &self.secrets[at];
        if kept.life > 0 && now >= kept.made + kept.life * 1000 {
            return Err(Wrong::Expired(at));
        }
        if kept.uses_limit > 0 && kept.uses >= kept.uses_limit {
            return Err(Wrong::Spent(at));
        }
        Ok(at)
    }

    /// Remembers a wrong secret.
    fn note_failure(&mut self, now: u64) {
        if now.saturating_sub(self.failed) > REMEMBERED_FOR {
            self.failures = 0;
        }
        self.failures += 1;
        self.failed = now;
        if self.failures >= LOCK_AFTER {
            self.failures = 0;
            self.locked_until = now + LOCKED_FOR;
        }
    }
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
        if let Some(ended) = self.troubles.ended {
            return Err(ended.login());
        }
        let found = self.identities.iter_mut().find(|(_, kept)| has_client_id(kept, client_id));
        let Some((identity, Identity { login: Some(login), .. })) = found else {
            return Err(Wrong::Unknown.refusal());
        };
        match login.judge(secret, turn.now) {
            Ok(at) => {
                if let Some(slug) = body.get("organizationSlug").and_then(Value::as_str) {
                    let message = format!("Sub organization with name {slug} not found");
                    return Err(Refusal::not_found(message));
                }
                login.failures = 0;
                login.secrets[at].uses += 1;
                let life = (login.token_life, login.token_longest, login.token_uses);
                let identity = identity.clone();
                Ok(self.hand_out(turn, &identity, turn.now, life))
            }
            Err(wrong) => {
                match wrong {
                    Wrong::Secret => login.note_failure(turn.now),
                    // Told once; from then on it is as good as unknown.
                    Wrong::Expired(at) | Wrong::Spent(at) => login.secrets[at].revoked = true,
                    Wrong::Unknown | Wrong::Locked => return Err(wrong.refusal()),
                }
                Err(wrong.refusal().changed())
            }
        }
    }

    /// `POST /api/v1/auth/token/renew`.
    pub(super) fn renew(
        &mut self,
        turn: &mut Turn<'_>,
        call: &HttpCall,
    ) -> Result<Answer, Refusal> {
        let body = Body::read(call)?;
        body.need(&["accessToken"])?;
        let access = self.access(body.text("accessToken"), turn.now)?.clone();
        let login = self.identities.get(&access.identity).and_then(|kept| kept.login.as_ref());
        let Some(login) = login else {
            return Err(Refusal::bad_request("This token cannot be renewed"));
        };
        let life = (login.token_life, login.token_longest, login.token_uses);
        Ok(self.hand_out(turn, &access.identity, access.born, life))
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

    /// Who sent a call, by the token in its header: the identity's id.
    pub(super) fn caller(&mut self, call: &HttpCall, now: u64) -> Result<String, Refusal> {
        let token = call
            .header("authorization")
            .and_then(|value| value.strip_prefix("Bearer "))
            .ok_or_else(|| Refusal::unauthorized("Token missing"))?;
        let access = self.access(token, now)?;
        let identity = access.identity.clone();
        if access.uses_limit > 0 {
            if access.uses >= access.uses_limit {
                return Err(Refusal::unauthorized(
                    "Failed to authorize: token usage limit reached",
                ));
            }
            self.touched += 1;
            if let Some(access) = self.tokens.get_mut(&hashed(token)) {
                access.uses += 1;
            }
        }
        Ok(identity)
    }

    /// Whose client id and secret these are, for those who log in elsewhere: judged as a login, and not counted.
    pub(super) fn known(&self, client_id: &str, secret: &str, now: u64) -> Result<String, Refusal> {
        if let Some(ended) = self.troubles.ended {
            return Err(ended.login());
        }
        let found = self.identities.iter().find(|(_, kept)| has_client_id(kept, client_id));
        let Some((identity, Identity { login: Some(login), .. })) = found else {
            return Err(Wrong::Unknown.refusal());
        };
        login.judge(secret, now).map_err(|wrong| wrong.refusal())?;
        Ok(identity.clone())
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
        if let Some(ended) = self.troubles.ended {
            return Err(ended.token());
        }
        if access.revoked {
            return Err(Refusal::unauthorized("Failed to authorize: token has been revoked"));
        }
        if !self.identities.contains_key(&access.identity) {
            return Err(Refusal::unauthorized(
                "Failed to authorize: identity tokens have been revoked",
            ));
        }
        if now >= access.expires {
            return Err(Refusal::token("Your token has expired. Please re-authenticate."));
        }
        Ok(access)
    }

    fn hand_out(
        &mut self,
        turn: &mut Turn<'_>,
        identity: &str,
        born: u64,
        (life, longest, uses): (u64, u64, u64),
    ) -> Answer {
        let now = turn.now;
        let end = (now + life * 1000).min(born + longest * 1000);
        let token = self.token_for(turn, identity, (born, end), uses);
        Answer::changed(json!({
            "accessToken": token,
            "expiresIn": end.saturating_sub(now) / 1000,
            "accessTokenMaxTTL": longest,
            "tokenType": "Bearer",
        }))
    }

    /// A new token of an identity, from its birth to its end.
    pub(super) fn token_for(
        &mut self,
        turn: &mut Turn<'_>,
        identity: &str,
        (born, expires): (u64, u64),
        uses_limit: u64,
    ) -> String {
        // Those that are over are forgotten some time later: a long world does not grow by its logins.
        let now = turn.now;
        self.tokens.retain(|_, access| now < access.expires.saturating_add(FORGOTTEN_AFTER));
        let mut bytes = [0; 32];
        turn.dice.fill(&mut bytes);
        // Shaped like the real one: three parts of letters and digits.
        let token = format!("eyJhbGciOiJIUzI1NiJ9.{}.rehearsal", hex::encode(bytes));
        let identity = identity.to_owned();
        let access = Access { identity, born, expires, revoked: false, uses: 0, uses_limit };
        self.tokens.insert(hashed(&token), access);
        token
    }
}

fn has_client_id(identity: &Identity, client_id: &str) -> bool {
    identity.login.as_ref().is_some_and(|login| login.client_id == client_id)
}

/// A secret as it is kept.
pub(super) fn hashed(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}
