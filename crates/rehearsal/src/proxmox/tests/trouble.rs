//! What goes wrong when the world says so: each trouble is seen on the wire as the real one would be.

use super::super::{Breakage, Fault, Moment, ProxmoxTrouble};
use super::*;

impl Bench {
    fn suffer(&mut self, trouble: &ProxmoxTrouble) {
        self.turn(|proxmox, turn| proxmox.suffer(turn, trouble));
    }

    fn status(&mut self, method: &str, target: &str, form: &str) -> (u16, String) {
        let mut call = request(method, target, form);
        call.headers[0].1 = format!("PVEAPIToken={}=6f9f3f0e", self.token);
        let reply = self.turn(|proxmox, turn| proxmox.call(turn, &call));
        (reply.status, reply.reason.unwrap_or_default())
    }
}

fn fault(method: &str, path: &str, nth: u64, when: Moment, status: u16) -> ProxmoxTrouble {
    ProxmoxTrouble::Call(Fault {
        method: method.to_owned(),
        path: path.to_owned(),
        nth,
        when,
        how: Breakage::Status(status, "Connection timed out".to_owned()),
    })
}

#[test]
fn a_node_that_is_down_takes_its_guests_along_and_brings_them_back() {
    let mut bench = Bench::new();
    bench.task("POST", "/nodes/pve1/qemu", "vmid=421&onboot=1");
    bench.task("POST", "/nodes/pve1/qemu/421/status/start", "");
    bench.suffer(&ProxmoxTrouble::NodeDown);
    assert!(matches!(bench.signals.last(), Some(Signal::VmStopped { vmid: 421 })));
    assert_eq!(bench.get("/nodes")[0]["status"], "offline");
    let unreachable = (595, "No route to host".to_owned());
    assert_eq!(bench.status("GET", "/nodes/pve1/status", ""), unreachable);
    bench.suffer(&ProxmoxTrouble::NodeBack);
    while bench.step() {}
    assert_eq!(bench.get("/nodes/pve1/qemu/421/status/current")["status"], "running");
}

#[test]
fn who_fell_with_its_node_is_in_the_books_and_who_was_stopped_is_not() {
    let mut bench = Bench::new();
    for vmid in [421, 422] {
        bench.proxmox.add_foreign_guest(vmid, "web", "", true);
    }
    bench.task("POST", "/nodes/pve1/qemu/422/status/stop", "");
    bench.suffer(&ProxmoxTrouble::NodeDown);
    bench.suffer(&ProxmoxTrouble::NodeBack);
    let power = |bench: &Bench, vmid: u32| {
        let guest = &bench.proxmox.guests[&vmid];
        (guest.running.is_some(), guest.fell)
    };
    assert_eq!(power(&bench, 421), (false, Some(0)), "it ran since 0, until its node fell");
    assert_eq!(power(&bench, 422), (false, None), "somebody had stopped it before");
    bench.task("POST", "/nodes/pve1/qemu/421/status/start", "");
    assert_eq!(power(&bench, 421), (true, None), "and somebody has started it again");
}

#[test]
fn full_and_busy_storages_fail_in_the_task_and_leave_nothing() {
    let mut bench = Bench::new();
    let storage = "local-lvm".to_owned();
    bench.suffer(&ProxmoxTrouble::StorageFull { storage: storage.clone(), full: true });
    assert_eq!(bench.get("/nodes/pve1/storage/local-lvm/status")["avail"], 0);
    let create = form(&[("vmid", "421"), ("scsi0", "local-lvm:8")]);
    let exit = bench.task("POST", "/nodes/pve1/qemu", &create);
    assert!(exit.contains("free space in thin pool"), "{exit}");
    assert!(bench.proxmox.inventory().guests.is_empty());
    bench.suffer(&ProxmoxTrouble::StorageFull { storage: "local".to_owned(), full: true });
    let fetch = form(&[("url", IMAGE_URL), ("content", "import"), ("filename", IMAGE)]);
    let exit = bench.task("POST", "/nodes/pve1/storage/local/download-url", &fetch);
    assert_eq!(exit, "download failed: exit code 3");
    bench.suffer(&ProxmoxTrouble::StorageFull { storage: storage.clone(), full: false });
    bench.suffer(&ProxmoxTrouble::StorageBusy { storage: storage.clone(), busy: true });
    let (before, exit) = (bench.now, bench.task("POST", "/nodes/pve1/qemu", &create));
    assert_eq!(
        exit,
        "unable to create VM 421 - can't lock file '/var/lock/pve-manager/pve-storage-local-lvm' - got timeout"
    );
    assert_eq!(bench.now - before, 10_000);
    bench.suffer(&ProxmoxTrouble::StorageBusy { storage, busy: false });
    assert_eq!(bench.task("POST", "/nodes/pve1/qemu", &create), "OK");
}

