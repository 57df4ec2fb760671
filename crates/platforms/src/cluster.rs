//! The castle's own cluster as steps see it: one client for all of them, our mark, and waiting by watch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use castle_engine::{Context, Pace};
use castle_kubernetes::{KubeError, Kubernetes, Mark, Object, ObjectId, Place};
use castle_model::{Failure, LayerName, Spec, Verdict};
use castle_wire::World;

use crate::handed::{CLUSTER, LIFE};

/// What a wait says that was cut off inside its first question; the watch knows better.
const NO_ANSWER: &str = "no answer yet";

/// What a picture of the cluster shows.
pub type Objects = BTreeMap<ObjectId, Object>;

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

    /// The mark on the objects of a layer.
    ///
    /// # Errors
    /// A bug: no earlier step gave the castle's life.
    pub fn mark(&self, cx: &Context, layer: &LayerName) -> Result<Mark, Failure> {
        let life = cx.outputs().get(&LIFE)?;
        Ok(Mark {
            castle: self.spec.name.clone(),
            layer: layer.clone(),
            incarnation: life.incarnation.clone(),
        })
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
        let client = self.client(cx)?;
        let last = Mutex::new(None::<String>);
        let (client, places, judge, reason) = (&client, &places, &judge, &last);
        let answer = cx
            .wait(Pace::GATE, what, move || async move {
                let mut picture = match client.follow(places.clone()).await {
                    Err(error @ KubeError::NoSuchKind { .. }) => {
                        return Ok(Verdict::Waiting(error.to_string()));
                    }
                    picture => picture?,
                };
                loop {
                    match judge(picture.objects()) {
                        Verdict::Waiting(now) => tell(cx, reason, now),
                        answer => return Ok(answer),
                    }
                    picture.changed().await?;
                }
            })
            .await;
        let last = last.into_inner().unwrap_or_else(PoisonError::into_inner);
        answer.map_err(|failure| match last {
            Some(reason) if failure.evidence.as_deref() == Some(NO_ANSWER) => {
                failure.evidence(reason)
            }
            _ => failure,
        })
    }
}

/// Tells a reason if it is another than the last.
fn tell(cx: &Context, last: &Mutex<Option<String>>, now: String) {
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    if last.as_ref() != Some(&now) {
        cx.waiting(&now);
        *last = Some(now);
    }
}
