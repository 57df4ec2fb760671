//! VMs that are there already: left, mended, replaced, or refused.

use std::net::Ipv4Addr;
use std::time::Duration;

use castle_model::VmId;
use castle_model::spec::Body;

use super::super::image::volume;
use super::super::vm_id;
use super::*;

fn shrink(bench: &mut Bench, role: Role) {
    for node in bench.spec.nodes.iter_mut().filter(|node| node.role == role) {
        if let Body::Vm(vm) = &mut node.body {
            vm.disk_gib = 20;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_disk_is_too_large_is_replaced_as_the_plan_says() {
    let mut bench = Bench::raised(1).await;
    shrink(&mut bench, Role::Worker);
    let worker = bench.wanted().nodes[1].name.clone();
    let before = bench.inventory().proxmox;
    let run = bench.up().await;
    let planned = run.plan.step(&vm_id(&worker)).unwrap();
    insta::assert_snapshot!(format!("{}: {}", planned.verb, planned.reason), @r"replace: system disk 40 -> 20 GiB, and disks never shrink");
    assert!(run.plan.destructive().count() == 1 && run.is_done(), "{}", run.told());
    bench.assert_stands();
    let config = bench.client().vm_config("pve", VmId(431)).await.unwrap();
    assert_eq!(config.disk_gib("scsi0"), Some(20));
    assert_eq!(bench.inventory().proxmox.volumes.len(), before.volumes.len());
    // And then it is right.
    let before = bench.mutations();
    assert!(bench.up().await.is_done());
    assert_eq!(bench.mutations(), before);
}

#[tokio::test(start_paused = true)]
async fn a_replacement_that_is_killed_anywhere_ends_with_one_machine() {
    for seconds in (1..16).step_by(2) {
        let mut bench = Bench::raised(2).await;
        shrink(&mut bench, Role::Worker);
        let span = Duration::from_secs(seconds);
        let _cut = tokio::time::timeout(span, bench.up()).await;
        let run = bench.up().await;
        assert!(run.is_done(), "after {seconds} s: {}", run.told());
        bench.assert_stands();
    }
}

#[tokio::test(start_paused = true)]
async fn a_control_plane_with_a_config_is_not_replaced() {
    let mut bench = Bench::new(3);
    bench.whole = true;
    let run = bench.up().await;
    assert!(run.is_done(), "{}", run.told());
    shrink(&mut bench, Role::ControlPlane);
    let before = bench.mutations();
    let run = bench.up().await;
    insta::assert_snapshot!(run.told(), @r"
    platform/vm/cp-01 (conflict): change VM 421 (cp-01) on pve: system disk 40 -> 20 GiB, and disks never shrink
      hint: this cannot be changed on a machine that may hold a part of etcd: let the castle file say what is there; or `castle down`, then `castle up`
    ");
    assert_eq!(bench.mutations(), before);
}

#[tokio::test(start_paused = true)]
async fn a_worker_of_a_living_castle_is_replaced_and_joins_again() {
    let mut bench = Bench::new(4);
    bench.whole = true;
    assert!(bench.up().await.is_done());
    shrink(&mut bench, Role::Worker);
    let run = bench.up().await;
    assert!(run.is_done(), "{}", run.told());
    let ready = bench.inventory().nodes;
    assert!(ready.len() == 2 && ready.iter().all(|(_, ready)| *ready), "{ready:?}");
}

#[tokio::test(start_paused = true)]
async fn what_somebody_changed_by_hand_is_put_back() {
    let mut bench = Bench::raised(5).await;
    let edited = |option: &str, value: &str| ProxmoxTrouble::Edited {
        vmid: 431,
        option: option.to_owned(),
        value: Some(value.to_owned()),
    };
    bench.cause(edited("memory", "4096"));
    let run = bench.up().await;
    let worker = bench.wanted().nodes[1].name.clone();
    assert_eq!((run.verb(&vm_id(&worker)), run.is_done()), ("update", true), "{}", run.told());
    // Without its tags its number and UUID still prove it ours: the mark is put back.
    bench.cause(edited("tags", "mine"));
    let run = bench.up().await;
    assert_eq!((run.verb(&vm_id(&worker)), run.is_done()), ("update", true), "{}", run.told());
    // With another UUID it is a copy of ours at best, and stays untouched.
    bench.cause(edited("smbios1", "uuid=00000000-0000-4000-8000-000000000000"));
    let before = bench.mutations();
    let run = bench.up().await;
    insta::assert_snapshot!(run.told(), @r"
    platform/preflight (conflict): check the host pve and the addresses: one thing stands in the way
      finding: number 431 of worker-01: it is taken by VM `blue-worker-01` on pve, tagged castle, castle-blue, inc-41a8dc55bbba17d1, mine: its SMBIOS UUID is not the one that goes with its mark; choose another vmid in the castle file, or move that guest away
      hint: nothing was made yet: mend what is named, then run the same command again
    ");
    assert_eq!(bench.mutations(), before);
}

/// Somebody moves a VM to another node of the cluster.
pub(super) fn migrate(bench: &Bench, vmid: u32) {
    bench.cause(ProxmoxTrouble::Moved { vmid, node: "pve2".to_owned() });
}

#[tokio::test(start_paused = true)]
async fn a_vm_of_ours_that_was_moved_is_not_forgotten() {
    let mut bench = Bench::raised(6).await;
    migrate(&bench, 431);
    let up = bench.up().await;
    let down = bench.down().await;
    let told = format!("{}\n{}", up.told(), down.told());
    let told = told.replace(&bench.life.incarnation.to_string(), "…");
    insta::assert_snapshot!(told, @r"
    platform/preflight (conflict): check the host pve and the addresses: one thing stands in the way
      finding: number 431 of worker-01: it is taken by VM `blue-worker-01` on pve2, tagged castle, castle-blue, inc-…, ours, but not on pve; bring it back to pve (where it stands now: qm migrate 431 pve), then run the same command again
      hint: nothing was made yet: mend what is named, then run the same command again
    platform/strays (conflict): remove VM 431: it is VM `blue-worker-01` on pve2, tagged castle, castle-blue, inc-…, ours, but not on pve
      hint: bring it back to pve (where it stands now: qm migrate 431 pve), then run the same command again
    ");
    assert!(bench.inventory().proxmox.guests.iter().any(|guest| guest.vmid == 431));
}

#[tokio::test(start_paused = true)]
async fn whoever_answers_for_a_machine_that_is_switched_off_is_a_ghost() {
    let mut bench = Bench::raised(7).await;
    for node in bench.wanted().nodes {
        bench.client().stop("pve", node.vmid).await.unwrap();
    }
    tokio::time::advance(Duration::from_mins(1)).await;
    bench.host.cause(TalosTrouble::Foreign(bench.wanted().nodes[1].address));
    let before = bench.mutations();
    let run = bench.up().await;
    insta::assert_snapshot!(run.told(), @r"
    platform/preflight (conflict): check the host pve and the addresses: one thing stands in the way
      finding: address 192.168.1.214 of worker-01: a Talos machine answers that has a config of another cluster, where nothing of ours runs yet: a ghost of an earlier life?; switch that machine off, or choose another address in the castle file; a router may remember it for some minutes
      hint: nothing was made yet: mend what is named, then run the same command again
    ");
    assert_eq!(bench.mutations(), before);
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_the_castle_file_no_longer_names_takes_its_memory() {
    let mut bench = Bench::raised(8).await;
    // The cluster hears of a new guest with some delay.
    tokio::time::advance(Duration::from_secs(30)).await;
    let named = bench.memory_of_others().await;
    let worker = bench.spec.nodes.pop().unwrap();
    let memory = worker.vm().unwrap().memory_mib << 20;
    assert_eq!((named, bench.memory_of_others().await), (0, memory));
}

#[tokio::test(start_paused = true)]
async fn a_control_plane_without_a_config_is_replaced_unless_a_ghost_says_so() {
    for haunted in [false, true] {
        let mut bench = Bench::raised(9).await;
        tokio::time::advance(Duration::from_mins(2)).await;
        let plane = bench.wanted().nodes[0].clone();
        if haunted {
            let elsewhere = "192.168.1.77".parse().unwrap();
            bench.host.cause(TalosTrouble::WrongAddress(421, elsewhere));
            haunt(&bench, plane.address).await;
        }
        shrink(&mut bench, Role::ControlPlane);
        let run = bench.up().await;
        if haunted {
            assert!(run.told().contains("disks never shrink"), "{}", run.told());
            assert!(!run.is_done());
        } else {
            assert_eq!(run.verb(&vm_id(&plane.name)), "replace");
            assert!(run.is_done(), "{}", run.told());
        }
        let config = bench.client().vm_config("pve", VmId(421)).await.unwrap();
        assert_eq!(config.disk_gib("scsi0"), Some(if haunted { 40 } else { 20 }));
    }
}

/// Somebody's machine in maintenance mode at an address of ours.
async fn haunt(bench: &Bench, address: Ipv4Addr) {
    let image = volume(&bench.wanted()).unwrap();
    let theirs = [
        ("vmid", "150".to_owned()),
        ("memory", "2048".to_owned()),
        ("scsi0", format!("local-lvm:0,import-from={image}")),
        ("ide2", "local-lvm:cloudinit".to_owned()),
        ("net0", "virtio,bridge=vmbr0".to_owned()),
        ("ipconfig0", format!("ip={address}/24,gw=192.168.1.1")),
        ("boot", "order=scsi0".to_owned()),
    ];
    let proxmox = bench.client();
    proxmox.create_vm("pve", &theirs).await.unwrap();
    tokio::time::advance(Duration::from_secs(30)).await;
    proxmox.start("pve", VmId(150)).await.unwrap();
    tokio::time::advance(Duration::from_mins(1)).await;
}
