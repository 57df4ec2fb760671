//! Being logged in: one token, fetched when it is first needed, fetched again once when it has expired.

use castle_model::Secret;
use serde::Deserialize;

use crate::client::Refusal;

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
    pub(crate) token: Option<Secret>,
    /// A refusal is final: asking again would lock the identity.
    pub(crate) refused: Option<Refusal>,
}

/// The answer to a login.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Login {
    pub(crate) access_token: String,
}
