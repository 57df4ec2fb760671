//! Who may what: the least privileges of a castle, each needed by some call, and how they are inherited.

use super::super::ROLE;
use super::*;

/// Every call of a castle's life that asks for a privilege, in order.
fn life(bench: &mut Bench) -> Result<(), String> {
    let fetch = form(&[("url", IMAGE_URL), ("content", "import"), ("filename", IMAGE)]);
    let guest = "/nodes/pve1/qemu/421";
    let create = form(&[
        ("vmid", "421"),
        ("name", "blue-cp-01"),
        ("description", "castle: blue"),
        ("tags", "castle;inc-1"),
        ("smbios1", "uuid=7f3a1c52-0d4e-5b6a-9c8d-0123456789ab"),
        ("ostype", "l26"),
        ("machine", "q35"),
        ("bios", "ovmf"),
        ("efidisk0", "local-lvm:1,efitype=4m,pre-enrolled-keys=0"),
        ("cpu", "host"),
        ("cores", "4"),
        ("memory", "8192"),
        ("balloon", "0"),
        ("scsihw", "virtio-scsi-pci"),
        ("scsi0", &format!("local-lvm:0,import-from=local:import/{IMAGE},discard=on")),
        ("ide2", "local-lvm:cloudinit"),
        ("ipconfig0", "ip=192.168.1.211/24,gw=192.168.1.1"),
        ("nameserver", "192.168.1.1"),
        ("net0", "virtio,bridge=vmbr0"),
        ("boot", "order=scsi0"),
        ("onboot", "1"),
        ("agent", "1"),
    ]);
    let file =
        format!("/nodes/pve1/storage/local/content/{}", escape(&format!("local:import/{IMAGE}")));
    for (method, target, form) in [
        ("GET", "/nodes/pve1/status", ""),
        ("GET", "/nodes/pve1/storage/local/content?content=import", ""),
        ("POST", "/nodes/pve1/storage/local/download-url", fetch.as_str()),
        ("POST", "/nodes/pve1/qemu", create.as_str()),
        ("GET", "/nodes/pve1/qemu/421/config", ""),
        ("PUT", "/nodes/pve1/qemu/421/resize", "disk=scsi0&size=40G"),
        ("POST", "/nodes/pve1/qemu/421/status/start", ""),
        ("GET", "/nodes/pve1/qemu/421/status/current", ""),
        ("POST", "/nodes/pve1/qemu/421/status/stop", ""),
        ("DELETE", "/nodes/pve1/qemu/421?purge=1&destroy-unreferenced-disks=1", ""),
        ("DELETE", file.as_str(), ""),
    ] {
        let (status, answer) = bench.call(method, target, form);
        if status != 200 {
            return Err(format!("{method} {target}: {status} {}", answer["message"]));
        }
        if let Some(upid) = answer["data"].as_str() {
            while bench.step() {}
            let exit = bench.exit(upid);
            assert_eq!(exit, "OK", "{method} {target}");
        }
        assert!(!target.starts_with(guest) || status == 200);
    }
    Ok(())
}

#[test]
fn a_castle_lives_on_its_least_privileges() {
    assert_eq!(life(&mut Bench::castle()), Ok(()));
    assert_eq!(life(&mut Bench::new()), Ok(()));
}

#[test]
fn every_privilege_of_the_role_is_needed() {
    for (place, privileges) in ROLE {
        for privilege in *privileges {
            // Whoever of the two lacks it, the token lacks it.
            for who in [None, Some("castle@pve"), Some("castle@pve!rehearsal")] {
                let mut bench = Bench::castle();
                let path = place.path(&birth());
                bench.proxmox.access.take(&path, who, privilege);
                let refused = life(&mut bench).unwrap_err();
                assert!(refused.contains(": 403 \"Permission check failed"), "{refused}");
                let bare = matches!(*privilege, "VM.Allocate" | "Sys.AccessNetwork");
                assert!(bare || refused.contains(privilege), "{privilege}: {refused}");
            }
        }
    }
}

