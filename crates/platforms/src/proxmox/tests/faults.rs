//! What breaks while a castle is raised or razed: it ends well, or with a name and a cure; nothing is there twice.

use std::time::Duration;

use castle_model::{Class, VmId};
use tokio::time::{Instant, timeout};

use super::super::{image_id, preflight_id, vm_id};
use super::*;

/// Ways in which a call breaks whose outcome is not known then.
fn breakages() -> [Breakage; 2] {
    [Breakage::Status(596, "Connection timed out".to_owned()), Breakage::Reset]
}

/// What a datacenter holds, without what differs from birth to birth.
fn holdings(bench: &Bench) -> (Vec<(u32, bool)>, Vec<String>, Vec<String>) {
    let found = bench.inventory().proxmox;
    assert_eq!(found.running_tasks, [""; 0]);
    let guests = found.guests.iter().map(|guest| (guest.vmid, guest.running)).collect();
    (guests, found.volumes, found.files)
}

#[tokio::test(start_paused = true)]
async fn a_call_that_breaks_on_the_way_up_is_looked_up_and_never_doubled() {
    let whole = holdings(&Bench::raised(1).await);
    for (method, path) in [
        ("POST", "/download-url"),
        ("POST", "/qemu"),
        ("PUT", "/resize"),
        ("POST", "/status/start"),
    ] {
        for how in breakages() {
            for when in [Moment::Before, Moment::After] {
                let mut bench = Bench::new(1);
                bench.break_call((method, path, 1), when, how.clone());
                let run = bench.up().await;
                assert!(run.is_done(), "{method} {path} {how:?} {when:?}: {}", run.told());
                assert_eq!(bench.host.read(|world| world.proxmox.troubles_met()), 1, "{path}");
                assert_eq!(holdings(&bench), whole, "{method} {path} {how:?} {when:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_breaks_on_the_way_down_is_looked_up_and_nothing_stays() {
    for (method, path) in [("POST", "/status/stop"), ("DELETE", "/qemu/421"), ("DELETE", ".qcow2")]
    {
        for how in breakages() {
            for when in [Moment::Before, Moment::After] {
                let mut bench = Bench::raised(2).await;
                bench.break_call((method, path, 1), when, how.clone());
                let run = bench.down().await;
                assert!(run.is_done(), "{method} {path} {how:?} {when:?}: {}", run.told());
                assert_eq!(bench.host.read(|world| world.proxmox.troubles_met()), 1, "{path}");
                assert_eq!(holdings(&bench), (vec![], vec![], vec![]), "{method} {path} {how:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_settings_that_breaks_is_looked_up() {
    for how in breakages() {
        for when in [Moment::Before, Moment::After] {
            let mut bench = Bench::raised(19).await;
            let (option, value) = ("memory".to_owned(), Some("4096".to_owned()));
            bench.cause(ProxmoxTrouble::Edited { vmid: 431, option, value });
            bench.break_call(("PUT", "/qemu/431/config", 1), when, how.clone());
            let run = bench.up().await;
            assert!(run.is_done(), "{how:?} {when:?}: {}", run.told());
            assert_eq!(bench.host.read(|world| world.proxmox.troubles_met()), 1);
            let config = bench.client().vm_config("pve", VmId(431)).await.unwrap();
            let wanted = bench.wanted().nodes[1].memory_mib.to_string();
            assert_eq!(config.get("memory"), Some(wanted.as_str()), "{how:?} {when:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_goes_while_it_is_removed_is_gone() {
    let mut bench = Bench::raised(20).await;
    let words = "Configuration file 'nodes/pve/qemu-server/421.conf' does not exist";
    let gone = Breakage::Status(500, words.to_owned());
    bench.break_call(("DELETE", "/qemu/421", 1), Moment::After, gone);
    let run = bench.down().await;
    assert!(run.is_done(), "{}", run.told());
    assert_eq!(holdings(&bench), (vec![], vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_only_bears_our_number_goes_with_its_vm_unless_another_guest_has_it() {
    let mut bench = Bench::raised(21).await;
    bench.cause(ProxmoxTrouble::LostDisk { vmid: 421, storage: "local-lvm".into() });
    let run = bench.down().await;
    assert!(run.is_done(), "{}", run.told());
    assert_eq!(holdings(&bench), (vec![], vec![], vec![]));
    // One that somebody else's VM has attached is not even asked to go.
    let mut bench = Bench::raised(21).await;
    bench.cause(ProxmoxTrouble::LostDisk { vmid: 421, storage: "local-lvm".into() });
    let mail = ProxmoxTrouble::ForeignVm {
        vmid: 700,
        name: "mail".to_owned(),
        tags: String::new(),
        running: true,
        node: None,
    };
    bench.cause(mail);
    let (option, value) = ("scsi1".to_owned(), Some("local-lvm:vm-421-disk-9,size=1G".to_owned()));
    bench.cause(ProxmoxTrouble::Edited { vmid: 700, option, value });
    let run = bench.down().await;
    assert!(run.is_done(), "{}", run.told());
    let left = bench.inventory().proxmox.volumes;
    assert_eq!(left, ["local-lvm:vm-421-disk-9", "local-lvm:vm-700-disk-0"]);
    let told = bench.notices();
    assert!(
        told.contains(
            "local-lvm:vm-421-disk-9 stays: it bears the number 421, and guest 700 has it"
        ),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_detached_goes_and_what_is_borrowed_stays() {
    let mut bench = Bench::raised(22).await;
    bench.cause(ProxmoxTrouble::LostDisk { vmid: 421, storage: "local-lvm".into() });
    bench.cause(ProxmoxTrouble::LostDisk { vmid: 999, storage: "local-lvm".into() });
    let edited = |option: &str, value: &str| ProxmoxTrouble::Edited {
        vmid: 421,
        option: option.to_owned(),
        value: Some(value.to_owned()),
    };
    bench.cause(edited("unused0", "local-lvm:vm-421-disk-9"));
    bench.cause(edited("scsi2", "local-lvm:vm-999-disk-9,size=1G"));
    let run = bench.down().await;
    assert!(run.is_done(), "{}", run.told());
    assert_eq!(bench.inventory().proxmox.volumes, ["local-lvm:vm-999-disk-9"]);
    let told = bench.notices();
    assert!(
        told.contains("local-lvm:vm-999-disk-9 stays") && told.contains("guest 999's"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn questions_that_are_not_answered_are_put_again() {
    for path in ["/cluster/resources", "/status", "/content", "/config", "/status/current"] {
        let mut bench = Bench::new(3);
        let refused = Breakage::Status(595, "Connection refused".to_owned());
        bench.break_call(("GET", path, 1), Moment::Before, refused);
        bench.break_call(("GET", path, 2), Moment::Before, Breakage::Reset);
        let run = bench.up().await;
        assert!(run.is_done(), "{path}: {}", run.told());
        bench.assert_stands();
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_revoked_on_the_way_ends_the_run_at_once() {
    let mut bench = Bench::new(5);
    assert!(timeout(Duration::from_secs(12), bench.up()).await.is_err());
    bench.cause(ProxmoxTrouble::TokenRevoked);
    let began = Instant::now();
    let run = bench.up().await;
    assert!(began.elapsed() < Duration::from_secs(10), "a refusal was tried again");
    insta::assert_snapshot!(run.told(), @r"
    platform/inventory (denied): list the guests of https://pve.lan:8006: Proxmox answers 401: Authentication failed!
      hint: the token's name or secret is wrong, or the token has expired or was removed
    ");
}

#[tokio::test(start_paused = true)]
async fn what_fails_in_a_task_is_named() {
    let mut told = Vec::new();
    for (kind, words) in [
        ("download", "download failed: exit code 8"),
        (
            "qmcreate",
            "unable to create VM 421 - lvcreate 'pve/vm-421-disk-1' error: Cannot create new thin volume, free space in thin pool pve/data reached threshold.",
        ),
        (
            "qmcreate",
            "unable to create VM 421 - unable to create image: qemu-img: error while writing: No space left on device",
        ),
        ("resize", "shrinking disks is not supported"),
        ("qmstart", "bridge 'vmbr0' does not exist"),
    ] {
        let mut bench = Bench::new(6);
        bench.cause(ProxmoxTrouble::TaskFails { kind: kind.to_owned(), words: words.to_owned() });
        let run = bench.up().await;
        assert!(!run.is_done(), "{kind}: {words}");
        assert!(run.report.failures.values().all(|failure| !failure.is_transient()), "{words}");
        let upid = |line: &&str| !line.starts_with("  seen: UPID:");
        told.push(run.told().lines().filter(upid).collect::<Vec<_>>().join("\n"));
    }
    insta::assert_snapshot!(told.join("\n"), @r"
    platform/image (gone): fetch the image of Talos 1.13.9 to local: the task failed: download failed: exit code 8
      hint: the server behind the URL has no such file: compare the version and the schematic
    platform/vm/cp-01 (invalid): create VM 421 (cp-01) on pve: the task failed: unable to create VM 421 - lvcreate 'pve/vm-421-disk-1' error: Cannot create new thin volume, free space in thin pool pve/data reached threshold.
      hint: make room on the storage, or name another one in the castle file
    platform/vm/cp-01 (invalid): create VM 421 (cp-01) on pve: the task failed: unable to create VM 421 - unable to create image: qemu-img: error while writing: No space left on device
      hint: make room on the storage, or name another one in the castle file
    platform/vm/cp-01 (invalid): grow scsi0 of VM 421 (cp-01) on pve: the task failed: shrinking disks is not supported
      hint: disks never shrink: put the size in the castle file back
    platform/vm/cp-01 (invalid): start VM 421 (cp-01) on pve: the task failed: bridge 'vmbr0' does not exist
      hint: compare `bridge` with the networks of the node
    ");
}

#[tokio::test(start_paused = true)]
async fn a_storage_that_was_busy_is_tried_again() {
    let mut bench = Bench::new(7);
    let words = "can't lock file '/var/lock/pve-manager/pve-storage-local-lvm' - got timeout";
    bench.cause(ProxmoxTrouble::TaskFails { kind: "qmcreate".into(), words: words.into() });
    let run = bench.up().await;
    assert!(run.is_done(), "{}", run.told());
    bench.assert_stands();
    // One that stays busy ends the step at its deadline, with what was seen.
    let mut bench = Bench::new(7);
    bench.cause(ProxmoxTrouble::StorageBusy { storage: "local-lvm".into(), busy: true });
    let began = Instant::now();
    let run = bench.up().await;
    assert!(began.elapsed() < Duration::from_mins(6), "{:?}", began.elapsed());
    assert_eq!(run.report.failures.len(), 2, "{}", run.told());
    assert!(run.report.failures.values().all(Failure::is_transient), "{}", run.told());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_never_ends_is_left_at_the_deadline_and_found_again() {
    let mut bench = Bench::new(8);
    bench.cause(ProxmoxTrouble::TaskHangs { kind: "qmcreate".into() });
    let began = Instant::now();
    let run = bench.up().await;
    assert!(began.elapsed() < Duration::from_secs(330), "{:?}", began.elapsed());
    insta::assert_snapshot!(run.told(), @r"
    platform/vm/worker-01 (transient): wait for create VM 431 (worker-01) on pve: not so after 4:59
      seen: Proxmox' task qmcreate is running
      hint: run the same command again to go on waiting for it; if it hangs, end it in Proxmox (Stop in the list of tasks, or on the host: pvesh delete /nodes/pve/tasks/UPID:pve:000003EA:000017DE:697FE914:qmcreate:431:castle@pve!rehearsal:) before that
    ");
    let before = bench.mutations();
    let again = bench.up().await;
    assert_eq!(again.report.failures.len(), 1, "{}", again.told());
    assert_eq!(bench.mutations(), before, "it was not begun a second time");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_says_it_has_made_what_is_not_there_is_not_believed() {
    let mut told = Vec::new();
    for kind in ["download", "qmstart"] {
        let mut bench = Bench::new(9);
        bench.cause(ProxmoxTrouble::TaskLies { kind: kind.to_owned() });
        let run = bench.up().await;
        told.push(run.told());
    }
    insta::assert_snapshot!(told.join("\n"), @r"
    platform/image (gone): fetch the image of Talos 1.13.9 to local: the task ended well, and the file is not on the storage
      hint: look at the log of the download task in Proxmox; then run the same command again
    platform/vm/cp-01 (transient): wait for VM 421 (cp-01) on pve to run: not so after 4:55
      seen: it is switched off
      hint: run the same command again to go on from here; `deadlines` in the castle file gives it more time
    ");
    // A VM that is not there is simply made.
    let mut bench = Bench::new(9);
    bench.cause(ProxmoxTrouble::TaskLies { kind: "qmcreate".into() });
    let run = bench.up().await;
    assert!(run.is_done(), "{}", run.told());
    bench.assert_stands();
}

#[tokio::test(start_paused = true)]
async fn warnings_are_success_and_are_told() {
    let mut bench = Bench::new(10);
    bench.cause(ProxmoxTrouble::TaskWarns { kind: "qmcreate".into(), warnings: 2 });
    let run = bench.up().await;
    assert!(run.is_done(), "{}", run.told());
    assert!(bench.notices().contains("done with 2 warnings"), "{}", bench.notices());
}

#[tokio::test(start_paused = true)]
async fn a_number_that_is_taken_in_a_race_is_named_by_whose_it_is() {
    let mut bench = Bench::new(11);
    bench.cause(ProxmoxTrouble::Overtaken { vmid: 421 });
    let run = bench.up().await;
    assert!(!run.told().contains("already exists"), "{}", run.told());
    insta::assert_snapshot!(run.told(), @r"
    platform/vm/cp-01 (conflict): make VM 421 (cp-01) on pve: it is not ours: `faster` (no tags): it bears no mark of a castle
      hint: choose another vmid in the castle file, or move that guest away
    ");
    let guests = bench.inventory().proxmox.guests;
    assert_eq!((guests[0].name.as_str(), guests[0].running), ("faster", false));
}

#[tokio::test(start_paused = true)]
async fn guests_of_others_at_our_numbers_are_named_and_left_alone() {
    let mut bench = Bench::new(12);
    let (tags, running) = ("prod;web".to_owned(), true);
    let vm = |vmid, node| ProxmoxTrouble::ForeignVm {
        vmid,
        name: "web".into(),
        tags: tags.clone(),
        running,
        node,
    };
    bench.cause(vm(421, Some("pve2".to_owned())));
    bench.cause(ProxmoxTrouble::ForeignContainer { vmid: 431, name: "dns".into(), running });
    let before = bench.inventory();
    let run = bench.up().await;
    insta::assert_snapshot!(run.told(), @r"
    platform/preflight (conflict): check the host pve and the addresses: 2 things stand in the way
      finding: number 421 of cp-01: it is taken by VM `web` on pve2, tagged prod, web: it bears no mark of a castle; choose another vmid in the castle file, or move that guest away
      finding: number 431 of worker-01: it is taken by container `dns` on pve; choose another vmid in the castle file, or move that guest away
      hint: nothing was made yet: mend what is named, then run the same command again
    ");
    assert_eq!(bench.inventory(), before);
    let run = bench.down().await;
    assert!(run.is_done(), "{}", run.told());
    assert_eq!(bench.inventory(), before);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_down_is_named() {
    let mut bench = Bench::new(13);
    bench.cause(ProxmoxTrouble::NodeDown);
    let run = bench.up().await;
    insta::assert_snapshot!(run.told(), @r"
    platform/preflight (conflict): check the host pve and the addresses: one thing stands in the way
      finding: node pve: it is offline; bring it back, then try again
      hint: nothing was made yet: mend what is named, then run the same command again
    ");
    bench.cause(ProxmoxTrouble::NodeBack);
    assert!(bench.up().await.is_done());
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_answer_is_named() {
    let mut said = Vec::new();
    for endpoint in ["https://nobody.lan:8006", "https://pve.lan:8007"] {
        let mut bench = Bench::new(14);
        endpoint.clone_into(&mut bench.spec.platform.proxmox_mut().unwrap().endpoint);
        let began = Instant::now();
        let run = bench.up().await;
        assert!(began.elapsed() < Duration::from_mins(2), "{:?}", began.elapsed());
        said.push(run.told());
    }
    insta::assert_snapshot!(said.join("\n"), @r"
    platform/inventory (invalid): list the guests of https://nobody.lan:8006: GET https://nobody.lan:8006/api2/json/access/permissions: no connection: cannot connect to nobody.lan:8006: failed to lookup address information: Name or service not known
      hint: compare the name with the castle file; if it is right, this computer's DNS does not know it: `getent hosts nobody.lan` asks it
    platform/inventory (transient): list the guests of https://pve.lan:8007: GET https://pve.lan:8007/api2/json/access/permissions: no connection: cannot connect to pve.lan:8007: Connection refused
      hint: is the server up, and is that its port? a firewall may stand in between
    ");
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_somebody_protected_is_not_even_switched_off() {
    let mut bench = Bench::raised(15).await;
    let (option, value) = ("protection".to_owned(), Some("1".to_owned()));
    bench.cause(ProxmoxTrouble::Edited { vmid: 421, option: option.clone(), value });
    let run = bench.down().await;
    insta::assert_snapshot!(run.told(), @r"
    platform/vm/cp-01 (conflict): remove VM 421 (cp-01) on pve: somebody has protected it in Proxmox (who, Proxmox does not tell), so it was not even switched off
      hint: if it may really go, take the protection off (qm set 421 --protection 0), then run the same command again
    ");
    let guests = bench.inventory().proxmox.guests;
    assert_eq!(guests.iter().map(|g| (g.vmid, g.running)).collect::<Vec<_>>(), [(421, true)]);
    bench.cause(ProxmoxTrouble::Edited { vmid: 421, option, value: None });
    let run = bench.down().await;
    assert!(run.is_done(), "{}", run.told());
    assert_eq!(bench.inventory().proxmox.guests, []);
}

#[tokio::test(start_paused = true)]
async fn a_making_that_died_is_told_from_one_that_goes_on() {
    let locked = |bench: &Bench| {
        bench.inventory().proxmox.guests.iter().any(|g| g.lock.as_deref() == Some("create"))
    };
    // The run and the node die while the first VM is being made.
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
    assert!(locked(&bench), "{:?}", bench.inventory().proxmox.guests);
    let began = Instant::now();
    let run = bench.up().await;
    assert!(began.elapsed() < Duration::from_secs(20), "nobody will ever finish it");
    let razed = bench.down().await;
    insta::assert_snapshot!(razed.told(), @r"
    platform/vm/cp-01 (conflict): remove VM 421 (cp-01) on pve: it is half made by this castle: its task died on the way and left it locked (create)
      hint: on the host, as root: qm unlock 421, then qm destroy 421 --purge; then run the same command again
    platform/vm/worker-01 (conflict): remove VM 431 (worker-01) on pve: it is half made by this castle: its task died on the way and left it locked (create)
      hint: on the host, as root: qm unlock 431, then qm destroy 431 --purge; then run the same command again
    ");
    assert!(locked(&bench), "no token may pass over the lock");
    insta::assert_snapshot!(run.told(), @r"
    platform/preflight (conflict): check the host pve and the addresses: 2 things stand in the way
      finding: number 421 of cp-01: VM 421 is half made by this castle: its task died on the way and left it locked (create); on the host, as root: qm unlock 421, then qm destroy 421 --purge; then run the same command again
      finding: number 431 of worker-01: VM 431 is half made by this castle: its task died on the way and left it locked (create); on the host, as root: qm unlock 431, then qm destroy 431 --purge; then run the same command again
      hint: nothing was made yet: mend what is named, then run the same command again
    ");
}

#[tokio::test(start_paused = true)]
async fn a_disk_of_an_earlier_vm_is_neither_used_nor_removed() {
    let mut bench = Bench::new(17);
    bench.cause(ProxmoxTrouble::LostDisk { vmid: 421, storage: "local-lvm".into() });
    let run = bench.up().await;
    insta::assert_snapshot!(run.told(), @r"
    platform/preflight (conflict): check the host pve and the addresses: one thing stands in the way
      finding: number 421 of cp-01: the disk local-lvm:vm-421-disk-9 of an earlier VM lies there, and no VM has it; if nobody needs it, remove it on the host (pvesm free local-lvm:vm-421-disk-9), or choose another vmid
      hint: nothing was made yet: mend what is named, then run the same command again
    ");
    assert_eq!(bench.mutations(), 0);
    assert_eq!(bench.inventory().proxmox.volumes.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_full_storage_is_found_before_anything_is_made() {
    let mut bench = Bench::new(18);
    for storage in ["local", "local-lvm"] {
        bench.cause(ProxmoxTrouble::StorageFull { storage: storage.to_owned(), full: true });
    }
    let run = bench.up().await;
    insta::assert_snapshot!(run.told(), @r"
    platform/preflight (conflict): check the host pve and the addresses: 2 things stand in the way
      finding: storage local-lvm on pve: 2600 MiB are needed at once, 0 MiB are left; make room there, or name another storage
      finding: storage local on pve: 512 MiB are needed at once, 0 MiB are left; make room there, or name another storage
      hint: nothing was made yet: mend what is named, then run the same command again
    ");
    let failure = &run.report.failures[&preflight_id()];
    assert_eq!((failure.class, bench.mutations()), (Class::Conflict, 0));
    assert!(run.report.not_run.contains_key(&image_id()));
    assert_eq!(bench.wanted().nodes[0].vmid, VmId(421));
    assert!(run.report.not_run.contains_key(&vm_id(&bench.wanted().nodes[0].name)));
}
