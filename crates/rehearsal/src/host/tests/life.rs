//! The life of a machine over the host's wires: raised, dialled, switched off, and the same after a replay.

use std::time::Duration;

use castle_model::spec::NodeSpec;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::io::AsyncReadExt;

use super::*;
use crate::inventory::Inventory;
use crate::turn::Listen;

const IMAGE: &str = "talos-1.13.9-c9078f9419961640.qcow2";

/// Lets the driver work through what is due.
pub(super) async fn settle() {
    tokio::time::sleep_until(tokio::time::Instant::now() + Duration::from_mins(2)).await;
}

async fn proxmox(host: &Host, method: Method, path: &str, form: &[(&str, &str)]) -> Reply {
    let (id, secret) = host.read(|world| {
        let birth = &world.birth.proxmox;
        (birth.token_id.clone(), birth.token_secret.clone())
    });
    let escape = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let pairs: Vec<String> =
        form.iter().map(|(k, v)| format!("{}={}", escape(k), escape(v))).collect();
    let token = HeaderValue::try_from(format!("PVEAPIToken={id}={secret}")).unwrap();
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    let headers = vec![
        (HeaderName::from_static("authorization"), token),
        (HeaderName::from_static("content-type"), kind),
    ];
    let path = format!("/api2/json/nodes/pve{path}");
    let client = client(host, "https://pve.lan:8006");
    let reply = client.request(method, &path, headers, pairs.join("&")).await.unwrap();
    assert_eq!(reply.status, 200, "{path}: {:?} {}", reply.reason, reply.text());
    settle().await;
    reply
}

/// Brings the image to Proxmox.
pub(super) async fn download(host: &Host) {
    register(host, SCHEMATIC).await;
    let id = host.read(|world| world.sources.schematics().next().unwrap().to_owned());
    assert!(IMAGE.contains(&id[..16]), "{id}");
    let url = format!("https://factory.talos.dev/image/{id}/v1.13.9/nocloud-amd64.qcow2");
    let wanted = [("url", url.as_str()), ("content", "import"), ("filename", IMAGE)];
    proxmox(host, Method::POST, "/storage/local/download-url", &wanted).await;
}

/// Makes a machine and switches it on.
pub(super) async fn boot(host: &Host, node: &NodeSpec) {
    let disk = format!("local-lvm:0,import-from=local:import/{IMAGE}");
    let (vmid, address) =
        (node.vm().unwrap().vmid.to_string(), format!("ip={}/24,gw=192.168.1.1", node.address));
    let machine = [
        ("vmid", vmid.as_str()),
        ("name", node.name.as_str()),
        ("memory", "8192"),
        ("scsihw", "virtio-scsi-pci"),
        ("scsi0", disk.as_str()),
        ("scsi1", "local-lvm:100"),
        ("ide2", "local-lvm:cloudinit"),
        ("net0", "virtio,bridge=vmbr0"),
        ("ipconfig0", address.as_str()),
        ("boot", "order=scsi0"),
    ];
    proxmox(host, Method::POST, "/qemu", &machine).await;
    let resize = [("disk", "scsi0"), ("size", "40G")];
    proxmox(host, Method::PUT, &format!("/qemu/{vmid}/resize"), &resize).await;
    proxmox(host, Method::POST, &format!("/qemu/{vmid}/status/start"), &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_answers_once_it_runs_and_breaks_off_when_it_stops() {
    let folder = private_folder();
    let (host, ()) = life(folder.path(), async |_| ()).await;
    host.spawn_driver();
    let address = Ipv4Addr::new(192, 168, 1, 211);
    assert_eq!(host.read(|world| world.talos.listen(address, 50000)), None);

    download(&host).await;
    boot(&host, &spec(1, 1).nodes[0]).await;
    let listen = host.read(|world| world.talos.listen(address, 50000));
    assert_eq!(listen, Some(Listen::Maintenance { vmid: 421 }));
    let refused = host.dialer().dial("192.168.1.211", 6443).await.err().map(|error| error.kind());
    assert_eq!(refused, Some(io::ErrorKind::ConnectionRefused));
    let mut open = host.dialer().dial("192.168.1.211", 50000).await.unwrap();

    proxmox(&host, Method::POST, "/qemu/421/status/stop", &[]).await;
    assert_eq!(open.read(&mut [0; 1]).await.unwrap(), 0, "the connection is gone with its machine");
    assert_eq!(host.read(|world| world.talos.listen(address, 50000)), None);

    let live = host.read(Clone::clone);
    let seen = Inventory::of(&live);
    assert_eq!(seen.proxmox.guests.len(), 1);
    assert_eq!(seen.nodes, []);
    drop(host);
    let (host, ()) = life(folder.path(), async |_| ()).await;
    let mut replayed = host.read(Clone::clone);
    replayed.opens = live.opens;
    assert_eq!(replayed, live);
}
