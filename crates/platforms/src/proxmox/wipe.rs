//! The emergency: every guest of the castle by its number *and* its mark, wherever in the cluster it stands, without
//! anything that our records could tell.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use castle_engine::wait::until;
use castle_engine::{Context, Graph, Pace, Step};
use castle_model::{Class, Failure, Observed, Spec, StepDecl, StepId, Verdict, VmId};
use castle_proxmox::{Config, GuestKind, Proxmox};
use castle_wire::World;
use futures::future::BoxFuture;
use serde::Serialize;
use tokio::time::Instant;

use super::attached::{Attached, Held};
use super::census::{Census, Met, Whose, is_near};
use super::disks::{Disk, Loose, bearing, borrowed, config_of, number_of};
use super::half_made;
use super::removal::Removal;
use super::shape::DATA_DISK;
use super::wanted::Wanted;
use super::{Site, enter, image_id, task, vm_id};
use crate::audit::patiently;
use crate::handed::SecretValues;
use crate::ids::secrets_escrow;

/// What becomes of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "fate", rename_all = "kebab-case")]
pub enum Fate {
    /// It is the castle's, and goes.
    Goes,
    /// It is not proven to be the castle's, and goes because somebody named it.
    Forced,
    /// It stays; why.
    Stays {
        /// In words.
        why: String,
    },
}

/// A guest in the castle's range, or with its mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// Its number.
    pub vmid: VmId,
    /// What it is, with its name.
    pub what: String,
    /// The node that carries it.
    pub node: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whose it is, in words.
    pub owner: String,
    /// The disks that die with it, with their sizes in MiB.
    pub disks: Vec<(String, u64)>,
    /// Those of them that hold what the workloads have written.
    pub data: Vec<String>,
    /// Volumes that stay: those of another guest that are attached to it, and those that bear its number and another
    /// guest has.
    pub spared: Vec<String>,
    /// What becomes of it.
    #[serde(flatten)]
    pub fate: Fate,
    /// The step that removes it: that of its node, if it is one of the castle file's.
    pub step: StepId,
    /// The guest as it was met, by which it is known again.
    #[serde(skip)]
    met: Met,
}

impl Hit {
    /// A guest whose disks were not looked for.
    fn of(spec: &Wanted, met: Met, forced: &BTreeSet<VmId>) -> Self {
        let vmid = met.guest.vmid;
        Self {
            vmid,
            what: met.named(),
            node: met.guest.node.clone(),
            tags: met.tags(),
            owner: met.whose_words(),
            disks: Vec::new(),
            data: Vec::new(),
            spared: Vec::new(),
            fate: fate(spec, &met, forced.contains(&vmid)),
            step: step_of(spec, &met),
            met,
        }
    }

    /// Whether it is to go.
    #[must_use]
    pub fn goes(&self) -> bool {
        !matches!(self.fate, Fate::Stays { .. })
    }

    /// Whether it stays although it is the castle's, or may be: then what opens it is needed.
    #[must_use]
    pub fn is_missed(&self) -> bool {
        !self.goes()
            && match &self.met.whose {
                Whose::Ours(_) | Whose::InTheMaking | Whose::HalfMade(_) => true,
                Whose::Doubtful { near, .. } => *near,
                Whose::Unseen { maybe, .. } => *maybe,
                Whose::Castle(_) | Whose::Somebody(_) => false,
            }
    }

    /// The step that removes it.
    #[must_use]
    pub fn id(&self) -> StepId {
        self.step.clone()
    }
}

/// Lists every guest in the range or with the castle's mark, and what would become of it. Numbers in `forced` go although
/// nothing proves them to be the castle's. What is just being made is waited for, which `waits` is told.
///
/// # Errors
/// If Proxmox does not answer, or the token may not see VMs.
pub async fn list(
    spec: &Spec,
    world: &World,
    secrets: &SecretValues,
    forced: &BTreeSet<VmId>,
    mut waits: impl FnMut(&str) + Send,
) -> Result<Vec<Hit>, Failure> {
    let Some(wanted) = Wanted::of(spec) else {
        let why = "its machines are not guests of a Proxmox: they stand by themselves";
        return Err(Failure::new(Class::Invalid, "wipe the castle", why)
            .hint("`castle down` resets them and gives them back"));
    };
    let client = enter(world, &wanted.platform, secrets)?;
    let census = settled(&client, &wanted, &mut waits).await?;
    let look = || Attached::look(&client, None);
    let attached = patiently("look for the disks of guests", &mut waits, look).await?;
    let mut hits = Vec::new();
    for met in census.met {
        let held = attached.held(met.guest.vmid, &met.config);
        let look = || hit(&client, &wanted, (met.clone(), &held), forced);
        hits.push(patiently("look for the disks of a guest", &mut waits, look).await?);
    }
    Ok(hits)
}

