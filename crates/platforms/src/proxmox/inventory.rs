//! `platform/inventory`: which guests there are where the castle's machines stand or will stand, and whose.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Context, Key, Step};
use castle_model::{Class, Failure, Incarnation, Observed, VmId};
use castle_proxmox::{Guest, GuestKind, Proxmox};
use futures::stream::{self, StreamExt as _};

use super::Site;
use super::half_made::{Abandoned, abandoned};
use super::mark::{Mark, Owner, castle_tag, owner};
use super::privileges::Held;
use super::recognise::Unproven;
use super::task::{changing, in_the_making};
use super::wanted::Wanted;
use crate::handed::{KEPT, escrowed_incarnation};

/// So many guests are looked at at once: a Proxmox node has three processes that answer.
pub(super) const AT_ONCE: usize = 6;

/// What was found.
pub const INVENTORY: Key<Inventory> = Key::new("platform/inventory");

/// The guests in the castle's range of numbers and at its declared numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    /// VMs of this castle, proven, on the declared Proxmox node.
    pub ours: BTreeMap<VmId, Ours>,
    /// VMs at declared numbers that are just being made, so that nothing can be said of them yet.
    pub unfinished: Vec<VmId>,
    /// VMs at declared numbers that a task of ours began to make and left half made, in words.
    pub half_made: BTreeMap<VmId, String>,
    /// VMs of this castle that a task is changing, with the kind of task.
    pub busy: BTreeMap<VmId, String>,
    /// Everything else, in words.
    pub foreign: BTreeMap<VmId, String>,
    /// VMs of this castle, proven, that somebody has moved to another node, in words. They are among the foreign, too:
    /// what castle does, it does on the declared node.
    pub elsewhere: BTreeMap<VmId, String>,
    /// VMs at declared numbers on the declared node that bear no valid mark; they are among the foreign, too.
    pub unproven: BTreeMap<VmId, Unproven>,
    /// The memory that all but the declared VMs on the declared Proxmox node may take while they run, in bytes.
    pub others_memory: u64,
    /// Whether the token sees the declared VMs alone.
    pub short_sighted: bool,
}

/// A VM of this castle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ours {
    /// What its mark says.
    pub mark: Mark,
    /// Whether it is switched on.
    pub running: bool,
}

impl Inventory {
    /// The one life that all VMs of ours belong to, if there are any.
    ///
    /// # Errors
    /// A conflict, if they belong to several.
    pub fn incarnation(&self) -> Result<Option<&Incarnation>, Failure> {
        let mut lives: BTreeMap<&Incarnation, Vec<String>> = BTreeMap::new();
        for (vmid, ours) in &self.ours {
            lives.entry(&ours.mark.incarnation).or_default().push(vmid.to_string());
        }
        if lives.len() > 1 {
            let each: Vec<String> =
                lives.iter().map(|(life, vms)| format!("{life}: VM {}", vms.join(", "))).collect();
            return Err(Failure::new(
                Class::Conflict,
                "tell which life the castle is in",
                format!("its VMs belong to {} lives ({})", lives.len(), each.join("; ")),
            )
            .hint("`castle down` removes all of them; then raise it anew"));
        }
        Ok(lives.into_keys().next())
    }

    /// Takes in what was found of one guest.
    fn add(&mut self, one: Self) {
        self.ours.extend(one.ours);
        self.unfinished.extend(one.unfinished);
        self.half_made.extend(one.half_made);
        self.foreign.extend(one.foreign);
        self.elsewhere.extend(one.elsewhere);
        self.unproven.extend(one.unproven);
    }

    /// What was found, in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut parts = vec![format!("{} of ours", self.ours.len())];
        if !self.unfinished.is_empty() {
            parts.push(format!("{} being made", self.unfinished.len()));
        }
        if !self.half_made.is_empty() {
            parts.push(format!("{} half made", self.half_made.len()));
        }
        if !self.foreign.is_empty() {
            parts.push(format!("{} of others", self.foreign.len()));
        }
        parts.join(", ")
    }
}

