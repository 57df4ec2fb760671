//! Why a wanted key is not in a list: an identity that may not read a folder is shown an empty one.

use std::fmt;

use http::Method;
use serde_json::Value;

use crate::client::Infisical;
use crate::error::InfisicalError;
use crate::store::{LONGEST_IN_PATH, Place, asked, escaped, place_query};

/// A key that a list did not show, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The key.
    pub key: String,
    /// Why it was not shown.
    pub reason: Reason,
}

/// Why a list did not show a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It does not exist.
    Absent,
    /// The identity may not see it; with the server's words.
    Denied(String),
    /// It is there after all: somebody has just made it.
    There,
    /// Its name is too long to be asked for alone.
    Unasked,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, reason } = self;
        match reason {
            Reason::Absent => write!(f, "{key} does not exist"),
            Reason::Denied(words) => {
                write!(f, "{key} is not for this identity to see ({words})")
            }
            Reason::There => write!(f, "{key} is there by now"),
            Reason::Unasked => write!(f, "{key} is not listed"),
        }
    }
}

impl Infisical {
    /// Asks for each key that a list did not show: is it not there, or may the identity not see it?
    ///
    /// # Errors
    /// If the server does not answer, or the folder does not exist.
    pub async fn explain_missing(
        &self,
        place: &Place,
        keys: &[&str],
    ) -> Result<Vec<Missing>, InfisicalError> {
        let mut found = Vec::new();
        for key in keys {
            let reason = if key.chars().count() > LONGEST_IN_PATH {
                Reason::Unasked
            } else {
                let query = place_query(place, &[("includeImports", "true")]);
                let path = format!("/api/v4/secrets/{}?{query}", escaped(key));
                match self.call::<Value>(Method::GET, &path, None).await {
                    Ok(_) => Reason::There,
                    Err(InfisicalError::Answer { refusal, .. }) if refusal.status == 403 => {
                        Reason::Denied(refusal.message)
                    }
                    Err(error) if error.is_missing() && !asked(&error).contains("Folder with") => {
                        Reason::Absent
                    }
                    Err(error) => return Err(error),
                }
            };
            found.push(Missing { key: (*key).to_owned(), reason });
        }
        Ok(found)
    }
}