#[test]
fn tasks_hang_lie_fail_and_warn_once() {
    let mut bench = Bench::new();
    let kind = "qmcreate".to_owned();
    bench.suffer(&ProxmoxTrouble::TaskHangs { kind: kind.clone() });
    let upid = bench.data("POST", "/nodes/pve1/qemu", "vmid=420").as_str().unwrap().to_owned();
    while bench.step() {}
    let status = bench.get(&format!("/nodes/pve1/tasks/{}/status", escape(&upid)));
    assert_eq!(status["status"], "running");
    bench.suffer(&ProxmoxTrouble::TaskLies { kind: kind.clone() });
    assert_eq!(bench.task("POST", "/nodes/pve1/qemu", "vmid=421"), "OK");
    assert_eq!(bench.call("GET", "/nodes/pve1/qemu/421/config", "").0, 500);
    let words = "start failed: org.freedesktop.systemd1.Timeout".to_owned();
    bench.suffer(&ProxmoxTrouble::TaskFails { kind: kind.clone(), words: words.clone() });
    assert_eq!(bench.task("POST", "/nodes/pve1/qemu", "vmid=421"), words);
    bench.suffer(&ProxmoxTrouble::TaskWarns { kind, warnings: 2 });
    assert_eq!(bench.task("POST", "/nodes/pve1/qemu", "vmid=421"), "WARNINGS: 2");
    assert_eq!(bench.task("POST", "/nodes/pve1/qemu", "vmid=422"), "OK");
}

#[test]
fn somebody_may_be_faster_with_a_number() {
    let mut bench = Bench::new();
    bench.suffer(&ProxmoxTrouble::Overtaken { vmid: 421 });
    assert_eq!(bench.get("/cluster/nextid?vmid=421"), "421");
    let (status, reason) = bench.status("POST", "/nodes/pve1/qemu", "vmid=421");
    assert_eq!(status, 500);
    assert_eq!(reason, "unable to create VM 421 - VM 421 already exists on node 'pve1'");
    assert_eq!(bench.get("/nodes/pve1/qemu/421/config")["name"], "faster");
}

#[test]
fn the_nth_call_breaks_before_or_after_its_effect() {
    let mut bench = Bench::new();
    bench.suffer(&fault("POST", "/qemu", 2, Moment::Before, 595));
    bench.suffer(&fault("POST", "/qemu", 3, Moment::After, 596));
    for (vmid, status, made) in [(421, 200, true), (422, 595, false), (423, 596, true)] {
        let met = bench.proxmox.troubles_met();
        assert_eq!(bench.status("POST", "/nodes/pve1/qemu", &format!("vmid={vmid}")).0, status);
        assert!(bench.proxmox.troubles_met() > met);
        let there = bench.proxmox.inventory().guests.iter().any(|guest| guest.vmid == vmid);
        assert_eq!(there, made, "{vmid}");
    }
    let met = bench.proxmox.troubles_met();
    assert_eq!(bench.status("POST", "/nodes/pve1/qemu", "vmid=424").0, 200);
    assert_eq!(bench.proxmox.troubles_met(), met);
}

