//! What breaks by a rule: how it is given, how it is told, and that castle ends well or names the cause.

use std::sync::Mutex;
use std::thread;

use serde_json::Value;

use crate::context::{Context, Said, example};

/// Everything that can be broken: its name and its example.
fn all() -> Vec<(String, String)> {
    let said = Context::new().run(&["rehearse", "--list-faults", "--json"]).ends(0);
    let row = |line: &str| {
        let kind: Value = serde_json::from_str(line).unwrap();
        let who = kind["who"].as_array().unwrap();
        let who = if who.len() > 1 { "wire" } else { who[0].as_str().unwrap() };
        let text = |name: &str| kind[name].as_str().unwrap().to_owned();
        (format!("{who}: {}", text("name")), text("example"))
    };
    said.out.lines().map(row).collect()
}

/// How a run ends that was killed.
const KILLED: &str = "killed";
/// How a run ends that can not write down what it is about to do: no step has failed.
const STOPPED: &str = "stopped";

/// The faults that no run can mend: the step where castle stops, the class of its failure, and words of it. A step that ends
/// with `/` is that of any machine, and `*` any step: which one a rule by time or without a machine meets is a matter of
/// milliseconds. Every other fault ends well.
const NAMED: &[(&str, &str, &str)] = &[
    ("kubernetes: deleted", "networking/pool transient", "MetalLB has said nothing"),
    ("kubernetes: scaled", "networking/pool transient", "MetalLB has said nothing"),
    ("proxmox: full", "platform/preflight conflict", "local-lvm"),
    ("proxmox: task hangs", "platform/vm/ transient", "Proxmox' task qmcreate is running"),
    ("proxmox: task fails", "platform/vm/ invalid", "the task failed"),
    ("proxmox: overtaken", "platform/vm/cp-02 conflict", "it is not ours"),
    ("proxmox: token revoked", "platform/vm/ denied", "Authentication failed!"),
    ("proxmox: privilege lost", "platform/preflight conflict", "VM.PowerMgmt"),
    ("proxmox: stopped", "storage/longhorn transient", "is available on 1 of 2 nodes"),
    ("proxmox: destroyed", "engine/operator transient", "worker-02 is NotReady"),
    ("proxmox: lost disk", "platform/preflight conflict", "421"),
    ("talos: dead", "platform/boot/cp-02 transient", "nothing answers at the address of cp-02"),
    ("talos: wrong address", "platform/boot/worker-01 transient", "nothing answers at the address"),
    ("talos: stale etcd", "platform/bootstrap transient", "an old disk"),
    ("talos: usurped", "platform/etcd conflict", "the brain is split"),
    ("talos: data disk gone", "storage/volume transient", "is not ready"),
    ("talos: pulls refused", "platform/nodes transient", "429 Too Many Requests"),
    ("talos: unwritable", "platform/config/worker-01 transient", "still in maintenance mode"),
    ("talos: etcd removed", "* transient", "192.168.1.213:6443: Connection refused"),
    ("network: stolen", "platform/preflight conflict", "192.168.1.214"),
    ("kubernetes: empty secrets", "engine/proof invalid", "without a value"),
    ("flux: suspended", "gitops/source transient", "is suspended"),
    ("infisical: expired", "* denied", "expired client secret"),
    ("infisical: revoked", "* denied", "Invalid credentials"),
    ("infisical: read only", "secrets/escrow denied", "not allowed to create"),
    ("infisical: confined", "secrets/read gone", "missing: AWS_ACCESS_KEY_ID"),
    ("git: broken", "gitops/convergence transient", "MalformedYAMLError"),
    ("git: branch gone", "gitops/repository gone", "is empty"),
    ("git: token changed", "gitops/repository denied", "the token may not read"),
    ("proxmox: images lost", "platform/vm/ gone", "failed to stat"),
    (
        "talos: extension missing",
        "platform/boot/worker-01 conflict",
        "lacks the extensions iscsi-tools",
    ),
    ("infisical: lost", "secrets/read gone", "missing: AWS_ACCESS_KEY_ID"),
    ("downloads: missing", "platform/manifests gone", "404: Not Found"),
    ("downloads: tampered", "platform/manifests invalid", "metallb-native.yaml"),
    ("downloads: elsewhere", "platform/manifests invalid", "example.com"),
    ("castle: killed before", KILLED, ""),
    ("castle: killed after", KILLED, ""),
    ("castle: loses power", KILLED, ""),
    ("castle: disk full", STOPPED, "No space left on device"),
    ("castle: disk fails", STOPPED, "Input/output error"),
    ("castle: disk read only", STOPPED, "Read-only file system"),
    ("castle: disk tears", KILLED, ""),
    ("castle: state taken", STOPPED, "moved or deleted the state folder"),
];

