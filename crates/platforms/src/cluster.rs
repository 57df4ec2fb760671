//! The castle's own cluster as steps see it: one client for all of them, our mark, and waiting by watch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use castle_engine::{Context, Pace};
use castle_kubernetes::{KubeError, Kubernetes, Mark, Object, ObjectId, Place};
use castle_model::{Failure, NodeName, Observed, Spec, Verdict};
use castle_wire::World;
use futures::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use crate::handed::{API_SERVERS, CLUSTER, LIFE};

/// How many names are told at a time: a reason is one line.
const TOLD: usize = 2;

/// What a picture of the cluster shows.
pub type Objects = BTreeMap<ObjectId, Object>;

/// Somebody who looks closer when a wait takes long, beside the watch that it goes by.
pub struct Closer<'a> {
    /// When the next look is due.
    pub due: &'a (dyn Fn() -> Instant + Send + Sync),
    /// Looks, and makes the next one due later.
    pub look: &'a (dyn Fn() -> BoxFuture<'a, ()> + Send + Sync),
}

/// The cluster of a castle file.
pub struct Cluster {
    /// The castle file.
    pub spec: Arc<Spec>,
    /// The outside.
    pub world: World,
}

impl Cluster {
    /// The cluster of this castle file; nothing is dialled yet.
    #[must_use]
    pub fn new(spec: &Arc<Spec>, world: &World) -> Arc<Self> {
        Arc::new(Self { spec: spec.clone(), world: world.clone() })
    }

    /// The client that `platform/access` gave: one for all steps, so that they share its connection.
    ///
    /// # Errors
    /// A bug: that step did not come before this one.
    pub fn client(&self, cx: &Context) -> Result<Kubernetes, Failure> {
        cx.outputs().get(&CLUSTER).map(|client| client.as_ref().clone())
    }

    /// A client of each control plane's own API server, for what must hold behind all of them. Nothing is dialled yet.
    ///
    /// # Errors
    /// A bug: `platform/access` did not come before this step.
    pub fn api_servers(&self, cx: &Context) -> Result<Arc<Vec<(NodeName, Kubernetes)>>, Failure> {
        cx.outputs().get(&API_SERVERS)
    }

    /// The mark on what the step makes: it belongs to the step's layer.
    ///
    /// # Errors
    /// A bug: no earlier step gave the castle's life, or the step's name does not begin with a layer's.
    pub fn mark(&self, cx: &Context) -> Result<Mark, Failure> {
        let life = cx.outputs().get(&LIFE)?;
        let unnamed = |_| Failure::bug("name the layer", format!("{} names none", cx.step()));
        Ok(Mark {
            castle: self.spec.name.clone(),
            layer: cx.step().layer().parse().map_err(unnamed)?,
            incarnation: life.incarnation.clone(),
            key: life.bundle.digest_key("kubernetes objects"),
        })
    }

    /// What is in some places now.
    ///
    /// # Errors
    /// If the server does not answer or refuses, or knows no such kind.
    pub async fn look(&self, cx: &Context, places: &[Place]) -> Result<Objects, Failure> {
        let client = self.client(cx)?;
        let mut there = Objects::new();
        for place in places {
            let namespace = place.namespace.as_deref();
            let listing =
                client.list(&place.api_version, &place.kind, namespace, &place.selector).await?;
            there.extend(listing.items.into_iter().map(|object| (object.id(), object)));
        }
        Ok(there)
    }

    /// Follows some places by watch until the judge says ready or failed, and tells every change of the reason.
    ///
    /// # Errors
    /// The step's deadline passed, with the last reason; or it can never become ready.
    pub async fn settled<T: Send>(
        &self,
        cx: &Context,
        what: &str,
        places: Vec<Place>,
        judge: impl Fn(&Objects) -> Verdict<T> + Send + Sync,
    ) -> Result<T, Failure> {
        self.settled_by(cx, what, places, judge, None).await
    }

    /// Follows some places as [`Cluster::settled`] does, and has somebody look closer when it takes long.
    ///
    /// # Errors
    /// As [`Cluster::settled`].
    pub async fn settled_by<T: Send>(
        &self,
        cx: &Context,
        what: &str,
        places: Vec<Place>,
        judge: impl Fn(&Objects) -> Verdict<T> + Send + Sync,
        closer: Option<Closer<'_>>,
    ) -> Result<T, Failure> {
        let client = self.client(cx)?;
        let last = Mutex::new(None::<String>);
        let (client, places, judge, last, closer) = (&client, &places, &judge, &last, &closer);
        cx.wait(Pace::GATE, what, move || async move {
            let mut picture = match client.follow(places.clone()).await {
                Err(error @ KubeError::NoSuchKind { .. }) => {
                    return Ok(Verdict::Waiting(error.to_string()));
                }
                picture => picture?,
            };
            loop {
                let reason = match judge(picture.objects()) {
                    Verdict::Waiting(reason) => reason,
                    answer => return Ok(answer),
                };
                tell(cx, last, &reason);
                // A watch may be silent for longer than the step has time: the answer is then what it showed last.
                let due = closer.as_ref().map_or(cx.deadline(), |closer| (closer.due)());
                match timeout_at(due.min(cx.deadline()), picture.changed()).await {
                    Ok(changed) => changed?,
                    Err(_) if Instant::now() >= cx.deadline() => {
                        return Ok(Verdict::Waiting(reason));
                    }
                    Err(_) => {
                        if let Some(closer) = closer {
                            (closer.look)().await;
                        }
                    }
                }
            }
        })
        .await
    }
}

/// What a look says whose judge gave this verdict. A failure is something wrong too: the step may mend it, and its gate
/// says it again if not.
#[must_use]
pub fn observed(verdict: Verdict) -> Observed {
    match verdict {
        Verdict::Ready(evidence) => Observed::right(evidence),
        Verdict::Waiting(why) => Observed::wrong(why),
        Verdict::Failed(failure) => Observed::wrong(failure.to_string()),
    }
}

/// A few of the names, and how many more there are: `a, b and 3 more`.
#[must_use]
pub fn few(names: &[impl AsRef<str>]) -> String {
    let told: Vec<&str> = names.iter().take(TOLD).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(TOLD) {
        0 => told.join(", "),
        more => format!("{} and {more} more", told.join(", ")),
    }
}

/// Tells a reason if it is another than the last.
fn tell(cx: &Context, last: &Mutex<Option<String>>, now: &str) {
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    if last.as_deref() != Some(now) {
        cx.waiting(now);
        *last = Some(now.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use castle_model::Class;

    use super::*;

    #[test]
    fn a_look_says_what_its_verdict_says() {
        assert_eq!(observed(Verdict::Ready("so".into())), Observed::right("so"));
        assert_eq!(observed(Verdict::waiting("not yet")), Observed::wrong("not yet"));
        let failure = Failure::new(Class::Invalid, "wait for x", "stalled");
        assert_eq!(
            observed(Verdict::Failed(failure.clone())),
            Observed::wrong(failure.to_string())
        );
    }

    #[test]
    fn at_most_two_names_are_told() {
        assert_eq!(few(&["a"]), "a");
        assert_eq!(few(&["a", "b"]), "a, b");
        assert_eq!(few(&["a", "b", "c", "d"]), "a, b and 2 more");
    }
}
