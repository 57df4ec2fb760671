//! Judges addresses as addresses: in the subnet, unique, and nobody's twice.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::Range;

use castle_model::spec::NetworkSpec;
use castle_model::{AddressRange, Subnet, VmId};

use crate::convert::Located;
use crate::finding::{Finding, Findings};
use crate::machines::Group;
use crate::reader::Contents;

/// An address that somebody takes.
struct Claim {
    who: String,
    address: Ipv4Addr,
    range: Range<usize>,
}

/// Judges the network of the castle and the addresses of its machines.
pub(crate) fn judge(castle: &Contents, groups: &[Group], findings: &mut Findings) {
    for group in groups {
        overflow(group, findings);
    }
    let Some(network) = castle.block("network") else { return };
    let subnet = network.get::<Subnet>("subnet");
    let gateway = network.get::<Ipv4Addr>("gateway");
    let vip = network.get::<Ipv4Addr>("vip");
    let pool = network.get::<AddressRange>("pool");
    if let Some(subnet) = &subnet {
        loopback(subnet, findings);
        let usable = subnet_size(subnet, findings);
        if usable {
            members(subnet, gateway.as_ref(), vip.as_ref(), groups, findings);
            pool_inside(subnet, pool.as_ref(), findings);
        }
    }
    unique(gateway.as_ref(), vip.as_ref(), groups, findings);
    if let Some(pool) = &pool {
        pool_disjoint(pool, gateway.as_ref(), vip.as_ref(), groups, findings);
    }
    ranges(network, subnet.as_ref(), groups, findings);
}

/// The network as it goes into the spec; none if something of it is wrong.
pub(crate) fn spec(network: &Contents) -> Option<NetworkSpec> {
    let gateway = network.plain("gateway")?;
    let ntp: Vec<Located<String>> = network.plain("ntp")?;
    Some(NetworkSpec {
        subnet: network.plain("subnet")?,
        gateway,
        vip: network.plain("vip")?,
        nameservers: network.plain("nameservers").unwrap_or_else(|| vec![gateway]),
        ntp: ntp.into_iter().map(|t| t.value).collect(),
        pool: network.plain("pool")?,
        pods: network.plain("pods")?,
        services: network.plain("services")?,
    })
}

/// Finds machines whose addresses would run past the last address there is.
fn overflow(group: &Group, findings: &mut Findings) {
    let (Some(count), Some((_, first))) = (group.count, group.addresses.first()) else { return };
    if group.addresses.len() < usize::try_from(count).unwrap_or(usize::MAX) {
        let title = format!("{count} addresses from {first} on run past the last address");
        let finding = Finding::error("C0409", title).at(&group.address_range, "the first of them");
        findings.add(finding.help("begin lower"));
    }
}

/// Addresses of the loopback are good for trying castle out against servers on one computer, and for nothing else.
fn loopback(subnet: &Located<Subnet>, findings: &mut Findings) {
    if subnet.value.network().is_loopback() {
        let title = format!("{} never leaves this computer", subnet.value);
        findings.add(
            Finding::warning("C0413", title)
                .at(&subnet.range, "the network of the machines")
                .note("addresses in 127.0.0.0/8 lead back to the computer that uses them")
                .help("give the network that the machines are in"),
        );
    }
}

fn subnet_size(subnet: &Located<Subnet>, findings: &mut Findings) -> bool {
    let prefix = subnet.value.prefix();
    if (8..=29).contains(&prefix) {
        return true;
    }
    let size = if prefix < 8 { "large" } else { "small" };
    let finding =
        Finding::error("C0410", format!("{} is too {size} a network for a castle", subnet.value));
    findings.add(
        finding.at(&subnet.range, "the network of the machines")
            .note("it holds the gateway, the VIP, the machines and the pool, and nothing else of the internet")
            .help("give the network as your router knows it, a prefix length from 8 to 29"),
    );
    false
}

/// Every address must be in the subnet and neither its first nor its last.
fn members(
    subnet: &Located<Subnet>,
    gateway: Option<&Located<Ipv4Addr>>,
    vip: Option<&Located<Ipv4Addr>>,
    groups: &[Group],
    findings: &mut Findings,
) {
    for (who, address) in [("the gateway", gateway), ("the VIP", vip)] {
        if let Some(address) = address {
            let claims = [Claim {
                who: who.to_owned(),
                address: address.value,
                range: address.range.clone(),
            }];
            inside(subnet, &claims, findings);
        }
    }
    for group in groups {
        inside(subnet, &claims(group), findings);
    }
}

fn claims(group: &Group) -> Vec<Claim> {
    let claim = |(name, address): &(String, Ipv4Addr)| Claim {
        who: name.clone(),
        address: *address,
        range: group.address_range.clone(),
    };
    group.addresses.iter().map(claim).collect()
}

