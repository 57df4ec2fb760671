//! A webhook that comes late: what the real API server says at each stage of its coming, and what our client makes of it.

use std::net::Ipv4Addr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use castle_kubernetes::{Kubernetes, Mode, Object};
use castle_model::Class;
use castle_reality::cluster::{Authority, Cluster};
use castle_reality::web::Web;
use castle_reality::{alone, nap};
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::timeout;

const SPACE: &str = "late";
/// Where the webhook's pod would be.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 244, 9, 9);
const PORT: u16 = 9443;
/// How long the server may take to learn of a change.
const LIMIT: Duration = Duration::from_mins(1);

/// What the webhook answers.
#[derive(Debug, Clone, Copy)]
enum Word {
    Allow,
    Deny,
    Broken,
}

#[test]
#[ignore = "a real cluster in a namespace of its own"]
fn a_webhook_that_comes_late_is_waited_for_and_its_no_is_final() {
    alone(async {
        let Some(cluster) = Cluster::start(&[]).await else { return };
        let (client, authority) = (cluster.client(), cluster.authority());
        apply(
            &client,
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}),
        )
        .await;
        apply(&client, configuration(authority)).await;
        until(&client, Class::Transient, "service \"hook\" not found").await;
        apply(&client, service()).await;
        until(&client, Class::Transient, "no endpoints available for service \"hook\"").await;
        apply(&client, slice(false)).await;
        until(&client, Class::Transient, "no endpoints available for service \"hook\"").await;
        apply(&client, slice(true)).await;
        until(&client, Class::Transient, "connect: connection refused").await;

        let silent = TcpListener::bind((ADDRESS, PORT)).await.unwrap();
        until(&client, Class::Transient, "context deadline exceeded").await;
        drop(silent);

        let names = ["hook.late.svc"];
        let strange = Web::listen(&Authority::new(), &names, ADDRESS, PORT).await;
        let wanted = "certificate signed by unknown authority";
        with(&strange, Word::Allow, until(&client, Class::Transient, wanted)).await;
        drop(strange);
        let other = Web::listen(authority, &["other.late.svc"], ADDRESS, PORT).await;
        let wanted = "certificate is valid for other.late.svc, not hook.late.svc";
        with(&other, Word::Allow, until(&client, Class::Transient, wanted)).await;
        drop(other);

        let hook = Web::listen(authority, &names, ADDRESS, PORT).await;
        with(&hook, Word::Broken, until(&client, Class::Transient, "failed calling webhook")).await;
        let no = "admission webhook \"check.castle.test\" denied the request: not in this garden";
        with(&hook, Word::Deny, until(&client, Class::Invalid, no)).await;
        with(&hook, Word::Allow, async {
            client.apply(&map(), Mode::DryRun).await.unwrap();
            assert!(client.get(&map().id()).await.unwrap().is_none(), "a dry run stores nothing");
            client.apply(&map(), Mode::Real).await.unwrap();
        })
        .await;
        assert!(client.get(&map().id()).await.unwrap().is_some());
    });
}

/// Does something while the webhook answers.
async fn with(web: &Web, word: Word, work: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = work => {}
        _ = web.serve(async |request| answer(word, &request)) => {}
    }
}

fn answer(word: Word, request: &Request<Bytes>) -> Response<Bytes> {
    let review: Value = serde_json::from_slice(request.body()).unwrap();
    let status = match word {
        Word::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        Word::Allow | Word::Deny => StatusCode::OK,
    };
    let reply = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {
            "uid": review["request"]["uid"], "allowed": matches!(word, Word::Allow),
            "status": {"message": "not in this garden"},
        },
    });
    Response::builder().status(status).body(Bytes::from(reply.to_string())).unwrap()
}

/// Tries a write until the server says this; every word before it, and this one, must be told in its class.
async fn until(client: &Kubernetes, class: Class, words: &str) {
    let mut last = String::new();
    let told = async {
        loop {
            match client.apply(&map(), Mode::DryRun).await {
                // The configuration itself needs a moment until it is heeded.
                Ok(_) => "it was taken".clone_into(&mut last),
                Err(error) => {
                    let failure = error.failure();
                    if failure.why.contains(words) {
                        assert_eq!(failure.class, class, "{}", failure.why);
                        return;
                    }
                    assert_eq!(failure.class, Class::Transient, "{}", failure.why);
                    failure.why.clone_into(&mut last);
                }
            }
            nap(Duration::from_millis(20)).await;
        }
    };
    let heard = timeout(LIMIT, told).await;
    assert!(heard.is_ok(), "never `{words}`; last: {last}");
}

async fn apply(client: &Kubernetes, value: Value) {
    client.apply(&Object::new(value).unwrap(), Mode::Real).await.unwrap();
}

fn map() -> Object {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": SPACE}, "data": {"a": "1"}});
    Object::new(map).unwrap()
}

fn service() -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook", "namespace": SPACE},
        "spec": {"ports": [{"name": "web", "port": 443, "targetPort": PORT}]}})
}

fn slice(ready: bool) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "hook-a", "namespace": SPACE, "labels": {"kubernetes.io/service-name": "hook"}},
        "endpoints": [{"addresses": [ADDRESS.to_string()], "conditions": {"ready": ready}}],
        "ports": [{"name": "web", "port": PORT}],
    })
}

fn configuration(authority: &Authority) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": SPACE},
        "webhooks": [{
            "name": "check.castle.test", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": 1,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SPACE}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
            "clientConfig": {
                "service": {"namespace": SPACE, "name": "hook", "path": "/check"},
                "caBundle": STANDARD.encode(&authority.certificate),
            },
        }],
    })
}
