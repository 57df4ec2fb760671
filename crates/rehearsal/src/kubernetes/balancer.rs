//! MetalLB: services get addresses from pools by its rules, and speakers announce them.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::Kubernetes;
use super::store::{key, parts};
use crate::turn::Turn;

const NAMESPACE: &str = "metallb-system";
/// The prefixes of its annotations, the newer first.
const PREFIXES: [&str; 2] = ["metallb.io", "metallb.universe.tf"];
/// Nodes with this label announce nothing.
const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// A pool of addresses.
struct Pool {
    name: String,
    auto: bool,
    ranges: Vec<(Ipv4Addr, Ipv4Addr)>,
    avoid_buggy: bool,
}

impl Pool {
    fn holds(&self, address: Ipv4Addr) -> bool {
        self.ranges.iter().any(|(from, to)| (*from..=*to).contains(&address))
    }

    fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.ranges
            .iter()
            .flat_map(|(from, to)| (u32::from(*from)..=u32::from(*to)).map(Ipv4Addr::from))
            .filter(|a| !(self.avoid_buggy && matches!(a.octets()[3], 0 | 255)))
    }
}

impl Kubernetes {
    /// The controller of MetalLB looks at a service.
    pub(super) fn balance(&mut self, turn: &mut Turn<'_>, place: &str, service: &Value) {
        if !self.acts(NAMESPACE, "controller") {
            return;
        }
        let given = address_of(service);
        let class = service["spec"]["loadBalancerClass"].as_str();
        if service["spec"]["type"] != "LoadBalancer" || class.is_some() {
            if given.is_some() && class.is_none() {
                self.store.change(place, |service| service["status"]["loadBalancer"] = json!({}));
            }
            return;
        }
        let pools = self.pools();
        let wanted = match self.choose(place, service, &pools) {
            Ok(address) => address,
            Err(why) => {
                let (_, _, namespace, name) = parts(place);
                let message = format!("Failed to allocate IP for \"{namespace}/{name}\": {why}");
                self.warn(turn, place, ("metallb-controller", "AllocationFailed"), &message);
                if given.is_some() {
                    self.store
                        .change(place, |service| service["status"]["loadBalancer"] = json!({}));
                }
                return;
            }
        };
        if given != Some(wanted) {
            self.store.change(place, |service| {
                service["status"]["loadBalancer"]["ingress"] =
                    json!([{"ip": wanted.to_string(), "ipMode": "VIP"}]);
            });
            let message = format!("Assigned IP [\"{wanted}\"]");
            self.event(turn, place, ("Normal", "metallb-controller", "IPAllocated"), &message);
        }
        self.announce(turn, place, (wanted, &pools));
    }

    /// The speakers agree on a node that answers for an address, if a pool of it is advertised.
    fn announce(
        &mut self,
        turn: &mut Turn<'_>,
        place: &str,
        (address, pools): (Ipv4Addr, &[Pool]),
    ) {
        let pool = pools.iter().find(|pool| pool.holds(address));
        let advertised = self.store.all("metallb.io", "l2advertisements").any(|(_, l2)| {
            let named = l2["spec"]["ipAddressPools"].as_array().filter(|all| !all.is_empty());
            named.is_none_or(|all| pool.is_some_and(|pool| all.iter().any(|n| *n == pool.name)))
        });
        let prefix = format!("/pods/{NAMESPACE}/speaker-");
        let speaker = self.store.under(&prefix).find_map(|(_, pod)| {
            let node = pod["spec"]["nodeName"].as_str().filter(|_| self.runs(pod))?;
            let labels = &self.store.get(&key("", "nodes", "", node))?["metadata"]["labels"];
            labels.get(EXCLUDED).is_none().then(|| node.to_owned())
        });
        if let Some(node) = speaker.filter(|_| advertised) {
            let message = format!("announcing from node \"{node}\" with protocol \"layer2\"");
            self.event(turn, place, ("Normal", "metallb-speaker", "nodeAssigned"), &message);
        }
    }