/// One finding for all the addresses of one place that are outside, and one for those at an end.
fn inside(subnet: &Located<Subnet>, claims: &[Claim], findings: &mut Findings) {
    let outside: Vec<&Claim> =
        claims.iter().filter(|c| !subnet.value.contains(c.address)).collect();
    if let Some(first) = outside.first() {
        let others = more(outside.len());
        let are = if outside.len() > 1 { "are" } else { "is" };
        let title = format!(
            "{} ({}){others} {are} outside of the subnet {}",
            first.who, first.address, subnet.value
        );
        let (low, high) = (subnet.value.host(1), subnet.value.host(-2));
        let free = low.zip(high).map(|(low, high)| format!("{} has {low} to {high}", subnet.value));
        findings.add(
            Finding::error("C0402", title)
                .at(&first.range, "counted from here")
                .related(&subnet.range, "the subnet")
                .note(free.unwrap_or_default())
                .help("choose addresses of the subnet, or correct the subnet"),
        );
    }
    for claim in claims {
        let what = match claim.address {
            a if a == subnet.value.network() => "the address of the network itself",
            a if a == subnet.value.broadcast() => "the broadcast address",
            _ => continue,
        };
        findings.add(
            Finding::error("C0403", format!("{} ({}) is {what}", claim.who, claim.address))
                .at(&claim.range, "counted from here")
                .related(&subnet.range, "the subnet")
                .help("choose another address of the subnet"),
        );
    }
}

fn more(count: usize) -> String {
    if count > 1 { format!(" and {} more", count - 1) } else { String::new() }
}

/// No address may have two owners.
fn unique(
    gateway: Option<&Located<Ipv4Addr>>,
    vip: Option<&Located<Ipv4Addr>>,
    groups: &[Group],
    findings: &mut Findings,
) {
    if let (Some(gateway), Some(vip)) = (gateway, vip)
        && gateway.value == vip.value
    {
        let title = format!("the VIP {} is the gateway", vip.value);
        let finding = Finding::error("C0404", title).at(&vip.range, "the VIP");
        findings.add(
            finding
                .related(&gateway.range, "the gateway")
                .help("choose a free address for the VIP"),
        );
    }
    let mut owners: BTreeMap<Ipv4Addr, Claim> = BTreeMap::new();
    let mut doubled: BTreeMap<usize, (Finding, usize)> = BTreeMap::new();
    for claim in groups.iter().flat_map(claims) {
        if let Some(gateway) = gateway.filter(|g| g.value == claim.address) {
            let title = format!("{} would get {}, the gateway", claim.who, claim.address);
            let finding = Finding::error("C0404", title).at(&claim.range, "counted from here");
            findings.add(
                finding.related(&gateway.range, "the gateway").help("begin at another address"),
            );
        }
        if let Some(vip) = vip.filter(|v| v.value == claim.address) {
            let title = format!("{} would get {}, the VIP", claim.who, claim.address);
            findings.add(
                Finding::error("C0406", title)
                    .at(&claim.range, "counted from here")
                    .related(&vip.range, "the VIP")
                    .note("the control planes pass the VIP among themselves; a machine needs an address of its own")
                    .help("choose a free address for the VIP, or begin the machines elsewhere"),
            );
        }
        if let Some(first) = owners.get(&claim.address) {
            let title =
                format!("{} is the address of {} and of {}", claim.address, first.who, claim.who);
            let finding = Finding::error("C0405", title)
                .at(&claim.range, "counted from here")
                .related(&first.range, format!("{} counts from here", first.who))
                .help("leave room between the two: the addresses of a role follow each other");
            doubled.entry(claim.range.start).or_insert((finding, 0)).1 += 1;
        } else {
            owners.insert(claim.address, claim);
        }
    }
    for (finding, count) in doubled.into_values() {
        findings.add(if count > 1 {
            finding.note(format!("{count} addresses are taken twice"))
        } else {
            finding
        });
    }
}

fn pool_inside(
    subnet: &Located<Subnet>,
    pool: Option<&Located<AddressRange>>,
    findings: &mut Findings,
) {
    let Some(pool) = pool else { return };
    let claim =
        |who: &str, address| Claim { who: who.to_owned(), address, range: pool.range.clone() };
    let ends = [
        claim("the pool's first address", pool.value.first()),
        claim("the pool's last address", pool.value.last()),
    ];
    inside(subnet, &ends, findings);
}

/// The pool is handed out to services, so nobody else may have an address of it.
fn pool_disjoint(
    pool: &Located<AddressRange>,
    gateway: Option<&Located<Ipv4Addr>>,
    vip: Option<&Located<Ipv4Addr>>,
    groups: &[Group],
    findings: &mut Findings,
) {
    let fixed = [("the gateway", gateway), ("the VIP", vip)];
    let fixed = fixed.into_iter().filter_map(|(who, a)| {
        a.map(|a| Claim { who: who.to_owned(), address: a.value, range: a.range.clone() })
    });
    let mut met: BTreeMap<usize, Vec<Claim>> = BTreeMap::new();
    for claim in fixed.chain(groups.iter().flat_map(claims)) {
        if pool.value.contains(claim.address) {
            met.entry(claim.range.start).or_default().push(claim);
        }
    }
    for claims in met.into_values() {
        let (first, others) = (&claims[0], more(claims.len()));
        let title =
            format!("the pool {} holds {} ({}){others}", pool.value, first.who, first.address);
        findings.add(
            Finding::error("C0407", title)
                .at(&pool.range, "the pool")
                .related(&first.range, format!("{} is given here", first.who))
                .note("MetalLB would give this address to a service, and two machines would answer for it")
                .help("choose a pool of addresses that nobody else has"),
        );
    }
}