#[test]
fn others_make_move_and_edit_guests() {
    let mut bench = Bench::new();
    bench.suffer(&ProxmoxTrouble::ForeignVm {
        vmid: 421,
        name: "mail".to_owned(),
        tags: "prod".to_owned(),
        running: true,
        node: Some("pve2".to_owned()),
    });
    let listed = bench.get("/cluster/resources?type=vm");
    assert_eq!((&listed[0]["node"], &listed[0]["name"]), (&json!("pve2"), &json!("mail")));
    assert_eq!(bench.get("/nodes").as_array().unwrap().len(), 2);
    assert_eq!(bench.get("/nodes/pve2/qemu/421/config")["tags"], "prod");
    assert_eq!(bench.call("GET", "/nodes/pve1/qemu/421/config", "").0, 500);
    let (_, reason) = bench.status("POST", "/nodes/pve1/qemu", "vmid=421");
    assert_eq!(reason, "unable to create VM 421 - VM 421 already exists on node 'pve2'");
    bench.task("POST", "/nodes/pve1/qemu", "vmid=422");
    bench.suffer(&ProxmoxTrouble::Edited {
        vmid: 422,
        option: "protection".to_owned(),
        value: Some("1".to_owned()),
    });
    let (_, reason) = bench.status("DELETE", "/nodes/pve1/qemu/422", "");
    assert_eq!(reason, "can't remove VM 422 - protection mode enabled");
}

#[test]
fn a_broken_file_fails_the_import_and_a_lost_disk_is_listed() {
    let mut bench = Bench::new();
    bench.suffer(&ProxmoxTrouble::HalfFile { storage: "local".to_owned(), file: IMAGE.to_owned() });
    assert_eq!(bench.get("/nodes/pve1/storage/local/content?content=import")[0]["size"], 40 << 20);
    let disk = format!("local-lvm:0,import-from=local:import/{IMAGE}");
    let exit = bench.task("POST", "/nodes/pve1/qemu", &form(&[("vmid", "421"), ("scsi0", &disk)]));
    assert!(exit.contains("Image is not in qcow2 format"), "{exit}");
    bench.suffer(&ProxmoxTrouble::LostDisk { vmid: 421, storage: "local-lvm".to_owned() });
    let listed = bench.get("/nodes/pve1/storage/local-lvm/content?vmid=421");
    assert_eq!(listed[0]["volid"], "local-lvm:vm-421-disk-9");
}

#[test]
fn a_revoked_token_and_a_lost_privilege_are_told_apart() {
    let mut bench = Bench::castle();
    bench.suffer(&ProxmoxTrouble::PrivilegeTaken {
        path: "/nodes/pve1".to_owned(),
        privilege: "Sys.Audit".to_owned(),
    });
    let denied = (403, "Permission check failed (/nodes/pve1, Sys.Audit)".to_owned());
    assert_eq!(bench.status("GET", "/nodes/pve1/status", ""), denied);
    bench.suffer(&ProxmoxTrouble::TokenRevoked);
    let failed = (401, "Authentication failed!".to_owned());
    assert_eq!(bench.status("GET", "/version", ""), failed);
}

#[test]
fn a_token_goes_and_comes_back_and_guests_are_stopped_and_removed_by_hand() {
    let mut bench = Bench::new();
    bench.task("POST", "/nodes/pve1/qemu", "vmid=421&protection=1");
    bench.task("POST", "/nodes/pve1/qemu/421/status/start", "");
    bench.suffer(&ProxmoxTrouble::TokenRevoked);
    let denied = (401, "Authentication failed!".to_owned());
    assert_eq!(bench.status("GET", "/version", ""), denied);
    assert_eq!(bench.proxmox.wrong(), ["Proxmox takes no token any more"]);
    bench.suffer(&ProxmoxTrouble::TokenRestored);
    assert_eq!(bench.status("GET", "/version", "").0, 200);
    bench.suffer(&ProxmoxTrouble::Stopped { vmid: 421 });
    assert!(matches!(bench.signals.last(), Some(Signal::VmStopped { vmid: 421 })));
    assert_eq!(bench.get("/nodes/pve1/qemu/421/status/current")["status"], "stopped");
    bench.suffer(&ProxmoxTrouble::Destroyed { vmid: 421 });
    assert!(matches!(bench.signals.last(), Some(Signal::VmDestroyed { vmid: 421 })));
    let left = bench.proxmox.inventory();
    assert!(left.guests.is_empty() && left.volumes.is_empty(), "{left:?}");
}
