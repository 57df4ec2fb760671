//! The client against a server that answers from a script: what is asked, and what becomes of the answers.

use std::collections::VecDeque;

use http::Response;
use kube::client::Body;
use serde_json::json;

use super::*;
use crate::follow::Place;

type Script = Arc<Mutex<(VecDeque<(u16, String)>, Vec<String>)>>;

/// A client whose server gives these answers, one after the other, and then hangs.
fn scripted(answers: &[(u16, String)]) -> (Kubernetes, Script) {
    let script: Script = Arc::new(Mutex::new((answers.iter().cloned().collect(), Vec::new())));
    let server = script.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let answer = {
            let mut script = server.lock().unwrap();
            script.1.push(format!("{} {}", request.method(), request.uri()));
            script.0.pop_front()
        };
        async move {
            let Some((status, text)) = answer else { std::future::pending().await };
            let response = Response::builder().status(status).body(Body::from(text.into_bytes()));
            Ok::<_, tower::BoxError>(response.unwrap())
        }
    });
    let client = Kubernetes {
        client: kube::Client::new(service, "default"),
        server: "https://test".into(),
        kinds: Arc::default(),
    };
    (client, script)
}

fn discovery() -> (u16, String) {
    (200, json!({"resources": [{"name": "pods", "kind": "Pod", "namespaced": true}]}).to_string())
}

fn status(code: u16, message: &str) -> (u16, String) {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message, "reason": ""});
    (code, status.to_string())
}

fn pod(name: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "a"}})
}

fn list(names: &[&str], version: &str) -> (u16, String) {
    let items: Vec<_> =
        names.iter().map(|n| json!({"metadata": {"name": n, "namespace": "a"}})).collect();
    (200, json!({"metadata": {"resourceVersion": version}, "items": items}).to_string())
}

fn asked(script: &Script) -> Vec<String> {
    script.lock().unwrap().1.clone()
}

#[tokio::test(start_paused = true)]
async fn kinds_are_asked_for_once_and_missing_things_are_none() {
    let id = ObjectId::namespaced("v1", "Pod", "a", "x");
    let (client, script) =
        scripted(&[discovery(), status(404, "pods \"x\" not found"), (200, pod("x").to_string())]);
    assert!(client.get(&id).await.unwrap().is_none());
    assert_eq!(client.get(&id).await.unwrap().unwrap().name(), "x");
    assert_eq!(
        asked(&script),
        ["GET /api/v1", "GET /api/v1/namespaces/a/pods/x", "GET /api/v1/namespaces/a/pods/x"]
    );
    let (client, _) = scripted(&[status(404, "the server could not find the requested resource")]);
    let pool = ObjectId::namespaced("metallb.io/v1beta1", "IPAddressPool", "a", "x");
    assert!(
        client.get(&pool).await.unwrap().is_none(),
        "without its kind an object cannot be there"
    );
}

#[tokio::test(start_paused = true)]
async fn an_apply_is_under_our_name_and_refusals_have_their_class() {
    let object = Object::new(pod("x")).unwrap();
    let race = "Internal error occurred: failed calling webhook \"x\": failed to call webhook: Post \"https://a\": dial tcp 10.96.0.9:443: connect: connection refused";
    let (client, script) = scripted(&[discovery(), status(500, race)]);
    let failure = client.apply(&object, Mode::DryRun).await.unwrap_err().failure();
    assert_eq!(
        (failure.class, failure.what.as_str(), failure.why.as_str()),
        (castle_model::Class::Transient, "try out Pod a/x", race)
    );
    assert_eq!(
        asked(&script)[1],
        "PATCH /api/v1/namespaces/a/pods/x?fieldManager=castle&force=false&dryRun=All&fieldValidation=Ignore"
    );
}

