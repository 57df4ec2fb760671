//! `platform/machine/<node>`: the machine at the node's address is known, from its first contact to its reset.

use async_trait::async_trait;
use castle_engine::{Acted, Context, Pace, Step};
use castle_model::spec::{Body, NodeSpec};
use castle_model::{Change, Class, Failure, Observed, Verb, Verdict};
use castle_talos::{Presence, Talos};

use super::identity::{Identity, MACHINE};
use crate::handed::{KEPT, LIFE, Life};
use crate::talos::Realm;

/// How long the old self of a machine that was reset may still answer, before it is asked whether it is new.
const FAREWELL: Pace = Pace::new(500, 2000, 2);

/// The step of one node.
pub(super) struct Machine {
    pub(super) realm: Realm,
    pub(super) node: NodeSpec,
}

impl Machine {
    fn what(&self) -> String {
        format!("recognise {} at {}", self.node.name, self.node.address)
    }

    /// The machine that it must be, if that is known: by the castle file, else by the first contact.
    fn known(&self, cx: &Context) -> Option<Identity> {
        let recorded = Identity::recorded(cx.state().outputs());
        let declared = match &self.node.body {
            Body::Standing(standing) => standing.uuid.as_ref(),
            Body::Vm(_) => None,
        };
        declared.map_or(recorded, |uuid| {
            Some(Identity { uuid: Some(uuid.to_ascii_lowercase()), fingerprint: None })
        })
    }

    async fn identity(&self, talos: &Talos) -> Result<Identity, Failure> {
        Identity::of(talos).await.map_err(|error| error.failure(self.what()))
    }

    /// The machine that answers, and whether it has our config.
    async fn answers(&self, cx: &Context) -> Result<Result<(Talos, bool), String>, Failure> {
        match self.realm.look(cx, self.node.address).await? {
            Presence::Maintenance(talos) => Ok(Ok((talos, false))),
            Presence::Ours(talos) => Ok(Ok((talos, true))),
            Presence::Foreign { why } => Ok(Err(format!("a machine of another cluster ({why})"))),
            Presence::Untimely { why } => Err(self.untimely(why)),
            Presence::Silent { why } => Err(Failure::new(Class::Transient, self.what(), why)
                .hint("switch the machine on; without a config it must wait in maintenance mode")),
        }
    }

    fn untimely(&self, why: String) -> Failure {
        Failure::new(Class::Transient, self.what(), why).hint(
            "compare this computer's clock with the machine's: the machine takes its time from the servers in `ntp`",
        )
    }

    fn words(identity: &Identity, configured: bool) -> String {
        let state = if configured { "with our config" } else { "in maintenance mode" };
        format!("{}, {state}", identity.words())
    }

    /// The life whose secrets are kept, for speaking to machines when nothing of this run has found it.
    fn take_up_life(&self, cx: &Context) -> Result<bool, Failure> {
        let Ok(text) = cx.outputs().get(&KEPT) else { return Ok(false) };
        let life = Life::from_escrow(&self.realm.spec().name, &text)?;
        cx.outputs().put(&LIFE, life);
        Ok(true)
    }

    /// Looks at the machine when no secrets are kept. One that we took and that has a config may still be ours, and
    /// nobody can open it any more: that is no castle that is gone.
    async fn without_keys(&self, cx: &Context) -> Result<(), Failure> {
        if Identity::recorded(cx.state().outputs()).is_none() {
            return Ok(());
        }
        let why = match Presence::look(&self.realm.world, self.node.address, None).await {
            Presence::Maintenance(_) => return Ok(()),
            Presence::Ours(_) | Presence::Untimely { .. } | Presence::Foreign { .. } => {
                "it has a config"
            }
            Presence::Silent { .. } => "it does not answer",
        };
        Err(Failure::new(
            Class::Gone,
            format!("see whether {} at {} is given back", self.node.name, self.node.address),
            format!("{why}, and the Talos secrets of this castle, which open it, are kept no more"),
        )
        .hint("put an earlier version of the secrets back and run `castle down` again, or reset the machine at its console"))
    }

    /// The machine, if it has our config and is the one that we know.
    async fn ours(&self, cx: &Context) -> Result<Option<(Talos, Identity)>, Failure> {
        let talos = match self.realm.look(cx, self.node.address).await? {
            Presence::Ours(talos) => talos,
            Presence::Maintenance(_) | Presence::Foreign { .. } => return Ok(None),
            Presence::Untimely { why } => return Err(self.untimely(why)),
            Presence::Silent { why } => {
                return Err(Failure::new(
                    Class::Transient,
                    format!("reach {} at {}", self.node.name, self.node.address),
                    why,
                )
                .hint("it still holds this castle's config and keys: switch it on and run `castle down` again; if it is gone for good, wipe its disk by hand and take it out of the castle file"));
            }
        };
        let seen = self.identity(&talos).await?;
        if let Some(known) = self.known(cx) {
            known.agrees(&seen).map_err(|why| {
                Failure::new(
                    Class::Conflict,
                    format!("reset {} at {}", self.node.name, self.node.address),
                    format!("the machine there {why}"),
                )
                .hint("castle resets no machine that it does not know: find out which one it is")
            })?;
        }
        Ok(Some((talos, seen)))
    }
}

