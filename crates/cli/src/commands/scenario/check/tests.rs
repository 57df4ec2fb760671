//! Every kind of expectation is seen to hold, and seen to fail.

use castle_rehearsal::inventory::Unit;
use serde_json::json;

use super::*;

fn run() -> Run {
    Run {
        command: "up".to_owned(),
        rules: Vec::new(),
        exit: 0,
        says: Vec::new(),
        hides: Vec::new(),
        fails: None,
        changes: None,
        within: None,
        yes: true,
    }
}

fn performed() -> Performed {
    Performed {
        exit: 0,
        said: "VM 421 is somebody else's\n  hint: give it another number\n".to_owned(),
        failed: BTreeMap::from([("platform/vm-cp-02".to_owned(), Class::Conflict)]),
        changes: 7,
        took: Duration::from_secs(90),
        unstruck: Vec::new(),
        struck: Vec::new(),
    }
}

/// What is missed, in words.
fn missed(checks: &[Check]) -> Vec<String> {
    let word = |check: &Check| Some(format!("{}: {}", check.what, check.missed.as_ref()?));
    checks.iter().filter_map(word).collect()
}

#[test]
fn each_expectation_of_a_command_can_fail() {
    let strings = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let fails = |step: &str, class| Some(vec![(step.to_owned(), class)]);
    let cases = [
        (Run { exit: 1, ..run() }, "`up` ends with exit code 1: it ended with 0"),
        (Run { says: strings(&["quorum"]), ..run() }, "it says “quorum”: it did not"),
        (
            Run { hides: strings(&["hint"]), ..run() },
            "it does not say “hint”: it said: hint: give it another number",
        ),
        (
            Run { fails: Some(Vec::new()), ..run() },
            "what fails is nothing: platform/vm-cp-02 (conflict) failed",
        ),
        (
            Run { fails: fails("platform/vm-cp-02", Class::Gone), ..run() },
            "what fails is platform/vm-cp-02 (gone): platform/vm-cp-02 (conflict) failed",
        ),
        (Run { changes: Some(0), ..run() }, "calls that change something: 0: there were 7"),
        (
            Run { within: Some(Duration::from_secs(89)), ..run() },
            "it takes at most 1:29: it took 1:30",
        ),
    ];
    for (run, expected) in cases {
        assert_eq!(missed(&of_run(&run, &performed())), [expected]);
    }
    let armed = Performed { unstruck: strings(&["talos cp-02: dead"]), ..performed() };
    assert_eq!(missed(&of_run(&run(), &armed)), ["`talos cp-02: dead` strikes: it never did"]);
    let vain = Performed { struck: vec![("git: away".to_owned(), false)], ..performed() };
    assert_eq!(missed(&of_run(&run(), &vain)), ["`git: away` strikes: it changed nothing"]);
    assert_eq!(
        missed(&[of_poke("talos cp-02 is dead", false), of_poke("git is away", true)]),
        ["meanwhile: talos cp-02 is dead: it was so already, or there was nothing to change"]
    );
    let good = Run {
        says: strings(&["VM 421", "hint"]),
        hides: strings(&["panicked"]),
        fails: fails("platform/vm-cp-02", Class::Conflict),
        changes: Some(7),
        within: Some(Duration::from_secs(90)),
        ..run()
    };
    let checks = of_run(&good, &performed());
    assert_eq!((missed(&checks), checks.len()), (Vec::new(), 7));
}