/// How long is waited for guests that are just being made: whose they are is known only then.
const MAKING: Duration = Duration::from_mins(3);

/// Every guest, once none is just being made; as they are, if that takes too long.
async fn settled(
    client: &Proxmox,
    spec: &Wanted,
    mut waits: impl FnMut(&str) + Send,
) -> Result<Census, Failure> {
    let take = || Census::take(client, spec);
    let last = || Census::take_what_answers(client, spec);
    let census = match patiently("look at every guest", &mut waits, take).await {
        Ok(census) => census,
        // One guest that can not be looked at stops nobody from wiping the others.
        Err(_) => patiently("look at every guest", &mut waits, last).await?,
    };
    if !census.is_growing() {
        return Ok(census);
    }
    let what = "guests in the castle's range that are just being made";
    let grown = until(what, Pace::TASK, Instant::now() + MAKING, &mut waits, || async {
        let census = take().await?;
        Ok(if census.is_growing() { Verdict::waiting(what) } else { Verdict::Ready(census) })
    });
    match grown.await {
        Ok(census) => Ok(census),
        Err(failure) if failure.is_transient() => {
            patiently("look at every guest", &mut waits, last).await
        }
        Err(failure) => Err(failure),
    }
}

async fn hit(
    client: &Proxmox,
    spec: &Wanted,
    (met, held): (Met, &Held),
    forced: &BTreeSet<VmId>,
) -> Result<Hit, Failure> {
    let vmid = met.guest.vmid;
    if matches!(met.whose, Whose::Unseen { .. }) {
        return Ok(Hit::of(spec, met, forced));
    }
    let loose = Loose::look(client, &met.guest.node, vmid, &met.config).await?;
    let mut disks = bearing(client, &met.guest.node, |number| number == vmid).await?;
    let stays = |volid: &String| {
        loose.lent.iter().any(|(had, _)| had == volid)
            || held.0.iter().any(|one| one.volid == *volid)
            || (loose.free.contains(volid) && !loose.may_go())
    };
    disks.retain(|disk| !stays(&disk.volid));
    let spared = borrowed(vmid, &met.config)
        .into_iter()
        .map(|(volid, owner)| format!("{volid} of guest {owner}"))
        .chain(held.staying())
        .chain(loose.staying());
    let stays = held.why().map(|why| Fate::Stays { why: format!("{why}; {}", held.cure()) });
    let whole = Hit::of(spec, met, forced);
    let fate = stays.filter(|_| whole.goes()).unwrap_or_else(|| whole.fate.clone());
    Ok(Hit {
        fate,
        data: data_of(&whole.met, &disks),
        disks: disks.into_iter().map(|disk| (disk.volid, disk.size >> 20)).collect(),
        spared: spared.collect(),
        ..whole
    })
}

/// Which of its disks hold what the workloads have written: of a machine of ours, the second one.
fn data_of(met: &Met, disks: &[Disk]) -> Vec<String> {
    let volumes = met.config.volumes();
    let second = volumes.get(DATA_DISK).filter(|_| met.is_ours());
    second
        .filter(|volid| disks.iter().any(|disk| disk.volid == **volid))
        .map(|volid| (*volid).to_owned())
        .into_iter()
        .collect()
}

fn step_of(spec: &Wanted, met: &Met) -> StepId {
    let vmid = met.guest.vmid;
    match &met.whose {
        Whose::Ours(mark) if spec.nodes.iter().any(|n| n.name == mark.node && n.vmid == vmid) => {
            vm_id(&mark.node)
        }
        _ => StepId::of("platform", "wipe", &vmid.to_string()),
    }
}

fn fate(spec: &Wanted, met: &Met, forced: bool) -> Fate {
    let vmid = met.guest.vmid;
    let force = format!("`--force-foreign {vmid}` removes it");
    let why = match &met.whose {
        Whose::Unseen { .. } => {
            "castle deletes nothing that it can not look at: bring its node back, and run the same command again".to_owned()
        }
        _ if met.config.get("protection") == Some("1") => {
            let command = if met.guest.kind == GuestKind::Vm { "qm" } else { "pct" };
            format!(
                "somebody has protected it in Proxmox; if it may go, take that off ({command} set {vmid} --protection 0)"
            )
        }
        Whose::Ours(_) if is_near(spec, vmid) => return Fate::Goes,
        _ if forced => return Fate::Forced,
        Whose::Ours(_) => {
            format!("its number is not in the castle's range; `castle down`, or {force}")
        }
        Whose::HalfMade(_) => format!("Proxmox lets root alone pass over that lock; {}", half_made::cure(vmid)),
        Whose::InTheMaking => {
            "a task is still making it: wait for its end, or end it in Proxmox, and run the same command again".to_owned()
        }
        Whose::Doubtful { .. } => format!("nothing proves it to be this castle's; {force}"),
        Whose::Castle(_) | Whose::Somebody(_) => format!("it is not this castle's; {force}"),
    };
    Fate::Stays { why }
}