/// What has to be broken before, so that a fault has something to do.
const BEFORE: &[(&str, &str)] = &[("talos: revived", "talos cp-02: dead during machines")];

/// What is no part of what castle itself does and sees: the fault's own line, and what the rehearsal tells at the end.
const TOLD_OF_FAULTS: [&str; 3] = ["fault", "still-broken", "fault-never-struck"];

/// How a run ended.
struct End {
    /// In words.
    how: String,
    /// What failed: the step, the class, the whole failure.
    failed: Vec<(String, String, String)>,
    /// Whether the rule struck, and not in vain.
    struck: bool,
    /// What castle told of it.
    lines: Vec<Value>,
}

impl End {
    /// Whether it is the one that is named.
    fn is(&self, place: &str, words: &str) -> bool {
        if place == STOPPED {
            return self.failed.is_empty() && self.how.contains(words);
        }
        let Some((wanted, class)) = place.split_once(' ') else { return self.how == place };
        self.failed.iter().any(|(step, own, failure)| {
            let there = ["*", step].contains(&wanted)
                || (wanted.ends_with('/') && step.starts_with(wanted));
            there && own == class && failure.contains(words)
        })
    }
}

fn told(said: &Said) -> End {
    let events: Vec<Value> =
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is = |event: &Value, name: &str| event["event"] == name;
    let vain = |event: &Value| event["what"].as_str().unwrap().ends_with("changed nothing");
    let struck = events.iter().any(|event| is(event, "fault") && !vain(event));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let failed = events.iter().filter(|event| is(event, "step-failed")).map(|event| {
        let failure = &event["failure"];
        (text(&event["step"]), text(&failure["class"]), failure.to_string())
    });
    let failed: Vec<_> = failed.collect();
    let how = match said.code {
        0 => "done".to_owned(),
        -1 => KILLED.to_owned(),
        code => {
            let one = |(step, class, failure): &(String, String, String)| {
                format!("{step} {class}: {failure}")
            };
            let error = events.iter().find(|event| event["answer"] == "error");
            let error = error.filter(|_| failed.is_empty()).map(ToString::to_string);
            let failed = failed.iter().map(one).chain(error).collect::<Vec<_>>();
            format!("exit {code} {}", failed.join("; "))
        }
    };
    let lines =
        events.into_iter().filter(|event| !TOLD_OF_FAULTS.iter().any(|name| is(event, name)));
    let lines = lines.map(|mut event| {
        // The fault's own line has moved the numbers of all others.
        event["seq"].take();
        event
    });
    End { how, failed, struck, lines: lines.collect() }
}

fn raised(context: &Context, rules: &[&str]) -> End {
    let mut words = vec!["up", "--json", "--speed", "max"];
    words.extend(rules.iter().flat_map(|rule| ["--fault", rule]));
    told(&context.run(&words))
}

/// What castle shows on a quiet day: the lines of `up`, and what `plan` says then.
struct Quiet {
    lines: Vec<Value>,
    plan: String,
}

impl Quiet {
    fn day() -> Self {
        let context = Context::new();
        let lines = raised(&context, &[]).lines;
        Self { lines, plan: context.run(&["plan"]).out }
    }

    /// Whether castle noticed something: in the run, or when it looks the next time.
    fn is_broken(&self, context: &Context, end: &End) -> bool {
        end.lines != self.lines || context.run(&["plan"]).out != self.plan
    }
}

