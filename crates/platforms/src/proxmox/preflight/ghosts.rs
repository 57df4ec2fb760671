//! Whoever answers at an address where nothing of ours is yet: a machine of an earlier life, or of somebody else.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use castle_model::Finding;
use castle_talos::{Presence, TalosAccess};
use castle_wire::World;
use futures::future::join_all;
use tokio::time::timeout;

use super::super::Site;
use super::super::inventory::Inventory;
use super::super::wanted::VmNode;

/// Ports where a machine that was a Talos node answers: its own API, and Kubernetes'.
pub(in crate::proxmox) const TALOS: u16 = 50_000;
pub(in crate::proxmox) const KUBERNETES: u16 = 6443;

/// How long nobody may answer before an address counts as silent.
const SILENCE: Duration = Duration::from_secs(4);

/// Everybody who answers where nobody should.
pub(super) async fn ghosts(site: &Site, inventory: &Inventory) -> Vec<Finding> {
    let spec = &site.spec;
    // A machine of ours that is switched off does not answer, so whoever does is another one.
    let runs = |node: &VmNode| inventory.ours.get(&node.vmid).is_some_and(|ours| ours.running);
    let mut questions: Vec<(String, Ipv4Addr, u16)> = spec
        .nodes
        .iter()
        .filter(|node| !runs(node) && !inventory.unfinished.contains(&node.vmid))
        .map(|node| (format!("address {} of {}", node.address, node.name), node.address, TALOS))
        .collect();
    if !inventory.ours.values().any(|ours| ours.running) && inventory.unfinished.is_empty() {
        let vip = spec.network.vip;
        questions.push((format!("VIP {vip}"), vip, KUBERNETES));
    }
    let answers = join_all(questions.into_iter().map(|(place, address, port)| async move {
        let who = who_answers(&site.world, address, port, None).await?.words;
        Some(Finding::new(
            place,
            format!("{who}, where nothing of ours runs yet: a ghost of an earlier life?"),
            "switch that machine off, or choose another address in the castle file; a router may remember it for some minutes",
        ))
    }))
    .await;
    answers.into_iter().flatten().collect()
}

/// Somebody who answers.
pub(in crate::proxmox) struct Answer {
    /// Who, in words.
    pub(in crate::proxmox) words: String,
    /// Whether it has proven to be of the castle whose keys we have.
    pub(in crate::proxmox) ours: bool,
}

/// Who is there. One that refuses the port is there, too. With the castle's keys, its own machines are told from others.
pub(in crate::proxmox) async fn who_answers(
    world: &World,
    address: Ipv4Addr,
    port: u16,
    access: Option<&TalosAccess>,
) -> Option<Answer> {
    let host = address.to_string();
    let others = |words: String| Some(Answer { words, ours: false });
    match timeout(SILENCE, world.dialer.dial(&host, port)).await {
        Ok(Ok(_)) if port == TALOS => {}
        Ok(Ok(_)) => return others(format!("something answers on port {port}")),
        // At a loopback address it is this computer that refuses, and no machine.
        Ok(Err(error))
            if error.kind() == io::ErrorKind::ConnectionRefused && !address.is_loopback() =>
        {
            return others(format!("a machine is there and refuses port {port}"));
        }
        Ok(Err(_)) | Err(_) => return None,
    }
    others(match Presence::look(world, address, access).await {
        Presence::Ours(_) | Presence::Untimely { .. } if access.is_some() => {
            let words = "a machine with this castle's own config answers".to_owned();
            return Some(Answer { words, ours: true });
        }
        Presence::Maintenance(_) | Presence::Ours(_) => {
            "a machine in Talos' maintenance mode answers".to_owned()
        }
        Presence::Foreign { .. } | Presence::Untimely { .. } => {
            "a Talos machine answers that has a config of another cluster".to_owned()
        }
        Presence::Silent { why } => format!("something that is not Talos answers ({why})"),
    })
}
