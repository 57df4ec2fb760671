//! What is wrong when a gate takes too long: evidence in, words and a cure out. Nothing here asks anybody.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use castle_model::NodeName;
use castle_model::spec::Role;
use castle_talos::resource::Unmet;
use castle_talos::{Affiliate, Member, Service};

/// How long the discovery service remembers a machine that is gone.
const AFFILIATE_LIFE: &str = "30 minutes";

/// Something that was found out, and what a person can do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// What is wrong.
    pub(super) what: String,
    /// What to do.
    pub(super) cure: String,
}

/// What a closer look at some machines showed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    /// Each machine.
    pub(super) nodes: Vec<NodeEvidence>,
    /// The shared address, if it was looked at.
    pub(super) vip: Option<(Ipv4Addr, VipEvidence)>,
}

/// What a closer look at one machine showed; what could not be seen is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeEvidence {
    pub(super) name: NodeName,
    pub(super) role: Role,
    pub(super) address: Ipv4Addr,
    pub(super) sight: Sight,
    pub(super) unmet: Vec<Unmet>,
    pub(super) services: Vec<Service>,
    /// With their prefix.
    pub(super) addresses: Vec<String>,
    pub(super) affiliates: Vec<Affiliate>,
    pub(super) in_sync: Option<bool>,
    pub(super) members: Option<Vec<Member>>,
    /// Whether something lies where etcd keeps its data.
    pub(super) etcd_data: Option<bool>,
}

/// Who answers at a machine's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sight {
    /// Nobody; why.
    Silent(String),
    /// Somebody, with an error; which.
    Faulty(String),
    /// A machine without a config.
    Maintenance,
    /// Somebody else; why.
    Foreign(String),
    /// A machine of ours whose clock and ours differ; how that shows.
    Untimely(String),
    /// A machine of ours.
    Ours,
}

/// What the shared address does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum VipEvidence {
    /// Nobody answers there.
    Silent,
    /// Somebody refuses connections to the port.
    Refuses,
    /// Somebody takes connections, but `/readyz` does not come back over verified TLS; why.
    NoTls(String),
}

