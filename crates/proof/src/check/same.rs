//! The same world: what the datacenter counts after a crash is what it counts without one.

use castle_rehearsal::inventory::Inventory;
use castle_rehearsal::world::Datacenter;
use serde_json::{Value, json};

use super::Violation;

/// The most differences that are told.
const TOLD: usize = 12;

/// What a datacenter counts, without what is truly free: when it was asked, which control plane leads etcd and which
/// one holds the shared address (whoever is first), and the random mark of this life in tags.
#[must_use]
pub fn inventory(datacenter: &Datacenter) -> Value {
    let mut value = serde_json::to_value(Inventory::of(datacenter)).unwrap_or_default();
    value["at"] = json!(0);
    value["vip"][1] = json!("");
    for member in value["etcd"].as_array_mut().into_iter().flatten() {
        if member[1] == "leader" {
            member[1] = json!("voter");
        }
    }
    for guest in value["proxmox"]["guests"].as_array_mut().into_iter().flatten() {
        for tag in guest["tags"].as_array_mut().into_iter().flatten() {
            let text = tag.as_str().unwrap_or_default();
            if text.starts_with("inc-") {
                *tag = json!("inc-*");
            }
        }
    }
    value
}

/// Compares two inventories.
#[must_use]
pub fn same(wanted: &Value, found: &Value) -> Vec<Violation> {
    let differ = differences(wanted, found).into_iter();
    differ.map(|what| Violation::new("the same world", what)).collect()
}

/// Where two values differ, each place in one line.
pub(super) fn differences(wanted: &Value, found: &Value) -> Vec<String> {
    let mut all = Vec::new();
    walk("", wanted, found, &mut all);
    all.truncate(TOLD);
    all
}

fn walk(place: &str, wanted: &Value, found: &Value, all: &mut Vec<String>) {
    match (wanted, found) {
        (Value::Object(one), Value::Object(other)) => {
            let keys = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
            for key in keys {
                let (one, other) = (one.get(key), other.get(key));
                let at = format!("{place}/{key}");
                walk(&at, one.unwrap_or(&Value::Null), other.unwrap_or(&Value::Null), all);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                walk(&format!("{place}/{index}"), one, other, all);
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            let only = |all: &[Value], others: &[Value]| -> Vec<Value> {
                all.iter().filter(|value| !others.contains(value)).cloned().collect()
            };
            let (lost, added) = (only(one, other), only(other, one));
            all.push(format!("{place}: missing {}, added {}", json!(lost), json!(added)));
        }
        _ if wanted == found => {}
        _ => all.push(format!("{place}: {wanted} became {found}")),
    }
}
