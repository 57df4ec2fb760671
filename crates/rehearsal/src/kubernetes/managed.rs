//! Who owns which field of an object: `metadata.managedFields`, and what each write does to it.

use serde_json::{Value, json};

use super::fields::FieldSet;
use super::refuse::No;
use super::shape::Shape;
use super::typed;

/// Who owns the fields of an object that was there before anybody was noted.
const BEFORE: &str = "before-first-apply";
/// Metadata that the server keeps, so that nobody owns them.
const SERVERS_OWN: &[&str] = &[
    "f:name",
    "f:namespace",
    "f:creationTimestamp",
    "f:selfLink",
    "f:uid",
    "f:clusterName",
    "f:generation",
    "f:managedFields",
    "f:resourceVersion",
];

/// Who writes, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Writer {
    pub(super) manager: String,
    pub(super) apply: bool,
    pub(super) api_version: String,
    /// Empty for the object itself.
    pub(super) subresource: String,
    pub(super) time: String,
}

/// One manager of an object.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    manager: String,
    apply: bool,
    api_version: String,
    subresource: String,
    time: Option<String>,
    fields: FieldSet,
}

impl Entry {
    fn read(entry: &Value) -> Self {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        Self {
            manager: text("manager"),
            apply: entry["operation"] == "Apply",
            api_version: text("apiVersion"),
            subresource: text("subresource"),
            time: entry["time"].as_str().map(str::to_owned),
            fields: FieldSet::read(&entry["fieldsV1"]),
        }
    }

    fn written(&self) -> Value {
        let operation = if self.apply { "Apply" } else { "Update" };
        let mut entry = json!({"manager": self.manager, "operation": operation, "apiVersion": self.api_version});
        if let Some(time) = &self.time {
            entry["time"] = time.clone().into();
        }
        entry["fieldsType"] = "FieldsV1".into();
        entry["fieldsV1"] = self.fields.written();
        if !self.subresource.is_empty() {
            entry["subresource"] = self.subresource.clone().into();
        }
        entry
    }

    /// Whether it is the entry of a writer. An applier has one, whichever version it speaks.
    fn is_of(&self, writer: &Writer) -> bool {
        self.manager == writer.manager
            && self.apply == writer.apply
            && self.subresource == writer.subresource
            && (self.apply || self.api_version == writer.api_version)
    }

    /// The manager in the words of a conflict.
    fn spoken(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", self.subresource);
        }
        if !self.apply {
            text = format!("{text} using {}", self.api_version);
        }
        text
    }
}

/// All managers of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Managers(Vec<Entry>);

impl Managers {
    /// Those that an object names. What names nobody (`[{}]`, by which a client clears them) is nobody.
    pub(super) fn read(object: &Value) -> Self {
        let entries = object["metadata"]["managedFields"].as_array();
        Self(
            entries
                .into_iter()
                .flatten()
                .filter(|entry| entry["operation"].is_string())
                .map(Entry::read)
                .collect(),
        )
    }

    /// Writes them into an object, in the server's order.
    pub(super) fn write(mut self, object: &mut Value) {
        self.0.retain(|entry| !entry.fields.is_empty());
        self.0.sort_by(|one, two| {
            (!one.apply, &one.time, &one.manager, &one.api_version, &one.subresource).cmp(&(
                !two.apply,
                &two.time,
                &two.manager,
                &two.api_version,
                &two.subresource,
            ))
        });
        let Some(metadata) = object["metadata"].as_object_mut() else { return };
        if self.0.is_empty() {
            metadata.shift_remove("managedFields");
        } else {
            let entries: Vec<Value> = self.0.iter().map(Entry::written).collect();
            metadata.insert("managedFields".to_owned(), entries.into());
        }
    }

