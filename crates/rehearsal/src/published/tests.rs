//! The published way on a small castle where everything takes what it usually takes.

use super::*;
use crate::durations::Draws;

/// A castle of one control plane and one worker, where everything usual takes what it usually takes.
fn world() -> (Vec<Draw>, BTreeMap<String, String>) {
    let mut draws = Draws::default();
    let mut add = |what: Process, subject: &str, after| {
        draws.record(what, subject.to_owned(), (0, what.usual()), after)
    };
    for machine in ["421", "431"] {
        for what in [Process::VmCreate, Process::VmStart, Process::Boot, Process::Runtime] {
            add(what, machine, None);
        }
        for what in [Process::Kubelet, Process::Register] {
            add(what, machine, None);
        }
    }
    for what in [Process::EtcdPull, Process::EtcdBootstrap, Process::ControlPlanePull] {
        add(what, "421", None);
    }
    add(Process::ApiServer, "421", None);
    add(Process::Election, "1", None);
    for node in ["cp-01", "worker-01"] {
        add(Process::NodeNetwork, node, None);
        add(Process::NodeReady, node, None);
    }
    for (pull, start, object) in [
        (Process::ExternalSecretsPull, Process::ExternalSecretsStart, "external-secrets/a-1"),
        (Process::MetallbPull, Process::MetallbStart, "metallb-system/a-1"),
        (
            Process::LonghornManagerPull,
            Process::LonghornManagerStart,
            "longhorn-system/longhorn-manager-1",
        ),
        (
            Process::LonghornPull,
            Process::LonghornStart,
            "longhorn-system/longhorn-driver-deployer-1",
        ),
        (Process::FluxPull, Process::FluxStart, "flux-system/source-controller-a"),
        (Process::AppPull, Process::AppStart, "blog/blog-1"),
    ] {
        let subject = format!("worker-01 {object}");
        let pulled = add(pull, &subject, None);
        add(start, &subject, Some(pulled));
    }
    for what in [Process::InstanceManagerPull, Process::LonghornDisk] {
        add(what, "worker-01", None);
    }
    add(Process::LonghornCsi, "longhorn-system/longhorn-d", None);
    for unit in TREE.iter().chain(&["flux-system"]) {
        add(Process::FluxLevel, &format!("flux-system/{unit}"), None);
    }
    let names = [("cp-01", "421"), ("worker-01", "431")];
    let names = names.map(|(name, number)| (name.to_owned(), number.to_owned()));
    (draws.all().to_vec(), names.into())
}

fn over(name: &str, levers: Levers) -> u64 {
    let (draws, names) = world();
    let all = stages(&draws, &names, 7, levers);
    all.iter().find(|stage| stage.name == name).map(|stage| stage.over).unwrap()
}

#[test]
fn every_lever_gives_something_and_takes_nothing() {
    let published = over("castle", Levers::default());
    let mut all = Levers::default();
    let mut before = published;
    for (name, pull) in LEVERS {
        let mut one = Levers::default();
        pull(&mut one);
        pull(&mut all);
        assert!(over("castle", one) <= published, "{name} costs time alone");
        let added = over("castle", all);
        assert!(added <= before, "{name} costs time after the others");
        before = added;
    }
    assert!(before * 2 < published, "{before} and {published}");
}

#[test]
fn clones_wait_for_each_other_and_an_install_comes_twice_to_the_boot() {
    let cloned = over("VMs cloned", Levers::default());
    let linked = over("VMs cloned", Levers { linked: true, ..Levers::default() });
    let secrets = over("secrets", Levers::default());
    assert!(cloned - secrets >= 2 * 5_000, "two full clones, one after the other");
    assert_eq!(
        over("VMs cloned", Levers { linked: true, no_tax: true, ..Levers::default() })
            - over("secrets", Levers { no_tax: true, ..Levers::default() }),
        2 * 1_200
    );
    assert!(linked < cloned);
    let configured =
        |disk_image| over("Talos configured", Levers { disk_image, ..Levers::default() });
    assert!(configured(false) - configured(true) >= 15_000 + 12_000);
}

#[test]
fn who_asks_at_intervals_notices_late() {
    let (draws, names) = world();
    let way = |watching| Way::new(&draws, &names, 7, Levers { watching, ..Levers::default() });
    assert_eq!(way(false).noticed(12_001, 10_000, 5_000), 15_000);
    assert_eq!(way(false).noticed(15_000, 10_000, 5_000), 15_000);
    assert_eq!(way(false).noticed(9_000, 10_000, 5_000), 10_000, "true before anybody asked");
    assert_eq!(way(true).noticed(12_001, 10_000, 5_000), 12_001);
}

#[test]
fn a_level_of_the_tree_is_seen_at_the_next_look() {
    let (draws, names) = world();
    let tree = |requeue| {
        Way::new(&draws, &names, 7, Levers { requeue, ..Levers::default() }).tree(100_000)
    };
    // The root after 5 s; all units look first 5 s later, at the same time, and then every 30 or 5 s: those that
    // find the unit before them just applied go on at once.
    assert_eq!(tree(false), 110_000);
    assert_eq!(tree(true), 110_000);
    let mut late = draws.clone();
    for draw in &mut late {
        if draw.subject == "flux-system/operators-core" {
            draw.ms = 7_000;
        }
    }
    let tree =
        |requeue| Way::new(&late, &names, 7, Levers { requeue, ..Levers::default() }).tree(100_000);
    assert_eq!(tree(false), 140_000, "bridge has just missed it, and looks again 30 s later");
    assert_eq!(tree(true), 115_000);
}

#[test]
fn a_kubelet_pulls_side_by_side_or_one_after_the_other() {
    let (draws, names) = world();
    let ready = |serial_pulls| {
        let levers = Levers { serial_pulls, ..Levers::default() };
        let mut way = Way::new(&draws, &names, 7, levers);
        last(&way.started(&[(1_000, "longhorn-system/"), (1_000, "flux-system/")]))
    };
    assert_eq!(ready(false), 1_000 + 25_000 + 12_000, "the longest alone");
    assert!(ready(true) >= 1_000 + 25_000 + 6_000 + 9_000, "all of them, one by one");
    assert_eq!(
        image_of("longhorn-system/csi-attacher-0ebaa02c8a-dd94c"),
        "longhorn-system/csi-attacher"
    );
    assert_eq!(
        image_of("longhorn-system/longhorn-manager-f6b83"),
        "longhorn-system/longhorn-manager"
    );
    assert_eq!(
        image_of("external-secrets/external-secrets-webhook-0ebaa02c8a-dd94c"),
        "external-secrets"
    );
}
