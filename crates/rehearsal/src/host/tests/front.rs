//! The datacenter on real sockets of this computer, met by a client that dials as anybody does.

use std::net::SocketAddrV4;
use std::time::Duration;

use castle_kubernetes::{KubeAccess, Kubernetes, Mode, Object, Place, Seen};
use castle_talos::access::{KubeAccess as Issued, TalosAccess};
use castle_talos::{Bundle, Talos, machine_config, without_secrets};
use castle_wire::{BoxedStream, DialFuture};
use futures::StreamExt;
use serde_json::json;
use tokio::net::TcpStream;

use super::*;
use crate::host::front::{Front, FrontError, Moved};
use crate::testing::loopback;

/// Dials for real.
struct Tcp;

impl Dialer for Tcp {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> DialFuture<'a> {
        Box::pin(
            async move { Ok(Box::new(TcpStream::connect((host, port)).await?) as BoxedStream) },
        )
    }
}

/// A host at a hundredfold speed whose day is some day in 2027, and the world as somebody outside sees it.
fn live(spec: &Spec) -> (Host, World) {
    let now = castle_model::time::Moment(1_800_000_000_000);
    let host = Host::live(spec, 5, Pace { now, speed: 100 }).unwrap();
    let world = World { dialer: Arc::new(Tcp), ..host.world() };
    (host, world)
}

async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), what).await.expect("it takes far too long")
}

#[tokio::test]
async fn a_machine_is_configured_over_real_sockets_and_its_shared_address_comes() {
    let spec = loopback(77, 1, 0);
    let (host, world) = live(&spec);
    let front = Front::open(&host).await.unwrap();
    let (node, vip) = (spec.nodes[0].address, spec.network.vip);
    let api = SocketAddrV4::new(node, 50_000);
    assert!(TcpStream::connect(api).await.is_err(), "it boots first");
    within(front.until(api, true)).await;
    let bundle = Bundle::generate(&*world.entropy, &*world.clock).unwrap();
    let blank = Talos::maintenance(&world, node).await.unwrap();
    assert_eq!(blank.version().await.unwrap(), "v1.13.9");
    assert_eq!(blank.extensions().await.unwrap(), ["iscsi-tools", "schematic"]);
    let config =
        machine_config(&spec, &spec.nodes[0], &bundle, "376567988ad37013", &without_secrets)
            .unwrap()
            .text;
    blank.apply(&config).await.unwrap();
    let access = TalosAccess::issue(&bundle, &*world.entropy, &*world.clock).unwrap();
    within(async {
        loop {
            let started = match Talos::secure(&world, node, &access).await {
                Ok(machine) => machine.bootstrap().await.is_ok(),
                Err(_) => false,
            };
            if started {
                break;
            }
            tokio::task::yield_now().await;
        }
        front.until(SocketAddrV4::new(vip, 6443), true).await;
    })
    .await;
    fifty_watch(&spec, &bundle, &world).await;
    assert!(front.refused().is_none());
    assert!(front.sockets().iter().all(|socket| socket.ip().is_loopback()));
    front.stop().await;
    assert!(TcpStream::connect(api).await.is_err(), "all sockets are closed");
}

/// Fifty clients, each with a connection and a watch of its own, hear of one change.
async fn fifty_watch(spec: &Spec, bundle: &Bundle, world: &World) {
    let Issued { server, authority, certificate, key } =
        Issued::issue(spec, bundle, &*world.entropy, &*world.clock).unwrap();
    let access = KubeAccess { server, authority, certificate, key };
    let all = Place {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        namespace: None,
        selector: String::new(),
    };
    let ready = async || {
        let client = Kubernetes::new(world, &access).unwrap();
        client.list("v1", "Namespace", None, "").await.ok().map(|list| (client, list))
    };
    let first = within(async {
        loop {
            if let Some(ready) = ready().await {
                break ready;
            }
            tokio::task::yield_now().await;
        }
    });
    let (client, spaces) = first.await;
    let mut watches = Vec::new();
    for _ in 0..50 {
        let own = Kubernetes::new(world, &access).unwrap();
        watches.push(Box::pin(own.watch(&all, &spaces.resource_version).await.unwrap()));
    }
    let wanted = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden"}});
    client.apply(&Object::new(wanted).unwrap(), Mode::Real).await.unwrap();
    for watch in &mut watches {
        within(async {
            loop {
                match watch.next().await {
                    Some(Ok(Seen::There(seen))) if seen.name() == "garden" => break,
                    Some(Ok(_)) => {}
                    other => panic!("a watch ended: {other:?}"),
                }
            }
        })
        .await;
    }
}

#[tokio::test]
async fn machines_with_addresses_of_their_own_are_reached_on_loopback_too() {
    let mut spec = loopback(76, 1, 0);
    let moved = Moved { from: "10.9.8.0/24".parse().unwrap(), to: Ipv4Addr::new(127, 0, 76, 0) };
    spec.network.subnet = moved.from;
    spec.nodes[0].address = Ipv4Addr::new(10, 9, 8, 11);
    let (host, world) = live(&spec);
    let front = Front::open_moved(&host, Some(moved)).await.unwrap();
    let outside = Ipv4Addr::new(127, 0, 76, 11);
    within(front.until(SocketAddrV4::new(outside, 50_000), true)).await;
    let blank = Talos::maintenance(&world, outside).await.unwrap();
    assert_eq!(blank.version().await.unwrap(), "v1.13.9");
    assert!(front.sockets().iter().all(|socket| socket.ip().is_loopback()));
    front.stop().await;
}

#[tokio::test]
async fn an_address_that_others_could_reach_is_refused() {
    let mut spec = spec(1, 0);
    spec.platform.proxmox_mut().unwrap().endpoint = "https://192.168.1.5:8006".to_owned();
    let (host, _) = live(&spec);
    let Err(error) = Front::open(&host).await else { panic!("it opened") };
    assert!(matches!(error, FrontError::NotLoopback { .. }), "{error}");
}