/// Judges the ranges of pods and services against the subnet and each other.
fn ranges(
    network: &Contents,
    subnet: Option<&Located<Subnet>>,
    groups: &[Group],
    findings: &mut Findings,
) {
    let pods = network.get::<Subnet>("pods");
    let services = network.get::<Subnet>("services");
    let pairs = [
        ("the range of pods", pods.as_ref(), "the subnet", subnet),
        ("the range of services", services.as_ref(), "the subnet", subnet),
        ("the range of services", services.as_ref(), "the range of pods", pods.as_ref()),
    ];
    for (what, one, other_what, other) in pairs {
        let (Some(one), Some(other)) = (one, other) else { continue };
        if one.value.overlaps(&other.value) {
            let title = format!("{what} ({}) overlaps {other_what} ({})", one.value, other.value);
            findings.add(
                Finding::error("C0408", title)
                    .at(&one.range, what)
                    .related(&other.range, other_what)
                    .note("an address inside of both leads to two places")
                    .help("choose private ranges that do not meet, such as 10.244.0.0/16 and 10.96.0.0/12"),
            );
        }
    }
    if let Some(services) = &services
        && !(12..=24).contains(&services.value.prefix())
    {
        let title = format!(
            "the range of services must have a prefix length from 12 to 24, not {}",
            services.value.prefix()
        );
        let finding = Finding::error("C0412", title).at(&services.range, "the range of services");
        findings.add(finding.note(
            "the API server refuses more than 2^20 addresses, and a small range is soon used up",
        ));
    }
    let machines: u64 = groups.iter().filter_map(|g| g.count).map(u64::from).sum();
    if let Some(pods) = &pods {
        let room =
            1_u64.checked_shl(24_u32.saturating_sub(u32::from(pods.value.prefix()))).unwrap_or(0);
        let room = if pods.value.prefix() > 24 { 0 } else { room };
        if machines > room {
            let title = format!(
                "{} has room for the pods of {room} machines, not of {machines}",
                pods.value
            );
            let finding = Finding::error("C0411", title).at(&pods.range, "the range of pods");
            findings.add(
                finding
                    .note("each machine takes a /24 of it")
                    .help("choose a larger range, such as 10.244.0.0/16"),
            );
        }
    }
}

/// Judges VM ids: at least 100, inside of the declared range, no two alike.
pub(crate) fn vmids(castle: &Contents, groups: &[Group], findings: &mut Findings) {
    let declared = castle.block("platform").and_then(|p| p.get::<(VmId, VmId)>("vmids"));
    let mut owners: BTreeMap<VmId, (&str, &Range<usize>)> = BTreeMap::new();
    for group in groups {
        let bad = |good: &dyn Fn(VmId) -> bool| {
            group.vmids.iter().filter(|(_, id)| !good(*id)).collect::<Vec<_>>()
        };
        let impossible = bad(&|id| (VmId::MIN..=VmId::MAX).contains(&id));
        if let Some((name, id)) = impossible.first() {
            let title = format!("no VM id: {name} ({id}){}", more(impossible.len()));
            let finding = Finding::error("C0503", title).at(&group.vmid_range, "counted from here");
            findings.add(finding.note(format!("Proxmox takes {} to {}", VmId::MIN, VmId::MAX)));
        } else if let Some(declared) = &declared {
            let (low, high) = declared.value;
            let outside = bad(&|id| (low..=high).contains(&id));
            if let Some((name, id)) = outside.first() {
                let title =
                    format!("VM ids outside of {low}-{high}: {id} ({name}){}", more(outside.len()));
                findings.add(
                    Finding::error("C0504", title)
                        .at(&group.vmid_range, "counted from here")
                        .related(&declared.range, "the declared range")
                        .note("castle never touches a VM outside of the declared range")
                        .help("widen `vmids`, or begin at another id"),
                );
            }
        }
        let mut doubled = 0;
        for (name, id) in &group.vmids {
            let Some((first, place)) = owners.insert(*id, (name, &group.vmid_range)) else {
                continue;
            };
            doubled += 1;
            if doubled == 1 {
                findings.add(
                    Finding::error("C0505", format!("VM id {id} is that of {first} and of {name}"))
                        .at(&group.vmid_range, "counted from here")
                        .related(place, format!("{first} counts from here"))
                        .help("leave room between the two: the ids of a role follow each other"),
                );
            }
        }
    }
}
