//! Prints `docs/reference/castle.schema.json`: everything that castle says to programs, one JSON object a line.
//!
//! Events, plans, histories, audits, statuses and secrets are described by their own types. What belongs to rooms that
//! this one does not know is described here, key by key; `crates/reality/tests/real/schema.rs` holds all of it against
//! what the program really says.

use castle_model::audit::{Audit, Item};
use castle_model::event::{Event, SCHEMA};
use castle_model::history::PastRun;
use castle_view::plan::PlanAnswer;
use castle_view::secrets::{Escrow, Keys, Verified};
use castle_view::status::Standing;
use castle_view::why::Why;
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

fn main() {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let event = serde_json::to_value(generator.subschema_for::<Event>()).unwrap_or_default();
    let mut kinds = vec![event, rehearsal_event()];
    kinds.extend([
        typed::<Standing>(&mut generator, "status"),
        typed::<PlanAnswer>(&mut generator, "plan"),
        typed::<PastRun>(&mut generator, "past-run"),
        typed::<Audit>(&mut generator, "audit"),
        typed::<Why>(&mut generator, "why"),
        typed::<Keys>(&mut generator, "secrets"),
        typed::<Escrow>(&mut generator, "escrow"),
        typed::<Verified>(&mut generator, "verified"),
    ]);
    let beside = list_of::<Item>(&mut generator);
    kinds.extend(told(beside));
    kinds.extend(rehearsed());
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What castle says to programs",
        "description": "One line of standard output with --json. Made by `cargo xtask docs`; docs/reference/json.md explains it.",
        "version": SCHEMA,
        "anyOf": kinds,
        "$defs": generator.take_definitions(true),
    });
    #[expect(clippy::print_stdout, reason = "this is its only output")]
    {
        println!("{schema:#}");
    }
}

/// An answer whose keys are those of a type.
fn typed<T: JsonSchema>(generator: &mut SchemaGenerator, kind: &str) -> Value {
    let (keys, required) = (envelope(kind), ["v", "answer"]);
    json!({
        "title": kind,
        "allOf": [
            generator.subschema_for::<T>(),
            { "type": "object", "properties": keys, "required": required },
        ],
        "unevaluatedProperties": false,
    })
}

fn envelope(kind: &str) -> Map<String, Value> {
    let mut keys = Map::new();
    keys.insert("v".to_owned(), json!({ "const": SCHEMA }));
    keys.insert("answer".to_owned(), json!({ "const": kind }));
    keys
}

/// An answer whose keys are named here; those that end in `?` may be missing.
fn answer(kind: &str, about: &str, described: &[(&str, Value)]) -> Value {
    let envelope = [("v", json!({ "const": SCHEMA })), ("answer", json!({ "const": kind }))];
    let mut answer = keys(&[&envelope, described].concat());
    answer["title"] = kind.into();
    answer["description"] = about.into();
    answer
}

/// What the rehearsal tells of itself between the events of a run; it has no number in the run.
fn rehearsal_event() -> Value {
    json!({
        "title": "rehearsal event", "type": "object",
        "properties": {
            "v": { "const": SCHEMA },
            "event": { "enum": ["fault", "poke", "fault-never-struck", "still-broken"] },
            "run_ms": { "type": "integer" }, "rule": { "type": "string" }, "what": { "type": "string" },
        },
        "required": ["v", "event"], "additionalProperties": false,
    })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn texts() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

fn maybe() -> Value {
    json!({ "type": ["string", "null"] })
}

fn whole() -> Value {
    json!({ "type": "integer" })
}

fn yes() -> Value {
    json!({ "type": "boolean" })
}

/// An object with these keys and no other; those that end in `?` may be missing.
fn keys(described: &[(&str, Value)]) -> Value {
    let mut keys = Map::new();
    let mut required = Vec::new();
    for (key, schema) in described {
        let name = key.strip_suffix('?').unwrap_or(key);
        if name == *key {
            required.push(name);
        }
        keys.insert(name.to_owned(), schema.clone());
    }
    json!({ "type": "object", "properties": keys, "required": required, "additionalProperties": false })
}

/// A list of what a type says of itself.
fn list_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    list(&generator.subschema_for::<T>().to_value())
}

