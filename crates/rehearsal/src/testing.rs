//! What tests of the datacenter share: a castle to rehearse and a client that knows nothing of castle.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Mutex, OnceLock};

use castle_model::deadline::Deadlines;
use castle_model::name::VmId;
use castle_model::spec::{
    Body, EngineSpec, EscrowAfterDown, EscrowPlace, EscrowSpec, GitCredentials, GitopsSpec,
    InfisicalSpec, LayerOwner, MachineSpec, MachinesSpec, NetworkSpec, NetworkingSpec, NodeSpec,
    PlatformSpec, ProxmoxSpec, Role, SecretRef, SecretsSpec, SourceSpec, Spec, StandingSpec,
    StorageSpec, TokenSpec, Trust, VmSpec,
};
use castle_model::time::Moment;
use castle_talos::Bundle;
use castle_wire::{Clock, Entropy};
use tempfile::TempDir;

use crate::turn::Dice;

/// A passing folder that a world may live in.
pub(crate) fn private_folder() -> TempDir {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().unwrap()
}

/// A castle of `control_planes` and `workers`.
pub(crate) fn spec(control_planes: u8, workers: u8) -> Spec {
    Spec {
        name: "blue".parse().unwrap(),
        talos: "1.13.9".parse().unwrap(),
        kubernetes: "1.36.3".parse().unwrap(),
        secrets: SecretsSpec {
            sources: vec![SourceSpec::Infisical(InfisicalSpec {
                host: "https://eu.infisical.com".to_owned(),
                trust: Trust::System,
                project: "tazlab".to_owned(),
                environment: "dev".to_owned(),
                path: "/ephemeral-castle/blue/proxmox".to_owned(),
                credentials: None,
                reader: None,
            })],
            require: vec!["AWS_ACCESS_KEY_ID".to_owned()],
            shapes: BTreeMap::new(),
            escrow: EscrowSpec {
                place: EscrowPlace::Infisical,
                after_down: EscrowAfterDown::Remove,
            },
        },
        platform: PlatformSpec::Proxmox(ProxmoxSpec {
            endpoint: "https://pve.lan:8006".to_owned(),
            trust: Trust::System,
            token: TokenSpec::Parts {
                id: SecretRef("PROXMOX_TOKEN_ID".to_owned()),
                secret: SecretRef("PROXMOX_TOKEN_SECRET".to_owned()),
            },
            node: "pve".to_owned(),
            storage: "local-lvm".to_owned(),
            image_storage: "local".to_owned(),
            bridge: "vmbr0".to_owned(),
            vmids: (VmId(421), VmId(432)),
            extensions: vec!["siderolabs/iscsi-tools".to_owned()],
        }),
        machine: MachineSpec::default(),
        network: NetworkSpec {
            subnet: "192.168.1.0/24".parse().unwrap(),
            gateway: Ipv4Addr::new(192, 168, 1, 1),
            vip: Ipv4Addr::new(192, 168, 1, 210),
            nameservers: vec![Ipv4Addr::new(192, 168, 1, 1)],
            ntp: vec!["time.cloudflare.com".to_owned()],
            pool: "192.168.1.230-192.168.1.245".parse().unwrap(),
            pods: "10.244.0.0/16".parse().unwrap(),
            services: "10.96.0.0/12".parse().unwrap(),
        },
        nodes: (0..control_planes)
            .map(|n| node(Role::ControlPlane, n))
            .chain((0..workers).map(|n| node(Role::Worker, n)))
            .collect(),
        engine: EngineSpec { enabled: true, ..EngineSpec::default() },
        networking: NetworkingSpec { enabled: true, ..NetworkingSpec::default() },
        storage: StorageSpec {
            enabled: true,
            owner: LayerOwner::Castle,
            version: None,
            replicas: 2,
            data_path: None,
            over_provisioning: None,
            patches: Vec::new(),
        },
        gitops: GitopsSpec {
            enabled: true,
            url: "https://github.com/example/tazlab-k8s".to_owned(),
            branch: "main".to_owned(),
            path: "clusters/blue".to_owned(),
            token: Some(SecretRef("GITHUB_TOKEN".to_owned())),
            credentials: GitCredentials::Engine,
            ..GitopsSpec::default()
        },
        layers: Vec::new(),
        deadlines: Deadlines::default(),
        downloads: castle_model::spec::DownloadsSpec::default(),
        lock: castle_model::Lock::default(),
    }
}

fn node(role: Role, n: u8) -> NodeSpec {
    let (prefix, address, vmid) = match role {
        Role::ControlPlane => ("cp", 211, 421),
        Role::Worker => ("worker", 214, 431),
    };
    NodeSpec {
        name: format!("{prefix}-{:02}", n + 1).parse().unwrap(),
        role,
        address: Ipv4Addr::new(192, 168, 1, address + n),
        body: Body::Vm(VmSpec {
            vmid: VmId(vmid + u32::from(n)),
            cores: 4,
            memory_mib: 8192,
            disk_gib: 40,
            data_disk_gib: (role == Role::Worker).then_some(100),
        }),
    }
}

struct Seeded(Mutex<Dice>);

impl Entropy for Seeded {
    fn fill(&self, buffer: &mut [u8]) {
        self.0.lock().unwrap().fill(buffer);
    }

    fn rsa_4096(&self) -> Vec<u8> {
        let size = rcgen::RsaKeySize::_2048;
        rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, size).unwrap().serialize_der()
    }
}

impl Clock for Seeded {
    fn now(&self) -> Moment {
        Moment(1_769_990_400_000)
    }
}

/// The secrets of the one cluster that tests raise by hand.
pub(crate) fn bundle() -> &'static Bundle {
    static BUNDLE: OnceLock<Bundle> = OnceLock::new();
    let entropy = Seeded(Mutex::new(Dice::new(1)));
    BUNDLE.get_or_init(|| Bundle::generate(&entropy, &entropy).unwrap())
}

/// A castle of machines that stand already, at addresses of this computer alone: `127.0.<net>.11` and so on, with
/// the shared address `127.0.<net>.10`.
pub(crate) fn loopback(net: u8, control_planes: u8, workers: u8) -> Spec {
    let mut spec = spec(control_planes, workers);
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
    for (node, last) in spec.nodes.iter_mut().zip(11..) {
        node.address = Ipv4Addr::new(127, 0, net, last);
        let data_disk = node.role == Role::Worker;
        node.body = Body::Standing(StandingSpec { uuid: None, data_disk });
    }
    spec
}
