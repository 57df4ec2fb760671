//! One birth, one bootstrap: an etcd is begun once in the life of a castle.

use std::collections::{BTreeMap, BTreeSet};

use castle_rehearsal::inventory::Inventory;
use castle_rehearsal::trace::Request;
use castle_rehearsal::world::Datacenter;

use super::Violation;

/// The machines that have carried out a bootstrap.
pub fn bootstraps(requests: &[Request]) -> impl Iterator<Item = &str> {
    let asked = requests.iter().filter(|r| r.counted && r.path.ends_with("/Bootstrap"));
    asked.map(|request| request.server.as_str())
}

/// The lives of castles that guests bear the marks of.
#[must_use]
pub fn incarnations(datacenter: &Datacenter) -> BTreeSet<String> {
    let guests = Inventory::of(datacenter).proxmox.guests.into_iter();
    guests.flat_map(|guest| guest.tags).filter(|tag| tag.starts_with("inc-")).collect()
}

/// The machines on which etcd was begun, by the life they were in.
pub type Begun = BTreeMap<String, BTreeSet<String>>;

/// Lives in which it was begun on more than one.
#[must_use]
pub fn bootstrapped(begun: &Begun) -> Vec<Violation> {
    let twice = begun.iter().filter(|(_, machines)| machines.len() > 1);
    twice
        .map(|(life, machines)| {
            Violation::new("one bootstrap a life", format!("{life}: on {machines:?}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bootstrap_on_a_second_machine_of_one_life_is_found() {
        let request = |server: &str, counted| Request {
            at: 0,
            server: server.to_owned(),
            method: "POST".to_owned(),
            path: "/machine.MachineService/Bootstrap".to_owned(),
            status: 200,
            counted,
            took: 0,
        };
        let requests = [request("talos/421", true), request("talos/422", false)];
        let on = |requests: &[Request]| bootstraps(requests).map(str::to_owned).collect();
        let mut begun = Begun::from([("inc-1".to_owned(), on(&requests))]);
        assert_eq!(bootstrapped(&begun), [], "one that was refused began nothing");
        begun.insert("inc-2".to_owned(), on(&[request("talos/422", true)]));
        assert_eq!(bootstrapped(&begun), [], "another life begins again");
        begun.entry("inc-1".to_owned()).or_default().insert("talos/423".to_owned());
        assert_eq!(bootstrapped(&begun).len(), 1);
    }
}
