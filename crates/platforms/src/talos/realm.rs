//! What the steps of this part share: the castle file, the outside, who castle is in the present life, and the
//! machines that it speaks to.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use castle_engine::Context;
use castle_kubernetes::KubeEntry;
use castle_model::spec::{Body, NodeSpec};
use castle_model::{Class, Failure, Spec};
use castle_talos::resource::{MACHINE_STATUS, SERVICES};
use castle_talos::{KubeAccess, Presence, Talos, TalosAccess, TalosEntry};
use castle_wire::World;
use castle_wire::failure::chain;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};

use super::access::kubernetes_words;
use crate::handed::{LIFE, Life};
use crate::machines::identity::{Identity, MACHINE};
use crate::proxmox::mark::smbios_uuid;

/// What the steps share.
#[derive(Clone)]
pub(crate) struct Realm {
    spec: Arc<Spec>,
    pub(crate) world: World,
    keys: Arc<Mutex<Option<Keys>>>,
    /// Connections to machines of ours, by cluster and address: every step looks at the same few machines.
    open: Arc<Mutex<BTreeMap<(String, Ipv4Addr), Known>>>,
    /// Held by whoever changes a machine that is in use: one at a time.
    pub(super) update: Arc<tokio::sync::Mutex<()>>,
}

/// A machine of ours that was spoken to.
#[derive(Clone)]
struct Known {
    talos: Talos,
    /// The version that it said it runs, such as `v1.13.9`.
    version: String,
}

/// The administrator's certificates of one life.
#[derive(Clone)]
pub(super) struct Keys {
    cluster: String,
    pub(super) talos: Arc<TalosAccess>,
    pub(super) kube: Arc<KubeAccess>,
    /// The same, read: a machine is asked often, each time over a handshake that verifies anew.
    talos_entry: TalosEntry,
    pub(super) kube_entry: KubeEntry,
}

impl Realm {
    pub(crate) fn new(spec: &Arc<Spec>, world: &World) -> Self {
        Self {
            spec: spec.clone(),
            world: world.clone(),
            keys: Arc::default(),
            open: Arc::default(),
            update: Arc::default(),
        }
    }

    pub(crate) fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The node that is bootstrapped: always the first, so that no run ever chooses another.
    pub(super) fn first(&self) -> Result<&NodeSpec, Failure> {
        self.spec().control_planes().next().ok_or_else(|| {
            Failure::bug("choose the node to bootstrap", "there is no control plane")
        })
    }

    /// The control planes.
    pub(super) fn control_planes(&self) -> Vec<NodeSpec> {
        self.spec().control_planes().cloned().collect()
    }

    /// The certificates, issued once for each life and process.
    pub(super) fn keys(&self, cx: &Context) -> Result<Keys, Failure> {
        let life = cx.outputs().get(&LIFE)?;
        let mut place = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = place.as_ref().filter(|keys| keys.cluster == life.bundle.cluster_id) {
            return Ok(keys.clone());
        }
        Ok(place.insert(self.issue(&life)?).clone())
    }

    fn issue(&self, life: &Life) -> Result<Keys, Failure> {
        let damaged = |error: &(dyn std::error::Error + 'static)| {
            Failure::new(Class::Invalid, "issue the administrator's certificates", chain(error))
                .hint("the Talos secrets in escrow are damaged")
        };
        let (entropy, clock) = (&*self.world.entropy, &*self.world.clock);
        let talos =
            TalosAccess::issue(&life.bundle, entropy, clock).map_err(|error| damaged(&error))?;
        let kube = KubeAccess::issue(self.spec(), &life.bundle, entropy, clock)
            .map_err(|error| damaged(&error))?;
        Ok(Keys {
            cluster: life.bundle.cluster_id.clone(),
            talos_entry: talos.entry(&self.world).map_err(|error| damaged(&error))?,
            kube_entry: kubernetes_words(&kube)
                .entry(&self.world)
                .map_err(|error| damaged(&error))?,
            talos: Arc::new(talos),
            kube: Arc::new(kube),
        })
    }

    /// Who answers at an address.
    pub(crate) async fn look(&self, cx: &Context, address: Ipv4Addr) -> Result<Presence, Failure> {
        let keys = self.keys(cx)?;
        if let Some(talos) = self.known(&keys, address)
            && let Ok(version) = talos.version().await
        {
            self.keep(&keys, &talos, version);
            return Ok(Presence::Ours(talos));
        }
        let presence = Presence::look_by(&self.world, address, Some(&keys.talos_entry)).await;
        if let Presence::Ours(talos) = &presence {
            self.keep(&keys, talos, String::new());
        }
        Ok(presence)
    }

