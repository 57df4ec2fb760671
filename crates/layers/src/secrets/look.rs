//! The sources and the place of escrow as people ask about them, without a run.

use castle_model::{Failure, Incarnation, Secret, Spec};
use castle_platforms::escrow::{BUNDLE_KEY, KUBECONFIG_KEY, TALOSCONFIG_KEY};
use castle_platforms::handed::escrowed_incarnation;

use super::shape;
use super::source::Sources;

/// The entries that a castle makes: their keys, and what they are.
pub const ENTRIES: [(&str, &str); 3] = [
    (BUNDLE_KEY, "Talos secrets"),
    (KUBECONFIG_KEY, "kubeconfig"),
    (TALOSCONFIG_KEY, "talosconfig"),
];

/// A value as a run would use it.
pub struct Found {
    /// The value; where its form is wrong, as it is.
    pub value: Secret,
    /// Where it is, in words.
    pub place: String,
    /// What a person should know: what was left out, or why a run would refuse it.
    pub remark: Option<String>,
}

/// What is kept under one key.
pub struct KeptEntry {
    /// Its key.
    pub key: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Its text and its life, if anything is there; in words, why it is not this castle's.
    pub kept: Option<(Secret, Result<Incarnation, String>)>,
}

impl Sources {
    /// The value of any key, from the first source that has it, else from the place of escrow.
    ///
    /// # Errors
    /// If a source can not be read.
    pub async fn value(&self, spec: &Spec, key: &str) -> Result<Option<Found>, Failure> {
        let wanted = [key.to_owned()];
        for source in &self.list {
            if let Some(value) = source.read(&wanted).await?.remove(key) {
                let place = source.place_of(key);
                if !spec.required_secrets().contains(&wanted[0]) {
                    return Ok(Some(Found { value, place, remark: None }));
                }
                return Ok(Some(match shape::clean(spec.shape(key), &value) {
                    Ok(clean) => {
                        let remark =
                            clean.left_out.map(|what| format!("without the {what} around it"));
                        Found { value: clean.value, place, remark }
                    }
                    Err(why) => Found {
                        value,
                        place,
                        remark: Some(format!("a run would refuse it: {why}")),
                    },
                }));
            }
        }
        let kept = self.escrow.0.kept().await?.remove(key);
        let place = format!("{key} in {}", self.escrow.0.place());
        Ok(kept.map(|value| Found { value, place, remark: None }))
    }

    /// Where a key is looked for, for a person who is to put it there.
    #[must_use]
    pub fn places_of(&self, key: &str) -> Vec<String> {
        self.list.iter().map(|source| source.place_of(key)).collect()
    }

    /// Whether what castle makes could be kept, as far as that is known without writing.
    ///
    /// # Errors
    /// Why a run would be refused.
    pub fn keeps(&self) -> Result<(), Failure> {
        self.escrow.0.writable()
    }

    /// The place of escrow in words, and the entries of a castle there.
    ///
    /// # Errors
    /// If the place can not be read.
    pub async fn escrowed(&self, spec: &Spec) -> Result<(String, Vec<KeptEntry>), Failure> {
        let mut kept = self.escrow.0.kept().await?;
        let entries = ENTRIES.map(|(key, what)| {
            let kept = kept.remove(key).map(|text| {
                let life = escrowed_incarnation(&spec.name, &text);
                (text, life)
            });
            KeptEntry { key, what, kept }
        });
        Ok((self.escrow.0.place(), entries.into()))
    }
}