    /// Merges a configuration into an object as server-side apply does.
    ///
    /// The object comes without managers; it gets the new ones.
    pub(super) fn apply(
        mut self,
        live: &Value,
        config: &Value,
        (writer, force): (&Writer, bool),
        shape: &Shape<'_>,
    ) -> Result<Value, No> {
        if let Some((path, which)) = typed::twice(config, shape, "") {
            let why = format!("{path}: duplicate entries for key {which}");
            return Err(No::untyped(config, &why));
        }
        self.note_what_was_there(live, writer, shape);
        let all = typed::fields_of(config, shape);
        let named = strip(all.clone(), writer);
        let mut merged = live.clone();
        typed::merge(&mut merged, config, shape);
        let mine = self.0.iter().position(|entry| entry.is_of(writer));
        let last = mine.map(|at| std::mem::replace(&mut self.0[at].fields, named.clone()));
        match last {
            Some(last) if last != named => {
                // What a configuration must name, such as its name, it keeps too.
                let mut owned = all;
                self.0.iter().for_each(|entry| owned.add(entry.fields.clone()));
                typed::prune(&mut merged, &last, &owned, shape);
            }
            Some(_) => {}
            None => self.0.push(new_entry(writer, named)),
        }
        let difference = typed::compare(live, &merged, shape);
        self.settle(&difference, (writer, force))?;
        if (!difference.changed.is_empty() || !difference.removed.is_empty())
            && let Some(entry) = self.0.iter_mut().find(|entry| entry.is_of(writer))
        {
            entry.time = Some(writer.time.clone());
            entry.api_version.clone_from(&writer.api_version);
        }
        self.write(&mut merged);
        Ok(merged)
    }

    /// Notes that a writer changed an object by other means than apply.
    pub(super) fn update(
        mut self,
        before: &Value,
        object: &mut Value,
        writer: &Writer,
        shape: &Shape<'_>,
    ) {
        let mut difference = typed::compare(before, object, shape);
        // Forced, it cannot conflict.
        let _forced = self.settle(&difference, (writer, true));
        let changed = strip(std::mem::take(&mut difference.changed), writer);
        if !changed.is_empty() {
            if let Some(entry) = self.0.iter_mut().find(|entry| entry.is_of(writer)) {
                entry.fields.add(changed);
                entry.time = Some(writer.time.clone());
            } else {
                let mut entry = new_entry(writer, changed);
                entry.time = Some(writer.time.clone());
                self.0.push(entry);
            }
        }
        self.write(object);
    }

    /// What an applier meets in an object that nobody was noted for belongs to a manager of its own.
    fn note_what_was_there(&mut self, live: &Value, writer: &Writer, shape: &Shape<'_>) {
        if !self.0.is_empty() || live["metadata"]["uid"].is_null() {
            return;
        }
        let before = Writer {
            manager: BEFORE.to_owned(),
            apply: false,
            subresource: String::new(),
            ..writer.clone()
        };
        let fields = strip(typed::compare(&json!({}), live, shape).changed, &before);
        let mut entry = new_entry(&before, fields);
        entry.time = Some(writer.time.clone());
        self.0.push(entry);
    }

    /// Takes from the others what changed, if that is forced, and from all what is gone.
    fn settle(
        &mut self,
        difference: &typed::Difference,
        (writer, force): (&Writer, bool),
    ) -> Result<(), No> {
        let mut conflicts: Vec<(String, Vec<String>)> = Vec::new();
        for entry in self.0.iter_mut().filter(|entry| !entry.is_of(writer)) {
            let taken = entry.fields.common(&difference.changed);
            if taken.is_empty() {
                continue;
            }
            if force {
                entry.fields.subtract(&taken);
            } else {
                conflicts.push((entry.spoken(), taken.paths()));
            }
        }
        if !conflicts.is_empty() {
            return Err(No::conflicts(conflicts));
        }
        for entry in self.0.iter_mut().filter(|entry| !(entry.apply && entry.is_of(writer))) {
            entry.fields.subtract(&difference.removed);
        }
        Ok(())
    }
}

fn new_entry(writer: &Writer, fields: FieldSet) -> Entry {
    Entry {
        manager: writer.manager.clone(),
        apply: writer.apply,
        api_version: writer.api_version.clone(),
        subresource: writer.subresource.clone(),
        time: None,
        fields,
    }
}

/// Leaves out what is not the writer's to own: identity, and the status or all but the status.
fn strip(mut fields: FieldSet, writer: &Writer) -> FieldSet {
    fields.member = false;
    if writer.subresource == "status" {
        fields.children.retain(|name, _| name == "f:status");
        return fields;
    }
    fields
        .children
        .retain(|name, _| !matches!(name.as_str(), "f:apiVersion" | "f:kind" | "f:status"));
    if let Some(metadata) = fields.children.get_mut("f:metadata") {
        metadata.member = false;
        metadata.children.retain(|name, _| !SERVERS_OWN.contains(&name.as_str()));
        if metadata.is_empty() {
            fields.children.remove("f:metadata");
        }
    }
    fields
}

#[cfg(test)]
mod tests;
