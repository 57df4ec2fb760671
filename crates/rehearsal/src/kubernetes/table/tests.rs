//! What people read of rows, and the laws of ages and paths.

use super::age::{human, moment};
use super::cells::{cells, columns};
use super::*;

/// 2026-02-02T00:10:00Z.
const NOW: Clock = Clock(EPOCH + 600_000);

fn row(kind: &str, object: &Value) -> String {
    let cells = cells(kind, object, NOW);
    assert_eq!(cells.len(), columns(kind).count(), "{kind}");
    let shown = cells.iter().map(|cell| cell.as_str().map_or(cell.to_string(), str::to_owned));
    shown.collect::<Vec<_>>().join(" | ")
}

fn made(kind: &str, rest: &Value) -> Value {
    let mut object = json!({"kind": kind, "metadata": {"name": "x", "creationTimestamp": "2026-02-02T00:05:00Z"}});
    for (key, value) in rest.as_object().unwrap() {
        match value.as_object().filter(|_| key == "metadata") {
            Some(more) => object["metadata"].as_object_mut().unwrap().extend(more.clone()),
            None => object[key] = value.clone(),
        }
    }
    object
}

#[test]
fn ages_are_in_the_words_of_kubectl() {
    assert_eq!(moment("2026-02-02T00:00:00Z"), Some(i64::try_from(EPOCH / 1000).unwrap()));
    assert_eq!(moment("1970-01-01T00:00:01.5Z"), Some(1));
    assert_eq!(moment("2000-02-29T12:00:00Z"), Some(951_825_600));
    assert_eq!(moment("yesterday"), None);
    for (seconds, words) in [
        (-5, "<invalid>"),
        (-1, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (28_000, "7h46m"),
        (28_800, "8h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (180_000, "2d2h"),
        (691_200, "8d"),
        (63_071_999, "729d"),
        (63_072_000, "2y"),
        (63_158_400, "2y1d"),
        (252_288_000, "8y"),
    ] {
        assert_eq!(human(seconds), words, "{seconds}");
    }
}

#[test]
fn pods_tell_what_they_are_at() {
    let pod = |status: Value| {
        made(
            "Pod",
            &json!({"spec": {"nodeName": "n", "containers": [{}, {}], "initContainers": [{}]}, "status": status}),
        )
    };
    let state =
        |state: Value, ready: bool| json!({"ready": ready, "restartCount": 0, "state": state});
    let running = state(json!({"running": {"startedAt": "x"}}), true);
    let shown = |status: Value| row("Pod", &pod(status));
    assert_eq!(
        shown(
            json!({"phase": "Running", "podIP": "10.0.0.9", "containerStatuses": [running, running]})
        ),
        "x | 2/2 | Running | 0 | 5m | 10.0.0.9 | n | <none> | <none>"
    );
    let waiting = state(json!({"waiting": {"reason": "ImagePullBackOff"}}), false);
    assert!(
        shown(json!({"phase": "Pending", "containerStatuses": [waiting, running]}))
            .starts_with("x | 1/2 | ImagePullBackOff | 0")
    );
    let begins = state(json!({"waiting": {"reason": "PodInitializing"}}), false);
    assert!(
        shown(json!({"phase": "Pending", "initContainerStatuses": [begins]}))
            .starts_with("x | 0/2 | Init:0/1 | 0")
    );
    let mut again = running.clone();
    again["restartCount"] = 3.into();
    again["lastState"] = json!({"terminated": {"finishedAt": "2026-02-02T00:09:50Z"}});
    assert!(
        shown(json!({"phase": "Running", "containerStatuses": [again, running]}))
            .contains("| Running | 3 (10s ago) | 5m")
    );
    let mut going = pod(json!({"phase": "Running", "containerStatuses": [running, running]}));
    going["metadata"]["deletionTimestamp"] = "2026-02-02T00:09:00Z".into();
    assert!(row("Pod", &going).contains("2/2 | Terminating"));
}

#[test]
fn rows_of_other_kinds() {
    let shown = |kind: &str, rest: Value| row(kind, &made(kind, &rest));
    let lines = [
        shown(
            "Node",
            json!({
                "metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}, "spec": {"unschedulable": true},
                "status": {"conditions": [{"type": "Ready", "status": "True"}], "addresses": [{"type": "InternalIP", "address": "127.0.1.211"}],
                    "nodeInfo": {"kubeletVersion": "v1.36.3", "osImage": "Talos (v1.13.9)"}},
            }),
        ),
        shown(
            "Deployment",
            json!({"spec": {"replicas": 2, "selector": {"matchLabels": {"b": "2", "a": "1"}}, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}, "status": {"readyReplicas": 1, "updatedReplicas": 2}}),
        ),
        shown("DaemonSet", json!({"status": {"desiredNumberScheduled": 5, "numberReady": 4}})),
        shown("StatefulSet", json!({"spec": {"replicas": 3}})),
        shown(
            "Service",
            json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.5", "ports": [{"port": 80, "nodePort": 30080}, {"port": 53, "protocol": "UDP"}]}}),
        ),
        shown("Service", json!({"spec": {"clusterIP": "None", "selector": {"app": "web"}}})),
        shown("Namespace", json!({"status": {"phase": "Active"}})),
        shown(
            "PersistentVolumeClaim",
            json!({"spec": {"volumeName": "pvc-1", "storageClassName": "longhorn", "volumeMode": "Filesystem"}, "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}}),
        ),
        shown(
            "StorageClass",
            json!({"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "driver.longhorn.io", "volumeBindingMode": "Immediate", "allowVolumeExpansion": true}),
        ),
        shown(
            "Event",
            json!({"type": "Warning", "reason": "BackOff", "message": "Back-off\n", "involvedObject": {"kind": "Pod", "name": "web"}, "source": {"component": "kubelet"}, "lastTimestamp": "2026-02-02T00:09:00Z", "firstTimestamp": "2026-02-02T00:08:00Z", "count": 2}),
        ),
        shown("Secret", json!({"type": "Opaque", "data": {"a": "", "b": ""}})),
        shown("CustomResourceDefinition", json!({})),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
    x | Ready,SchedulingDisabled | control-plane | 5m | v1.36.3 | 127.0.1.211 | <none> | Talos (v1.13.9) | <unknown> | <unknown>
    x | 1/2 | 2 | 0 | 5m | c | i | a=1,b=2
    x | 5 | 0 | 4 | 0 | 0 | <none> | 5m |  |  | <none>
    x | 0/3 | 5m |  | 
    x | LoadBalancer | 10.96.0.5 | <pending> | 80:30080/TCP,53/UDP | 5m | <none>
    x | ClusterIP | None | <none> | <none> | 5m | app=web
    x | Active | 5m
    x | Bound | pvc-1 | 1Gi | RWO | longhorn | <unset> | 5m | Filesystem
    x (default) | driver.longhorn.io | Delete | Immediate | true | 5m
    60s | Warning | BackOff | pod/web |  | kubelet | Back-off | 2m | 2 | x
    x | Opaque | 2 | 5m
    x | 2026-02-02T00:05:00Z
    ");
}

fn column(name: &str, kind: &str, path: &str) -> Value {
    json!({"name": name, "type": kind, "jsonPath": path})
}

#[test]
fn a_definition_gives_its_kind_columns() {
    let mut size = column("Size", "integer", ".spec.size");
    size["priority"] = 1.into();
    size["description"] = "how large it is".into();
    let definition = json!({"spec": {"versions": [{"name": "v1", "additionalPrinterColumns": [
        column("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"),
        size,
        column("Zone", "string", ".metadata.labels.example\\.org/zone"),
        column("First", "string", ".spec.list[0]['a']"),
        column("Age", "date", ".metadata.creationTimestamp"),
        column("Nothing", "string", ".status.nothing"),
    ]}, {"name": "v2"}]}});
    let object = made(
        "Thing",
        &json!({
            "metadata": {"labels": {"example.org/zone": "a"}}, "spec": {"size": 3, "list": [{"a": "b"}]},
            "status": {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]},
        }),
    );
    let cells = |version: &str| -> Value {
        defined(&definition, version).iter().map(|column| column.cell(&object, NOW)).collect()
    };
    assert_eq!(cells("v1"), json!(["x", "True", 3, "a", "b", "5m", null]));
    assert_eq!(cells("v2"), json!(["x", "5m"]));
    let shown: Vec<Value> = defined(&definition, "v1")
        .iter()
        .take(3)
        .map(|column| column.shown()["description"].clone())
        .collect();
    assert_eq!(
        Value::from(shown),
        json!([
            "",
            "Custom resource definition column (in JSONPath format): .status.conditions[?(@.type==\"Ready\")].status",
            "how large it is"
        ])
    );
}

#[test]
fn cells_are_what_the_type_of_their_column_says() {
    let object = json!({
        "list": ["10.0.0.1-10.0.0.9", "<&>"], "map": {"b": 1, "a": {"d": [true], "c": null}}, "nothing": null, "whole": 3,
        "part": 2.5, "even": 4.0, "yes": true, "word": "seven", "empty": "", "then": "2026-02-02T00:05:00Z", "there": "2026-02-02T01:05:00+01:00",
    });
    let cell = |kind: &str, path: &str| -> Value {
        let definition = json!({"spec": {"versions": [{"name": "v1", "additionalPrinterColumns": [column("C", kind, path)]}]}});
        defined(&definition, "v1")[1].cell(&object, NOW)
    };
    for (kind, path, wanted) in [
        ("string", ".list", json!("[\"10.0.0.1-10.0.0.9\",\"\\u003c\\u0026\\u003e\"]")),
        ("string", ".map", json!("{\"a\":{\"c\":null,\"d\":[true]},\"b\":1}")),
        ("string", ".nothing", json!("<no value>")),
        ("string", ".whole", json!("3")),
        ("string", ".part", json!("2.5")),
        ("string", ".yes", json!("true")),
        ("string", ".missing", json!(null)),
        ("integer", ".whole", json!(3)),
        ("integer", ".part", json!(2)),
        ("integer", ".word", json!(null)),
        ("number", ".part", json!(2.5)),
        ("number", ".even", json!(4)),
        ("number", ".whole", json!(3)),
        ("boolean", ".yes", json!(true)),
        ("boolean", ".word", json!(null)),
        ("date", ".then", json!("5m")),
        ("date", ".there", json!("5m")),
        ("date", ".word", json!("<invalid>")),
        ("date", ".empty", json!("<unknown>")),
        ("date", ".whole", json!(null)),
        ("date", ".missing", json!(null)),
    ] {
        assert_eq!(cell(kind, path), wanted, "{kind} {path}");
    }
}

#[test]
fn paths_choose_by_place_and_by_comparison() {
    let object = json!({"of": [{"n": 1, "t": "a"}, {"n": 2, "t": "b", "x": 0}, {"n": 3, "t": "c"}], "map": {"b": "late", "a": "early"}});
    for (path, wanted) in [
        (".of[0].t", Some("a")),
        (".of[-1].t", Some("c")),
        (".of[-4].t", None),
        (".of[7].t", None),
        (".of[1:].t", Some("b")),
        (".of[:-1].n", Some("1")),
        (".of[*].t", Some("a")),
        (".map.*", Some("early")),
        (".map['b']", Some("late")),
        (".of[?(@.n>1)].t", Some("b")),
        (".of[?(@.n >= 3)].t", Some("c")),
        (".of[?(@.n<1)].t", None),
        (".of[?(@.t!='a')].t", Some("b")),
        (".of[?(@.t=='=')].t", None),
        (".of[?(@.x)].t", Some("b")),
        (".of[?(@.n==\"2\")].t", None),
        (".map[?(@.n==2)].t", None),
        (".of.t", None),
    ] {
        let found = super::path::first(path, &object).map(super::path::text);
        assert_eq!(found.as_deref(), wanted, "{path}");
    }
}
