//! Every story of the folder `scenarios` is played, and stories that expect the impossible are seen to fail.

use std::path::Path;
use std::sync::Mutex;

use crate::context::{Context, Said};

/// The folder of the stories.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");

/// How many are played side by side.
const PLAYERS: usize = 2;

fn names() -> Vec<String> {
    let entries = std::fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().path());
    let stories = entries.filter(|path| path.extension().is_some_and(|ending| ending == "hcl"));
    let mut names: Vec<String> =
        stories.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn every_story_holds() {
    let waiting = Mutex::new(names());
    assert!(waiting.lock().unwrap().len() >= 30, "the folder is there");
    let broken = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..PLAYERS {
            scope.spawn(|| {
                loop {
                    let Some(name) = waiting.lock().unwrap().pop() else { return };
                    let said = Context::new().run(&["rehearse", "scenario", &name]);
                    if said.code != 0 {
                        let missed = said.out.lines().filter(|line| line.contains("NOT OK"));
                        let missed: Vec<&str> = missed.collect();
                        let told = format!("{name}: {missed:#?}\n{}", last(&said));
                        broken.lock().unwrap().push(told);
                    }
                }
            });
        }
    });
    let broken = broken.into_inner().unwrap();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

fn last(said: &Said) -> &str {
    said.err.lines().last().unwrap_or_default()
}

#[test]
fn a_story_is_played_the_same_each_time() {
    let play = || {
        let said = Context::new().run(&["rehearse", "scenario", "killed-in-the-middle"]).ends(0);
        (said.out, said.err)
    };
    assert_eq!(play(), play());
}

#[test]
fn the_list_names_every_story_of_the_folder() {
    let list = Context::new().run(&["rehearse", "scenario", "--list"]).ends(0);
    let listed: Vec<String> = list
        .out
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    assert_eq!(listed, names());
    // Every row of the list of failures has its story, or the reason why there is none.
    let told = Context::new().run(&["rehearse", "scenario", "--page"]).ends(0).out;
    for row in 1..=38 {
        let named = [
            format!("From D {row},"),
            format!("From D {row}."),
            format!(", D {row},"),
            format!("| D {row} |"),
        ];
        assert!(named.iter().any(|name| told.contains(name)), "nothing is said of D {row}");
    }
    let page = Path::new(FOLDER).join("../docs/scenarios.md");
    let fresh = Context::new().run(&["rehearse", "scenario", "--page"]).ends(0);
    assert_eq!(std::fs::read_to_string(page).unwrap(), fresh.out, "`cargo xtask docs` writes it");
}

/// A story around these acts.
fn story(acts: &str) -> String {
    format!("story \"Mine\" {{\n  told = \"Once.\"\n  from = [\"me\"]\n{acts}}}\n")
}

fn played(acts: &str) -> Said {
    let castle = Context::new();
    castle.write("my.hcl", &story(acts));
    castle.run(&["rehearse", "scenario", "./my.hcl"])
}

#[test]
fn a_story_that_expects_the_impossible_fails() {
    let said = played(
        "  run \"plan\" {\n    break = [\"talos cp-02: reboots from 50:00\"]\n    exit = 3\n    says = [\"cp-01\", \"nonsense\"]\n  }\n  world { guests = [421] }\n",
    )
    .ends(1);
    let missed: Vec<&str> = said.out.lines().filter(|line| line.contains("NOT OK")).collect();
    insta::assert_snapshot!(missed.join("\n"), @r"
      NOT OK  `plan` ends with exit code 3: it ended with 0
      NOT OK  `talos cp-02: reboots from 50:00` strikes: it never did
      NOT OK  it says “nonsense”: it did not
      NOT OK  guests: 421: it is []
    ");
    assert!(said.out.ends_with("4 of 5 expectations missed\n"), "{}", said.out);
    let state = Context::new();
    assert!(!state.state().exists(), "a story leaves nothing on the disk");
}

#[test]
fn what_is_wrong_with_a_story_is_told_before_it_is_played() {
    let said = played(
        "  meanwhile {\n    poke = [\"talos cp-07: dead\", \"proxmox: answers 500\"]\n  }\n  run \"up\" {\n    break = [\"talos cp-02: daed\"]\n  }\n",
    )
    .ends(2);
    for told in [
        "the castle file has no node called `cp-07`",
        "did you mean `cp-01`?",
        "`answers` strikes calls, and nobody calls meanwhile",
        "did you mean `dead`?",
        "./my.hcl:8:28",
        "./my.hcl: 3 errors",
    ] {
        assert!(said.err.contains(told), "{told} is not in:\n{}", said.err);
    }
    assert_eq!(said.out.matches("ok ").count(), 0, "{}", said.out);
    let unknown = Context::new().run(&["rehearse", "scenario", "etcd-gost"]).ends(2);
    assert!(
        unknown.err.contains("did you mean `castle rehearse scenario etcd-ghost`?"),
        "{}",
        unknown.err
    );
    let change = played(
        "  castle {\n    change {\n      from = \"replicas = 9\"\n      to = \"replicas = 1\"\n    }\n  }\n  run \"up\" {}\n",
    )
    .ends(2);
    assert!(
        change.err.contains("`replicas = 9` stands in the castle file 0 times"),
        "{}",
        change.err
    );
}

#[test]
fn a_story_may_have_a_castle_of_its_own() {
    let castle = Context::new();
    let small = crate::context::example("one-and-one");
    castle.write("stories/small.hcl", &small);
    let acts = "  castle { file = \"small.hcl\" }\n  run \"plan\" { says = [\"vm/cp-01\"] }\n  world { guests = [] }\n";
    castle.write("stories/my.hcl", &story(acts));
    castle.run(&["rehearse", "scenario", "stories/my.hcl"]).ends(0);
}
