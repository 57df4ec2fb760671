//! What the server adds to a written object: identity, times, generation and defaults.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::kinds::Resource;
use super::{Kubernetes, defaults};
use crate::turn::Turn;

impl Kubernetes {
    /// Makes an object whole.
    pub(super) fn completed(
        &mut self,
        turn: &mut Turn<'_>,
        (resource, namespace): (&Resource, &str),
        before: Option<&Value>,
        object: Value,
    ) -> Value {
        let mut object = without_string_data(object);
        let null = Value::Null;
        let old = &before.unwrap_or(&null)["metadata"];
        let uid = old["uid"].as_str().map_or_else(|| uuid(turn), str::to_owned);
        let born = old["creationTimestamp"].as_str().map_or_else(|| self.stamp(), str::to_owned);
        object["metadata"]["uid"] = uid.into();
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = namespace.into();
        }
        object["metadata"]["creationTimestamp"] = born.into();
        // Nobody but the server says that an object is being deleted.
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
            match old.get(field) {
                Some(value) => object["metadata"][field] = value.clone(),
                None => {
                    object["metadata"].as_object_mut().map(|m| m.shift_remove(field));
                }
            }
        }
        defaults::fill(resource, &mut object);
        if resource.kind == "Service" && !resource.custom {
            self.complete_service(before, &mut object);
        }
        if resource.has_generation() {
            let last = old["generation"].as_i64().unwrap_or(0);
            let changed = before.is_none_or(|b| content(b, resource) != content(&object, resource));
            object["metadata"]["generation"] = (last + i64::from(changed)).into();
        }
        object
    }

    /// What the server fills in for a service: its address among others.
    fn complete_service(&mut self, before: Option<&Value>, object: &mut Value) {
        let spec = &mut object["spec"];
        for (field, value) in [
            ("type", "ClusterIP"),
            ("sessionAffinity", "None"),
            ("internalTrafficPolicy", "Cluster"),
            ("ipFamilyPolicy", "SingleStack"),
        ] {
            if spec[field].is_null() {
                spec[field] = value.into();
            }
        }
        for port in spec["ports"].as_array_mut().into_iter().flatten() {
            if port["protocol"].is_null() {
                port["protocol"] = "TCP".into();
            }
            if port["targetPort"].is_null() {
                port["targetPort"] = port["port"].clone();
            }
        }
        if spec["type"] == "ExternalName" || spec["clusterIP"].is_string() {
            return;
        }
        if let Some(address) = before.and_then(|before| before["spec"]["clusterIP"].as_str()) {
            spec["clusterIP"] = address.into();
        } else {
            self.counter += 1;
            let (high, low) = (self.counter / 250 % 250, self.counter % 250 + 2);
            spec["clusterIP"] = format!("10.96.{high}.{low}").into();
        }
        spec["clusterIPs"] = vec![spec["clusterIP"].clone()].into();
        spec["ipFamilies"] = vec![Value::from("IPv4")].into();
        if object["status"].is_null() {
            object["status"]["loadBalancer"] = Value::Object(Map::new());
        }
    }
}

/// Everything of an object but what the server and the controllers keep on it.
pub(super) fn content<'a>(object: &'a Value, resource: &Resource) -> Vec<(&'a String, &'a Value)> {
    let own = |name: &str| match name {
        "metadata" | "apiVersion" => false,
        "status" => !resource.status,
        _ => true,
    };
    object
        .as_object()
        .map_or_else(Vec::new, |map| map.iter().filter(|(name, _)| own(name)).collect())
}

/// A write of the object itself leaves its status alone.
pub(super) fn with_status_of(before: Option<&Value>, mut object: Value) -> Value {
    match before.map(|before| &before["status"]).filter(|status| !status.is_null()) {
        Some(status) => object["status"] = status.clone(),
        None => {
            object.as_object_mut().map(|map| map.shift_remove("status"));
        }
    }
    object
}

/// A write of the status leaves all else alone, but for who owns what.
pub(super) fn with_all_but_status_of(before: Option<&Value>, mut object: Value) -> Value {
    let Some(before) = before else { return object };
    let mut whole = before.clone();
    whole["status"] = object["status"].take();
    let managers = object["metadata"]["managedFields"].take();
    if !managers.is_null() {
        whole["metadata"]["managedFields"] = managers;
    }
    whole
}

/// Whether a controller looks at what changed in the labels or annotations of an object.
pub(super) fn nudged(before: Option<&Value>, after: &Value) -> bool {
    let of = |object: &Value, field: &str| object["metadata"][field].clone();
    let asked =
        |object: &Value| of(object, "annotations")["reconcile.fluxcd.io/requestedAt"].clone();
    before.is_some_and(|before| match after["kind"].as_str() {
        Some("Namespace") => of(before, "labels") != of(after, "labels"),
        Some("Service") => of(before, "annotations") != of(after, "annotations"),
        _ => asked(before) != asked(after),
    })
}

/// A Secret keeps `stringData` encoded, as `data`.
pub(super) fn without_string_data(mut object: Value) -> Value {
    if object["kind"] == "Secret"
        && let Some(Value::Object(plain)) =
            object.as_object_mut().and_then(|map| map.shift_remove("stringData"))
    {
        for (name, value) in plain {
            let text = value.as_str().unwrap_or_default();
            object["data"][name] = STANDARD.encode(text).into();
        }
    }
    object
}

/// A random UUID.
pub(super) fn uuid(turn: &mut Turn<'_>) -> String {
    let mut bytes = [0_u8; 16];
    turn.dice.fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = hex::encode(bytes);
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}
