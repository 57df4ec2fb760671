//! The emulated cluster by direct calls: the API's rules, the watch, the webhook race, and each controller's story.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::durations::Draws;
use crate::turn::{Dice, Effect as AnyEffect, Hardware, HttpBody, Peer, SecretQuery};

const MASTERS: &str = "system:masters";

/// Infisical and Git as the cluster sees them.
struct Outside {
    files: BTreeMap<String, String>,
}

impl Outside {
    fn new() -> Self {
        let unit = |name: &str, more: &str| {
            format!(
                "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n\
                 metadata: {{name: {name}, namespace: flux-system}}\n\
                 spec:\n  interval: 15m\n  retryInterval: 1m\n  prune: true\n  path: ./{name}\n\
                 {more}  sourceRef: {{kind: GitRepository, name: flux-system}}\n"
            )
        };
        let text = |name: &str| {
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default}}\n"
            )
        };
        let files = [
            ("clusters/blue/apps.yaml", unit("apps", "  dependsOn: [{name: core}]\n")),
            ("clusters/blue/base.yaml", unit("base", "")),
            ("clusters/blue/core.yaml", unit("core", "  dependsOn: [{name: base}]\n")),
            ("apps/all.yaml", text("apps")),
            ("base/all.yaml", text("base")),
            ("core/all.yaml", text("core")),
        ];
        Self { files: files.map(|(path, text)| (path.to_owned(), text)).into() }
    }
}

impl Neighbours for Outside {
    fn secret(&self, query: &SecretQuery<'_>) -> Result<String, String> {
        if query.client_secret != "right" {
            return Err("Invalid credentials".to_owned());
        }
        match query.key {
            "GITHUB_TOKEN" => Ok("ghp_1".to_owned()),
            other => Err(format!("Secret with name '{other}' not found")),
        }
    }

    fn git_head(
        &self,
        _: &str,
        branch: &str,
        credentials: Option<(&str, &str)>,
    ) -> Result<String, String> {
        match (branch, credentials) {
            ("main", Some(("git", "ghp_1"))) => Ok("c0ffee".to_owned()),
            ("main", _) => Err("authentication required".to_owned()),
            _ => Err("couldn't find remote ref".to_owned()),
        }
    }

    fn git_files(&self, _: &str, commit: &str) -> Option<&BTreeMap<String, String>> {
        (commit == "c0ffee").then_some(&self.files)
    }
}

struct Rig {
    cluster: Kubernetes,
    dice: Dice,
    now: u64,
    sequence: u64,
    queue: BTreeMap<(u64, u64), AnyEffect>,
}

impl Rig {
    /// A cluster with one control plane and two workers.
    fn born() -> Self {
        let mut rig = Self {
            cluster: Kubernetes::new(),
            dice: Dice::new(1),
            now: 0,
            sequence: 0,
            queue: BTreeMap::new(),
        };
        rig.hear(&Signal::ClusterBorn { cluster: "one".into() });
        for (name, last) in [("cp-01", 1), ("worker-01", 2), ("worker-02", 3)] {
            rig.hear(&Signal::NodeJoined {
                cluster: "one".into(),
                name: name.into(),
                address: [192, 168, 1, last].into(),
                control_plane: last == 1,
                data_disk: last != 1,
                extensions: vec!["siderolabs/iscsi-tools".into()],
                version: "v1.36.3".into(),
                boot_id: "1".into(),
                hardware: Hardware {
                    cores: 4,
                    memory_mib: 8192,
                    disk_gib: 40,
                    uuid: format!("00000000-0000-4000-8000-00000000000{last}"),
                    talos: "v1.13.9".into(),
                },
            });
        }
        rig
    }

