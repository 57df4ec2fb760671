//! A control plane that is gone: it is made anew under its old identity only while the others keep etcd's quorum.
//!
//! Talos itself takes the member of the same name out of etcd when an empty machine joins, but only a quorum can decide
//! that. Without one a new machine waits in vain, and stands in the way of a restored one. A worker that is not there
//! waits in vain as well where there can be no quorum any more.

use std::net::Ipv4Addr;
use std::time::Duration;

use castle_engine::Context;
use castle_model::spec::Role;
use castle_model::{CastleName, Class, Failure};
use castle_talos::{Presence, TalosAccess};
use castle_wire::failure::chain;
use futures::future::join_all;

use super::Vm;
use crate::escrow::{ESCROW, KUBECONFIG_KEY};
use crate::handed::{Life, escrowed_incarnation};
use crate::proxmox::inventory::INVENTORY;

/// How long a control plane may take to list the members of etcd: without a quorum it never does.
const LIST_DEADLINE: Duration = Duration::from_secs(3);

/// What can be done about an etcd without a quorum.
const RESTORE: &str = "a new machine could not join. Bring the lost control planes back as they were (start them, or restore their disks from a \
     backup); if their disks are gone for good, so are the castle's data: `castle down`, then `castle up`";

/// Whether the castle has stood in this life: its ways in are kept only then.
async fn has_risen(cx: &Context, life: &Life, castle: &CastleName) -> Result<bool, Failure> {
    let kept = cx.outputs().get(&ESCROW)?.0.kept().await?;
    let way = kept.get(KUBECONFIG_KEY).map(|text| escrowed_incarnation(castle, text));
    Ok(way.is_some_and(|theirs| theirs.is_ok_and(|theirs| theirs == life.incarnation)))
}

/// What one of the other control planes says of etcd.
enum Said {
    /// It is not asked, or has none yet.
    Nothing,
    /// It runs, and gives no list; why.
    Mute(String),
    /// It lists the members, which takes a quorum.
    Listed,
}

impl Vm {
    /// Refuses to make a lost control plane anew while etcd runs without a quorum, and any machine while it can have none.
    pub(super) async fn check_quorum(&self, cx: &Context, life: &Life) -> Result<(), Failure> {
        let inventory = cx.outputs().get(&INVENTORY)?;
        let declared = self.site.spec.nodes.iter().filter(|node| node.role == Role::ControlPlane);
        let others: Vec<_> = declared
            .clone()
            .filter(|node| node.vmid != self.node.vmid && inventory.ours.contains_key(&node.vmid))
            .collect();
        let half = declared.clone().count() / 2;
        let is_worker = self.node.role == Role::Worker;
        let castle = &self.site.spec.name;
        if is_worker && (others.len() > half || !has_risen(cx, life, castle).await?) {
            return Ok(());
        }
        let what = format!("make {} anew", self.named());
        let world = &self.site.world;
        let access = TalosAccess::issue(&life.bundle, world.entropy.as_ref(), world.clock.as_ref())
            .map_err(|error| Failure::new(Class::Invalid, &what, chain(&error)))?;
        let said = join_all(others.iter().map(|node| self.ask(node.address, &access))).await;
        let mut mute = Vec::new();
        for (node, said) in others.iter().zip(said) {
            match said {
                Said::Listed => return Ok(()),
                Said::Mute(why) => mute.push(format!("{} ({why})", node.name)),
                Said::Nothing => {}
            }
        }
        let risen = has_risen(cx, life, castle).await?;
        let names: Vec<String> = others.iter().map(|node| node.name.to_string()).collect();
        let (all, mut names) = (declared.count(), names.join(", "));
        if risen && others.len() <= half {
            if names.is_empty() {
                "no machine".clone_into(&mut names);
            }
            let why = format!(
                "the castle has stood, and of its {all} control planes {names} is left: etcd can not have a quorum"
            );
            return Err(Failure::new(Class::Conflict, what, why).hint(RESTORE));
        }
        if is_worker {
            return Ok(());
        }
        if !mute.is_empty() {
            let why = format!(
                "etcd has no quorum: {} runs it and can not list its members",
                mute.join(", ")
            );
            return Err(Failure::new(Class::Transient, what, why).hint(RESTORE));
        }
        if !risen {
            return Ok(());
        }
        // Nobody answers, and yet the castle has stood: its etcd is on the disks of those that are left.
        let why = format!(
            "{names} are left of {all} control planes, and do not list the members of etcd yet"
        );
        Err(Failure::new(Class::Transient, what, why).hint(RESTORE))
    }

    async fn ask(&self, address: Ipv4Addr, access: &TalosAccess) -> Said {
        let Presence::Ours(talos) = Presence::look(&self.site.world, address, Some(access)).await
        else {
            return Said::Nothing;
        };
        let Ok(services) = talos.services().await else { return Said::Nothing };
        if !services.iter().any(|service| service.id == "etcd" && service.state == "Running") {
            return Said::Nothing;
        }
        match talos.etcd_members(LIST_DEADLINE).await {
            Ok(_) => Said::Listed,
            Err(error) => Said::Mute(error.to_string()),
        }
    }
}
