//! How the castle file changes a release: a list of named adjustments of its objects, each shown in the plan.
//!
//! An adjustment that finds nothing to change is an error: the release is of another shape than the setting takes for
//! granted, and a castle that silently lacks what its file asks for is worse than none.

use castle_model::spec::ObjectPatch;
use castle_model::{Class, Failure};
use serde_json::{Map, Value, json};

mod merge;

pub(crate) use merge::merge;

/// The labels by which PodSecurity lets a namespace's pods do everything: CSI drivers and speakers need the host.
const PRIVILEGED: [&str; 3] = [
    "pod-security.kubernetes.io/enforce",
    "pod-security.kubernetes.io/audit",
    "pod-security.kubernetes.io/warn",
];

/// Changes an object; says whether it found what it is to change.
type Edit = Box<dyn Fn(&mut Value) -> bool + Send + Sync>;
/// Changes the whole set; says whether it found what it is to change.
type EditSet = Box<dyn Fn(&mut Vec<Value>) -> bool + Send + Sync>;

enum Change {
    /// The objects of this kind, all or the one of this name.
    Objects { kind: String, name: Option<String>, edit: Edit },
    /// All objects together.
    Set { of: &'static str, edit: EditSet },
}

/// One change of a release's objects.
pub(crate) struct Adjustment {
    /// What it does, for a person who reads the plan.
    pub(crate) what: String,
    /// The setting that asks for it, by its place.
    pub(crate) setting: String,
    change: Change,
}

impl Adjustment {
    /// A change of the object of this kind and name.
    pub(crate) fn object(
        setting: &str,
        kind: &str,
        name: &str,
        what: impl Into<String>,
        edit: impl Fn(&mut Value) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::each(setting, kind, what, edit).named(name)
    }

    /// A change of all objects of this kind.
    pub(crate) fn each(
        setting: &str,
        kind: &str,
        what: impl Into<String>,
        edit: impl Fn(&mut Value) -> bool + Send + Sync + 'static,
    ) -> Self {
        let change = Change::Objects { kind: kind.to_owned(), name: None, edit: Box::new(edit) };
        Self { what: what.into(), setting: setting.to_owned(), change }
    }

    /// A change of the set as a whole; `of` says what it looks for.
    pub(crate) fn set(
        setting: &str,
        of: &'static str,
        what: impl Into<String>,
        edit: impl Fn(&mut Vec<Value>) -> bool + Send + Sync + 'static,
    ) -> Self {
        let change = Change::Set { of, edit: Box::new(edit) };
        Self { what: what.into(), setting: setting.to_owned(), change }
    }

    fn named(mut self, wanted: &str) -> Self {
        if let Change::Objects { name, .. } = &mut self.change {
            *name = Some(wanted.to_owned());
        }
        self
    }

    /// What it looks for, in words.
    fn target(&self) -> String {
        match &self.change {
            Change::Objects { kind, name: Some(name), .. } => format!("{kind} {name}"),
            Change::Objects { kind, name: None, .. } => format!("objects of kind {kind}"),
            Change::Set { of, .. } => (*of).to_owned(),
        }
    }

