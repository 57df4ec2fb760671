//! What our Kubernetes client relies on, asked of the emulated API server and of the real one: both must say the same.
//!
//! A case is a function over [`Api`] that notes every answer. The notes of both sides are compared after ids, times and
//! versions are masked. What differs is in [`KNOWN_DIFFERENCES`] with its reason; an answer there that agrees fails too.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::Pin;
use std::thread;

use castle_kubernetes::{KubeAccess, Kubernetes};
use castle_model::Secret;
use castle_reality::cluster::{Cluster, Part};
use castle_reality::{Raw, alone, outside};
use castle_rehearsal::Host;
use castle_rehearsal::host::runtime;
use castle_talos::access::KubeAccess as Issued;
use castle_talos::{Bundle, Talos, TalosAccess, machine_config, without_secrets};
use castle_wire::World;
use futures::FutureExt as _;
use serde_json::Value;

use crate::datacenter::{SCHEMATIC, machines};
use crate::kubectl::named;

#[path = "contract/access.rs"]
mod access;
#[path = "contract/api.rs"]
mod api;
#[path = "contract/apply.rs"]
mod apply;
#[path = "contract/bytes.rs"]
mod bytes;
#[path = "contract/heads.rs"]
mod heads;
#[path = "contract/kinds.rs"]
mod kinds;
#[path = "contract/known.rs"]
mod known;
#[path = "contract/lists.rs"]
mod lists;
#[path = "contract/refusals.rs"]
mod refusals;
#[path = "contract/removal.rs"]
mod removal;
#[path = "contract/tables.rs"]
mod tables;
#[path = "contract/webhooks.rs"]
mod webhooks;

use api::{Api, Notes, Side, masked};
use known::KNOWN_DIFFERENCES;

/// A case: its name, and what it asks.
type Case = (&'static str, fn(&Api) -> Pin<Box<dyn Future<Output = ()> + '_>>);

fn cases() -> Vec<Case> {
    [
        access::CASES,
        apply::CASES,
        bytes::CASES,
        heads::CASES,
        lists::CASES,
        kinds::CASES,
        refusals::CASES,
        removal::CASES,
        tables::CASES,
        webhooks::CASES,
    ]
    .concat()
}

#[test]
#[ignore = "a real cluster in a namespace of its own"]
fn the_emulated_api_server_says_what_the_real_one_says() {
    alone(async {
        let Some(cluster) = Cluster::start(&[Part::Controllers]).await else { return };
        let emulated = thread::spawn(|| runtime().unwrap().block_on(emulated()));
        let client = cluster.client();
        let issued = cluster.authority().client("somebody", "readers");
        let key = Secret::new(issued.key);
        let access =
            KubeAccess { certificate: issued.certificate, key, ..cluster.access().clone() };
        let somebody = Raw::new(&outside(), &access);
        let callers = (cluster.raw(), somebody, cluster.raw());
        let real = all(&client, &callers, Side::Real).await;
        compare(&emulated.join().unwrap(), &real);
    });
}

/// Asks every case, each in a namespace of its own.
async fn all(
    client: &Kubernetes,
    callers: &(Raw, Raw, Raw),
    side: Side,
) -> BTreeMap<&'static str, Notes> {
    let mut told = BTreeMap::new();
    for (name, case) in cases() {
        let api = Api::new(client.clone(), callers.clone(), side, name);
        let asked = async {
            api.make_space(&api.space).await;
            case(&api).await;
        };
        match (AssertUnwindSafe(asked).catch_unwind().await, side) {
            (Ok(()), _) => {}
            (Err(panic), Side::Real) => resume_unwind(panic),
            (Err(panic), Side::Emulated) => {
                let why = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                api.note("gave up", why.into());
            }
        }
        let before = told.insert(name, api.into_notes());
        assert!(before.is_none(), "two cases are called {name}");
    }
    told
}

/// The emulated side: a small cluster, raised as castle raises it, in a datacenter in memory.
async fn emulated() -> BTreeMap<&'static str, Notes> {
    let spec = machines(40, 1, 1);
    let host = Host::open(None, &spec, 7).unwrap();
    host.spawn_driver();
    let world = host.world();
    let bundle = Bundle::generate(&*world.entropy, &*world.clock).unwrap();
    for node in &spec.nodes {
        let blank =
            api::patiently(async || Talos::maintenance(&world, node.address).await.ok()).await;
        let config =
            machine_config(&spec, node, &bundle, SCHEMATIC, &without_secrets).unwrap().text;
        blank.apply(&config).await.unwrap();
    }
    let access = TalosAccess::issue(&bundle, &*world.entropy, &*world.clock).unwrap();
    let first = spec.nodes[0].address;
    api::patiently(async || {
        Talos::secure(&world, first, &access).await.ok()?.bootstrap().await.ok()
    })
    .await;
    let Issued { server, authority, certificate, key } =
        Issued::issue(&spec, &bundle, &*world.entropy, &*world.clock).unwrap();
    let access = KubeAccess { server, authority, certificate, key };
    let client = Kubernetes::new(&world, &access).unwrap();
    api::patiently(async || client.version().await.ok()).await;
    let raw = Raw::new(&world, &access);
    let stranger = Raw::new(&World { dialer: host.dialer_outside(), ..host.world() }, &access);
    let known = named(&bundle, "somebody", Some("readers"));
    let somebody = KubeAccess { certificate: known.certificate, key: known.key, ..access };
    let somebody = Raw::new(&world, &somebody);
    all(&client, &(raw, somebody, stranger), Side::Emulated).await
}

