//! `engine/proof`: the cluster can read the castle's secrets, proven by one that came through with a value.
//!
//! It is a step of its own, because others may use the store meanwhile: each of them proves its own secret.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Pace, Step};
use castle_kubernetes::judge::judge;
use castle_kubernetes::{Object, ObjectId, Place};
use castle_model::{Change, Class, Failure, Observed, Spec, Verb, Verdict};
use castle_platforms::cluster::Cluster;
use serde_json::{Value, json};

use super::store::{VERSION, wanted};
use super::{NAMESPACE, STORE};
use crate::objects::{Probe, marked};
use crate::trial::apply_everywhere;

pub(super) const PROBE: Probe = Probe {
    api_version: VERSION,
    kind: "ExternalSecret",
    namespace: NAMESPACE,
    of: "store",
    proves: "a secret came through",
};

/// The step.
pub(crate) struct Proof(pub(crate) Arc<Cluster>);

/// What its gate proves.
pub(super) const PROVES: &str = "one secret has come through the store with a value";

#[async_trait]
impl Step for Proof {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let client = self.0.client(cx)?;
        let mark = self.0.mark(cx)?;
        let store = client.survey(&mark, &wanted(&self.0, cx, &mark)?).await?;
        if store.is_absent() {
            return Ok(Observed::Absent);
        }
        if !PROBE.is_proven(&client, &mark).await? {
            return Ok(Observed::wrong("no secret has come through the store yet"));
        }
        if !store.is_complete() {
            return Ok(Observed::wrong("the store changes, and is proven anew"));
        }
        Ok(match PROBE.leftover(&client).await? {
            Some(left) => Observed::wrong(left),
            None => Observed::right(proof()),
        })
    }

    async fn act(&self, cx: &Context, verb: Verb) -> Result<Acted, Failure> {
        let client = self.0.client(cx)?;
        let mark = self.0.mark(cx)?;
        let Some(key) = probed_key(&self.0.spec) else {
            return Err(Failure::bug("prove the secret store", "there is no key to fetch"));
        };
        let removed = PROBE.remove(&client).await?;
        if PROBE.is_proven(&client, &mark).await? {
            return Ok(Acted::of(if removed { Change::Updated } else { Change::Unchanged }));
        }
        // What an earlier try has fetched is not fetched again for an hour, and may be what was mended since.
        if removed {
            client.delete(&target()).await?;
        }
        let probe = marked(&mark, vec![probe(key)])?;
        apply_everywhere(cx, &self.0, &mark, &probe).await?;
        let created = verb == Verb::Create;
        Ok(Acted::of(if created { Change::Created } else { Change::Updated }))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let client = self.0.client(cx)?;
        let mark = self.0.mark(cx)?;
        if !PROBE.is_proven(&client, &mark).await? {
            let id = PROBE.id();
            let places = vec![Place::within(VERSION, "ExternalSecret", NAMESPACE)];
            self.0
                .settled(cx, "a secret to come through", places, |there| match there.get(&id) {
                    Some(probe) => judge(probe),
                    None => Verdict::Waiting(format!("{id} is not there yet")),
                })
                .await?;
            let (client, target) = (&client, &target());
            cx.wait(Pace::GATE, "the probed secret to have a value", || async move {
                Ok(has_value(client.get(target).await?.as_ref(), "value"))
            })
            .await?;
        }
        PROBE.passed(&client, &mark).await?;
        Ok(proof())
    }
}

fn proof() -> String {
    format!("one secret came through {STORE} with a value")
}

/// The key that is fetched to prove the way: one that the cluster is to have anyway. The credentials of the platform
/// stay outside of the cluster, under whatever name they are required.
pub(super) fn probed_key(spec: &Spec) -> Option<&str> {
    let gitops = spec.gitops.token.iter().filter(|_| spec.gitops.enabled).map(|token| &token.0);
    let platforms = |key: &String| spec.platform.secrets().any(|secret| secret.0 == *key);
    gitops.chain(&spec.secrets.require).find(|key| !platforms(key)).map(String::as_str)
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

/// A Secret that is synced but empty has fooled people before.
pub(crate) fn has_value(secret: Option<&Object>, key: &str) -> Verdict<()> {
    let Some(secret) = secret else {
        return Verdict::waiting("the Secret is not there yet");
    };
    match secret.text(&format!("/data/{key}")) {
        Some(value) if !value.is_empty() => Verdict::Ready(()),
        _ => Verdict::Failed(
            Failure::new(
                Class::Invalid,
                "read a secret through the secret store",
                format!("{} came through without a value", secret.id()),
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
