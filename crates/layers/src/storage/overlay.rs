//! How the castle file changes Longhorn.

use castle_model::Spec;
use castle_model::spec::NodeSpec;
use serde_json::{Value, json};

use super::NAMESPACE;
use crate::overlay::{Adjustment, patches, privileged, set_line};

const LAYER: &str = "storage \"longhorn\"";
/// Where Talos mounts the disk for volumes.
const DATA_DISK: &str = "/var/mnt/longhorn";

/// Every adjustment, in the order in which they are made.
pub(super) fn overlay(spec: &Spec) -> Vec<Adjustment> {
    let storage = &spec.storage;
    let copies = match storage.replicas {
        1 => "one copy of each volume".to_owned(),
        many => format!("{many} copies of each volume"),
    };
    let mut adjustments = vec![
        privileged(LAYER, NAMESPACE),
        class("numberOfReplicas", storage.replicas, copies),
        setting(
            "replicas",
            "default-replica-count",
            storage.replicas.to_string(),
            "the same for volumes that people make in Longhorn's UI",
        ),
    ];
    let disk = spec.nodes.iter().any(NodeSpec::has_data_disk).then(|| DATA_DISK.to_owned());
    if let Some(path) = storage.data_path.clone().or(disk) {
        let what = format!("volumes live in {path}");
        adjustments.push(setting("data_path", "default-data-path", path, &what));
    }
    if let Some(percent) = storage.over_provisioning {
        let what = format!("{percent} % of a disk may be promised to volumes");
        let key = "storage-over-provisioning-percentage";
        adjustments.push(setting("over_provisioning", key, percent.to_string(), &what));
    }
    adjustments.extend(patches(&storage.patches));
    adjustments
}

/// A parameter of the StorageClass, which the release keeps as text in a ConfigMap.
fn class(key: &'static str, value: u32, what: String) -> Adjustment {
    let setting = format!("`replicas` of {LAYER}");
    Adjustment::object(&setting, "ConfigMap", "longhorn-storageclass", what, move |object| {
        edit_text(object, "storageclass.yaml", |text| {
            text.contains(&format!("{key}:"))
                .then(|| set_line(text, key, &format!("\"{value}\"")) + "\n")
        })
    })
}

/// One of the settings that Longhorn starts with.
fn setting(key: &str, name: &'static str, value: String, what: &str) -> Adjustment {
    let setting = format!("`{key}` of {LAYER}");
    let what = format!("{what} ({name})");
    Adjustment::object(&setting, "ConfigMap", "longhorn-default-setting", what, move |object| {
        edit_text(object, "default-setting.yaml", |text| {
            Some(set_line(text, name, &format!("\"{value}\"")))
        })
    })
}

fn edit_text(object: &mut Value, file: &str, edit: impl Fn(&str) -> Option<String>) -> bool {
    let edited = object["data"][file].as_str().and_then(edit);
    if let Some(text) = edited {
        object["data"][file] = json!(text);
        return true;
    }
    false
}
