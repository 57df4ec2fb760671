//! What is there of a castle, whatever our records say.

use crate::context::Context;

#[test]
fn what_stands_is_expected_what_strays_is_told_and_what_is_gone_is_gone() {
    let castle = Context::new();
    let none = castle.run(&["audit"]).ends(0);
    assert!(none.out.contains("nothing is left of it"), "{}", none.out);
    castle.run(&["up"]).ends(0);
    let standing = castle.run(&["audit"]).ends(0);
    assert!(standing.out.contains("all that is there is expected"), "{}", standing.out);
    castle.run(&["audit", "--gone"]).ends(4);
    // Without our records the world itself tells.
    std::fs::remove_dir_all(castle.state()).unwrap();
    castle.run(&["audit"]).ends(0);
    castle.run(&["rehearse", "poke", "proxmox 425: foreign vm"]).ends(0);
    castle.run(&["audit"]).ends(0);
    castle.run(&["rehearse", "poke", "proxmox 424: lost disk local-lvm"]).ends(0);
    let stray = castle.run(&["audit"]).ends(4);
    assert!(stray.out.contains("pvesm free local-lvm:vm-424-disk-9"), "{}", stray.out);
    let json = castle.run(&["audit", "--json"]).ends(4);
    let found: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let amiss: Vec<_> = found["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["standing"] == "left")
        .collect();
    assert_eq!(amiss.len(), 1, "{found}");
    // `down` ends with the same look, and with its exit code.
    let down = castle.run(&["down", "--yes"]).ends(4);
    assert!(down.out.contains("which should be gone: 1 thing is left"), "{}", down.out);
    castle.run(&["audit"]).ends(4);
}

#[test]
fn an_audit_changes_nothing() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let before = castle.inventory();
    castle.run(&["audit", "--gone"]).ends(4);
    let after = castle.inventory();
    assert_eq!(before["proxmox"], after["proxmox"]);
    assert_eq!(before["at"], after["at"], "not even its time went on");
}
