//! `gitops/token`: the repository's credentials are in the cluster, where Flux will look for them.
//!
//! It is a step of its own, because it waits for the secret store, and not for Flux to run.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use castle_engine::{Acted, Context, Pace, Step};
use castle_kubernetes::judge::judge;
use castle_kubernetes::{Kubernetes, Mark, Object, ObjectId, Place};
use castle_model::spec::SecretRef;
use castle_model::{Failure, Observed, Verb, Verdict};
use castle_platforms::cluster::{Cluster, observed};
use castle_platforms::handed::SECRETS;
use serde_json::{Value, json};

use super::{NAMESPACE, through_engine};
use crate::engine::STORE;
use crate::engine::proof::has_value;
use crate::manifest::lacking;
use crate::objects::{apply_tried, marked};

/// The version of ExternalSecret.
const STORED: &str = "external-secrets.io/v1";

/// The step.
pub(super) struct Token(pub(super) Arc<Cluster>);

impl Token {
    fn wanted(&self, cx: &Context) -> Result<(Mark, Vec<Object>), Failure> {
        let mark = self.0.mark(cx)?;
        let Some(token) = &self.0.spec.gitops.token else {
            return Err(Failure::bug("place the repository's token", "there is none"));
        };
        let objects = marked(&mark, vec![self.credentials(cx, token)?])?;
        Ok((mark, objects))
    }

    /// The repository's credentials: through the secret store where there is one, else placed directly.
    fn credentials(&self, cx: &Context, token: &SecretRef) -> Result<Value, Failure> {
        let metadata = json!({"name": NAMESPACE, "namespace": NAMESPACE});
        if through_engine(&self.0.spec) {
            return Ok(json!({
                "apiVersion": STORED, "kind": "ExternalSecret", "metadata": metadata,
                "spec": {
                    "refreshInterval": "1h",
                    "secretStoreRef": {"name": STORE, "kind": "ClusterSecretStore"},
                    "target": {
                        "name": NAMESPACE, "creationPolicy": "Owner",
                        "template": {"data": {"username": "git", "password": "{{ .token }}"}},
                    },
                    "data": [{"secretKey": "token", "remoteRef": {"key": token.0}}],
                },
            }));
        }
        let secrets = cx.outputs().get(&SECRETS)?;
        Ok(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata,
            "data": {
                "username": STANDARD.encode("git"),
                "password": STANDARD.encode(secrets.get(token)?.expose().trim()),
            },
        }))
    }

    /// Our own ExternalSecret of another time, while the castle file places the token directly.
    async fn other_way(&self, client: &Kubernetes, mark: &Mark) -> Result<Option<Object>, Failure> {
        if through_engine(&self.0.spec) { Ok(None) } else { way_left(client, mark).await }
    }

    /// What is said of a token that is there.
    fn proof(&self) -> String {
        if through_engine(&self.0.spec) {
            format!("Secret {NAMESPACE}/{NAMESPACE} came through {STORE}, with a value")
        } else {
            format!("Secret {NAMESPACE}/{NAMESPACE} is in place")
        }
    }
}

/// What its gate proves.
pub(super) const PROVES: &str = "the repository's token is in the cluster";

#[async_trait]
impl Step for Token {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let client = self.0.client(cx)?;
        let (mark, wanted) = self.wanted(cx)?;
        if self.other_way(&client, &mark).await?.is_some() {
            return Ok(Observed::wrong(
                "the token comes through the secret store, and is to be placed directly",
            ));
        }
        let survey = client.survey(&mark, &wanted).await?;
        if let Some(observed) = lacking(&survey) {
            return Ok(observed);
        }
        if !through_engine(&self.0.spec) {
            return Ok(Observed::right(self.proof()));
        }
        Ok(match survey.same.first().map(judge) {
            None => Observed::Absent,
            Some(Verdict::Ready(_)) => {
                match has_value(client.get(&secret()).await?.as_ref(), "password") {
                    Verdict::Ready(()) => Observed::right(self.proof()),
                    Verdict::Waiting(why) => Observed::wrong(why),
                    Verdict::Failed(failure) => Observed::wrong(failure.why),
                }
            }
            Some(other) => observed(other),
        })
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let (mark, wanted) = self.wanted(cx)?;
        let client = self.0.client(cx)?;
        if let Some(way) = self.other_way(&client, &mark).await? {
            leave_way(cx, &client, &way).await?;
        }
        // What came through without a value is not fetched again for an hour, and may have been mended since.
        let there = client.get(&secret()).await?;
        if through_engine(&self.0.spec)
            && there.is_some()
            && matches!(has_value(there.as_ref(), "password"), Verdict::Failed(_))
            && let Some(way) = way_left(&client, &mark).await?
        {
            leave_way(cx, &client, &way).await?;
        }
        apply_tried(cx, &client, &mark, &wanted).await.map(Acted::of)
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        if through_engine(&self.0.spec) {
            let id = way();
            let places = vec![Place::within(STORED, "ExternalSecret", NAMESPACE)];
            self.0
                .settled(cx, "the repository's token to come through", places, |there| match there
                    .get(&id)
                {
                    Some(way) => judge(way),
                    None => Verdict::Waiting(format!("{id} is not there yet")),
                })
                .await?;
            let client = &self.0.client(cx)?;
            cx.wait(Pace::GATE, "the repository's token to have a value", || async move {
                Ok(has_value(client.get(&secret()).await?.as_ref(), "password"))
            })
            .await?;
        }
        Ok(self.proof())
    }
}

fn way() -> ObjectId {
    ObjectId::namespaced(STORED, "ExternalSecret", NAMESPACE, NAMESPACE)
}

fn secret() -> ObjectId {
    ObjectId::namespaced("v1", "Secret", NAMESPACE, NAMESPACE)
}

/// An ExternalSecret of ours that brings the token.
pub(super) async fn way_left(client: &Kubernetes, mark: &Mark) -> Result<Option<Object>, Failure> {
    Ok(client.get(&way()).await?.filter(|there| mark.is_on(there)))
}

/// Removes it with the Secret that it has made: that one belongs to it, and would go with it at any later time.
pub(super) async fn leave_way(
    cx: &Context,
    client: &Kubernetes,
    way: &Object,
) -> Result<(), Failure> {
    client.delete(&way.id()).await?;
    let secret = &secret();
    cx.wait(Pace::GATE, "the token of the secret store to be gone", || async move {
        if client.get(&way.id()).await?.is_some() {
            return Ok(Verdict::Waiting(format!("{} is still there", way.id())));
        }
        let made = |there: &Object| {
            let owners = there.entries("/metadata/ownerReferences").iter();
            owners
                .filter_map(|owner| owner["uid"].as_str())
                .any(|uid| Some(uid) == way.text("/metadata/uid"))
        };
        Ok(match client.get(secret).await?.filter(made) {
            Some(_) => Verdict::Waiting(format!("{secret} is still there")),
            None => Verdict::Ready(()),
        })
    })
    .await
}
