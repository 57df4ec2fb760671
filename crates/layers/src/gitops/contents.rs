//! What Flux would find in a repository: from the cluster's folder on, through every Kustomization that points further.
//!
//! Pure. Only what Flux would read is read: a folder is what its `kustomization.yaml` names, else all YAML below it.

use std::collections::{BTreeMap, BTreeSet};

use castle_git::{Entry, Tree};
use castle_kubernetes::Object;
use castle_kubernetes::manifest::{parse, values};
use castle_model::Finding;
use serde_json::Value;

use super::{KUSTOMIZE, NAMESPACE};

/// How deep folders may name each other.
const DEEPEST: u8 = 32;
/// The names of the files that list what a folder holds.
const LISTS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// An object with its place.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    /// The file.
    pub(super) file: String,
    /// The object.
    pub(super) object: Object,
}

/// All that was found.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Every object.
    pub(super) objects: Vec<Placed>,
    /// Addresses outside of the repository that a folder takes objects from, with the file that says so.
    pub(super) remote: Vec<(String, String)>,
    /// What Flux will stumble over, with its place.
    pub(super) warnings: Vec<Finding>,
    /// Whether something could not be looked into, so that what was not found may still be there.
    pub(super) partial: bool,
}

/// A path without the differences that mean nothing; none if it leads out of the repository.
pub(super) fn clean(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

impl Contents {
    /// Everything that the folder of a cluster leads to.
    pub(super) fn read(tree: &Tree, path: &str) -> Self {
        let mut reader = Reader { tree, found: Self::default(), seen: BTreeSet::new() };
        let mut open = vec![path.to_owned()];
        let mut followed = BTreeSet::new();
        while let Some(folder) = open.pop() {
            if !followed.insert(folder.clone()) {
                continue;
            }
            let before = reader.found.objects.len();
            reader.folder(&folder, DEEPEST);
            let units: Vec<Placed> = reader.found.objects[before..]
                .iter()
                .filter(|placed| is_unit(&placed.object))
                .cloned()
                .collect();
            for unit in units {
                open.extend(reader.led(&unit));
            }
        }
        let mut found = reader.found;
        found.warnings.extend(needs(&found.objects));
        found
    }

    /// The Kustomizations.
    pub(super) fn units(&self) -> impl Iterator<Item = &Placed> {
        self.objects.iter().filter(|placed| is_unit(&placed.object))
    }
}

fn is_unit(object: &Object) -> bool {
    object.kind() == "Kustomization" && object.group() == group(KUSTOMIZE)
}

fn group(api_version: &str) -> &str {
    api_version.split('/').next().unwrap_or_default()
}

struct Reader<'a> {
    tree: &'a Tree,
    found: Contents,
    /// Files that were read: several folders may name one.
    seen: BTreeSet<String>,
}

