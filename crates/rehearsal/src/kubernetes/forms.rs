//! The form of an answer: JSON, or YAML for who would rather have that.

use serde_json::Value;

use super::goyaml;
use crate::turn::{HttpBody, HttpCall, HttpReply};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";

/// An answer in the form that the caller asked for.
pub(super) fn of(call: &HttpCall, mut reply: HttpReply) -> HttpReply {
    // These have forms of their own.
    let version = call.path.starts_with("/version") && reply.status == 200;
    let own = version || call.path.starts_with("/openapi");
    if own || !call.header("accept").is_some_and(prefers_yaml) {
        return reply;
    }
    let media = reply
        .headers
        .iter_mut()
        .find(|(name, media)| name == "content-type" && media.split(';').next() == Some(JSON));
    let HttpBody::Whole(body) = &reply.body else { return reply };
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return reply };
    if let Some((_, media)) = media {
        YAML.clone_into(media);
        reply.body = HttpBody::Whole(goyaml::write(&value).into());
    }
    reply
}

/// Whether of all forms that the server has the caller likes YAML most.
fn prefers_yaml(accept: &str) -> bool {
    let mut clauses: Vec<(f64, &str)> = accept
        .split(',')
        .map(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let weight = parts.find_map(|part| part.strip_prefix("q="));
            (weight.and_then(|weight| weight.parse().ok()).unwrap_or(1.0), media)
        })
        .collect();
    clauses.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let known = |media: &&str| {
        matches!(*media, JSON | YAML | "*/*" | "application/*")
            || *media == "application/vnd.kubernetes.protobuf"
    };
    clauses.into_iter().map(|(_, media)| media).find(known) == Some(YAML)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_that_is_liked_most_is_chosen() {
        for (accept, yaml) in [
            ("application/yaml", true),
            ("application/json", false),
            ("application/yaml, application/json", true),
            ("application/json, application/yaml", false),
            ("application/json;q=0.5, application/yaml", true),
            ("application/yaml;q=0.5, */*", false),
            ("text/html, application/yaml;q=0.1", true),
            ("application/yaml;as=Table;v=v1;g=meta.k8s.io", true),
            ("", false),
        ] {
            assert_eq!(prefers_yaml(accept), yaml, "{accept}");
        }
    }
}
