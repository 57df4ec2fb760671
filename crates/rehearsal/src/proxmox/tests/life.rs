//! Whole lives: from the image to the last volume, and what is left when something goes wrong.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::{Bench, IMAGE, IMAGE_URL, escape, form};
use crate::proxmox::{Effect, Proxmox};
use crate::turn::Signal;

const UUID: &str = "7f3a1c52-0d4e-5b6a-9c8d-0123456789ab";

fn wanted_image() -> String {
    form(&[("url", IMAGE_URL), ("content", "import"), ("filename", IMAGE)])
}

fn download(bench: &mut Bench) -> String {
    bench.task("POST", "/nodes/pve1/storage/local/download-url", &wanted_image())
}

fn create_form(vmid: &str) -> String {
    let import = format!("local-lvm:0,import-from=local:import/{IMAGE},discard=on,ssd=1");
    form(&[
        ("vmid", vmid),
        ("name", "blue-control-plane-1"),
        ("tags", "Castle;castle-blue,inc-1 castle"),
        ("description", "castle: blue\nnode: control-plane-1"),
        ("memory", "8192"),
        ("cores", "4"),
        ("balloon", "0"),
        ("cpu", "host"),
        ("machine", "q35"),
        ("bios", "ovmf"),
        ("efidisk0", "local-lvm:1,efitype=4m,pre-enrolled-keys=0"),
        ("scsihw", "virtio-scsi-pci"),
        ("scsi0", &import),
        ("scsi1", "local-lvm:100"),
        ("ide2", "local-lvm:cloudinit"),
        ("net0", "virtio,bridge=vmbr0"),
        ("ipconfig0", "ip=192.168.1.211/24,gw=192.168.1.1"),
        ("nameserver", "192.168.1.1"),
        ("smbios1", &format!("uuid={UUID}")),
        ("agent", "enabled=1"),
        ("onboot", "1"),
        ("boot", "order=scsi0"),
        ("serial0", "socket"),
    ])
}

fn risen() -> Bench {
    let mut bench = Bench::new();
    assert_eq!(download(&mut bench), "OK");
    assert_eq!(bench.task("POST", "/nodes/pve1/qemu", &create_form("421")), "OK");
    bench
}

#[test]
fn a_machine_lives_and_leaves_nothing() {
    let mut bench = risen();
    let guest = "/nodes/pve1/qemu/421";
    let config = bench.get(&format!("{guest}/config"));
    let expected = [
        ("agent", json!("enabled=1")),
        ("balloon", json!(0)),
        ("cores", json!(4)),
        ("memory", json!("8192")),
        ("onboot", json!(1)),
        ("tags", json!("castle;castle-blue;inc-1")),
        ("smbios1", json!(format!("uuid={UUID}"))),
        ("efidisk0", json!("local-lvm:vm-421-disk-0,efitype=4m,pre-enrolled-keys=0,size=4M")),
        ("scsi0", json!("local-lvm:vm-421-disk-1,discard=on,size=1246M,ssd=1")),
        ("scsi1", json!("local-lvm:vm-421-disk-2,size=100G")),
        ("ide2", json!("local-lvm:vm-421-cloudinit,media=cdrom")),
    ];
    for (name, value) in expected {
        assert_eq!(config[name], value, "{name}");
    }
    assert_eq!(config["digest"].as_str().unwrap().len(), 40);
    assert!(config["net0"].as_str().unwrap().starts_with("virtio=BC:24:11:"), "{config}");
    assert!(config.get("lock").is_none(), "{config}");

    assert_eq!(bench.task("PUT", &format!("{guest}/resize"), "disk=scsi0&size=40G"), "OK");
    assert_eq!(bench.task("POST", &format!("{guest}/status/start"), ""), "OK");
    let [Signal::VmStarted(facts)] = &bench.signals[..] else { panic!("{:?}", bench.signals) };
    assert_eq!(facts.address, Some(Ipv4Addr::new(192, 168, 1, 211)));
    assert_eq!((facts.uuid.as_str(), facts.image.as_deref()), (UUID, Some(IMAGE)));
    assert_eq!((facts.disk_gib, facts.data_disk_gib, facts.memory_mib), (40, Some(100), 8192));
    let first_disk = facts.disk.clone();
    let status = bench.get(&format!("{guest}/status/current"));
    assert_eq!((&status["status"], &status["vmid"]), (&json!("running"), &json!(421)));

    assert_eq!(bench.task("POST", &format!("{guest}/status/stop"), ""), "OK");
    assert_eq!(bench.task("POST", &format!("{guest}/status/start"), ""), "OK");
    assert_eq!(started_disk(&bench), first_disk, "the disk outlives a stop");
    assert_eq!(bench.task("POST", &format!("{guest}/status/stop"), ""), "OK");
    assert_eq!(bench.task("DELETE", &format!("{guest}?purge=1"), ""), "OK");
    let Some(Signal::VmDestroyed { vmid: 421 }) = bench.signals.last() else { panic!() };
    let left = bench.proxmox.inventory();
    assert_eq!((left.guests.len(), left.volumes.len(), left.files.len()), (0, 0, 1));

    assert_eq!(bench.task("POST", "/nodes/pve1/qemu", &create_form("421")), "OK");
    assert_eq!(bench.task("POST", &format!("{guest}/status/start"), ""), "OK");
    assert_ne!(started_disk(&bench), first_disk, "a new disk remembers nothing");
}

