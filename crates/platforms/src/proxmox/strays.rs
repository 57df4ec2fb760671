//! `platform/strays`: VMs of ours that the castle file no longer names, or that somebody moved to another node. The
//! first are told on the way up and removed on the way down, before the secrets of their life go; the others stop it.

use std::net::Ipv4Addr;
use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Context, Step};
use castle_model::spec::Role;
use castle_model::{Class, Failure, Observed, VmId};

use super::Site;
use super::inventory::{INVENTORY, Inventory, Ours, look, moved_back};
use super::vm::Vm;
use super::wanted::VmNode;

/// The step.
pub(super) struct Strays(pub(super) Arc<Site>);

/// What is astray.
struct Found {
    /// VMs of ours that the castle file does not name.
    unnamed: Vec<(VmId, Ours)>,
    /// VMs of ours on another node of the cluster, named or not, in words.
    elsewhere: Vec<(VmId, String)>,
}

impl Found {
    fn words(&self) -> String {
        let unnamed = self.unnamed.iter();
        let unnamed = unnamed.map(|(vmid, ours)| format!("VM {vmid} ({})", ours.mark.node));
        let elsewhere = self.elsewhere.iter().map(|(vmid, words)| format!("{vmid}: {words}"));
        unnamed.chain(elsewhere).collect::<Vec<_>>().join(", ")
    }
}

impl Strays {
    /// What is astray now.
    async fn found(&self, cx: &Context) -> Result<Found, Failure> {
        Ok(self.among(look(&self.0.client(cx)?, &self.0.spec).await?))
    }

    fn among(&self, inventory: Inventory) -> Found {
        let spec = &self.0.spec;
        let declared = |vmid: &VmId| spec.nodes.iter().any(|node| node.vmid == *vmid);
        Found {
            unnamed: inventory.ours.into_iter().filter(|(vmid, _)| !declared(vmid)).collect(),
            elsewhere: inventory.elsewhere.into_iter().collect(),
        }
    }
}

/// What its gate proves.
pub(super) const PROVES: &str = "VMs of this castle that its file no longer names were looked for";

#[async_trait]
impl Step for Strays {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        // No step on the way up makes or takes such a VM, so the look of `platform/inventory` holds for the whole run.
        let strays = self.among(Inventory::clone(&*cx.outputs().get(&INVENTORY)?));
        // One at a declared number on another node was a finding of the preflight.
        if strays.unnamed.is_empty() {
            return Ok(Observed::right("none"));
        }
        let told = format!("{}: ours, and no longer in the castle file", strays.words());
        let note = format!("{told}; `castle down` removes it, or put it back into the castle file");
        cx.left_so("castle", told.clone(), note);
        Ok(Observed::right(told))
    }

    async fn gate(&self, _cx: &Context) -> Result<String, Failure> {
        Ok("looked at".to_owned())
    }

    async fn leftover(&self, cx: &Context) -> Result<Option<String>, Failure> {
        let strays = self.found(cx).await?;
        let none = strays.unnamed.is_empty() && strays.elsewhere.is_empty();
        Ok((!none).then(|| strays.words()))
    }

    async fn undo(&self, cx: &Context) -> Result<(), Failure> {
        let strays = self.found(cx).await?;
        for (vmid, ours) in strays.unnamed {
            // A VM is removed in one way, declared or not; only its name and number matter for that.
            let node = VmNode {
                name: ours.mark.node,
                role: Role::Worker,
                address: Ipv4Addr::UNSPECIFIED,
                vmid,
                cores: 1,
                memory_mib: 0,
                disk_gib: 0,
                data_disk_gib: None,
            };
            Vm { site: self.0.clone(), node }.undo(cx).await?;
        }
        let home = &self.0.spec.platform.node;
        match strays.elsewhere.first() {
            None => Ok(()),
            Some((vmid, words)) => {
                let what = format!("remove VM {vmid}");
                Err(Failure::new(Class::Conflict, what, format!("it is {words}"))
                    .hint(moved_back(*vmid, home)))
            }
        }
    }
}
