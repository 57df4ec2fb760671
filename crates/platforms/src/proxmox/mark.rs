//! The mark that proves a VM to be ours: tags, description and an SMBIOS UUID that agree with its number.
//!
//! Proxmox copies tags and descriptions when a VM is cloned, but never the number or the UUID. So the mark names
//! the number, the UUID follows from the mark, and only a VM where all of it agrees is ours (DESIGN 9.8).

use castle_model::{Bug, CastleName, Incarnation, NodeName, VmId, planted};
use castle_proxmox::Config;
use sha2::{Digest, Sha256};

/// The tag of every VM that a castle has made.
pub(super) const TAG: &str = "castle";

/// How the line of a description begins that holds the mark.
const LINE: &str = "castle-mark:";

/// The tag of every VM of one castle.
#[must_use]
pub fn castle_tag(castle: &CastleName) -> String {
    format!("castle-{castle}")
}

/// Whose VM it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The castle.
    pub castle: CastleName,
    /// Its life.
    pub incarnation: Incarnation,
    /// The node.
    pub node: NodeName,
    /// The number that the VM had when it was made.
    pub vmid: VmId,
}

/// Whose a VM is, as far as its mark proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// A castle's, with everything in agreement.
    Castle(Mark),
    /// Somebody's; why it is not taken for a castle's.
    Somebody {
        /// In words.
        why: String,
    },
}

/// The UUID of a node's VM: derived, so that whoever knows life and node can recognise the machine from inside.
#[must_use]
pub fn smbios_uuid(incarnation: &Incarnation, node: &NodeName) -> String {
    let hash = Sha256::digest(format!("castle vm {incarnation} {node}"));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    // Version 8 (made by rules of one's own), variant 1.
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let text = hex::encode(bytes);
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}

impl Mark {
    /// The tags that carry it, as Proxmox stores them.
    #[must_use]
    pub fn tags(&self) -> String {
        let mut tags =
            [TAG.to_owned(), castle_tag(&self.castle), format!("inc-{}", self.incarnation)];
        tags.sort();
        tags.join(";")
    }

    /// The description that carries it.
    #[must_use]
    pub fn description(&self) -> String {
        format!(
            "Node {} of the castle {}. Made by castle, which proves its own VMs by the next line.\n\n\
             {}",
            self.node,
            self.castle,
            self.line()
        )
    }

    /// The line of the description that holds it.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { castle, incarnation, node, vmid } = self;
        format!("{LINE} castle={castle} incarnation={incarnation} node={node} vmid={vmid}")
    }

    /// Whether a line of a description is one that holds a mark, whatever it says.
    #[must_use]
    pub fn is_line(line: &str) -> bool {
        line.trim().starts_with(LINE)
    }

    /// The UUID that goes with it.
    #[must_use]
    pub fn uuid(&self) -> String {
        smbios_uuid(&self.incarnation, &self.node)
    }

    fn parse(line: &str) -> Option<Self> {
        let value = |key: &str| {
            line.split_whitespace().find_map(|part| part.strip_prefix(key)?.strip_prefix('='))
        };
        Some(Self {
            castle: value("castle")?.parse().ok()?,
            incarnation: value("incarnation")?.parse().ok()?,
            node: value("node")?.parse().ok()?,
            vmid: VmId(value("vmid")?.parse().ok()?),
        })
    }
}

/// Reads the mark of the VM with this number.
#[must_use]
pub fn owner(vmid: VmId, config: &Config) -> Owner {
    let somebody = |why: &str| Owner::Somebody { why: why.to_owned() };
    let description = config.get("description").unwrap_or_default();
    let Some(line) = description.lines().find_map(|line| line.trim().strip_prefix(LINE)) else {
        return somebody("it bears no mark of a castle");
    };
    let Some(mark) = Mark::parse(line) else {
        return somebody("its mark cannot be read");
    };
    if mark.vmid != vmid {
        return Owner::Somebody {
            why: format!("it is a copy of VM {} of castle {}", mark.vmid, mark.castle),
        };
    }
    if config.uuid() != Some(mark.uuid()) && !planted(Bug::UuidUnchecked) {
        return somebody("its SMBIOS UUID is not the one that goes with its mark");
    }
    let tags = config.tags();
    if !castle_proxmox::guest::tags(&mark.tags()).is_subset(&tags) {
        return somebody("its tags do not agree with its mark");
    }
    Owner::Castle(mark)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn mark() -> Mark {
        Mark {
            castle: "blue".parse().unwrap(),
            incarnation: "0011223344556677".parse().unwrap(),
            node: "cp-01".parse().unwrap(),
            vmid: VmId(421),
        }
    }

    fn config(mark: &Mark) -> Config {
        Config(BTreeMap::from([
            ("description".to_owned(), format!("{}\n", mark.description())),
            ("tags".to_owned(), format!("{};zebra", mark.tags())),
            ("smbios1".to_owned(), format!("uuid={}", mark.uuid())),
        ]))
    }

    #[test]
    fn a_marked_vm_is_ours() {
        assert_eq!(owner(VmId(421), &config(&mark())), Owner::Castle(mark()));
    }

    #[test]
    fn a_copy_is_not_ours_however_well_marked() {
        let why = |vmid, config: &Config| match owner(vmid, config) {
            Owner::Somebody { why } => why,
            Owner::Castle(_) => panic!("taken for ours"),
        };
        assert_eq!(why(VmId(500), &config(&mark())), "it is a copy of VM 421 of castle blue");
        let mut cloned = config(&mark());
        cloned
            .0
            .insert("smbios1".to_owned(), "uuid=d59201e4-d411-4eb5-aa3a-aafb17c6181f".to_owned());
        assert!(why(VmId(421), &cloned).contains("UUID"));
        let mut untagged = config(&mark());
        untagged.0.insert("tags".to_owned(), "castle".to_owned());
        assert!(why(VmId(421), &untagged).contains("tags"));
        assert!(why(VmId(421), &Config::default()).contains("no mark"));
    }

    #[test]
    fn uuids_differ_by_life_and_node_and_are_well_formed() {
        let one = mark().uuid();
        assert_eq!(one.len(), 36);
        assert_eq!(&one[14..15], "8");
        let other = smbios_uuid(&"0011223344556678".parse().unwrap(), &mark().node);
        assert_ne!(one, other);
        assert_ne!(one, smbios_uuid(&mark().incarnation, &"cp-02".parse().unwrap()));
    }
}