    /// A connection to a machine of ours.
    pub(super) async fn open(&self, cx: &Context, node: &NodeSpec) -> Result<Talos, Failure> {
        let keys = self.keys(cx)?;
        self.connection(&keys, node.address)
            .await
            .map_err(|error| error.failure(format!("speak to {}", node.name)))
    }

    async fn connection(
        &self,
        keys: &Keys,
        address: Ipv4Addr,
    ) -> Result<Talos, castle_talos::TalosError> {
        if let Some(talos) = self.known(keys, address) {
            return Ok(talos);
        }
        let talos = Talos::enter(&self.world, address, &keys.talos_entry).await?;
        self.keep(keys, &talos, String::new());
        Ok(talos)
    }

    fn known(&self, keys: &Keys, address: Ipv4Addr) -> Option<Talos> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(&(keys.cluster.clone(), address)).map(|known| known.talos.clone())
    }

    fn keep(&self, keys: &Keys, talos: &Talos, version: String) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let known = Known { talos: talos.clone(), version };
        open.insert((keys.cluster.clone(), talos.address()), known);
    }

    /// The version that a machine of ours said it runs, if it was asked before.
    pub(super) fn version_of(&self, cx: &Context, node: &NodeSpec) -> Option<String> {
        let keys = self.keys(cx).ok()?;
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let known = open.get(&(keys.cluster, node.address))?;
        (!known.version.is_empty()).then(|| known.version.clone())
    }

    /// Tells whenever some machines of ours say something new of their stage or of their etcd. It ends when one that
    /// was followed breaks off; those that cannot be followed yet are left out.
    pub(super) fn news(&self, cx: &Context, nodes: &[NodeSpec]) -> BoxStream<'static, ()> {
        let Ok(keys) = self.keys(cx) else { return stream::empty().boxed() };
        let each = nodes.iter().map(|node| {
            let (realm, keys, address) = (self.clone(), keys.clone(), node.address);
            stream::once(async move { realm.connection(&keys, address).await.ok() })
                .filter_map(std::future::ready)
                .flat_map(|talos| {
                    stream::select(
                        until_lost(talos.changes(MACHINE_STATUS, Some("machine"))),
                        until_lost(talos.changes(SERVICES, Some("etcd"))),
                    )
                })
                .boxed()
        });
        stream::select_all(each)
            .take_while(|followed| std::future::ready(*followed))
            .map(|_| ())
            .boxed()
    }

    /// Proves that the machine which answers is the one that the node is to be (DESIGN 9.8): the config that it would
    /// get holds the keys of the cluster.
    pub(super) async fn is_our_machine(
        &self,
        cx: &Context,
        node: &NodeSpec,
        talos: &Talos,
    ) -> Result<Result<(), String>, Failure> {
        let known = match &node.body {
            Body::Vm(_) => {
                let life = cx.outputs().get(&LIFE)?;
                Identity {
                    uuid: Some(smbios_uuid(&life.incarnation, &node.name)),
                    fingerprint: None,
                }
            }
            Body::Standing(_) => {
                Identity::clone(&*cx.outputs().get_of(&MACHINE, node.name.as_str())?)
            }
        };
        let seen = Identity::of(talos)
            .await
            .map_err(|error| error.failure(format!("read the UUID of {}", node.name)))?;
        Ok(known.agrees(&seen).map_err(|why| format!("the machine at {} {why}", node.address)))
    }
}

/// Turns every change into `true`, and the end of a watch that ever told something into `false`.
fn until_lost(changes: BoxStream<'static, ()>) -> BoxStream<'static, bool> {
    stream::unfold((changes, false), |(mut changes, told)| async move {
        match changes.next().await {
            Some(()) => Some((true, (changes, true))),
            None => told.then_some((false, (stream::empty().boxed(), false))),
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_watch_that_was_open_is_missed_when_it_ends() {
        let heard = |changes: BoxStream<'static, ()>| until_lost(changes).collect::<Vec<bool>>();
        assert_eq!(heard(stream::empty().boxed()).await, Vec::<bool>::new());
        assert_eq!(heard(stream::iter([(), ()]).boxed()).await, [true, true, false]);
    }
}
