//! Our strategic merge against Talos' own, on a table of patches.

use std::fs;

use castle_model::Secret;
use castle_reality::{Real, run};
use castle_talos::{Bundle, Contract, config, machine_config, patch};
use serde_json::Value;

use crate::documents::{castle, invented};
use crate::setting::{SOON, ask, folder, secrets, with, write};

/// The patches, as data.
const TABLE: &str = include_str!("patches.yaml");

/// A patch that changes nothing: it makes an oracle read a config and write it in its own words.
const NOTHING: &str = "persist: true\n";

/// One version: the oracle, the contract, the version of Talos, that of Kubernetes.
const VERSIONS: [(&str, Contract, &str, &str); 2] = [
    ("talosoracle-1.13", Contract::V1_13, "1.13.9", "1.36.3"),
    ("talosoracle-1.14", Contract::V1_14, "1.14.1", "1.37.0"),
];

/// What both sides do with the patches.
#[derive(Debug, PartialEq, Eq)]
enum Expect {
    /// They change something, and to the same.
    Equal,
    /// They change nothing.
    Idle,
    /// They refuse.
    Refused,
    /// We refuse, the oracle does not: said with the reason in the table.
    Stricter,
}

/// One entry of the table.
struct Case<'a> {
    name: &'a str,
    worker: bool,
    /// The version that it is for; none: both.
    only: Option<&'a str>,
    patches: Vec<&'a str>,
    expect: Expect,
}

fn cases(table: &Value) -> Vec<Case<'_>> {
    let text = |case: &Value, key: &str| case[key].as_str().map(str::to_owned);
    let all = table.as_array().unwrap().iter().map(|case| Case {
        name: case["name"].as_str().unwrap(),
        worker: text(case, "on").is_some_and(|on| on == "worker"),
        only: case["only"].as_str(),
        patches: match &case["patch"] {
            Value::Array(list) => list.iter().map(|patch| patch.as_str().unwrap()).collect(),
            patch => vec![patch.as_str().unwrap()],
        },
        expect: match text(case, "expect").as_deref() {
            None => Expect::Equal,
            Some("idle") => Expect::Idle,
            Some("refused") => Expect::Refused,
            Some("stricter") => Expect::Stricter,
            Some(other) => panic!("unknown: {other}"),
        },
    });
    all.collect()
}

#[test]
fn the_table_is_long_enough_and_names_each_case_once() {
    let table: Value = yaml_serde::from_str(TABLE).unwrap();
    let cases = cases(&table);
    assert!(cases.len() >= 40, "{}", cases.len());
    let mut names: Vec<&str> = cases.iter().map(|case| case.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

/// Talos' own words for a config.
async fn normal(oracle: &Real, place: &std::path::Path, text: &str) -> Vec<Value> {
    let file = write(place, "given.yaml", text).display().to_string();
    let nothing = write(place, "nothing.yaml", NOTHING).display().to_string();
    config::read(&ask(oracle, &["patch", &file, &nothing]).await).unwrap()
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn both_make_the_same_of_every_patch() {
    let place = folder();
    let table: Value = yaml_serde::from_str(TABLE).unwrap();
    let mut wrong = Vec::new();
    for (name, contract, talos, kubernetes) in VERSIONS {
        let Some(oracle) = Real::find(name) else { return };
        let file = secrets(&oracle, place.path(), "secrets.yaml").await;
        let bundle = Bundle::from_yaml(&Secret::new(fs::read_to_string(&file).unwrap())).unwrap();
        let spec = castle(talos, kubernetes, 1, 1);
        for case in cases(&table) {
            if case.only.is_some_and(|only| !talos.starts_with(only)) {
                continue;
            }
            let node = &spec.nodes[usize::from(case.worker)];
            let base = machine_config(&spec, node, &bundle, "88d1", &invented).unwrap().text;
            let seen = compare(&oracle, place.path(), base.expose(), &case, contract).await;
            if seen != Ok(()) {
                wrong.push(format!("{name} {}: {}", case.name, seen.unwrap_err()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

async fn compare(
    oracle: &Real,
    place: &std::path::Path,
    base: &str,
    case: &Case<'_>,
    contract: Contract,
) -> Result<(), String> {
    let mut words = vec!["patch".to_owned(), write(place, "base.yaml", base).display().to_string()];
    let mut ours = Ok(config::read(base).unwrap());
    for (index, patch) in case.patches.iter().enumerate() {
        let file = write(place, &format!("patch-{index}.yaml"), patch);
        words.push(file.display().to_string());
        ours = ours.and_then(|documents| patch::apply(&documents, patch, contract));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let theirs = run(with(oracle.program(), &words), SOON).await;
    let refused = theirs.code != Some(0);
    let documents = match (&case.expect, ours) {
        (Expect::Refused, Err(_)) if refused => return Ok(()),
        (Expect::Stricter, Err(_)) if !refused => return Ok(()),
        (Expect::Equal | Expect::Idle, Ok(documents)) if !refused => documents,
        (expect, ours) => {
            let ours = ours.err().map_or("applied".to_owned(), |error| error.to_string());
            return Err(format!("expected {expect:?}; ours: {ours}; theirs: {}", theirs.stderr));
        }
    };
    let theirs = config::read(&theirs.stdout).unwrap();
    let ours = normal(oracle, place, &config::write(&documents)).await;
    let before = normal(oracle, place, base).await;
    if ours != theirs {
        let at = ours.iter().zip(&theirs).find(|(one, other)| one != other);
        let kind =
            at.map_or("the number of documents".to_owned(), |(it, _)| it["kind"].to_string());
        return Err(format!("another result, in {kind}"));
    }
    if (theirs == before) == (case.expect == Expect::Idle) {
        Ok(())
    } else {
        Err(format!("expected {:?}, but the config is changed: {}", case.expect, theirs != before))
    }
}
