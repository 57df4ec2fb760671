//! Castle's own client of Proxmox over the host's wires: every call that it knows passes the published schema.

use castle_model::spec::Trust;
use castle_model::{Class, VmId};
use castle_proxmox::image::Download;
use castle_proxmox::{Proxmox, TaskStatus, Token, Upid};

use super::life::settle;
use super::*;
use crate::inventory::Inventory;
use crate::trouble::{Breakage, Fault, Moment, ProxmoxTrouble};

const VM: VmId = VmId(421);

fn speaker(host: &Host) -> Proxmox {
    let (id, secret) = host.read(|world| {
        let birth = &world.birth.proxmox;
        (Secret::new(birth.token_id.clone()), Secret::new(birth.token_secret.clone()))
    });
    let trust = Trust::Fingerprint(host.proxmox_fingerprint().unwrap());
    Proxmox::new(&host.world(), "https://pve.lan:8006", &trust, &Token::of(&id, &secret)).unwrap()
}

async fn done(client: &Proxmox, task: Upid) {
    settle().await;
    assert_eq!(client.task_status(&task).await.unwrap(), TaskStatus::Ok, "{task}");
}

fn machine(file: &str) -> Vec<(&'static str, String)> {
    [
        ("vmid", "421"),
        ("name", "blue-cp-01"),
        ("description", "castle blue; node=cp-01 & more\n"),
        ("tags", "castle;castle-blue"),
        ("smbios1", "uuid=7f3a1c52-0d4e-5b6a-9c8d-0123456789ab"),
        ("bios", "ovmf"),
        ("efidisk0", "local-lvm:1,efitype=4m,pre-enrolled-keys=0"),
        ("cpu", "host"),
        ("memory", "8192"),
        ("scsi0", &format!("local-lvm:0,import-from=local:import/{file},discard=on")),
        ("ide2", "local-lvm:cloudinit"),
        ("ipconfig0", "ip=192.168.1.211/24,gw=192.168.1.1"),
        ("net0", "virtio,bridge=vmbr0"),
        ("boot", "order=scsi0"),
    ]
    .into_iter()
    .map(|(name, value)| (name, value.to_owned()))
    .collect()
}

#[tokio::test(start_paused = true)]
async fn every_call_of_the_client_passes_the_schema() {
    let host = memory(1);
    host.spawn_driver();
    let client = speaker(&host);
    assert_eq!(client.version().await.unwrap(), "9.2.11");
    assert_eq!(client.nodes().await.unwrap()[0].status, "online");
    assert_eq!(client.node_status("pve").await.unwrap().processors, 16);
    let storages = client.storages("pve").await.unwrap();
    assert_eq!(
        storages.iter().map(|s| s.storage.as_str()).collect::<Vec<_>>(),
        ["local", "local-lvm"]
    );
    assert!(client.storage_status("pve", "local-lvm").await.unwrap().takes("images"));
    let [bridge] = &client.bridges("pve").await.unwrap()[..] else { panic!("one bridge") };
    assert_eq!((bridge.name.as_str(), bridge.is_vnet), ("vmbr0", false));
    assert!(client.privileges("/vms/421").await.unwrap()["VM.Allocate"]);

    register(&host, SCHEMATIC).await;
    let id = host.read(|world| world.sources.schematics().next().unwrap().to_owned());
    let url = format!("https://factory.talos.dev/image/{id}/v1.13.9/nocloud-amd64.qcow2");
    let wanted = Download { url: &url, filename: "talos.qcow2", sha256: None };
    let task = client.download("pve", "local", &wanted).await.unwrap();
    assert_eq!(client.running_tasks("pve").await.unwrap(), std::slice::from_ref(&task));
    done(&client, task).await;
    let files = client.content("pve", "local", Some("import")).await.unwrap();
    assert_eq!(files[0].volid, "local:import/talos.qcow2");

    let task = client.create_vm("pve", &machine("talos.qcow2")).await.unwrap();
    done(&client, task).await;
    let config = client.vm_config("pve", VM).await.unwrap();
    assert_eq!(config.get("description"), Some("castle blue; node=cp-01 & more\n"));
    assert!(config.tags().contains("castle-blue"));
    let task = client.resize("pve", VM, "scsi0", 40).await.unwrap();
    done(&client, task).await;
    client.set_config("pve", VM, &[("cores", "2".to_owned())]).await.unwrap();
    let task = client.start("pve", VM).await.unwrap();
    done(&client, task).await;
    assert_eq!(client.vm_status("pve", VM).await.unwrap().status, "running");
    assert_eq!(client.guests().await.unwrap()[0].vmid, VM);
    let task = client.stop("pve", VM).await.unwrap();
    done(&client, task).await;
    let task = client.delete_vm("pve", VM, false).await.unwrap();
    done(&client, task).await;
    let task = client.delete_volume("pve", "local", "local:import/talos.qcow2").await.unwrap();
    done(&client, task).await;
    let left = host.read(Inventory::of).proxmox;
    assert!(left.guests.is_empty() && left.volumes.is_empty() && left.files.is_empty());
    let odd: Vec<_> =
        host.requests().into_iter().filter(|r| r.server == "proxmox" && r.status != 200).collect();
    assert!(odd.is_empty(), "{odd:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_cut_after_the_effect_leaves_the_effect() {
    let host = memory(1);
    host.spawn_driver();
    let client = speaker(&host);
    let fault = |how| {
        ProxmoxTrouble::Call(Fault {
            method: "POST".to_owned(),
            path: "/qemu".to_owned(),
            nth: 1,
            when: Moment::After,
            how,
        })
    };
    for (vmid, how) in [
        ("421", Breakage::Reset),
        ("422", Breakage::Status(596, "Connection timed out".to_owned())),
    ] {
        let before = host.now();
        host.cause(fault(how.clone()));
        let error = client.create_vm("pve", &[("vmid", vmid.to_owned())]).await.unwrap_err();
        assert_eq!(error.class(), Class::Transient, "{error}");
        assert!(
            how == Breakage::Reset || host.now() - before >= 30_000,
            "a hung daemon takes its time"
        );
        assert!(
            client.vm_config("pve", VmId(vmid.parse().unwrap())).await.is_ok(),
            "{vmid} was made"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_trouble_is_met_again_by_a_replay() {
    let folder = private_folder();
    let folder = folder.path().join("rehearsal");
    let (host, ()) = life(&folder, async |host| {
        host.cause(ProxmoxTrouble::TaskHangs { kind: "qmcreate".to_owned() });
        host.cause(ProxmoxTrouble::Overtaken { vmid: 422 });
        speaker(host).create_vm("pve", &[("vmid", "421".to_owned())]).await.unwrap();
        speaker(host).create_vm("pve", &[("vmid", "422".to_owned())]).await.unwrap_err();
    })
    .await;
    let live = host.read(Clone::clone).proxmox;
    drop(host); // Killed.
    let (host, ()) = life(&folder, async |_| ()).await;
    assert_eq!(host.read(Clone::clone).proxmox, live);
    assert_eq!(host.read(Inventory::of).proxmox.running_tasks.len(), 1);
}
