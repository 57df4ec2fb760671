//! What is found, and how it is said.

use castle_config::example;
use castle_model::VmId;
use serde_json::json;

use super::super::inventory::Inventory;
use super::super::privileges::{Held, NEEDS};
use super::super::wanted::Wanted;
use super::judge::{GIB, judge, notices};
use super::{Bridge, Host, HostStatus, NodeEntry, Storage, Volume};

fn storage(name: &str, kind: &str, content: &str) -> Storage {
    serde_json::from_value(json!({
        "storage": name, "type": kind, "content": content, "enabled": 1, "active": 1, "avail": 900 * GIB,
    }))
    .unwrap()
}

fn bridge(name: &str) -> Bridge {
    Bridge { name: name.to_owned(), is_vnet: false }
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
        bridges: vec![bridge("vmbr0")],
        disks: Vec::new(),
        image: false,
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
    host.bridges = vec![bridge("vmbr1")];
    let disk = json!({"volid": "local-lvm:vm-422-disk-0", "content": "images", "vmid": 422});
    host.disks = vec![serde_json::from_value::<Volume>(disk).unwrap()];
    let mut inventory = Inventory { others_memory: 6 * GIB, ..Inventory::default() };
    inventory
        .foreign
        .insert(VmId(421), "VM `web` on pve, tagged prod: it bears no mark of a castle".into());
    insta::assert_snapshot!(found(&inventory, &host), @r"
    number 421 of cp-01: it is taken by VM `web` on pve, tagged prod: it bears no mark of a castle; choose another vmid in the castle file, or move that guest away
    number 422 of cp-02: the disk local-lvm:vm-422-disk-0 of an earlier VM lies there, and no VM has it; if nobody needs it, remove it on the host (pvesm free local-lvm:vm-422-disk-0), or choose another vmid
    storage local-lvm on pve: it cannot be reached now; look at its state in Proxmox: a disk or a server behind it is missing
    storage local on pve: it does not take `import` (it takes iso); allow it: pvesm set local --content iso,import; or name another
    bridge vmbr0 on pve: there is no such bridge (there are: vmbr1); compare `bridge` with the networks of the node; a vnet is shown to those alone who have SDN.Use in its zone (/sdn/zones/ZONE)
    memory of pve: the castle wants 40960 MiB; of 32768 MiB other guests that run may take 6144 MiB, and the host itself needs 2048 MiB; give the machines less memory, fewer machines, or switch other guests off
    processors of pve: worker-02 wants 4, the host has 2; give it fewer `cores` in the castle file
    ");
}

#[test]
fn a_node_that_is_not_there_hides_the_rest() {
    let mut missing = host();
    missing.nodes[0].node = "pve1".into();
    insta::assert_snapshot!(found(&Inventory::default(), &missing), @r"node pve: there is no such node (there are: pve1); compare `node` with the names that Proxmox shows");
    let mut down = host();
    down.nodes[0].status = "offline".into();
    insta::assert_snapshot!(found(&Inventory::default(), &down), @r"node pve: it is offline; bring it back, then try again");
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
    insta::assert_snapshot!(found(&Inventory::default(), &host), @r"
    privileges at /storage/local-lvm: the token lacks Datastore.AllocateSpace, which is needed to make disks; on the host: pveum role modify CastleDisks --append 1 --privs Datastore.AllocateSpace; pveum acl modify /storage/local-lvm --roles CastleDisks --users USER@REALM; and the same with --tokens 'USER@REALM!ID' (the token has only what its user has, too; docs/reference/proxmox-role.md)
    privileges at /sdn/zones/localnetwork/vmbr0: the token lacks SDN.Use, which is needed to use the bridge; on the host: pveum role modify CastleNetwork --append 1 --privs SDN.Use; pveum acl modify /sdn/zones/localnetwork/vmbr0 --roles CastleNetwork --users USER@REALM; and the same with --tokens 'USER@REALM!ID' (the token has only what its user has, too; docs/reference/proxmox-role.md)
    ");
}

#[test]
fn a_full_storage_is_refused_and_a_thin_one_that_is_promised_too_much_is_told() {
    let wanted = Wanted::of(&example()).unwrap();
    let mut host = host();
    host.storages[1].avail = 100 * GIB;
    assert_eq!(found(&Inventory::default(), &host), "");
    insta::assert_snapshot!(notices(&wanted, &Inventory::default(), &host).join("\n"), @r"disks of 400 GiB are promised on local-lvm, which has 100 GiB left: it must not run full");
    host.storages[1].avail = 5 * GIB;
    insta::assert_snapshot!(found(&Inventory::default(), &host), @r"storage local-lvm on pve: 6500 MiB are needed at once, 5120 MiB are left; make room there, or name another storage");
    host.storages[1] = Storage { avail: 100 * GIB, ..storage("local-lvm", "lvm", "images") };
    insta::assert_snapshot!(found(&Inventory::default(), &host), @r"storage local-lvm on pve: it sets disks aside whole: 400 GiB are needed, 100 GiB are left; make room there, give smaller disks in the castle file, or name a thin storage");
    assert_eq!(notices(&wanted, &Inventory::default(), &host), [""; 0]);
}
