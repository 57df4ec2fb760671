//! The way down: by layer, with something already gone, with something that nobody may remove.

use crate::context::{Context, example};

#[test]
fn one_layer_goes_alone_and_comes_back() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let asked = castle.run(&["down", "--layer", "storage"]).ends(3);
    assert!(asked.err.contains("the layer storage goes alone"), "{}", asked.err);
    let workloads = |castle: &Context| castle.inventory()["workloads"].to_string();
    assert!(workloads(&castle).contains("longhorn-manager"));
    castle.run(&["down", "--layer", "storage", "--yes"]).ends(0);
    let left = workloads(&castle);
    assert!(!left.contains("longhorn-manager") && left.contains("metallb"), "{left}");
    assert_eq!(castle.guests().len(), 5, "the machines stand");
    castle.run(&["audit"]).ends(0);
    let again = castle.run(&["down", "--layer", "storage", "--yes"]).ends(0);
    assert!(again.err.contains("nothing of it is there"), "{}", again.err);
    castle.run(&["up"]).ends(0);
    assert!(workloads(&castle).contains("longhorn-manager"));
}

#[test]
fn what_stands_on_a_layer_is_named_and_what_can_not_go_alone_says_so() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let asked = castle.run(&["down", "--layer", "engine"]).ends(3);
    assert!(asked.err.contains("(gitops/source) stands on it"), "{}", asked.err);
    let refused = castle.run(&["down", "--layer", "gitops", "--yes"]).ends(3);
    assert!(refused.err.contains("flux uninstall"), "{}", refused.err);
    castle.run(&["down", "--layer", "secrets", "--yes"]).ends(3);
    castle.run(&["down", "--layer", "storge", "--yes"]).ends(2);
    castle.run(&["rehearse", "poke", "talos cp-01: dead"]).ends(0);
    castle.run(&["rehearse", "poke", "talos cp-02: dead"]).ends(0);
    castle.run(&["rehearse", "poke", "talos cp-03: dead"]).ends(0);
    let dead = castle.run(&["down", "--layer", "networking", "--yes"]).ends(3);
    assert!(dead.err.contains("the cluster can not be reached"), "{}", dead.err);
    castle.run(&["down", "--layer", "platform", "--yes"]).ends(0);
    assert_eq!(castle.guests(), Vec::<u64>::new());
}

#[test]
fn what_is_gone_already_stops_nobody_and_the_castle_may_rise_again_at_once() {
    let castle = Context::new();
    castle.write("castle.hcl", &kept());
    castle.run(&["rehearse", "up"]).ends(0);
    castle.run(&["rehearse", "poke", "proxmox worker-02: destroyed"]).ends(0);
    let down = castle.run(&["rehearse", "down", "--yes"]).ends(0);
    assert!(down.out.contains("the castle file keeps it"), "{}", down.out);
    // Its escrow is kept, so nothing but the end of the run tells that the life is over.
    castle.run(&["rehearse", "up"]).ends(0);
}

/// The example, with an escrow that outlives the castle.
fn kept() -> String {
    let whole = crate::context::example("blue");
    let at = whole.find("  secrets \"infisical\" {").unwrap();
    let escrow = "  escrow {\n    after_down = \"keep\"\n  }\n";
    format!("{}{escrow}{}", &whole[..at], &whole[at..])
}

/// `castle down` alone would be the real castle's.
#[test]
fn advice_in_a_rehearsal_of_ones_own_castle_leads_back_to_it() {
    let castle = Context::new();
    castle.write("castle.hcl", &example("one-and-one"));
    castle.run(&["rehearse", "up"]).ends(0);
    let told = castle.run(&["rehearse", "audit", "--gone"]).ends(4).out;
    assert!(told.contains("hint: `castle rehearse -f castle.hcl down` removes it"), "{told}");
    assert!(!told.contains("`castle down`"), "{told}");
    let told = castle.run(&["rehearse", "audit", "--gone", "--json"]).ends(4).out;
    assert!(!told.contains("`castle down`") && told.contains("castle.hcl down`"), "{told}");
    castle.run(&["rehearse", "poke", "proxmox cp-01: edited protection 1"]).ends(0);
    let down = castle.run(&["rehearse", "down", "--yes"]).ends(4);
    let told = format!("{}{}", down.out, down.err);
    assert!(!told.contains("`castle down`"), "{told}");
    let status = castle.run(&["rehearse", "status"]).ends(0).out;
    assert!(!status.contains("`castle down`"), "{status}");
}