/// What is wrong with the way in which a run with this fault has ended.
fn wrong(name: &str, rule: &str, quiet: &Quiet) -> Option<String> {
    let context = Context::new();
    let before = BEFORE.iter().filter(|(kind, _)| *kind == name).map(|(_, rule)| *rule);
    let end = raised(&context, &before.chain([rule]).collect::<Vec<_>>());
    if end.how == KILLED {
        context.run(&["up", "--yes", "--speed", "max"]).ends(0);
    }
    let named = NAMED.iter().find(|(named, ..)| *named == name);
    let good = named.map_or(end.how == "done", |(_, place, words)| end.is(place, words));
    let why = match () {
        () if !end.struck => "it never struck, or in vain",
        () if !quiet.is_broken(&context, &end) => "nobody noticed",
        () if !good => "it ends otherwise",
        () if end.how.contains(" bug: ") => "it is taken for a bug",
        () => return None,
    };
    Some(format!("{name}: `{rule}`: {why}: {}", end.how))
}

/// Every kind, broken once while the example castle is raised from nothing: it strikes, and castle's words are not those of a
/// quiet day; nothing hangs, nothing is a bug of ours, and either the castle stands or the cause is named.
#[test]
fn every_fault_ends_well_or_is_named() {
    let kinds = all();
    assert!(kinds.len() >= 24);
    assert!(NAMED.iter().all(|(named, ..)| kinds.iter().any(|(name, _)| name == named)));
    let quiet = Quiet::day();
    let queue = Mutex::new(kinds);
    let missed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().pop();
                    let Some((name, rule)) = next else { break };
                    missed.lock().unwrap().extend(wrong(&name, &rule, &quiet));
                }
            });
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn a_fault_is_told_when_it_strikes_and_when_it_never_did() {
    let context = Context::new();
    let said = context.run(&[
        "up",
        "--speed",
        "max",
        "--fault",
        "proxmox: drops after on POST /qemu the 2nd",
        "--fault",
        "talos worker-02: reboots on GET /never",
    ]);
    let said = said.ends(0);
    let lines: Vec<&str> = said.err.lines().filter(|line| line.contains("fault: ")).collect();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].starts_with("[ 0:"), "{lines:#?}");
    assert!(lines[0].contains("proxmox drops the connection after it has done POST /"));
    assert_eq!(lines[1], "fault: never struck: talos worker-02: reboots on GET /never");
}

/// The second answer must never be taken for that of the next call.
#[test]
fn a_castle_rises_though_every_answer_of_proxmox_comes_twice() {
    let castle = Context::new();
    let said = castle.run(&["up", "--speed", "max", "--fault", "proxmox: answers twice"]).ends(0);
    assert!(said.err.contains("proxmox answers once more, unasked, to"), "{}", said.err);
    let again = castle.run(&["up", "--speed", "max", "--fault", "proxmox: answers twice"]).ends(0);
    assert!(again.err.contains(", 0 of them changed the datacenter"), "{}", again.err);
}

