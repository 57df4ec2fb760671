//! `platform/preflight`: everything that would stop the birth later is found now, all of it at once.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use castle_engine::{Context, Step};
use castle_model::{Class, Failure, Observed};
use castle_proxmox::{HostStatus, NodeEntry, Storage};
use futures::future::join_all;
use tokio::time::timeout;

use super::Site;
use super::inventory::{INVENTORY, Inventory};
use super::wanted::{VmNode, Wanted};

/// Ports where a machine that was a Talos node answers: its own API, and Kubernetes'.
const TALOS: u16 = 50_000;
const KUBERNETES: u16 = 6443;

/// How long nobody may answer before an address counts as silent.
const SILENCE: Duration = Duration::from_secs(4);

/// Bytes in a MiB and a GiB.
const MIB: u64 = 1024 * 1024;
const GIB: u64 = 1024 * MIB;

/// What the host says about itself.
#[derive(Debug, Clone)]
struct Host {
    nodes: Vec<NodeEntry>,
    status: Option<HostStatus>,
    storages: Vec<Storage>,
    bridges: Vec<String>,
}

/// The step.
pub(super) struct Preflight(pub(super) Arc<Site>);

#[async_trait]
impl Step for Preflight {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let spec = &self.0.spec;
        let inventory = cx.outputs().get(&INVENTORY)?;
        let what = format!("check the host {} and the addresses", spec.platform.node);
        let host = self.host(cx).await?;
        let mut findings = judge(spec, &inventory, &host);
        findings.extend(ghosts(&self.0, &inventory).await);
        if let Some(low) = short_of_space(spec, &inventory, &host.storages) {
            cx.notice(low);
        }
        if findings.is_empty() {
            let free = host.status.map_or(0, |status| status.memory_free / MIB);
            return Ok(Observed::right(format!(
                "{} online, {free} MiB of memory free, addresses silent or ours",
                spec.platform.node
            )));
        }
        Err(Failure::new(Class::Conflict, what, findings.join("; "))
            .hint("nothing was made yet: mend what is named, then run the same command again"))
    }

    async fn gate(&self, _cx: &Context) -> Result<String, Failure> {
        Ok("the host and the addresses were checked".to_owned())
    }
}

impl Preflight {
    async fn host(&self, cx: &Context) -> Result<Host, Failure> {
        let client = self.0.client(cx)?;
        let node = &self.0.spec.platform.node;
        let failed = |what: &str, error: castle_proxmox::ProxmoxError| {
            error.failure(format!("{what} {node}"))
        };
        let nodes = client.nodes().await.map_err(|e| failed("look for the node", e))?;
        let online = nodes.iter().any(|entry| entry.node == *node && entry.status == "online");
        if !online {
            let (status, storages, bridges) = (None, Vec::new(), Vec::new());
            return Ok(Host { nodes, status, storages, bridges });
        }
        let status = client.node_status(node).await.map_err(|e| failed("read the memory of", e))?;
        let storages =
            client.storages(node).await.map_err(|e| failed("list the storages of", e))?;
        let bridges = client.bridges(node).await.map_err(|e| failed("list the bridges of", e))?;
        Ok(Host { nodes, status: Some(status), storages, bridges })
    }
}

/// Everything about the host that would stop the birth.
fn judge(spec: &Wanted, inventory: &Inventory, host: &Host) -> Vec<String> {
    let platform = &spec.platform;
    let mut findings = Vec::new();
    for node in &spec.nodes {
        if let Some(whose) = inventory.foreign.get(&node.vmid) {
            findings.push(format!("the number {} of {} is taken by {whose}", node.vmid, node.name));
        }
    }
    let Some(status) = &host.status else {
        let known: Vec<&str> = host.nodes.iter().map(|entry| entry.node.as_str()).collect();
        let state = host.nodes.iter().find(|entry| entry.node == platform.node);
        findings.push(match state {
            Some(entry) => format!("the node {} is {}", platform.node, entry.status),
            None => format!("there is no node {} (there are: {})", platform.node, known.join(", ")),
        });
        return findings;
    };
    findings.extend(storage_finding(&host.storages, &platform.storage, "images"));
    findings.extend(storage_finding(&host.storages, &platform.image_storage, "import"));
    if !host.bridges.contains(&platform.bridge) {
        findings.push(format!(
            "there is no bridge {} (there are: {})",
            platform.bridge,
            host.bridges.join(", ")
        ));
    }
    let stopped = |node: &&VmNode| !inventory.ours.get(&node.vmid).is_some_and(|ours| ours.running);
    let wanted: u64 = spec.nodes.iter().filter(stopped).map(|node| node.memory_mib).sum();
    if wanted > status.memory_free / MIB {
        findings.push(format!(
            "{wanted} MiB of memory are needed, {} MiB of {} MiB are free",
            status.memory_free / MIB,
            status.memory_total / MIB
        ));
    }
    let widest = spec.nodes.iter().map(|node| u64::from(node.cores)).max().unwrap_or(0);
    if status.processors > 0 && widest > status.processors {
        findings
            .push(format!("a VM wants {widest} processors, the host has {}", status.processors));
    }
    findings
}