fn started_disk(bench: &Bench) -> String {
    let started = bench.signals.iter().rev().find_map(|signal| match signal {
        Signal::VmStarted(facts) => Some(facts.disk.clone()),
        _ => None,
    });
    started.unwrap()
}

#[test]
fn a_guest_in_the_making_is_locked_and_shows_nothing_else() {
    let mut bench = Bench::new();
    assert_eq!(download(&mut bench), "OK");
    let upid = bench.data("POST", "/nodes/pve1/qemu", &create_form("421"));
    let upid = upid.as_str().unwrap().to_owned();
    let config = bench.get("/nodes/pve1/qemu/421/config");
    let names: Vec<&String> = config.as_object().unwrap().keys().collect();
    assert_eq!(names, ["lock", "digest"]);
    assert_eq!(bench.get("/nodes/pve1/qemu")[0]["lock"], "create");
    let running = bench.get(&format!("/nodes/pve1/tasks/{}/status", escape(&upid)));
    assert_eq!(running["status"], "running");
    assert_eq!(running.get("exitstatus"), None);
    assert_eq!(bench.get("/nodes/pve1/tasks?source=active")[0]["status"], "RUNNING");
    let (status, twice) = bench.call("POST", "/nodes/pve1/qemu", &create_form("421"));
    assert_eq!((status, twice["errors"].is_null()), (500, true));
    assert_eq!(
        twice["message"],
        "unable to create VM 421 - VM 421 already exists on node 'pve1'\n"
    );
    let (_, put) = bench.call("PUT", "/nodes/pve1/qemu/421/config", "name=x");
    assert_eq!(put["message"], "VM is locked (create)\n");
    let hasty = bench.data("POST", "/nodes/pve1/qemu/421/status/start", "");
    let early = bench.data("DELETE", "/nodes/pve1/qemu/421", "");
    while bench.step() {}
    assert_eq!(bench.exit(hasty.as_str().unwrap()), "VM is locked (create)");
    assert_eq!(bench.exit(early.as_str().unwrap()), "VM is locked (create)");
    assert_eq!(bench.exit(&upid), "OK");
    assert!(bench.signals.is_empty(), "{:?}", bench.signals);
}

#[test]
fn task_ids_have_the_real_shape() {
    let mut bench = Bench::new();
    bench.now = 12_340;
    let upid = bench.data("POST", "/nodes/pve1/qemu", "vmid=421");
    assert_eq!(upid, "UPID:pve1:000003E9:000014D2:697FE90C:qmcreate:421:root@pam!ci:");
    while bench.step() {}
    let path = format!("/nodes/pve1/tasks/{}", escape(upid.as_str().unwrap()));
    let status = bench.get(&format!("{path}/status"));
    assert_eq!((&status["user"], &status["tokenid"]), (&json!("root@pam"), &json!("ci")));
    assert_eq!(bench.get(&format!("{path}/log")), json!([{"n": 1, "t": "TASK OK"}]));
    assert_eq!(bench.get("/nodes/pve1/tasks?vmid=421")[0]["status"], "OK");
}

