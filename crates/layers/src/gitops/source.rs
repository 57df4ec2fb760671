//! `gitops/source`: Flux has the repository's credentials and variables, and has fetched the head of the branch.

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

use super::NAMESPACE;
use super::revision::SOURCES;
use crate::engine::{STORE, has_store};
use crate::manifest::lacking;
use crate::objects::{apply_tried, marked};

/// The step.
pub(super) struct Source(pub(super) Arc<Cluster>);

impl Source {
    fn wanted(&self, cx: &Context) -> Result<(Mark, Vec<Object>), Failure> {
        let mark = self.0.mark(cx)?;
        let gitops = &self.0.spec.gitops;
        let metadata = json!({"name": NAMESPACE, "namespace": NAMESPACE});
        let variables = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cluster-vars", "namespace": NAMESPACE},
            "data": gitops.vars,
        });
        let mut repository = json!({
            "apiVersion": SOURCES, "kind": "GitRepository", "metadata": metadata,
            "spec": {"interval": "1m", "url": gitops.url, "ref": {"branch": gitops.branch}},
        });
        let mut values = vec![variables];
        if let Some(token) = &gitops.token {
            values.push(self.credentials(cx, token)?);
            repository["spec"]["secretRef"] = json!({"name": NAMESPACE});
        }
        values.push(repository);
        let objects = marked(&mark, values)?;
        Ok((mark, objects))
    }

    /// The repository's credentials: through the secret store where there is one, else placed directly.
    fn credentials(&self, cx: &Context, token: &SecretRef) -> Result<Value, Failure> {
        let metadata = json!({"name": NAMESPACE, "namespace": NAMESPACE});
        if has_store(&self.0.spec) {
            return Ok(json!({
                "apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "metadata": metadata,
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

    /// The branch's head, as the repository itself says.
    async fn head(&self, cx: &Context) -> Result<String, Failure> {
        let gitops = &self.0.spec.gitops;
        let secrets = cx.outputs().get(&SECRETS)?;
        let token = match &gitops.token {
            Some(token) => Some(secrets.get(token)?),
            None => None,
        };
        let commit = castle_git::head(&self.0.world, &gitops.url, &gitops.branch, token)
            .await
            .map_err(|error| {
                error.failure(format!("ask {} for its branch {}", gitops.url, gitops.branch))
            })?;
        Ok(format!("{}@sha1:{commit}", gitops.branch))
    }

    /// Whether Flux has fetched the head; then the revision.
    async fn fetched(&self, cx: &Context, client: &Kubernetes) -> Result<Verdict, Failure> {
        let id = ObjectId::namespaced(SOURCES, "GitRepository", NAMESPACE, NAMESPACE);
        let Some(repository) = client.get(&id).await? else {
            return Ok(Verdict::Waiting(format!("{id} is not there yet")));
        };
        let there = match judge(&repository) {
            Verdict::Ready(_) => repository.text("/status/artifact/revision").unwrap_or_default(),
            other => return Ok(other),
        };
        let head = self.head(cx).await?;
        if there != head {
            return Ok(Verdict::Waiting(format!(
                "Flux has fetched {there}, the branch is at {head}"
            )));
        }
        Ok(Verdict::Ready(head))
    }
}

#[async_trait]
impl Step for Source {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let client = self.0.client(cx)?;
        let (mark, wanted) = self.wanted(cx)?;
        if let Some(observed) = lacking(&client.survey(&mark, &wanted).await?) {
            return Ok(observed);
        }
        Ok(observed(self.fetched(cx, &client).await?))
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let (mark, wanted) = self.wanted(cx)?;
        // Asked before Flux is: a repository that does not answer or a token without rights is said in its own words.
        self.head(cx).await?;
        apply_tried(cx, &self.0.client(cx)?, &mark, &wanted).await.map(Acted::of)
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let client = self.0.client(cx)?;
        let id = ObjectId::namespaced(SOURCES, "GitRepository", NAMESPACE, NAMESPACE);
        let place = Place::within(SOURCES, "GitRepository", NAMESPACE);
        self.0
            .settled(cx, "Flux to fetch the repository", vec![place], |there| {
                match there.get(&id) {
                    Some(object) => judge(object),
                    None => Verdict::Waiting(format!("{id} is not there yet")),
                }
            })
            .await?;
        let fetch = &client;
        let what = "Flux to fetch the head of the branch";
        let revision = cx.wait(Pace::GATE, what, || self.fetched(cx, fetch)).await?;
        Ok(format!("fetched {revision}, which is the branch's head"))
    }
}
