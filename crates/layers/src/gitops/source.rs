//! `gitops/source`: Flux has the repository's credentials and variables, and has fetched the head of the branch.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use castle_engine::{Acted, Context, Pace, Step};
use castle_kubernetes::judge::judge;
use castle_kubernetes::{Kubernetes, Mark, Object, ObjectId, Place};
use castle_model::spec::{GitopsSpec, SecretRef};
use castle_model::{Failure, Observed, Verb, Verdict};
use castle_platforms::cluster::{Cluster, observed};
use castle_platforms::handed::SECRETS;
use serde_json::{Value, json};

use super::note::{Note, specification, tell_drift};
use super::revision::SOURCES;
use super::{NAMESPACE, through_engine};
use crate::engine::STORE;
use crate::manifest::lacking;
use crate::objects::{apply_tried, marked};

/// The version of ExternalSecret.
const STORED: &str = "external-secrets.io/v1";

/// The step.
pub(super) struct Source(pub(super) Arc<Cluster>);

impl Source {
    /// What is to be there; the GitRepository only where castle has a say: not since the handover, unless the castle file
    /// has changed since, or it is gone.
    async fn wanted(&self, cx: &Context) -> Result<(Mark, Vec<Object>, Option<Object>), Failure> {
        let mark = self.0.mark(cx)?;
        let gitops = &self.0.spec.gitops;
        let variables = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cluster-vars", "namespace": NAMESPACE},
            "data": gitops.vars,
        });
        let mut values = vec![variables];
        if let Some(token) = &gitops.token {
            values.push(self.credentials(cx, token)?);
        }
        let (client, value) = (self.0.client(cx)?, repository(gitops));
        let note = Note::read(&client, &mark).await?;
        let handed = match note.filter(|note| note.source == specification(&value)) {
            Some(_) => client.get(&id()).await?,
            None => None,
        };
        if handed.is_none() {
            values.push(value);
        }
        let objects = marked(&mark, values)?;
        Ok((mark, objects, handed))
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
    async fn way_left(&self, client: &Kubernetes, mark: &Mark) -> Result<Option<Object>, Failure> {
        if through_engine(&self.0.spec) {
            return Ok(None);
        }
        let way = ObjectId::namespaced(STORED, "ExternalSecret", NAMESPACE, NAMESPACE);
        Ok(client.get(&way).await?.filter(|there| mark.is_on(there)))
    }

    /// Removes it with the Secret that it has made: that one belongs to it, and would go with it at any later time.
    async fn leave_way(
        &self,
        cx: &Context,
        client: &Kubernetes,
        mark: &Mark,
    ) -> Result<(), Failure> {
        let Some(way) = self.way_left(client, mark).await? else { return Ok(()) };
        client.delete(&way.id()).await?;
        let (way, secret) = (&way, &ObjectId::namespaced("v1", "Secret", NAMESPACE, NAMESPACE));
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
        let Some(repository) = client.get(&id()).await? else {
            return Ok(Verdict::Waiting(format!("{} is not there yet", id())));
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

/// The repository as Flux is told of it.
pub(super) fn repository(gitops: &GitopsSpec) -> Value {
    let mut repository = json!({
        "apiVersion": SOURCES, "kind": "GitRepository",
        "metadata": {"name": NAMESPACE, "namespace": NAMESPACE},
        "spec": {"interval": "1m", "url": gitops.url, "ref": {"branch": gitops.branch}},
    });
    if gitops.token.is_some() {
        repository["spec"]["secretRef"] = json!({"name": NAMESPACE});
    }
    repository
}

fn id() -> ObjectId {
    ObjectId::namespaced(SOURCES, "GitRepository", NAMESPACE, NAMESPACE)
}

#[async_trait]
impl Step for Source {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let client = self.0.client(cx)?;
        let (mark, wanted, handed) = self.wanted(cx).await?;
        if self.way_left(&client, &mark).await?.is_some() {
            return Ok(Observed::wrong(
                "the token comes through the secret store, and is to be placed directly",
            ));
        }
        if let Some(observed) = lacking(&client.survey(&mark, &wanted).await?) {
            return Ok(observed);
        }
        let Some(there) = handed else {
            return Ok(observed(self.fetched(cx, &client).await?));
        };
        // Handed over: castle only observes, and a Git host that is away is no reason to stop.
        tell_drift(cx, &id(), &repository(&self.0.spec.gitops), &there);
        let revision = there.text("/status/artifact/revision").unwrap_or("nothing").to_owned();
        if let Verdict::Waiting(why) = judge(&there) {
            cx.notice(format!("Flux holds {revision}, and can not fetch more: {why}"));
        }
        Ok(Observed::right(format!("Flux holds {revision}")))
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let (mark, wanted, _) = self.wanted(cx).await?;
        // Asked before Flux is: a repository that does not answer or a token without rights is said in its own words.
        self.head(cx).await?;
        let client = self.0.client(cx)?;
        self.leave_way(cx, &client, &mark).await?;
        apply_tried(cx, &client, &mark, &wanted).await.map(Acted::of)
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let client = self.0.client(cx)?;
        let place = Place::within(SOURCES, "GitRepository", NAMESPACE);
        self.0
            .settled(cx, "Flux to fetch the repository", vec![place], |there| {
                match there.get(&id()) {
                    Some(object) => judge(object),
                    None => Verdict::Waiting(format!("{} is not there yet", id())),
                }
            })
            .await?;
        let fetch = &client;
        let what = "Flux to fetch the head of the branch";
        let revision = cx.wait(Pace::GATE, what, || self.fetched(cx, fetch)).await?;
        Ok(format!("fetched {revision}, which is the branch's head"))
    }
}
