//! Objects that are applied only after every API server has tried them out.
//!
//! Each control plane has an API server of its own, with its own way to a webhook: that one of them reaches it proves
//! nothing about the others, and nobody chooses which one the next request meets behind the VIP.

use castle_engine::{Context, Pace};
use castle_kubernetes::catalogue::is_webhook_race;
use castle_kubernetes::{KubeError, Mark, Mode, Object};
use castle_model::{Change, Failure, Verdict};
use castle_platforms::cluster::Cluster;

use crate::manifest::{change, refuse_foreign};

/// What became of a trial.
pub(crate) struct Trial {
    /// What was done to the objects.
    pub(crate) change: Change,
    /// The control planes whose API servers accepted them; none if all of them stood already.
    pub(crate) by: Vec<String>,
}

/// Applies what is missing or differs, after each API server has accepted a dry run of the very objects.
pub(crate) async fn apply_everywhere(
    cx: &Context,
    cluster: &Cluster,
    mark: &Mark,
    wanted: &[Object],
) -> Result<Trial, Failure> {
    let client = cluster.client(cx)?;
    let survey = client.survey(mark, wanted).await?;
    refuse_foreign(&survey)?;
    let stands = |object: &&Object| survey.same.iter().any(|same| same.id() == object.id());
    let lacking: Vec<&Object> = wanted.iter().filter(|object| !stands(object)).collect();
    let mut by = Vec::new();
    for (node, server) in cluster.api_servers(cx)?.iter().filter(|_| !lacking.is_empty()) {
        for object in lacking.iter().copied() {
            let what = format!("the API server of {node} to accept a dry run of {}", object.id());
            cx.wait(Pace::GATE, &what, || async move {
                match server.apply(object, Mode::DryRun).await {
                    Ok(_) => Ok(Verdict::Ready(())),
                    Err(error @ KubeError::NoSuchKind { .. }) => {
                        Ok(Verdict::Waiting(format!("{node}: {error}")))
                    }
                    Err(error) => {
                        let mut failure = error.failure();
                        failure.what = format!("{} through the API server of {node}", failure.what);
                        Err(failure)
                    }
                }
            })
            .await?;
        }
        by.push(node.to_string());
    }
    let client = &client;
    for object in lacking {
        let what = format!("{} to be accepted", object.id());
        cx.wait(Pace::GATE, &what, || async move {
            match client.apply(object, Mode::Real).await {
                Ok(_) => Ok(Verdict::Ready(())),
                Err(error) if is_race(&error) => Ok(Verdict::Waiting(error.to_string())),
                // Anything else goes the whole way again, if it may be tried again at all.
                Err(error) => Ok(Verdict::Failed(error.failure())),
            }
        })
        .await?;
    }
    Ok(Trial { change: change(&survey), by })
}

fn is_race(error: &KubeError) -> bool {
    error.refusal().is_some_and(|refusal| is_webhook_race(&refusal.message))
}
