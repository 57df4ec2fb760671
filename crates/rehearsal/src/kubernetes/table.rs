//! Tables: objects as `kubectl get` prints them, column by column, because the server says what is in a row.

use serde_json::{Value, json};

use super::kinds::Resource;
use super::route::Query;
use super::{EPOCH, Kubernetes};

mod age;
mod cells;
mod path;
#[cfg(test)]
mod tests;

use age::{human, moment};

/// One column.
#[derive(Debug, Clone, PartialEq)]
struct Column {
    name: String,
    kind: String,
    format: String,
    description: String,
    priority: i64,
    /// Where its value is, in kinds that are not built in.
    path: Option<String>,
}

/// What of an object goes with its row.
#[derive(Debug, Clone, Copy, PartialEq)]
enum With {
    Nothing,
    Metadata,
    Object,
}

/// A table that a client wants instead of objects.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    version: &'static str,
    with: With,
    kind: String,
    columns: Vec<Column>,
    /// Whether the columns were told already, in a watch.
    told: bool,
}

impl Table {
    /// The table that a client accepts rather than objects, if it does.
    pub(super) fn wanted(
        world: &Kubernetes,
        accept: &str,
        query: &Query,
        resource: &Resource,
    ) -> Option<Self> {
        let asked = accept.split(',').find(|kind| kind.contains("as=Table"))?;
        let version =
            if asked.contains("v=v1beta1") { "meta.k8s.io/v1beta1" } else { "meta.k8s.io/v1" };
        let with = match query.get("includeObject") {
            "None" => With::Nothing,
            "Object" => With::Object,
            _ => With::Metadata,
        };
        let columns = match world.definition(resource) {
            Some(definition) => defined(&definition, &resource.version),
            None => cells::columns(&resource.kind).map(Column::built_in).collect(),
        };
        let kind = if resource.custom { String::new() } else { resource.kind.clone() };
        Some(Self { version, with, kind, columns, told: false })
    }

    /// The table of some objects, with the metadata of their list.
    pub(super) fn of<'a>(
        &self,
        world: &Kubernetes,
        metadata: &Value,
        objects: impl Iterator<Item = &'a Value>,
    ) -> Value {
        let columns =
            if self.told { Value::Null } else { self.columns.iter().map(Column::shown).collect() };
        let rows: Vec<Value> = objects.map(|object| self.row(world, object)).collect();
        json!({
            "kind": "Table", "apiVersion": self.version, "metadata": metadata,
            "columnDefinitions": columns, "rows": rows,
        })
    }

    /// A table of one object, as a watch tells it: the columns only once.
    pub(super) fn next(&mut self, world: &Kubernetes, object: &Value) -> Value {
        let table = self.alone(world, object);
        self.told = true;
        table
    }

    /// A table of one object.
    pub(super) fn alone(&self, world: &Kubernetes, object: &Value) -> Value {
        let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
        self.of(world, &metadata, std::iter::once(object))
    }

    fn row(&self, world: &Kubernetes, object: &Value) -> Value {
        let clock = Clock(EPOCH + world.dawn + world.now);
        let cells = if self.kind.is_empty() {
            self.columns.iter().map(|column| column.cell(object, clock)).collect()
        } else {
            cells::cells(&self.kind, object, clock)
        };
        let mut row = json!({"cells": Value::Array(cells)});
        match self.with {
            With::Nothing => {}
            With::Object => row["object"] = object.clone(),
            With::Metadata => {
                row["object"] = json!({
                    "kind": "PartialObjectMetadata", "apiVersion": self.version,
                    "metadata": object["metadata"],
                });
            }
        }
        row
    }
}

impl Column {
    fn new(name: &str, kind: &str, priority: i64) -> Self {
        let format = if name == "Name" { "name" } else { "" };
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            format: format.to_owned(),
            description: String::new(),
            priority,
            path: None,
        }
    }

    /// A column of a built-in kind by its name, which begins with `+` for `-o wide` and with `#` for a number.
    fn built_in(name: &str) -> Self {
        let (name, priority) = name.strip_prefix('+').map_or((name, 0), |name| (name, 1));
        let (name, kind) = match name.strip_prefix('#') {
            Some(name) => (name, "integer"),
            None if name == "Created At" => (name, "date"),
            None => (name, "string"),
        };
        Self::new(name, kind, priority)
    }

    fn shown(&self) -> Value {
        json!({
            "name": self.name, "type": self.kind, "format": self.format,
            "description": self.description, "priority": self.priority,
        })
    }

    /// What stands in the column for an object of a kind that is not built in: the first value at its path, nothing
    /// where it is of another type than the column.
    fn cell(&self, object: &Value, clock: Clock) -> Value {
        let Some(path) = &self.path else { return object["metadata"]["name"].clone() };
        let Some(found) = path::first(path, object) else { return Value::Null };
        match (self.kind.as_str(), found) {
            ("string", found) => path::text(found).into(),
            ("date", Value::String(stamp)) if stamp.is_empty() => "<unknown>".into(),
            ("date", Value::String(stamp)) if moment(stamp).is_none() => "<invalid>".into(),
            ("date", Value::String(stamp)) => clock.ago(stamp).into(),
            ("integer", Value::Number(number)) => match number.as_f64() {
                #[expect(clippy::cast_possible_truncation, reason = "the server cuts it off, too")]
                Some(fraction) if number.is_f64() => (fraction as i64).into(),
                _ => number.clone().into(),
            },
            ("number", Value::Number(number)) => number.as_f64().map_or(Value::Null, go_number),
            ("boolean", Value::Bool(held)) => (*held).into(),
            _ => Value::Null,
        }
    }
}

/// A number as the server writes it: without a fraction where there is none.
fn go_number(number: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "compared with what it was")]
    let whole = number as i64;
    #[expect(clippy::cast_precision_loss, reason = "compared with what it was")]
    let same = (whole as f64).to_bits() == number.to_bits();
    if same { whole.into() } else { number.into() }
}

/// The columns that a definition gives its kind; name and age where it gives none.
fn defined(definition: &Value, version: &str) -> Vec<Column> {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let own = versions
        .filter(|known| known["name"] == version)
        .flat_map(|known| known["additionalPrinterColumns"].as_array().into_iter().flatten());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut columns: Vec<Column> = own
        .map(|column| Column {
            name: text(&column["name"]),
            kind: text(&column["type"]),
            format: text(&column["format"]),
            description: described(column),
            priority: column["priority"].as_i64().unwrap_or_default(),
            path: Some(text(&column["jsonPath"])),
        })
        .collect();
    if columns.is_empty() {
        let mut age = Column::new("Age", "date", 0);
        age.path = Some(".metadata.creationTimestamp".to_owned());
        columns.push(age);
    }
    columns.insert(0, Column::new("Name", "string", 0));
    columns
}

/// What explains a column: its own words, or where its value is.
fn described(column: &Value) -> String {
    let text = |name: &str| column[name].as_str().unwrap_or_default().to_owned();
    Some(text("description")).filter(|words| !words.is_empty()).unwrap_or_else(|| {
        format!("Custom resource definition column (in JSONPath format): {}", text("jsonPath"))
    })
}

/// The time of day of the server, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Clock(u64);

impl Clock {
    /// How long ago a time was, in the words of kubectl.
    fn since(self, stamp: &Value) -> Value {
        self.ago(stamp.as_str().unwrap_or_default()).into()
    }

    fn ago(self, stamp: &str) -> String {
        match moment(stamp) {
            Some(then) => human(i64::try_from(self.0 / 1000).unwrap_or(i64::MAX) - then),
            None => "<unknown>".to_owned(),
        }
    }
}
