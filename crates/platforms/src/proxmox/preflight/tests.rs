//! What is found, and how it is said.

use castle_config::example;
use castle_model::VmId;
use serde_json::json;

use super::super::inventory::Inventory;
use super::super::privileges::{Held, NEEDS};
use super::super::wanted::Wanted;
use super::judge::{GIB, judge, notices};
use super::{Host, HostStatus, NodeEntry, Storage, Volume};

fn storage(name: &str, kind: &str, content: &str) -> Storage {
    serde_json::from_value(json!({
        "storage": name, "type": kind, "content": content, "enabled": 1, "active": 1, "avail": 900 * GIB,
    }))
    .unwrap()
}

/// A host on which the example castle can be raised.
fn host() -> Host {
    Host {
        held: Held::of(NEEDS),
        nodes: vec![NodeEntry { node: "pve".into(), status: "online".into() }],
        status: Some(HostStatus { memory_total: 64 * GIB, memory_free: 60 * GIB, processors: 16 }),
        storages: vec![
            storage("local", "dir", "iso,import"),
            storage("local-lvm", "lvmthin", "images,rootdir"),
        ],
        bridges: vec!["vmbr0".into()],
        disks: Vec::new(),
    }
}

fn found(inventory: &Inventory, host: &Host) -> String {
    let wanted = Wanted::of(&example()).unwrap();
    let findings = judge(&wanted, inventory, host);
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_good_host_has_no_findings() {
    assert_eq!(found(&Inventory::default(), &host()), "");
    assert_eq!(notices(&Wanted::of(&example()).unwrap(), &Inventory::default(), &host()), [""; 0]);
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let mut host = host();
    host.status = Some(HostStatus { memory_total: 32 * GIB, memory_free: 20 * GIB, processors: 2 });
    host.storages[0].content = "iso".into();
    host.storages[1].active = false;
    host.bridges = vec!["vmbr1".into()];
    let disk = json!({"volid": "local-lvm:vm-422-disk-0", "content": "images", "vmid": 422});
    host.disks = vec![serde_json::from_value::<Volume>(disk).unwrap()];
    let mut inventory = Inventory { others_memory: 6 * GIB, ..Inventory::default() };
    inventory
        .foreign
        .insert(VmId(421), "VM `web` on pve, tagged prod: it bears no mark of a castle".into());
    insta::assert_snapshot!(found(&inventory, &host), @"");
}

#[test]
fn a_node_that_is_not_there_hides_the_rest() {
    let mut missing = host();
    missing.nodes[0].node = "pve1".into();
    insta::assert_snapshot!(found(&Inventory::default(), &missing), @"");
    let mut down = host();
    down.nodes[0].status = "offline".into();
    insta::assert_snapshot!(found(&Inventory::default(), &down), @"");
}

#[test]
fn what_the_token_may_not_see_is_told_as_a_privilege_only() {
    let mut host = host();
    let kept: Vec<_> = NEEDS
        .iter()
        .filter(|need| !matches!(need.privilege, "SDN.Use" | "Datastore.AllocateSpace"))
        .copied()
        .collect();
    host.held = Held::of(&kept);
    host.bridges = Vec::new();
    host.storages.remove(1);
    insta::assert_snapshot!(found(&Inventory::default(), &host), @"");
}

#[test]
fn a_full_storage_is_refused_and_a_thin_one_that_is_promised_too_much_is_told() {
    let wanted = Wanted::of(&example()).unwrap();
    let mut host = host();
    host.storages[1].avail = 100 * GIB;
    assert_eq!(found(&Inventory::default(), &host), "");
    insta::assert_snapshot!(notices(&wanted, &Inventory::default(), &host).join("\n"), @"");
    host.storages[1].avail = 5 * GIB;
    insta::assert_snapshot!(found(&Inventory::default(), &host), @"");
    host.storages[1] = Storage { avail: 100 * GIB, ..storage("local-lvm", "lvm", "images") };
    insta::assert_snapshot!(found(&Inventory::default(), &host), @"");
    assert_eq!(notices(&wanted, &Inventory::default(), &host), [""; 0]);
}
