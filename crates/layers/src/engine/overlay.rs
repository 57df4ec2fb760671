//! How the castle file changes External Secrets.

use castle_model::Spec;
use castle_model::spec::ResourcesSpec;
use serde_json::{Value, json};

use super::NAMESPACE;
use crate::overlay::{Adjustment, add_flag, containers, map_at, patches};

const LAYER: &str = "engine \"external-secrets\"";
/// The namespace that the release is rendered for, without making it.
const RELEASED: &str = "default";

/// Every adjustment, in the order in which they are made.
pub(super) fn overlay(spec: &Spec) -> Vec<Adjustment> {
    let engine = &spec.engine;
    let mut adjustments = vec![own_namespace()];
    adjustments.extend(engine.replicas.map(replicas));
    if engine.resources != ResourcesSpec::default() {
        adjustments.push(resources(&engine.resources));
    }
    adjustments.extend(patches(&engine.patches));
    adjustments
}

/// The release stands in `default`: it is moved into a namespace of its own, which PodSecurity and whoever looks for
/// it need.
fn own_namespace() -> Adjustment {
    let what = format!("it gets the namespace {NAMESPACE} of its own");
    Adjustment::set(LAYER, "objects with a namespace", what, |objects| {
        for object in objects.iter_mut() {
            relocate(object);
        }
        let is_it = |object: &Value| {
            object["kind"] == "Namespace" && object["metadata"]["name"] == NAMESPACE
        };
        if !objects.iter().any(is_it) {
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE},
            });
            objects.insert(0, namespace);
        }
        objects.iter().any(|object| object["metadata"]["namespace"] == NAMESPACE)
    })
}

/// Every place of an object that names the namespace: its own, those of subjects and services, and flags.
fn relocate(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                if key == "namespace" && *inner == RELEASED {
                    *inner = json!(NAMESPACE);
                } else if key == "args" {
                    relocate_flags(inner);
                } else if key != "openAPIV3Schema" {
                    relocate(inner);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(relocate),
        _ => {}
    }
}

fn relocate_flags(arguments: &mut Value) {
    for argument in arguments.as_array_mut().into_iter().flatten() {
        let Some((flag, value)) = argument.as_str().and_then(|text| text.split_once('=')) else {
            continue;
        };
        if flag.ends_with("-namespace") && value == RELEASED {
            *argument = json!(format!("{flag}={NAMESPACE}"));
        } else if flag == "--dns-name" {
            let moved = value.replace(&format!(".{RELEASED}.svc"), &format!(".{NAMESPACE}.svc"));
            *argument = json!(format!("{flag}={moved}"));
        }
    }
}

/// More than one copy needs an election, or two would write the same secrets.
fn replicas(count: u32) -> Adjustment {
    let what = match count {
        1 => "one copy of each Deployment".to_owned(),
        _ => format!("{count} copies of each Deployment, which elect a leader"),
    };
    let setting = format!("`replicas` of {LAYER}");
    Adjustment::each(&setting, "Deployment", what, move |object| {
        // The webhook only answers: each of its copies may do that.
        let answers = containers(object).iter().any(|c| c["args"][0] == "webhook");
        if count > 1 && !answers {
            for container in containers(object) {
                add_flag(container, "--enable-leader-election=true");
            }
        }
        let Some(spec) = map_at(object, "spec") else { return false };
        spec.insert("replicas".to_owned(), json!(count));
        true
    })
}

fn resources(wanted: &ResourcesSpec) -> Adjustment {
    let ResourcesSpec { cpu, memory, memory_limit } = wanted.clone();
    let told = [("processor", &cpu), ("memory", &memory), ("memory at most", &memory_limit)];
    let told =
        told.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)));
    let what = format!("each container asks for {}", told.collect::<Vec<_>>().join(", "));
    Adjustment::each(&format!("`resources` of {LAYER}"), "Deployment", what, move |object| {
        let containers = containers(object);
        for container in containers.iter_mut() {
            let settings = [
                ("requests", "cpu", &cpu),
                ("requests", "memory", &memory),
                ("limits", "memory", &memory_limit),
            ];
            for (group, key, value) in settings {
                if let Some(value) = value {
                    container["resources"][group][key] = json!(value);
                }
            }
        }
        !containers.is_empty()
    })
}
