//! The ways in are kept once they are true, left alone while they are, and never put over somebody else's.

use castle_talos::{Bundle, KubeAccess, TalosAccess};
use castle_wire::World;

use super::*;
use crate::escrow::{KUBECONFIG_KEY, TALOSCONFIG_KEY};
use crate::handed::escrowed_incarnation;
use crate::handout::Handout;

impl Bench {
    fn kept(&self, key: &str) -> Secret {
        self.drawer.get(key).unwrap()
    }
}

/// The kubeconfig of another castle of the same shape.
fn another_kubeconfig(spec: &Spec, world: &World) -> Secret {
    let bundle = Bundle::generate(world.entropy.as_ref(), world.clock.as_ref()).unwrap();
    Handout::read(&bundle.to_yaml()).unwrap().kubeconfig(spec, world).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_ways_in_are_kept_once_and_open_the_castle() {
    let mut bench = Bench::new(1, 1, 1);
    assert_done(&bench.up().await);
    for key in [KUBECONFIG_KEY, TALOSCONFIG_KEY] {
        let life = escrowed_incarnation(&bench.spec.name, &bench.kept(key));
        assert_eq!(life.as_ref(), Ok(&bench.life.incarnation), "{key}");
    }
    let kube = KubeAccess::from_kubeconfig(&bench.kept(KUBECONFIG_KEY)).unwrap();
    let client = castle_kubernetes::Kubernetes::new(
        &bench.host.world(),
        &super::super::access::kubernetes_words(&kube),
    );
    let nodes = castle_kubernetes::Place::everywhere("v1", "Node");
    let nodes = client.unwrap().list(&nodes.api_version, &nodes.kind, None, &nodes.selector).await;
    assert_eq!(nodes.unwrap().items.len(), 2);
    let (_, machines) = TalosAccess::from_talosconfig(&bench.kept(TALOSCONFIG_KEY)).unwrap();
    assert_eq!(machines, [bench.spec.nodes[0].address]);
    // Standing, and with the state lost: nothing is written again.
    let before = bench.kept(KUBECONFIG_KEY);
    assert_done(&bench.up().await);
    bench.disk = MemoryDisk::new();
    assert_done(&bench.up().await);
    assert_eq!((bench.drawer.writes(), bench.kept(KUBECONFIG_KEY)), (2, before));
    // Only what is wrong is written, and only what was used is kept.
    bench.drawer.put(TALOSCONFIG_KEY, Secret::new("# castle blue 0011223344556677\n"));
    assert_done(&bench.up().await);
    assert_eq!(bench.drawer.writes(), 3);
    assert!(TalosAccess::from_talosconfig(&bench.kept(TALOSCONFIG_KEY)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_is_not_ours_is_named_and_stays() {
    let mut bench = Bench::new(1, 1, 1);
    assert_done(&bench.up().await);
    let world = bench.host.world();
    let mut elsewhere = Spec::clone(&bench.spec);
    elsewhere.network.vip = "10.0.0.1".parse().unwrap();
    let unmarked = another_kubeconfig(&elsewhere, &world);
    let marked = bench.life.marked(&"red".parse().unwrap(), &unmarked);
    for (theirs, why) in [
        (marked, "what is kept there is not this castle's: it belongs to the castle `red`"),
        (unmarked, "what is kept there is not this castle's: it leads to https://10.0.0.1:6443"),
    ] {
        bench.drawer.put(KUBECONFIG_KEY, theirs.clone());
        let report = bench.up().await;
        let failure = &report.failures[&ids::keys()];
        assert_eq!((failure.class, failure.why.as_str()), (Class::Conflict, why));
        assert_eq!(failure.evidence.as_deref(), Some("KUBECONFIG_CONTENT in a drawer"));
        assert_eq!(report.failures.len(), 1, "nothing else is held up");
        assert_eq!((bench.kept(KUBECONFIG_KEY), bench.drawer.writes()), (theirs, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn one_without_an_owner_that_leads_here_is_written_over_and_told() {
    let mut bench = Bench::new(1, 1, 1);
    let theirs = another_kubeconfig(&bench.spec, &bench.host.world());
    bench.drawer.put(KUBECONFIG_KEY, theirs);
    assert_done(&bench.up().await);
    assert_eq!(
        bench.notices.iter().filter(|text| text.contains("KUBECONFIG_CONTENT")).collect::<Vec<_>>(),
        [
            "KUBECONFIG_CONTENT in a drawer led to this castle without saying whose it is; it is written over"
        ]
    );
    let kept = bench.kept(KUBECONFIG_KEY);
    assert_eq!(escrowed_incarnation(&bench.spec.name, &kept), Ok(bench.life.incarnation.clone()));
}

#[test]
fn nothing_waits_for_the_keys() {
    let spec = castle_config::example();
    let waits = |decl: &StepDecl| decl.needs.contains(&ids::keys());
    assert!(!crate::declare(&spec).iter().any(waits));
    let keys = crate::declare(&spec).into_iter().find(|decl| decl.id == ids::keys()).unwrap();
    assert_eq!(keys.needs, [ids::access(), ids::secrets_read()]);
}
