//! What nobody would send on purpose: bodies that are broken, in a form that nobody reads, options that mean nothing.

use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde_json::json;

use super::Case;
use super::api::{Api, config_map};

pub(super) const CASES: &[Case] = &[
    ("broken bodies", |api| Box::pin(bodies(api))),
    ("broken patches", |api| Box::pin(patches(api))),
    ("options that mean nothing", |api| Box::pin(options(api))),
    ("selectors that can not be read", |api| Box::pin(selectors(api))),
    ("forms that nobody takes", |api| Box::pin(forms(api))),
];

const JSON: &str = "application/json";
const TWO: &str = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"two\"}}";

/// Sends a body of a media type, and notes the answer; of a success the status alone.
async fn say(api: &Api, method: Method, path: &str, (media, body): (&str, &str)) {
    let step = format!("{method} {} {media} {body}", path.rsplit('/').next().unwrap_or_default());
    let headers = [(CONTENT_TYPE, media), (ACCEPT, JSON)];
    let answer = api.raw.say(method, path, &headers, body).await.unwrap();
    if answer.code < 300 {
        api.note(&step, answer.code.into());
    } else {
        api.noted(&step, answer);
    }
}

async fn make_one(api: &Api) {
    api.raw
        .post(&api.core("configmaps"), &config_map("one", &json!({})))
        .await
        .unwrap()
        .must_succeed();
}

async fn bodies(api: &Api) {
    make_one(api).await;
    let (all, one) = (api.core("configmaps?dryRun=All"), api.core("configmaps/one?dryRun=All"));
    for body in [
        "{",
        "{\"a\"",
        "",
        " ",
        "[]",
        "null",
        "1",
        "\"x\"",
        "true",
        "nonsense",
        "{}",
        "apiVersion: v1",
        "{\"kind\":\"ConfigMap\"}",
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"two\"}} x",
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"two\"},}",
    ] {
        say(api, Method::POST, &all, (JSON, body)).await;
    }
    for body in ["{", "[]", "nonsense"] {
        say(api, Method::PUT, &one, (JSON, body)).await;
    }
    for body in ["{", "[]", "null"] {
        say(api, Method::DELETE, &one, (JSON, body)).await;
    }
    for body in [
        "",
        "---",
        "null",
        "[]",
        "x",
        "a: b: c",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\n---\na: b",
    ] {
        say(api, Method::POST, &all, ("application/yaml", body)).await;
    }
    let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    for body in ["{", "", "[]"] {
        say(api, Method::POST, review, (JSON, body)).await;
    }
    let twice = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"two\",\"name\":\"two\"},\"data\":{\"a\":\"1\",\"a\":\"2\"},\"nonsense\":1}";
    for strict in ["Strict", "Warn", "Ignore"] {
        say(api, Method::POST, &format!("{all}&fieldValidation={strict}"), (JSON, twice)).await;
    }
}

async fn patches(api: &Api) {
    make_one(api).await;
    let one = api.core("configmaps/one?dryRun=All");
    for body in ["{", "", "[]", "null", "1", "\"x\"", "nonsense", "{\"data\":null} x"] {
        for media in ["merge-patch", "strategic-merge-patch", "json-patch"] {
            say(api, Method::PATCH, &one, (&format!("application/{media}+json"), body)).await;
        }
    }
    for body in [
        "{}",
        "[1]",
        "[{}]",
        "[{\"op\":\"nonsense\",\"path\":\"/a\"}]",
        "[{\"op\":\"add\"}]",
        "[{\"op\":\"remove\",\"path\":\"/nobody\"}]",
        "[{\"op\":\"copy\",\"from\":\"/x\",\"path\":\"/y\"}]",
    ] {
        say(api, Method::PATCH, &one, ("application/json-patch+json", body)).await;
    }
    let apply = format!("{one}&fieldManager=x");
    for body in ["", "[]", "null", "1", "x", "a: b: c"] {
        say(api, Method::PATCH, &apply, ("application/apply-patch+yaml", body)).await;
    }
    let twice = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"one\"},\"data\":{\"a\":\"1\",\"a\":\"2\"}}";
    let strict = format!("{apply}&fieldValidation=Strict");
    say(api, Method::PATCH, &strict, ("application/apply-patch+yaml", twice)).await;
    let nobody = api.core("configmaps/nobody");
    say(api, Method::PATCH, &nobody, ("application/merge-patch+json", "{")).await;
}

