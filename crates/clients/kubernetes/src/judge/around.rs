//! What keeps a workload, told by its pods where they are at hand.

use castle_model::Verdict;
use serde_json::Value;

use super::judge;
use crate::object::Object;

/// The reason, and what the first of its pods that is not ready says; how many more there are.
pub(super) fn explain<'a>(
    object: &Object,
    reason: String,
    around: impl IntoIterator<Item = &'a Object>,
) -> String {
    if !matches!(object.group(), "apps" | "batch") {
        return reason;
    }
    let Some(selector) = object.at("/spec/selector") else { return reason };
    let late: Vec<String> = around
        .into_iter()
        .filter(|pod| pod.kind() == "Pod" && pod.group().is_empty())
        .filter(|pod| pod.namespace() == object.namespace() && selects(selector, pod))
        .filter_map(|pod| match judge(pod) {
            Verdict::Ready(_) => None,
            Verdict::Waiting(words) => Some(words),
            Verdict::Failed(failure) => Some(format!("{} has failed: {}", pod.id(), failure.why)),
        })
        .collect();
    match late.as_slice() {
        [] => reason,
        [only] => format!("{reason}; {only}"),
        [first, more @ ..] => format!("{reason}; {first}; and {} more pods", more.len()),
    }
}

/// Whether a label selector takes an object. An empty one takes none here: it could be anybody's pod.
fn selects(selector: &Value, pod: &Object) -> bool {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let rules = selector.get("matchExpressions").and_then(Value::as_array);
    if labels.is_none_or(serde_json::Map::is_empty) && rules.is_none_or(Vec::is_empty) {
        return false;
    }
    let same = labels
        .into_iter()
        .flatten()
        .all(|(key, value)| value.as_str().is_some_and(|value| pod.label(key) == Some(value)));
    same && rules.into_iter().flatten().all(|rule| fulfils(rule, pod))
}

fn fulfils(rule: &Value, pod: &Object) -> bool {
    let text = |key: &str| rule.get(key).and_then(Value::as_str).unwrap_or_default();
    let label = pod.label(text("key"));
    let values = rule.get("values").and_then(Value::as_array);
    let among = values
        .into_iter()
        .flatten()
        .any(|value| label.is_some_and(|label| value.as_str() == Some(label)));
    match text("operator") {
        "In" => among,
        "NotIn" => !among,
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        _ => false,
    }
}
