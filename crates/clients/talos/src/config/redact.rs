//! A machine config as it may be shown: every secret replaced, by its place and by its value.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use castle_model::Secret;
use serde_json::Value;

use super::{read, write};
use crate::bundle::Bundle;

/// What stands in a secret's place.
pub const REDACTED: &str = "(redacted)";

/// Keys under which Talos' documents keep secrets, whatever the document.
const KEYS: &[&str] = &[
    "aescbcEncryptionSecret",
    "auth",
    "clusterSecret",
    "identityToken",
    "key",
    "passphrase",
    "password",
    "presharedKey",
    "privateKey",
    "secret",
    "secretboxEncryptionSecret",
    "token",
    "username",
];

/// Writes a config with every secret replaced. One that can not be read is replaced as a whole.
#[must_use]
pub fn redacted(config: &Secret, bundle: &Bundle) -> String {
    let Some(mut documents) = read(config.expose()) else { return format!("{REDACTED}\n") };
    let secrets = bundle.secrets();
    for document in &mut documents {
        hide(document, "", &secrets);
    }
    write(&documents)
}

fn hide(value: &mut Value, key: &str, secrets: &[Secret]) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                hide(value, key, secrets);
            }
        }
        Value::Array(list) => {
            for element in list {
                hide(element, key, secrets);
            }
        }
        Value::String(text) if text.is_empty() => {}
        Value::String(text) if KEYS.contains(&key) || is_private_key(text) => {
            REDACTED.clone_into(text);
        }
        Value::String(text) => {
            for secret in secrets {
                let secret = secret.expose().trim();
                if text.contains(secret) {
                    *text = text.replace(secret, REDACTED);
                }
            }
        }
        // A token or passphrase may look like a number.
        Value::Number(_) if KEYS.contains(&key) => *value = REDACTED.into(),
        _ => {}
    }
}

/// Whether a text holds a private key as PEM, plain or in base64.
fn is_private_key(text: &str) -> bool {
    let label = "PRIVATE KEY-----";
    let decoded = STANDARD.decode(text.trim()).unwrap_or_default();
    text.contains(label) || String::from_utf8_lossy(&decoded).contains(label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{machine_config, without_secrets};
    use crate::testing::{FixedClock, TestEntropy, spec};

    #[test]
    fn no_secret_of_the_bundle_is_shown_wherever_it_stands() {
        let bundle = Bundle::generate(&TestEntropy::new(7), &FixedClock).unwrap();
        for talos in ["1.12.11", "1.13.9", "1.14.1"] {
            let mut spec = spec();
            spec.talos = talos.parse().unwrap();
            for node in &spec.nodes {
                let config = machine_config(&spec, node, &bundle, "x", &without_secrets).unwrap();
                let shown = redacted(&config.text, &bundle);
                let kept = config.text.expose().len();
                assert!(shown.contains(REDACTED) && shown.len() < kept, "{talos} {}", node.name);
                for secret in bundle.secrets() {
                    // Keys are folded over lines in YAML, so their lines are looked for one by one.
                    for line in secret.expose().lines().filter(|line| !line.starts_with("-----")) {
                        assert!(!shown.contains(line), "{talos} {}", node.name);
                    }
                }
                assert!(!shown.contains("PRIVATE KEY"));
                assert!(shown.contains("clusterName: blue"), "the rest stays");
            }
        }
    }

    #[test]
    fn a_secret_at_an_unusual_place_is_found_by_its_value() {
        let bundle = Bundle::generate(&TestEntropy::new(7), &FixedClock).unwrap();
        let token = bundle.bootstrap_token.expose();
        let odd = format!("machine:\n  files:\n    - content: \"x {token} y\"\n");
        assert_eq!(
            redacted(&Secret::new(odd), &bundle),
            "machine:\n  files:\n  - content: x (redacted) y\n"
        );
        for secret in bundle.secrets() {
            let odd = write(&[serde_json::json!({ "note": [secret.expose()] })]);
            assert_eq!(redacted(&Secret::new(odd), &bundle), "note:\n- (redacted)\n");
        }
        assert_eq!(redacted(&Secret::new("hunter2: ["), &bundle), "(redacted)\n");
    }
}