fn facts() -> Facts {
    let guest = |vmid: u32, running| castle_rehearsal::proxmox::GuestSeen {
        vmid,
        name: String::new(),
        container: false,
        running,
        cores: 4,
        memory: 8192,
        lock: None,
        tags: Vec::new(),
    };
    let mut inventory = Inventory::default();
    inventory.proxmox.guests = vec![guest(421, true), guest(431, false)];
    inventory.proxmox.volumes = vec!["local-lvm:vm-421-disk-0".to_owned()];
    inventory.nodes = vec![("cp-01".to_owned(), true), ("worker-01".to_owned(), false)];
    inventory.secrets = vec!["/blue/KUBECONFIG_CONTENT".to_owned()];
    let unit = |name: &str, ready| Unit {
        name: name.to_owned(),
        ready,
        suspended: false,
        says: String::new(),
    };
    inventory.flux = vec![unit("source tazlab-k8s", true), unit("apps", true), unit("edge", false)];
    Facts {
        inventory,
        bootstraps: 1,
        then: BTreeMap::from([
            ("421".to_owned(), json!({"name": "theirs"})),
            ("900".to_owned(), json!({})),
        ]),
        now: BTreeMap::from([("421".to_owned(), json!({"name": "ours"}))]),
        left: vec!["disk local-lvm:vm-421-disk-0".to_owned()],
    }
}

#[test]
fn each_expectation_of_the_world_can_fail() {
    let list = |words: &[&str]| Some(words.iter().map(ToString::to_string).collect::<Vec<_>>());
    let none = World::default;
    let cases = [
        (World { guests: list(&["421"]), ..none() }, r#"guests: 421: it is ["421", "431"]"#),
        (World { running: list(&["431"]), ..none() }, r#"running guests: 431: it is ["421"]"#),
        (
            World { ready: list(&["cp-01", "worker-01"]), ..none() },
            r#"nodes that are Ready: cp-01, worker-01: it is ["cp-01"]"#,
        ),
        (
            World { units: list(&["apps", "edge"]), ..none() },
            r#"units of Flux that are Ready: apps, edge: it is ["apps"]"#,
        ),
        (World { disks: Some(0), ..none() }, "disks: 0: it is 1"),
        (World { images: Some(1), ..none() }, "image files: 1: it is 0"),
        (World { tasks: Some(1), ..none() }, "running tasks: 1: it is 0"),
        (World { members: Some(3), ..none() }, "members of etcd: 3: it is 0"),
        (World { bootstraps: Some(2), ..none() }, "bootstraps of etcd: 2: it is 1"),
        (
            World { vault: vec!["TALOSCONFIG_CONTENT".to_owned()], ..none() },
            "the vault holds TALOSCONFIG_CONTENT: it does not",
        ),
        (
            World { vault_lacks: vec!["KUBECONFIG_CONTENT".to_owned()], ..none() },
            "the vault does not hold KUBECONFIG_CONTENT: it does",
        ),
        (
            World { handover: Some(false), ..none() },
            "Flux has not taken over: Flux looks after 3 units",
        ),
        (
            World { untouched: vec!["421".to_owned()], ..none() },
            "VM 421 is as somebody else made it: it was changed",
        ),
        (
            World { untouched: vec!["900".to_owned()], ..none() },
            "VM 900 is as somebody else made it: it is gone",
        ),
        (
            World { untouched: vec!["422".to_owned()], ..none() },
            "VM 422 is as somebody else made it: nobody made it before castle came",
        ),
        (
            World { nothing_left: Some(true), ..none() },
            "nothing is left over: disk local-lvm:vm-421-disk-0",
        ),
    ];
    for (world, expected) in cases {
        assert_eq!(missed(&of_world(&world, &facts())), [expected]);
    }
    let good = World {
        guests: list(&["431", "421"]),
        running: list(&["421"]),
        ready: list(&["cp-01"]),
        units: list(&["apps"]),
        disks: Some(1),
        images: Some(0),
        tasks: Some(0),
        members: Some(0),
        bootstraps: Some(1),
        vault: vec!["KUBECONFIG_CONTENT".to_owned()],
        vault_lacks: vec!["CONTENT".to_owned()],
        handover: Some(true),
        untouched: Vec::new(),
        nothing_left: Some(false),
    };
    let checks = of_world(&good, &facts());
    assert_eq!((missed(&checks), checks.len()), (Vec::new(), 13));
    let mut same = facts();
    same.now.clone_from(&same.then);
    let untouched = World { untouched: vec!["421".to_owned()], ..none() };
    assert_eq!(missed(&of_world(&untouched, &same)), Vec::<String>::new());
}
