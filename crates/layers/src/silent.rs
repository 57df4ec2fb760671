//! Nodes that are not Ready are named where a step in the cluster fails: what should have worked may have been on one.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Step};
use castle_kubernetes::{Object, Place};
use castle_model::{Failure, Observed, Verb};
use castle_platforms::cluster::{Cluster, Objects, few};
use tokio::time::timeout;

/// How long the look at the nodes may take: the step has no time left, and its own failure must not be lost.
const QUICK: Duration = Duration::from_millis(500);

/// A step in the cluster.
pub(crate) struct InCluster {
    pub(crate) step: Arc<dyn Step>,
    pub(crate) cluster: Arc<Cluster>,
}

impl InCluster {
    /// The failure, with the nodes that are the likely cause of it.
    async fn explained(&self, cx: &Context, failure: Failure) -> Failure {
        let nodes = [Place::everywhere("v1", "Node")];
        match timeout(QUICK, self.cluster.look(cx, &nodes)).await {
            Ok(Ok(there)) => blamed(failure, &there),
            // Who can not be asked about nodes is not to blame for what was found before.
            Ok(Err(_)) | Err(_) => failure,
        }
    }
}

fn blamed(failure: Failure, nodes: &Objects) -> Failure {
    let silent: Vec<&str> =
        nodes.values().filter(|node| !is_ready(node)).map(Object::name).collect();
    let are = match silent.len() {
        0 => return failure,
        1 => "is",
        _ => "are",
    };
    let likely = format!("{} {are} NotReady, which is the likely cause", few(&silent));
    let hint = match &failure.hint {
        Some(hint) => format!("{likely}; only if it is not: {hint}"),
        None => likely,
    };
    failure.hint(hint)
}

fn is_ready(node: &Object) -> bool {
    let conditions = node.at("/status/conditions").and_then(|all| all.as_array());
    conditions.is_some_and(|all| all.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"))
}

#[async_trait]
impl Step for InCluster {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        self.step.observe(cx).await
    }

    async fn act(&self, cx: &Context, verb: Verb) -> Result<Acted, Failure> {
        match self.step.act(cx, verb).await {
            Err(failure) => Err(self.explained(cx, failure).await),
            acted => acted,
        }
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        match self.step.gate(cx).await {
            Err(failure) => Err(self.explained(cx, failure).await),
            proof => proof,
        }
    }

    async fn leftover(&self, cx: &Context) -> Result<Option<String>, Failure> {
        self.step.leftover(cx).await
    }

    async fn undo(&self, cx: &Context) -> Result<(), Failure> {
        self.step.undo(cx).await
    }
}