#[test]
fn a_token_whose_user_alone_has_rights_sees_empty_lists_and_is_refused() {
    let mut bench = Bench::castle();
    bench.proxmox.add_foreign_guest(601, "web", "", false);
    for (place, privileges) in ROLE {
        for privilege in *privileges {
            let path = place.path(&birth());
            bench.proxmox.access.take(&path, Some("castle@pve!rehearsal"), privilege);
        }
    }
    assert_eq!(bench.get("/nodes/pve1/qemu"), json!([]));
    assert_eq!(bench.get("/cluster/resources?type=vm"), json!([]));
    assert_eq!(bench.get("/nodes/pve1/storage"), json!([]));
    assert_eq!(bench.get("/nodes/pve1/network?type=any_bridge"), json!([]));
    assert_eq!(bench.get("/access/permissions"), json!({}));
    for (method, target, form, text) in [
        ("GET", "/nodes/pve1/status", "", "Permission check failed (/nodes/pve1, Sys.Audit)"),
        ("POST", "/nodes/pve1/qemu", "vmid=610", "Permission check failed"),
        ("GET", "/nodes/pve1/qemu/601/config", "", "Permission check failed (/vms/601, VM.Audit)"),
        (
            "GET",
            "/nodes/pve1/storage/local/status",
            "",
            "Permission check failed (/storage/local, Datastore.Audit|Datastore.AllocateSpace)",
        ),
        (
            "POST",
            "/nodes/pve1/storage/local/download-url",
            "url=http%3A%2F%2Fh%2Ft.raw&content=import&filename=t.raw",
            "Permission check failed (/storage/local, Datastore.AllocateTemplate)",
        ),
    ] {
        let reply = bench.raw(&request(method, target, form));
        assert_eq!((reply.status, reply.reason.as_deref()), (403, Some(text)), "{target}");
    }
}

#[test]
fn what_is_set_deeper_replaces_what_is_inherited() {
    let mut bench = Bench::castle();
    let at = |bench: &mut Bench, path: &str| bench.get(&format!("/access/permissions?path={path}"));
    let shown = at(&mut bench, "/vms/421");
    assert_eq!(shown["/vms/421"]["VM.Allocate"], 1);
    for who in ["castle@pve", "castle@pve!rehearsal"] {
        bench.proxmox.access.grant("/vms/421", who, &["VM.Audit"]);
    }
    assert_eq!(at(&mut bench, "/vms/421"), json!({"/vms/421": {"VM.Audit": 1}}));
    assert_eq!(at(&mut bench, "/vms/422"), json!({"/vms/422": shown["/vms/421"]}));
    assert_eq!(at(&mut bench, "/storage"), json!({"/storage": {}}));
    let all = bench.get("/access/permissions");
    let paths: Vec<&String> = all.as_object().unwrap().keys().collect();
    assert_eq!(
        paths,
        [
            "/nodes/pve1",
            "/sdn/zones/localnetwork/vmbr0",
            "/storage/local",
            "/storage/local-lvm",
            "/vms",
            "/vms/421"
        ]
    );
}

#[test]
fn the_tasks_of_others_are_hidden_without_audit() {
    let mut bench = Bench::castle();
    let own = bench.data("POST", "/nodes/pve1/qemu", "vmid=421").as_str().unwrap().to_owned();
    let others = bench.turn(|proxmox, turn| {
        proxmox.fork(turn, "root@pam", super::super::task::Work::Stop { vmid: 421 })
    });
    let count =
        |bench: &mut Bench| bench.get("/nodes/pve1/tasks?source=active").as_array().unwrap().len();
    let status = |upid: &str| format!("/nodes/pve1/tasks/{}/status", escape(upid));
    assert_eq!(count(&mut bench), 2);
    assert_eq!(bench.call("GET", &status(&others), "").0, 200);
    bench.proxmox.access.take("/nodes/pve1", None, "Sys.Audit");
    assert_eq!(count(&mut bench), 1);
    assert_eq!(bench.call("GET", &status(&own), "").0, 200);
    let (code, answer) = bench.call("GET", &status(&others), "");
    assert_eq!(code, 403);
    assert_eq!(answer["message"], "Permission check failed (/nodes/pve1, Sys.Audit)\n");
    let active = bench.get("/nodes/pve1/tasks?source=active");
    assert_eq!(active[0]["user"], "castle@pve!rehearsal", "not split while it runs");
    assert_eq!(bench.get(&status(&own))["tokenid"], "rehearsal");
}
