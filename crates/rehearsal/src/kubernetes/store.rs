//! What the cluster remembers: every object by its place, and numbered changes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many changes a watch can look back.
const REMEMBERED: usize = 2_000;

/// The objects of one cluster.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Store {
    /// Shared with the changes and with whoever looks: most looks copy nothing.
    #[serde(with = "shared")]
    objects: BTreeMap<String, Arc<Value>>,
    /// The number of the last change.
    version: u64,
    /// The last changes. Watches do not outlive the process, so neither do these.
    #[serde(skip)]
    history: VecDeque<Change>,
}

/// Two stores are equal when they hold the same; how far a watch could look back is not part of it.
impl PartialEq for Store {
    fn eq(&self, other: &Self) -> bool {
        self.version == other.version && self.objects == other.objects
    }
}

/// One change, for watches.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) version: u64,
    pub(super) key: String,
    /// What was there; none if the object is new.
    pub(super) before: Option<Arc<Value>>,
    /// The object as it is now, or as it was last.
    pub(super) object: Arc<Value>,
    /// Whether the object is gone.
    pub(super) gone: bool,
}

/// Shared objects are saved as plain ones.
mod shared {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};
    use serde_json::Value;

    type Objects = BTreeMap<String, Arc<Value>>;

    pub(super) fn serialize<S: Serializer>(all: &Objects, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(all.iter().map(|(key, object)| (key, &**object)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Objects, D::Error> {
        let all = BTreeMap::<String, Value>::deserialize(from)?;
        Ok(all.into_iter().map(|(key, object)| (key, Arc::new(object))).collect())
    }
}

/// The place of an object: group, plural, namespace (empty for the whole cluster) and name.
pub(super) fn key(group: &str, plural: &str, namespace: &str, name: &str) -> String {
    format!("{group}/{plural}/{namespace}/{name}")
}

/// The parts of a place.
pub(super) fn parts(key: &str) -> (&str, &str, &str, &str) {
    let mut parts = key.splitn(4, '/');
    let mut next = || parts.next().unwrap_or_default();
    (next(), next(), next(), next())
}

impl Store {
    /// The number of the last change.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.objects.get(key).map(|object| &**object)
    }

    /// An object to keep while others change.
    pub(super) fn shared(&self, key: &str) -> Option<Arc<Value>> {
        self.objects.get(key).cloned()
    }

    /// The objects whose places begin so, in order.
    pub(super) fn under<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a String, &'a Arc<Value>)> {
        self.objects.range(prefix.to_owned()..).take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// All objects of a kind.
    pub(super) fn all(&self, group: &str, plural: &str) -> impl Iterator<Item = (&String, &Value)> {
        let prefix = format!("{group}/{plural}/");
        let end = format!("{group}/{plural}0");
        self.objects.range(prefix..end).map(|(key, object)| (key, &**object))
    }

    /// The places of all objects of a kind.
    pub(super) fn keys(&self, group: &str, plural: &str) -> Vec<String> {
        self.all(group, plural).map(|(key, _)| key.clone()).collect()
    }

    /// Stores an object under a new number, unless it is the same as before. Gives it back as stored.
    pub(super) fn put(&mut self, key: &str, mut object: Value) -> Arc<Value> {
        let before = self.objects.get(key);
        if let Some(before) = before {
            object["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
            if **before == object {
                return before.clone();
            }
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let object = Arc::new(object);
        let before = self.objects.insert(key.to_owned(), object.clone());
        self.remember(key, before, object.clone(), false);
        object
    }

    /// Changes an object in place, if it is there.
    pub(super) fn change(&mut self, key: &str, change: impl FnOnce(&mut Value)) {
        if let Some(mut object) = self.get(key).cloned() {
            change(&mut object);
            self.put(key, object);
        }
    }

    /// Removes an object.
    pub(super) fn remove(&mut self, key: &str) -> Option<Arc<Value>> {
        let before = self.objects.remove(key)?;
        let mut object = (*before).clone();
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let object = Arc::new(object);
        self.remember(key, Some(before), object.clone(), true);
        Some(object)
    }

    /// The changes after a number; none if they are no longer remembered.
    pub(super) fn since(&self, version: u64) -> Option<impl Iterator<Item = &Change>> {
        (version >= self.oldest()).then(|| {
            let skip = self.history.partition_point(|change| change.version <= version);
            self.history.iter().skip(skip)
        })
    }

    /// The oldest number after which all changes are remembered.
    pub(super) fn oldest(&self) -> u64 {
        self.history.front().map_or(self.version, |change| change.version - 1)
    }

    /// The objects whose places begin so, as they were at a number; none if that is no longer remembered.
    pub(super) fn under_at(
        &self,
        prefix: &str,
        version: u64,
    ) -> Option<BTreeMap<String, Arc<Value>>> {
        let changes = self.since(version)?;
        let now = self.under(prefix).map(|(key, object)| (key.clone(), object.clone()));
        let mut then: BTreeMap<String, Arc<Value>> = now.collect();
        let mut seen = BTreeSet::new();
        for change in changes.filter(|change| change.key.starts_with(prefix)) {
            if !seen.insert(&change.key) {
                continue;
            }
            match &change.before {
                Some(before) => then.insert(change.key.clone(), before.clone()),
                None => then.remove(&change.key),
            };
        }
        Some(then)
    }

    fn remember(&mut self, key: &str, before: Option<Arc<Value>>, object: Arc<Value>, gone: bool) {
        if self.history.len() >= REMEMBERED {
            self.history.pop_front();
        }
        let (version, key) = (self.version, key.to_owned());
        self.history.push_back(Change { version, key, before, object, gone });
    }
}