async fn options(api: &Api) {
    make_one(api).await;
    let one = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"one\"}}";
    for query in [
        "dryRun=foo",
        "dryRun=",
        "dryRun=All&dryRun=foo",
        "fieldValidation=foo",
        "dryRun=foo&fieldValidation=foo",
    ] {
        say(api, Method::POST, &api.core(&format!("configmaps?{query}")), (JSON, TWO)).await;
        say(api, Method::PUT, &api.core(&format!("configmaps/one?{query}")), (JSON, one)).await;
        let path = api.core(&format!("configmaps/one?{query}"));
        say(api, Method::PATCH, &path, ("application/merge-patch+json", "{}")).await;
        say(api, Method::PATCH, &path, ("application/apply-patch+yaml", one)).await;
    }
    api.get("nothing was made", &api.core("configmaps/two")).await;
    for query in ["dryRun=foo", "gracePeriodSeconds=abc"] {
        say(api, Method::DELETE, &api.core(&format!("configmaps/one?{query}")), (JSON, "")).await;
    }
    for body in ["{\"dryRun\":[\"foo\"]}", "{\"propagationPolicy\":\"foo\"}"] {
        say(api, Method::DELETE, &api.core("configmaps/one"), (JSON, body)).await;
    }
    say(api, Method::DELETE, &api.core("configmaps?dryRun=foo"), (JSON, "")).await;
    let forced = api.core("configmaps/one?force=true");
    say(api, Method::PATCH, &forced, ("application/merge-patch+json", "{}")).await;
    for query in [
        "limit=abc",
        "limit=-1",
        "limit=1.5",
        "limit=99999999999999999999",
        "timeoutSeconds=abc",
        "nonsense=1",
        "limit=1&limit=abc",
        "resourceVersionMatch=foo&resourceVersion=1",
        "resourceVersionMatch=Exact",
        "resourceVersion=0&resourceVersionMatch=Exact",
        "sendInitialEvents=true",
    ] {
        say(api, Method::GET, &api.core(&format!("configmaps?{query}")), (JSON, "")).await;
    }
}

async fn selectors(api: &Api) {
    for selector in [
        "a+b+c!!",
        "a%3D%3D%3D",
        "a%3Db%3Dc",
        "a+in+b",
        "a+in+(b",
        "a+in+(b,)",
        ",",
        "a,",
        ",a",
        "!a%3Db",
        "a%3D%40",
        "%40%3Da",
        "a+notin+x",
        "a%3E5",
        "a%3Eb",
        "(a)",
        "a+foo+b",
        "in",
        "a%3D",
        "-a",
        "a!",
        "%zz",
    ] {
        let path = api.core(&format!("configmaps?labelSelector={selector}"));
        say(api, Method::GET, &path, (JSON, "")).await;
    }
    for selector in ["a", "metadata.name", "metadata.name%3Da%3Db", ","] {
        let path = api.core(&format!("configmaps?fieldSelector={selector}"));
        say(api, Method::GET, &path, (JSON, "")).await;
    }
    let path = api.core("configmaps?labelSelector=a+b");
    say(api, Method::DELETE, &path, (JSON, "")).await;
}

async fn forms(api: &Api) {
    make_one(api).await;
    let (all, one) = (api.core("configmaps?dryRun=All"), api.core("configmaps/one?dryRun=All"));
    for media in [
        "text/plain",
        "application/xml",
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "nonsense",
        "application/cbor",
    ] {
        say(api, Method::POST, &all, (media, TWO)).await;
    }
    for media in ["text/plain", "application/json"] {
        say(api, Method::PATCH, &one, (media, "{}")).await;
    }
    say(api, Method::PUT, &one, ("text/plain", "{}")).await;
    say(api, Method::DELETE, &one, ("text/plain", "{}")).await;
    let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    say(api, Method::POST, review, ("text/plain", "{}")).await;
    for accept in [
        "text/html",
        "*/*",
        "application/*",
        "text/html, application/json;q=0.5",
        "nonsense",
        "application/json;as=Nonsense;v=v1;g=meta.k8s.io",
        "application/json;as=Table;v=v9;g=meta.k8s.io",
    ] {
        for (method, path) in [
            (Method::GET, api.core("configmaps/one")),
            (Method::GET, api.core("configmaps")),
            (Method::GET, "/version".to_owned()),
            (Method::GET, "/apis".to_owned()),
            (Method::GET, api.core("gardens")),
            (Method::POST, all.clone()),
        ] {
            let step =
                format!("{method} {} for {accept}", path.rsplit('/').next().unwrap_or_default());
            let headers = [(ACCEPT, accept), (CONTENT_TYPE, JSON)];
            let body = if method == Method::POST { TWO } else { "" };
            let answer = api.raw.say(method, &path, &headers, body).await.unwrap();
            if answer.code < 300 {
                api.note(&step, answer.code.into());
            } else {
                api.noted(&step, answer);
            }
        }
    }
}
