//! The mark of ownership on our objects, and the digest by which unchanged ones are left alone.

use castle_model::{CastleName, DigestKey, Incarnation, LayerName};
use serde::Serialize;
use serde_json::Value;

use crate::object::Object;

/// The label that names the castle.
pub const CASTLE: &str = "castle.dev/castle";
/// The label that names the layer.
pub const LAYER: &str = "castle.dev/layer";
/// The label that names the incarnation.
pub const INCARNATION: &str = "castle.dev/incarnation";
/// The annotation that holds the digest of what we applied. It is keyed: whoever may read the metadata of a Secret must
/// not be able to try out values against it.
pub const DIGEST: &str = "castle.dev/digest";

/// Whose an object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The castle.
    pub castle: CastleName,
    /// The layer.
    pub layer: LayerName,
    /// The incarnation of the castle.
    pub incarnation: Incarnation,
    /// The key of the digests.
    pub key: DigestKey,
}

/// How an object that is there stands to the one that we want.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Ours, and what we last applied is what we want.
    Same,
    /// Ours, but we want something else now.
    Differs,
    /// Not ours; carries whose it seems to be.
    Foreign(String),
}

impl Mark {
    /// Puts our labels and the digest on an object.
    pub fn put_on(&self, object: &mut Object) {
        object.put("labels", CASTLE, self.castle.as_str());
        object.put("labels", LAYER, self.layer.as_str());
        object.put("labels", INCARNATION, &self.incarnation.to_string());
        // The entry is there before the digest is taken, so that marking twice gives the same.
        object.put("annotations", DIGEST, "");
        let digest = self.digest(object);
        object.put("annotations", DIGEST, &digest);
    }

    /// Compares what is there with what we want; `wanted` has been through [`Mark::put_on`].
    #[must_use]
    pub fn compare(&self, wanted: &Object, there: &Object) -> Standing {
        match there.label(CASTLE) {
            None => Standing::Foreign(owner(there)),
            Some(castle) if castle != self.castle.as_str() => {
                Standing::Foreign(format!("castle {castle}"))
            }
            Some(_) if there.label(INCARNATION) != Some(self.incarnation.to_string().as_str()) => {
                Standing::Differs
            }
            Some(_) if there.annotation(DIGEST) == wanted.annotation(DIGEST) => Standing::Same,
            Some(_) => Standing::Differs,
        }
    }

    /// The digest of an object with its keys sorted, without a digest that it may carry already.
    fn digest(&self, object: &Object) -> String {
        let mut text = Vec::new();
        write_sorted(&mut text, object.value());
        self.key.of(&text)
    }
}

fn write_sorted(text: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Object(map) => {
            text.push(b'{');
            let mut fields: Vec<_> = map.iter().filter(|(key, _)| *key != DIGEST).collect();
            fields.sort_by_key(|(key, _)| *key);
            for (key, value) in fields {
                write_plain(text, key);
                text.push(b':');
                write_sorted(text, value);
                text.push(b',');
            }
            text.push(b'}');
        }
        Value::Array(list) => {
            text.push(b'[');
            for entry in list {
                write_sorted(text, entry);
                text.push(b',');
            }
            text.push(b']');
        }
        other => write_plain(text, other),
    }
}

fn write_plain(text: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(text, value).expect("plain values become JSON");
}

/// Whose an object without our label seems to be.
fn owner(object: &Object) -> String {
    let tool = object
        .label("kustomize.toolkit.fluxcd.io/name")
        .map(|name| format!("Flux (Kustomization {name})"))
        .or_else(|| object.label("app.kubernetes.io/managed-by").map(str::to_owned));
    let manager = object
        .entries("/metadata/managedFields")
        .iter()
        .find_map(|f| f.get("manager").and_then(Value::as_str))
        .map(|manager| format!("field manager {manager}"));
    tool.or(manager).unwrap_or_else(|| "someone unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use castle_model::Secret;
    use serde_json::json;

    use super::*;

    fn mark() -> Mark {
        Mark {
            castle: "blue".parse().unwrap(),
            layer: "networking".parse().unwrap(),
            incarnation: Incarnation::from_bytes([1; 8]),
            key: key("one life"),
        }
    }

    fn key(secret: &str) -> DigestKey {
        DigestKey::derived(&Secret::new(secret), "objects")
    }

    fn config_map(data: &Value) -> Object {
        Object::new(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}, "data": data,
        }))
        .unwrap()
    }

    #[test]
    fn the_digest_sees_values_but_not_the_order_of_keys() {
        let one = config_map(&json!({"a": "1", "b": "2"}));
        let turned = config_map(&json!({"b": "2", "a": "1"}));
        let digest = |object: &Object| mark().digest(object);
        assert_eq!(digest(&one), digest(&turned));
        assert_ne!(digest(&one), digest(&config_map(&json!({"a": "1", "b": "3"}))));
        let mut marked = one.clone();
        mark().put_on(&mut marked);
        let first = marked.annotation(DIGEST).unwrap().to_owned();
        mark().put_on(&mut marked);
        assert_eq!(
            marked.annotation(DIGEST),
            Some(first.as_str()),
            "marking twice changes nothing"
        );
    }

    #[test]
    fn a_changed_secret_is_noticed_and_can_not_be_guessed() {
        let secret = |token: &str| {
            let object = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "b"}, "stringData": {"token": token},
            });
            Object::new(object).unwrap()
        };
        let marked = |mark: &Mark, token| {
            let mut object = secret(token);
            mark.put_on(&mut object);
            object
        };
        let (one, there) = (mark(), marked(&mark(), "1234"));
        assert_eq!(one.compare(&marked(&one, "1234"), &there), Standing::Same);
        assert_eq!(one.compare(&marked(&one, "1235"), &there), Standing::Differs);
        // Without the key of this life the right guess looks as wrong as any other.
        let guess = marked(&Mark { key: key("another life"), ..one }, "1234");
        assert_ne!(guess.annotation(DIGEST), there.annotation(DIGEST));
    }

    #[test]
    fn what_is_there_is_ours_or_named() {
        let mark = mark();
        let mut wanted = config_map(&json!({"a": "1"}));
        mark.put_on(&mut wanted);
        assert_eq!(mark.compare(&wanted, &wanted), Standing::Same);
        let mut older = config_map(&json!({"a": "0"}));
        mark.put_on(&mut older);
        assert_eq!(mark.compare(&wanted, &older), Standing::Differs);
        let mut helm = config_map(&json!({}));
        helm.put("labels", "app.kubernetes.io/managed-by", "Helm");
        assert_eq!(mark.compare(&wanted, &helm), Standing::Foreign("Helm".into()));
        let mut green = config_map(&json!({}));
        Mark { castle: "green".parse().unwrap(), ..mark.clone() }.put_on(&mut green);
        assert_eq!(mark.compare(&wanted, &green), Standing::Foreign("castle green".into()));
        let mut before = wanted.clone();
        Mark { incarnation: Incarnation::from_bytes([2; 8]), ..mark.clone() }.put_on(&mut before);
        assert_eq!(mark.compare(&wanted, &before), Standing::Differs);
    }
}
