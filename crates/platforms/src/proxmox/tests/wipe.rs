//! The emergency: by number and owner, wherever a guest stands, and nobody else's.

use std::collections::BTreeSet;

use castle_model::{Class, VmId};

use super::super::image_id;
use super::super::wipe::{Fate, Hit, add, list};
use super::*;

async fn listed(bench: &Bench, forced: &[u32]) -> Result<Vec<Hit>, Failure> {
    let forced: BTreeSet<VmId> = forced.iter().copied().map(VmId).collect();
    list(&bench.spec, &bench.host.world(), &bench.secrets(), &forced, |_| ()).await
}

fn part(bench: &Bench) -> Graph {
    bench.graph().part(|decl| (decl.always || decl.id == image_id()).then(|| decl.clone()))
}

/// Wipes as the program does, with nothing of ours remembered.
async fn wiped(bench: &mut Bench, forced: &[u32]) -> Run {
    bench.disk = MemoryDisk::new();
    let hits = listed(bench, forced).await.unwrap();
    let mut graph = part(bench);
    add(&mut graph, &bench.spec, &bench.host.world(), &hits, &[]);
    graph.check().unwrap();
    bench.run_graph(Direction::Down, graph).await
}

fn guests(bench: &Bench) -> Vec<u32> {
    bench.inventory().proxmox.guests.iter().map(|guest| guest.vmid).collect()
}

fn foreign(vmid: u32) -> ProxmoxTrouble {
    let (name, tags) = (format!("vm-{vmid}"), String::new());
    ProxmoxTrouble::ForeignVm { vmid, name, tags, running: true, node: None }
}