/// What its gate proves.
pub(super) const PROVES: &str = "the machine at the node's address is known";

#[async_trait]
impl Step for Machine {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let (talos, configured) = match self.answers(cx).await? {
            Ok(answer) => answer,
            Err(owner) => return Ok(Observed::Foreign { owner }),
        };
        let seen = self.identity(&talos).await?;
        let Some(known) = self.known(cx) else { return Ok(Observed::Absent) };
        match known.agrees(&seen) {
            Ok(()) => {
                let evidence = Self::words(&seen, configured);
                cx.outputs().put_of(&MACHINE, self.node.name.as_str(), known);
                Ok(Observed::right(evidence))
            }
            // A certificate lasts until the next start only, and nothing of ours was sent yet.
            Err(_) if known.uuid.is_none() && !configured => Ok(Observed::Absent),
            Err(why) => Ok(Observed::Foreign { owner: format!("the machine there {why}") }),
        }
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let (talos, _) = self.answers(cx).await?.map_err(|owner| {
            Failure::new(Class::Conflict, self.what(), format!("it is not ours: {owner}"))
        })?;
        let seen = self.identity(&talos).await?;
        let acted = seen.record(Acted::of(Change::Unchanged));
        cx.outputs().put_of(&MACHINE, self.node.name.as_str(), seen);
        Ok(acted)
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        Ok(cx.outputs().get_of(&MACHINE, self.node.name.as_str())?.words())
    }

    async fn leftover(&self, cx: &Context) -> Result<Option<String>, Failure> {
        if !self.take_up_life(cx)? {
            return self.without_keys(cx).await.map(|()| None);
        }
        let found = self.ours(cx).await?;
        Ok(found.map(|(_, seen)| left_words(&self.node, &seen)))
    }

    async fn undo(&self, cx: &Context) -> Result<(), Failure> {
        let Some((talos, _)) = self.ours(cx).await? else { return Ok(()) };
        let what = format!("reset {} at {}", self.node.name, self.node.address);
        talos.reset().await.map_err(|error| error.failure(&what))?;
        let waited = format!("{} to wait in maintenance mode again", self.node.name);
        let back = cx.wait(FAREWELL, &waited, || async {
            Ok(match self.realm.look(cx, self.node.address).await? {
                Presence::Maintenance(_) => Verdict::Ready(()),
                Presence::Ours(_) => Verdict::waiting("it is being wiped"),
                Presence::Foreign { why }
                | Presence::Silent { why }
                | Presence::Untimely { why } => Verdict::Waiting(why),
            })
        });
        back.await?;
        if self.node.has_data_disk() {
            cx.notice(format!(
                "{} is reset; {KEPT_VOLUME}: the next castle there finds it, unless it is wiped (`talosctl wipe disk DEVICE --insecure -n {}`)",
                self.node.name, self.node.address
            ));
        }
        Ok(())
    }
}

/// What a reset leaves: Talos offers to wipe whole disks beside the system's, which could take what is not ours.
const KEPT_VOLUME: &str = "its second disk is not wiped and keeps the volume u-longhorn";

/// A machine of ours that is to be given back, in words.
fn left_words(node: &NodeSpec, seen: &Identity) -> String {
    let kept = if node.has_data_disk() { format!("; {KEPT_VOLUME}") } else { String::new() };
    format!("machine {} at {} with our config ({}){kept}", node.name, node.address, seen.words())
}

#[cfg(test)]
mod tests {
    use castle_model::spec::{Role, StandingSpec};

    use super::*;

    #[test]
    fn what_a_reset_leaves_is_told_beforehand() {
        let told = |data_disk| {
            let node = NodeSpec {
                name: "worker-01".parse().unwrap(),
                role: Role::Worker,
                address: [10, 0, 0, 4].into(),
                body: Body::Standing(StandingSpec { uuid: None, data_disk }),
            };
            let seen = Identity { uuid: Some("aa-1".to_owned()), fingerprint: None };
            left_words(&node, &seen)
        };
        assert_eq!(told(false), "machine worker-01 at 10.0.0.4 with our config (SMBIOS UUID aa-1)");
        assert!(told(true).ends_with("is not wiped and keeps the volume u-longhorn"));
    }
}
