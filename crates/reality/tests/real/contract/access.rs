//! Cases: who may what, what one can ask about oneself, and the size of a workload.

use serde_json::json;

use super::Case;
use super::api::Api;

pub(super) const CASES: &[Case] = &[
    ("who may what", |api| Box::pin(forbidden(api))),
    ("reviews of oneself", |api| Box::pin(reviews(api))),
    ("the size of a workload", |api| Box::pin(scale(api))),
];

/// Somebody who is known, and in no group that may anything.
async fn forbidden(api: &Api) {
    for path in ["/readyz", "/version", "/api/v1", "/apis/apps/v1"] {
        let answer = api.somebody.get(path).await.unwrap();
        api.note(&format!("look at {path}"), answer.code.into());
    }
    let looks = [
        "/metrics".to_owned(),
        "/api/v1/nodes".to_owned(),
        "/api/v1/nodes/nobody".to_owned(),
        "/api/v1/nodes?watch=true".to_owned(),
        api.core("configmaps"),
        api.core("configmaps/nobody"),
        api.group("apps/v1", "deployments/web/scale"),
    ];
    for (path, number) in looks.iter().zip(1..) {
        api.noted(&format!("look {number}"), api.somebody.get(path).await.unwrap());
    }
    let map = super::api::config_map("mine", &json!({}));
    let made = api.somebody.post(&api.core("configmaps"), &map).await.unwrap();
    api.noted("make", made);
    let changed = api.somebody.merge(&api.core("configmaps/mine"), &map).await.unwrap();
    api.noted("change", changed);
    let removed = api.somebody.delete(&api.core("configmaps/mine")).await.unwrap();
    api.noted("remove", removed);
    api.noted("remove all", api.somebody.delete(&api.core("configmaps")).await.unwrap());
}

async fn reviews(api: &Api) {
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let asked = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "nodes"}},
    });
    for (who, raw) in [("master", &api.raw), ("somebody", &api.somebody)] {
        let answer = raw.post(path, &asked).await.unwrap();
        let told = json!({"code": answer.code, "kind": answer.body["kind"],
            "spec": answer.body["spec"], "allowed": answer.body["status"]["allowed"]});
        api.note(&format!("may {who}"), told);
        let who_am_i = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let asked = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let answer = raw.post(who_am_i, &asked).await.unwrap();
        let groups = answer.body["status"]["userInfo"]["groups"].clone();
        api.note(&format!("who is {who}"), json!({"code": answer.code, "groups": groups}));
    }
    api.get("a review is not kept", path).await;
}

async fn scale(api: &Api) {
    let labels = json!({"app": "web", "tier": "front"});
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "example.org/web:1"}]}}},
    });
    let made = api.raw.post(&api.group("apps/v1", "deployments"), &web).await.unwrap();
    made.must_succeed();
    let path = api.group("apps/v1", "deployments/web/scale");
    api.get("none", &path).await;
    let size = |replicas: i64| json!({"spec": {"replicas": replicas}});
    api.merge("grows", &path, &size(2)).await;
    api.merge("nothing new", &path, &json!({"metadata": {}})).await;
    api.merge("below none", &path, &size(-1)).await;
    let mut whole = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": "web", "namespace": api.space}, "spec": {"replicas": 0},
    });
    // A controller may have been there in between, and what it wrote is not asked for.
    let answer = api.put_quietly(&path, &whole).await;
    api.note("shrinks", json!({"code": answer.code, "spec": answer.body["spec"]}));
    whole["metadata"]["name"] = "other".into();
    let answer = api.put_quietly(&path, &whole).await;
    api.note("another name", json!({"code": answer.code, "reason": answer.body["reason"]}));
    let wanted = api.raw.get(&api.group("apps/v1", "deployments/web")).await.unwrap();
    api.note("in the end", wanted.body["spec"]["replicas"].clone());
    api.get("of what has none", &api.core("configmaps/web/scale")).await;
    api.get("of what is not there", &api.group("apps/v1", "deployments/nobody/scale")).await;
}