    /// Makes the change; says how many objects there are that it is for, and how many it changed.
    fn make(&self, objects: &mut Vec<Value>) -> (usize, usize) {
        match &self.change {
            Change::Set { edit, .. } => (1, usize::from(edit(objects))),
            Change::Objects { kind, name, edit } => {
                let fits = |object: &&mut Value| {
                    object["kind"] == **kind
                        && name.as_ref().is_none_or(|name| object["metadata"]["name"] == **name)
                };
                let changed: Vec<bool> = objects.iter_mut().filter(fits).map(edit).collect();
                (changed.len(), changed.iter().filter(|changed| **changed).count())
            }
        }
    }
}

/// Makes every adjustment, in their order.
///
/// # Errors
/// One of them found nothing to change.
pub(crate) fn adjust(
    release: &str,
    adjustments: &[Adjustment],
    objects: &mut Vec<Value>,
) -> Result<(), Failure> {
    for adjustment in adjustments {
        let (found, changed) = adjustment.make(objects);
        if changed > 0 {
            continue;
        }
        let (target, setting) = (adjustment.target(), &adjustment.setting);
        let why = match found {
            0 => format!("{setting} is for {target}, and the release has none"),
            _ => format!("{setting} found nothing to change in {target} of the release"),
        };
        return Err(Failure::new(Class::Invalid, format!("adjust {release}"), why).hint(
            "correct or take out that setting; or name a `version` of the layer that it was made for",
        ));
    }
    Ok(())
}

/// The patches of a layer, in the order of the castle file.
pub(crate) fn patches(patches: &[ObjectPatch]) -> impl Iterator<Item = Adjustment> {
    patches.iter().map(|patch| {
        let target = match &patch.name {
            Some(name) => format!("{} {name}", patch.kind),
            None => format!("every {}", patch.kind),
        };
        let what = format!("{target} is patched by {}", patch.origin);
        let setting = format!("the patch in {}", patch.origin);
        // The castle file was read: what is no YAML, or no map, has been refused with its place.
        let text = yaml_serde::from_str::<Value>(&patch.text).unwrap_or_default();
        let edit = move |object: &mut Value| {
            merge(object, &text);
            text.is_object()
        };
        let adjustment = Adjustment::each(&setting, &patch.kind, what, edit);
        match &patch.name {
            Some(name) => adjustment.named(name),
            None => adjustment,
        }
    })
}

/// Lets the pods of the release's namespace do what CSI drivers and speakers have to.
pub(crate) fn privileged(layer: &str, namespace: &'static str) -> Adjustment {
    let what = format!("namespace {namespace} is labelled for privileged pods (PodSecurity)");
    Adjustment::object(layer, "Namespace", namespace, what, |object| {
        for label in PRIVILEGED {
            object["metadata"]["labels"][label] = json!("privileged");
        }
        true
    })
}

/// Adds a flag to a container's arguments unless it is there with any value.
pub(crate) fn add_flag(container: &mut Value, flag: &str) {
    let name = flag.split('=').next().unwrap_or(flag);
    let is_it =
        |argument: &Value| argument.as_str().is_some_and(|a| a.split('=').next() == Some(name));
    match container["args"].as_array_mut() {
        Some(arguments) if arguments.iter().any(is_it) => {
            for argument in arguments.iter_mut().filter(|argument| is_it(argument)) {
                *argument = json!(flag);
            }
        }
        Some(arguments) => arguments.push(json!(flag)),
        None => container["args"] = json!([flag]),
    }
}

/// The containers of a workload.
pub(crate) fn containers(workload: &mut Value) -> &mut [Value] {
    match workload.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut) {
        Some(containers) => containers,
        None => &mut [],
    }
}

/// Sets a key in a document of plain `key: value` lines, as some releases keep in a ConfigMap.
pub(crate) fn set_line(text: &str, key: &str, value: &str) -> String {
    let line = format!("{key}: {value}");
    let is_it =
        |line: &&str| line.trim_start().strip_prefix(key).is_some_and(|r| r.starts_with(':'));
    if !text.lines().any(|line| is_it(&line)) {
        let text = text.trim_end();
        return if text.is_empty() { line } else { format!("{text}\n{line}") };
    }
    let lines = text.lines().map(|old| {
        if !is_it(&old) {
            return old.to_owned();
        }
        format!("{}{line}", &old[..old.len() - old.trim_start().len()])
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The map at a key, made if it is not there.
pub(crate) fn map_at<'v>(value: &'v mut Value, key: &str) -> Option<&'v mut Map<String, Value>> {
    let inner = value.as_object_mut()?.entry(key).or_insert_with(|| json!({}));
    inner.as_object_mut()
}

#[cfg(test)]
mod tests;
