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

/// The worlds that every story is played in. Durations differ from seed to seed, and with them what comes first.
const SEEDS: [&str; 2] = ["1", "2"];

/// Does something with each of these, some side by side, and gathers what is wrong.
fn each<T: Send>(all: Vec<T>, wrong: impl Fn(T) -> Option<String> + Sync) {
    let waiting = Mutex::new(all);
    let broken = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..PLAYERS {
            scope.spawn(|| {
                loop {
                    let Some(next) = waiting.lock().unwrap().pop() else { return };
                    broken.lock().unwrap().extend(wrong(next));
                }
            });
        }
    });
    let broken = broken.into_inner().unwrap();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_story_holds() {
    let names = names();
    assert!(names.len() >= 30, "the folder is there");
    let all = names.iter().flat_map(|name| SEEDS.map(|seed| (name, seed))).collect();
    each(all, |(name, seed)| {
        let said = Context::new().run(&["rehearse", "scenario", name, "--seed", seed]);
        let missed: Vec<&str> = said.out.lines().filter(|line| line.contains("NOT OK")).collect();
        let last = said.err.lines().last().unwrap_or_default();
        (said.code != 0).then(|| format!("{name}, seed {seed}: {missed:#?}\n{last}"))
    });
}

/// The stories in which nothing breaks that could be left out.
const UNBROKEN: &[&str] = &["a-quiet-day", "birth-time-setting", "what-a-raze-erases"];

/// The stories in which castle shall say nothing of what broke, and do all that it does on a quiet day: that it happened is
/// told by the rule that struck.
const SILENT: &[&str] =
    &["dead-cluster-is-razed", "ghost-of-a-machine", "razed-while-starting", "vault-stumbles"];

/// A story in which nothing breaks and nobody does anything, and which expects the same.
fn calmed(text: &str) -> String {
    let mut calm = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let key = line.split_whitespace().next().unwrap_or_default();
        match key {
            "forget" => {}
            "break" | "poke" | "mend" => {
                let mut list = line.to_owned();
                while !list.trim_end().ends_with(']') {
                    list.push_str(lines.next().expect("a list ends"));
                }
            }
            _ => {
                calm.push_str(line);
                calm.push('\n');
            }
        }
    }
    calm
}

#[test]
fn no_story_would_hold_if_nothing_broke() {
    let spared = |name: &str| UNBROKEN.contains(&name) || SILENT.contains(&name);
    let broken = names().into_iter().filter(|name| !spared(name)).collect();
    each(broken, |name: String| {
        let text = std::fs::read_to_string(format!("{FOLDER}/{name}.hcl")).unwrap();
        let calm = calmed(&text);
        let castle = Context::new();
        castle.write("calm.hcl", &calm);
        let said = castle.run(&["rehearse", "scenario", "./calm.hcl"]);
        let unsaid = said.out.lines().any(|line| line.contains("NOT OK  it says"));
        let good = said.code == 1 && unsaid && calm != text;
        (!good).then(|| format!("{name}: all that castle shall say is said on a quiet day, too"))
    });
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
    assert!(!list.out.contains(".txt"), "the name of a diary is no word for anybody: {}", list.out);
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

/// What breaks of castle's own computer is felt in a story as it is outside, and only while its rule lasts.
#[test]
fn a_story_breaks_the_disk_under_castle_and_its_power() {
    let acts = r#"
      run "up" {
        break = ["castle: disk full during machines"]
        exit  = 1
        says  = ["the journal could not be written", "No space left on device"]
      }
      run "up" {
        break = ["castle: state taken during etcd"]
        exit  = 1
        says  = ["the journal could not be written", "moved or deleted the state folder"]
      }
      run "up" {
        break = ["castle: disk tears during api"]
        exit  = 137
      }
      run "up" {
        break = ["castle: loses power during nodes"]
        exit  = 137
      }
      run "up" {
        says = ["handover"]
      }
      world {
        guests     = [421, 422, 423, 431, 432]
        bootstraps = 1
        handover   = true
      }
      run "up" {
        changes = 0
      }
    "#;
    played(acts).ends(0);
}

#[test]
fn what_is_poked_has_to_change_something() {
    let said = played(
        "  meanwhile {\n    poke = [\"talos cp-02: dead\", \"git: token changed\"]\n    mend = [\"network: vip mute\"]\n  }\n  run \"plan\" { exit = 1 }\n",
    )
    .ends(1);
    let told: Vec<&str> = said.out.lines().filter(|line| line.contains("meanwhile")).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
      NOT OK  meanwhile: talos cp-02 is dead: it was so already, or there was nothing to change
      ok      meanwhile: git takes another token
      NOT OK  meanwhile: network has made the shared address mute: no more: it was so already, or there was nothing to change
    ");
    let no_way_back =
        played("  meanwhile { mend = [\"git: token changed\"] }\n  run \"plan\" {}\n").ends(2);
    assert!(no_way_back.err.contains("what `token changed` does can not be mended"));
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
    assert_eq!(said.out, "");
    let all = played(
        "  exi = 1\n  run \"pla\" {\n    break = [\"talos cp-02: daed\"]\n  }\n  world {\n    nothing_left = 3\n  }\n",
    )
    .ends(2);
    let codes = all.err.lines().filter_map(|line| line.strip_prefix("error[")?.split(']').next());
    let codes: Vec<&str> = codes.collect();
    assert_eq!(codes, ["C0102", "C0108", "C1103", "C0201"], "{}", all.err);
    assert!(all.err.contains("./my.hcl: 4 errors"), "{}", all.err);
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

#[test]
fn a_story_takes_neither_a_castle_file_nor_a_state_root_from_outside() {
    let castle = Context::new();
    let said = castle.run(&["-f", "none.hcl", "rehearse", "scenario", "a-quiet-day"]).ends(2);
    assert!(said.err.contains("a story brings its own castle file"), "{}", said.err);
    assert!(said.err.contains("castle { file = \"…\" }"), "{}", said.err);
    let said = castle.run(&["rehearse", "scenario", "a-quiet-day", "--state", "here"]).ends(2);
    assert!(said.err.contains("a story is played in memory"), "{}", said.err);
    assert_eq!(said.out, "");
}
