//! Prints `docs/reference/castle.schema.json`: everything that castle says to programs, one JSON object a line.
//!
//! Events, plans, histories, audits, statuses and secrets are described by their own types. What belongs to rooms that
//! this one does not know is described here, key by key; `crates/reality/tests/real/schema.rs` holds all of it against
//! what the program really says.

use castle_model::audit::Audit;
use castle_model::event::{Event, SCHEMA};
use castle_model::history::PastRun;
use castle_model::plan::{Drift, Plan, Unseen};
use castle_view::secrets::{Escrow, Keys, Verified};
use castle_view::status::Standing;
use castle_view::why::Why;
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

fn main() {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let event = serde_json::to_value(generator.subschema_for::<Event>()).unwrap_or_default();
    let drift = list_of::<Drift>(&mut generator);
    let unseen = list_of::<Unseen>(&mut generator);
    let mut kinds = vec![event, rehearsal_event()];
    kinds.extend([
        typed::<Standing>(&mut generator, "status", &[]),
        typed::<Plan>(&mut generator, "plan", &[("drift", drift), ("unseen", unseen)]),
        typed::<PastRun>(&mut generator, "past-run", &[]),
        typed::<Audit>(&mut generator, "audit", &[]),
        typed::<Why>(&mut generator, "why", &[]),
        typed::<Keys>(&mut generator, "secrets", &[]),
        typed::<Escrow>(&mut generator, "escrow", &[]),
        typed::<Verified>(&mut generator, "verified", &[]),
    ]);
    kinds.extend(told());
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

fn list_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    json!({ "type": "array", "items": generator.subschema_for::<T>() })
}

/// An answer whose keys are those of a type, and some more.
fn typed<T: JsonSchema>(
    generator: &mut SchemaGenerator,
    kind: &str,
    more: &[(&str, Value)],
) -> Value {
    let mut keys = envelope(kind);
    keys.extend(more.iter().map(|(key, schema)| ((*key).to_owned(), schema.clone())));
    let mut required = vec!["v", "answer"];
    required.extend(more.iter().map(|(key, _)| *key));
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
    let mut keys = envelope(kind);
    let mut required = vec!["v", "answer"];
    for (key, schema) in described {
        let name = key.strip_suffix('?').unwrap_or(key);
        if name == *key {
            required.push(name);
        }
        keys.insert(name.to_owned(), schema.clone());
    }
    json!({
        "title": kind, "description": about, "type": "object",
        "properties": keys, "required": required, "additionalProperties": false,
    })
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

fn object() -> Value {
    json!({ "type": "object" })
}

fn objects() -> Value {
    json!({ "type": "array", "items": { "type": "object" } })
}

/// Answers of rooms that this one does not know.
fn told() -> Vec<Value> {
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
                ("seen", objects()),
                ("hint", maybe()),
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
                ("place", json!({ "type": ["object", "null"] })),
                ("label", text()),
                ("notes", texts()),
                ("help", maybe()),
                ("related", objects()),
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
            &[("layers", objects()), ("steps", objects()), ("critical", object())],
        ),
        answer(
            "pin",
            "Something that a castle is made from, as it was found, and as castle.lock pinned it before.",
            &[
                ("kind", json!({ "enum": ["manifest", "image"] })),
                ("name", text()),
                ("found", object()),
                ("pinned", json!({ "type": ["object", "null"] })),
            ],
        ),
        answer(
            "wipe",
            "What a wipe would remove.",
            &[("castle", text()), ("guests", objects()), ("beside", objects())],
        ),
        answer("rebirth", "A rebirth that is over.", &[("rebirth", object())]),
        answer("detached", "A run goes on in a process of its own.", &[("detached", object())]),
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
                ("servers", objects()),
                ("nodes", objects()),
                ("fingerprint", text()),
                ("commands", objects()),
            ],
        ),
        json!({
            "title": "inventory", "description": "The datacenter as it knows itself; its keys follow the emulated servers.",
            "type": "object", "properties": envelope("inventory"), "required": ["v", "answer"],
        }),
    ]
}