    fn turn<T>(&mut self, act: impl FnOnce(&mut Kubernetes, &mut Turn<'_>) -> T) -> T {
        let (mut due, mut signals) = (Vec::new(), Vec::new());
        let mut turn = Turn {
            now: self.now,
            dice: &mut self.dice,
            due: &mut due,
            signals: &mut signals,
            draws: &mut Draws::default(),
        };
        let result = act(&mut self.cluster, &mut turn);
        for (delay, effect) in due {
            self.sequence += 1;
            self.queue.insert((self.now + delay, self.sequence), effect);
        }
        result
    }

    fn hear(&mut self, signal: &Signal) {
        self.turn(|cluster, turn| cluster.heard(turn, signal));
    }

    /// Lets this many milliseconds pass.
    fn pass(&mut self, milliseconds: u64) {
        let end = self.now + milliseconds;
        while let Some(entry) = self.queue.first_entry().filter(|e| e.key().0 <= end) {
            self.now = entry.key().0;
            let AnyEffect::Kubernetes(effect) = entry.remove() else { continue };
            self.turn(|cluster, turn| cluster.fire(turn, effect, &Outside::new()));
        }
        self.now = end;
    }

    fn raw(&mut self, method: &str, path: &str, media: &str, body: &Value) -> HttpReply {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let call = HttpCall {
            method: method.into(),
            host: "192.168.1.210".into(),
            path: path.into(),
            query: query.into(),
            headers: vec![("content-type".into(), media.into())],
            body: body.to_string().into_bytes(),
            peer: Some(Peer { common_name: "admin".into(), organizations: vec![MASTERS.into()] }),
        };
        self.turn(|cluster, turn| cluster.call(turn, &call, &Outside::new()))
    }

    fn call(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let media = match method {
            "PATCH" => "application/apply-patch+yaml",
            _ => "application/json",
        };
        let reply = self.raw(method, path, media, body);
        (reply.status, whole(&reply))
    }

    fn get(&mut self, path: &str) -> Value {
        let (status, value) = self.call("GET", path, &Value::Null);
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    fn apply(&mut self, path: &str, object: &Value) -> (u16, Value) {
        self.call("PATCH", &format!("{path}?fieldManager=castle&force=true"), object)
    }

    fn good(&mut self, path: &str, object: &Value) {
        let (status, value) = self.apply(path, object);
        assert!(matches!(status, 200 | 201), "{path}: {value}");
    }

    fn namespace(&mut self, name: &str) {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.good(&format!("/api/v1/namespaces/{name}"), &object);
    }

    fn definition(&mut self, group: &str, version: &str, plural: &str, kind: &str, scope: &str) {
        let name = format!("{plural}.{group}");
        let object = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
            "spec": {"group": group, "scope": scope, "names": {"plural": plural, "kind": kind},
                "versions": [{"name": version, "served": true, "storage": true}]},
        });
        self.good(
            &format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"),
            &object,
        );
    }

    fn deployment(&mut self, namespace: &str, name: &str) {
        let object = deployment(namespace, name, 1);
        self.good(&format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}"), &object);
    }
}

fn whole(reply: &HttpReply) -> Value {
    match &reply.body {
        HttpBody::Whole(bytes) => serde_json::from_slice(bytes).unwrap_or(Value::Null),
        _ => panic!("a watch"),
    }
}

fn deployment(namespace: &str, name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "a:1"}]}}},
    })
}

fn config_map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": data})
}

const MAP: &str = "/api/v1/namespaces/default/configmaps/a";

#[test]
fn strangers_are_turned_away() {
    let mut rig = Rig::born();
    let mut call = HttpCall {
        method: "GET".into(),
        host: String::new(),
        path: "/readyz".into(),
        query: String::new(),
        headers: Vec::new(),
        body: Vec::new(),
        peer: None,
    };
    let reply = rig.turn(|c, t| c.call(t, &call, &Outside::new()));
    assert_eq!((reply.status, whole(&reply)["message"].clone()), (401, json!("Unauthorized")));
    call.peer = Some(Peer { common_name: "eve".into(), organizations: vec!["os:reader".into()] });
    assert_eq!(rig.turn(|c, t| c.call(t, &call, &Outside::new())).status, 200);
    call.path = "/metrics".into();
    assert_eq!(rig.turn(|c, t| c.call(t, &call, &Outside::new())).status, 403);
    call.path = "/readyz".into();
    call.peer = Some(Peer { common_name: "admin".into(), organizations: vec![MASTERS.into()] });
    let reply = rig.turn(|c, t| c.call(t, &call, &Outside::new()));
    assert_eq!(reply.body, HttpBody::Whole(Bytes::from("ok")));
    assert!(!reply.mutated);
}