/// Compares what both sides told, case by case and answer by answer.
#[expect(clippy::print_stdout, reason = "what differs is for whoever runs the test by hand")]
fn compare(emulated: &BTreeMap<&str, Notes>, real: &BTreeMap<&str, Notes>) {
    let mut known: BTreeSet<(String, String)> = KNOWN_DIFFERENCES
        .iter()
        .flat_map(|(case, steps, _)| {
            steps.iter().map(|step| ((*case).to_owned(), (*step).to_owned()))
        })
        .collect();
    let (mut trouble, mut unknown, mut count) = (String::new(), String::new(), (0, 0));
    for (case, notes) in real {
        assert!(!notes.is_empty(), "{case} notes nothing");
        let (emulated, mut steps) = (by_step(&emulated[case]), Vec::new());
        for (step, real) in &by_step(notes) {
            count.0 += 1;
            let nothing = Value::String("no such answer".to_owned());
            let differences = differences(emulated.get(step).unwrap_or(&nothing), real);
            match (differences.is_empty(), known.remove(&((*case).to_owned(), step.clone()))) {
                (true, false) => count.1 += 1,
                (false, true) => println!("known: {case} / {step}:\n{}", differences.join("\n")),
                (true, true) => {
                    writeln!(trouble, "{case} / {step} agrees now: take it out of the table")
                        .unwrap();
                }
                (false, false) => {
                    steps.push(step.clone());
                    writeln!(trouble, "{case} / {step}:\n{}", differences.join("\n")).unwrap();
                }
            }
        }
        if !steps.is_empty() {
            writeln!(unknown, "    (\"{case}\", &{steps:?}, \"\"),").unwrap();
        }
    }
    println!("{} of {} answers agree", count.1, count.0);
    assert!(known.is_empty(), "known differences of what nobody asks: {known:?}");
    assert!(trouble.is_empty(), "both sides must say the same:\n{trouble}\nas a table:\n{unknown}");
}

/// Notes by their steps; a step that comes again is numbered.
fn by_step(notes: &Notes) -> BTreeMap<String, Value> {
    let mut steps = BTreeMap::new();
    for (step, value) in notes {
        let before = notes.iter().take_while(|(_, other)| !std::ptr::eq(other, value));
        let name = match before.filter(|(other, _)| other == step).count() {
            0 => step.clone(),
            times => format!("{step} {}", times + 1),
        };
        steps.insert(name, value.clone());
    }
    steps
}

fn differences(emulated: &Value, real: &Value) -> Vec<String> {
    let (emulated, real) = (flat(emulated), flat(real));
    let mut places: Vec<&String> = emulated.keys().chain(real.keys()).collect();
    places.sort();
    places.dedup();
    let shown = |side: &BTreeMap<String, String>, place: &String| {
        side.get(place).map_or("nothing", String::as_str).to_owned()
    };
    places
        .into_iter()
        .filter(|place| emulated.get(*place) != real.get(*place))
        .map(|place| {
            format!(
                "  {place}\n    emulated: {}\n    real:     {}",
                shown(&emulated, place),
                shown(&real, place)
            )
        })
        .collect()
}

/// Every leaf of an answer by its place.
fn flat(note: &Value) -> BTreeMap<String, String> {
    fn walk(place: String, value: &Value, leaves: &mut BTreeMap<String, String>) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (name, value) in map {
                    walk(format!("{place}/{name}"), value, leaves);
                }
            }
            Value::Array(list) if !list.is_empty() => {
                for (number, value) in list.iter().enumerate() {
                    walk(format!("{place}/{number}"), value, leaves);
                }
            }
            leaf => drop(leaves.insert(place, leaf.to_string())),
        }
    }
    let mut leaves = BTreeMap::new();
    walk(String::new(), &masked(note), &mut leaves);
    leaves
}

#[test]
fn a_difference_is_told_by_its_place() {
    let one = serde_json::json!({"code": 200, "body": {"metadata": {"uid": "a", "name": "x"}}});
    let other = serde_json::json!({"code": 200, "body": {"metadata": {"uid": "b", "name": "y"}}});
    let told = differences(&one, &other);
    assert_eq!(told, ["  /body/metadata/name\n    emulated: \"x\"\n    real:     \"y\""]);
    assert!(differences(&one, &one).is_empty());
}
