//! A service that is made once to see whether it gets an address of the pool, and the reasons why it does not.

use std::net::Ipv4Addr;

use castle_kubernetes::{Object, Place};
use castle_model::{AddressRange, Class, Failure, Verdict};
use castle_platforms::cluster::Objects;
use serde_json::{Value, json};

use super::NAMESPACE;
use crate::objects::Probe;

pub(super) const PROBE: Probe = Probe {
    api_version: "v1",
    kind: "Service",
    namespace: NAMESPACE,
    of: "address",
    proves: "a load balancer got an address of the pool",
};

/// The service. It selects no pod: the address is given before anybody answers there, and nobody shall.
pub(super) fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": Probe::NAME, "namespace": NAMESPACE},
        "spec": {
            "type": "LoadBalancer", "allocateLoadBalancerNodePorts": false,
            "ports": [{"name": "probe", "port": 9, "protocol": "TCP"}],
        },
    })
}

/// Where its address and the reasons against one are seen.
pub(super) fn places() -> Vec<Place> {
    vec![Place::within("v1", "Service", NAMESPACE), Place::within("v1", "Event", NAMESPACE)]
}

/// Whether the service has an address of the pool; if not, what MetalLB said last.
pub(super) fn address(pool: AddressRange, there: &Objects) -> Verdict<Ipv4Addr> {
    let Some(service) = there.get(&PROBE.id()) else {
        return Verdict::Waiting(format!("{} is not there yet", PROBE.id()));
    };
    let given = service.text("/status/loadBalancer/ingress/0/ip");
    match given.and_then(|text| text.parse::<Ipv4Addr>().ok()) {
        Some(address) if pool.contains(address) => Verdict::Ready(address),
        Some(address) => Verdict::Failed(
            Failure::new(
                Class::Conflict,
                "prove the address pool",
                format!("the probe service got {address}, which is not of the pool {pool}"),
            )
            .hint("somebody else gives addresses in this cluster: remove its pool, or leave networking to it (`enabled = false`)"),
        ),
        None => Verdict::Waiting(match last_event(there) {
            Some(words) => format!("the probe service has no address yet; {words}"),
            None => "the probe service has no address yet; MetalLB has said nothing about it".to_owned(),
        }),
    }
}

/// The last thing that was said about the service.
fn last_event(there: &Objects) -> Option<String> {
    let about = |event: &&Object| {
        event.kind() == "Event"
            && event.text("/involvedObject/kind") == Some("Service")
            && event.text("/involvedObject/name") == Some(Probe::NAME)
    };
    let time = |event: &&Object| {
        let text = event.text("/lastTimestamp").or_else(|| event.text("/eventTime"));
        text.unwrap_or_default().to_owned()
    };
    let event = there.values().filter(about).max_by_key(time)?;
    let part = |pointer: &str| event.text(pointer).unwrap_or_default().to_owned();
    Some(format!("{}: {}", part("/reason"), part("/message")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(values: &[Value]) -> Objects {
        let objects = values.iter().map(|value| Object::new(value.clone()).unwrap());
        objects.map(|object| (object.id(), object)).collect()
    }

    fn event(name: &str, of: &str, at: &str, message: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": NAMESPACE},
            "involvedObject": {"kind": "Service", "name": of}, "reason": "AllocationFailed",
            "message": message, "lastTimestamp": at})
    }

    #[test]
    fn an_address_of_the_pool_is_a_proof_and_the_last_event_a_reason() {
        let pool: AddressRange = "192.168.1.230-192.168.1.245".parse().unwrap();
        let told = |values: &[Value]| match address(pool, &there(values)) {
            Verdict::Ready(address) => format!("ready: {address}"),
            Verdict::Waiting(reason) => format!("waiting: {reason}"),
            Verdict::Failed(failure) => format!("failed: {failure}"),
        };
        let with = |ip: &str| {
            let mut service = service();
            service["status"] = json!({"loadBalancer": {"ingress": [{"ip": ip}]}});
            service
        };
        let full = "Failed to allocate IP for \"castle-probe\": no available IPs";
        let lines = [
            told(&[]),
            told(&[service(), event("b", "web", "2026-01-01T00:00:09Z", "not ours")]),
            told(&[
                service(),
                event("a", Probe::NAME, "2026-01-01T00:00:02Z", full),
                event("z", Probe::NAME, "2026-01-01T00:00:01Z", "earlier"),
            ]),
            told(&[with("192.168.1.230")]),
            told(&[with("10.0.0.1")]),
        ];
        insta::assert_snapshot!(lines.join("\n"), @r#"
        waiting: Service metallb-system/castle-probe is not there yet
        waiting: the probe service has no address yet; MetalLB has said nothing about it
        waiting: the probe service has no address yet; AllocationFailed: Failed to allocate IP for "castle-probe": no available IPs
        ready: 192.168.1.230
        failed: prove the address pool: the probe service got 10.0.0.1, which is not of the pool 192.168.1.230-192.168.1.245
        "#);
    }
}