#[tokio::test(start_paused = true)]
async fn only_a_persons_edit_is_taken_over() {
    let object = Object::new(pod("x")).unwrap();
    let held = |by: &str| {
        status(
            409,
            &format!("Apply failed with 1 conflict: conflict with \"{by}\" using v1: .spec.x"),
        )
    };
    let (client, script) = scripted(&[
        discovery(),
        held("kubectl-edit"),
        (200, pod("x").to_string()),
        (200, pod("x").to_string()),
    ]);
    client.apply(&object, Mode::Real).await.unwrap();
    assert_eq!(
        asked(&script)[1..],
        [
            "PATCH /api/v1/namespaces/a/pods/x?fieldManager=castle&force=false&fieldValidation=Ignore",
            "GET /api/v1/namespaces/a/pods/x",
            "PATCH /api/v1/namespaces/a/pods/x?fieldManager=castle&force=true&fieldValidation=Ignore",
        ]
    );
    let (client, script) = scripted(&[discovery(), held("kustomize-controller")]);
    let failure = client.apply(&object, Mode::Real).await.unwrap_err().failure();
    assert_eq!(failure.class, castle_model::Class::Conflict);
    assert!(failure.why.contains("kustomize-controller"), "{failure}");
    assert_eq!(asked(&script).len(), 2, "nothing was forced");
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_says_how_long_it_wants_to_be_left_alone() {
    let busy = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 429, "message": "too many requests",
        "reason": "TooManyRequests", "details": {"retryAfterSeconds": 7}});
    let (client, _) = scripted(&[(429, busy.to_string())]);
    let failure = client.version().await.unwrap_err().failure();
    assert!(failure.is_transient());
    assert_eq!(failure.asked_to_wait(), Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up() {
    let (client, _) = scripted(&[]);
    let error = client.version().await.unwrap_err();
    assert!(matches!(error, KubeError::Deadline { .. }), "{error}");
    assert_eq!(error.class(), castle_model::Class::Transient);
}

#[tokio::test(start_paused = true)]
async fn a_picture_survives_ended_and_outdated_watches() {
    let line = |kind: &str, object: serde_json::Value| {
        json!({"type": kind, "object": object}).to_string() + "\n"
    };
    let gone = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "message": "too old resource version", "reason": "Expired"});
    let first = line("ADDED", pod("y"))
        + &line("DELETED", pod("x"))
        + &line(
            "BOOKMARK",
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"resourceVersion": "9"}}),
        );
    let (client, script) = scripted(&[
        discovery(),
        list(&["x"], "5"),
        (200, first),
        list(&["y", "z"], "12"),
        (200, line("ERROR", gone)),
        list(&["z"], "20"),
        (200, line("ADDED", pod("z"))),
    ]);
    let names = |follow: &crate::Follow| -> Vec<String> {
        follow.objects().keys().map(|id| id.name.clone()).collect()
    };
    let mut follow =
        client.follow(vec![Place::within("v1", "Pod", "a").only("app=web")]).await.unwrap();
    assert_eq!(names(&follow), ["x"]);
    follow.changed().await.unwrap();
    assert_eq!(names(&follow), ["x", "y"]);
    follow.changed().await.unwrap();
    assert_eq!(names(&follow), ["y"]);
    follow.changed().await.unwrap();
    assert_eq!(names(&follow), ["y", "z"], "an ended watch is listed and begun anew");
    follow.changed().await.unwrap();
    assert_eq!(names(&follow), ["z"], "an outdated one too");
    assert_eq!(
        asked(&script)[2],
        "GET /api/v1/namespaces/a/pods?watch=true&allowWatchBookmarks=true&labelSelector=app%3Dweb&resourceVersion=5"
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_in_the_wrong_place_is_told_by_its_definition_or_by_the_server() {
    let definition = |kind: &str, scope: &str| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": kind.to_lowercase()},
            "spec": {"group": "example.org", "scope": scope, "names": {"kind": kind}}})
    };
    let custom = |kind: &str, namespace: Option<&str>| json!({"apiVersion": "example.org/v1", "kind": kind, "metadata": {"name": "x", "namespace": namespace}});
    let nodes = json!({"resources": [
        {"name": "nodes", "kind": "Node", "namespaced": false}, {"name": "pods", "kind": "Pod", "namespaced": true},
        {"name": "customresourcedefinitions", "kind": "CustomResourceDefinition", "namespaced": false}]});
    let wanted: Vec<Object> = [
        definition("Gauge", "Namespaced"),
        definition("Scale", "Cluster"),
        custom("Gauge", None),
        custom("Gauge", Some("a")),
        custom("Scale", Some("a")),
        custom("Scale", None),
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "namespace": "a"}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}),
    ]
    .into_iter()
    .map(|value| Object::new(value).unwrap())
    .collect();
    let (client, _) = scripted(&[(200, nodes.to_string()), (200, nodes.to_string())]);
    let told: Vec<String> = client
        .misplaced(&wanted)
        .await
        .unwrap()
        .iter()
        .map(|(id, why)| format!("{id}: {why}"))
        .collect();
    assert_eq!(
        told,
        [
            "Gauge x: it names no namespace, but every Gauge lives in one",
            "Scale a/x: it names the namespace a, but Scale belongs to the whole cluster",
            "Node a/n: it names the namespace a, but Node belongs to the whole cluster",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn strangers_in_a_namespace_are_what_no_set_of_this_layer_brought() {
    let mark = crate::Mark {
        castle: "blue".parse().unwrap(),
        layer: "web".parse().unwrap(),
        incarnation: castle_model::Incarnation::from_bytes([1; 8]),
        key: castle_model::DigestKey::derived(&Secret::new("x"), "objects"),
    };
    let core = json!({"resources": [
        {"name": "configmaps", "kind": "ConfigMap", "namespaced": true, "verbs": ["get", "list"]},
        {"name": "events", "kind": "Event", "namespaced": true, "verbs": ["list"]},
        {"name": "bindings", "kind": "Binding", "namespaced": true, "verbs": ["create"]},
        {"name": "nodes", "kind": "Node", "namespaced": false, "verbs": ["list"]},
    ]});
    let maps = json!({"metadata": {"resourceVersion": "1"}, "items": [
        {"metadata": {"name": "kube-root-ca.crt", "namespace": "a"}},
        {"metadata": {"name": "ours", "namespace": "a", "labels": {"castle.dev/castle": "blue", "castle.dev/layer": "web",
            "castle.dev/incarnation": mark.incarnation.to_string()}}},
        {"metadata": {"name": "brought", "namespace": "a", "ownerReferences": [{"name": "x"}]}},
        {"metadata": {"name": "theirs", "namespace": "a", "labels": {"castle.dev/castle": "blue", "castle.dev/layer": "other",
            "castle.dev/incarnation": mark.incarnation.to_string()}}},
    ]});
    let groups = json!({"groups": []});
    let (client, script) =
        scripted(&[(200, groups.to_string()), (200, core.to_string()), (200, maps.to_string())]);
    let strangers = client.strangers("a", &mark).await.unwrap();
    assert_eq!(strangers, [ObjectId::namespaced("v1", "ConfigMap", "a", "theirs")]);
    assert_eq!(
        asked(&script).len(),
        3,
        "what can not be listed, or is of the whole cluster, is not asked for"
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_pages_grew_too_old_begins_anew_once() {
    let page =
        json!({"metadata": {"resourceVersion": "5", "continue": "next"}, "items": [pod("x")]});
    let old = || status(410, "The provided continue parameter is too old");
    let (client, _) =
        scripted(&[discovery(), (200, page.to_string()), old(), list(&["y", "z"], "9")]);
    let listing = client.list("v1", "Pod", Some("a"), "").await.unwrap();
    assert_eq!((listing.items.len(), listing.resource_version.as_str()), (2, "9"));
    let (client, _) = scripted(&[discovery(), old(), old()]);
    assert!(client.list("v1", "Pod", Some("a"), "").await.unwrap_err().is_too_old());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_as_soon_as_it_begins_is_no_busy_loop() {
    let (client, script) = scripted(&[discovery(), list(&["x"], "5"), (200, String::new())]);
    let mut follow = client.follow(vec![Place::within("v1", "Pod", "a")]).await.unwrap();
    let error = follow.changed().await.unwrap_err();
    assert!(matches!(error, KubeError::Ended { .. }), "{error}");
    assert_eq!(error.class(), castle_model::Class::Transient);
    assert_eq!(asked(&script).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_place_that_was_being_begun_anew_when_nobody_waited_any_more_is_not_lost() {
    let line = json!({"type": "ADDED", "object": pod("x")}).to_string() + "\n";
    let (client, script) =
        scripted(&[discovery(), list(&["x"], "5"), (200, line), list(&["y"], "7")]);
    let mut follow = client.follow(vec![Place::within("v1", "Pod", "a")]).await.unwrap();
    follow.changed().await.unwrap();
    let short = || timeout(Duration::from_secs(1), std::future::pending::<()>());
    tokio::select! {
        biased;
        changed = follow.changed() => panic!("the new watch hangs: {changed:?}"),
        _ = short() => {}
    }
    script.lock().unwrap().0.extend([
        list(&["y"], "7"),
        (200, json!({"type": "ADDED", "object": pod("y")}).to_string() + "\n"),
    ]);
    follow.changed().await.unwrap();
    let names: Vec<&str> = follow.objects().keys().map(|id| id.name.as_str()).collect();
    assert_eq!(names, ["y"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_two_places_show_goes_with_the_last() {
    let line =
        |kind: &str, name: &str| json!({"type": kind, "object": pod(name)}).to_string() + "\n";
    let (client, _) = scripted(&[
        discovery(),
        list(&["x", "y"], "5"),
        (200, line("DELETED", "x")),
        list(&["x"], "6"),
        (200, line("DELETED", "x")),
        list(&["y"], "7"),
    ]);
    let place = |selector: &str| Place::within("v1", "Pod", "a").only(selector);
    let mut follow = client.follow(vec![place("a=1"), place("b=2")]).await.unwrap();
    let names = |follow: &crate::Follow| -> Vec<String> {
        follow.objects().keys().map(|id| id.name.clone()).collect()
    };
    assert_eq!(names(&follow), ["x", "y"]);
    follow.changed().await.unwrap();
    assert_eq!(names(&follow), ["x", "y"], "the other place still shows it");
    follow.changed().await.unwrap();
    assert_eq!(names(&follow), ["y"]);
}

#[tokio::test(start_paused = true)]
async fn many_missing_objects_are_looked_up_by_one_list_of_names() {
    let mark = crate::Mark {
        castle: "blue".parse().unwrap(),
        layer: "extra".parse().unwrap(),
        incarnation: castle_model::Incarnation::from_bytes([1; 8]),
        key: castle_model::DigestKey::derived(&Secret::new("one life"), "objects"),
    };
    let wanted: Vec<Object> =
        ["p1", "p2", "p3", "p4"].map(|name| Object::new(pod(name)).unwrap()).into();
    let names = json!({"items": [{"metadata": {"name": "p3"}}], "metadata": {"continue": "x"}});
    let rest = json!({"items": [{"metadata": {"name": "other"}}], "metadata": {}});
    let (client, script) = scripted(&[
        discovery(),
        (200, json!({"items": [], "metadata": {}}).to_string()),
        (200, names.to_string()),
        (200, rest.to_string()),
        (200, pod("p3").to_string()),
    ]);
    let survey = client.survey(&mark, &wanted).await.unwrap();
    let absent: Vec<&str> = survey.absent.iter().map(|id| id.name.as_str()).collect();
    assert_eq!(absent, ["p1", "p2", "p4"]);
    assert_eq!(survey.foreign.len(), 1, "somebody else's is found by its name");
    let asked = asked(&script);
    assert_eq!(
        asked[2..],
        [
            "GET /api/v1/namespaces/a/pods?limit=500",
            "GET /api/v1/namespaces/a/pods?limit=500&continue=x",
            "GET /api/v1/namespaces/a/pods/p3",
        ]
    );
}
