//! One birth, one bootstrap: an etcd is begun once in the life of a castle.

use std::collections::BTreeSet;

use castle_rehearsal::inventory::Inventory;
use castle_rehearsal::trace::Request;
use castle_rehearsal::world::Datacenter;

use super::Violation;

/// How many bootstraps machines have carried out.
#[must_use]
pub fn bootstraps(requests: &[Request]) -> usize {
    requests
        .iter()
        .filter(|request| request.counted && request.path.ends_with("/Bootstrap"))
        .count()
}

/// The lives of castles that guests bear the marks of.
#[must_use]
pub fn incarnations(datacenter: &Datacenter) -> BTreeSet<String> {
    let guests = Inventory::of(datacenter).proxmox.guests.into_iter();
    guests.flat_map(|guest| guest.tags).filter(|tag| tag.starts_with("inc-")).collect()
}

/// Compares the two.
#[must_use]
pub fn bootstrapped(bootstraps: usize, lives: usize) -> Option<Violation> {
    (bootstraps > lives).then(|| {
        let what = format!("{bootstraps} bootstraps in {lives} lives");
        Violation::new("one bootstrap a life", what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_bootstrap_in_one_life_is_found() {
        let request = |counted| Request {
            at: 0,
            server: "talos/421".to_owned(),
            method: "POST".to_owned(),
            path: "/machine.MachineService/Bootstrap".to_owned(),
            status: 200,
            counted,
        };
        let requests = [request(true), request(false), request(true)];
        assert_eq!(bootstraps(&requests), 2, "one that was refused began nothing");
        assert!(bootstrapped(2, 1).is_some() && bootstrapped(2, 2).is_none());
    }
}
