//! From nothing to the handover and back.

use crate::context::{Context, example};

#[test]
fn the_example_rises_stays_and_goes_without_a_trace() {
    let castle = Context::new();
    let up = castle.run(&["up"]).ends(0);
    assert!(up.err.starts_with("rehearsal of the built-in example castle `blue`"), "{}", up.err);
    assert!(up.out.contains("handover: Flux owns what the cluster hosts"), "{}", up.out);
    assert_eq!(castle.guests(), [421, 422, 423, 431, 432]);

    let again = castle.run(&["up"]).ends(0);
    assert_eq!(again.changes(), 0, "a second `up` changes nothing:\n{}", again.err);
    assert!(again.out.contains("nothing changed"), "{}", again.out);

    let status = castle.run(&["status"]).ends(0);
    for layer in ["secrets", "platform", "engine", "networking", "storage", "gitops"] {
        assert!(
            status.out.lines().any(|l| l.starts_with(layer) && l.ends_with("stands")),
            "{}",
            status.out
        );
    }
    let plan = castle.run(&["plan", "--json"]).ends(0);
    let plan: serde_json::Value = serde_json::from_str(&plan.out).unwrap();
    assert!(plan["steps"].as_array().unwrap().iter().all(|s| s["verb"] == "leave"));

    castle.run(&["down", "--yes"]).ends(0);
    let left = castle.inventory();
    for kind in ["guests", "volumes", "files", "running_tasks"] {
        assert_eq!(left["proxmox"][kind], serde_json::json!([]), "{left}");
    }
    for key in ["TALOS_SECRETS_BUNDLE", "KUBECONFIG_CONTENT", "TALOSCONFIG_CONTENT"] {
        assert!(!left["secrets"].to_string().contains(key), "{left}");
    }
    assert_eq!(castle.run(&["down", "--yes"]).ends(0).changes(), 0, "twice in a row is fine");

    let reborn = castle.run(&["up"]).ends(0);
    assert_ne!(life(&up.err), life(&reborn.err), "it is born again, with other keys");
    assert_eq!(castle.guests().len(), 5);
}

/// The life that was begun, as the escrow step tells.
fn life(talk: &str) -> String {
    let (_, rest) = talk.split_once(": life ").unwrap();
    rest.chars().take(16).collect()
}

#[test]
fn a_machine_that_the_castle_file_no_longer_names_is_told_and_goes_with_the_rest() {
    let castle = Context::new();
    let whole = example("blue");
    castle.write("castle.hcl", &whole);
    castle.run(&["rehearse", "up"]).ends(0);
    let fewer =
        whole.replace("count      = 2", "count      = 1").replace("replicas = 2", "replicas = 1");
    assert_ne!(whole, fewer, "the example has these lines");
    castle.write("castle.hcl", &fewer);
    let plan = castle.run(&["rehearse", "plan"]).ends(0);
    assert!(plan.out.contains("VM 432 (worker-02)"), "{}", plan.out);
    castle.run(&["rehearse", "down", "--yes"]).ends(0);
    assert_eq!(castle.guests(), Vec::<u64>::new());
}

#[test]
fn other_topologies_rise_too() {
    for (name, machines) in [("one-and-one", 2), ("one-and-two", 3), ("sops", 2)] {
        let castle = Context::new();
        castle.write("castle.hcl", &example(name));
        let up = castle.run(&["rehearse", "up"]).ends(0);
        assert!(up.out.contains(" stands: "), "{}", up.out);
        assert_eq!(castle.guests().len(), machines);
        assert_eq!(castle.run(&["rehearse", "up"]).ends(0).changes(), 0, "{name}");
    }
}

#[test]
fn machines_that_stand_already_become_a_castle_and_are_reset() {
    let castle = Context::new();
    castle.write("castle.hcl", &example("machines"));
    castle.write(
        "patches/sysctls.yaml",
        include_str!("../../../../examples/machines/patches/sysctls.yaml"),
    );
    castle.run(&["rehearse", "up"]).ends(0);
    assert_eq!(castle.run(&["rehearse", "up"]).ends(0).changes(), 0);
    let config = castle.run(&["rehearse", "machineconfig", "worker-01"]).ends(0);
    assert!(config.out.contains("vm.max_map_count"), "{}", config.out);
    let lock = castle.run(&["rehearse", "lock", "--images"]).ends(2);
    assert!(lock.err.contains("they stand already"), "{}", lock.err);
    let standing = |state: &str| {
        let seen = castle.run(&["rehearse", "inventory"]).ends(0).out;
        assert_eq!(seen.matches(state).count(), 3, "{seen}");
    };
    standing(" configured ");
    castle.run(&["rehearse", "down", "--yes"]).ends(0);
    standing(" maintenance ");
    castle.run(&["rehearse", "up"]).ends(0);
}

#[test]
fn a_deleted_state_folder_costs_one_up() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    std::fs::remove_dir_all(castle.state()).unwrap();
    let up = castle.run(&["up"]).ends(0);
    assert_eq!(up.changes(), 0, "everything is adopted, nothing made again:\n{}", up.err);
    assert_eq!(castle.run(&["up"]).ends(0).changes(), 0);
}

#[test]
fn the_trace_that_up_prints_is_that_of_its_seed() {
    let trace = |words: &[&str]| {
        let said = Context::new().run(words).ends(0);
        said.err.split_once("; trace ").unwrap().1.lines().next().unwrap().to_owned()
    };
    assert_eq!(trace(&["up"]), trace(&["up", "--speed", "2000"]), "the brake changes nothing");
    assert_ne!(trace(&["up"]), trace(&["up", "--seed", "5"]));
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let said = castle.run(&["up", "--seed", "5"]).ends(0);
    assert!(said.err.contains("born with seed 1 and keeps it"), "{}", said.err);
}

#[test]
fn the_same_seed_gives_the_same_run_in_every_process() {
    let castle = Context::new();
    let repeat = || {
        let mut command = castle.command(&["rehearse", "repeat", "--times", "50", "--seed", "3"]);
        command.stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    let (one, two) = (repeat(), repeat());
    let mut traces = String::new();
    for process in [one, two] {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success());
        traces += &String::from_utf8(output.stdout).unwrap();
    }
    let lines: Vec<&str> = traces.lines().collect();
    assert_eq!(lines.len(), 100);
    assert!(lines.iter().all(|l| *l == lines[0]), "{traces}");
    let other = castle.run(&["rehearse", "repeat", "--seed", "4"]).ends(0);
    assert_ne!(other.out.trim(), lines[0]);
}
