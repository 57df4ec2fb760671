//! The columns of built-in kinds and what stands in them, as the API server's own printers do it.

use serde_json::{Value, json};

use super::Clock;

/// What stands where there is nothing.
const NONE: &str = "<none>";

/// The columns of a built-in kind; a `+` is before those for `-o wide`, a `#` before numbers.
pub(super) fn columns(kind: &str) -> impl Iterator<Item = &'static str> {
    let columns = match kind {
        "Node" => {
            "Name|Status|Roles|Age|Version|+Internal-IP|+External-IP|+OS-Image|+Kernel-Version|+Container-Runtime"
        }
        "Pod" => "Name|Ready|Status|Restarts|Age|+IP|+Node|+Nominated Node|+Readiness Gates",
        "Deployment" => "Name|Ready|Up-to-date|Available|Age|+Containers|+Images|+Selector",
        "DaemonSet" => {
            "Name|#Desired|#Current|#Ready|#Up-to-date|#Available|Node Selector|Age|+Containers|+Images|+Selector"
        }
        "ReplicaSet" => "Name|#Desired|#Current|#Ready|Age|+Containers|+Images|+Selector",
        "StatefulSet" => "Name|Ready|Age|+Containers|+Images",
        "Service" => "Name|Type|Cluster-IP|External-IP|Port(s)|Age|+Selector",
        "Event" => {
            "Last Seen|Type|Reason|Object|+Subobject|+Source|Message|+First Seen|+Count|+Name"
        }
        "PersistentVolumeClaim" => {
            "Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|+VolumeMode"
        }
        "StorageClass" => {
            "Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age"
        }
        "Namespace" => "Name|Status|Age",
        "ConfigMap" => "Name|Data|Age",
        "Secret" => "Name|Type|Data|Age",
        "ServiceAccount" => "Name|Age",
        "Lease" => "Name|Holder|Age",
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => "Name|#Webhooks|Age",
        _ => "Name|Created At",
    };
    columns.split('|')
}

/// A row of a built-in kind.
pub(super) fn cells(kind: &str, object: &Value, clock: Clock) -> Vec<Value> {
    let metadata = &object["metadata"];
    let (name, age) = (metadata["name"].clone(), clock.since(&metadata["creationTimestamp"]));
    let (spec, status) = (&object["spec"], &object["status"]);
    match kind {
        "Node" => node(object, name, age),
        "Pod" => pod(object, name, age, clock),
        "Deployment" => {
            let ready = format!("{}/{}", count(&status["readyReplicas"]), count(&spec["replicas"]));
            let mut row = vec![name, ready.into()];
            row.extend([&status["updatedReplicas"], &status["availableReplicas"]].map(number));
            row.push(age);
            row.extend(template(spec, true));
            row
        }
        "DaemonSet" => {
            let mut row = vec![name];
            let counts = ["desiredNumberScheduled", "currentNumberScheduled", "numberReady"];
            row.extend(counts.map(|key| number(&status[key])));
            row.extend(["updatedNumberScheduled", "numberAvailable"].map(|k| number(&status[k])));
            row.push(pairs(&spec["template"]["spec"]["nodeSelector"]).into());
            row.push(age);
            row.extend(template(spec, true));
            row
        }
        "ReplicaSet" => {
            let mut row = vec![name, number(&spec["replicas"])];
            row.extend([&status["replicas"], &status["readyReplicas"]].map(number));
            row.push(age);
            row.extend(template(spec, true));
            row
        }
        "StatefulSet" => {
            let ready = format!("{}/{}", count(&status["readyReplicas"]), count(&spec["replicas"]));
            let mut row = vec![name, ready.into(), age];
            row.extend(template(spec, false));
            row
        }
        "Service" => service(object, name, age),
        "Event" => event(object, name, clock),
        "PersistentVolumeClaim" => claim(object, name, age),
        "StorageClass" => storage_class(object, age),
        "Namespace" => vec![name, status["phase"].clone(), age],
        "ConfigMap" => {
            vec![name, (entries(&object["data"]) + entries(&object["binaryData"])).into(), age]
        }
        "Secret" => vec![name, object["type"].clone(), entries(&object["data"]).into(), age],
        "ServiceAccount" => vec![name, age],
        "Lease" => vec![name, text(&spec["holderIdentity"], "").into(), age],
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            vec![name, entries(&object["webhooks"]).into(), age]
        }
        _ => vec![name, metadata["creationTimestamp"].clone()],
    }
}

