//! `platform/preflight`: everything that would stop the birth later is found now, all of it at once.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Context, Step};
use castle_model::{Class, Failure, Observed};
use castle_proxmox::{Bridge, HostStatus, NodeEntry, ProxmoxError, Storage, Volume};

use self::ghosts::ghosts;
use self::judge::{MIB, judge, notices};
use super::Site;
use super::image::volume;
use super::inventory::INVENTORY;
use super::privileges::{Held, Place};

pub(super) mod ghosts;
mod judge;
#[cfg(test)]
mod tests;

/// What the host says about itself; nothing where the token may not look, which is a finding of its own.
#[derive(Debug, Clone, Default)]
struct Host {
    held: Held,
    nodes: Vec<NodeEntry>,
    status: Option<HostStatus>,
    storages: Vec<Storage>,
    bridges: Vec<Bridge>,
    /// What lies on the storage of disks.
    disks: Vec<Volume>,
    /// Whether the Talos image is there already.
    image: bool,
}

/// The step.
pub(super) struct Preflight(pub(super) Arc<Site>);

/// What its gate proves.
pub(super) const PROVES: &str =
    "the host has what the castle needs, and its numbers and addresses are free";

#[async_trait]
impl Step for Preflight {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let spec = &self.0.spec;
        let inventory = cx.outputs().get(&INVENTORY)?;
        let host = self.host(cx).await?;
        let mut findings = judge(spec, &inventory, &host);
        findings.extend(ghosts(&self.0, &inventory).await);
        for notice in notices(spec, &inventory, &host) {
            cx.notice(notice);
        }
        if findings.is_empty() {
            let free = host.status.map_or(0, |status| status.memory_free / MIB);
            return Ok(Observed::right(format!(
                "{} online, {free} MiB of memory free, addresses silent or ours",
                spec.platform.node
            )));
        }
        let what = format!("check the host {} and the addresses", spec.platform.node);
        let why = match findings.len() {
            1 => "one thing stands in the way".to_owned(),
            number => format!("{number} things stand in the way"),
        };
        Err(Failure::new(Class::Conflict, what, why)
            .findings(findings)
            .hint("nothing was made yet: mend what is named, then run the same command again"))
    }

    async fn gate(&self, _cx: &Context) -> Result<String, Failure> {
        Ok("the host and the addresses were checked".to_owned())
    }
}

impl Preflight {
    async fn host(&self, cx: &Context) -> Result<Host, Failure> {
        let client = self.0.client(cx)?;
        let platform = &self.0.spec.platform;
        let node = &platform.node;
        let failed = |what: &str, error: ProxmoxError| error.failure(format!("{what} {node}"));
        let held = Held::look(&client, &self.0.spec).await?;
        let nodes = client.nodes().await.map_err(|e| failed("look for the node", e))?;
        let online = nodes.iter().any(|entry| entry.node == *node && entry.status == "online");
        let mut host = Host { held, nodes, ..Host::default() };
        if !online {
            return Ok(host);
        }
        if host.held.has(Place::Node, "Sys.Audit") {
            let status = client.node_status(node).await;
            host.status = Some(status.map_err(|e| failed("read the memory of", e))?);
        }
        host.storages =
            client.storages(node).await.map_err(|e| failed("list the storages of", e))?;
        host.bridges = client.bridges(node).await.map_err(|e| failed("list the bridges of", e))?;
        if host.bridges.iter().any(|found| found.name == platform.bridge && found.is_vnet) {
            host.held.look_at_vnet(&client, &platform.bridge).await?;
        }
        if host.storages.iter().any(|found| found.storage == platform.storage && found.active) {
            let disks = client.content(node, &platform.storage, Some("images")).await;
            host.disks = disks.map_err(|e| failed("list the disks on", e))?;
        }
        let images = &platform.image_storage;
        let is_usable = |found: &Storage| found.storage == *images && found.active;
        if host.held.is_whole(Place::Images) && host.storages.iter().any(is_usable) {
            let wanted = volume(&self.0.spec)?;
            let files = client.content(node, images, Some("import")).await;
            let files = files.map_err(|e| failed("list the images on", e))?;
            host.image = files.iter().any(|file| file.volid == wanted);
        }
        Ok(host)
    }
}
