//! A living rehearsal that others look into and change, and somebody's own castle file in it.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::context::{Context, Said, example};

/// Starts `up` at a speed at which it lasts some seconds, and waits for an event.
fn under_way(castle: &Context, sign: &str) -> (Child, BufReader<ChildStdout>) {
    let mut command = castle.command(&["up", "--json", "--speed", "60"]);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut reader = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains(sign) {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "it ended before `{sign}`");
    }
    (process, reader)
}

#[test]
fn a_stopped_run_can_not_be_asked_and_says_how_it_goes_on() {
    let castle = Context::new();
    let (mut process, reader) = under_way(&castle, "platform/boot/worker-02");
    let pid = process.id();
    kill_process(Pid::from_child(&process), Signal::STOP).unwrap();
    for words in [&["rehearse", "inventory"][..], &["rehearse", "poke", "talos cp-02: dead"]] {
        // The signal is taken when the process next runs.
        let said = loop {
            let said = castle.run(words);
            if said.code != 0 {
                break said.ends(3);
            }
        };
        for told in [
            "which is stopped (state T)",
            &format!("`kill -CONT {pid}` lets it go on"),
            "castle up",
        ] {
            assert!(said.err.contains(told), "{told} is not in:\n{}", said.err);
        }
        assert!(!said.err.contains("agree"), "{}", said.err);
    }
    kill_process(Pid::from_child(&process), Signal::CONT).unwrap();
    // What was asked meanwhile did not lie there until now: the machine lives.
    let wrong = castle.inventory()["wrong"].to_string();
    assert!(!wrong.contains("cp-02 is dead"), "{wrong}");
    kill_process(Pid::from_child(&process), Signal::KILL).unwrap();
    process.wait().unwrap();
    drop(reader);
}

fn json(castle: &Context, words: &[&str]) -> Value {
    serde_json::from_str(&castle.run(words).ends(0).out).unwrap()
}

#[test]
fn a_running_rehearsal_is_looked_into_and_poked_and_nobody_else_takes_it() {
    let castle = Context::new();
    let (mut process, reader) = under_way(&castle, "platform/boot/worker-02");
    let before = castle.inventory();
    let told = json(&castle, &["rehearse", "poke", "--json", "proxmox", "700:", "foreign", "vm"]);
    assert_eq!((&told["hosted"], &told["changed"]), (&true.into(), &true.into()), "{told}");
    assert!(castle.guests().contains(&700), "{}", castle.inventory());
    // Its time goes on from event to event, and the next one may be some looks away.
    let later = || castle.inventory()["at"].as_u64() > before["at"].as_u64();
    assert!((0..1000).any(|_| later()), "its time stands still");
    let said = castle.run(&["rehearse", "inventory"]).ends(0);
    assert!(said.out.contains("a run or `serve` holds it"), "{}", said.out);
    // A second run is refused, and told who is first and how to look and poke.
    let said = castle.run(&["up"]).ends(3);
    let holder = format!("process {} on ", process.id());
    assert!(said.err.contains("`castle up` (") && said.err.contains(&holder), "{}", said.err);
    assert!(said.err.contains("`castle rehearse poke`"), "{}", said.err);
    // A control plane dies under the run, which waits for it; it is mended, and the run ends well.
    let dead = ["rehearse", "poke", "talos cp-02: dead"];
    let said = castle.run(&dead).ends(0);
    assert!(
        said.err.contains("talos cp-02 is dead") && said.err.contains("feels it"),
        "{}",
        said.err
    );
    let wrong = castle.inventory()["wrong"].to_string();
    assert!(wrong.contains("cp-02 is dead"), "{wrong}");
    castle.run(&["rehearse", "poke", "--mend", "talos cp-02: dead"]).ends(0);
    let rest: Vec<String> = reader.lines().map(Result::unwrap).collect();
    assert_eq!(process.wait().unwrap().code(), Some(0), "{rest:?}");
    // The run that was poked tells it too.
    for what in ["somebody else's VM", "talos cp-02 is dead\"", "talos cp-02 is dead, no more"] {
        let told = |line: &&String| line.contains("\"event\":\"poke\"") && line.contains(what);
        assert_eq!(rest.iter().filter(told).count(), 1, "{what}: {rest:?}");
    }
    assert!(!castle.datacenter().join("desk").exists(), "the desk is closed");
    assert_eq!(castle.inventory()["nodes"].as_array().unwrap().len(), 5);
}