#[test]
fn the_log_of_a_download_grows_as_it_goes() {
    let mut bench = Bench::new();
    let wanted = wanted_image();
    let upid = bench.data("POST", "/nodes/pve1/storage/local/download-url", &wanted);
    let log = format!("/nodes/pve1/tasks/{}/log", escape(upid.as_str().unwrap()));
    let last = |bench: &mut Bench| {
        let lines = bench.get(&log);
        let lines: Vec<&str> =
            lines.as_array().unwrap().iter().map(|line| line["t"].as_str().unwrap()).collect();
        assert!(lines[0].starts_with("downloading https://"), "{lines:?}");
        lines.last().unwrap().trim_end().to_owned()
    };
    assert!(last(&mut bench).starts_with("Saving to: '/var/lib/vz/import/"));
    let (began, due) = (bench.now, bench.queue.first_key_value().unwrap().0.0);
    bench.now = began + (due - began) * 9 / 16;
    assert_eq!(last(&mut bench), "     0K ....");
    bench.now = due - 1;
    assert_eq!(last(&mut bench), "     0K .......");
    while bench.step() {}
    assert_eq!(last(&mut bench), "TASK OK");
}

#[test]
fn a_file_is_downloaded_once() {
    let mut bench = Bench::new();
    assert_eq!(download(&mut bench), "OK");
    let again = download(&mut bench);
    assert_eq!(again, format!("refusing to override existing file '/var/lib/vz/import/{IMAGE}'"));
    let content = bench.get("/nodes/pve1/storage/local/content?content=import");
    assert_eq!(content[0]["volid"], format!("local:import/{IMAGE}"));
    let wanted = form(&[
        ("url", IMAGE_URL),
        ("content", "import"),
        ("filename", "other.qcow2"),
        ("checksum", "deadbeef"),
        ("checksum-algorithm", "sha256"),
    ]);
    let wrong = bench.task("POST", "/nodes/pve1/storage/local/download-url", &wanted);
    assert!(wrong.starts_with("checksum mismatch: got '"), "{wrong}");
    let volume = escape(&format!("local:import/{IMAGE}"));
    let target = format!("/nodes/pve1/storage/local/content/{volume}");
    assert_eq!(bench.task("DELETE", &target, ""), "OK");
    assert!(bench.proxmox.inventory().files.is_empty());
}

#[test]
fn an_image_that_is_still_packed_does_not_import() {
    let mut bench = Bench::new();
    let url = IMAGE_URL.replace(".qcow2", ".raw.xz");
    let wanted = form(&[("url", &url), ("content", "import"), ("filename", IMAGE)]);
    assert_eq!(bench.task("POST", "/nodes/pve1/storage/local/download-url", &wanted), "OK");
    let exit = bench.task("POST", "/nodes/pve1/qemu", &create_form("421"));
    assert!(exit.ends_with("Image is not in qcow2 format"), "{exit}");
    assert!(bench.proxmox.inventory().guests.is_empty());
}

#[test]
fn disks_out_of_the_config_stay_unless_swept() {
    let mut bench = risen();
    let guest = "/nodes/pve1/qemu/421";
    bench.data("PUT", &format!("{guest}/config"), "delete=scsi1");
    assert_eq!(bench.get(&format!("{guest}/config"))["unused0"], "local-lvm:vm-421-disk-2");
    // An orphan: a disk of the guest's number that no config names.
    let orphan = bench.proxmox.volumes["local-lvm:vm-421-disk-2"].clone();
    bench.proxmox.volumes.insert("local-lvm:vm-421-disk-9".to_owned(), orphan);
    let mut swept = Bench { proxmox: bench.proxmox.clone(), ..Bench::new() };
    assert_eq!(bench.task("DELETE", &format!("{guest}?purge=1"), ""), "OK");
    assert_eq!(bench.proxmox.inventory().volumes, ["local-lvm:vm-421-disk-9"]);
    let all = format!("{guest}?purge=1&destroy-unreferenced-disks=1");
    assert_eq!(swept.task("DELETE", &all, ""), "OK");
    assert!(swept.proxmox.inventory().volumes.is_empty());
}

#[test]
fn protection_holds_until_it_is_taken_off() {
    let mut bench = risen();
    let guest = "/nodes/pve1/qemu/421";
    bench.data("PUT", &format!("{guest}/config"), "protection=1");
    let (status, answer) = bench.call("DELETE", guest, "");
    assert_eq!(status, 500);
    assert_eq!(answer["message"], "can't remove VM 421 - protection mode enabled\n");
    bench.data("PUT", &format!("{guest}/config"), "delete=protection");
    assert_eq!(bench.task("DELETE", guest, ""), "OK");
}

