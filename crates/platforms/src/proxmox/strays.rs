//! `platform/strays`: VMs of ours that the castle file no longer names. They are told on the way up, removed on
//! the way down, before the secrets of their life go.

use std::net::Ipv4Addr;
use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Context, Step};
use castle_model::spec::Role;
use castle_model::{Failure, Observed, VmId};

use super::Site;
use super::inventory::{Ours, look};
use super::vm::Vm;
use super::wanted::VmNode;

/// The step.
pub(super) struct Strays(pub(super) Arc<Site>);

impl Strays {
    async fn found(&self, cx: &Context) -> Result<Vec<(VmId, Ours)>, Failure> {
        let spec = &self.0.spec;
        let inventory = look(&self.0.client(cx)?, spec).await?;
        let declared = |vmid: &VmId| spec.nodes.iter().any(|node| node.vmid == *vmid);
        Ok(inventory.ours.into_iter().filter(|(vmid, _)| !declared(vmid)).collect())
    }
}

fn words(strays: &[(VmId, Ours)]) -> String {
    let each: Vec<String> =
        strays.iter().map(|(vmid, ours)| format!("VM {vmid} ({})", ours.mark.node)).collect();
    each.join(", ")
}

#[async_trait]
impl Step for Strays {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let strays = self.found(cx).await?;
        if strays.is_empty() {
            return Ok(Observed::right("none"));
        }
        let told = format!("{}: ours, and no longer in the castle file", words(&strays));
        cx.notice(format!("{told}; `castle down` removes it, or put it back into the castle file"));
        Ok(Observed::right(told))
    }

    async fn gate(&self, _cx: &Context) -> Result<String, Failure> {
        Ok("looked at".to_owned())
    }

    async fn leftover(&self, cx: &Context) -> Result<Option<String>, Failure> {
        let strays = self.found(cx).await?;
        Ok((!strays.is_empty()).then(|| words(&strays)))
    }

    async fn undo(&self, cx: &Context) -> Result<(), Failure> {
        for (vmid, ours) in self.found(cx).await? {
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
        Ok(())
    }
}