#[test]
fn apply_creates_updates_and_tries_out() {
    let mut rig = Rig::born();
    let dry = format!("{MAP}?fieldManager=castle&force=true&dryRun=All");
    let (status, tried) = rig.call("PATCH", &dry, &config_map(&json!({"x": "1"})));
    assert_eq!((status, &tried["data"]["x"]), (201, &json!("1")));
    assert_eq!(rig.call("GET", MAP, &Value::Null).0, 404, "a dry run stores nothing");
    let (status, made) = rig.apply(MAP, &config_map(&json!({"x": "1", "y": "2"})));
    assert_eq!(status, 201);
    assert!(!made["metadata"]["uid"].as_str().unwrap().is_empty());
    assert_eq!(made["metadata"]["managedFields"][0]["manager"], "castle");
    let (status, same) = rig.apply(MAP, &config_map(&json!({"x": "1", "y": "2"})));
    assert_eq!(
        (status, &same["metadata"]["resourceVersion"]),
        (200, &made["metadata"]["resourceVersion"])
    );
    let (_, changed) = rig.apply(MAP, &config_map(&json!({"x": "3"})));
    assert_eq!(changed["data"], json!({"x": "3"}), "a field that is left out goes");
    assert_ne!(changed["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    let (status, other) =
        rig.call("PATCH", &format!("{MAP}?fieldManager=flux"), &config_map(&json!({"x": "9"})));
    assert_eq!(
        (status, other["message"].as_str().unwrap()),
        (409, "Apply failed with 1 conflict: conflict with \"castle\": .data.x")
    );
}

#[test]
fn other_writes_and_their_refusals() {
    let mut rig = Rig::born();
    let (status, made) =
        rig.call("POST", "/api/v1/namespaces/default/configmaps", &config_map(&json!({"x": "1"})));
    assert_eq!(status, 201);
    let (status, again) =
        rig.call("POST", "/api/v1/namespaces/default/configmaps", &config_map(&json!({})));
    assert_eq!((status, &again["message"]), (409, &json!("configmaps \"a\" already exists")));
    let merged =
        rig.raw("PATCH", MAP, "application/merge-patch+json", &json!({"data": {"z": "2"}}));
    assert_eq!(whole(&merged)["data"], json!({"x": "1", "z": "2"}));
    assert!(merged.mutated);
    let (status, stale) = rig.call("PUT", MAP, &made);
    assert_eq!((status, &stale["reason"]), (409, &json!("Conflict")));
    let missing = rig.apply("/api/v1/namespaces/nowhere/configmaps/a",
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "nowhere"}}));
    assert_eq!(
        (missing.0, &missing.1["message"]),
        (404, &json!("namespaces \"nowhere\" not found"))
    );
    let wrong =
        rig.apply(MAP, &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}));
    assert_eq!(wrong.0, 400);
    let mut broken = deployment("default", "d", 1);
    broken["spec"]["selector"] = json!({});
    let invalid = rig.apply("/apis/apps/v1/namespaces/default/deployments/d", &broken);
    assert_eq!(
        (invalid.0, &invalid.1["message"]),
        (
            422,
            &json!(
                "Deployment.apps \"d\" is invalid: spec.selector: Invalid value: {}: empty selector is invalid for deployment"
            )
        )
    );
    assert_eq!(rig.call("DELETE", MAP, &Value::Null).0, 200);
    assert_eq!(rig.call("DELETE", MAP, &Value::Null).1["message"], "configmaps \"a\" not found");
}

#[test]
fn a_kind_is_known_a_second_after_its_definition() {
    let mut rig = Rig::born();
    let path = "/apis/metallb.io/v1beta1/namespaces/default/ipaddresspools/p";
    let pool = json!({"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool",
        "metadata": {"name": "p", "namespace": "default"}, "spec": {"addresses": ["10.0.0.1-10.0.0.9"]}});
    assert_eq!(rig.call("GET", "/apis/metallb.io/v1beta1", &Value::Null).0, 404);
    rig.definition("metallb.io", "v1beta1", "ipaddresspools", "IPAddressPool", "Namespaced");
    let (status, early) = rig.apply(path, &pool);
    assert_eq!(
        (status, &early["message"]),
        (404, &Value::Null),
        "an unknown group is told in plain text"
    );
    rig.pass(1_500);
    assert_eq!(rig.get("/apis/metallb.io/v1beta1")["resources"][0]["kind"], "IPAddressPool");
    assert!(rig.get("/apis")["groups"].to_string().contains("metallb.io"));
    assert_eq!(rig.apply(path, &pool).0, 201);
}

