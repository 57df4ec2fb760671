//! The rehearsal datacenter on loopback sockets, for programs that nobody here wrote.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use castle_model::spec::{
    Body, MachinesSpec, NodeSpec, PlatformSpec, Role, Spec, StandingSpec, TokenSpec,
};
use castle_reality::outside;
use castle_rehearsal::Host;
use castle_rehearsal::host::Pace;
use castle_rehearsal::host::front::Front;
use castle_talos::{Bundle, Talos, machine_config, without_secrets};
use castle_wire::{Clock as _, SystemClock, World};
use tokio::time::timeout;

/// How many times faster than outside the datacenter lives: minutes become seconds.
const SPEED: u32 = 60;

/// How long anything in it may take, in real time.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);

/// The schematic that the machines' images come from.
pub(crate) const SCHEMATIC: &str =
    "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba";

/// A datacenter with real sockets.
pub(crate) struct Datacenter {
    pub(crate) spec: Spec,
    pub(crate) host: Host,
    pub(crate) front: Front,
}

/// A castle of machines that stand already at `127.0.<net>.11` and so on; the VIP is `127.0.<net>.10`.
pub(crate) fn machines(net: u8, control_planes: usize, workers: usize) -> Spec {
    let mut spec = castle_config::example();
    spec.platform = PlatformSpec::Machines(MachinesSpec {
        installer: "nocloud".to_owned(),
        install_disk: "/dev/sda".to_owned(),
        link: "eth0".to_owned(),
        extensions: vec!["siderolabs/iscsi-tools".to_owned()],
    });
    spec.network.subnet = format!("127.0.{net}.0/24").parse().unwrap();
    spec.network.gateway = Ipv4Addr::new(127, 0, net, 1);
    spec.network.vip = Ipv4Addr::new(127, 0, net, 10);
    spec.network.pool = format!("127.0.{net}.230-127.0.{net}.245").parse().unwrap();
    let of = |role: Role, count: usize| -> Vec<NodeSpec> {
        spec.nodes.iter().filter(|node| node.role == role).take(count).cloned().collect()
    };
    let mut nodes = of(Role::ControlPlane, control_planes);
    nodes.extend(of(Role::Worker, workers));
    assert_eq!(nodes.len(), control_planes + workers, "the example castle is too small");
    for (node, last) in nodes.iter_mut().zip(11..) {
        node.address = Ipv4Addr::new(127, 0, net, last);
        let data_disk = node.role == Role::Worker;
        node.body = Body::Standing(StandingSpec { uuid: None, data_disk });
    }
    spec.nodes = nodes;
    spec
}

/// The example castle, with its Proxmox at `127.0.<net>.2:8006`.
pub(crate) fn proxmox(net: u8) -> Spec {
    let mut spec = castle_config::example();
    let platform = spec.platform.proxmox_mut().unwrap();
    platform.endpoint = format!("https://127.0.{net}.2:8006");
    assert!(matches!(platform.token, TokenSpec::Parts { .. } | TokenSpec::Whole(_)));
    spec
}

impl Datacenter {
    /// Builds it and opens its sockets.
    pub(crate) async fn open(spec: Spec) -> Self {
        let pace = Pace { now: SystemClock.now(), speed: SPEED };
        let host = Host::live(&spec, 11, pace).unwrap();
        let front = Front::open(&host).await.unwrap();
        Self { spec, host, front }
    }

    /// The outside as somebody in the datacenter's time sees it, over real sockets.
    pub(crate) fn world(&self) -> World {
        World { clock: self.host.clock(), ..outside() }
    }

    /// Waits until a machine listens for Talos' API.
    pub(crate) async fn listens(&self, address: Ipv4Addr) {
        let socket = SocketAddrV4::new(address, 50_000);
        let listening = timeout(LIMIT, self.front.until(socket, true)).await;
        assert!(listening.is_ok(), "nobody listens at {socket}; {:?}", self.front.refused());
    }

    /// The config of a machine, as castle makes it.
    pub(crate) fn config(&self, node: &NodeSpec, bundle: &Bundle) -> castle_model::Secret {
        machine_config(&self.spec, node, bundle, SCHEMATIC, &without_secrets).unwrap().text
    }

    /// Gives every machine its config, and waits until each has proven who it is.
    pub(crate) async fn configure(&self, bundle: &Bundle, access: &castle_talos::TalosAccess) {
        let world = self.world();
        for node in &self.spec.nodes {
            self.listens(node.address).await;
            let blank = Talos::maintenance(&world, node.address).await.unwrap();
            blank.apply(&self.config(node, bundle)).await.unwrap();
        }
        self.secured(access).await;
    }

    /// Waits until every machine has proven who it is.
    pub(crate) async fn secured(&self, access: &castle_talos::TalosAccess) {
        let world = self.world();
        for node in &self.spec.nodes {
            let answers = async {
                while version(&world, node.address, access).await.is_none() {
                    tokio::task::yield_now().await;
                }
            };
            let answered = timeout(LIMIT, answers).await;
            assert!(answered.is_ok(), "{} does not get its secure API", node.name);
        }
    }
}

async fn version(
    world: &World,
    address: Ipv4Addr,
    access: &castle_talos::TalosAccess,
) -> Option<String> {
    Talos::secure(world, address, access).await.ok()?.version().await.ok()
}