#[test]
fn what_is_poked_between_runs_is_seen_by_plan_and_mended_by_up() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let said = castle.run(&["rehearse", "poke", "proxmox worker-01: edited memory 4096"]).ends(0);
    assert!(said.err.contains("`castle plan` shows"), "{}", said.err);
    let said = castle.run(&["plan"]).ends(0);
    assert!(said.out.contains("update   vm/worker-01"), "{}", said.out);
    assert!(said.out.contains("memory 4096 → 8192 MiB"), "{}", said.out);
    castle.run(&["up", "--yes"]).ends(0);
    let said = castle.run(&["plan"]).ends(0);
    assert!(!said.out.contains("memory 4096 → 8192 MiB"), "{}", said.out);
    // A worker that somebody removed is made again; the others are left alone.
    castle.run(&["rehearse", "poke", "proxmox worker-02: destroyed"]).ends(0);
    assert_eq!(castle.guests().len(), 4);
    castle.run(&["up", "--yes"]).ends(0);
    assert_eq!(castle.guests().len(), 5);
    // A token that is gone is named, and good again when it is back.
    castle.run(&["rehearse", "poke", "proxmox: token revoked"]).ends(0);
    let said = castle.run(&["up"]).ends(1);
    assert!(said.err.contains("401"), "{}", said.err);
    castle.run(&["rehearse", "poke", "--mend", "proxmox: token revoked"]).ends(0);
    castle.run(&["up"]).ends(0);
    let said = castle.run(&["rehearse", "inventory"]).ends(0);
    assert!(said.out.contains("192.168.1.210 is held by cp-"), "{}", said.out);
    // Where there is no terminal, nothing is broken; where somebody says how wide it is, all of it fits.
    let guest = said.out.lines().find(|line| line.starts_with("  421 "));
    assert!(guest.is_some_and(|line| line.contains(" castle castle-blue ")), "{}", said.out);
    let mut narrow = castle.command(&["rehearse", "inventory"]);
    let narrow = Said::of(&narrow.env("COLUMNS", "80").output().unwrap()).ends(0);
    assert!(narrow.out.lines().all(|line| line.chars().count() <= 80), "{}", narrow.out);
}

#[test]
fn a_data_disk_that_is_lost_in_a_living_castle_is_named_by_plan() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    castle.run(&["plan"]).ends(0);
    castle.run(&["rehearse", "poke", "talos worker-01: data disk gone"]).ends(0);
    let plan = castle.run(&["plan"]).ends(0);
    let said = "default-disk(/var/mnt/longhorn) on node worker-01 is not ready";
    assert!(plan.out.contains(said), "{}{}", plan.out, plan.err);
    castle.run(&["rehearse", "poke", "--mend", "talos worker-01: data disk gone"]).ends(0);
    let plan = castle.run(&["plan"]).ends(0);
    assert!(!plan.out.contains("is not ready"), "{}", plan.out);
}

