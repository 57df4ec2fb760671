//! How the castle file changes MetalLB.

use castle_model::Spec;
use serde_json::{Value, json};

use super::NAMESPACE;
use crate::overlay::{Adjustment, add_flag, containers, patches, privileged};

const LAYER: &str = "networking \"metallb\"";
const SPEAKER: &str = "speaker";
/// The taints of control planes; the first is what they were called before Kubernetes 1.24.
const TAINTS: [&str; 2] =
    ["node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"];
/// Without it a speaker stays silent on nodes with the label `node.kubernetes.io/exclude-from-external-load-balancers`,
/// which Talos puts on control planes.
const IGNORE_LABEL: &str = "--ignore-exclude-lb=true";

/// Every adjustment, in the order in which they are made.
pub(super) fn overlay(spec: &Spec) -> Vec<Adjustment> {
    let speakers = if spec.networking.control_planes { with_control_planes() } else { without() };
    [privileged(LAYER, NAMESPACE), speakers]
        .into_iter()
        .chain(patches(&spec.networking.patches))
        .collect()
}

fn with_control_planes() -> Adjustment {
    let what = format!("speakers run on control planes and announce from there ({IGNORE_LABEL})");
    let setting = format!("`control_planes` of {LAYER}");
    Adjustment::object(&setting, "DaemonSet", SPEAKER, what, |object| {
        let Some(speaker) = containers(object).iter_mut().find(|c| c["name"] == SPEAKER) else {
            return false;
        };
        add_flag(speaker, IGNORE_LABEL);
        let mut tolerations = others(object);
        tolerations.extend(
            TAINTS.map(|key| json!({"key": key, "operator": "Exists", "effect": "NoSchedule"})),
        );
        object["spec"]["template"]["spec"]["tolerations"] = tolerations.into();
        true
    })
}

fn without() -> Adjustment {
    let what = "speakers run on workers only, so control planes announce no address";
    let setting = format!("`control_planes` of {LAYER}");
    Adjustment::object(&setting, "DaemonSet", SPEAKER, what, |object| {
        let tolerations = others(object);
        object["spec"]["template"]["spec"]["tolerations"] = tolerations.into();
        !containers(object).is_empty()
    })
}

/// The tolerations that are not about control planes.
fn others(object: &Value) -> Vec<Value> {
    let tolerations = object.pointer("/spec/template/spec/tolerations").and_then(Value::as_array);
    let about =
        |toleration: &Value| toleration["key"].as_str().is_some_and(|k| TAINTS.contains(&k));
    tolerations.into_iter().flatten().filter(|t| !about(t)).cloned().collect()
}
