//! What the page about fidelity promises of every kind: it is created, read, listed, watched, replaced, patched, applied
//! and deleted, and its status and size are read and written apart.

use super::*;
use crate::kubernetes::kinds::all;

/// What a kind can not be without, beside its name.
fn body(kind: &str) -> Value {
    let pod = json!({"containers": [{"name": "main", "image": "a:1"}]});
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": pod});
    let selector = json!({"matchLabels": {"app": "a"}});
    let role =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"});
    match kind {
        "Pod" => json!({"spec": pod}),
        "Service" => json!({"spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}}),
        "PersistentVolumeClaim" => json!({"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        "PersistentVolume" => json!({"spec": {"capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}}),
        "Event" => json!({"involvedObject": {"namespace": "default", "kind": "Pod", "name": "a"}}),
        "CustomResourceDefinition" => {
            json!({"spec": {"group": "example.org", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
        }
        "APIService" => json!({"spec": {"group": "example.org", "version": "v1",
            "groupPriorityMinimum": 100, "versionPriority": 100}}),
        "Deployment" | "ReplicaSet" => {
            json!({"spec": {"replicas": 0, "selector": selector, "template": template}})
        }
        "StatefulSet" => json!({"spec": {"replicas": 0, "serviceName": "a", "selector": selector,
            "template": template}}),
        "DaemonSet" => json!({"spec": {"selector": selector, "template": template}}),
        "Job" => json!({"spec": {"template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "main", "image": "a:1"}]}}}}),
        "CronJob" => {
            json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "a:1"}]}}}}}})
        }
        "HorizontalPodAutoscaler" => json!({"spec": {"maxReplicas": 2,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}}}),
        "EndpointSlice" => json!({"addressType": "IPv4", "endpoints": []}),
        "Ingress" => {
            json!({"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}})
        }
        "NetworkPolicy" => json!({"spec": {"podSelector": {}}}),
        "ClusterRoleBinding" | "RoleBinding" => json!({"roleRef": role}),
        "PriorityClass" => json!({"value": 5}),
        "StorageClass" => json!({"provisioner": "example.org/disks"}),
        _ => json!({}),
    }
}

#[test]
fn every_kind_is_served_in_every_way_that_the_page_tells() {
    let mut rig = Rig::born();
    let mut told = Vec::new();
    for resource in all(&rig.cluster.store) {
        let group = if resource.group.is_empty() {
            "/api".to_owned()
        } else {
            format!("/apis/{}", resource.group)
        };
        let space = if resource.namespaced { "/namespaces/default" } else { "" };
        let many = format!("{group}/{}{space}/{}", resource.version, resource.plural);
        let name = match resource.kind.as_str() {
            "CustomResourceDefinition" => "widgets.example.org",
            "APIService" => "v1.example.org",
            _ => "a",
        };
        let one = format!("{many}/{name}");
        let mut object = body(&resource.kind);
        object["apiVersion"] = resource.api_version().into();
        object["kind"] = resource.kind.clone().into();
        object["metadata"] = json!({"name": name});
        let kind = &resource.kind;
        let (status, made) = rig.call("POST", &many, &object);
        assert_eq!(status, 201, "{kind} is created: {made}");
        let since = made["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        assert_eq!(rig.get(&one)["metadata"]["uid"], made["metadata"]["uid"], "{kind} is read");
        let list = rig.get(&many);
        assert_eq!(list["kind"], format!("{kind}List"));
        let is_it = |item: &Value| item["metadata"]["uid"] == made["metadata"]["uid"];
        assert!(list["items"].as_array().unwrap().iter().any(is_it), "{kind} is listed");
        let mut other = rig.get(&one);
        other["metadata"]["labels"] = json!({"replaced": "yes"});
        let (status, replaced) = rig.call("PUT", &one, &other);
        assert_eq!(
            (status, &replaced["metadata"]["labels"]["replaced"]),
            (200, &json!("yes")),
            "{kind}: {replaced}"
        );
        let label = json!({"metadata": {"labels": {"patched": "yes"}}});
        let merged = rig.raw("PATCH", &one, "application/merge-patch+json", &label);
        assert_eq!(whole(&merged)["metadata"]["labels"]["patched"], "yes", "{kind} is patched");
        object["metadata"]["labels"] = json!({"applied": "yes"});
        let (status, applied) = rig.apply(&one, &object);
        assert_eq!(
            (status, &applied["metadata"]["labels"]["applied"]),
            (200, &json!("yes")),
            "{kind}: {applied}"
        );
        let watch =
            rig.raw("GET", &format!("{many}?watch=true&resourceVersion={since}"), "", &Value::Null);
        let HttpBody::Watch(mut cursor) = watch.body else { panic!("{kind} is not watched") };
        let lines = rig.cluster.watch_lines(&mut cursor).unwrap();
        let seen = lines.iter().filter(|line| line.starts_with(br#"{"type":"MODIFIED""#)).count();
        assert!(seen >= 3, "{kind} is watched: {seen} of three changes are told");
        if resource.status {
            let (status, read) = rig.call("GET", &format!("{one}/status"), &Value::Null);
            assert_eq!((status, &read["kind"]), (200, &json!(kind)), "{kind}: its status is read");
        }
        if resource.has_size() {
            let (status, size) = rig.call("GET", &format!("{one}/scale"), &Value::Null);
            assert_eq!((status, &size["kind"]), (200, &json!("Scale")), "{kind}: its size is read");
        }
        let (status, gone) =
            rig.call("DELETE", &format!("{one}?gracePeriodSeconds=0"), &Value::Null);
        assert!(matches!(status, 200 | 202), "{kind} is deleted: {gone}");
        told.push((resource.api_version(), resource.kind.clone()));
    }
    rig.pass(60_000);
    let promised: Vec<(String, String)> = crate::fidelity::kubernetes_kinds()
        .into_iter()
        .map(|kind| (kind.version, kind.name))
        .collect();
    assert_eq!(told, promised, "the page tells of these");
}
