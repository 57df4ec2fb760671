//! Tests of what strikes when, by the clock, the phase and the calls.

use super::super::armed::Due;
use super::super::{Armed, Blow};
use super::*;
use crate::trouble::{TalosTrouble, Trouble};

fn armed(rules: &[&str]) -> Armed {
    let mut armed = Armed::default();
    armed.arm(1_000, rules.iter().map(|text| rule(text)).collect());
    armed
}

fn call<'a>(who: Who, method: &'a str, path: &'a str) -> Seen<'a> {
    Seen { who, host: "pve.lan".into(), machine: None, method, path, again: false }
}

fn dead(vmid: u32) -> Due {
    Due::Change(vec![Trouble::Talos(TalosTrouble::Dead(vmid))])
}

#[test]
fn a_change_comes_at_its_time_and_goes_at_its_end() {
    let mut armed = armed(&["talos cp-02: dead from 0:40 for 0:20"]);
    assert_eq!(armed.first_due(), Some(41_000));
    assert_eq!(armed.ripe(40_999, None), None);
    assert_eq!(armed.ripe(41_000, None), Some(dead(422)));
    assert_eq!(armed.ripe(41_000, None), None);
    assert_eq!(armed.first_due(), Some(61_000));
    let revived = Due::Change(vec![Trouble::Talos(TalosTrouble::Revived(422))]);
    assert_eq!(armed.ripe(61_000, None), Some(revived));
    assert_eq!((armed.first_due(), armed.ripe(99_000, None)), (None, None));
    let told: Vec<_> = armed.strikes().iter().map(|s| (s.at, s.what.as_str())).collect();
    assert_eq!(told, [(40_000, "talos cp-02 is dead"), (60_000, "talos cp-02 is dead: no more")]);
}

#[test]
fn a_change_waits_for_its_phase_or_its_call() {
    let mut phased = armed(&["talos cp-02: dead during etcd"]);
    assert_eq!(phased.first_due(), None);
    assert_eq!(phased.ripe(5_000, Some(Phase::Machines)), None);
    assert_eq!(phased.unstruck(), ["talos cp-02: dead during etcd"]);
    assert_eq!(phased.ripe(5_000, Some(Phase::Etcd)), Some(dead(422)));
    assert_eq!(phased.unstruck(), [""; 0]);

    let mut called = armed(&["talos cp-02: dead on POST /qemu the 2nd"]);
    let seen = call(Who::Proxmox, "POST", "/nodes/pve/qemu");
    assert_eq!(called.meet(2_000, None, &seen), (None, vec![]));
    assert_eq!(called.meet(2_000, None, &call(Who::Proxmox, "GET", "/qemu")), (None, vec![]));
    assert_eq!(called.meet(2_000, None, &seen), (None, vec![dead(422)]));
    assert_eq!(called.meet(2_000, None, &seen), (None, vec![]));
}

#[test]
fn calls_are_counted_within_their_window() {
    let mut armed =
        armed(&["proxmox: drops after on POST /qemu the 2nd twice from 0:10 until 0:20"]);
    let seen = call(Who::Proxmox, "POST", "/qemu");
    let mut blows = Vec::new();
    for now in [2_000, 11_000, 12_000, 13_000, 14_000, 21_000] {
        blows.push(armed.meet(now, None, &seen).0.is_some());
    }
    assert_eq!(blows, [false, false, true, true, false, false]);
    let told = &armed.strikes()[0].what;
    assert_eq!(told, "proxmox drops the connection after it has done POST /qemu");
}

#[test]
fn a_rule_is_about_its_own_server_and_object() {
    let mut one =
        armed(&["proxmox 421: hangs", "talos cp-01: slow 0:01", "infisical secrets: hangs"]);
    let blow = |armed: &mut Armed, seen: Seen<'_>| armed.meet(2_000, None, &seen).0;
    assert_eq!(blow(&mut one, call(Who::Proxmox, "GET", "/qemu/421/config")), Some(Blow::Hangs));
    assert_eq!(blow(&mut one, call(Who::Proxmox, "GET", "/qemu/4210/config")), None);
    assert_eq!(blow(&mut one, call(Who::Kubernetes, "GET", "/421")), None);
    let machine = |vmid| Seen { machine: Some(vmid), ..call(Who::Talos, "POST", "/Version") };
    assert_eq!(blow(&mut one, machine(421)), Some(Blow::Slow(1_000)));
    assert_eq!(blow(&mut one, machine(422)), None);
    assert_eq!(blow(&mut one, call(Who::Infisical, "GET", "/api/v4/secrets/A")), Some(Blow::Hangs));
    let mut castle = armed(&["castle: killed before the 3rd"]);
    let met: Vec<bool> =
        (0..4).map(|_| blow(&mut castle, call(Who::Infisical, "GET", "/")).is_some()).collect();
    assert_eq!(met, [false, false, true, false]);
}

#[test]
fn the_first_rule_that_strikes_wins_and_the_next_waits() {
    let mut armed = armed(&["proxmox: hangs once", "proxmox: drops before once"]);
    let seen = call(Who::Proxmox, "GET", "/");
    assert_eq!(armed.meet(2_000, None, &seen).0, Some(Blow::Hangs));
    assert_eq!(armed.meet(2_000, None, &seen).0, Some(Blow::DropBefore));
    assert_eq!(armed.meet(2_000, None, &seen).0, None);
}

#[test]
fn connections_are_refused_by_server_and_by_address() {
    let mut armed =
        armed(&["proxmox: refuses from 0:10 for 0:10", "network cp-03: unreachable once"]);
    let seen = call(Who::Proxmox, "", "");
    assert_eq!(armed.dial(2_000, None, &seen), None);
    assert_eq!(armed.dial(12_000, None, &seen), Some(Blow::Refused));
    assert_eq!(armed.dial(22_000, None, &seen), None);
    let third = Seen { host: "192.168.1.213".into(), ..call(Who::Network, "", "") };
    assert_eq!(armed.dial(2_000, None, &third), Some(Blow::Unreachable));
    assert_eq!(armed.dial(2_000, None, &third), None);
}

#[test]
fn an_old_answer_needs_one() {
    let mut armed = armed(&["proxmox: answers stale once"]);
    let first = call(Who::Proxmox, "GET", "/status");
    assert_eq!(armed.meet(2_000, None, &first).0, None);
    assert_eq!(armed.strikes(), []);
    let second = Seen { again: true, ..first };
    assert_eq!(armed.meet(2_000, None, &second).0, Some(Blow::Stale));
}

#[test]
fn events_are_late_or_doubled() {
    let mut armed = armed(&["kubernetes: events late 0:03 once", "kubernetes: events twice"]);
    assert_eq!(armed.events(2_000, None), (3_000, true));
    assert_eq!(armed.events(2_000, None), (0, true));
}