/// Looks at every guest that the castle could meet.
///
/// # Errors
/// If Proxmox does not answer, or the token may not see VMs: an empty list proves nothing then.
pub async fn look(client: &Proxmox, spec: &Wanted) -> Result<Inventory, Failure> {
    let short_sighted = sight(client, spec).await?;
    look_around(client, spec, Inventory { short_sighted, ..Inventory::default() }).await
}

/// Whether the token sees the declared VMs alone.
///
/// # Errors
/// If it may not even see those: an empty list proves nothing then.
pub(super) async fn sight(client: &Proxmox, spec: &Wanted) -> Result<bool, Failure> {
    let what = format!("list the guests of {}", spec.platform.endpoint);
    let seen = client.privileges("/vms").await.map_err(|error| error.failure(&what))?;
    if seen.get("VM.Audit") == Some(&true) {
        return Ok(false);
    }
    let held = Held::look(client, spec).await?;
    if held.is_short_sighted() {
        return Ok(true);
    }
    let why = "the token has no VM.Audit on /vms, so Proxmox would hide guests from us";
    Err(Failure::new(Class::Denied, what, why).findings(held.missing(spec)))
}

async fn look_around(
    client: &Proxmox,
    spec: &Wanted,
    mut found: Inventory,
) -> Result<Inventory, Failure> {
    let what = format!("list the guests of {}", spec.platform.endpoint);
    let guests = client.guests().await.map_err(|error| error.failure(&what))?;
    let mut looks = Vec::new();
    for guest in guests.iter().filter(|guest| concerns(spec, guest)) {
        looks.push(sorted(client, spec, guest));
    }
    let mut looks = stream::iter(looks).buffered(AT_ONCE);
    while let Some(one) = looks.next().await {
        found.add(one?);
    }
    // A VM of ours that the castle file no longer names takes its memory like anybody else's.
    let counted = |vmid| spec.nodes.iter().any(|node| node.vmid == vmid);
    let others = guests.iter().filter(|guest| {
        guest.node == spec.platform.node
            && guest.status == "running"
            && !(found.ours.contains_key(&guest.vmid) && counted(guest.vmid))
    });
    found.others_memory = others.map(|guest| guest.memory).sum();
    Ok(found)
}

/// Whether a guest stands where the castle's machines do, or bears the castle's tag anywhere else.
fn concerns(spec: &Wanted, guest: &Guest) -> bool {
    let (first, last) = spec.platform.vmids;
    (first..=last).contains(&guest.vmid)
        || spec.nodes.iter().any(|node| node.vmid == guest.vmid)
        || guest.tags.contains(&castle_tag(&spec.name))
}

/// What one guest adds to the inventory.
async fn sorted(client: &Proxmox, spec: &Wanted, guest: &Guest) -> Result<Inventory, Failure> {
    let (vmid, mut found) = (guest.vmid, Inventory::default());
    if guest.kind == GuestKind::Container {
        found.foreign.insert(vmid, described(guest));
        return Ok(found);
    }
    let config = match client.vm_config(&guest.node, vmid).await {
        Ok(config) => config,
        // It went between the two questions.
        Err(error) if error.is_missing() => return Ok(found),
        Err(error) => return Err(error.failure(format!("read the configuration of VM {vmid}"))),
    };
    let described = described(guest);
    match owner(vmid, &config) {
        Owner::Castle(mark) if mark.castle != spec.name => {
            found.foreign.insert(vmid, format!("{described} of castle {}", mark.castle));
        }
        Owner::Castle(_) if guest.node != spec.platform.node => {
            let words = format!("{described}, ours, but not on {}", spec.platform.node);
            found.elsewhere.insert(vmid, words.clone());
            found.foreign.insert(vmid, words);
        }
        Owner::Castle(mark) => {
            // The list of the cluster is late by some seconds; the node itself knows.
            let running = match client.vm_status(&guest.node, vmid).await {
                Ok(status) => status.status == "running",
                Err(error) if error.is_missing() => return Ok(found),
                Err(error) => return Err(error.failure(format!("look at VM {vmid}"))),
            };
            found.ours.insert(vmid, Ours { mark, running });
        }
        // The mark comes with the rest of the configuration, at the end of the task.
        Owner::Somebody { .. } if config.lock() == Some("create") => {
            match abandoned(client, spec, (&guest.node, vmid), false).await? {
                Some(Abandoned { why, ours: true }) => drop(found.half_made.insert(vmid, why)),
                Some(Abandoned { why, ours: false }) => {
                    found.foreign.insert(vmid, format!("{described}: {why}"));
                }
                None => found.unfinished.push(vmid),
            }
        }
        Owner::Somebody { why } => {
            found.unproven.extend(Unproven::of(spec, guest, &config).map(|seen| (vmid, seen)));
            found.foreign.insert(vmid, format!("{described}: {why}"));
        }
    }
    Ok(found)
}