#[test]
fn a_poke_that_can_not_be_is_told_so_and_does_nothing() {
    let castle = Context::new();
    let refused = |rule: &str, code| castle.run(&["rehearse", "poke", rule]).ends(code).err;
    let said = refused("talos cp-02: daed", 2);
    assert!(said.contains("^^^^") && said.contains("did you mean `dead`?"), "{said}");
    assert!(said.starts_with("error: ") && said.matches("error: ").count() == 1, "{said}");
    let said = refused("proxmox: nonsense", 2);
    insta::assert_snapshot!(said, @"
    error: proxmox has no fault called `nonsense`
     --> poke:1:10
      |
    1 | proxmox: nonsense
      |          ^^^^^^^^
      |
      = hint: there is: node down, full, locked, task hangs, task lies, task fails, task warns, overtaken, token revoked, privilege lost, edited, stopped, destroyed, foreign vm, foreign container, images lost, lost disk
      hint: `castle rehearse poke --list` shows what is possible
    ");
    let said = refused("talos cp-02: dead from 0:40", 2);
    assert!(said.contains("a poke happens now"), "{said}");
    let said = refused("proxmox: refuses", 2);
    assert!(said.contains("strikes calls") && said.contains("--fault"), "{said}");
    assert!(!castle.datacenter().exists(), "nothing was made for what can not be");
    let said = refused("proxmox worker-01: stopped", 3);
    assert!(said.contains("nothing changed by `proxmox worker-01: stopped`"), "{said}");
    // What is not there can neither die nor be mended, and a number that is taken is not taken twice.
    refused("talos cp-02: dead", 3);
    castle.run(&["rehearse", "poke", "--mend", "talos cp-02: dead"]).ends(3);
    let said = refused("proxmox 431: edited memry 4096", 2);
    assert!(said.contains("did you mean `memory`?"), "{said}");
    castle.run(&["rehearse", "poke", "proxmox 425: foreign vm"]).ends(0);
    for again in ["proxmox 425: foreign vm", "proxmox 425: foreign container"] {
        let said = refused(again, 3);
        assert!(said.contains("that number is taken"), "{said}");
    }
    let listed = castle.run(&["rehearse", "poke", "--list", "--json"]).ends(0).out;
    let first: Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    assert_eq!(first["name"], "node down", "{listed}");
    let listed = castle.run(&["rehearse", "poke", "--list"]).ends(0).out;
    assert!(listed.contains("talos NODE: dead"), "{listed}");
    castle.run(&["rehearse", "poke"]).ends(2);
    // Damage is refused with its place, by those who look too.
    let snapshot = castle.datacenter().join("world.json");
    let mut bytes = std::fs::read(&snapshot).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(&snapshot, &bytes).unwrap();
    for words in
        [&["rehearse", "inventory"][..], &["rehearse", "poke", "proxmox: node down"], &["up"]]
    {
        let said = castle.run(words).ends(3).err;
        assert!(said.contains("world.json is damaged at line 2"), "{said}");
        assert!(said.contains("`castle rehearse reset` throws it away"), "{said}");
    }
    assert_eq!(std::fs::read(&snapshot).unwrap(), bytes);
}

#[test]
fn what_stays_broken_is_told_with_its_cure_and_a_death_ends_with_its_machine() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let said = castle.run(&["up", "--fault", "git: away for 9:00"]).ends(0).err;
    assert!(said.contains("still broken: the Git host answers nobody"), "{said}");
    assert!(said.contains("`castle rehearse poke --mend 'git: away'` mends it"), "{said}");
    castle.run(&["rehearse", "poke", "--mend", "git: away"]).ends(0);
    castle.run(&["rehearse", "poke", "--mend", "git: away"]).ends(3);
    castle.run(&["rehearse", "poke", "proxmox: task warns qmstop"]).ends(0);
    let wrong = castle.inventory()["wrong"].to_string();
    assert!(wrong.contains("the next qmstop task warns"), "{wrong}");
    castle.run(&["rehearse", "poke", "talos worker-02: dead"]).ends(0);
    castle.run(&["down", "--yes"]).ends(0);
    assert_eq!(castle.inventory()["wrong"], serde_json::json!([]));
    let said = castle.run(&["up", "--fault", "talos cp-03: revived from 1:00"]).ends(0).err;
    assert!(said.contains("fault: talos cp-03 is mended, which changed nothing"), "{said}");
}

