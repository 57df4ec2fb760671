//! What somebody changed by hand, as a person sees it: planned, mended, and quiet again.

use crate::context::{Context, example};

/// The lines of a plan from the word `drift` on.
fn drift(castle: &Context) -> String {
    let out = castle.run(&["plan"]).ends(0).out;
    out.find("drift: ").map_or_else(String::new, |at| out[at..].trim_end().to_owned())
}

#[test]
fn a_plan_counts_what_lived_on_a_machine_that_is_gone() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    castle.run(&["rehearse", "poke", "proxmox worker-01: edited memory 4096"]).ends(0);
    castle.run(&["rehearse", "poke", "proxmox worker-02: destroyed"]).ends(0);
    let out = castle.run(&["plan"]).ends(0).out;
    let plan = out.split_once('\n').unwrap().1;
    insta::assert_snapshot!(plan, @"

      leave    secrets: 2 steps as they should be

    platform
    ~ update   vm/worker-01      VM worker-01 (431) on pve: memory 4096 → 8192 MiB, in force when it is next switched off and on
    + create   vm/worker-02      VM worker-02 (432) on pve: gone since an earlier run
    . prove  ? boot/worker-02    worker-02 answers at 192.168.1.215: done before, and gone with platform/vm/worker-02
    + create ? config/worker-02  Talos config of worker-02: done before, and gone with platform/vm/worker-02
      leave  ? 3 steps, looked at after platform/vm/worker-01
      leave    19 more steps as they should be

      leave  ? engine: 3 steps, looked at after platform/nodes
      leave  ? networking: 2 steps, looked at after platform/nodes
      leave  ? storage: 2 steps, looked at after platform/vm/worker-01

    gitops
      leave  ? 4 steps, looked at after platform/nodes
      leave  ? 2 steps, looked at after platform/vm/worker-01
      leave    1 more step as it should be

    2 to create, 1 to prove, 1 to update, 38 to leave alone
    ?  cannot be looked at yet: this is what is expected. It is looked at when its turn comes, and made or mended if need be; nothing is destroyed that this plan does not name

    drift: 3 things are not as castle left them; whose, what, and what `up` does
      castle  vm/worker-01  memory 4096 → 8192 MiB, in force when it is next switched off and on: mended in place
      castle  vm/worker-02  it is gone: made again
      castle  nodes         worker-02 does not tell which boot it is in: it does not answer as a machine of this castle: waited for, and proven again, after platform/vm/worker-01
    ");
    let up = castle.run(&["up"]).ends(0).out;
    assert!(up.contains("stands: 42 steps, 3 changed, "), "as the plan says: {up}");
    // Pods of a machine that was made anew come after it, when their layers have been looked at.
    castle.run(&["up"]).ends(0);
    let calm = castle.run(&["plan"]).ends(0).out;
    insta::assert_snapshot!(calm.split_once('\n').unwrap().1, @"
      leave    secrets: 2 steps as they should be
      leave    platform: 26 steps as they should be
      leave    engine: 3 steps as they should be
      leave    networking: 2 steps as they should be
      leave    storage: 2 steps as they should be
      leave    gitops: 7 steps as they should be

    42 to leave alone: the world will not be touched
    ");
}

#[test]
fn an_up_that_was_ended_before_any_machine_was_made_has_not_drifted() {
    let castle = Context::new();
    castle.run(&["up", "--speed", "max", "--fault", "castle: killed before on POST /qemu"]);
    assert_eq!(castle.guests(), Vec::<u64>::new());
    let plan = castle.run(&["plan", "--json"]).ends(0);
    let plan: serde_json::Value = serde_json::from_str(plan.out.lines().last().unwrap()).unwrap();
    assert_eq!(plan["drift"], serde_json::json!([]));
    let kept = plan["steps"].as_array().unwrap().iter().find(|step| step["id"] == "secrets/escrow");
    let reason = kept.unwrap()["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("so another one begins"), "{reason}");
    castle.run(&["up"]).ends(0);
    assert_eq!(castle.guests().len(), 5);
}

#[test]
fn a_plan_names_what_differs_whose_it_is_and_what_becomes_of_it() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    assert_eq!(drift(&castle), "", "nothing has changed since");
    for rule in [
        "proxmox worker-01: edited memory 4096",
        "proxmox worker-02: stopped",
        "proxmox cp-02: edited tags mine",
        "kubernetes: patched gitrepositories/flux-system/flux-system {\"spec\":{\"suspend\":true}}",
    ] {
        castle.run(&["rehearse", "poke", rule]).ends(0);
    }
    // What stands on machines that are to be mended is looked at too; of one that is off nobody knows.
    insta::assert_snapshot!(drift(&castle), @"
    drift: 5 things are not as castle left them; whose, what, and what `up` does
      castle  vm/cp-02          its tags do not agree with its mark, but number and UUID prove it ours: the mark is put back: mended in place
      castle  vm/worker-01      memory 4096 → 8192 MiB, in force when it is next switched off and on: mended in place
      castle  vm/worker-02      it is switched off → switched on: mended in place
      castle  nodes             worker-02 does not tell which boot it is in: it does not answer as a machine of this castle: waited for, and proven again, after platform/vm/cp-02
      Flux    source            GitRepository flux-system/flux-system: suspended: nothing changes until it is resumed: left so

    unknown: what could not be looked at, and why; `up` looks again before it acts
      config/worker-02  configure worker-02 at 192.168.1.215: machine 192.168.1.215: cannot reach its Talos API: no answer from 192.168.1.215:50000 within 0.5 s
    ");
    let json = castle.run(&["plan", "--json"]).ends(0);
    let plan: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(plan["drift"].as_array().unwrap().len(), 5, "{}", plan["drift"]);
    assert_eq!(plan["unseen"][0]["step"], "platform/config/worker-02", "{}", plan["unseen"]);
    castle.run(&["up"]).ends(0);
    assert_eq!(castle.run(&["up"]).ends(0).changes(), 0);
    insta::assert_snapshot!(drift(&castle), @"
    drift: 1 thing is not as castle left it; whose, what, and what `up` does
      Flux  source  GitRepository flux-system/flux-system: suspended: nothing changes until it is resumed: left so
    ");
}

/// A castle of one's own that stands, and then has another castle file.
fn changed(edit: impl Fn(&str) -> String) -> Context {
    let castle = Context::new();
    castle.write("castle.hcl", &example("blue"));
    castle.run(&["rehearse", "up"]).ends(0);
    castle.write("castle.hcl", &edit(&example("blue")));
    castle
}

#[test]
fn nothing_is_destroyed_where_the_plan_shows_that_it_is_in_vain() {
    // Smaller disks: a worker can be made anew, a control plane can not.
    let castle = changed(|text| text.replace("= \"40GiB\"", "= \"30GiB\""));
    // All but the time, which goes on while somebody looks.
    let inventory = || {
        let all = castle.inventory();
        [all["proxmox"].clone(), all["nodes"].clone(), all["workloads"].clone()]
    };
    let before = inventory();
    let plan = castle.run(&["rehearse", "plan"]).ends(1);
    assert!(!plan.err.contains("shrink"), "what is refused is told once: {}", plan.err);
    insta::assert_snapshot!(plan.out, @"
    plan 28712aff for castle blue: up, 42 steps

      leave    secrets: 2 steps as they should be

    platform
    ✕ refused  vm/cp-01          VM cp-01 (421) on pve: system disk 40 → 30 GiB, and disks never shrink
    ✕ refused  vm/cp-02          VM cp-02 (422) on pve: system disk 40 → 30 GiB, and disks never shrink
    ✕ refused  vm/cp-03          VM cp-03 (423) on pve: system disk 40 → 30 GiB, and disks never shrink
    ± replace  vm/worker-01      VM worker-01 (431) on pve: system disk 40 → 30 GiB, and disks never shrink [destroys what is on it]
    ± replace  vm/worker-02      VM worker-02 (432) on pve: system disk 40 → 30 GiB, and disks never shrink [destroys what is on it]
    . prove  ? boot/worker-01    worker-01 answers at 192.168.1.214: done before, and gone with platform/vm/worker-01
    + create ? config/worker-01  Talos config of worker-01: done before, and gone with platform/vm/worker-01
    . prove  ? boot/worker-02    worker-02 answers at 192.168.1.215: done before, and gone with platform/vm/worker-02
    + create ? config/worker-02  Talos config of worker-02: done before, and gone with platform/vm/worker-02
      leave  ? 2 steps, looked at after platform/vm/cp-01
      leave  ? 8 steps, looked at after platform/vm/cp-02
      leave  ? 2 steps, looked at after platform/vm/cp-03
      leave    5 more steps as they should be

      leave  ? engine: 3 steps, looked at after platform/vm/cp-02
      leave  ? networking: 2 steps, looked at after platform/vm/cp-02
      leave  ? storage: 2 steps, looked at after platform/vm/cp-02

    gitops
      leave  ? 6 steps, looked at after platform/vm/cp-02
      leave    1 more step as it should be

    3 refused, 2 to create, 2 to prove, 2 to replace, 33 to leave alone
    ?  cannot be looked at yet: this is what is expected. It is looked at when its turn comes, and made or mended if need be; nothing is destroyed that this plan does not name

    2 steps would destroy something for good:
      VM worker-01 (431) on pve would be destroyed and made anew: what is on it is lost
      VM worker-02 (432) on pve would be destroyed and made anew: what is on it is lost

    `up` refuses this plan: 3 steps are refused, and 25 steps stand behind them, so 2 things would be destroyed in vain; nothing is touched before that is mended
      vm/cp-01, vm/cp-02, vm/cp-03
        hint      this cannot be changed on a machine that may hold a part of etcd: let the castle file say what is there; or `castle rehearse -f castle.hcl down`, then `castle rehearse -f castle.hcl up`

    drift: 2 things are not as castle left them; whose, what, and what `up` does
      castle  vm/worker-01  system disk 40 → 30 GiB, and disks never shrink: destroyed and made anew, if you agree
      castle  vm/worker-02  system disk 40 → 30 GiB, and disks never shrink: destroyed and made anew, if you agree
    ");
    let up = castle.run(&["rehearse", "up", "--yes"]).ends(3);
    insta::assert_snapshot!(up.err.split_once("error: ").unwrap().1, @"
    nothing was done: this would replace VM worker-01 (431) on pve, replace VM worker-02 (432) on pve, in vain: it can not come to its end
      why: VM cp-01 (421) on pve is refused: system disk 40 -> 30 GiB, and disks never shrink
      why: VM cp-02 (422) on pve is refused: system disk 40 -> 30 GiB, and disks never shrink
      why: VM cp-03 (423) on pve is refused: system disk 40 -> 30 GiB, and disks never shrink
      hint: this cannot be changed on a machine that may hold a part of etcd: let the castle file say what is there; or `castle rehearse -f castle.hcl down`, then `castle rehearse -f castle.hcl up`
    ");
    castle.run(&["rehearse", "up", "--yes", "--detach"]).ends(3);
    assert_eq!(inventory(), before, "nothing was touched");
    // With the disks of the control planes as they are, the workers alone are made anew.
    let whole = example("blue");
    let (planes, workers) = whole.split_at(whole.find("nodes \"worker\"").unwrap());
    let mended = planes.to_owned() + &workers.replace("= \"40GiB\"", "= \"30GiB\"");
    castle.write("castle.hcl", &mended);
    let plan = castle.run(&["rehearse", "plan"]).ends(0).out;
    assert!(plan.contains("these 2 steps destroy something for good:"), "{plan}");
    castle.run(&["rehearse", "up", "--yes"]).ends(0);
}

#[test]
fn what_is_refused_is_a_word_of_its_own_and_stops_the_rest_of_nothing() {
    let castle = changed(|text| {
        text.replacen("= \"40GiB\"", "= \"30GiB\"", 1).replace("\"8GiB\"", "\"9GiB\"")
    });
    let json = castle.run(&["rehearse", "plan", "--json"]).ends(1);
    let plan: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(plan["counts"]["refused"], 3, "{}", plan["counts"]);
    assert_eq!(plan["stops"]["held"], false, "{}", plan["stops"]);
    let of = |name: &str| {
        let steps = plan["steps"].as_array().unwrap();
        steps.iter().find(|step| step["id"] == name).unwrap().clone()
    };
    assert_eq!(of("platform/vm/cp-01")["word"], "refused");
    assert_eq!(of("platform/vm/cp-01")["refused"]["class"], "conflict");
    let after = of("platform/etcd")["after"].as_str().unwrap().to_owned();
    assert!(after.starts_with("platform/vm/cp-0"), "{after}");
    castle.run(&["rehearse", "up"]).ends(1);
}
