//! Laws of what is true of the world: time, the one bootstrap, what was to be spared, what is left.

use castle_model::spec::{Body, NodeSpec};
use castle_rehearsal::inventory::Inventory;
use castle_rehearsal::trace::Request;
use castle_rehearsal::world::Datacenter;
use serde_json::Value;

use crate::castle::{Run, Stand};
use crate::check::Violation;
use crate::setting::{Setting, put_up_again};

/// No run takes longer, whatever it meets, in virtual milliseconds: the deadlines of one path together.
const LONGEST: u64 = 90 * 60 * 1000;

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
pub(super) fn one_bootstrap(setting: &Setting, requests: &[Request]) -> Vec<Violation> {
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
    let touched = guest(after, vmid) != *was;
    touched.then(|| Violation::new("ownership", format!("guest {vmid} was touched")))
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
