//! `platform/inventory`: who answers at the declared addresses, as far as a stranger can see.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use castle_engine::{Context, Key, Step};
use castle_model::{Failure, NodeName, Observed};
use castle_talos::Presence;
use castle_talos::config::KUBERNETES_PORT;
use futures::future::join_all;
use tokio::time::timeout;

use super::identity::Identity;
use crate::proxmox::inventory::{INVENTORY, Inventory};
use crate::talos::Realm;

/// What was found.
pub(super) const YARD: Key<Yard> = Key::new("platform/yard");

/// How long the shared address may say nothing before it counts as silent.
const SILENCE: Duration = Duration::from_secs(2);

/// The machines that stand at the declared addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Yard {
    pub(super) at: BTreeMap<NodeName, Standing>,
    /// Whether somebody answers at the shared address.
    pub(super) vip_taken: bool,
}

/// What stands at one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nobody answers; why.
    Silent(String),
    /// A machine in maintenance mode.
    Waiting(Identity),
    /// A machine with a config: ours or somebody's, which only the cluster's keys can tell.
    Configured,
}

impl Yard {
    /// Whether any machine has a config.
    pub(super) fn in_use(&self) -> bool {
        self.at.values().any(|standing| *standing == Standing::Configured)
    }

    fn summary(&self) -> String {
        let count = |wanted: fn(&Standing) -> bool| self.at.values().filter(|s| wanted(s)).count();
        format!(
            "{} in maintenance mode, {} with a config, {} silent",
            count(|s| matches!(s, Standing::Waiting(_))),
            count(|s| *s == Standing::Configured),
            count(|s| matches!(s, Standing::Silent(_)))
        )
    }
}

/// Looks who answers at every declared address.
pub(super) async fn look(realm: &Realm) -> Yard {
    let spec = realm.spec();
    let looks = spec.nodes.iter().map(|node| async {
        let standing = match Presence::look(&realm.world, node.address, None).await {
            Presence::Silent { why } => Standing::Silent(why),
            Presence::Foreign { .. } | Presence::Untimely { .. } | Presence::Ours(_) => {
                Standing::Configured
            }
            Presence::Maintenance(talos) => match Identity::of(&talos).await {
                Ok(identity) => Standing::Waiting(identity),
                Err(error) => Standing::Silent(error.to_string()),
            },
        };
        (node.name.clone(), standing)
    });
    let mut yard = Yard { at: join_all(looks).await.into_iter().collect(), vip_taken: false };
    // Where machines are in use, one of them may rightly hold it.
    if !yard.in_use() {
        let vip = spec.network.vip.to_string();
        let dial = realm.world.dialer.dial(&vip, KUBERNETES_PORT);
        // Where the address is of this machine itself, it refuses whether somebody holds it or not.
        let refused = |error: &std::io::Error| {
            error.kind() == std::io::ErrorKind::ConnectionRefused && !spec.network.vip.is_loopback()
        };
        yard.vip_taken = match timeout(SILENCE, dial).await {
            Ok(Ok(_)) => true,
            Ok(Err(error)) => refused(&error),
            Err(_) => false,
        };
    }
    yard
}

/// The step.
pub(super) struct LookAround(pub(super) Realm);

/// What its gate proves.
pub(super) const PROVES: &str = "every declared address was asked who answers there";

#[async_trait]
impl Step for LookAround {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let yard = look(&self.0).await;
        let evidence = yard.summary();
        cx.outputs().put(&YARD, yard);
        // There are no guests of anybody here; what asks for them finds none.
        cx.outputs().put(&INVENTORY, Inventory::default());
        Ok(Observed::right(evidence))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        Ok(cx.outputs().get(&YARD)?.summary())
    }
}
