//! The emergency: by number and owner, wherever a guest stands, and nobody else's.

use std::collections::BTreeSet;
use std::time::Duration;

use castle_model::VmId;
use castle_rehearsal::fault::{Names, Rule};
use tokio::time::timeout;

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
async fn a_connection_that_breaks_ends_no_list() {
    let bench = Bench::raised(2).await;
    let wanted = listed(&bench, &[]).await.unwrap();
    let names = Names::of(&bench.spec);
    for nth in 1..=12 {
        let rule = format!("proxmox: drops before the {nth}th");
        bench.host.arm(vec![Rule::parse(&rule, &names).unwrap()]);
        assert_eq!(listed(&bench, &[]).await.unwrap().len(), wanted.len(), "{rule}");
    }
    // What does not pass is told with what to do next.
    bench.host.arm(vec![Rule::parse("proxmox: answers 503", &names).unwrap()]);
    let failure = listed(&bench, &[]).await.unwrap_err();
    assert!(failure.hint.is_some(), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_foreign_guest_goes_only_if_it_is_named() {
    let mut bench = Bench::raised(2).await;
    bench.cause(foreign(425));
    bench.cause(ProxmoxTrouble::ForeignContainer { vmid: 427, name: "dns".into(), running: true });
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

/// Has a guest attach the data disk of the worker, which keeps it.
fn rescue(bench: &Bench) {
    bench.cause(foreign(425));
    let value = Some("local-lvm:vm-431-disk-2,size=100G".to_owned());
    bench.cause(ProxmoxTrouble::Edited { vmid: 425, option: "scsi5".to_owned(), value });
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_another_guest_has_attached_keeps_its_guest_from_a_wipe() {
    let mut bench = Bench::raised(12).await;
    rescue(&bench);
    // Nor does it help to force it.
    let hits = listed(&bench, &[431]).await.unwrap();
    assert_eq!(hits[2].spared, ["local-lvm:vm-431-disk-2, which guest 425 has, too"]);
    assert!(hits[2].is_missed() && hits[2].data.is_empty(), "{:#?}", hits[2]);
    insta::assert_snapshot!(format!("{:?}", hits[2].fate), @r#"Stays { why: "guest 425 has its local-lvm:vm-431-disk-2, and Proxmox would destroy that with it; detach it there (qm set 425 --delete scsi5): it goes with its own guest then, unless you give it away first (qm disk move … --target-vmid …)" }"#);
    let run = wiped(&mut bench, &[]).await;
    assert!(run.is_done(), "{}", run.told());
    assert_eq!(guests(&bench), [425, 431]);
    let left = bench.inventory().proxmox;
    assert!(left.volumes.contains(&"local-lvm:vm-431-disk-2".to_owned()), "{:?}", left.volumes);
    assert!(left.guests.iter().all(|guest| guest.running), "not even switched off");
    // Whoever attaches it after the list has been shown, is heard as well.
    bench.cause(ProxmoxTrouble::Edited { vmid: 425, option: "scsi5".to_owned(), value: None });
    let hits = listed(&bench, &[]).await.unwrap();
    assert!(hits[1].goes(), "{hits:#?}");
    let value = Some("local-lvm:vm-431-disk-2,size=100G".to_owned());
    bench.cause(ProxmoxTrouble::Edited { vmid: 425, option: "scsi5".to_owned(), value });
    let mut graph = part(&bench);
    add(&mut graph, &bench.spec, &bench.host.world(), &hits, &[]);
    let run = bench.run_graph(Direction::Down, graph).await;
    assert!(run.told().contains("guest 425 has its local-lvm:vm-431-disk-2"), "{}", run.told());
    assert_eq!(guests(&bench), [425, 431]);
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_another_guest_has_attached_keeps_its_guest_from_a_way_down() {
    let mut bench = Bench::raised(13).await;
    rescue(&bench);
    let run = bench.down().await;
    insta::assert_snapshot!(run.told(), @r"
    platform/vm/worker-01 (conflict): remove VM 431 (worker-01) on pve: guest 425 has its local-lvm:vm-431-disk-2, and Proxmox would destroy that with it, so it was not even switched off
      hint: detach it there (qm set 425 --delete scsi5): it goes with its own guest then, unless you give it away first (qm disk move … --target-vmid …); then run the same command again
    ");
    assert_eq!(guests(&bench), [425, 431]);
    bench.cause(ProxmoxTrouble::Edited { vmid: 425, option: "scsi5".to_owned(), value: None });
    let run = bench.down().await;
    assert!(run.is_done(), "{}", run.told());
    assert_eq!(bench.inventory().proxmox.volumes, ["local-lvm:vm-425-disk-0"]);
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_may_be_ours_is_missed_wherever_in_the_range_it_stands() {
    let bench = Bench::raised(14).await;
    let tags = || Some("castle;castle-blue;inc-0123456789abcdef".to_owned());
    for vmid in [425, 900] {
        bench.cause(foreign(vmid));
        bench.cause(ProxmoxTrouble::Edited { vmid, option: "tags".to_owned(), value: tags() });
    }
    let hits = listed(&bench, &[]).await.unwrap();
    let told: Vec<(u32, bool, &str)> = hits
        .iter()
        .filter(|hit| !hit.goes())
        .map(|hit| (hit.vmid.0, hit.is_missed(), hit.owner.split(':').next().unwrap_or_default()))
        .collect();
    assert_eq!(
        told,
        [
            (425, true, "perhaps this castle's"),
            (900, false, "somebody else's, by its number, with this castle's tag"),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_removal_whose_task_lies_is_tried_again_and_never_said_to_be_done() {
    let mut bench = Bench::raised(15).await;
    let names = Names::of(&bench.spec);
    bench.host.arm(vec![Rule::parse("proxmox: task lies qmdestroy", &names).unwrap()]);
    let run = wiped(&mut bench, &[]).await;
    assert!(run.is_done(), "{}", run.told());
    assert_eq!(guests(&bench), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_another_guest_has_is_not_called_dying() {
    let mut bench = Bench::raised(9).await;
    bench.cause(ProxmoxTrouble::LostDisk { vmid: 431, storage: "local-lvm".into() });
    bench.cause(foreign(425));
    let hits = listed(&bench, &[]).await.unwrap();
    let dies = |hit: &Hit| hit.disks.iter().any(|(volid, _)| volid == "local-lvm:vm-431-disk-9");
    assert!(dies(&hits[2]), "nobody has it: {hits:#?}");
    assert_eq!(hits[2].data, ["local-lvm:vm-431-disk-2"]);
    let value = Some("local-lvm:vm-431-disk-9,size=1G".to_owned());
    bench.cause(ProxmoxTrouble::Edited { vmid: 425, option: "scsi2".to_owned(), value });
    let hits = listed(&bench, &[]).await.unwrap();
    assert_eq!(hits[2].spared, ["local-lvm:vm-431-disk-9, which guest 425 has"]);
    assert!(!dies(&hits[2]), "{hits:#?}");
    let run = wiped(&mut bench, &[]).await;
    assert!(run.is_done(), "{}", run.told());
    let left = bench.inventory().proxmox.volumes;
    assert_eq!(left, ["local-lvm:vm-425-disk-0", "local-lvm:vm-431-disk-9"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_off_stops_no_wipe_of_the_others() {
    let mut bench = Bench::raised(10).await;
    super::machines::migrate(&bench, 431);
    bench.cause(foreign(425));
    bench.cause(ProxmoxTrouble::NodeDown);
    let hits = listed(&bench, &[421, 425]).await.unwrap();
    let told = |hit: &Hit| {
        let stays = if hit.goes() { "goes" } else { "stays" };
        let missed = if hit.is_missed() { ", missed" } else { "" };
        let owner = hit.owner.split(", life").next().unwrap_or_default().to_owned();
        format!("{} on {} {stays}{missed}: {owner}", hit.what, hit.node)
    };
    let all: Vec<String> = hits.iter().map(told).collect();
    insta::assert_snapshot!(all.join("\n"), @r"
    VM 421 `blue-cp-01` on pve stays, missed: perhaps this castle's: its node is offline, so that nobody can look at it
    VM 425 `vm-425` on pve stays: somebody else's, by its number and its tags: its node is offline, so that nobody can look at it
    VM 431 `blue-worker-01` on pve2 goes: worker-01 of this castle
    ");
    bench.disk = MemoryDisk::new();
    let mut graph = bench.graph().part(|decl| decl.always.then(|| decl.clone()));
    add(&mut graph, &bench.spec, &bench.host.world(), &hits, &[]);
    let run = bench.run_graph(Direction::Down, graph).await;
    assert!(run.is_done(), "{}", run.told());
    assert_eq!(guests(&bench), [421, 425], "what can not be seen is never deleted");
    // With the node back there is nothing that hinders the rest.
    bench.cause(ProxmoxTrouble::NodeBack);
    assert!(wiped(&mut bench, &[]).await.is_done());
    assert_eq!(guests(&bench), [425]);
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_can_not_be_asked_for_stops_no_wipe_of_the_others() {
    let bench = Bench::raised(11).await;
    let names = Names::of(&bench.spec);
    let rule = "proxmox: answers 595 on GET /nodes/pve/qemu/431/config";
    bench.host.arm(vec![Rule::parse(rule, &names).unwrap()]);
    let hits = listed(&bench, &[]).await.unwrap();
    let stays: Vec<(u32, bool, bool)> =
        hits.iter().map(|hit| (hit.vmid.0, hit.goes(), hit.is_missed())).collect();
    assert_eq!(stays, [(421, true, false), (431, false, true)]);
    assert!(hits[1].owner.contains("it can not be looked at"), "{}", hits[1].owner);
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

#[tokio::test(start_paused = true)]
async fn what_died_half_made_is_ours_and_named_with_its_cure() {
    let locked = |bench: &Bench| {
        bench.inventory().proxmox.guests.iter().any(|g| g.lock.as_deref() == Some("create"))
    };
    let mut bench = Bench::new(16);
    for seconds in 5..30 {
        bench = Bench::new(16);
        let _cut = timeout(Duration::from_secs(seconds), bench.up()).await;
        if locked(&bench) {
            break;
        }
    }
    bench.cause(ProxmoxTrouble::NodeDown);
    bench.cause(ProxmoxTrouble::NodeBack);
    let hits = listed(&bench, &[]).await.unwrap();
    assert!(!hits.is_empty() && hits.iter().all(|hit| hit.is_missed() && !hit.goes()), "{hits:#?}");
    insta::assert_snapshot!(format!("{}; {:?}", hits[0].owner, hits[0].fate), @r#"half made by this castle: its task died on the way and left it locked (create); Stays { why: "Proxmox lets root alone pass over that lock; on the host, as root: qm unlock 421, then qm destroy 421 --purge; then run the same command again" }"#);
    // Whoever forces it is told that Proxmox refuses, and not to wait.
    let run = wiped(&mut bench, &[421]).await;
    let told = run.told();
    let told: Vec<&str> = told.lines().filter(|line| !line.contains("seen: UPID")).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    platform/wipe/421 (conflict): remove VM 421 `VM 421` on pve: the task failed: VM is locked (create)
      hint: it is still being made, or whoever made it died on the way; if no task of the node works on it, on the host: qm unlock VMID, then qm destroy VMID --purge
    ");
    assert!(locked(&bench));
}
