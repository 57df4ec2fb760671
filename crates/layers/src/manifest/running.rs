//! The workloads of a set as a step of their own: others may use what the set defines before all of it runs.

use async_trait::async_trait;
use castle_engine::{Context, Step};
use castle_kubernetes::{ObjectId, Place};
use castle_model::{Failure, Observed, Verdict};
use castle_platforms::cluster::{Objects, observed};

use super::{ManifestStep, hook_services, verdict};

/// The step: it applies nothing, and proves that what was applied runs.
pub(crate) struct Running(pub(crate) ManifestStep);

impl Running {
    /// The workloads, and the judge of them.
    async fn judge(
        &self,
        cx: &Context,
    ) -> Result<(Vec<Place>, impl Fn(&Objects) -> Verdict + Send + Sync + use<>), Failure> {
        let wanted = self.0.wanted(cx).await?;
        let places = self.0.places(&wanted.objects);
        let works =
            wanted.objects.iter().filter(|object| matches!(object.group(), "apps" | "batch"));
        let works: Vec<ObjectId> = works.map(castle_kubernetes::Object::id).collect();
        let (services, name) = (hook_services(&wanted.objects), self.0.name());
        let judge = move |there: &Objects| match verdict(&works, &services, there) {
            Verdict::Ready(1) => Verdict::Ready(format!("{name}: 1 workload runs")),
            Verdict::Ready(count) => Verdict::Ready(format!("{name}: {count} workloads run")),
            Verdict::Waiting(reason) => Verdict::Waiting(reason),
            Verdict::Failed(failure) => Verdict::Failed(failure),
        };
        Ok((places, judge))
    }
}

#[async_trait]
impl Step for Running {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let (mut places, judge) = self.judge(cx).await?;
        // Definitions are the other step's, and pods only say why somebody is late.
        places.retain(|place| place.api_version == "apps/v1");
        Ok(observed(judge(&self.0.cluster.look(cx, &places).await?)))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let (mut places, judge) = self.judge(cx).await?;
        places.retain(|place| place.kind != "CustomResourceDefinition");
        let what = format!("{} to run", self.0.name());
        self.0.cluster.settled(cx, &what, places, judge).await
    }
}
