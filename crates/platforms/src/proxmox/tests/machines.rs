//! VMs that are there already: left, mended, replaced, or refused.

use castle_model::VmId;
use castle_model::spec::Body;

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
    insta::assert_snapshot!(format!("{}: {}", planned.verb, planned.reason), @r"replace: its system disk has 40 GiB, and disks never shrink");
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
        let span = std::time::Duration::from_secs(seconds);
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
    platform/vm/cp-01 (conflict): change VM 421 (cp-01) on pve: its system disk has 40 GiB, and disks never shrink
      hint: this cannot be changed on a machine that may hold a part of etcd: put the castle file back; or `castle down`, then `castle up`
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
    // Without its tags it is no longer proven ours, and stays untouched.
    bench.cause(edited("tags", "mine"));
    let before = bench.mutations();
    let run = bench.up().await;
    insta::assert_snapshot!(run.told(), @r"
    platform/preflight (conflict): check the host pve and the addresses: one thing stands in the way
      finding: number 431 of worker-01: it is taken by VM `blue-worker-01` on pve, tagged mine: its tags do not agree with its mark; choose another vmid in the castle file, or move that guest away
      hint: nothing was made yet: mend what is named, then run the same command again
    ");
    assert_eq!(bench.mutations(), before);
}
