//! `engine/store`: the cluster can read the castle's secrets, proven by one that came through with a value.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use castle_engine::{Acted, Context, Pace, Step};
use castle_kubernetes::judge::judge;
use castle_kubernetes::{Mark, Mode, Object, ObjectId, Place};
use castle_model::{Class, Failure, Observed, Spec, Verb, Verdict};
use castle_platforms::cluster::{Cluster, Objects};
use castle_platforms::handed::IDENTITY;
use serde_json::{Value, json};

use super::{NAMESPACE, STORE};
use crate::manifest::lacking;
use crate::objects::{apply_tried, marked, proof};

const VERSION: &str = "external-secrets.io/v1";
const IDENTITY_SECRET: &str = "infisical-identity";
const PROBE: &str = "castle-probe";

/// The step.
pub(super) struct SecretStore(pub(super) Arc<Cluster>);

impl SecretStore {
    fn mark(&self, cx: &Context) -> Result<Mark, Failure> {
        self.0.mark(cx, &"engine".parse().map_err(|_| Failure::bug("name the layer", "engine"))?)
    }

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
        marked(mark, vec![secret, store(&self.0.spec)])
    }

    async fn proven(&self, cx: &Context, mark: &Mark) -> Result<bool, Failure> {
        let note = marked(mark, vec![proof(NAMESPACE, "store", "a secret came through")])?;
        Ok(self.0.client(cx)?.survey(mark, &note).await?.is_complete())
    }
}

#[async_trait]
impl Step for SecretStore {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let client = self.0.client(cx)?;
        let mark = self.mark(cx)?;
        let survey = client.survey(&mark, &self.wanted(cx, &mark)?).await?;
        if let Some(observed) = lacking(&survey) {
            return Ok(observed);
        }
        if !self.proven(cx, &mark).await? {
            return Ok(Observed::wrong("no secret has come through it yet"));
        }
        let store = survey.same.iter().find(|object| object.kind() == "ClusterSecretStore");
        Ok(match store.map(judge) {
            Some(Verdict::Ready(words)) => Observed::right(words),
            Some(Verdict::Waiting(why)) => Observed::wrong(why),
            Some(Verdict::Failed(failure)) => Observed::wrong(failure.to_string()),
            None => Observed::Absent,
        })
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let client = self.0.client(cx)?;
        let mark = self.mark(cx)?;
        let wanted = self.wanted(cx, &mark)?;
        let change = apply_tried(cx, &client, &mark, &wanted).await?;
        let probe = marked(&mark, vec![probe(&self.0.spec)])?;
        apply_tried(cx, &client, &mark, &probe).await?;
        Ok(Acted::of(change))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let client = self.0.client(cx)?;
        let places = vec![
            Place::everywhere(VERSION, "ClusterSecretStore"),
            Place::within(VERSION, "ExternalSecret", NAMESPACE),
        ];
        self.0.settled(cx, "a secret to come through", places, synced).await?;
        let target = ObjectId::namespaced("v1", "Secret", NAMESPACE, PROBE);
        let probed = &client;
        cx.wait(Pace::GATE, "the probed secret to have a value", || {
            let target = target.clone();
            async move { Ok(has_value(probed.get(&target).await?.as_ref())) }
        })
        .await?;
        client.delete(&ObjectId::namespaced(VERSION, "ExternalSecret", NAMESPACE, PROBE)).await?;
        let mark = self.mark(cx)?;
        for note in marked(&mark, vec![proof(NAMESPACE, "store", "a secret came through")])? {
            client.apply(&note, Mode::Real).await?;
        }
        Ok(format!("ClusterSecretStore {STORE} is Ready and one secret came through with a value"))
    }
}

/// The store as External Secrets wants it.
fn store(spec: &Spec) -> Value {
    let secrets = &spec.secrets;
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

/// A secret that is fetched once to prove the way, and removed again. The token's name is the least secret of them.
fn probe(spec: &Spec) -> Value {
    json!({
        "apiVersion": VERSION, "kind": "ExternalSecret", "metadata": {"name": PROBE, "namespace": NAMESPACE},
        "spec": {
            "refreshInterval": "1h",
            "secretStoreRef": {"name": STORE, "kind": "ClusterSecretStore"},
            "target": {"name": PROBE, "creationPolicy": "Owner"},
            "data": [{"secretKey": "value", "remoteRef": {"key": spec.platform.token_id.0}}],
        },
    })
}

fn synced(there: &Objects) -> Verdict {
    let store = ObjectId::cluster(VERSION, "ClusterSecretStore", STORE);
    let probe = ObjectId::namespaced(VERSION, "ExternalSecret", NAMESPACE, PROBE);
    for id in [store, probe] {
        match there.get(&id).map(judge) {
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
        return Verdict::waiting(format!("Secret {NAMESPACE}/{PROBE} is not there yet"));
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
