//! The steps that turn machines into a cluster: boot, config, one bootstrap, one etcd, the VIP, the way in.
//!
//! ```text
//!   vm/N ─▶ boot/N ─▶ config/N ─▶ bootstrap ─▶ etcd
//!                    (all control      └─────▶ vip ─▶ access
//!                     planes)
//! ```

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use castle_engine::{Context, Graph};
use castle_model::spec::{NodeSpec, Role};
use castle_model::{Class, Failure, Spec, StepDecl, StepId};
use castle_talos::{KubeAccess, Presence, Talos, TalosAccess};
use castle_wire::World;
use castle_wire::failure::chain;

use crate::handed::{LIFE, Life};
use crate::ids;
use crate::proxmox::mark::smbios_uuid;
use crate::proxmox::vm_id;

pub mod access;
mod boot;
mod bootstrap;
mod config;
mod etcd;
#[cfg(test)]
mod tests;
mod vip;

/// The journaled output that says in which life a step was proven: what was true of an earlier one proves nothing.
const LIFE_OUTPUT: &str = "incarnation";

/// The step that waits for one machine to answer at its address.
#[must_use]
pub fn boot_id(node: &NodeSpec) -> StepId {
    StepId::of("platform", "boot", node.name.as_str())
}

/// The steps of this part.
#[must_use]
pub fn declare(spec: &Spec) -> Vec<StepDecl> {
    let mut decls = Vec::new();
    for node in &spec.nodes {
        let title = format!("{} answers at {}", node.name, node.address);
        decls.push(
            StepDecl::new(boot_id(node), title, "boot")
                .needs([vm_id(&node.name), ids::secrets_escrow()])
                .weight(14_000)
                .nothing_to_undo("it only waits"),
        );
        let title = format!("Talos config of {}", node.name);
        decls.push(
            StepDecl::new(ids::config(node), title, "apply")
                .needs([boot_id(node)])
                .weight(if node.role == Role::ControlPlane { 3000 } else { 2000 })
                .contained("the VM's disk"),
        );
    }
    decls.push(
        StepDecl::new(ids::bootstrap(), bootstrap_title(spec), "bootstrap")
            .needs(ids::control_plane_configs(spec))
            .weight(12_000)
            .contained("the VMs"),
    );
    decls.push(
        StepDecl::new(ids::etcd(), "one etcd on every control plane", "etcd")
            .needs([ids::bootstrap()])
            .weight(20_000)
            .nothing_to_undo("it only waits"),
    );
    decls.push(
        StepDecl::new(ids::vip(), format!("Kubernetes API at {}", spec.network.vip), "vip")
            .needs([ids::bootstrap()])
            .weight(18_000)
            .nothing_to_undo("it only waits"),
    );
    decls.push(
        StepDecl::new(ids::access(), "the way into the cluster", "vip")
            .needs([ids::vip()])
            .weight(100)
            .nothing_to_undo("it lives in memory"),
    );
    decls
}

/// Adds the steps of this part.
pub fn build(graph: &mut Graph, spec: &Arc<Spec>, world: &World) {
    let realm = Realm {
        spec: spec.clone(),
        world: world.clone(),
        keys: Arc::default(),
        open: Arc::default(),
    };
    for decl in declare(spec) {
        let node = |id: &dyn Fn(&NodeSpec) -> StepId| {
            spec.nodes.iter().find(|node| id(node) == decl.id).cloned()
        };
        if let Some(node) = node(&boot_id) {
            graph.add(decl, boot::Boot { realm: realm.clone(), node });
        } else if let Some(node) = node(&ids::config) {
            graph.add(decl, config::Config { realm: realm.clone(), node });
        } else if decl.id == ids::bootstrap() {
            graph.add(decl, bootstrap::Bootstrap(realm.clone()));
        } else if decl.id == ids::etcd() {
            graph.add(decl, etcd::Etcd(realm.clone()));
        } else if decl.id == ids::vip() {
            graph.add(decl, vip::Vip(realm.clone()));
        } else {
            graph.add(decl, access::Access(realm.clone()));
        }
    }
}

fn bootstrap_title(spec: &Spec) -> String {
    match spec.control_planes().next() {
        Some(first) => format!("bootstrap of etcd on {}", first.name),
        None => "bootstrap of etcd".to_owned(),
    }
}