    fn pools(&self) -> Vec<Pool> {
        self.store
            .all("metallb.io", "ipaddresspools")
            .map(|(place, pool)| Pool {
                name: parts(place).3.to_owned(),
                auto: pool["spec"]["autoAssign"] != false,
                ranges: pool["spec"]["addresses"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|range| range.as_str().and_then(ends))
                    .collect(),
                avoid_buggy: pool["spec"]["avoidBuggyIPs"] == true,
            })
            .collect()
    }

    /// The address of a service: the one it has, the one it asks for, or the first that is free.
    fn choose(&self, place: &str, service: &Value, pools: &[Pool]) -> Result<Ipv4Addr, String> {
        let asked = annotation(service, "loadBalancerIPs")
            .or_else(|| service["spec"]["loadBalancerIP"].as_str())
            .filter(|text| !text.is_empty());
        if let Some(text) = asked {
            let address: Ipv4Addr =
                text.trim().parse().map_err(|_| format!("invalid loadBalancerIPs {text:?}"))?;
            if !pools.iter().any(|pool| pool.holds(address)) {
                return Err(format!("[\"{address}\"] is not allowed in config"));
            }
            return self.usable(place, service, address).map(|()| address);
        }
        let wanted = annotation(service, "address-pool");
        if let Some(address) = address_of(service) {
            let pool = pools.iter().find(|pool| pool.holds(address));
            if pool.is_some_and(|pool| wanted.is_none_or(|name| name == pool.name)) {
                return Ok(address);
            }
        }
        if let Some(name) = wanted.filter(|name| !pools.iter().any(|pool| pool.name == *name)) {
            return Err(format!("unknown pool \"{name}\""));
        }
        pools
            .iter()
            .filter(|pool| wanted.map_or(pool.auto, |name| pool.name == name))
            .flat_map(Pool::addresses)
            .find(|address| self.usable(place, service, *address).is_ok())
            .ok_or_else(|| match wanted {
                Some(name) => format!("no available IPs in pool \"{name}\""),
                None => "no available IPs".to_owned(),
            })
    }

    /// Whether a service may have an address: nobody has it, or all who have share it with other ports.
    fn usable(&self, place: &str, service: &Value, address: Ipv4Addr) -> Result<(), String> {
        for (other, there) in self.store.all("", "services").filter(|(other, _)| *other != place) {
            if there["spec"]["type"] != "LoadBalancer" || address_of(there) != Some(address) {
                continue;
            }
            let (_, _, home, who) = parts(other);
            let (_, _, namespace, name) = parts(place);
            let key = annotation(service, "allow-shared-ip");
            if key.is_none() || key != annotation(there, "allow-shared-ip") {
                return Err(format!(
                    "can't change sharing key for \"{namespace}/{name}\", address also in use by {home}/{who}"
                ));
            }
            if let Some(port) = ports(service).intersection(&ports(there)).next() {
                return Err(format!("port {port} is already in use on \"{address}\""));
            }
        }
        Ok(())
    }
}

fn address_of(service: &Value) -> Option<Ipv4Addr> {
    service["status"]["loadBalancer"]["ingress"][0]["ip"].as_str()?.parse().ok()
}

fn annotation<'a>(service: &'a Value, name: &str) -> Option<&'a str> {
    let all = &service["metadata"]["annotations"];
    PREFIXES.iter().find_map(|prefix| all[format!("{prefix}/{name}").as_str()].as_str())
}

fn ports(service: &Value) -> BTreeSet<String> {
    let all = service["spec"]["ports"].as_array().into_iter().flatten();
    all.map(|p| format!("{}/{}", p["protocol"].as_str().unwrap_or("TCP"), p["port"])).collect()
}

/// The ends of `10.0.0.1-10.0.0.9` or `10.0.0.0/24`.
pub(super) fn ends(range: &str) -> Option<(Ipv4Addr, Ipv4Addr)> {
    if let Some((from, to)) = range.split_once('-') {
        return Some((from.trim().parse().ok()?, to.trim().parse().ok()?));
    }
    let (base, bits) = range.split_once('/')?;
    let (base, bits): (Ipv4Addr, u32) = (base.parse().ok()?, bits.parse().ok()?);
    let host = u32::MAX.checked_shr(bits).unwrap_or(0);
    (bits <= 32)
        .then(|| (Ipv4Addr::from(u32::from(base) & !host), Ipv4Addr::from(u32::from(base) | host)))
}