fn list(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

/// A list of these, in this order.
fn row(items: &[Value]) -> Value {
    json!({ "type": "array", "prefixItems": items, "minItems": items.len(), "items": false })
}

/// This, or null.
fn or_null(schema: &Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}

/// A name, and what goes by it.
fn map_of(values: &Value) -> Value {
    json!({ "type": "object", "additionalProperties": values })
}

/// A place in a castle file.
fn place() -> Value {
    keys(&[("start", whole()), ("end", whole()), ("line", whole()), ("column", whole())])
}

fn layer() -> Value {
    keys(&[("layer", text()), ("steps", texts())])
}

/// A step of the graph.
fn step() -> Value {
    keys(&[
        ("id", text()),
        ("layer", text()),
        ("title", text()),
        ("needs", texts()),
        ("proves", text()),
        ("takes_ms", whole()),
        ("lane", or_null(&keys(&[("name", text()), ("width", whole())]))),
        ("weight", whole()),
    ])
}

fn critical() -> Value {
    keys(&[("run", maybe()), ("steps", texts()), ("takes_ms", whole())])
}

/// What pins a manifest or an image by its content.
fn pin() -> Value {
    keys(&[("version?", text()), ("url?", text()), ("sha256", text()), ("size", whole())])
}

/// A guest that a wipe has met.
fn guest() -> Value {
    keys(&[
        ("vmid", whole()),
        ("what", text()),
        ("node", text()),
        ("tags", texts()),
        ("owner", text()),
        ("disks", list(&row(&[text(), whole()]))),
        ("data", texts()),
        ("spared", texts()),
        ("fate", json!({ "enum": ["goes", "forced", "stays"] })),
        ("why?", text()),
        ("step", text()),
    ])
}

/// A row of the table of a rebirth.
fn cycle_row() -> Value {
    keys(&[
        ("name", text()),
        ("min_ms", whole()),
        ("median_ms", whole()),
        ("max_ms", whole()),
        ("record_ms", whole()),
        ("regression_limit_ms", or_null(&whole())),
    ])
}

fn rebirth() -> Value {
    let end = json!({ "enum": ["done", "certified", "not-certified", "given-up"] });
    let end = keys(&[("end", end), ("why?", text()), ("by?", text())]);
    let cycle =
        keys(&[("down", maybe()), ("up", maybe()), ("resumed", yes()), ("stumbled", maybe())]);
    keys(&[
        ("began", whole()),
        ("cycles", whole()),
        ("certify", yes()),
        ("after", maybe()),
        ("seen", list(&cycle)),
        ("ended", or_null(&row(&[whole(), end]))),
    ])
}

/// Answers of rooms that this one does not know.
fn told(beside: Value) -> Vec<Value> {
    vec![
        answer(
            "error",
            "The command could not do what it was asked for; the last line.",
            &[
                ("exit", json!({ "enum": [1, 2, 3, 4, 130] })),
                (
                    "kind",
                    json!({ "enum": ["failed", "usage", "refused", "leftovers", "interrupted"] }),
                ),
                ("what", text()),
                ("causes", texts()),
                ("seen", list(&keys(&[("label", text()), ("text", text())]))),
                ("hint", maybe()),
                ("next", texts()),
            ],
        ),
        answer(
            "finding",
            "Something in the castle file.",
            &[
                ("code", json!({ "type": "string", "pattern": "^C[0-9]{4}$" })),
                ("severity", json!({ "enum": ["error", "warning"] })),
                ("title", text()),
                ("file", text()),
                ("place", or_null(&place())),
                ("label", text()),
                ("notes", texts()),
                ("help", maybe()),
                ("related", list(&keys(&[("place", place()), ("label", text())]))),
            ],
        ),
        answer(
            "check",
            "The castle file has no error.",
            &[
                ("file", text()),
                ("castle", text()),
                ("control_planes", whole()),
                ("workers", whole()),
                ("talos", text()),
                ("kubernetes", text()),
            ],
        ),
        answer(
            "graph",
            "The steps, what each one needs, proves and takes.",
            &[("layers", list(&layer())), ("steps", list(&step())), ("critical", critical())],
        ),
        answer(
            "pin",
            "Something that a castle is made from, as it was found, and as castle.lock pinned it before.",
            &[
                ("kind", json!({ "enum": ["manifest", "image"] })),
                ("name", text()),
                ("found", pin()),
                ("pinned", or_null(&pin())),
            ],
        ),
        answer(
            "wipe",
            "What a wipe would remove.",
            &[("castle", text()), ("guests", list(&guest())), ("beside", beside)],
        ),
        answer(
            "rebirth",
            "A rebirth that is over, and the times of its cycles that did the same as the last one.",
            &[("rebirth", rebirth()), ("table", list(&cycle_row()))],
        ),
        answer(
            "detached",
            "A run goes on in a process of its own.",
            &[("detached", keys(&[("pid", whole()), ("run", text())]))],
        ),
        answer(
            "secret",
            "One secret, because it was asked for by name.",
            &[("key", text()), ("place", text()), ("value", text())],
        ),
        answer(
            "verdict",
            "What the gates would say of a Kubernetes object.",
            &[
                ("apiVersion", text()),
                ("kind", text()),
                ("namespace", maybe()),
                ("name", text()),
                ("verdict", json!({ "enum": ["ready", "waiting", "failed"] })),
                ("reason", text()),
                ("hint?", text()),
            ],
        ),
    ]
}

/// Answers of the rehearsal.
fn rehearsed() -> Vec<Value> {
    vec![
        answer(
            "fault-kind",
            "Something that can be broken in a rehearsal.",
            &[
                ("name", text()),
                ("who", texts()),
                ("form", text()),
                ("about", text()),
                ("example", text()),
                ("poke", yes()),
            ],
        ),
        answer(
            "poke-kind",
            "Something that a poke can do.",
            &[
                ("name", text()),
                ("form", text()),
                ("about", text()),
                ("example", text()),
                ("mend", yes()),
            ],
        ),
        answer(
            "poke",
            "A poke was carried out.",
            &[
                ("rule", text()),
                ("mended", yes()),
                ("what", text()),
                ("at", whole()),
                ("changed", yes()),
                ("hosted", yes()),
            ],
        ),
        answer(
            "scenario",
            "A built-in story.",
            &[("name", text()), ("title", text()), ("told", text()), ("from", texts())],
        ),
        answer(
            "sheet",
            "Where a served datacenter is.",
            &[
                ("folder", text()),
                ("servers", list(&keys(&[("name", text()), ("value", text())]))),
                ("nodes", list(&keys(&[("name", text()), ("address", text())]))),
                ("fingerprint", text()),
                ("commands", list(&keys(&[("name", text()), ("value", text())]))),
            ],
        ),
        answer(
            "reset",
            "The rehearsal was thrown away: its datacenter, and what was known of the castle in it.",
            &[("castle", text()), ("folders", texts())],
        ),
        inventory(),
    ]
}

/// The datacenter as it knows itself.
fn inventory() -> Value {
    let guest = keys(&[
        ("vmid", whole()),
        ("name", text()),
        ("container", yes()),
        ("running", yes()),
        ("cores", whole()),
        ("memory", whole()),
        ("lock", maybe()),
        ("tags", texts()),
    ]);
    let proxmox = keys(&[
        ("guests", list(&guest)),
        ("volumes", texts()),
        ("files", texts()),
        ("running_tasks", texts()),
    ]);
    let workload = keys(&[("name", text()), ("ready", whole()), ("wanted", whole())]);
    let unit = keys(&[("name", text()), ("ready", yes()), ("suspended", yes()), ("says", text())]);
    let head = keys(&[
        ("repository", text()),
        ("branch", text()),
        ("commit", text()),
        ("message", text()),
    ]);
    answer(
        "inventory",
        "The datacenter as it knows itself.",
        &[
            ("at", whole()),
            ("proxmox", proxmox),
            ("machines", map_of(&text())),
            ("addresses", map_of(&text())),
            ("vip", or_null(&row(&[text(), text()]))),
            ("etcd", list(&row(&[text(), text()]))),
            ("secrets", texts()),
            ("nodes", list(&row(&[text(), yes()]))),
            ("workloads", list(&workload)),
            ("flux", list(&unit)),
            ("git", list(&head)),
            ("schematics", texts()),
            ("wrong", texts()),
            ("rules", texts()),
        ],
    )
}
