//! `platform/config/<node>`: the machine has its config and answers as a member of our cluster.

use async_trait::async_trait;
use castle_engine::{Acted, Context, Pace, Step};
use castle_model::spec::{NodeSpec, SecretRef};
use castle_model::{Change, Class, Failure, Observed, Verb, Verdict};
use castle_talos::{Presence, Talos, machine_config};

use super::Realm;
use crate::handed::{LIFE, SECRETS};
use crate::proxmox::image::schematic;

/// The step of one node.
pub(super) struct Config {
    pub(super) realm: Realm,
    pub(super) node: NodeSpec,
}

impl Config {
    fn what(&self) -> String {
        format!("configure {} at {}", self.node.name, self.node.address)
    }

    fn failed(&self, error: &castle_talos::TalosError) -> Failure {
        error.failure(self.what())
    }

    fn not_ours(&self, why: &str) -> Failure {
        Failure::new(Class::Conflict, self.what(), "the machine there is not our VM")
            .evidence(why)
            .hint("nothing was sent, because the config holds the keys of the cluster; find out whose machine it is")
    }

    /// Sends the config, after a last look at whom it goes to.
    async fn send(&self, cx: &Context, talos: &Talos) -> Result<Acted, Failure> {
        if let Err(why) = self.realm.is_our_vm(cx, &self.node, talos).await? {
            return Err(self.not_ours(&why));
        }
        let spec = self.realm.spec();
        let life = cx.outputs().get(&LIFE)?;
        let schematic = schematic(spec.platform.extensions())?;
        let values = cx.outputs().get(&SECRETS)?;
        let secrets = |key: &SecretRef| values.get(key).cloned();
        let config = machine_config(spec, &self.node, &life.bundle, &schematic.id(), &secrets)?;
        for warning in &config.warnings {
            cx.notice(warning.clone());
        }
        let applied = talos.apply(&config.text).await.map_err(|error| self.failed(&error))?;
        for warning in &applied.warnings {
            cx.notice(format!("{} says: {warning}", self.node.name));
        }
        Ok(Acted::of(Change::Created).with("applied", applied.details))
    }

    /// The machine over mutual TLS: who it is and how far it has come.
    async fn proven(&self, cx: &Context, talos: &Talos) -> Result<Verdict, Failure> {
        if let Err(why) = self.realm.is_our_vm(cx, &self.node, talos).await? {
            return Ok(Verdict::Failed(self.not_ours(&why)));
        }
        let status = talos.machine_status().await.map_err(|error| self.failed(&error))?;
        Ok(match status.stage.as_str() {
            "booting" | "running" => {
                Verdict::Ready(format!("answers with our identity, stage {}", status.stage))
            }
            _ => Verdict::Waiting(status.words()),
        })
    }
}

#[async_trait]
impl Step for Config {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let why = match self.realm.look(cx, self.node.address).await? {
            Presence::Maintenance(_) => return Ok(Observed::Absent),
            Presence::Foreign { why } => return Ok(Observed::Foreign { owner: why }),
            Presence::Silent { why } => why,
            Presence::Ours(talos) => match self.proven(cx, &talos).await? {
                Verdict::Ready(evidence) => return Ok(Observed::Right { evidence }),
                Verdict::Failed(failure) => return Err(failure),
                Verdict::Waiting(why) => why,
            },
        };
        Err(Failure::new(Class::Transient, self.what(), why))
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        match self.realm.look(cx, self.node.address).await? {
            Presence::Ours(_) => Ok(Acted::of(Change::Unchanged)),
            Presence::Maintenance(talos) => self.send(cx, &talos).await,
            Presence::Foreign { why } => Err(self.not_ours(&why)),
            Presence::Silent { why } => Err(Failure::new(Class::Transient, self.what(), why)),
        }
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let what = format!("{} to answer with its new identity", self.node.name);
        cx.wait(Pace::GATE, &what, || async {
            match self.realm.look(cx, self.node.address).await? {
                Presence::Ours(talos) => self.proven(cx, &talos).await,
                // Just after the config the old listener may still answer, or nobody.
                Presence::Maintenance(_) => Ok(Verdict::waiting("still in maintenance mode")),
                Presence::Foreign { why } | Presence::Silent { why } => Ok(Verdict::waiting(why)),
            }
        })
        .await
    }
}
