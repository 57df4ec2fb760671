//! `platform/boot/<node>`: the machine that answers at the node's address is the one that the node is to be.

use async_trait::async_trait;
use castle_engine::{Context, Pace, Step};
use castle_model::spec::NodeSpec;
use castle_model::{Class, Failure, Observed, Verdict, VmId};
use castle_talos::{Presence, Talos};

use super::Realm;
use super::evidence::Gate;
use crate::proxmox::inventory::INVENTORY;

/// The step of one node.
pub(super) struct Boot {
    pub(super) realm: Realm,
    pub(super) node: NodeSpec,
}

impl Boot {
    async fn look(&self, cx: &Context) -> Result<Verdict, Failure> {
        let (state, talos) = match self.realm.look(cx, self.node.address).await? {
            Presence::Silent { why } | Presence::Untimely { why } => {
                return Ok(Verdict::waiting(why));
            }
            Presence::Foreign { why } => {
                let failure = self.ghost(&why);
                return Ok(Verdict::Failed(match self.running(cx) {
                    Some(vmid) => failure.hint(format!(
                        "VM {vmid}, which is ours, runs: either it answers so itself (look at its console), or another machine holds its address, too"
                    )),
                    None => failure,
                }));
            }
            Presence::Maintenance(talos) => ("in maintenance mode", talos),
            Presence::Ours(talos) => ("with our config", talos),
        };
        if let Err(why) = self.realm.is_our_machine(cx, &self.node, &talos).await? {
            return Ok(Verdict::Failed(self.ghost(&why)));
        }
        let missing = self.missing_extensions(&talos).await?;
        if missing.is_empty() {
            return Ok(Verdict::Ready(format!("answers {state}")));
        }
        let what = format!("find {} as wanted", self.node.name);
        let why = format!("its image lacks the extensions {}", missing.join(", "));
        Ok(Verdict::Failed(
            Failure::new(Class::Conflict, what, why)
                .hint(match self.node.vm() {
                    Some(_) => "the VM was made from another image: raze the castle with `castle down`, then `castle up`",
                    None => "boot the machine from an image with these extensions (https://factory.talos.dev makes it), or change `extensions` in the castle file",
                }),
        ))
    }

    /// Extensions that the castle file wants and the running image does not have. Without them a node looks well until
    /// the first volume is attached.
    async fn missing_extensions(&self, talos: &Talos) -> Result<Vec<String>, Failure> {
        let there = talos
            .extensions()
            .await
            .map_err(|error| error.failure(format!("list the extensions of {}", self.node.name)))?;
        let wanted = &self.realm.spec().platform.extensions();
        // Talos names them without their publisher.
        let name = |full: &String| full.rsplit('/').next().unwrap_or(full).to_owned();
        Ok(wanted.iter().map(name).filter(|name| !there.contains(name)).collect())
    }

    /// The number of the node's VM, if it was seen to be ours and to run before anything was done.
    fn running(&self, cx: &Context) -> Option<VmId> {
        let vmid = self.node.vm()?.vmid;
        let inventory = cx.outputs().get(&INVENTORY).ok()?;
        inventory.ours.get(&vmid).filter(|ours| ours.running).map(|_| vmid)
    }

    fn ghost(&self, why: &str) -> Failure {
        let what = format!("find {} at {}", self.node.name, self.node.address);
        Failure::new(Class::Conflict, what, "something else answers there").evidence(why).hint(
            "another machine holds the address: switch it off, or choose another address in the castle file",
        )
    }
}

/// What its gate proves.
pub(super) const PROVES: &str = "the machine answers at its address, with the wanted extensions";

#[async_trait]
impl Step for Boot {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        match self.look(cx).await? {
            Verdict::Ready(evidence) => Ok(Observed::Right { evidence }),
            Verdict::Waiting(_) => Ok(Observed::Absent),
            Verdict::Failed(failure) => Err(failure),
        }
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let gate = Gate {
            what: format!("{} to answer at {}", self.node.name, self.node.address),
            pace: Pace::TASK,
            nodes: std::slice::from_ref(&self.node),
            vip: false,
        };
        self.realm.gate(cx, gate, || self.look(cx)).await
    }
}
