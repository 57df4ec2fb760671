//! What somebody changed by hand, as a person sees it: planned, mended, and quiet again.

use crate::context::Context;

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
    ~ update   vm/worker-01      VM worker-01 (431) on pve: memory 4096 → 8192, in force when it is next switched off and on
    + create   vm/worker-02      VM worker-02 (432) on pve: gone since an earlier run
      leave  ? boot/worker-01    worker-01 answers at 192.168.1.214: done before; to be seen again after platform/vm/worker-01
      leave  ? config/worker-01  Talos config of worker-01: done before; to be seen again after platform/vm/worker-01
    . prove  ? boot/worker-02    worker-02 answers at 192.168.1.215: done before, and gone with platform/vm/worker-02
    + create ? config/worker-02  Talos config of worker-02: done before, and gone with platform/vm/worker-02
      leave  ? nodes             5 nodes Ready, network rolled out: done before; to be seen again after platform/vm/worker-01
      leave    19 more steps as they should be

      leave    engine: 3 steps as they should be
      leave    networking: 2 steps as they should be

    storage
      leave  ? longhorn          Longhorn: done before; to be seen again after platform/vm/worker-01
      leave  ? volume            probe volume: done before; to be seen again after platform/vm/worker-01

    gitops
      leave  ? handover          handover of clusters/blue: done before; to be seen again after platform/vm/worker-01
      leave  ? convergence       what Flux builds: done before; to be seen again after platform/vm/worker-01
      leave    5 more steps as they should be

    2 to create, 1 to prove, 1 to update, 38 to leave alone
    ?  cannot be looked at yet: this is what is expected. It is looked at when its turn comes, and made or mended if need be; nothing is destroyed that this plan does not name

    drift: 2 things are not as castle left them; whose, what, and what `up` does
      castle  vm/worker-01  memory 4096 → 8192, in force when it is next switched off and on: mended in place
      castle  vm/worker-02  it is gone: made again
    ");
    let up = castle.run(&["up"]).ends(0).out;
    assert!(up.contains("stands: 42 steps, 3 changed, "), "as the plan says: {up}");
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
    drift: 4 things are not as castle left them; whose, what, and what `up` does
      castle  vm/cp-02          its tags do not agree with its mark, but number and UUID prove it ours: the mark is put back: mended in place
      castle  vm/worker-01      memory 4096 → 8192, in force when it is next switched off and on: mended in place
      castle  vm/worker-02      it is switched off → switched on: mended in place
      Flux    source            GitRepository flux-system/flux-system: suspended: nothing changes until it is resumed: left so

    unknown: what could not be looked at, and why; `up` looks again before it acts
      config/worker-02  configure worker-02 at 192.168.1.215: machine 192.168.1.215: cannot reach its Talos API: no answer from 192.168.1.215:50000 within 0.5 s
    ");
    let json = castle.run(&["plan", "--json"]).ends(0);
    let plan: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(plan["drift"].as_array().unwrap().len(), 4, "{}", plan["drift"]);
    assert_eq!(plan["unseen"][0]["step"], "platform/config/worker-02", "{}", plan["unseen"]);
    castle.run(&["up"]).ends(0);
    assert_eq!(castle.run(&["up"]).ends(0).changes(), 0);
    insta::assert_snapshot!(drift(&castle), @"
    drift: 1 thing is not as castle left it; whose, what, and what `up` does
      Flux  source  GitRepository flux-system/flux-system: suspended: nothing changes until it is resumed: left so
    ");
}