/// What the steps share: the castle file, the outside, and who castle is in the present life.
#[derive(Clone)]
pub(crate) struct Realm {
    spec: Arc<Spec>,
    world: World,
    keys: Arc<Mutex<Option<Keys>>>,
    /// Connections to machines of ours, by cluster and address: every step looks at the same few machines.
    open: Arc<Mutex<BTreeMap<(String, Ipv4Addr), Talos>>>,
}

/// The administrator's certificates of one life.
#[derive(Clone)]
struct Keys {
    cluster: String,
    talos: Arc<TalosAccess>,
    kube: Arc<KubeAccess>,
}

impl Realm {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The node that is bootstrapped: always the first, so that no run ever chooses another.
    fn first(&self) -> Result<&NodeSpec, Failure> {
        self.spec().control_planes().next().ok_or_else(|| {
            Failure::bug("choose the node to bootstrap", "there is no control plane")
        })
    }

    /// The certificates, issued once for each life and process.
    fn keys(&self, cx: &Context) -> Result<Keys, Failure> {
        let life = cx.outputs().get(&LIFE)?;
        let mut place = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = place.as_ref().filter(|keys| keys.cluster == life.bundle.cluster_id) {
            return Ok(keys.clone());
        }
        let keys = self.issue(&life).map_err(|error| {
            Failure::new(Class::Invalid, "issue the administrator's certificates", chain(&error))
                .hint("the Talos secrets in escrow are damaged")
        })?;
        Ok(place.insert(keys).clone())
    }

    fn issue(&self, life: &Life) -> Result<Keys, castle_talos::KeyError> {
        let (entropy, clock) = (&*self.world.entropy, &*self.world.clock);
        Ok(Keys {
            cluster: life.bundle.cluster_id.clone(),
            talos: Arc::new(TalosAccess::issue(&life.bundle, entropy, clock)?),
            kube: Arc::new(KubeAccess::issue(self.spec(), &life.bundle, entropy, clock)?),
        })
    }

    /// Who answers at an address.
    async fn look(&self, cx: &Context, address: Ipv4Addr) -> Result<Presence, Failure> {
        let keys = self.keys(cx)?;
        if let Some(talos) = self.known(&keys, address)
            && talos.version().await.is_ok()
        {
            return Ok(Presence::Ours(talos));
        }
        let presence = Presence::look(&self.world, address, Some(&keys.talos)).await;
        if let Presence::Ours(talos) = &presence {
            self.keep(&keys, talos);
        }
        Ok(presence)
    }

    /// A connection to a machine of ours.
    async fn open(&self, cx: &Context, node: &NodeSpec) -> Result<Talos, Failure> {
        let keys = self.keys(cx)?;
        if let Some(talos) = self.known(&keys, node.address) {
            return Ok(talos);
        }
        let talos = Talos::secure(&self.world, node.address, &keys.talos)
            .await
            .map_err(|error| error.failure(format!("speak to {}", node.name)))?;
        self.keep(&keys, &talos);
        Ok(talos)
    }

    fn known(&self, keys: &Keys, address: Ipv4Addr) -> Option<Talos> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(&(keys.cluster.clone(), address)).cloned()
    }

    fn keep(&self, keys: &Keys, talos: &Talos) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert((keys.cluster.clone(), talos.address()), talos.clone());
    }

    /// Proves that the machine which answers is the VM that we made (DESIGN 9.8): the config that it would get
    /// holds the keys of the cluster.
    async fn is_our_vm(
        &self,
        cx: &Context,
        node: &NodeSpec,
        talos: &Talos,
    ) -> Result<Result<(), String>, Failure> {
        let wanted = smbios_uuid(&cx.outputs().get(&LIFE)?.incarnation, &node.name);
        let seen = talos
            .smbios_uuid()
            .await
            .map_err(|error| error.failure(format!("read the UUID of {}", node.name)))?;
        Ok(match seen {
            Some(seen) if seen == wanted => Ok(()),
            Some(seen) => Err(format!(
                "the machine at {} has the SMBIOS UUID {seen}, our {} has {wanted}",
                node.address, node.name
            )),
            None => Err(format!("the machine at {} shows no SMBIOS UUID", node.address)),
        })
    }
}
