//! What somebody changed by hand, as a person sees it: planned, mended, and quiet again.

use crate::context::Context;

/// The lines of a plan from the word `drift` on.
fn drift(castle: &Context) -> String {
    let out = castle.run(&["plan"]).ends(0).out;
    out.find("drift: ").map_or_else(String::new, |at| out[at..].trim_end().to_owned())
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
      config/worker-02  configure worker-02 at 192.168.1.215: cannot reach the Talos API of machine 192.168.1.215: no answer from 192.168.1.215:50000 within 0.5 s
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