/// Everything that the evidence shows, what explains most first.
pub(super) fn diagnose(evidence: &Evidence) -> Vec<Finding> {
    let nodes = &evidence.nodes;
    [
        clocks(nodes),
        clocks_apart(nodes),
        split_brain(nodes),
        pulls(nodes),
        stale_disks(nodes),
        // Every machine that was replaced has a ghost for a while, so what is seen on a machine itself comes first.
        ghosts(nodes),
        maintenance(nodes),
        foreign(nodes),
        elsewhere(nodes),
        faulty(nodes),
        silence(nodes),
        untrusted(nodes),
        waiting_etcd(nodes),
        evidence.vip.as_ref().map(|(vip, seen)| shared_address(*vip, seen)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

impl Finding {
    fn new(what: String, cure: &str) -> Self {
        Self { what, cure: cure.to_owned() }
    }
}

fn names<'a>(nodes: impl Iterator<Item = &'a NodeEvidence>) -> Option<String> {
    let names: Vec<&str> = nodes.map(|node| node.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn clocks(nodes: &[NodeEvidence]) -> Option<Finding> {
    let wrong = |node: &&NodeEvidence| {
        node.in_sync == Some(false) || node.unmet.iter().any(|unmet| unmet.name == "time")
    };
    let named = names(nodes.iter().filter(wrong))?;
    Some(Finding::new(
        format!("the clock is not in sync on {named}, and Talos starts nothing before it is"),
        "the machines cannot reach their time servers: check `ntp`, the gateway, the name servers and UDP port 123",
    ))
}

fn clocks_apart(nodes: &[NodeEvidence]) -> Option<Finding> {
    let apart = |node: &&NodeEvidence| matches!(node.sight, Sight::Untimely(_));
    let named = names(nodes.iter().filter(apart))?;
    let all = nodes.len() > 1 && nodes.iter().all(|node| apart(&node));
    let whose = if all { "every machine differs, so it is likely this one: " } else { "" };
    Some(Finding::new(
        format!("the clock of {named} and that of this computer differ"),
        &format!(
            "{whose}compare this computer's clock (`date -u`) with the right time; if it is right, the machine cannot reach its time servers: check `ntp`, the gateway, the name servers and UDP port 123"
        ),
    ))
}

fn split_brain(nodes: &[NodeEvidence]) -> Option<Finding> {
    let lists: Vec<(&NodeEvidence, BTreeSet<u64>)> = nodes
        .iter()
        .filter_map(|node| Some((node, node.members.as_ref()?.iter().map(|m| m.id).collect())))
        .collect();
    let (first, ids) = lists.first()?;
    let (other, _) = lists.iter().find(|(_, other)| other.is_disjoint(ids))?;
    Some(Finding::new(
        format!("there are two etcds: {} and {} share no member", first.name, other.name),
        "this castle cannot be mended: raze it with `castle down`, then `castle up`",
    ))
}

/// One address or one name with several identities: one of them is a machine that is gone, or a second one is there.
fn ghosts(nodes: &[NodeEvidence]) -> Option<Finding> {
    let mut claims: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for affiliate in nodes.iter().flat_map(|node| &node.affiliates) {
        let of_ours = |node: &&NodeEvidence| {
            affiliate.addresses.contains(&node.address.to_string())
                || affiliate.hostname == node.name.as_str()
        };
        for node in nodes.iter().filter(of_ours) {
            claims.entry(node.name.to_string()).or_default().insert(&affiliate.node_id);
        }
    }
    claims.retain(|_, identities| identities.len() > 1);
    let short = |id: &&str| id.chars().take(8).collect::<String>();
    let claimed: Vec<String> = claims
        .iter()
        .map(|(name, identities)| {
            let shown: Vec<String> = identities.iter().map(short).collect();
            format!("{name} (identities {})", shown.join(", "))
        })
        .collect();
    let one = if claimed.len() > 1 { "one of each" } else { "one" };
    let named = (!claimed.is_empty()).then(|| claimed.join(", "))?;
    Some(Finding::new(
        format!(
            "more than one machine claims, by name or address, to be {named}: {one} is a ghost"
        ),
        &format!(
            "the discovery service forgets a machine {AFFILIATE_LIFE} after it was last seen: wait that long, or raze the castle and raise it again, because a new life has a discovery of its own; if both machines run, switch one off"
        ),
    ))
}

/// Words by which registries tell that they were asked too often.
const LIMITS: [&str; 4] = ["toomanyrequests", "too many requests", "pull rate limit", "429"];

fn pulls(nodes: &[NodeEvidence]) -> Option<Finding> {
    let limited = |service: &Service| {
        let said = service.said.to_ascii_lowercase();
        LIMITS.iter().any(|words| said.contains(words))
    };
    let failed = |service: &Service| service.id == "kubelet" && service.state == "Failed";
    let (node, service) = nodes.iter().find_map(|node| {
        let found = node.services.iter().find(|service| limited(service) || failed(service));
        found.map(|service| (node, service))
    })?;
    let said = if service.said.is_empty() { "it does not say why" } else { &service.said };
    let why = if limited(service) { "its registry limits pulls" } else { "its image did not come" };
    Some(Finding::new(
        format!("{} on {} is {}: {why} ({said})", service.id, node.name, service.state),
        "give the castle file a mirror (`registry` in `machine`) or credentials for the registry; a kubelet that has Failed does not try again by itself: restart the machine",
    ))
}

fn etcd_waits(node: &NodeEvidence) -> bool {
    node.role == Role::ControlPlane
        && node.services.iter().any(|service| service.id == "etcd" && service.state != "Running")
}

fn stale_disks(nodes: &[NodeEvidence]) -> Option<Finding> {
    let stale = |node: &&NodeEvidence| etcd_waits(node) && node.etcd_data == Some(true);
    let named = names(nodes.iter().filter(stale))?;
    Some(Finding::new(
        format!(
            "etcd does not start on {named}, although data of an etcd lie on the disk: an old disk, or a member that the others have removed"
        ),
        "a machine must begin with an empty disk: replace the machine (delete its VM and run `castle up`), or raze the castle with `castle down`",
    ))
}

fn maintenance(nodes: &[NodeEvidence]) -> Option<Finding> {
    let named = names(nodes.iter().filter(|node| node.sight == Sight::Maintenance))?;
    Some(Finding::new(
        format!("still in maintenance mode: {named}"),
        "the config was taken, but not written: look at the console of the machine for its system disk (too small, failing, or without a STATE partition)",
    ))
}

fn foreign(nodes: &[NodeEvidence]) -> Option<Finding> {
    let (node, why) = nodes.iter().find_map(|node| match &node.sight {
        Sight::Foreign(why) => Some((node, why)),
        _ => None,
    })?;
    Some(Finding::new(
        format!(
            "at {}, the address of {}, answers a machine of another cluster ({why})",
            node.address, node.name
        ),
        "another machine holds the address: switch it off, or choose another address in the castle file",
    ))
}

fn is_silent(node: &NodeEvidence) -> bool {
    matches!(node.sight, Sight::Silent(_))
}

/// Where a machine is that does not answer at its address, as far as others know.
fn found_elsewhere(node: &NodeEvidence, nodes: &[NodeEvidence]) -> Option<String> {
    let own = |affiliate: &&Affiliate| {
        affiliate.hostname == node.name.as_str()
            && !affiliate.addresses.contains(&node.address.to_string())
    };
    let known = nodes.iter().flat_map(|node| &node.affiliates).find(own);
    known.map(|affiliate| affiliate.addresses.join(", "))
}

fn elsewhere(nodes: &[NodeEvidence]) -> Option<Finding> {
    let (node, seen) = nodes
        .iter()
        .filter(|node| is_silent(node))
        .find_map(|node| Some((node, found_elsewhere(node, nodes)?)))?;
    Some(Finding::new(
        format!("{} is at {seen}, not at {}", node.name, node.address),
        "it took an address from a DHCP server: its static one was not read, or a DHCP server gives that one to somebody else",
    ))
}

/// Whether a machine can not speak for want of a certificate, which only a control plane that is up could give it.
fn waits_for_trust(node: &NodeEvidence, nodes: &[NodeEvidence]) -> bool {
    let mut planes = nodes.iter().filter(|node| node.role == Role::ControlPlane).peekable();
    node.role == Role::Worker
        && planes.peek().is_some()
        && planes.all(|plane| plane.sight != Sight::Ours || plane.in_sync == Some(false))
}

fn faulty(nodes: &[NodeEvidence]) -> Option<Finding> {
    let (node, why) = nodes.iter().find_map(|node| match &node.sight {
        Sight::Faulty(why) => Some((node, why)),
        _ => None,
    })?;
    Some(Finding::new(
        format!("{} answers, and with an error ({why})", node.name),
        "its console says what is wrong with it; if that stays, start the machine again",
    ))
}

fn silence(nodes: &[NodeEvidence]) -> Option<Finding> {
    let unexplained = |node: &&NodeEvidence| {
        is_silent(node) && found_elsewhere(node, nodes).is_none() && !waits_for_trust(node, nodes)
    };
    let named = names(nodes.iter().filter(unexplained))?;
    Some(Finding::new(
        format!("nothing answers at the address of {named}"),
        "look at the console of the machine: it does not boot, it has another address (a DHCP server, or cloud-init that was not read), it is in another network (bridge, VLAN), or it has its config and waits for the right time before it listens (`ntp`)",
    ))
}

fn untrusted(nodes: &[NodeEvidence]) -> Option<Finding> {
    let waits = |node: &&NodeEvidence| is_silent(node) && waits_for_trust(node, nodes);
    let named = names(nodes.iter().filter(waits))?;
    Some(Finding::new(
        format!(
            "{named} cannot answer yet: a worker's certificate comes from a control plane, and none can give one yet"
        ),
        "bring the control planes up first",
    ))
}

fn waiting_etcd(nodes: &[NodeEvidence]) -> Option<Finding> {
    // One whose clock is wrong waits for nothing else.
    let unexplained = |node: &&NodeEvidence| {
        etcd_waits(node) && node.etcd_data != Some(true) && node.in_sync != Some(false)
    };
    let waits: Vec<&NodeEvidence> = nodes.iter().filter(unexplained).collect();
    let node = waits.first()?;
    let has_own = |node: &&&NodeEvidence| {
        let own = format!("{}/", node.address);
        node.addresses.is_empty() || node.addresses.iter().any(|seen| seen.starts_with(&own))
    };
    if let Some(lost) = waits.iter().find(|node| !has_own(node)) {
        return Some(Finding::new(
            format!(
                "{} does not hold its address {} but {}",
                lost.name,
                lost.address,
                lost.addresses.join(", ")
            ),
            "etcd waits for the declared address: look for a DHCP server that gives out another one, and for the link's name in the config",
        ));
    }
    let said = node.services.iter().find(|service| service.id == "etcd");
    let said = said.map(|service| service.said.as_str()).filter(|said| !said.is_empty());
    let named = names(waits.iter().copied())?;
    let others = nodes.iter().filter(|other| other.role == Role::ControlPlane).count() > 1;
    if others && waits.iter().all(|node| node.affiliates.is_empty()) {
        return Some(Finding::new(
            format!("etcd waits on {named}, and the machines do not find each other"),
            "the discovery service is switched off or cannot be reached (https://discovery.talos.dev): joining then needs the shared address, and takes longer",
        ));
    }
    Some(Finding::new(
        format!(
            "etcd waits on {named}{}",
            said.map(|said| format!(" ({said})")).unwrap_or_default()
        ),
        "control planes join one after the other, each in up to a minute; `talosctl logs etcd` on the machine tells more",
    ))
}

fn shared_address(vip: Ipv4Addr, seen: &VipEvidence) -> Finding {
    match seen {
        VipEvidence::Silent => Finding::new(
            format!("no machine holds the shared address {vip}"),
            "it is given out once etcd is healthy: see whether etcd runs on the control planes, and whether the network lets machines announce addresses (ARP)",
        ),
        VipEvidence::Refuses => Finding::new(
            format!("a machine holds {vip}, but no API server listens behind it yet"),
            "the images of the control plane are still being pulled, or its static pods fail: look at `talosctl containers -k` and the kubelet's log",
        ),
        VipEvidence::NoTls(why) => Finding::new(
            format!(
                "{vip} takes connections, but the castle's API server does not answer over verified TLS ({why})"
            ),
            "either it is just starting, or another device uses the same address: ask the neighbour table (`ip neigh`) for its MAC",
        ),
    }
}

#[cfg(test)]
mod tests;
