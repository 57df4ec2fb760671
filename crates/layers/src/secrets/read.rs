//! `secrets/read`: every key that the castle needs is there and not empty; all that are not are named at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Context, Step};
use castle_infisical::Found;
use castle_model::{Class, Failure, Observed, Secret};
use castle_platforms::handed::{IDENTITY, KEPT, SECRETS, SecretValues};

use super::Vault;
use super::escrow::BUNDLE_KEY;

/// The step.
pub(super) struct Read(pub(super) Arc<Vault>);

#[async_trait]
impl Step for Read {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let vault = &self.0;
        let place = vault.place().await?;
        let found = vault.client()?.list(&place).await;
        let found = found.map_err(|error| vault.failure("read the secrets from", &error))?;
        let required = vault.spec.required_secrets();
        let (values, wrong) = pick(&required, &found);
        // What is there is handed on all the same: the way down needs the platform's keys and no other.
        cx.outputs().put(&SECRETS, SecretValues(values));
        cx.outputs().put(&IDENTITY, vault.credentials.clone());
        if let Some(kept) = found.own.get(BUNDLE_KEY) {
            cx.outputs().put(&KEPT, kept.value.clone());
        }
        if let Some(why) = wrong {
            let mut hint = "add them there".to_owned();
            if found.own.is_empty() && found.imported.is_empty() {
                hint.push_str("; a list with nothing in it can also mean that the identity may not read this path");
            }
            return Err(Failure::new(Class::Gone, "read the secrets that the castle needs", why)
                .evidence(vault.place_words())
                .hint(hint));
        }
        Ok(Observed::right(format!("{} keys from {}", required.len(), vault.place_words())))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        Ok(format!("{} keys are there", cx.outputs().get(&SECRETS)?.0.len()))
    }
}

/// The required values that can be used, and what is wrong with the others.
fn pick(required: &[String], found: &Found) -> (BTreeMap<String, Secret>, Option<String>) {
    let mut values = BTreeMap::new();
    let (mut missing, mut empty) = (Vec::new(), Vec::new());
    for key in required {
        match found.get(key) {
            None => missing.push(key.as_str()),
            Some(entry) if entry.value.is_blank() => empty.push(key.as_str()),
            Some(entry) => {
                values.insert(key.clone(), entry.value.clone());
            }
        }
    }
    let mut wrong = Vec::new();
    if !missing.is_empty() {
        wrong.push(format!("missing: {}", missing.join(", ")));
    }
    if !empty.is_empty() {
        wrong.push(format!("empty: {}", empty.join(", ")));
    }
    (values, (!wrong.is_empty()).then(|| wrong.join("; ")))
}

#[cfg(test)]
mod tests {
    use castle_infisical::Entry;

    use super::*;

    fn entry(value: &str) -> Entry {
        Entry { value: Secret::new(value), version: 1, metadata: BTreeMap::new() }
    }

    #[test]
    fn everything_that_is_wrong_is_named_at_once_and_no_value_is() {
        let mut found = Found::default();
        found.own.insert("A".to_owned(), entry("hunter2"));
        found.own.insert("B".to_owned(), entry("  \n"));
        found.imported.insert("C".to_owned(), entry("imported"));
        let keys = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let (usable, wrong) = pick(&keys(&["A", "B", "D", "E"]), &found);
        assert_eq!(wrong.as_deref(), Some("missing: D, E; empty: B"));
        assert_eq!(usable.len(), 1, "what is there is handed on all the same");
        let (picked, wrong) = pick(&keys(&["A", "C"]), &found);
        assert_eq!((picked["C"].expose(), picked.len(), wrong), ("imported", 2, None));
    }
}