impl Reader<'_> {
    fn warn(&mut self, place: impl Into<String>, why: impl Into<String>, cure: &str) {
        self.found.warnings.push(Finding::new(place, why, cure));
    }

    /// The folder that a Kustomization points at, if it is in this repository.
    fn led(&mut self, unit: &Placed) -> Option<String> {
        let object = &unit.object;
        let reference = |key: &str| object.text(&format!("/spec/sourceRef/{key}"));
        let home = reference("namespace").or(object.namespace());
        let ours = reference("kind") == Some("GitRepository")
            && reference("name") == Some(NAMESPACE)
            && home.is_none_or(|home| home == NAMESPACE);
        if !ours {
            // Another source: what it holds is not known.
            self.found.partial = true;
            return None;
        }
        let told = object.text("/spec/path").unwrap_or("./");
        let name = object.name().to_owned();
        let cure = "correct `spec.path`, or push what it names";
        let Some(path) = clean(told) else {
            let why = format!(
                "Kustomization {name} has the path `{told}`, which leads out of the repository"
            );
            self.warn(&unit.file, why, cure);
            return None;
        };
        match self.tree.entry(&path) {
            Some(Entry::Folder) => Some(path),
            Some(_) => {
                let why =
                    format!("Kustomization {name} has the path `{told}`, which is not a folder");
                self.warn(&unit.file, why, cure);
                None
            }
            None => {
                let why = format!("Kustomization {name} has the path `{told}`, which is not there");
                self.warn(&unit.file, why, cure);
                None
            }
        }
    }

    /// Reads what a folder stands for.
    fn folder(&mut self, folder: &str, left: u8) {
        if left == 0 {
            return self.warn(folder, "folders name each other in a circle", "break the circle");
        }
        let list = LISTS.iter().map(|name| joined(folder, name));
        let list =
            list.into_iter().find(|path| matches!(self.tree.entry(path), Some(Entry::File(_))));
        match list {
            Some(list) => self.listed(folder, &list, left),
            None => self.below(folder, left),
        }
    }

    /// What the list of a folder names.
    fn listed(&mut self, folder: &str, list: &str, left: u8) {
        let Some(text) = self.text(list) else { return };
        let value = match values(list, &text) {
            Ok(documents) => documents.into_iter().next().unwrap_or_default(),
            Err(error) => return self.warn(error.place, error.why, "correct the file"),
        };
        let entries = ["resources", "components", "bases"]
            .iter()
            .filter_map(|key| value.get(key)?.as_array())
            .flatten()
            .filter_map(Value::as_str);
        for entry in entries {
            if entry.contains("://") || entry.starts_with("github.com/") {
                self.found.partial = true;
                self.found.remote.push((list.to_owned(), entry.to_owned()));
                continue;
            }
            let place = clean(&joined(folder, entry));
            match place.as_deref().map(|path| (path, self.tree.entry(path))) {
                Some((path, Some(Entry::Folder))) => self.folder(path, left - 1),
                Some((path, Some(_))) => self.file(path),
                Some((_, None)) | None => {
                    let why = format!("it names `{entry}`, which is not in the repository");
                    self.warn(list, why, "push the file, or take it out of the list");
                }
            }
        }
    }

    /// All YAML below a folder; a folder with a list of its own goes by that.
    fn below(&mut self, folder: &str, left: u8) {
        let depth = if folder.is_empty() { 0 } else { folder.len() + 1 };
        let inner: Vec<(String, bool)> = self
            .tree
            .below(folder)
            .filter(|(path, _)| !path[depth..].contains('/'))
            .map(|(path, entry)| (path.to_owned(), *entry == Entry::Folder))
            .collect();
        for (path, is_folder) in inner {
            if is_folder {
                self.folder(&path, left - 1);
            } else if matches!(path.rsplit_once('.'), Some((_, "yaml" | "yml"))) {
                self.file(&path);
            }
        }
    }

    fn file(&mut self, path: &str) {
        if !self.seen.insert(path.to_owned()) {
            return;
        }
        let Some(text) = self.text(path) else { return };
        match parse(path, &text) {
            Ok(objects) => self
                .found
                .objects
                .extend(objects.into_iter().map(|object| Placed { file: path.to_owned(), object })),
            Err(error) => {
                self.found.partial = true;
                self.warn(error.place, error.why, "Flux can not read it either: correct the file");
            }
        }
    }

    /// The text of a file, if it is one that can be read.
    fn text(&mut self, path: &str) -> Option<String> {
        if let Some(Entry::File(bytes)) = self.tree.entry(path)
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            return Some(text.to_owned());
        }
        self.found.partial = true;
        None
    }
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Who a Kustomization waits for, by namespace and name.
pub(super) fn waits_for(unit: &Object) -> Vec<(String, String)> {
    let home = unit.namespace().unwrap_or(NAMESPACE);
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let entries = unit.entries("/spec/dependsOn").iter();
    entries
        .filter_map(|need| {
            Some((text(need, "namespace").unwrap_or_else(|| home.to_owned()), text(need, "name")?))
        })
        .collect()
}

/// Kustomizations that wait for one that nobody declares, or in a circle: neither ever becomes ready.
fn needs(objects: &[Placed]) -> Vec<Finding> {
    let name = |object: &Object| {
        (object.namespace().unwrap_or(NAMESPACE).to_owned(), object.name().to_owned())
    };
    let units: BTreeMap<(String, String), &Placed> = objects
        .iter()
        .filter(|placed| is_unit(&placed.object))
        .map(|placed| (name(&placed.object), placed))
        .collect();
    let mut findings = Vec::new();
    let mut edges = BTreeMap::new();
    for (id, placed) in &units {
        let needs = waits_for(&placed.object);
        for (home, need) in &needs {
            if !units.contains_key(&(home.clone(), need.clone())) && need != NAMESPACE {
                let why = format!(
                    "Kustomization {} depends on {home}/{need}, which the repository does not declare",
                    id.1
                );
                findings.push(Finding::new(
                    &placed.file,
                    why,
                    "correct `dependsOn`, or declare it",
                ));
            }
        }
        edges.insert(id.clone(), needs);
    }
    for circle in circles(&edges) {
        let names: Vec<&str> = circle.iter().map(|(_, name)| name.as_str()).collect();
        let why = format!("Kustomizations wait for each other in a circle: {}", names.join(", "));
        let file = circle.first().and_then(|id| units.get(id)).map_or("", |placed| &placed.file);
        findings.push(Finding::new(file, why, "take one of them out of the other's `dependsOn`"));
    }
    findings
}

/// Groups of units that wait for each other, each in the order of names.
pub(super) fn circles<K: Ord + Clone>(edges: &BTreeMap<K, Vec<K>>) -> Vec<Vec<K>> {
    let reached = |start: &K| {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&K> = edges.get(start).into_iter().flatten().collect();
        while let Some(next) = open.pop() {
            if seen.insert(next.clone()) {
                open.extend(edges.get(next).into_iter().flatten());
            }
        }
        seen
    };
    let reach: BTreeMap<&K, BTreeSet<K>> = edges.keys().map(|id| (id, reached(id))).collect();
    let mut told = BTreeSet::new();
    let mut circles = Vec::new();
    for (id, seen) in &reach {
        if !seen.contains(*id) || told.contains(*id) {
            continue;
        }
        let circle: Vec<K> = reach
            .iter()
            .filter(|(other, back)| seen.contains(**other) && back.contains(*id))
            .map(|(other, _)| (*other).clone())
            .collect();
        told.extend(circle.iter().cloned());
        circles.push(circle);
    }
    circles
}

#[cfg(test)]
mod tests;
