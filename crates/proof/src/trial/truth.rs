//! Laws of what is true of the world: time, the one bootstrap, what was to be spared, what is left.

use castle_model::spec::{Body, NodeSpec};
use castle_rehearsal::inventory::Inventory;
use castle_rehearsal::trace::Request;
use castle_rehearsal::world::Datacenter;
use serde_json::Value;

use crate::castle::{Run, Stand};
use crate::check::{Violation, differences};
use crate::setting::{Setting, put_up_again};

/// No run takes longer, whatever it meets, in virtual milliseconds: the deadlines of one path together.
const LONGEST: u64 = 90 * 60 * 1000;

/// Where the books have whether a guest runs, and who switched it.
pub(crate) const POWER: [&str; 2] = ["running", "switched"];

/// The number of a node's VM.
pub(super) fn number(node: &NodeSpec) -> Option<u32> {
    match &node.body {
        Body::Vm(vm) => Some(vm.vmid.0),
        Body::Standing(_) => None,
    }
}

/// Every wait ends.
pub(super) fn in_time(began: u64, ran: &Run) -> Vec<Violation> {
    let took = ran.over.saturating_sub(began);
    if took <= LONGEST {
        return Vec::new();
    }
    vec![Violation::new("every wait ends", format!("it took {} minutes", took / 60_000))]
}

/// Only the first control plane is ever bootstrapped.
pub(crate) fn one_bootstrap(setting: &Setting, requests: &[Request]) -> Vec<Violation> {
    let first = setting.spec.control_planes().next().and_then(number).unwrap_or_default();
    let other = requests.iter().find(|request| {
        request.path.ends_with("/Bootstrap") && request.server != format!("talos/{first}")
    });
    let law = "only the first is bootstrapped";
    other.map(|request| Violation::new(law, request.server.clone())).into_iter().collect()
}

/// A guest in the datacenter's books; null if there is none.
pub(crate) fn guest(stand: &Stand, vmid: u32) -> Value {
    let proxmox = serde_json::to_value(&stand.datacenter.proxmox).unwrap_or_default();
    let mut guest = proxmox["guests"][vmid.to_string()].clone();
    put_up_again(&mut guest);
    guest
}

/// A guest that must not be touched is as it was.
pub(crate) fn spared(vmid: u32, was: &Value, after: &Stand) -> Option<Violation> {
    touched(vmid, was, &guest(after, vmid))
}

/// What somebody has changed of a guest, told with what it was. A node that comes back switches on what has `onboot`: that
/// it runs since then is nobody's doing.
pub(super) fn touched(vmid: u32, was: &Value, is: &Value) -> Option<Violation> {
    let (mut was, mut is) = (was.clone(), is.clone());
    let [_, at_boot] = [&mut was, &mut is]
        .map(|guest| guest.as_object_mut().and_then(|guest| guest.remove("at_boot")).is_some());
    if at_boot {
        for power in POWER {
            is[power] = was[power].clone();
        }
    }
    let found = differences(&was, &is);
    let told = || format!("guest {vmid} was touched: {}", found.join(", "));
    (!found.is_empty()).then(|| Violation::new("ownership", told()))
}

/// A way down that says it is done has left nothing.
pub(crate) fn nothing_left(
    setting: &Setting,
    spares: &[u32],
    after: &Datacenter,
) -> Vec<Violation> {
    let inventory = Inventory::of(after);
    let ours: Vec<u32> = setting.spec.nodes.iter().filter_map(number).collect();
    let is_ours = |vmid: u32| ours.contains(&vmid) && !spares.contains(&vmid);
    let guests = inventory.proxmox.guests.iter().map(|guest| guest.vmid);
    let mut left: Vec<String> =
        guests.filter(|vmid| is_ours(*vmid)).map(|vmid| format!("guest {vmid}")).collect();
    let disks = inventory.proxmox.volumes.iter().filter(|volume| {
        ours.iter().any(|vmid| is_ours(*vmid) && volume.contains(&format!("vm-{vmid}-")))
    });
    left.extend(disks.cloned());
    left.extend(
        inventory.secrets.iter().filter(|key| key.ends_with("/TALOS_SECRETS_BUNDLE")).cloned(),
    );
    left.into_iter().map(|what| Violation::new("nothing left", what)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_guest_that_its_node_switches_on_was_not_touched() {
        let was = json!({"running": 7, "switched": [7, false], "config": {"onboot": "1"}});
        let mut is = json!({"running": 9, "switched": [9, false], "config": {"onboot": "1"}});
        assert!(touched(431, &was, &is).is_some());
        is["at_boot"] = json!(true);
        assert_eq!(touched(431, &was, &is), None);
        is["config"]["memory"] = json!("1");
        let found = touched(431, &was, &is).map(|found| found.to_string());
        assert!(found.is_some_and(|found| found.contains("/config/memory")));
    }
}
