//! The mark of ownership on our objects, and the digest by which unchanged ones are left alone.

use castle_model::{CastleName, DigestKey, Incarnation, LayerName};
use serde::Serialize;
use serde_json::Value;

use crate::claim::{self, Claim};
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
    /// Ours, what we last applied is what we want, and we still hold every field of it.
    Same,
    /// Ours, but not as we want it; carries why.
    Differs(String),
    /// Not ours, or not ours alone; carries whose it seems to be.
    Foreign(Claim),
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
            None if !claim::is_applied_by_us(there) => {
                return Standing::Foreign(claim::owner(wanted, there));
            }
            Some(castle) if castle != self.castle.as_str() => {
                return Standing::Foreign(Claim::of(format!("castle {castle}")));
            }
            _ => {}
        }
        if let Some(claim) = claim::claim(wanted, there) {
            return Standing::Foreign(claim);
        }
        let difference = if !self.is_of_this_life(there) {
            Some("it is not marked as of this life of the castle".to_owned())
        } else if there.annotation(DIGEST) != wanted.annotation(DIGEST) {
            Some("something else is wanted now".to_owned())
        } else {
            claim::drift(wanted, there)
        };
        difference.map_or(Standing::Same, Standing::Differs)
    }

    /// Whether an object carries our mark, that of its layer included.
    #[must_use]
    pub fn is_on(&self, object: &Object) -> bool {
        object.label(CASTLE) == Some(self.castle.as_str())
            && object.label(LAYER) == Some(self.layer.as_str())
            && self.is_of_this_life(object)
    }

    fn is_of_this_life(&self, object: &Object) -> bool {
        object.label(INCARNATION) == Some(self.incarnation.to_string().as_str())
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
        let (one, there) = (mark(), applied(marked(&mark(), "1234")));
        assert_eq!(one.compare(&marked(&one, "1234"), &there), Standing::Same);
        assert!(differs(&one, &marked(&one, "1235"), &there));
        // Without the key of this life the right guess looks as wrong as any other.
        let guess = marked(&Mark { key: key("another life"), ..one }, "1234");
        assert_ne!(guess.annotation(DIGEST), there.annotation(DIGEST));
    }

    /// An object as the server shows it after we have applied it: with all of its fields ours.
    fn applied(object: Object) -> Object {
        fn tree(value: &Value) -> Value {
            let map = value.as_object();
            map.into_iter()
                .flatten()
                .map(|(name, value)| (format!("f:{name}"), tree(value)))
                .collect()
        }
        let tree = tree(object.value());
        let mut value = object.into_value();
        value["metadata"]["managedFields"] =
            json!([{"manager": "castle", "operation": "Apply", "fieldsV1": tree}]);
        Object::new(value).unwrap()
    }

    fn differs(mark: &Mark, wanted: &Object, there: &Object) -> bool {
        matches!(mark.compare(wanted, there), Standing::Differs(_))
    }

    #[test]
    fn what_is_there_is_ours_or_named() {
        let mark = mark();
        let mut wanted = config_map(&json!({"a": "1"}));
        mark.put_on(&mut wanted);
        assert_eq!(mark.compare(&wanted, &applied(wanted.clone())), Standing::Same);
        assert!(
            differs(&mark, &wanted, &wanted),
            "without managers nobody knows what was done to it"
        );
        let mut older = config_map(&json!({"a": "0"}));
        mark.put_on(&mut older);
        assert!(differs(&mark, &wanted, &applied(older)));
        let mut helm = config_map(&json!({}));
        helm.put("labels", "app.kubernetes.io/managed-by", "Helm");
        assert_eq!(mark.compare(&wanted, &helm), Standing::Foreign(Claim::of("Helm")));
        let mut green = config_map(&json!({}));
        Mark { castle: "green".parse().unwrap(), ..mark.clone() }.put_on(&mut green);
        let foreign = Standing::Foreign(Claim::of("castle green"));
        assert_eq!(mark.compare(&wanted, &applied(green)), foreign);
        let mut before = wanted.clone();
        Mark { incarnation: Incarnation::from_bytes([2; 8]), ..mark.clone() }.put_on(&mut before);
        assert!(differs(&mark, &wanted, &applied(before)));
    }

    #[test]
    fn what_we_applied_stays_ours_without_its_labels() {
        let mark = mark();
        let mut wanted = config_map(&json!({"a": "1"}));
        mark.put_on(&mut wanted);
        let mut stripped = applied(wanted.clone()).into_value();
        stripped["metadata"]["labels"] = json!({});
        assert!(differs(&mark, &wanted, &Object::new(stripped).unwrap()));
    }

    #[test]
    fn the_mark_names_the_layer_too() {
        let one = mark();
        let mut object = config_map(&json!({}));
        one.put_on(&mut object);
        assert!(one.is_on(&object));
        assert!(!Mark { layer: "storage".parse().unwrap(), ..one.clone() }.is_on(&object));
        assert!(!Mark { incarnation: Incarnation::from_bytes([2; 8]), ..one }.is_on(&object));
    }
}
