//! A folder of Infisical as a secret source, and as the place where the castle's own secrets are kept.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use castle_infisical::{
    Credentials, Found, Infisical, InfisicalError, Missing, Place, Reason, stored_as,
};
use castle_model::spec::InfisicalSpec;
use castle_model::{CastleName, Class, Failure, Incarnation, Secret, Spec};
use castle_platforms::escrow::Keeper;
use castle_wire::World;
use futures::future::join_all;

use super::source::{Source, Values};

/// A folder, and one client that stays logged in.
pub(crate) struct Folder {
    castle: CastleName,
    spec: InfisicalSpec,
    client: Infisical,
    project: OnceLock<String>,
    /// What was listed last; whatever is written makes it void. Nothing is fetched twice in a run.
    listed: Mutex<Option<Arc<Found>>>,
}

impl Folder {
    pub(crate) fn new(
        spec: &Spec,
        infisical: &InfisicalSpec,
        world: &World,
        credentials: &Credentials,
    ) -> Result<Self, Failure> {
        let (host, trust) = (&infisical.host, &infisical.trust);
        let client = Infisical::with_trust(world, host, trust, credentials.clone())
            .map_err(|error| error.failure(format!("speak to {}", infisical.host)))?;
        Ok(Self {
            castle: spec.name.clone(),
            spec: infisical.clone(),
            client,
            project: OnceLock::new(),
            listed: Mutex::default(),
        })
    }

    /// The folder; the project's id is asked for once.
    async fn folder(&self) -> Result<Place, Failure> {
        let project = if let Some(project) = self.project.get() {
            project.clone()
        } else {
            let found = self.client.project(&self.spec.project).await;
            let found = found.map_err(|error| self.failure("find the project in", &error))?;
            self.project.get_or_init(|| found).clone()
        };
        let (environment, path) = (self.spec.environment.clone(), self.spec.path.clone());
        Ok(Place { project, environment, path })
    }

    fn remember(&self, found: Option<Arc<Found>>) {
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// Everything in the folder, as listed last.
    async fn found(&self) -> Result<Arc<Found>, Failure> {
        let known = self.listed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(found) => Ok(found),
            None => self.list().await,
        }
    }

    async fn list(&self) -> Result<Arc<Found>, Failure> {
        let found = match self.client.list(&self.folder().await?).await {
            // A folder that is not there has nothing in it; the first thing that is kept makes it.
            Err(error) if error.is_missing() => Found::default(),
            found => found.map_err(|error| self.failure("read the secrets from", &error))?,
        };
        let found = Arc::new(found);
        self.remember(Some(found.clone()));
        Ok(found)
    }

    fn failure(&self, doing: &str, error: &InfisicalError) -> Failure {
        error.failure(format!("{doing} {}", self.spec.host)).evidence(Source::place(self))
    }
}

fn own(found: &Found) -> Values {
    found.own.iter().map(|(key, entry)| (key.clone(), entry.value.clone())).collect()
}

#[async_trait]
impl Source for Folder {
    fn place(&self) -> String {
        self.spec.to_string()
    }

    async fn read(&self, _wanted: &[String]) -> Result<Values, Failure> {
        let found = self.found().await?;
        let imported = found.imported.iter().map(|(key, entry)| (key.clone(), entry.value.clone()));
        let mut values: Values = imported.collect();
        values.extend(own(&found));
        Ok(values)
    }

    async fn doubt(&self, missing: &[String]) -> Option<String> {
        // A list does not show what the identity may not see; asked for by name, the server tells.
        let keys: Vec<&str> = missing.iter().map(String::as_str).collect();
        let explained = self.client.explain_missing(&self.folder().await.ok()?, &keys).await;
        let denied: Vec<String> = explained
            .iter()
            .flatten()
            .filter(|missing| matches!(missing.reason, Reason::Denied(_)))
            .map(Missing::to_string)
            .collect();
        if !denied.is_empty() {
            return Some(denied.join("; "));
        }
        let found = self.found().await.ok()?;
        (found.own.is_empty() && found.imported.is_empty()).then(|| {
            let place = Source::place(self);
            format!("{place} has nothing in it: the path or the environment may be wrong")
        })
    }
}

#[async_trait]
impl Keeper for Folder {
    fn place(&self) -> String {
        self.spec.to_string()
    }

    async fn kept(&self) -> Result<Values, Failure> {
        Ok(own(&*self.found().await?))
    }

    async fn kept_now(&self) -> Result<Values, Failure> {
        Ok(own(&*self.list().await?))
    }

    async fn write(&self, life: &Incarnation, entries: &[(&str, &Secret)]) -> Result<(), Failure> {
        let place = self.folder().await?;
        let metadata = BTreeMap::from([
            ("castle".to_owned(), self.castle.to_string()),
            ("incarnation".to_owned(), life.to_string()),
        ]);
        let secrets: Vec<_> = entries.iter().map(|(key, text)| (*key, *text, &metadata)).collect();
        let failed = |error: &InfisicalError| {
            let failure = self.failure("keep secrets in", error);
            if failure.class != Class::Denied {
                return failure;
            }
            let cure = failure.hint.as_deref().unwrap_or("give the machine identity that right");
            let cure = format!(
                "{cure}; or, if it is to read only, keep them in a file: escrow {{ file = \"{}.escrow.enc.yaml\" }}",
                self.castle
            );
            failure.hint(cure)
        };
        self.remember(None);
        match self.client.upsert(&place, &secrets).await {
            Err(error) if error.is_missing() => {
                self.client.create_folder(&place).await.map_err(|error| failed(&error))?;
                self.client.upsert(&place, &secrets).await.map_err(|error| failed(&error))
            }
            outcome => outcome.map_err(|error| failed(&error)),
        }
    }

    async fn remove(&self, keys: &[&str]) -> Result<(), Failure> {
        let place = self.folder().await?;
        self.remember(None);
        // All are asked for even if one is refused, so that as little as can be is left.
        let removed = join_all(keys.iter().map(|key| self.client.remove(&place, key))).await;
        let refused = removed.into_iter().find_map(Result::err);
        refused.map_or(Ok(()), |error| Err(self.failure("remove secrets from", &error)))
    }

    fn as_kept(&self, text: &str) -> String {
        stored_as(text)
    }
}
