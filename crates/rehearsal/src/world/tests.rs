//! Whole lives of a castle by direct inputs: what ends must leave nothing that acts on what comes after it.

use castle_model::spec::{NodeSpec, Spec};
use castle_talos::{machine_config, without_secrets};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::*;
use crate::inventory::Inventory;
use crate::testing::{bundle, spec};
use crate::turn::{HttpBody, Listen, Peer};

const IMAGE: &str = "talos-1.13.9-c9078f9419961640.qcow2";

/// A datacenter without wires.
#[derive(Clone)]
struct Bench {
    world: Datacenter,
    at: u64,
    spec: Spec,
    bootstrapped: bool,
}

impl Bench {
    /// A datacenter that has the image.
    fn new(control_planes: u8, workers: u8) -> Self {
        let spec = spec(control_planes, workers);
        let world = Datacenter::new(Birth::of(&spec, 1));
        let mut bench = Self { world, at: 0, spec, bootstrapped: false };
        let id = format!("{:0<64}", "c9078f9419961640");
        let url = format!("https://factory.talos.dev/image/{id}/v1.13.9/nocloud-amd64.qcow2");
        let wanted = [("url", url.as_str()), ("content", "import"), ("filename", IMAGE)];
        bench.proxmox("POST", "/storage/local/download-url", &wanted);
        bench.finish_tasks();
        bench
    }