/// Adds a step for each guest that goes. They come before what all machines of a castle share, as its VMs do, and before
/// what only our journals know of is forgotten.
pub fn add(graph: &mut Graph, spec: &Spec, world: &World, hits: &[Hit], forgotten: &[StepId]) {
    let Some(wanted) = Wanted::of(spec) else { return };
    for id in forgotten {
        let decl = StepDecl::new(id.clone(), id.to_string(), "vm", "it went with the guests")
            .contained("the guests");
        graph.add(decl, Recorded);
    }
    let site = Arc::new(Site { spec: wanted, world: world.clone(), client: OnceLock::new() });
    let known: BTreeSet<StepId> = graph.decls().iter().map(|decl| decl.id.clone()).collect();
    let shared = [image_id(), secrets_escrow()].into_iter().filter(|id| known.contains(id));
    let needs: Vec<StepId> = shared.chain(forgotten.iter().cloned()).collect();
    for hit in hits.iter().filter(|hit| hit.goes()) {
        let title = format!("{} on {}", hit.what, hit.node);
        let decl = StepDecl::new(hit.id(), title, "vm", "the guest is gone")
            .needs(needs.clone())
            .weight(5000)
            .undo();
        graph.add(decl, Wipe { site: site.clone(), met: hit.met.clone() });
    }
}

/// A step that only our journals know: it is forgotten, and never carried out.
struct Recorded;

#[async_trait]
impl Step for Recorded {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        Err(Failure::bug(format!("look at {}", cx.step()), "it is only to be forgotten"))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        Err(Failure::bug(format!("prove {}", cx.step()), "it is only to be forgotten"))
    }
}

/// The step that removes one guest.
struct Wipe {
    site: Arc<Site>,
    met: Met,
}

impl Wipe {
    fn named(&self) -> String {
        format!("{} on {}", self.met.named(), self.met.guest.node)
    }

    /// The guest's configuration, if it is still there; an error if another one has its number.
    async fn look(&self, client: &Proxmox) -> Result<Option<Config>, Failure> {
        let Some(config) = config_of(client, &self.met.guest).await? else { return Ok(None) };
        let identity = |config: &Config| {
            let keys = ["name", "hostname", "smbios1", "description", "tags"];
            keys.map(|key| config.get(key).map(str::to_owned))
        };
        if identity(&config) == identity(&self.met.config) {
            return Ok(Some(config));
        }
        let why = "another guest has its number, or somebody has changed it since it was listed";
        Err(Failure::new(Class::Conflict, format!("remove {}", self.named()), why)
            .hint("run the same command again, and look at the list"))
    }

    /// Disks of the number that no guest has, once the guest is gone.
    async fn orphans(&self, client: &Proxmox) -> Result<Vec<String>, Failure> {
        let vmid = self.met.guest.vmid;
        let disks = bearing(client, &self.met.guest.node, |number| number == vmid).await?;
        let volids: Vec<String> = disks.into_iter().map(|disk| disk.volid).collect();
        let used = super::disks::users(client, &volids).await?;
        let free = |volid: &String| {
            number_of(volid) == Some(vmid) && !used.had.iter().any(|(had, _)| had == volid)
        };
        Ok(volids.into_iter().filter(free).collect())
    }
}

#[async_trait]
impl Step for Wipe {
    async fn observe(&self, _cx: &Context) -> Result<Observed, Failure> {
        Err(Failure::bug(format!("make {}", self.named()), "a wipe makes nothing"))
    }

    async fn gate(&self, _cx: &Context) -> Result<String, Failure> {
        Err(Failure::bug(format!("make {}", self.named()), "a wipe makes nothing"))
    }

    async fn leftover(&self, cx: &Context) -> Result<Option<String>, Failure> {
        let client = self.site.client(cx)?;
        if self.look(&client).await?.is_some() {
            return Ok(Some(self.named()));
        }
        let orphans = self.orphans(&client).await?;
        Ok((!orphans.is_empty())
            .then(|| format!("{}: gone, but for {}", self.named(), orphans.join(", "))))
    }

    async fn undo(&self, cx: &Context) -> Result<(), Failure> {
        let client = self.site.client(cx)?;
        let guest = &self.met.guest;
        task::settle(cx, &client).await?;
        task::idle(cx, &client, (&guest.node, guest.vmid), &self.named()).await?;
        let Some(config) = self.look(&client).await? else { return Ok(()) };
        let removal = Removal {
            client: &client,
            node: &guest.node,
            vmid: guest.vmid,
            kind: guest.kind,
            named: self.named(),
        };
        let still = || -> BoxFuture<'_, Result<bool, Failure>> {
            Box::pin(async { Ok(self.look(&client).await?.is_some()) })
        };
        removal.carry_out(cx, &config, &still).await
    }
}
