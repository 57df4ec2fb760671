//! Being logged in: one token, fetched when it is first needed, fetched again before or when it has expired.

use std::collections::BTreeMap;

use castle_model::Secret;
use castle_model::time::Moment;
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{Again, Infisical};
use crate::error::{InfisicalError, Refusal};

/// How long three wrong client secrets lock an identity, in milliseconds.
const LOCKED_FOR: u64 = 300_000;

/// A machine identity's universal-auth credentials.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The client id.
    pub client_id: Secret,
    /// The client secret.
    pub client_secret: Secret,
}

/// What is known about the login.
#[derive(Debug, Default)]
pub(crate) struct Session {
    token: Option<Token>,
    /// A refusal is final: asking again would lock the identity.
    refused: Option<(Refusal, Option<Moment>)>,
    /// Ids of projects by slug: they never change.
    pub(crate) projects: BTreeMap<String, String>,
}

/// A token, and when it is time for another one.
#[derive(Debug)]
struct Token {
    value: Secret,
    stale: Moment,
}

/// The answer to a login.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Login {
    access_token: String,
    /// In seconds.
    #[serde(default)]
    expires_in: u64,
}

impl Infisical {
    /// Logs in, unless that is done.
    ///
    /// # Errors
    /// If the server does not answer or refuses; a refusal is remembered and never provoked again.
    pub async fn login(&self) -> Result<(), InfisicalError> {
        self.token().await.map(drop)
    }

    /// Logs out: the token that was used is worth nothing from then on. Without one there is nothing to do.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn log_out(&self) -> Result<(), InfisicalError> {
        let Some(token) = self.session.lock().await.token.take() else { return Ok(()) };
        let path = "/api/v1/auth/token/revoke";
        let body = json!({ "accessToken": token.value.expose() });
        let send = self.send(Method::POST, path, Some(&token.value), Some(&body));
        match self.judge::<Value>("POST revoke", &send.await?) {
            Err(error) if !error.is_stale_token() => Err(error),
            _ => Ok(()),
        }
    }

    pub(crate) async fn token(&self) -> Result<Secret, InfisicalError> {
        let mut session = self.session.lock().await;
        let fresh = |token: &&Token| self.clock.now() < token.stale;
        if let Some(token) = session.token.as_ref().filter(fresh) {
            return Ok(token.value.clone());
        }
        if let Some((refusal, until)) = &session.refused {
            return Err(self.login_refused(refusal.clone(), *until));
        }
        let path = "/api/v1/auth/universal-auth/login";
        let body = json!({
            "clientId": self.credentials.client_id.expose().trim(),
            "clientSecret": self.credentials.client_secret.expose().trim(),
        });
        let reply = self.insist((Method::POST, path, Some(&body)), None, Again::IfUnheard).await?;
        match self.judge::<Login>("POST login", &reply) {
            Ok(login) => {
                let value = Secret::new(login.access_token);
                // After four fifths of its life; a server that tells no life is believed for as long as it lasts.
                let life = match login.expires_in {
                    0 => u64::MAX,
                    seconds => seconds.saturating_mul(800),
                };
                let stale = Moment(self.clock.now().0.saturating_add(life));
                session.token = Some(Token { value: value.clone(), stale });
                Ok(value)
            }
            Err(InfisicalError::Answer { refusal, .. }) => {
                let locked = refusal.message.contains("temporarily locked");
                let until = locked.then(|| Moment(self.clock.now().0 + LOCKED_FOR));
                if refusal.status == 401 {
                    session.refused = Some((refusal.clone(), until));
                }
                Err(self.login_refused(refusal, until))
            }
            Err(error) => Err(error),
        }
    }

    /// Forgets a token that the server does not take any more, unless another one has come in the meantime.
    pub(crate) async fn drop_token(&self, token: &Secret) {
        let mut session = self.session.lock().await;
        if session.token.as_ref().is_some_and(|kept| kept.value == *token) {
            session.token = None;
        }
    }

    fn login_refused(&self, refusal: Refusal, until: Option<Moment>) -> InfisicalError {
        InfisicalError::Login { host: self.host().to_owned(), refusal, until }
    }
}