#[test]
fn after_a_failure_that_a_rule_caused_the_mending_comes_first() {
    let castle = Context::new();
    let said = castle.run(&["up", "--fault", "git: away"]).ends(1);
    let both = format!("{}{}", said.out, said.err);
    let next = "next: `castle rehearse poke --mend 'git: away'`, then `castle up`";
    assert_eq!(both.matches("next: ").count(), 1, "{both}");
    assert!(said.out.contains(next), "{}", said.out);
    assert_eq!(both.matches("still broken: the Git host answers nobody").count(), 1, "{both}");
    // Whoever asks later is told the same, until somebody has mended it.
    for question in ["why", "status"] {
        let said = castle.run(&[question]).ends(0).out;
        assert!(said.trim_end().ends_with(next), "{question}: {said}");
    }
    let mends = || {
        let status = castle.run(&["status", "--json"]).ends(0).out;
        let status: Value = serde_json::from_str(&status).unwrap();
        assert_eq!(status["next"], "castle up");
        status["mends"].clone()
    };
    assert_eq!(mends(), serde_json::json!(["castle rehearse poke --mend 'git: away'"]));
    castle.run(&["rehearse", "poke", "--mend", "git: away"]).ends(0);
    for question in ["why", "status"] {
        let said = castle.run(&[question]).ends(0).out;
        assert!(said.trim_end().ends_with("\nnext: `castle up`"), "{question}: {said}");
    }
    assert_eq!(mends(), serde_json::json!([]));
}

/// A castle file whose every source of secrets is out of reach: a file that is not there, variables that are not set,
/// servers that nobody has.
fn unreachable() -> Vec<(&'static str, String)> {
    let sops = example("sops").replace("https://pve.lan:8006", "https://pve.invalid:8006");
    let machines = example("machines").replace("https://", "https://nowhere.invalid.");
    let infisical =
        example("one-and-one").replace("https://eu.infisical.com", "https://vault.invalid");
    vec![("sops", sops), ("machines", machines), ("infisical", infisical)]
}

#[test]
fn an_own_castle_file_is_rehearsed_without_any_real_source() {
    for (name, text) in unreachable() {
        let castle = Context::new();
        castle.write("my.hcl", &text);
        castle.write("patches/sysctls.yaml", &patch());
        // An identity that nobody may read, where castle would look for one.
        castle.write(".config/sops/age/keys.txt", "not an identity");
        let mine = |act: &[&str], code| {
            castle.run(&[&["rehearse", "-f", "my.hcl"], act].concat()).ends(code)
        };
        mine(&["plan"], 0);
        mine(&["up"], 0);
        let said = mine(&["status"], 0);
        assert!(!said.out.is_empty(), "{name}");
        assert_eq!(mine(&["up"], 0).changes(), 0, "{name}: nothing is left to do");
        let seen: Value = serde_json::from_str(&mine(&["inventory", "--json"], 0).out).unwrap();
        let machine = seen["nodes"][0][0].as_str().unwrap().to_owned();
        let told = mine(&["poke", &format!("talos {machine}: reboots")], 0);
        assert!(told.err.contains("castle rehearse -f my.hcl plan"), "{name}: {}", told.err);
        mine(&["up"], 0);
        // Its state and its datacenter are apart from those of the real castle, and of the example.
        let home = castle.folder().join("state/castle");
        let held: Vec<String> = std::fs::read_dir(&home)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(held, ["rehearsal"], "{name}");
        mine(&["down", "--yes"], 0);
        let left: Value = serde_json::from_str(&mine(&["inventory", "--json"], 0).out).unwrap();
        assert_eq!(left["nodes"], serde_json::json!([]), "{name}");
    }
}

fn patch() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path.join("../../examples/machines/patches/sysctls.yaml")).unwrap()
}

#[test]
fn mistakes_in_an_own_castle_file_are_shown_as_by_check() {
    let castle = Context::new();
    castle.write("my.hcl", &example("blue").replace("memory", "memroy"));
    let checked = castle.run(&["-f", "my.hcl", "check"]).ends(2);
    assert!(checked.err.contains("memroy") || checked.out.contains("memroy"));
    for act in ["up", "plan", "down", "status", "inventory"] {
        let said = castle.run(&["rehearse", "-f", "my.hcl", act]).ends(2).err;
        assert!(said.contains("did you mean") && said.contains("memory"), "{act}: {said}");
    }
    assert!(!castle.folder().join("state").exists(), "nothing was made");
}
