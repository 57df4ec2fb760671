//! A whole small cluster over the host's wires, raised by the clients that castle uses.

use castle_kubernetes::{KubeAccess, Kubernetes, Mode, Object, Place, Seen, judge, readyz};
use castle_model::Verdict;
use castle_talos::access::{KubeAccess as Issued, TalosAccess};
use castle_talos::{Bundle, Talos, machine_config, without_secrets};
use futures::StreamExt;
use serde_json::json;

use super::life::{boot, download, settle};
use super::*;
use crate::trouble::{KubernetesTrouble, Named, TalosTrouble};
use crate::turn::Listen;

/// Raises one control plane and one worker, and gives access to their cluster.
async fn raise(host: &Host) -> KubeAccess {
    let (world, spec) = (host.world(), spec(1, 1));
    download(host).await;
    for node in &spec.nodes {
        boot(host, node).await;
    }
    let bundle = Bundle::generate(&*world.entropy, &*world.clock).unwrap();
    for node in &spec.nodes {
        let machine = Talos::maintenance(&world, node.address).await.unwrap();
        let config = machine_config(&spec, node, &bundle, "376567988ad37013", &without_secrets)
            .unwrap()
            .text;
        machine.apply(&config).await.unwrap();
    }
    settle().await;
    let access = TalosAccess::issue(&bundle, &*world.entropy, &*world.clock).unwrap();
    let first = Talos::secure(&world, spec.nodes[0].address, &access).await.unwrap();
    first.bootstrap().await.unwrap();
    settle().await;
    let Issued { server, authority, certificate, key } =
        Issued::issue(&spec, &bundle, &*world.entropy, &*world.clock).unwrap();
    KubeAccess { server, authority, certificate, key }
}

async fn run(host: &Host) -> Kubernetes {
    let access = raise(host).await;
    let world = host.world();
    let entry = access.entry(&world).unwrap();
    readyz(&entry, Ipv4Addr::new(192, 168, 1, 210)).await.unwrap();
    Kubernetes::new(&world, &access).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_cluster_rises_is_watched_and_comes_back_from_its_log() {
    let folder = private_folder();
    let host = Host::open(Some(folder.path()), &spec(1, 1), 9).unwrap();
    host.spawn_driver();
    let cluster = run(&host).await;
    let nodes = cluster.list("v1", "Node", None, "").await.unwrap();
    assert_eq!(nodes.items.len(), 2);
    for node in &nodes.items {
        let verdict = judge::judge(node);
        assert!(matches!(verdict, Verdict::Ready(_)), "{}: {verdict:?}", node.name());
    }

    let spaces = cluster.list("v1", "Namespace", None, "").await.unwrap();
    let all = Place {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        namespace: None,
        selector: String::new(),
    };
    let watch = cluster.watch(&all, &spaces.resource_version).await.unwrap();
    let mut watch = std::pin::pin!(watch);
    let wanted = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden"}});
    cluster.apply(&Object::new(wanted).unwrap(), Mode::Real).await.unwrap();
    let Some(Ok(Seen::There(seen))) = watch.next().await else { panic!("nothing was seen") };
    assert_eq!(seen.name(), "garden");

    let live = host.read(Clone::clone);
    drop(host);
    let host = Host::open(Some(folder.path()), &spec(1, 1), 9).unwrap();
    let mut replayed = host.read(Clone::clone);
    replayed.opens = live.opens;
    assert_eq!(replayed, live);
}

#[tokio::test(start_paused = true)]
async fn somebody_scales_and_deletes_with_kubectl_and_takes_a_data_disk() {
    let host = Host::open(None, &spec(1, 1), 9).unwrap();
    host.spawn_driver();
    run(&host).await;
    let wanted = |name: &str| {
        let all = host.inventory().workloads;
        all.into_iter().find(|workload| workload.name == name).map(|workload| workload.wanted)
    };
    let dns = "deployments/kube-system/coredns";
    let named = |kind: &str| Named {
        kind: kind.to_owned(),
        namespace: "kube-system".to_owned(),
        name: "coredns".to_owned(),
    };
    let poke = |trouble: Trouble| host.poke(&[trouble]).unwrap().changed;
    assert_eq!(wanted(dns), Some(2));
    let none = r#"{"spec":{"replicas":0}}"#.to_owned();
    assert!(poke(KubernetesTrouble::Patched(named("deploy"), none.clone()).into()));
    assert_eq!(wanted(dns), Some(0));
    assert!(!poke(KubernetesTrouble::Patched(named("deploy"), none).into()));
    assert!(!poke(KubernetesTrouble::Removed(named("statefulset")).into()));
    assert!(poke(KubernetesTrouble::Removed(named("Deployment")).into()));
    assert_eq!(wanted(dns), None);
    let inventory = host.inventory();
    assert_eq!(inventory.etcd, [("cp-01".to_owned(), "leader".to_owned())]);
    assert_eq!(inventory.vip, Some((Ipv4Addr::new(192, 168, 1, 210), "cp-01".to_owned())));
    assert!(poke(TalosTrouble::DataDiskGone(431, true).into()));
    assert_eq!(host.inventory().wrong, ["worker-01 does not see its data disk"]);
    assert!(poke(TalosTrouble::DataDiskGone(431, false).into()));
    assert!(host.inventory().wrong.is_empty());
    // A stranger takes the address of a machine that lives, and goes again.
    let address = Ipv4Addr::new(192, 168, 1, 214);
    let answers = || host.read(|world| world.talos.listen(address, 50_000));
    assert_eq!(answers(), Some(Listen::Secure { vmid: 431 }));
    assert!(poke(TalosTrouble::Foreign(address).into()));
    assert!(matches!(answers(), Some(Listen::Foreign { .. })));
    assert!(poke(TalosTrouble::ForeignGone(address).into()));
    assert_eq!(answers(), Some(Listen::Secure { vmid: 431 }));
    // Without its API server and etcd nobody writes, not even by hand.
    assert!(poke(TalosTrouble::Dead(421).into()));
    let kubelet = Named { kind: "sa".to_owned(), name: "default".to_owned(), ..named("") };
    assert!(!poke(KubernetesTrouble::Removed(kubelet).into()));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_rises_twice_in_the_same_way() {
    let rise = async || {
        let host = Host::open(None, &spec(1, 1), 4).unwrap();
        host.spawn_driver();
        run(&host).await;
        (host.trace_hash(), host.now(), host.mutations())
    };
    assert_eq!(rise().await, rise().await);
}
