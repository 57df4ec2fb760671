//! Rules for the kinds of Flux: all speak through `Ready`, except those that nothing reconciles.

use castle_model::Verdict;

use super::custom::{by_conditions, must_say_ready};
use super::{is_set, ready, waiting};
use crate::object::Object;

/// Whether a group belongs to Flux or its operator.
pub(super) fn is_of(group: &str) -> bool {
    group.ends_with(".toolkit.fluxcd.io") || group == "fluxcd.controlplane.io"
}

/// What is suspended keeps the verdict of its last reconciliation; that nothing will change it is told.
pub(super) fn unit(object: &Object) -> Verdict {
    let verdict = match object.kind() {
        // Nothing writes a status into these: they are looked at when somebody uses them.
        "Alert" | "Provider" => by_conditions(object),
        "HelmRepository" if object.text("/spec/type") == Some("oci") => {
            return ready(object, "is there; a repository of type oci is read by its charts");
        }
        _ => match unmet(object) {
            Some(why) => waiting(object, format!("is not ready: {why}")),
            None => must_say_ready(object),
        },
    };
    if !is_set(object, "/spec/suspend") {
        return verdict;
    }
    let told = |words: String| format!("{words} (suspended: nothing changes until it is resumed)");
    match verdict {
        Verdict::Ready(words) => Verdict::Ready(told(words)),
        Verdict::Waiting(_) if object.at("/status/conditions").is_none() => {
            waiting(object, "is suspended and was never looked at; resume it")
        }
        Verdict::Waiting(words) => Verdict::Waiting(told(words)),
        failed @ Verdict::Failed(_) => failed,
    }
}

/// What keeps an object from being ready, by a condition of its newest form. Flux notes the generation of a success alone,
/// so what was never successful would else only count as not seen.
fn unmet(object: &Object) -> Option<String> {
    let generation = object.number("/metadata/generation");
    let current =
        |kind: &str| object.condition(kind).filter(|c| c.observed_generation() == Some(generation));
    let stalled = current("Stalled").is_some_and(|c| c.holds());
    current("Ready").filter(|ready| !stalled && !ready.holds()).map(|ready| ready.words())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_never_successful_is_told_by_its_condition() {
        let say = |observed: i64, kind: &str| {
            let unit = json!({
                "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
                "metadata": {"name": "a", "namespace": "n", "generation": 2},
                "status": {"observedGeneration": -1, "conditions": [{"type": kind, "status": if kind == "Ready" { "False" } else { "True" },
                    "reason": "BuildFailed", "message": "no such file", "observedGeneration": observed}]},
            });
            match unit_of(unit) {
                Verdict::Waiting(words) => words,
                other => format!("{other:?}"),
            }
        };
        fn unit_of(value: serde_json::Value) -> Verdict {
            unit(&Object::new(value).unwrap())
        }
        assert_eq!(say(2, "Ready"), "Kustomization n/a is not ready: BuildFailed: no such file");
        assert!(say(1, "Ready").contains("has not been seen in its newest form yet"));
        assert!(say(2, "Stalled").contains("has not been seen"), "as before");
    }
}
