//! `engine/store`: the cluster can read the castle's secrets, proven by one that came through with a value.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use castle_engine::{Acted, Context, Pace, Step};
use castle_kubernetes::judge::judge;
use castle_kubernetes::{Mark, Object, ObjectId, Place};
use castle_model::spec::InfisicalSpec;
use castle_model::{Change, Class, Failure, Observed, Spec, Verb, Verdict};
use castle_platforms::cluster::{Cluster, Objects, observed};
use castle_platforms::handed::IDENTITY;
use serde_json::{Value, json};

use super::{NAMESPACE, STORE};
use crate::manifest::lacking;
use crate::objects::{Probe, marked};
use crate::trial::apply_everywhere;

pub(super) const VERSION: &str = "external-secrets.io/v1";
const IDENTITY_SECRET: &str = "infisical-identity";
const PROBE: Probe = Probe {
    api_version: VERSION,
    kind: "ExternalSecret",
    namespace: NAMESPACE,
    of: "store",
    proves: "a secret came through",
};

/// The step.
pub(crate) struct SecretStore(pub(crate) Arc<Cluster>);

impl SecretStore {
    /// The identity and the store.
    fn wanted(&self, cx: &Context, mark: &Mark) -> Result<Vec<Object>, Failure> {
        let identity = cx.outputs().get(&IDENTITY)?;
        let encoded = |text: &str| STANDARD.encode(text);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": IDENTITY_SECRET, "namespace": NAMESPACE},
            "data": {
                "clientId": encoded(identity.client_id.expose()),
                "clientSecret": encoded(identity.client_secret.expose()),
            },
        });
        let Some(infisical) = self.0.spec.secrets.infisical() else {
            return Err(Failure::bug("make the secret store", "there is no Infisical"));
        };
        marked(mark, vec![secret, store(infisical)])
    }

    /// Whether a secret has come through, or there is none that may.
    async fn is_proven(&self, cx: &Context, mark: &Mark) -> Result<bool, Failure> {
        match probed_key(&self.0.spec) {
            None => Ok(true),
            Some(_) => PROBE.is_proven(&self.0.client(cx)?, mark).await,
        }
    }
}

#[async_trait]
impl Step for SecretStore {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let client = self.0.client(cx)?;
        let mark = self.0.mark(cx)?;
        let survey = client.survey(&mark, &self.wanted(cx, &mark)?).await?;
        if let Some(observed) = lacking(&survey) {
            return Ok(observed);
        }
        if !self.is_proven(cx, &mark).await? {
            return Ok(Observed::wrong("no secret has come through it yet"));
        }
        if let Some(left) = PROBE.leftover(&client).await? {
            return Ok(Observed::wrong(left));
        }
        let store = survey.same.iter().find(|object| object.kind() == "ClusterSecretStore");
        Ok(store.map_or(Observed::Absent, |store| observed(judge(store))))
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let client = self.0.client(cx)?;
        let mark = self.0.mark(cx)?;
        let wanted = self.wanted(cx, &mark)?;
        let stands = client.survey(&mark, &wanted).await?.is_complete();
        let proven = self.is_proven(cx, &mark).await?;
        let Some(key) = probed_key(&self.0.spec) else {
            cx.notice(
                "no secret is fetched to prove the store: neither a Git token nor `require` names one",
            );
            PROBE.remove(&client).await?;
            let trial = apply_everywhere(cx, &self.0, &mark, &wanted).await?;
            return Ok(Acted::of(trial.change));
        };
        if stands && proven {
            let removed = PROBE.remove(&client).await?;
            return Ok(Acted::of(if removed { Change::Updated } else { Change::Unchanged }));
        }
        if proven {
            PROBE.doubt(&client, &mark).await?;
        }
        let trial = apply_everywhere(cx, &self.0, &mark, &wanted).await?;
        // What an earlier try has fetched is not fetched again for an hour, and may be what was mended since.
        if PROBE.remove(&client).await? {
            client.delete(&target()).await?;
        }
        let probe = marked(&mark, vec![probe(key)])?;
        apply_everywhere(cx, &self.0, &mark, &probe).await?;
        Ok(Acted::of(trial.change))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let client = self.0.client(cx)?;
        let mark = self.0.mark(cx)?;
        let proven = self.is_proven(cx, &mark).await?;
        let store = ObjectId::cluster(VERSION, "ClusterSecretStore", STORE);
        let mut ids = vec![store];
        let mut places = vec![Place::everywhere(VERSION, "ClusterSecretStore")];
        if !proven {
            ids.push(PROBE.id());
            places.push(Place::within(VERSION, "ExternalSecret", NAMESPACE));
        }
        let what = if proven { "the secret store to be ready" } else { "a secret to come through" };
        self.0.settled(cx, what, places, |there| synced(&ids, there)).await?;
        if probed_key(&self.0.spec).is_none() {
            PROBE.remove(&client).await?;
            return Ok(format!(
                "ClusterSecretStore {STORE} is Ready; no secret was fetched through it"
            ));
        }
        if !proven {
            let (client, target) = (&client, &target());
            cx.wait(Pace::GATE, "the probed secret to have a value", || async move {
                Ok(has_value(client.get(target).await?.as_ref()))
            })
            .await?;
        }
        PROBE.passed(&client, &mark).await?;
        Ok(format!("ClusterSecretStore {STORE} is Ready and one secret came through with a value"))
    }
}