#[test]
fn nodes_join_and_turn_ready_with_their_network() {
    let mut rig = Rig::born();
    let why = rig.get("/api/v1/nodes/cp-01")["status"]["conditions"][0]["message"].clone();
    assert!(why.as_str().unwrap().contains("cni plugin not initialized"), "{why}");
    rig.pass(90_000);
    assert!(rig.cluster.node_names().all(|(_, ready)| ready));
    let flannel = rig.get("/apis/apps/v1/namespaces/kube-system/daemonsets/kube-flannel");
    assert_eq!(flannel["status"]["numberAvailable"], 3);
    let dns = rig.get("/apis/apps/v1/namespaces/kube-system/deployments/coredns");
    assert_eq!(dns["status"]["availableReplicas"], 2);
    rig.hear(&Signal::NodeLost { cluster: "one".into(), name: "worker-01".into() });
    rig.pass(39_000);
    assert!(rig.cluster.node_names().all(|(_, ready)| ready), "silence is noticed late");
    rig.pass(2_000);
    let lost = rig.cluster.node_names().find(|(_, ready)| !ready).map(|(name, _)| name.to_owned());
    assert_eq!(lost.as_deref(), Some("worker-01"));
    let available = |rig: &mut Rig| {
        let path = "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-flannel";
        rig.get(path)["status"]["numberAvailable"].clone()
    };
    assert_eq!(available(&mut rig), 2);
    rig.hear(&Signal::NodeJoined {
        cluster: "one".into(),
        name: "worker-01".into(),
        address: [192, 168, 1, 2].into(),
        control_plane: false,
        data_disk: true,
        extensions: Vec::new(),
        version: "v1.36.4".into(),
        boot_id: "1".into(),
        hardware: Hardware::default(),
    });
    rig.pass(60_000);
    assert!(rig.cluster.node_names().all(|(_, ready)| ready));
    assert_eq!(available(&mut rig), 3, "its pods start again with it");
    let version = |rig: &mut Rig, path: &str| rig.get(path);
    let node = version(&mut rig, "/api/v1/nodes/worker-01");
    assert_eq!(node["status"]["nodeInfo"]["kubeletVersion"], "v1.36.4");
    assert_eq!(
        version(&mut rig, "/version")["gitVersion"],
        "v1.36.3",
        "the server is that of the control planes"
    );
}

#[test]
fn a_node_tells_what_its_machine_is_and_when_it_was_heard_of() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    let node = rig.get("/api/v1/nodes/worker-01");
    let status = &node["status"];
    assert_eq!(
        (&status["capacity"]["cpu"], &status["capacity"]["memory"]),
        (&json!("4"), &json!("8388608Ki"))
    );
    assert_eq!(
        (&status["allocatable"]["cpu"], &status["allocatable"]["memory"]),
        (&json!("3950m"), &json!("7892992Ki"))
    );
    assert_eq!(status["nodeInfo"]["osImage"], "Talos (v1.13.9)");
    assert_eq!(status["nodeInfo"]["machineID"], "00000000000040008000000000000002");
    let ready = &status["conditions"][0];
    assert_eq!(ready["lastHeartbeatTime"], ready["lastTransitionTime"]);
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/worker-01";
    let lease = rig.get(path);
    assert_eq!(lease["spec"]["holderIdentity"], "worker-01");
    // A lease that nobody changes wakes nobody.
    rig.pass(600_000);
    assert_eq!(rig.get(path)["metadata"]["resourceVersion"], lease["metadata"]["resourceVersion"]);
    rig.call("DELETE", "/api/v1/nodes/worker-01", &Value::Null);
    rig.pass(5_000);
    assert_eq!(rig.call("GET", path, &Value::Null).0, 404, "it goes with its node");
}

#[test]
fn another_birth_forgets_everything() {
    let mut rig = Rig::born();
    rig.good(MAP, &config_map(&json!({})));
    rig.hear(&Signal::ClusterBorn { cluster: "two".into() });
    assert_eq!(rig.call("GET", MAP, &Value::Null).0, 404);
    rig.pass(60_000);
    assert_eq!(
        rig.cluster.node_names().count(),
        0,
        "what the first cluster left due comes to nothing"
    );
}

