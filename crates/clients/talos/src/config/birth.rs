//! Settings that are decided when a machine is born: changed later, they would be ignored, or would cost the data.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use castle_model::{Class, DigestKey, Failure, Secret};
use serde_json::{Value, json};

use super::read;

/// The settings of birth: their name in a mark, and what they are in words.
pub const SETTINGS: [(&str, &str); 4] = [
    ("cert-sans", "the additional names in certificates (certSANs)"),
    ("disk-encryption", "the encryption of disks"),
    ("secretbox", "the encryption of secrets in etcd (secretbox)"),
    ("service-account", "the key that signs service account tokens"),
];

/// What a machine was, or would be, born with: a digest per setting. It holds no secret: the digests are keyed by
/// the cluster's own secret, so that nobody can try out passphrases against them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BirthMark(BTreeMap<String, String>);

impl BirthMark {
    /// The mark of a machine config, of any generation.
    ///
    /// # Errors
    /// If the text is not a machine config.
    pub fn of(config: &Secret) -> Result<Self, Failure> {
        let documents = read(config.expose()).ok_or_else(|| {
            Failure::new(Class::Invalid, "read a machine config", "the text is not YAML")
        })?;
        let all = Documents(&documents);
        let root = all.either("/cluster/secret", "DiscoveryIdentityConfig", "/clusterSecret");
        let root = Secret::new(root.as_str().unwrap_or_default());
        let values = [all.names(), all.encryption(), all.secretbox(), all.service_account()];
        let digests = SETTINGS.iter().zip(values).map(|((name, _), value)| {
            ((*name).to_owned(), DigestKey::derived(&root, name).of(canonical(&value)))
        });
        Ok(Self(digests.collect()))
    }

    /// The settings in which a living machine differs from what is wanted, in words; each needs a rebirth.
    #[must_use]
    pub fn differences(&self, wanted: &Self) -> Vec<String> {
        let differs = |name: &&(&str, &str)| self.0.get(name.0) != wanted.0.get(name.0);
        SETTINGS.iter().filter(differs).map(|(_, words)| (*words).to_owned()).collect()
    }
}

/// The documents of one config.
struct Documents<'a>(&'a [Value]);

impl Documents<'_> {
    fn main(&self, path: &str) -> Value {
        let main = self.0.iter().find(|document| document.get("kind").is_none());
        main.and_then(|main| main.pointer(path)).cloned().unwrap_or_default()
    }

    fn beside(&self, kind: &str, path: &str) -> Value {
        let document = self.0.iter().find(|document| document["kind"] == kind);
        document.and_then(|document| document.pointer(path)).cloned().unwrap_or_default()
    }

    /// What stands in the main document, or where newer versions keep it.
    fn either(&self, path: &str, kind: &str, newer: &str) -> Value {
        match self.main(path) {
            Value::Null => self.beside(kind, newer),
            value => value,
        }
    }

    /// All names, in no particular order.
    fn names(&self) -> Value {
        let server =
            self.either("/cluster/apiServer/certSANs", "KubeAPIServerConfig", "/certExtraSANs");
        let mut names: Vec<String> = [self.main("/machine/certSANs"), server]
            .iter()
            .flat_map(|list| list.as_array().cloned().unwrap_or_default())
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        names.sort();
        names.dedup();
        json!(names)
    }

    /// The encryption of each volume that has one.
    fn encryption(&self) -> Value {
        let volumes = self.0.iter().filter(|document| !document["encryption"].is_null());
        let mut volumes: Vec<String> = volumes
            .map(|it| canonical(&json!([it["kind"], it["name"], it["encryption"]])))
            .collect();
        volumes.sort();
        json!([volumes, self.main("/machine/systemDiskEncryption")])
    }

    fn secretbox(&self) -> Value {
        let keys = "/config/resources/0/providers/0/secretbox/keys/0/secret";
        self.either("/cluster/secretboxEncryptionSecret", "KubeEtcdEncryptionConfig", keys)
    }

    fn service_account(&self) -> Value {
        let encoded = self.main("/cluster/serviceAccount/key");
        let pem = encoded.as_str().and_then(|text| STANDARD.decode(text).ok());
        let pem = pem.and_then(|bytes| String::from_utf8(bytes).ok());
        pem.map_or_else(
            || self.beside("KubeServiceAccountConfig", "/issuer/privateKey"),
            Value::String,
        )
    }
}

/// A value in one form only: keys in order, nothing that is empty.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let ordered: BTreeMap<&String, String> = map
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key, canonical(value)))
                .collect();
            let parts: Vec<String> =
                ordered.iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
            format!("{{{}}}", parts.join(","))
        }
        Value::Array(list) => {
            let parts: Vec<String> = list.iter().map(canonical).collect();
            format!("[{}]", parts.join(","))
        }
        plain => plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use castle_model::spec::{DiskEncryption, SecretRef};

    use super::*;
    use crate::bundle::Bundle;
    use crate::config::machine_config;
    use crate::testing::{FixedClock, TestEntropy, spec};

    fn bundle(seed: u64) -> Bundle {
        Bundle::generate(&TestEntropy::new(seed), &FixedClock).unwrap()
    }

    fn mark(bundle: &Bundle, change: impl FnOnce(&mut castle_model::Spec)) -> BirthMark {
        let mut spec = spec();
        change(&mut spec);
        let secrets = |key: &SecretRef| Ok(Secret::new(format!("value of {}", key.0)));
        let config = machine_config(&spec, &spec.nodes[0], bundle, "x", &secrets).unwrap();
        BirthMark::of(&config.text).unwrap()
    }

    #[test]
    fn each_setting_of_birth_is_seen_and_nothing_else() {
        let bundle = bundle(7);
        let living = mark(&bundle, |_| {});
        let same = mark(&bundle, |spec| spec.machine.coredns = false);
        assert_eq!(living.differences(&same), [""; 0]);
        let names = mark(&bundle, |spec| spec.machine.cert_sans = vec!["api.lan".to_owned()]);
        assert_eq!(living.differences(&names), [SETTINGS[0].1]);
        let encrypted = |how| mark(&bundle, |spec| spec.machine.disk_encryption = Some(how));
        assert_eq!(living.differences(&encrypted(DiskEncryption::Tpm)), [SETTINGS[1].1]);
        let one = encrypted(DiskEncryption::Passphrase(SecretRef("ONE".to_owned())));
        let two = encrypted(DiskEncryption::Passphrase(SecretRef("TWO".to_owned())));
        assert_eq!(one.differences(&two), [SETTINGS[1].1], "another passphrase is seen too");
        let open = mark(&bundle, |spec| spec.machine.secretbox = false);
        assert_eq!(living.differences(&open), [SETTINGS[2].1]);
        let mut renewed = bundle.clone();
        renewed.service_account = Secret::new("another key");
        assert_eq!(living.differences(&mark(&renewed, |_| {})), [SETTINGS[3].1]);
    }

    #[test]
    fn both_generations_of_the_format_have_one_mark() {
        let bundle = bundle(7);
        let marks = ["1.12.11", "1.13.9", "1.14.1"]
            .map(|talos| mark(&bundle, |spec| spec.talos = talos.parse().unwrap()));
        assert_eq!(marks[0], marks[1]);
        assert_eq!(marks[1], marks[2]);
    }

    #[test]
    fn a_mark_is_no_secret() {
        let (one, other) = (mark(&bundle(7), |_| {}), mark(&bundle(8), |_| {}));
        assert_ne!(one.0["cert-sans"], other.0["cert-sans"], "digests are keyed by the cluster");
    }
}