fn storage_finding(storages: &[Storage], name: &str, content: &str) -> Option<String> {
    let Some(storage) = storages.iter().find(|storage| storage.storage == name) else {
        let known: Vec<&str> = storages.iter().map(|s| s.storage.as_str()).collect();
        return Some(format!("there is no storage {name} (there are: {})", known.join(", ")));
    };
    if !storage.enabled || !storage.active {
        return Some(format!("the storage {name} is switched off or cannot be reached"));
    }
    (!storage.takes(content)).then(|| {
        format!("the storage {name} does not take `{content}` (it takes {})", storage.content)
    })
}

/// Thin storages may be promised more than they have, so this is told and not refused.
fn short_of_space(spec: &Wanted, inventory: &Inventory, storages: &[Storage]) -> Option<String> {
    let storage = storages.iter().find(|storage| storage.storage == spec.platform.storage)?;
    let missing = |node: &&VmNode| !inventory.ours.contains_key(&node.vmid);
    let wanted: u64 = spec
        .nodes
        .iter()
        .filter(missing)
        .map(|node| node.disk_gib + node.data_disk_gib.unwrap_or(0))
        .sum();
    (wanted > storage.avail / GIB).then(|| {
        format!(
            "disks of {wanted} GiB are promised on {}, which has {} GiB left",
            storage.storage,
            storage.avail / GIB
        )
    })
}

/// Whoever answers at an address where nothing of ours is yet.
async fn ghosts(site: &Site, inventory: &Inventory) -> Vec<String> {
    let spec = &site.spec;
    let mut questions: Vec<(String, Ipv4Addr, u16)> = spec
        .nodes
        .iter()
        .filter(|node| {
            !inventory.ours.contains_key(&node.vmid) && !inventory.unfinished.contains(&node.vmid)
        })
        .map(|node| (format!("the address {} of {}", node.address, node.name), node.address, TALOS))
        .collect();
    if inventory.ours.is_empty() && inventory.unfinished.is_empty() {
        let vip = spec.network.vip;
        questions.push((format!("the VIP {vip}"), vip, KUBERNETES));
    }
    let answers = join_all(questions.into_iter().map(|(name, address, port)| async move {
        somebody_answers(site, address, port).await.then(|| {
            format!("somebody answers at {name}, where nothing of ours is yet (a ghost of an earlier life?)")
        })
    }))
    .await;
    answers.into_iter().flatten().collect()
}

/// Whether a host is there. One that refuses the port is there, too.
async fn somebody_answers(site: &Site, address: Ipv4Addr, port: u16) -> bool {
    let host = address.to_string();
    match timeout(SILENCE, site.world.dialer.dial(&host, port)).await {
        Ok(Ok(_)) => true,
        Ok(Err(error)) => error.kind() == io::ErrorKind::ConnectionRefused,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage(name: &str, content: &str) -> Storage {
        serde_json::from_value(serde_json::json!({
            "storage": name, "content": content, "enabled": 1, "active": 1, "avail": 10 * GIB,
        }))
        .unwrap()
    }

    #[test]
    fn storages_are_judged_by_what_they_take() {
        let storages = [storage("local", "iso,import"), storage("local-lvm", "images,rootdir")];
        assert_eq!(storage_finding(&storages, "local", "import"), None);
        assert_eq!(storage_finding(&storages, "local-lvm", "images"), None);
        assert_eq!(
            storage_finding(&storages, "local", "images").as_deref(),
            Some("the storage local does not take `images` (it takes iso,import)")
        );
        assert_eq!(
            storage_finding(&storages, "ceph", "images").as_deref(),
            Some("there is no storage ceph (there are: local, local-lvm)")
        );
        let mut off = storage("local", "import");
        off.active = false;
        assert!(storage_finding(&[off], "local", "import").unwrap().contains("switched off"));
    }
}