fn node(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let status = &object["status"];
    let condition = list(&status["conditions"]).find(|c| c["type"] == "Ready");
    let mut state = match condition.map(|c| c["status"].as_str().unwrap_or_default()) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if object["spec"]["unschedulable"] == true {
        state += ",SchedulingDisabled";
    }
    let labels = object["metadata"]["labels"].as_object();
    let roles = labels.into_iter().flatten().filter_map(|(label, value)| {
        let role = label.strip_prefix("node-role.kubernetes.io/").filter(|role| !role.is_empty());
        role.or_else(|| (label == "kubernetes.io/role").then(|| value.as_str())?)
    });
    let mut roles: Vec<&str> = roles.collect();
    roles.sort_unstable();
    let roles = if roles.is_empty() { NONE.to_owned() } else { roles.join(",") };
    let address = |kind: &str| -> Value {
        let found = list(&status["addresses"]).find(|address| address["type"] == kind);
        found.map_or(NONE.into(), |address| address["address"].clone())
    };
    let info = |key: &str| text(&status["nodeInfo"][key], "<unknown>").into();
    vec![
        name,
        state.into(),
        roles.into(),
        age,
        text(&status["nodeInfo"]["kubeletVersion"], "").into(),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

fn pod(object: &Value, name: Value, age: Value, clock: Clock) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let (reason, ready, restarts, last) = life(object);
    let total = list(&spec["containers"]).count();
    let restarts = match last {
        Some(last) if restarts > 0 => format!("{restarts} ({} ago)", clock.ago(last)),
        _ => restarts.to_string(),
    };
    let gates = list(&spec["readinessGates"]).count();
    let gates = if gates == 0 { NONE.to_owned() } else { format!("0/{gates}") };
    vec![
        name,
        format!("{ready}/{total}").into(),
        reason.into(),
        restarts.into(),
        age,
        text(&status["podIP"], NONE).into(),
        text(&spec["nodeName"], NONE).into(),
        text(&status["nominatedNodeName"], NONE).into(),
        gates.into(),
    ]
}

/// What a pod is doing in one word, how many of its containers are ready, how often they began anew and when last.
fn life(pod: &Value) -> (String, usize, u64, Option<&str>) {
    let status = &pod["status"];
    let mut reason = text(&status["reason"], &text(&status["phase"], "")).clone();
    if let Some(why) = beginning(pod) {
        let restarts = list(&status["initContainerStatuses"]).map(|c| count(&c["restartCount"]));
        return (ended(pod, why), 0, restarts.sum(), None);
    }
    let (mut ready, mut restarts, mut runs, mut last) = (0, 0, false, None);
    let containers: Vec<&Value> = list(&status["containerStatuses"]).collect();
    for container in containers.into_iter().rev() {
        restarts += count(&container["restartCount"]);
        last = last.max(container["lastState"]["terminated"]["finishedAt"].as_str());
        let state = &container["state"];
        if let Some(why) = state["waiting"]["reason"].as_str() {
            why.clone_into(&mut reason);
        } else if state["terminated"].is_object() {
            reason = stopped(&state["terminated"], "");
        } else if container["ready"] == true && state["running"].is_object() {
            runs = true;
            ready += 1;
        }
    }
    if reason == "Completed" && runs {
        let conditions = &status["conditions"];
        let is = list(conditions).any(|c| c["type"] == "Ready" && c["status"] == "True");
        if is { "Running" } else { "NotReady" }.clone_into(&mut reason);
    }
    (ended(pod, reason), ready, restarts, last)
}

/// What a pod's first containers are at, while they are.
fn beginning(pod: &Value) -> Option<String> {
    let total = list(&pod["spec"]["initContainers"]).count();
    for (number, container) in list(&pod["status"]["initContainerStatuses"]).enumerate() {
        let state = &container["state"];
        if state["terminated"].is_object() {
            if state["terminated"]["exitCode"] == 0 {
                continue;
            }
            return Some(stopped(&state["terminated"], "Init:"));
        }
        return Some(match state["waiting"]["reason"].as_str() {
            Some(why) if why != "PodInitializing" => format!("Init:{why}"),
            _ => format!("Init:{number}/{total}"),
        });
    }
    None
}

fn stopped(terminated: &Value, before: &str) -> String {
    match (terminated["reason"].as_str(), count(&terminated["signal"])) {
        (Some(reason), _) if !reason.is_empty() => format!("{before}{reason}"),
        (_, 0) => format!("{before}ExitCode:{}", count(&terminated["exitCode"])),
        (_, signal) => format!("{before}Signal:{signal}"),
    }
}

fn ended(pod: &Value, reason: String) -> String {
    if pod["metadata"]["deletionTimestamp"].is_null() {
        return reason;
    }
    match (pod["status"]["reason"].as_str(), pod["status"]["phase"].as_str()) {
        (Some("NodeLost"), _) => "Unknown".to_owned(),
        (_, Some("Succeeded" | "Failed")) => reason,
        _ => "Terminating".to_owned(),
    }
}

fn service(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let kind = text(&spec["type"], "ClusterIP");
    let own = list(&spec["externalIPs"]).filter_map(Value::as_str);
    let outside = match kind.as_str() {
        "LoadBalancer" => {
            let given = list(&status["loadBalancer"]["ingress"])
                .filter_map(|place| place["ip"].as_str().or(place["hostname"].as_str()));
            let all: Vec<&str> = given.chain(own).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => text(&spec["externalName"], ""),
        _ => {
            let all: Vec<&str> = own.collect();
            if all.is_empty() { NONE.to_owned() } else { all.join(",") }
        }
    };
    let ports: Vec<String> = list(&spec["ports"])
        .map(|port| {
            let (number, protocol) = (count(&port["port"]), text(&port["protocol"], "TCP"));
            match count(&port["nodePort"]) {
                0 => format!("{number}/{protocol}"),
                node => format!("{number}:{node}/{protocol}"),
            }
        })
        .collect();
    let ports = if ports.is_empty() { NONE.to_owned() } else { ports.join(",") };
    vec![
        name,
        kind.into(),
        text(&spec["clusterIP"], NONE).into(),
        outside.into(),
        ports.into(),
        age,
        pairs(&spec["selector"]).into(),
    ]
}

fn event(object: &Value, name: Value, clock: Clock) -> Vec<Value> {
    let about = &object["involvedObject"];
    let seen = |key: &str| match object[key].as_str().or(object["eventTime"].as_str()) {
        Some(stamp) => clock.ago(stamp),
        None => "<unknown>".to_owned(),
    };
    let place = format!("{}/{}", text(&about["kind"], "").to_lowercase(), text(&about["name"], ""));
    let source = [&object["source"]["component"], &object["source"]["host"]];
    let source: Vec<&str> =
        source.into_iter().filter_map(|part| part.as_str()).filter(|p| !p.is_empty()).collect();
    vec![
        seen("lastTimestamp").into(),
        object["type"].clone(),
        object["reason"].clone(),
        place.into(),
        text(&about["fieldPath"], "").into(),
        source.join(", ").into(),
        text(&object["message"], "").trim().into(),
        seen("firstTimestamp").into(),
        count(&object["count"]).max(1).into(),
        name,
    ]
}

fn claim(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let deleted = !object["metadata"]["deletionTimestamp"].is_null();
    let phase = if deleted { "Terminating".to_owned() } else { text(&status["phase"], "") };
    let bound = !text(&spec["volumeName"], "").is_empty();
    let modes: Vec<&str> = list(&status["accessModes"])
        .filter_map(Value::as_str)
        .filter(|_| bound)
        .map(|mode| match mode {
            "ReadWriteOnce" => "RWO",
            "ReadOnlyMany" => "ROX",
            "ReadWriteMany" => "RWX",
            "ReadWriteOncePod" => "RWOP",
            other => other,
        })
        .collect();
    let capacity = if bound { text(&status["capacity"]["storage"], "") } else { String::new() };
    vec![
        name,
        phase.into(),
        text(&spec["volumeName"], "").into(),
        capacity.into(),
        modes.join(",").into(),
        text(&spec["storageClassName"], "").into(),
        text(&spec["volumeAttributesClassName"], "<unset>").into(),
        age,
        text(&spec["volumeMode"], "<unset>").into(),
    ]
}

fn storage_class(object: &Value, age: Value) -> Vec<Value> {
    let annotation = "storageclass.kubernetes.io/is-default-class";
    let mut name = text(&object["metadata"]["name"], "");
    if object["metadata"]["annotations"][annotation] == "true" {
        name += " (default)";
    }
    vec![
        name.into(),
        object["provisioner"].clone(),
        text(&object["reclaimPolicy"], "Delete").into(),
        text(&object["volumeBindingMode"], "<unset>").into(),
        json!(object["allowVolumeExpansion"].as_bool().unwrap_or_default()),
        age,
    ]
}

/// Containers, images and, where it is shown, the selector of a workload.
fn template(spec: &Value, selector: bool) -> Vec<Value> {
    let joined = |key: &str| -> Value {
        let all = list(&spec["template"]["spec"]["containers"]);
        all.filter_map(|container| container[key].as_str()).collect::<Vec<_>>().join(",").into()
    };
    let mut cells = vec![joined("name"), joined("image")];
    if selector {
        cells.push(pairs(&spec["selector"]["matchLabels"]).into());
    }
    cells
}

/// `a=b,c=d`, in the order of the names.
fn pairs(map: &Value) -> String {
    let Some(map) = map.as_object().filter(|map| !map.is_empty()) else { return NONE.to_owned() };
    let mut all: Vec<String> =
        map.iter().map(|(name, value)| format!("{name}={}", text(value, ""))).collect();
    all.sort_unstable();
    all.join(",")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn entries(value: &Value) -> usize {
    value.as_array().map(Vec::len).or_else(|| Some(value.as_object()?.len())).unwrap_or_default()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn number(value: &Value) -> Value {
    count(value).into()
}

fn text(value: &Value, or: &str) -> String {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or(or).to_owned()
}
