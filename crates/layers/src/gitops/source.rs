//! `gitops/source`: Flux has the tree's variables, and has fetched the head of the branch.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Pace, Step};
use castle_kubernetes::judge::judge;
use castle_kubernetes::{Kubernetes, Mark, Object, ObjectId, Place};
use castle_model::spec::GitopsSpec;
use castle_model::{Failure, Observed, Verb, Verdict};
use castle_platforms::cluster::{Cluster, observed};
use castle_platforms::handed::SECRETS;
use serde_json::{Value, json};

use super::NAMESPACE;
use super::note::{Note, specification, tell_drift};
use super::revision::SOURCES;
use super::token::{leave_way, way_left};
use crate::manifest::lacking;
use crate::objects::{apply_tried, marked};

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

    /// Our own ExternalSecret of another time, while the castle file knows of no token.
    async fn token_left(
        &self,
        client: &Kubernetes,
        mark: &Mark,
    ) -> Result<Option<Object>, Failure> {
        match self.0.spec.gitops.token {
            Some(_) => Ok(None),
            None => way_left(client, mark).await,
        }
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

/// What its gate proves.
pub(super) const PROVES: &str = "Flux has fetched the head of the branch";

#[async_trait]
impl Step for Source {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let client = self.0.client(cx)?;
        let (mark, wanted, handed) = self.wanted(cx).await?;
        if let Some(left) = self.token_left(&client, &mark).await? {
            return Ok(Observed::wrong(format!("{} is not wanted any more", left.id())));
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
        if let Some(left) = self.token_left(&client, &mark).await? {
            leave_way(cx, &client, &left).await?;
        }
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
