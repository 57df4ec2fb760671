//! The same world: what the datacenter counts after a crash is what it counts without one.

use std::collections::BTreeSet;

use castle_rehearsal::inventory::Inventory;
use castle_rehearsal::world::Datacenter;
use serde_json::{Value, json};

use super::{Violation, deep};
use crate::setting::Setting;

/// The most differences that are told.
const TOLD: usize = 12;

/// What a datacenter counts, without what is truly free: when it was asked, which control plane leads etcd and which
/// one holds the shared address (whoever is first), and the random mark of this life in tags.
#[must_use]
pub fn inventory(datacenter: &Datacenter) -> Value {
    let mut value = serde_json::to_value(Inventory::of(datacenter)).unwrap_or_default();
    value["configs"] = deep::guests(datacenter);
    value["objects"] = deep::objects(datacenter);
    value["machine_configs"] = deep::machines(datacenter);
    value["at"] = json!(0);
    if let Some(holder) = value["vip"].get_mut(1) {
        *holder = json!("");
    }
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

/// The same without what neighbours have put there.
#[must_use]
pub fn ours(setting: &Setting, datacenter: &Datacenter) -> Value {
    let mut value = inventory(datacenter);
    cut(&mut value, &setting.foreign_vmids());
    let folders = setting.foreign_folders();
    retain(&mut value["secrets"], |secret| {
        let place = secret.as_str().unwrap_or_default();
        !folders.iter().any(|folder| place.contains(&format!("{folder}/")))
    });
    value
}

/// The same without whatever has one of these numbers: what stands there is for another law.
#[must_use]
pub fn apart(value: &Value, numbers: &BTreeSet<u32>) -> Value {
    let mut value = value.clone();
    cut(&mut value, &numbers.iter().map(ToString::to_string).collect());
    value
}

/// The numbers of the machines that are somebody else's, and answer at addresses of ours.
#[must_use]
pub fn strangers(value: &Value) -> BTreeSet<u32> {
    let machines = value["machines"].as_object().into_iter().flatten();
    let strange = machines.filter(|(_, seen)| seen.to_string().contains("(somebody else's)"));
    strange.filter_map(|(number, _)| number.parse().ok()).collect()
}

fn cut(value: &mut Value, numbers: &BTreeSet<String>) {
    let is_cut = |number: &str| numbers.contains(number);
    let proxmox = &mut value["proxmox"];
    retain(&mut proxmox["guests"], |guest| !is_cut(&guest["vmid"].to_string()));
    retain(&mut proxmox["volumes"], |volume| {
        let name = volume.as_str().unwrap_or_default();
        let number = name.split("vm-").nth(1).and_then(|rest| rest.split('-').next());
        !number.is_some_and(is_cut)
    });
    for part in ["machines", "addresses", "configs", "machine_configs"] {
        if let Some(members) = value[part].as_object_mut() {
            members.retain(|number, _| !is_cut(number));
        }
    }
}

/// What is to be there after a castle was razed: what was there before, and what a castle leaves on purpose. A schematic
/// at the image factory is a number that anybody may compute and nobody can take back.
#[must_use]
pub fn after_down(empty: &Value, found: &Value) -> Value {
    let mut wanted = empty.clone();
    wanted["schematics"] = found["schematics"].clone();
    wanted
}

fn retain(of: &mut Value, wanted: impl Fn(&Value) -> bool) {
    if let Some(members) = of.as_array_mut() {
        members.retain(wanted);
    }
}

/// Compares two inventories.
#[must_use]
pub fn same(wanted: &Value, found: &Value) -> Vec<Violation> {
    let differ = differences(wanted, found).into_iter();
    differ.map(|what| Violation::new("the same world", what)).collect()
}

/// Where two values differ, each place in one line.
pub(crate) fn differences(wanted: &Value, found: &Value) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_at_an_address_of_ours_is_told_from_ours() {
        let machines = json!({"421": "cp-01 (off)", "2000235987": "stranger (somebody else's)"});
        assert_eq!(strangers(&json!({ "machines": machines })), BTreeSet::from([2_000_235_987]));
    }

    #[test]
    fn whatever_differs_is_told_with_its_place() {
        let one = json!({"guests": [{"vmid": 421}], "vip": "a", "same": 1});
        let other = json!({"guests": [{"vmid": 421}, {"vmid": 422}], "vip": "b", "same": 1});
        let told: Vec<String> = same(&one, &other).iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "the same world: /guests: missing [], added [{\"vmid\":422}]",
                "the same world: /vip: \"a\" became \"b\"",
            ]
        );
        assert_eq!(same(&one, &one), []);
        let lost = json!({"guests": [{"vmid": 421}], "vip": "a"});
        assert_eq!(same(&one, &lost).len(), 1, "what is missing differs");
    }
}
