//! Every value that a castle needs, from the first source that has it; and everything that is wrong, at once.

use std::collections::BTreeMap;

use castle_model::{Class, Failure, Finding, Secret, Spec};

use super::shape;
use super::source::{Sources, Values};

/// What was found of the keys that are needed.
#[derive(Debug, Default)]
pub struct Gathered {
    /// The values that can be used.
    pub values: Values,
    /// By key, where it was found: the place in words.
    pub origins: BTreeMap<String, String>,
    /// By key, the number of the source among those of the castle file.
    pub numbers: BTreeMap<String, usize>,
    /// Keys that no source has.
    pub missing: Vec<String>,
    /// Keys with a value that can not be used: where it is, and why.
    pub wrong: BTreeMap<String, (String, String)>,
    /// What a person should know.
    pub notices: Vec<String>,
    /// What else may be the reason that keys are missing.
    pub doubts: Vec<String>,
    /// Where a missing key is looked for, by key.
    pub places: BTreeMap<String, String>,
}

impl Sources {
    /// Asks the sources in their order, each once, and only while something is missing.
    ///
    /// # Errors
    /// If a source can not be read: that is not the same as a key that it does not have.
    pub async fn gather(&self, spec: &Spec) -> Result<Gathered, Failure> {
        let mut open = spec.required_secrets();
        let mut gathered = Gathered::default();
        for (number, source) in self.list.iter().enumerate() {
            if open.is_empty() {
                break;
            }
            let found = source.read(&open).await?;
            open.retain(|key| {
                let Some(value) = found.get(key) else { return true };
                gathered.take(spec, key, value, source.place_of(key));
                gathered.numbers.insert(key.clone(), number);
                false
            });
        }
        if !open.is_empty() {
            for source in &self.list {
                gathered.doubts.extend(source.doubt(&open).await);
            }
        }
        for key in &open {
            let places: Vec<String> = self.list.iter().map(|source| source.place_of(key)).collect();
            gathered.places.insert(key.clone(), places.join(", nor "));
        }
        gathered.missing = open;
        Ok(gathered)
    }
}

impl Gathered {
    fn take(&mut self, spec: &Spec, key: &str, value: &Secret, place: String) {
        match shape::clean(spec.shape(key), value) {
            Ok(clean) => {
                if let Some(what) = clean.left_out {
                    let were = if what.ends_with('s') { "were" } else { "was" };
                    self.notices
                        .push(format!("{key}: the {what} around its value {were} left out"));
                }
                self.values.insert(key.to_owned(), clean.value);
            }
            Err(why) => {
                self.wrong.insert(key.to_owned(), (place.clone(), why));
            }
        }
        self.origins.insert(key.to_owned(), place);
    }

    /// Everything that is wrong, as one failure; none if nothing is.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        if self.missing.is_empty() && self.wrong.is_empty() {
            return None;
        }
        let mut findings: Vec<Finding> = Vec::new();
        for key in &self.missing {
            let place = self.places.get(key).cloned().unwrap_or_default();
            findings.push(Finding::new(place, "it is not there", "add it"));
        }
        for (place, why) in self.wrong.values() {
            findings.push(Finding::new(place, why, "put it right there"));
        }
        let mut why = Vec::new();
        let named = |keys: Vec<&String>| {
            keys.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ")
        };
        if !self.missing.is_empty() {
            why.push(format!("missing: {}", named(self.missing.iter().collect())));
        }
        if !self.wrong.is_empty() {
            why.push(format!("not usable: {}", named(self.wrong.keys().collect())));
        }
        let class = if self.missing.is_empty() { Class::Invalid } else { Class::Gone };
        let mut failure =
            Failure::new(class, "read the secrets that the castle needs", why.join("; "))
                .findings(findings);
        if !self.doubts.is_empty() {
            failure = failure.hint(self.doubts.join("; "));
        }
        Some(failure)
    }
}
