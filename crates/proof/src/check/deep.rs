//! What a world is made of below its names: the config of each guest, and what each object of the cluster is to be.
//!
//! What differs from one life to the next is left out, and nothing else: `docs/proof.md` names it.

use castle_rehearsal::world::Datacenter;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// Options of a guest that are drawn anew for each: ids, network addresses, and when it was made.
const DRAWN: [&str; 3] = ["vmgenid", "meta", "digest"];
/// Kinds of objects that come and go by themselves, or that say who did what when.
const PASSING: [&str; 11] = [
    "/pods/",
    "/events/",
    "/leases/",
    "/endpoints/",
    "/endpointslices/",
    "/replicasets/",
    "/controllerrevisions/",
    "/volumeattachments/",
    "/persistentvolumes/",
    "/certificatesigningrequests/",
    "/csinodes/",
];
/// Members of an object that somebody draws, counts or finds out: names of one life, and no part of what was asked for.
const FOUND: [&str; 9] = [
    "caBundle",
    "clusterIP",
    "clusterIPs",
    "nodeName",
    "nodePort",
    "healthCheckNodePort",
    "podCIDR",
    "podCIDRs",
    "providerID",
];

/// The config of each guest, by its number: everything but what is drawn, the life in its mark, and the UUID that
/// follows from it.
pub(super) fn guests(datacenter: &Datacenter) -> Value {
    let proxmox = serde_json::to_value(&datacenter.proxmox).unwrap_or_default();
    let guests = proxmox["guests"].as_object().into_iter().flatten();
    let seen = guests.map(|(vmid, guest)| {
        let config = guest["config"].as_object().into_iter().flatten();
        let kept = config.filter(|(name, _)| !DRAWN.contains(&name.as_str()));
        let kept = kept.map(|(name, value)| {
            (name.clone(), json!(option(name, value.as_str().unwrap_or_default())))
        });
        (vmid.clone(), Value::Object(kept.collect()))
    });
    Value::Object(seen.collect())
}

fn option(name: &str, text: &str) -> String {
    match name {
        // It follows from life and node; that the two agree is what castle itself calls its own.
        "smbios1" => "uuid=*".to_owned(),
        "description" | "tags" => lifeless(text),
        // The card's address is drawn.
        _ if name.starts_with("net") => {
            let parts = text.split(',').map(|part| match part.split_once('=') {
                Some(("virtio", _)) => "virtio=*".to_owned(),
                _ => part.to_owned(),
            });
            parts.collect::<Vec<_>>().join(",")
        }
        _ => text.to_owned(),
    }
}

/// A text without the words that name a life: `inc-` and what is hexadecimal and long.
fn lifeless(text: &str) -> String {
    let mut free = String::new();
    let mut word = String::new();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    for c in text.chars().chain(['\n']) {
        if is_word(c) {
            word.push(c);
            continue;
        }
        let bare = word.strip_prefix("inc-").unwrap_or(&word);
        let drawn = bare.len() >= 8
            && bare.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
            && bare.chars().any(|c| c.is_ascii_digit());
        free.push_str(if drawn { "*" } else { &word });
        word.clear();
        free.push(c);
    }
    free.trim_end().to_owned()
}

/// What each machine was told to be, by its number; null if it has no config. Its certificates are of one life.
pub(super) fn machines(datacenter: &Datacenter) -> Value {
    let talos = serde_json::to_value(&datacenter.talos).unwrap_or_default();
    let machines = talos["machines"].as_object().into_iter().flatten();
    let seen = machines.map(|(vmid, machine)| {
        let config = machine["config"].as_object();
        let told = config.map(|config| {
            let parts = ["control_plane", "hostname", "address", "vip", "endpoint"];
            let told = parts.map(|part| (part.to_owned(), config.get(part).cloned().into()));
            Value::Object(told.into_iter().collect())
        });
        (vmid.clone(), told.unwrap_or_default())
    });
    Value::Object(seen.collect())
}

/// A hash of each object of the cluster, by its place: labels, and everything that was asked for.
pub(super) fn objects(datacenter: &Datacenter) -> Value {
    let kubernetes = serde_json::to_value(&datacenter.kubernetes).unwrap_or_default();
    let objects = kubernetes["store"]["objects"].as_object().into_iter().flatten();
    let lasting = objects.filter(|(place, object)| {
        let place = format!("/{place}/");
        let named = object["metadata"].get("generateName").is_none();
        named && !PASSING.iter().any(|kind| place.contains(kind))
    });
    let seen = lasting.map(|(place, object)| {
        let mut asked: Map<String, Value> = object.as_object().cloned().unwrap_or_default();
        let labels = object["metadata"]["labels"].clone();
        for part in ["metadata", "status", "data", "stringData"] {
            asked.remove(part);
        }
        asked.insert("labels".to_owned(), labels);
        let mut asked = Value::Object(asked);
        without_found(&mut asked);
        let hash = hex::encode(Sha256::digest(asked.to_string()));
        (place.clone(), json!(hash[..16].to_owned()))
    });
    Value::Object(seen.collect())
}

fn without_found(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !FOUND.contains(&name.as_str()));
            for (_, member) in members.iter_mut() {
                without_found(member);
            }
        }
        Value::Array(members) => members.iter_mut().for_each(without_found),
        Value::String(text) => *text = lifeless(text),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::castle::{Around, Command, run};
    use crate::setting::{Setting, Shape};

    #[test]
    fn a_life_is_left_out_and_a_size_is_not() {
        let mark = "Made by castle.\n\ncastle-mark: blue inc-0f3a9b2c worker-01 431";
        assert_eq!(lifeless(mark), "Made by castle.\n\ncastle-mark: blue * worker-01 431");
        assert_eq!(lifeless("castle;castle-blue;inc-0f3a9b2c"), "castle;castle-blue;*");
        let net = "virtio=BC:24:11:0A:0B:0C,bridge=vmbr0,mtu=1500";
        assert_eq!(option("net0", net), "virtio=*,bridge=vmbr0,mtu=1500");
        assert_eq!(option("scsi0", "lvm:vm-421-disk-0,size=8G"), "lvm:vm-421-disk-0,size=8G");
    }

    #[test]
    fn a_castle_that_stands_has_configs_and_objects() {
        let setting = Setting::of(Shape::SMALL, 1);
        let raised = run(setting.empty(), &setting, Command::Up, Around::default());
        let world = &raised.stand.datacenter;
        assert_eq!(guests(world)["421"]["smbios1"], "uuid=*");
        assert_eq!(machines(world)["431"]["control_plane"], false);
        let objects = objects(world);
        assert!(objects.as_object().is_some_and(|all| all.len() > 100), "{objects}");
        assert!(
            guests(world)["431"]["description"].as_str().is_some_and(|text| !text.contains("inc-"))
        );
    }

    #[test]
    fn what_was_found_is_left_out_and_what_was_asked_for_is_not() {
        let mut spec =
            json!({"spec": {"clusterIP": "10.0.0.7", "ports": [{"port": 80, "nodePort": 31000}]}});
        without_found(&mut spec);
        assert_eq!(spec, json!({"spec": {"ports": [{"port": 80}]}}));
    }
}