#[tokio::test(start_paused = true)]
async fn a_castle_that_nobody_remembers_is_wiped_and_others_are_not_touched() {
    let mut bench = Bench::raised(1).await;
    bench.cause(foreign(425));
    bench.cause(ProxmoxTrouble::ForeignContainer { vmid: 427, name: "dns".into(), running: true });
    let hits = listed(&bench, &[]).await.unwrap();
    let fates: Vec<(u32, bool, usize)> =
        hits.iter().map(|hit| (hit.vmid.0, hit.goes(), hit.disks.len())).collect();
    assert_eq!(fates, [(421, true, 3), (425, false, 1), (427, false, 1), (431, true, 4)]);
    let run = wiped(&mut bench, &[]).await;
    assert!(run.is_done(), "{}", run.told());
    assert_eq!(guests(&bench), [425, 427]);
    let left = bench.inventory().proxmox;
    assert_eq!(left.volumes, ["local-lvm:vm-425-disk-0", "local-lvm:vm-427-disk-0"]);
    assert_eq!((left.files, left.running_tasks), (vec![], vec![]));
    // Once more there is nothing, and nothing is done.
    let before = bench.mutations();
    assert!(!listed(&bench, &[]).await.unwrap().iter().any(Hit::goes));
    assert!(wiped(&mut bench, &[]).await.is_done());
    assert_eq!(bench.mutations(), before);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_guest_goes_only_if_it_is_named() {
    let mut bench = Bench::raised(2).await;
    bench.cause(foreign(425));
    bench.cause(ProxmoxTrouble::ForeignContainer { vmid: 427, name: "dns".into(), running: true });
    let failure = listed(&bench, &[999]).await.unwrap_err();
    assert_eq!(failure.class, Class::Invalid);
    assert!(failure.why.contains("no guest of that number"), "{failure}");
    let hits = listed(&bench, &[427]).await.unwrap();
    let forced: Vec<u32> =
        hits.iter().filter(|hit| hit.fate == Fate::Forced).map(|hit| hit.vmid.0).collect();
    assert_eq!(forced, [427]);
    let run = wiped(&mut bench, &[427]).await;
    assert!(run.is_done(), "{}", run.told());
    assert_eq!(guests(&bench), [425]);
    assert_eq!(bench.inventory().proxmox.volumes, ["local-lvm:vm-425-disk-0"]);
}

#[tokio::test(start_paused = true)]
async fn a_guest_on_another_node_of_the_cluster_is_wiped_there() {
    let mut bench = Bench::raised(3).await;
    super::machines::migrate(&bench, 431);
    let hits = listed(&bench, &[]).await.unwrap();
    assert_eq!(hits.iter().map(|hit| hit.node.as_str()).collect::<Vec<_>>(), ["pve", "pve2"]);
    let run = wiped(&mut bench, &[]).await;
    assert!(run.is_done(), "{}", run.told());
    assert_eq!(guests(&bench), [0; 0]);
    let calls: Vec<String> = bench.host.requests().iter().map(|call| format!("{call:?}")).collect();
    assert!(calls.iter().any(|call| call.contains("/nodes/pve2/qemu/431")), "asked there");
}

#[tokio::test(start_paused = true)]
async fn what_is_protected_stays_and_the_others_go() {
    let mut bench = Bench::raised(4).await;
    let (option, value) = ("protection".to_owned(), Some("1".to_owned()));
    bench.cause(ProxmoxTrouble::Edited { vmid: 431, option, value });
    let hits = listed(&bench, &[431]).await.unwrap();
    let Fate::Stays { why } = &hits[1].fate else { panic!("{:?}", hits[1].fate) };
    assert!(why.contains("qm set 431 --protection 0"), "{why}");
    assert!(hits[1].is_missed(), "so what opens it is kept");
    let run = wiped(&mut bench, &[]).await;
    assert!(run.is_done(), "{}", run.told());
    assert_eq!(guests(&bench), [431]);
    assert!(bench.inventory().proxmox.guests[0].running, "not even switched off");
}

#[tokio::test(start_paused = true)]
async fn a_volume_of_another_guest_survives_and_is_named() {
    let mut bench = Bench::raised(5).await;
    bench.cause(ProxmoxTrouble::LostDisk { vmid: 999, storage: "local-lvm".into() });
    let value = Some("local-lvm:vm-999-disk-9,size=1G".to_owned());
    bench.cause(ProxmoxTrouble::Edited { vmid: 431, option: "scsi2".to_owned(), value });
    let hits = listed(&bench, &[]).await.unwrap();
    assert_eq!(hits[1].spared, ["local-lvm:vm-999-disk-9 of guest 999"]);
    assert!(!hits[1].disks.iter().any(|(volid, _)| volid.contains("999")));
    let run = wiped(&mut bench, &[]).await;
    assert!(run.is_done(), "{}", run.told());
    assert_eq!(bench.inventory().proxmox.volumes, ["local-lvm:vm-999-disk-9"]);
}

#[tokio::test(start_paused = true)]
async fn a_wipe_that_is_killed_anywhere_is_finished_by_the_next() {
    for seconds in [1, 2, 3, 4, 6, 8] {
        let mut bench = Bench::raised(6).await;
        let span = std::time::Duration::from_secs(seconds);
        let _cut = tokio::time::timeout(span, wiped(&mut bench, &[])).await;
        let run = wiped(&mut bench, &[]).await;
        assert!(run.is_done(), "after {seconds} s: {}", run.told());
        let left = bench.inventory().proxmox;
        assert_eq!((left.guests.len(), left.volumes, left.files), (0, vec![], vec![]));
    }
}

#[tokio::test(start_paused = true)]
async fn another_guest_that_took_the_number_meanwhile_is_left_alone() {
    let mut bench = Bench::raised(7).await;
    let hits = listed(&bench, &[]).await.unwrap();
    bench.cause(ProxmoxTrouble::Destroyed { vmid: 431 });
    bench.cause(foreign(431));
    let mut graph = part(&bench);
    add(&mut graph, &bench.spec, &bench.host.world(), &hits, &[]);
    let run = bench.run_graph(Direction::Down, graph).await;
    assert!(run.told().contains("another guest has its number"), "{}", run.told());
    assert_eq!(guests(&bench), [431]);
}