#[test]
fn changes_of_a_running_guest_wait_or_do_not() {
    let mut bench = risen();
    let guest = "/nodes/pve1/qemu/421";
    assert_eq!(bench.task("POST", &format!("{guest}/status/start"), ""), "OK");
    bench.data("PUT", &format!("{guest}/config"), "name=web-2&cores=2");
    let now = bench.get(&format!("{guest}/config?current=1"));
    assert_eq!((&now["name"], &now["cores"]), (&json!("web-2"), &json!(4)));
    assert_eq!(bench.get(&format!("{guest}/config"))["cores"], 2);
    assert_eq!(bench.task("POST", &format!("{guest}/config"), "memory=4096"), "OK");
    assert_eq!(bench.task("POST", &format!("{guest}/status/stop"), ""), "OK");
    let then = bench.get(&format!("{guest}/config?current=1"));
    assert_eq!((&then["memory"], &then["cores"]), (&json!("4096"), &json!(2)));
}

#[test]
fn a_card_on_a_bridge_that_is_not_there_keeps_it_off() {
    let mut bench = Bench::new();
    let odd = form(&[("vmid", "430"), ("net0", "virtio,bridge=vmbr9")]);
    assert_eq!(bench.task("POST", "/nodes/pve1/qemu", &odd), "OK");
    let exit = bench.task("POST", "/nodes/pve1/qemu/430/status/start", "");
    assert_eq!(exit, "bridge 'vmbr9' does not exist");
}

#[test]
fn lists_show_everybody() {
    let mut bench = risen();
    bench.proxmox.add_foreign_container(105, "dns", true);
    bench.proxmox.add_foreign_guest(700, "nas", "Prod", true);
    let ids = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|entry| entry["id"].to_string()).collect()
    };
    let all = bench.get("/cluster/resources?type=vm");
    assert_eq!(ids(&all), ["\"lxc/105\"", "\"qemu/421\"", "\"qemu/700\""]);
    assert_eq!(bench.get("/nodes/pve1/lxc")[0]["vmid"], "105");
    assert_eq!(bench.get("/cluster/nextid"), "100");
    let storages = bench.get("/nodes/pve1/storage");
    let names: Vec<&Value> =
        storages.as_array().unwrap().iter().map(|entry| &entry["storage"]).collect();
    assert_eq!(names, ["local", "local-lvm"]);
    assert_eq!(bench.get("/nodes/pve1/storage?content=import").as_array().unwrap().len(), 1);
    assert_eq!(bench.get("/nodes/pve1/network?type=bridge")[0]["iface"], "vmbr0");
    assert_eq!(bench.get("/nodes/pve1/status")["memory"]["total"], 64_u64 << 30);
    assert_eq!(bench.get("/nodes")[0]["status"], "online");
    assert_eq!(bench.get("/access/permissions")["/vms"]["VM.Allocate"], 1);
    let disks = bench.get("/nodes/pve1/storage/local-lvm/content?vmid=421");
    assert_eq!(disks.as_array().unwrap().len(), 4);
}

#[test]
fn a_world_survives_being_written_down_in_the_middle_of_a_task() {
    let mut bench = Bench::new();
    assert_eq!(download(&mut bench), "OK");
    bench.data("POST", "/nodes/pve1/qemu", &create_form("421"));
    let text = serde_json::to_string(&bench.proxmox).unwrap();
    let read: Proxmox = serde_json::from_str(&text).unwrap();
    assert_eq!(read, bench.proxmox);
    let effect: Effect =
        serde_json::from_str(&serde_json::to_string(&Effect::TaskEnds { number: 2 }).unwrap())
            .unwrap();
    let mut other = Bench { proxmox: read, dice: bench.dice.clone(), now: 9, ..Bench::new() };
    other.turn(|proxmox, turn| proxmox.fire(turn, effect));
    bench.now = 9;
    bench.turn(|proxmox, turn| proxmox.fire(turn, effect));
    assert_eq!(other.proxmox, bench.proxmox);
    assert!(bench.proxmox.inventory().running_tasks.is_empty());
    assert!(!text.contains("6f9f3f0e"), "the token's secret is not kept");
}

#[test]
fn a_changed_castle_file_adds_and_takes_nothing() {
    let mut bench = risen();
    let before = bench.proxmox.inventory();
    let birth = crate::proxmox::ProxmoxBirth {
        storage: "fast".to_owned(),
        bridge: "vmbr1".to_owned(),
        ..super::birth()
    };
    bench.proxmox.ensure(&birth);
    assert_eq!(bench.proxmox.inventory(), before);
    let storages = bench.get("/nodes/pve1/storage?content=images");
    assert_eq!(storages.as_array().unwrap().len(), 2);
    bench.proxmox.ensure(&birth);
    assert_eq!(bench.get("/nodes/pve1/network?type=bridge").as_array().unwrap().len(), 2);
}
