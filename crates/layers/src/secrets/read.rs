//! `secrets/read`: every key that the castle needs is there and usable; all that are not are named at once.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Context, Step};
use castle_infisical::Credentials;
use castle_model::{Failure, Observed};
use castle_platforms::escrow::{BUNDLE_KEY, ESCROW};
use castle_platforms::handed::{IDENTITY, KEPT, SECRETS, SecretValues};

use super::Vault;
use super::gather::Gathered;

/// The step.
pub(super) struct Read(pub(super) Arc<Vault>);

impl Read {
    /// Who External Secrets is to Infisical: the reader that the castle file names, else castle itself.
    fn reader(&self, gathered: &Gathered) -> Result<Option<Credentials>, Failure> {
        let secrets = &self.0.spec.secrets;
        let Some(reader) = secrets.infisical().and_then(|infisical| infisical.reader.as_ref())
        else {
            return Ok(self.0.sources()?.identity.clone());
        };
        let value = |key: &str| gathered.values.get(key).cloned();
        let both = value(&reader.id.0).zip(value(&reader.secret.0));
        Ok(both.map(|(client_id, client_secret)| Credentials { client_id, client_secret }))
    }
}

/// What its gate proves.
pub(super) const PROVES: &str = "every required key is read from its source";

#[async_trait]
impl Step for Read {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let sources = self.0.sources()?;
        cx.outputs().put(&ESCROW, sources.escrow.clone());
        let gathered = sources.gather(&self.0.spec).await?;
        // What is there is handed on all the same: the way down needs the platform's keys and no other.
        cx.outputs().put(&SECRETS, SecretValues(gathered.values.clone()));
        if let Some(reader) = self.reader(&gathered)? {
            cx.outputs().put(&IDENTITY, reader);
        }
        if let Some(kept) = sources.escrow.0.kept().await?.remove(BUNDLE_KEY) {
            cx.outputs().put(&KEPT, kept);
        }
        if let Some(failure) = gathered.failure() {
            return Err(failure);
        }
        for notice in &gathered.notices {
            cx.notice(notice);
        }
        Ok(Observed::right(format!("{} keys from {}", gathered.values.len(), self.0.words())))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        Ok(format!("{} keys are there", cx.outputs().get(&SECRETS)?.0.len()))
    }
}
