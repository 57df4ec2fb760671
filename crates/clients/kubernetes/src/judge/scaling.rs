//! Rules for what bounds the number of pods: PodDisruptionBudget and HorizontalPodAutoscaler.

use castle_model::Verdict;

use super::{ready, unseen, waiting};
use crate::object::Object;

const UNSEEN: &str = "has not been seen by its controller yet";

/// A budget is ready when it has been counted; whether it allows anything now is told, and waits for nothing.
pub(super) fn disruption_budget(object: &Object) -> Verdict {
    if unseen(object) {
        return waiting(object, UNSEEN);
    }
    let failed = object.condition("DisruptionAllowed").filter(|c| c.reason() == "SyncFailed");
    if let Some(condition) = failed {
        return waiting(object, format!("could not be counted: {}", condition.words()));
    }
    let status = |field: &str| object.number(&format!("/status/{field}"));
    ready(
        object,
        format!(
            "has {} healthy pods and needs {}; {} may be disrupted now",
            status("currentHealthy"),
            status("desiredHealthy"),
            status("disruptionsAllowed")
        ),
    )
}

pub(super) fn autoscaler(object: &Object) -> Verdict {
    if object.at("/status/conditions").is_none() {
        return waiting(object, UNSEEN);
    }
    for (kind, words) in [("AbleToScale", "cannot scale"), ("ScalingActive", "does not scale")] {
        let Some(condition) = object.condition(kind).filter(|c| c.status() != "True") else {
            continue;
        };
        if condition.reason() == "ScalingDisabled" {
            return ready(object, format!("rests: {}", condition.words()));
        }
        return waiting(object, format!("{words}: {}", condition.words()));
    }
    let (now, wanted) =
        (object.number("/status/currentReplicas"), object.number("/status/desiredReplicas"));
    let limited = object
        .condition("ScalingLimited")
        .filter(|c| c.status() == "True")
        .map(|c| format!("; limited: {}", c.words()))
        .unwrap_or_default();
    ready(object, format!("has {now} replicas and wants {wanted}{limited}"))
}