    fn http(&mut self, server: Server, call: HttpCall) -> HttpReply {
        match self.world.input(self.at, &Input::Http { server, call }).answer {
            Answer::Http(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    fn proxmox(&mut self, method: &str, path: &str, form: &[(&str, &str)]) {
        let escape = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let pairs: Vec<String> =
            form.iter().map(|(k, v)| format!("{}={}", escape(k), escape(v))).collect();
        let birth = &self.world.birth.proxmox;
        let token = format!("PVEAPIToken={}={}", birth.token_id, birth.token_secret);
        let form = "application/x-www-form-urlencoded".to_owned();
        let call = HttpCall {
            method: method.to_owned(),
            host: "pve.lan".to_owned(),
            path: format!("/api2/json/nodes/pve{path}"),
            query: String::new(),
            headers: vec![("authorization".to_owned(), token), ("content-type".to_owned(), form)],
            body: pairs.join("&").into_bytes(),
            peer: None,
        };
        let reply = self.http(Server::Proxmox, call);
        assert_eq!(reply.status, 200, "{method} {path}: {:?} {:?}", reply.reason, reply.body);
    }

    fn kubernetes(&mut self, path: &str) -> (u16, String) {
        let call = HttpCall {
            method: "GET".to_owned(),
            host: "192.168.1.210".to_owned(),
            path: path.to_owned(),
            query: String::new(),
            headers: Vec::new(),
            body: Vec::new(),
            peer: Some(Peer {
                common_name: "admin".to_owned(),
                organizations: vec!["system:masters".to_owned()],
            }),
        };
        let reply = self.http(Server::Kubernetes, call);
        let HttpBody::Whole(bytes) = reply.body else { panic!("a watch") };
        (reply.status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    fn talos(&mut self, vmid: u32, call: talos::Call) -> Result<talos::Reply, talos::Refusal> {
        match self.world.input(self.at, &Input::Talos { vmid, call }).answer {
            Answer::Talos(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    fn fire(&mut self) -> bool {
        let Some(due) = self.world.queue.first_due() else { return false };
        self.at = self.at.max(due);
        self.world.input(due, &Input::Fire);
        true
    }

    fn pass(&mut self, milliseconds: u64) {
        let end = self.at + milliseconds;
        while self.world.queue.first_due().is_some_and(|due| due <= end) {
            self.fire();
        }
        self.at = end;
    }

    fn finish_tasks(&mut self) {
        while !Inventory::of(&self.world).proxmox.running_tasks.is_empty() {
            assert!(self.fire());
        }
    }

    fn create(&mut self, nodes: &[NodeSpec]) {
        let disk = format!("local-lvm:0,import-from=local:import/{IMAGE}");
        for node in nodes {
            let vmid = node.vm().unwrap().vmid.to_string();
            let address = format!("ip={}/24,gw=192.168.1.1", node.address);
            let machine = [
                ("vmid", vmid.as_str()),
                ("name", node.name.as_str()),
                ("memory", "8192"),
                ("scsi0", disk.as_str()),
                ("ide2", "local-lvm:cloudinit"),
                ("net0", "virtio,bridge=vmbr0"),
                ("ipconfig0", address.as_str()),
                ("start", "1"),
            ];
            self.proxmox("POST", "/qemu", &machine);
        }
        self.finish_tasks();
    }

    fn destroy(&mut self, nodes: &[NodeSpec]) {
        for node in nodes {
            self.proxmox("POST", &format!("/qemu/{}/status/stop", node.vm().unwrap().vmid), &[]);
        }
        self.finish_tasks();
        for node in nodes {
            self.proxmox("DELETE", &format!("/qemu/{}", node.vm().unwrap().vmid), &[]);
        }
        self.finish_tasks();
    }

    /// What a client does now and then: configures who asks for it, and bootstraps once.
    fn tend(&mut self) {
        for node in self.spec.nodes.clone() {
            let vmid = node.vm().unwrap().vmid.0;
            match self.world.talos.listen(node.address, 50_000) {
                Some(Listen::Maintenance { .. }) => {
                    let config =
                        machine_config(&self.spec, &node, bundle(), "c907", &without_secrets)
                            .unwrap()
                            .text;
                    let config = talos::ConfigText(config.expose().to_owned());
                    // While the first one is being applied, a second is refused.
                    let call = talos::Call::Apply {
                        config,
                        mode: talos::ApplyMode::Auto,
                        dry_run: false,
                        try_seconds: None,
                        admin: false,
                    };
                    drop(self.talos(vmid, call));
                }
                Some(Listen::Secure { .. }) if vmid == 421 && !self.bootstrapped => {
                    self.bootstrapped = self.talos(421, talos::Call::Bootstrap).is_ok();
                }
                _ => {}
            }
        }
    }

    fn all_ready(&self) -> bool {
        let nodes = Inventory::of(&self.world).nodes;
        nodes.len() == self.spec.nodes.len() && nodes.iter().all(|(_, ready)| *ready)
    }

    /// Makes the machines anew and leaves them alone: nothing that the last ones had begun may come to them.
    fn blank_machines_stay_blank(mut self, effects: usize) {
        self.create(&self.spec.nodes.clone());
        self.pass(300_000);
        for node in &self.spec.nodes {
            let vmid = node.vm().unwrap().vmid.0;
            let listen = |port| self.world.talos.listen(node.address, port);
            assert_eq!(listen(50_000), Some(Listen::Maintenance { vmid }), "after {effects}");
            assert_eq!(listen(6443), Some(Listen::Refused), "{vmid} after {effects}");
        }
    }

    /// Raises the castle until it stands or so many effects have happened, and says whether it stands.
    fn raise(&mut self, effects: usize) -> bool {
        self.bootstrapped = false;
        self.create(&self.spec.nodes.clone());
        for _ in 0..effects {
            if self.all_ready() {
                return true;
            }
            self.tend();
            self.fire();
        }
        false
    }
}

#[test]
fn whenever_a_castle_was_razed_the_next_one_rises() {
    let fresh = Bench::new(3, 1);
    for effects in (0..160).step_by(4) {
        let mut bench = fresh.clone();
        let nodes = bench.spec.nodes.clone();
        bench.raise(effects);
        bench.destroy(&nodes);
        let left = Inventory::of(&bench.world);
        assert_eq!((left.nodes, left.machines), (Vec::new(), BTreeMap::new()), "after {effects}");
        assert_eq!(bench.world.kubernetes.cluster(), None, "after {effects}");
        bench.clone().blank_machines_stay_blank(effects);
        let second = bench.raise(1000);
        let nodes = Inventory::of(&bench.world).nodes;
        assert!(second, "razed after {effects} effects, then: {nodes:?}");
    }
}

#[test]
fn without_a_quorum_nothing_is_read_and_nothing_heals() {
    let mut bench = Bench::new(3, 1);
    assert!(bench.raise(1000));
    assert_eq!(bench.kubernetes("/readyz"), (200, "ok".to_owned()));
    let nodes = bench.spec.nodes.clone();
    bench.destroy(&nodes[1..3]);
    bench.create(&nodes[1..3]);
    bench.pass(300_000);
    for _ in 0..200 {
        bench.tend();
        bench.fire();
    }
    bench.pass(300_000);
    let members = bench.talos(421, talos::Call::EtcdMembers);
    assert_eq!(members, Err(talos::Refusal::Waits));
    let Ok(talos::Reply::Status { leader, .. }) = bench.talos(421, talos::Call::EtcdStatus) else {
        panic!("no status");
    };
    assert_eq!(leader, 0);
    let Ok(talos::Reply::Services(services)) = bench.talos(421, talos::Call::Services) else {
        panic!("no services");
    };
    let etcd = services.iter().find(|service| service.id == "etcd").unwrap();
    assert_eq!((etcd.state.as_str(), etcd.healthy), ("Running", Some(false)));
    let (status, text) = bench.kubernetes("/readyz");
    assert_eq!(status, 500);
    assert!(text.contains("[-]etcd failed"), "{text}");
    let (status, text) = bench.kubernetes("/api/v1/nodes");
    let message = serde_json::from_str::<Value>(&text).unwrap()["message"].clone();
    assert_eq!((status, message), (500, "etcdserver: request timed out".into()));
    assert_eq!(bench.world.talos.listen(bench.spec.network.vip, 6443), None, "the lease ran out");
    let waits = bench.talos(422, talos::Call::EtcdMembers);
    assert_eq!(waits, Err(talos::Refusal::Waits), "nobody can join");
    assert_eq!(bench.world.talos.etcds_of(&bundle().cluster_id), 1);
}

#[test]
fn one_lost_control_plane_comes_back_as_a_new_member() {
    let mut bench = Bench::new(3, 0);
    assert!(bench.raise(1000));
    let nodes = bench.spec.nodes.clone();
    bench.destroy(&nodes[1..2]);
    bench.create(&nodes[1..2]);
    for _ in 0..400 {
        bench.tend();
        bench.fire();
    }
    let Ok(talos::Reply::Members(members)) = bench.talos(422, talos::Call::EtcdMembers) else {
        panic!("it did not join");
    };
    let members: Vec<_> = members.iter().map(|m| (m.hostname.as_str(), m.learner)).collect();
    assert_eq!(members, [("cp-01", false), ("cp-02", false), ("cp-03", false)]);
    assert!(bench.all_ready());
}

#[test]
fn a_task_for_a_guest_that_went_leaves_the_next_of_its_number_alone() {
    let first = Bench::new(1, 0);
    // Whether the start outlives the destruction and the creation is up to the dice: sometimes it does.
    let mut outlived = 0;
    for round in 0..200 {
        let mut bench = first.clone();
        bench.world.dice = Dice::new(round);
        bench.create(&first.spec.nodes);
        bench.proxmox("POST", "/qemu/421/status/stop", &[]);
        bench.finish_tasks();
        bench.proxmox("POST", "/qemu/421/status/start", &[]);
        bench.proxmox("DELETE", "/qemu/421", &[]);
        let tasks = |bench: &Bench| Inventory::of(&bench.world).proxmox.running_tasks.len();
        while tasks(&bench) == 2 {
            bench.fire();
        }
        if !Inventory::of(&bench.world).proxmox.guests.is_empty() {
            continue; // The start came first, and what runs is not destroyed.
        }
        bench.proxmox("POST", "/qemu", &[("vmid", "421"), ("name", "cp-01")]);
        let locked = |bench: &Bench| Inventory::of(&bench.world).proxmox.guests[0].lock.is_some();
        while locked(&bench) {
            bench.fire();
        }
        outlived += tasks(&bench);
        bench.finish_tasks();
        let guests = Inventory::of(&bench.world).proxmox.guests;
        assert!(!guests[0].running, "round {round}: the start was not for it");
    }
    assert!(outlived > 0, "the case never came up");
}
