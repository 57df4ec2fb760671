//! `engine/store`: the store through which the cluster reads the castle's secrets is there, and ready.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use castle_engine::{Acted, Context, Step};
use castle_kubernetes::judge::judge;
use castle_kubernetes::{Mark, Object, ObjectId, Place};
use castle_model::spec::InfisicalSpec;
use castle_model::{Failure, Observed, Verb, Verdict};
use castle_platforms::cluster::{Cluster, observed};
use castle_platforms::handed::IDENTITY;
use serde_json::{Value, json};

use super::proof::{PROBE, probed_key};
use super::{NAMESPACE, STORE};
use crate::manifest::lacking;
use crate::objects::marked;
use crate::trial::apply_everywhere;

pub(super) const VERSION: &str = "external-secrets.io/v1";
const IDENTITY_SECRET: &str = "infisical-identity";

/// The step.
pub(crate) struct SecretStore(pub(crate) Arc<Cluster>);

/// The identity and the store.
pub(super) fn wanted(cluster: &Cluster, cx: &Context, mark: &Mark) -> Result<Vec<Object>, Failure> {
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
    let Some(infisical) = cluster.spec.secrets.infisical() else {
        return Err(Failure::bug("make the secret store", "there is no Infisical"));
    };
    marked(mark, vec![secret, store(infisical)])
}

/// What its gate proves.
pub(super) const PROVES: &str = "the secret store is Ready";

#[async_trait]
impl Step for SecretStore {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let mark = self.0.mark(cx)?;
        let survey = self.0.client(cx)?.survey(&mark, &wanted(&self.0, cx, &mark)?).await?;
        if let Some(observed) = lacking(&survey) {
            return Ok(observed);
        }
        let store = survey.same.iter().find(|object| object.kind() == "ClusterSecretStore");
        Ok(store.map_or(Observed::Absent, |store| observed(judge(store))))
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let mark = self.0.mark(cx)?;
        let client = self.0.client(cx)?;
        let wanted = wanted(&self.0, cx, &mark)?;
        if probed_key(&self.0.spec).is_none() {
            cx.notice(
                "no secret is fetched to prove the store: neither a Git token nor `require` names one",
            );
            PROBE.remove(&client).await?;
        } else if client.survey(&mark, &wanted).await?.lacking().next().is_some() {
            // What was proven is no longer what is there: that is said before anything changes.
            PROBE.doubt(&client, &mark).await?;
        }
        let trial = apply_everywhere(cx, &self.0, &mark, &wanted).await?;
        Ok(Acted::of(trial.change))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let store = ObjectId::cluster(VERSION, "ClusterSecretStore", STORE);
        let places = vec![Place::everywhere(VERSION, "ClusterSecretStore")];
        self.0
            .settled(cx, "the secret store to be ready", places, |there| match there.get(&store) {
                Some(store) => judge(store),
                None => Verdict::Waiting(format!("{store} is not there yet")),
            })
            .await?;
        Ok(format!("ClusterSecretStore {STORE} is Ready"))
    }
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