#[test]
fn rules_come_from_a_file_and_from_a_seed() {
    let context = Context::new();
    context.write("faults.txt", "# a bad day\n\nproxmox: answers 596 on GET /status once\n");
    let said = context.run(&["plan", "--faults", "faults.txt"]);
    assert!(!said.err.contains("can not be read"), "{}", said.err);
    context.write("wrong.txt", "talos cp-2: dead\ngit: awya\n");
    let wrong = context.run(&["up", "--faults", "wrong.txt"]).ends(2);
    assert!(wrong.err.contains("did you mean `cp-02`?"), "{}", wrong.err);
    assert!(wrong.err.contains("wrong.txt:2:6"), "{}", wrong.err);
    let chaos = |seed: &str| {
        let said = Context::new().run(&["plan", "--chaos", seed]);
        let drawn = said.err.lines().filter(|line| line.starts_with("chaos "));
        drawn.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!((1..=3).contains(&chaos("7").len()));
    assert_eq!(chaos("7"), chaos("7"));
    assert_ne!(chaos("7"), chaos("8"));
}

#[test]
fn a_wrong_rule_or_a_real_castle_is_refused_before_anything_happens() {
    let context = Context::new();
    let said = context.run(&["up", "--fault", "talos cp-2: dead from 0:40"]).ends(2);
    assert!(said.err.contains("      ^^^^ did you mean `cp-02`?"), "{}", said.err);
    assert!(said.err.contains("--list-faults"), "{}", said.err);
    assert!(!context.datacenter().exists() && !context.state().exists());
    context.write("castle.hcl", &example("blue"));
    for flag in [["--fault", "git: away"], ["--faults", "x"], ["--chaos", "1"]] {
        let said = context.run(&["up", flag[0], flag[1]]).ends(2);
        assert!(said.err.contains("castle rehearse"), "{}", said.err);
    }
}

#[test]
fn the_same_rules_give_the_same_run() {
    let trace = || {
        let rule = "kubernetes: answers 500 on PATCH * the 5th 3 times";
        let said = Context::new().run(&["up", "--speed", "max", "--fault", rule]);
        said.err.lines().find(|line| line.starts_with("rehearsal: ")).unwrap().to_owned()
    };
    assert_eq!(trace(), trace());
}

/// A rule about the disk under castle's state, what `up` says of it, and that it goes on when the disk is sound again.
#[test]
fn a_disk_that_takes_nothing_more_stops_a_run_before_its_next_act_and_the_next_one_goes_on() {
    for (kind, why) in [
        ("disk full", "No space left on device (os error 28)"),
        ("disk fails", "Input/output error (os error 5)"),
        ("disk read only", "Read-only file system (os error 30)"),
    ] {
        let castle = Context::new();
        let rule = format!("castle: {kind} during machines");
        let said = castle.run(&["up", "--speed", "max", "--fault", &rule]).ends(1);
        let stopped = "the run stopped before its next act: the journal could not be written";
        for words in [stopped, why, "`castle up` goes on"] {
            assert!(said.err.contains(words), "{kind}: {words}: {}", said.err);
        }
        let made = castle.guests().len();
        assert!((1..5).contains(&made), "{kind}: it was in the middle, {made} machines stood");
        castle.run(&["status"]).ends(0);
        castle.run(&["up"]).ends(0);
        assert_eq!(castle.guests(), [421, 422, 423, 431, 432], "{kind}");
        assert_eq!(castle.run(&["up"]).ends(0).changes(), 0, "{kind}");
    }
}

#[test]
fn a_disk_that_is_mended_in_time_is_noticed_by_nobody_but_who_looks() {
    let castle = Context::new();
    // In the one second of it nothing is written down: machines boot.
    let rule = "castle: disk fails from 0:46 for 0:02";
    let said = castle.run(&["up", "--speed", "max", "--fault", rule]).ends(0);
    assert!(said.err.contains("castle has a disk that fails: no more"), "{}", said.err);
}

#[test]
fn a_loss_of_power_takes_the_events_of_the_run_and_no_entry_of_a_journal() {
    for (rule, torn) in
        [("castle: loses power during etcd", false), ("castle: disk tears during etcd", true)]
    {
        let castle = Context::new();
        let said = castle.run(&["up", "--speed", "max", "--fault", rule]);
        assert_eq!(said.code, -1, "{rule}: {}", said.err);
        let kept = std::fs::read_dir(castle.state().join("runs")).unwrap();
        let kept: Vec<_> = kept.map(|file| file.unwrap().path()).collect();
        let [events] = kept.as_slice() else { panic!("{rule}: {kept:?}") };
        assert_eq!(std::fs::read(events).unwrap(), b"", "{rule}: what nobody synced is gone");
        // Whoever looks is told what is known, and nothing falls over.
        let status = castle.run(&["status"]).ends(0);
        let begun = "interrupted: platform/bootstrap";
        assert!(status.out.contains(begun), "{rule}: {}", status.out);
        let attach = castle.run(&["attach"]).ends(1);
        assert!(attach.err.contains("and its events are lost"), "{rule}: {}", attach.err);
        castle.run(&["report"]).ends(0);
        castle.run(&["history"]).ends(0);
        let up = castle.run(&["up"]).ends(0);
        let unfinished = "layers/platform.journal: entry 55 was never finished";
        assert_eq!(up.err.contains(unfinished), torn, "{rule}: {}", up.err);
        assert_eq!(castle.guests(), [421, 422, 423, 431, 432], "{rule}");
        assert_eq!(castle.run(&["up"]).ends(0).changes(), 0, "{rule}");
    }
}

#[test]
fn a_clock_that_jumped_does_not_tell_how_long_the_last_run_took() {
    let castle = Context::new();
    let rule = "castle: clock ahead 80000:00:00 from 0:30";
    castle.run(&["up", "--speed", "max", "--fault", rule]);
    let status = castle.run(&["status"]).ends(0);
    let last = status.out.lines().find(|line| line.starts_with("last run: ")).unwrap();
    assert!(!last.contains("in 8000"), "{last}");
}

#[test]
fn a_second_operator_is_refused_and_the_first_goes_on() {
    let castle = Context::new();
    let rule = "castle: second operator during etcd";
    let said = castle.run(&["up", "--speed", "max", "--fault", rule]).ends(0);
    let told: Vec<&str> = said.err.lines().filter(|line| line.contains("second")).collect();
    assert!(told[0].ends_with("fault: castle is started a second time over the same state"));
    let refused = "fault: the second operator is refused: the state folder ";
    assert!(told[1].starts_with(refused), "{told:#?}");
    assert!(told[1].contains(" is in use by `castle up` (process "), "{told:#?}");
    assert_eq!(castle.run(&["up"]).ends(0).changes(), 0);

    let said = Context::new().run(&["up", "--json", "--speed", "max", "--fault", rule]).ends(0);
    let notices = said.out.lines().filter(|line| line.contains("\"event\":\"notice\""));
    let told: Vec<&str> = notices.filter(|line| line.contains("operator is refused")).collect();
    assert_eq!(told.len(), 1, "programs are told once: {told:#?}");
}

/// Whoever comes next finds no state and no lock, and may act: so the first must not any more.
#[test]
fn a_castle_whose_state_was_taken_away_acts_no_more_and_the_next_one_adopts() {
    let castle = Context::new();
    let rule = "castle: state taken during machines";
    let said = castle.run(&["up", "--speed", "max", "--fault", rule]).ends(1);
    let stopped = "the run stopped before its next act: the journal could not be written";
    let why = "somebody has moved or deleted the state folder while it was in use";
    for words in ["castle has its state taken away", ".taken-1 now", stopped, why] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    let made = castle.guests().len();
    assert!((1..5).contains(&made), "it was in the middle, {made} machines stood");
    castle.run(&["up", "--yes"]).ends(0);
    assert_eq!(castle.guests(), [421, 422, 423, 431, 432]);
    assert_eq!(castle.run(&["up"]).ends(0).changes(), 0);
}

#[test]
fn lengths_are_told_by_a_clock_that_nobody_sets() {
    for jump in ["ahead 1:00:00 from 0:30", "behind 1:00:00 from 0:30 for 1:00"] {
        let castle = Context::new();
        let rule = format!("castle: clock {jump}");
        let said = castle.run(&["up", "--speed", "max", "--fault", &rule]).ends(0);
        let clock = |line: &str| {
            let (minutes, seconds) = line.strip_prefix('[')?.split_once(']')?.0.split_once(':')?;
            Some(minutes.trim().parse::<u32>().ok()? * 60 + seconds.parse::<u32>().ok()?)
        };
        // The fault's own line counts from the first look, four seconds before the first step.
        let lines = said.err.lines().filter(|line| !line.contains("fault: "));
        let times: Vec<u32> = lines.filter_map(clock).collect();
        assert!(times.len() > 40 && times.is_sorted(), "{jump}: {}", said.err);
        assert!((100..300).contains(times.last().unwrap()), "{jump}: {times:?}");
        let page = castle.run(&["report", "--out", "-"]).ends(0).out;
        let page = page.replace("1:00:00", "what the rule says");
        assert!(!page.contains("1:00:"), "{jump}: nothing on the page took an hour");
    }
}
