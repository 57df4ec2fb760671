//! Which boot every machine is in, so that what an earlier machine has reported is not taken for this one's word.
//!
//! A Node outlives its machine: for 40 seconds after that is gone it is still Ready, and one of the same name is made in less.
//! The SMBIOS UUID is the same by design. The id of the boot is not: the kubelet writes it into its Node when it registers.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use castle_engine::Context;
use castle_kubernetes::{Object, ObjectId};
use castle_model::spec::NodeSpec;
use castle_model::{Failure, NodeName};
use castle_talos::Presence;
use futures::future::join_all;
use tokio::time::Instant;

use crate::cluster::Objects;
use crate::talos::Realm;

/// How often machines are asked while what they told does not fit their Nodes.
const AGAIN: Duration = Duration::from_secs(2);

/// The id of its boot, or why a machine does not tell it.
pub(super) type Told = BTreeMap<NodeName, Result<String, String>>;

/// What the machines tell, for as long as a gate waits.
pub(super) struct Boots {
    told: Mutex<Told>,
    /// When they are asked again; none if what they told fits.
    due: Mutex<Option<Instant>>,
}

impl Boots {
    /// Asks all of them.
    pub(super) async fn ask(
        realm: &Realm,
        cx: &Context,
        nodes: &[NodeSpec],
    ) -> Result<Self, Failure> {
        let told = Mutex::new(told(realm, cx, nodes).await?);
        Ok(Self { told, due: Mutex::new(None) })
    }

    /// What they told last.
    pub(super) fn told(&self) -> Told {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// When they are to be asked again, if they are.
    pub(super) fn due(&self) -> Option<Instant> {
        *self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether what they told fits their Nodes; if not, they are asked again before long.
    pub(super) fn note(&self, fits: bool) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        match (fits, *due) {
            (true, _) => *due = None,
            (false, None) => *due = Some(Instant::now() + AGAIN),
            (false, Some(_)) => {}
        }
    }

    /// Asks them again, if that is due.
    pub(super) async fn ask_again(&self, realm: &Realm, cx: &Context, nodes: &[NodeSpec]) {
        if self.due().is_none_or(|due| Instant::now() < due) {
            return;
        }
        if let Ok(now) = told(realm, cx, nodes).await {
            *self.told.lock().unwrap_or_else(PoisonError::into_inner) = now;
        }
        *self.due.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + AGAIN);
    }
}

/// What every machine tells now.
pub(super) async fn told(realm: &Realm, cx: &Context, nodes: &[NodeSpec]) -> Result<Told, Failure> {
    let asked = join_all(nodes.iter().map(|node| async {
        let boot = match realm.look(cx, node.address).await? {
            Presence::Ours(talos) => talos.boot_id().await.map_err(|error| error.to_string()),
            _ => Err("it does not answer as a machine of this castle".to_owned()),
        };
        Ok((node.name.clone(), boot))
    }));
    asked.await.into_iter().collect()
}

/// The first node whose Node was not reported in the boot that its machine is in, and how that is known. Where a Node does
/// not name its boot, nothing can be held against it.
pub(super) fn stale(nodes: &[NodeSpec], objects: &Objects, told: &Told) -> Option<String> {
    nodes.iter().find_map(|node| {
        let name = &node.name;
        let object = objects.get(&ObjectId::cluster("v1", "Node", name.as_str()))?;
        let reported = boot_of(object)?;
        match told.get(name)? {
            Ok(boot) if *boot == reported => None,
            Ok(_) => Some(format!(
                "Node {name} was reported before its machine booted: its kubelet has not spoken since"
            )),
            Err(why) => Some(format!("{name} does not tell which boot it is in: {why}")),
        }
    })
}

fn boot_of(node: &Object) -> Option<String> {
    let id = node.at("/status/nodeInfo/bootID")?.as_str()?;
    (!id.is_empty()).then(|| id.to_owned())
}
