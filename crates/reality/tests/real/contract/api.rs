//! One side of the contract: asks, waits and notes.

use std::cell::RefCell;
use std::time::Duration;

use castle_kubernetes::{KubeError, Kubernetes};
use castle_reality::{Answer, Raw, nap};
use http::Method;
use serde_json::{Value, json};

/// What a case was told, step by step.
pub(crate) type Notes = Vec<(String, Value)>;

/// Which API server is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Emulated,
    Real,
}

/// How often something is asked for in vain, with a pause in between.
const TRIES: usize = 1200;
const PAUSE: Duration = Duration::from_millis(100);

/// The caller of one side, for one case.
pub(crate) struct Api {
    pub(crate) client: Kubernetes,
    pub(crate) raw: Raw,
    /// Somebody who is known, and may nothing.
    pub(crate) somebody: Raw,
    /// Who is met as strangers are.
    pub(crate) stranger: Raw,
    pub(crate) side: Side,
    /// The namespace of the case.
    pub(crate) space: String,
    notes: RefCell<Notes>,
}

/// Asks until there is an answer.
pub(crate) async fn patiently<T>(ask: impl AsyncFn() -> Option<T>) -> T {
    for _ in 0..TRIES {
        if let Some(answer) = ask().await {
            return answer;
        }
        nap(PAUSE).await;
    }
    panic!("what was asked for never came");
}

impl Api {
    pub(crate) fn new(
        client: Kubernetes,
        (raw, somebody, stranger): (Raw, Raw, Raw),
        side: Side,
        case: &str,
    ) -> Self {
        let space = format!("case-{}", case.replace(' ', "-"));
        Self { client, raw, somebody, stranger, side, space, notes: RefCell::default() }
    }

    pub(crate) fn into_notes(self) -> Notes {
        self.notes.into_inner()
    }

    /// Makes a namespace.
    pub(crate) async fn make_space(&self, name: &str) {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let made = self.raw.post("/api/v1/namespaces", &body).await.unwrap();
        made.must_succeed();
    }

    /// The path of objects of the core group in the case's namespace.
    pub(crate) fn core(&self, rest: &str) -> String {
        format!("/api/v1/namespaces/{}/{rest}", self.space)
    }

    /// The path of objects of a group and version in the case's namespace.
    pub(crate) fn group(&self, group: &str, rest: &str) -> String {
        format!("/apis/{group}/namespaces/{}/{rest}", self.space)
    }

    /// Notes something.
    pub(crate) fn note(&self, step: &str, value: Value) {
        self.notes.borrow_mut().push((step.to_owned(), value));
    }

    /// Notes an answer: all of a success, and of a refusal the words.
    pub(crate) fn noted(&self, step: &str, answer: Answer) -> Value {
        let Answer { code, body } = answer;
        let note = if code < 300 {
            json!({"code": code, "body": body})
        } else {
            json!({"code": code, "reason": body["reason"], "message": body["message"]})
        };
        self.note(step, note);
        body
    }

    /// Notes what our client made of an answer: something of a success, and of an error its class and words.
    pub(crate) fn understood(&self, step: &str, result: Result<Value, KubeError>) {
        let note = match result {
            Ok(value) => json!({"ok": value}),
            Err(error) => {
                let failure = error.failure();
                json!({"class": format!("{:?}", failure.class), "why": failure.why, "hint": failure.hint})
            }
        };
        self.note(step, note);
    }

    pub(crate) async fn get(&self, step: &str, path: &str) -> Value {
        self.noted(step, self.raw.get(path).await.unwrap())
    }

    pub(crate) async fn post(&self, step: &str, path: &str, body: &Value) -> Value {
        self.noted(step, self.raw.post(path, body).await.unwrap())
    }

    pub(crate) async fn put(&self, step: &str, path: &str, body: &Value) -> Value {
        self.noted(step, self.raw.put(path, body).await.unwrap())
    }

    /// Replaces something, and notes nothing.
    pub(crate) async fn put_quietly(&self, path: &str, body: &Value) -> Answer {
        self.raw.put(path, body).await.unwrap()
    }

    pub(crate) async fn merge(&self, step: &str, path: &str, body: &Value) -> Value {
        self.noted(step, self.raw.merge(path, body).await.unwrap())
    }

    pub(crate) async fn json_patch(&self, step: &str, path: &str, body: &Value) -> Value {
        let media = "application/json-patch+json";
        self.noted(step, self.raw.ask(Method::PATCH, path, media, body).await.unwrap())
    }

    /// Applies as a field manager.
    pub(crate) async fn apply(&self, step: &str, manager: &str, path: &str, body: &Value) -> Value {
        let join = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{join}fieldManager={manager}");
        self.noted(step, self.raw.apply(&path, body).await.unwrap())
    }

    pub(crate) async fn delete(&self, step: &str, path: &str, options: &Value) -> Value {
        let media = "application/json";
        self.noted(step, self.raw.ask(Method::DELETE, path, media, options).await.unwrap())
    }

    /// Waits until a path is not found any more.
    pub(crate) async fn until_gone(&self, path: &str) {
        patiently(async || (self.raw.get(path).await.unwrap().code == 404).then_some(())).await;
    }

    /// Waits until what a path shows is as wanted, and gives it.
    pub(crate) async fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        patiently(async || {
            let answer = self.raw.get(path).await.unwrap();
            (answer.code == 200 && wanted(&answer.body)).then_some(answer.body)
        })
        .await
    }
}

/// An object of the kind that has nothing but data.
pub(crate) fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// A value without what must differ: ids, times, versions, addresses that the server chose.
pub(crate) fn masked(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mask = |name: &String, value: &Value| match (name.as_str(), value) {
                ("uid" | "resourceVersion" | "continue", Value::String(text))
                    if !text.is_empty() =>
                {
                    Value::String(format!("<{name}>"))
                }
                (
                    "time" | "creationTimestamp" | "deletionTimestamp" | "lastTransitionTime"
                    | "lastUpdateTime",
                    Value::String(_),
                ) => Value::String("<time>".to_owned()),
                ("clusterIP", Value::String(text)) if text != "None" => "<address>".into(),
                ("clusterIPs", _) => "<addresses>".into(),
                // They are in the order of their times, which have seconds only.
                ("managedFields", Value::Array(entries)) => {
                    let mut entries: Vec<Value> = entries.iter().map(masked).collect();
                    let key = |e: &Value| {
                        json!([e["manager"], e["operation"], e["subresource"]]).to_string()
                    };
                    entries.sort_by_key(key);
                    entries.into()
                }
                ("verbs", Value::Array(verbs)) => {
                    let mut verbs = verbs.clone();
                    verbs.sort_by_key(Value::to_string);
                    verbs.into()
                }
                _ => masked(value),
            };
            // How a version is hashed is the server's own business.
            let told = map.iter().filter(|(name, _)| *name != "storageVersionHash");
            told.map(|(name, value)| (name.clone(), mask(name, value))).collect()
        }
        Value::Array(list) => list.iter().map(masked).collect(),
        Value::String(text) => Value::String(without_numbers(text)),
        other => other.clone(),
    }
}

/// Words of the server with their resource versions and chosen addresses masked.
fn without_numbers(text: &str) -> String {
    if let Some((before, _)) = text.split_once("too old resource version: ") {
        return format!("{before}too old resource version: <versions>");
    }
    text.to_owned()
}