/// What to do about a VM of ours on another node of the cluster.
pub(super) fn moved_back(vmid: VmId, home: &str) -> String {
    format!(
        "bring it back to {home} (where it stands now: qm migrate {vmid} {home}), then run the same command again"
    )
}

/// A guest in words: what it is, its name, its place and its tags.
pub(super) fn described(guest: &Guest) -> String {
    let kind = match guest.kind {
        GuestKind::Vm => "VM",
        GuestKind::Container => "container",
    };
    let tags: Vec<&str> = guest.tags.iter().map(String::as_str).collect();
    let tagged =
        if tags.is_empty() { String::new() } else { format!(", tagged {}", tags.join(", ")) };
    format!("{kind} `{}` on {}{tagged}", guest.name, guest.node)
}

/// The step.
pub(super) struct LookAround(pub(super) Arc<Site>);

/// What its gate proves.
pub(super) const PROVES: &str = "it is known which guests there are, and whose";

#[async_trait]
impl Step for LookAround {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let client = self.0.client(cx)?;
        let mut found = look(&client, &self.0.spec).await?;
        let kept = cx.outputs().get(&KEPT).ok();
        let kept = kept.and_then(|text| escrowed_incarnation(&self.0.spec.name, &text).ok());
        found.recognise(&client, &self.0.spec, kept.as_ref()).await?;
        let known = found.incarnation()?.is_some() || cx.incarnation().is_some();
        let node = &self.0.spec.platform.node;
        if let Some(vmid) = found.unfinished.first().filter(|_| !known) {
            let doing = format!("tell whose VM {vmid} is");
            return Err(in_the_making(&client, (node, *vmid), doing).await);
        }
        let tasks =
            if found.ours.is_empty() { Vec::new() } else { changing(&client, node).await? };
        for task in tasks {
            let vmid = task.object().parse().ok().map(VmId);
            if let Some(vmid) = vmid.filter(|vmid| found.ours.contains_key(vmid)) {
                found.busy.insert(vmid, task.kind().to_owned());
            }
        }
        let evidence = found.summary();
        cx.outputs().put(&INVENTORY, found);
        Ok(Observed::right(evidence))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        Ok(cx.outputs().get(&INVENTORY)?.summary())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(vmid: u32, incarnation: &str) -> (VmId, Ours) {
        let mark = Mark {
            castle: "blue".parse().unwrap(),
            incarnation: incarnation.parse().unwrap(),
            node: "cp-01".parse().unwrap(),
            vmid: VmId(vmid),
        };
        (VmId(vmid), Ours { mark, running: true })
    }

    #[test]
    fn vms_of_two_lives_are_a_conflict() {
        let (one, two) = ("0011223344556677", "8899aabbccddeeff");
        let mut found = Inventory::default();
        assert_eq!(found.incarnation(), Ok(None));
        found.ours.extend([ours(421, one), ours(422, one)]);
        assert_eq!(found.incarnation(), Ok(Some(&one.parse().unwrap())));
        found.ours.extend([ours(431, two)]);
        let failure = found.incarnation().unwrap_err();
        assert_eq!(failure.class, Class::Conflict);
        assert!(failure.why.contains("VM 421, 422; 8899aabbccddeeff: VM 431"), "{}", failure.why);
    }
}
