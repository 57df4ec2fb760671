//! Who may what, what one can ask about oneself, and the size of a workload.

use super::*;

fn asks(
    rig: &mut Rig,
    organization: &str,
    (method, path): (&str, &str),
    body: &[u8],
) -> (u16, Value) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let call = HttpCall {
        method: method.into(),
        host: String::new(),
        path: path.into(),
        query: query.into(),
        headers: Vec::new(),
        body: body.to_vec(),
        peer: Some(Peer { common_name: "eve".into(), organizations: vec![organization.into()] }),
    };
    let reply = rig.turn(|c, t| c.call(t, &call, &Outside::new()));
    (reply.status, whole(&reply))
}

#[test]
fn who_is_known_may_look_around_and_is_told_what_he_may_not() {
    let mut rig = Rig::born();
    for path in ["/readyz", "/version", "/api", "/apis/apps/v1", "/openapi/v3"] {
        assert_eq!(asks(&mut rig, "readers", ("GET", path), b"").0, 200, "{path}");
    }
    let told: Vec<String> = [
        ("GET", "/metrics"),
        ("GET", "/api/v1/nodes"),
        ("GET", "/api/v1/nodes?watch=true"),
        ("GET", "/api/v1/nodes/cp-01"),
        ("PUT", "/api/v1/nodes/cp-01/status"),
        ("POST", "/apis/apps/v1/namespaces/default/deployments"),
        ("DELETE", "/apis/apps/v1/namespaces/default/deployments"),
        ("DELETE", "/apis/apps/v1/namespaces/default/deployments/web"),
    ]
    .into_iter()
    .map(|call| {
        let (status, answer) = asks(&mut rig, "readers", call, b"{}");
        assert_eq!((status, answer["reason"].as_str()), (403, Some("Forbidden")));
        format!("{} {}", answer["message"].as_str().unwrap(), answer["details"])
    })
    .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    forbidden: User "eve" cannot get path "/metrics" {}
    nodes is forbidden: User "eve" cannot list resource "nodes" in API group "" at the cluster scope {"kind":"nodes"}
    nodes is forbidden: User "eve" cannot watch resource "nodes" in API group "" at the cluster scope {"kind":"nodes"}
    nodes "cp-01" is forbidden: User "eve" cannot get resource "nodes" in API group "" at the cluster scope {"name":"cp-01","kind":"nodes"}
    nodes "cp-01" is forbidden: User "eve" cannot update resource "nodes/status" in API group "" at the cluster scope {"name":"cp-01","kind":"nodes"}
    deployments.apps is forbidden: User "eve" cannot create resource "deployments" in API group "apps" in the namespace "default" {"group":"apps","kind":"deployments"}
    deployments.apps is forbidden: User "eve" cannot deletecollection resource "deployments" in API group "apps" in the namespace "default" {"group":"apps","kind":"deployments"}
    deployments.apps "web" is forbidden: User "eve" cannot delete resource "deployments" in API group "apps" in the namespace "default" {"name":"web","group":"apps","kind":"deployments"}
    "#);
}

#[test]
fn everybody_may_ask_about_himself() {
    let mut rig = Rig::born();
    let access = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    for (group, may) in [(MASTERS, true), ("readers", false)] {
        let (status, answer) = asks(&mut rig, group, ("POST", access), br#"{"spec":{"a":1}}"#);
        assert_eq!((status, &answer["status"]["allowed"]), (201, &json!(may)));
        assert_eq!(answer["spec"], json!({"a": 1}));
    }
    let (status, _) = asks(&mut rig, MASTERS, ("POST", access), b"k8s\0\x0a");
    assert_eq!(status, 201, "kubectl asks in protobuf");
    assert_eq!(asks(&mut rig, MASTERS, ("POST", access), b"\x01").0, 400);
    assert_eq!(asks(&mut rig, MASTERS, ("GET", access), b"").0, 405);
    let who = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (_, answer) = asks(&mut rig, "readers", ("POST", who), b"{}");
    let groups = json!(["readers", "system:authenticated"]);
    assert_eq!(answer["status"]["userInfo"], json!({"username": "eve", "groups": groups}));
}

#[test]
fn a_workload_has_a_size_of_its_own() {
    let mut rig = Rig::born();
    rig.deployment("default", "web");
    let web = "/apis/apps/v1/namespaces/default/deployments/web";
    let scale = rig.get(&format!("{web}/scale"));
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(1)));
    assert_eq!(scale["status"]["selector"], "app=web");
    let reply = rig.raw(
        "PATCH",
        &format!("{web}/scale"),
        "application/merge-patch+json",
        &json!({"spec": {"replicas": 3}}),
    );
    assert_eq!((reply.status, &whole(&reply)["spec"]["replicas"]), (200, &json!(3)));
    assert!(reply.mutated);
    assert_eq!(rig.get(web)["spec"]["replicas"], 3);
    let (status, _) = rig.call("PUT", &format!("{web}/scale"), &json!({"spec": {}}));
    assert_eq!(status, 400, "it must have its name");
    let none = json!({"metadata": {"name": "web"}, "spec": {}});
    assert_eq!(rig.call("PUT", &format!("{web}/scale"), &none).0, 200);
    assert_eq!(rig.get(web)["spec"]["replicas"], 0);
    assert_eq!(rig.call("GET", "/api/v1/nodes/x/scale", &Value::Null).0, 404);
}

#[test]
fn what_needs_a_kubelet_is_refused_by_name() {
    let mut rig = Rig::born();
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "a:1"}]}});
    assert_eq!(rig.call("POST", pods, &pod).0, 201);
    let (status, answer) = rig.call("GET", &format!("{pods}/web/log"), &Value::Null);
    assert_eq!((status, &answer["reason"]), (501, &json!("NotImplemented")));
    assert!(answer["message"].as_str().unwrap().contains("no containers run in a rehearsal"));
    assert_eq!(rig.call("GET", &format!("{pods}/nobody/log"), &Value::Null).0, 404);
}