#[test]
fn a_namespace_empties_before_it_goes() {
    let mut rig = Rig::born();
    rig.namespace("a");
    rig.good("/api/v1/namespaces/a/configmaps/x",
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "a"}}));
    rig.call("DELETE", "/api/v1/namespaces/a", &Value::Null);
    assert_eq!(rig.get("/api/v1/namespaces/a")["status"]["phase"], "Terminating");
    let (status, no) = rig.apply("/api/v1/namespaces/a/configmaps/y",
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "y", "namespace": "a"}}));
    assert_eq!(status, 403);
    assert!(no["message"].as_str().unwrap().contains("because it is being terminated"), "{no}");
    rig.pass(6_000);
    assert_eq!(rig.call("GET", "/api/v1/namespaces/a", &Value::Null).0, 404);
}

#[test]
fn what_is_owned_goes_with_its_owner_and_finalizers_hold() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    rig.deployment("default", "web");
    rig.pass(1_000);
    let pods = "/api/v1/namespaces/default/pods?labelSelector=app%3Dweb";
    assert_eq!(rig.get(pods)["items"].as_array().unwrap().len(), 1);
    rig.call("DELETE", "/apis/apps/v1/namespaces/default/deployments/web", &Value::Null);
    rig.pass(2_000);
    assert_eq!(rig.get(pods)["items"], json!([]));
    let mut held = config_map(&json!({}));
    held["metadata"]["finalizers"] = json!(["x/y"]);
    rig.good(MAP, &held);
    rig.call("DELETE", MAP, &Value::Null);
    assert!(rig.get(MAP)["metadata"]["deletionTimestamp"].is_string());
    rig.raw(
        "PATCH",
        MAP,
        "application/merge-patch+json",
        &json!({"metadata": {"finalizers": null}}),
    );
    assert_eq!(rig.call("GET", MAP, &Value::Null).0, 404);
}

#[test]
fn watches_go_on_from_their_place() {
    let mut rig = Rig::born();
    rig.good(MAP, &config_map(&json!({"x": "1"})));
    let from =
        rig.get("/api/v1/configmaps")["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let open = |rig: &mut Rig, from: &str| {
        let path = format!(
            "/api/v1/namespaces/default/configmaps?watch=true&allowWatchBookmarks=true&resourceVersion={from}"
        );
        match rig.raw("GET", &path, "", &Value::Null).body {
            HttpBody::Watch(cursor) => *cursor,
            _ => panic!("no watch"),
        }
    };
    let words = |rig: &Rig, cursor: &mut WatchCursor| -> Option<Vec<String>> {
        let lines = rig.cluster.watch_lines(cursor)?;
        Some(
            lines
                .iter()
                .map(|line| {
                    let event: Value = serde_json::from_slice(line).unwrap();
                    format!("{} {}", event["type"].as_str().unwrap(), event["object"]["data"]["x"])
                })
                .collect(),
        )
    };
    let mut cursor = open(&mut rig, &from);
    assert_eq!(words(&rig, &mut cursor).unwrap(), Vec::<String>::new());
    rig.good(MAP, &config_map(&json!({"x": "2"})));
    rig.call("DELETE", MAP, &Value::Null);
    assert_eq!(words(&rig, &mut cursor).unwrap(), ["MODIFIED \"2\"", "DELETED \"2\""]);
    rig.pass(61_000);
    assert_eq!(words(&rig, &mut cursor).unwrap(), ["BOOKMARK null"]);
    assert_eq!(words(&rig, &mut cursor).unwrap(), Vec::<String>::new());
    for round in 0..2_100 {
        rig.good(MAP, &config_map(&json!({"x": round.to_string()})));
    }
    let mut old = open(&mut rig, &from);
    let lines = rig.cluster.watch_lines(&mut old).unwrap();
    let event: Value = serde_json::from_slice(&lines[0]).unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(rig.cluster.watch_lines(&mut old), None);
    rig.hear(&Signal::ClusterBorn { cluster: "two".into() });
    assert_eq!(words(&rig, &mut cursor), None, "a watch ends with its cluster");
}

#[test]
fn saved_and_loaded_it_is_the_same() {
    let mut rig = Rig::born();
    rig.pass(40_000);
    rig.deployment("default", "web");
    rig.pass(3_000);
    let text = serde_json::to_string(&rig.cluster).unwrap();
    assert_eq!(serde_json::from_str::<Kubernetes>(&text).unwrap(), rig.cluster);
}

mod access;
mod api;
mod columns;
mod kinds;
mod pods;
mod power;
mod stories;
