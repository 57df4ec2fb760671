//! VMs whose mark somebody has damaged: recognised by number and UUID, so that they are marked again and not refused.
//!
//! Tags and descriptions are edited in a web interface every day. The SMBIOS UUID is not, a clone gets another one, and
//! ours follows from the castle's life and the node: at its declared number it proves a VM as well as the whole mark does.

use std::collections::BTreeSet;

use castle_model::{Failure, Incarnation, VmId};
use castle_proxmox::{Config, Guest, Proxmox};

use super::inventory::{Inventory, Ours};
use super::mark::{Mark, smbios_uuid};
use super::wanted::Wanted;

/// A VM at a declared number on the declared node that bears no valid mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unproven {
    /// Its SMBIOS UUID.
    pub uuid: String,
    /// The memory that it was counted with among others', in bytes.
    pub memory: u64,
}

impl Unproven {
    /// What is remembered of a guest, if it could be a node of ours.
    pub(super) fn of(spec: &Wanted, guest: &Guest, config: &Config) -> Option<Self> {
        let declared = spec.nodes.iter().any(|node| node.vmid == guest.vmid);
        let here = guest.node == spec.platform.node;
        let running = guest.status == "running";
        let uuid = config.uuid().filter(|_| declared && here)?;
        Some(Self { uuid, memory: if running { guest.memory } else { 0 } })
    }
}

impl Inventory {
    /// Takes those unproven VMs for ours whose UUID is that of the node at their number, in the life of their fellows or
    /// in the one whose secrets are kept.
    pub(super) async fn recognise(
        &mut self,
        client: &Proxmox,
        spec: &Wanted,
        kept: Option<&Incarnation>,
    ) -> Result<(), Failure> {
        if self.unproven.is_empty() {
            return Ok(());
        }
        let fellows = self.ours.values().map(|ours| ours.mark.incarnation.clone());
        let lives: BTreeSet<Incarnation> = fellows.chain(kept.cloned()).collect();
        for (vmid, incarnation) in self.fitting(spec, &lives) {
            let Some(node) = spec.nodes.iter().find(|node| node.vmid == vmid) else { continue };
            let status = match client.vm_status(&spec.platform.node, vmid).await {
                Ok(status) => status.status,
                Err(error) if error.is_missing() => continue,
                Err(error) => return Err(error.failure(format!("look at VM {vmid}"))),
            };
            let mark =
                Mark { castle: spec.name.clone(), incarnation, node: node.name.clone(), vmid };
            if let Some(unproven) = self.unproven.remove(&vmid) {
                self.others_memory = self.others_memory.saturating_sub(unproven.memory);
            }
            self.foreign.remove(&vmid);
            self.ours.insert(vmid, Ours { mark, running: status == "running" });
        }
        Ok(())
    }

    fn fitting(&self, spec: &Wanted, lives: &BTreeSet<Incarnation>) -> Vec<(VmId, Incarnation)> {
        let life = |vmid: &VmId, uuid: &str| {
            let node = spec.nodes.iter().find(|node| node.vmid == *vmid)?;
            lives.iter().find(|life| smbios_uuid(life, &node.name) == uuid).cloned()
        };
        let fits =
            |(vmid, unproven): (&VmId, &Unproven)| Some((*vmid, life(vmid, &unproven.uuid)?));
        self.unproven.iter().filter_map(fits).collect()
    }
}

/// What makes a recognised VM bear its mark again. What others have written there stays.
pub(super) fn restored(mark: &Mark, config: &Config) -> Vec<(&'static str, String)> {
    let mut tags = config.tags();
    // A tag of another castle or life would be a second mark.
    tags.retain(|tag| !tag.starts_with("castle-") && !tag.starts_with("inc-"));
    tags.extend(mark.tags().split(';').map(str::to_owned));
    let tags: Vec<String> = tags.into_iter().collect();
    let said = config.get("description").unwrap_or_default().trim_end();
    let rest: Vec<&str> = said.lines().filter(|line| !Mark::is_line(line)).collect();
    let rest = rest.join("\n");
    let fresh = mark.description();
    let description = if rest.trim().is_empty() || fresh.starts_with(rest.trim()) {
        fresh
    } else {
        format!("{}\n\n{}", rest.trim_end(), mark.line())
    };
    vec![("tags", tags.join(";")), ("description", description)]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::mark::{Owner, owner};
    use super::*;

    fn mark() -> Mark {
        Mark {
            castle: "blue".parse().unwrap(),
            incarnation: "0011223344556677".parse().unwrap(),
            node: "cp-01".parse().unwrap(),
            vmid: VmId(421),
        }
    }

    fn config(tags: &str, description: &str) -> Config {
        let options = [
            ("tags", tags.to_owned()),
            ("description", description.to_owned()),
            ("smbios1", format!("uuid={}", mark().uuid())),
        ];
        Config(options.map(|(key, value)| (key.to_owned(), value)).into_iter().collect())
    }

    /// The config after the mark was put back.
    fn mended(before: &Config) -> Config {
        let mut after: BTreeMap<String, String> = before.0.clone();
        after.extend(restored(&mark(), before).into_iter().map(|(k, v)| (k.to_owned(), v)));
        Config(after)
    }

    #[test]
    fn however_a_mark_was_damaged_it_is_whole_again_and_what_others_wrote_stays() {
        let whole = mark().description();
        for (tags, description) in [
            ("", whole.as_str()),
            ("mine", whole.as_str()),
            ("castle;castle-red;inc-8899aabbccddeeff", whole.as_str()),
            ("castle;castle-blue;inc-0011223344556677", ""),
            ("castle;castle-blue;inc-0011223344556677", "rebooted on Monday\n"),
            ("", "castle-mark: castle=blue incarnation=00 node=cp-01 vmid=421"),
        ] {
            let before = config(tags, description);
            assert!(matches!(owner(VmId(421), &before), Owner::Somebody { .. }), "{description}");
            let after = mended(&before);
            assert_eq!(owner(VmId(421), &after), Owner::Castle(mark()), "{tags} {description}");
            assert_eq!(
                restored(&mark(), &after)[0].1,
                after.get("tags").unwrap(),
                "once is enough"
            );
        }
        let kept = mended(&config("mine", "rebooted on Monday\n"));
        assert!(kept.tags().contains("mine"));
        assert!(kept.get("description").unwrap().starts_with("rebooted on Monday\n"));
    }
}