/// The key that is fetched to prove the way: one that the cluster is to have anyway. The credentials of the platform
/// stay outside of the cluster, under whatever name they are required.
fn probed_key(spec: &Spec) -> Option<&str> {
    let gitops = spec.gitops.token.iter().filter(|_| spec.gitops.enabled).map(|token| &token.0);
    let platforms = |key: &String| spec.platform.secrets().any(|secret| secret.0 == *key);
    gitops.chain(&spec.secrets.require).find(|key| !platforms(key)).map(String::as_str)
}

/// The store as External Secrets wants it.
fn store(secrets: &InfisicalSpec) -> Value {
    let reference =
        |key: &str| json!({"name": IDENTITY_SECRET, "namespace": NAMESPACE, "key": key});
    json!({
        "apiVersion": VERSION, "kind": "ClusterSecretStore", "metadata": {"name": STORE},
        "spec": {"provider": {"infisical": {
            "hostAPI": secrets.host,
            "auth": {"universalAuthCredentials": {
                "clientId": reference("clientId"), "clientSecret": reference("clientSecret"),
            }},
            "secretsScope": {
                "projectSlug": secrets.project, "environmentSlug": secrets.environment, "secretsPath": secrets.path,
            },
        }}},
    })
}

/// A secret that is fetched once to prove the way, and removed again.
fn probe(key: &str) -> Value {
    json!({
        "apiVersion": VERSION, "kind": "ExternalSecret", "metadata": {"name": Probe::NAME, "namespace": NAMESPACE},
        "spec": {
            "refreshInterval": "1h",
            "secretStoreRef": {"name": STORE, "kind": "ClusterSecretStore"},
            "target": {"name": Probe::NAME, "creationPolicy": "Owner"},
            "data": [{"secretKey": "value", "remoteRef": {"key": key}}],
        },
    })
}

/// What the probe is fetched into.
fn target() -> ObjectId {
    ObjectId::namespaced("v1", "Secret", NAMESPACE, Probe::NAME)
}

/// Whether each of these is there and ready.
fn synced(ids: &[ObjectId], there: &Objects) -> Verdict {
    for id in ids {
        match there.get(id).map(judge) {
            None => return Verdict::Waiting(format!("{id} is not there yet")),
            Some(Verdict::Ready(_)) => {}
            Some(other) => return other,
        }
    }
    Verdict::Ready("synced".to_owned())
}

/// A Secret that is synced but empty has fooled people before.
fn has_value(secret: Option<&Object>) -> Verdict<()> {
    let Some(secret) = secret else {
        return Verdict::waiting(format!("Secret {NAMESPACE}/{} is not there yet", Probe::NAME));
    };
    match secret.text("/data/value") {
        Some(value) if !value.is_empty() => Verdict::Ready(()),
        _ => Verdict::Failed(
            Failure::new(
                Class::Invalid,
                "prove the secret store",
                "the secret came through without a value",
            )
            .hint("look at the key in Infisical: it is there but empty"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use castle_model::spec::SecretRef;

    use super::*;

    #[test]
    fn the_probed_key_is_one_that_the_cluster_is_to_have_and_never_the_platforms() {
        let mut spec = castle_config::example();
        spec.gitops.token = Some(SecretRef("GIT".into()));
        spec.secrets.require = vec!["PROXMOX_TOKEN_ID".into(), "FIRST".into(), "SECOND".into()];
        assert_eq!(probed_key(&spec), Some("GIT"));
        spec.gitops.enabled = false;
        assert_eq!(probed_key(&spec), Some("FIRST"));
        spec.secrets.require.truncate(1);
        assert_eq!(probed_key(&spec), None);
        spec.gitops.enabled = true;
        spec.gitops.token = Some(SecretRef("PROXMOX_TOKEN_SECRET".into()));
        assert_eq!(probed_key(&spec), None);
    }
}
