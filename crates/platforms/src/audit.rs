//! What is there of a castle, asked of the world and not of our records: for `castle audit`, and for the end of `down`.

use std::future::Future;
use std::time::Duration;

use castle_engine::Pace;
use castle_engine::wait::{answered, until};
use castle_model::audit::{Item, Kind, Standing};
use castle_model::spec::PlatformSpec;
use castle_model::{Failure, Secret, Spec, Verdict};
use castle_talos::{Presence, TalosAccess};
use castle_wire::World;
use futures::future::join_all;
use tokio::time::Instant;

use crate::handed::{Life, SecretValues};
use crate::proxmox;
use crate::proxmox::wanted::Wanted;

/// How long a part of the world may be silent before it is told as not seen.
const PATIENCE: Duration = Duration::from_secs(30);

/// What an audit needs to look at the machines of a castle.
pub struct Auditor<'a> {
    /// The castle file.
    pub spec: &'a Spec,
    /// The outside.
    pub world: &'a World,
    /// The values of the keys that open the platform.
    pub secrets: &'a SecretValues,
    /// The Talos secrets that are in escrow or have just gone from there, if any: they tell our own machines from others.
    pub kept: Option<&'a Secret>,
    /// Whether the castle should be gone.
    pub gone: bool,
}

impl Auditor<'_> {
    /// Everything of the platform. What can not be looked at is a thing, too.
    pub async fn look(&self) -> Vec<Item> {
        match (&self.spec.platform, Wanted::of(self.spec)) {
            (PlatformSpec::Proxmox(_), Some(wanted)) => proxmox::audit::look(self, &wanted).await,
            _ => self.machines().await,
        }
    }

    /// How a thing of ours stands that a castle has while it stands.
    pub(crate) fn ours(&self) -> Standing {
        if self.gone { Standing::Left } else { Standing::Expected }
    }

    /// The keys by which our own machines know us, if they are kept.
    pub(crate) fn access(&self) -> Option<TalosAccess> {
        let life = Life::from_escrow(&self.spec.name, self.kept?).ok()?;
        let (entropy, clock) = (self.world.entropy.as_ref(), self.world.clock.as_ref());
        TalosAccess::issue(&life.bundle, entropy, clock).ok()
    }

    /// Machines that stand already: those with our config.
    async fn machines(&self) -> Vec<Item> {
        let access = self.access();
        let looks = self.spec.nodes.iter().map(|node| {
            let access = access.as_ref();
            async move {
                let found = Presence::look(self.world, node.address, access).await;
                let what = format!("machine {}", node.name);
                let item = |standing, whose: &str| {
                    Item::new(standing, Kind::Guest, what, node.address.to_string(), whose)
                };
                match found {
                    Presence::Ours(_) | Presence::Untimely { .. } if access.is_some() => Some(
                        item(self.ours(), "it has this castle's config")
                            .advice("`castle down` resets it"),
                    ),
                    Presence::Foreign { .. } | Presence::Ours(_) | Presence::Untimely { .. } => {
                        Some(item(Standing::Others, "it has a config that is not of this castle"))
                    }
                    Presence::Maintenance(_) | Presence::Silent { .. } => None,
                }
            }
        });
        join_all(looks).await.into_iter().flatten().collect()
    }
}

/// Asks a part of the world for some time, and tells why it is asked again.
///
/// # Errors
/// What it says for good, or still says when that time is over.
pub async fn patiently<T, F, Fut>(
    what: &str,
    mut waits: impl FnMut(&str) + Send,
    look: F,
) -> Result<T, Failure>
where
    T: Send,
    F: FnMut() -> Fut + Send,
    Fut: Future<Output = Result<T, Failure>> + Send,
{
    let again = |failure: &Failure, _| waits(&format!("an answer: {failure}"));
    answered(what, Instant::now() + PATIENCE, again, look).await
}

/// Asks a part of the world for some time; what does not answer then is a thing that was not seen.
pub(crate) async fn seen<T, F, Fut>(
    (kind, what, place): (Kind, &str, &str),
    mut look: F,
    items: &mut Vec<Item>,
) -> Option<T>
where
    T: Send,
    F: FnMut() -> Fut + Send,
    Fut: Future<Output = Result<T, Failure>> + Send,
{
    let deadline = Instant::now() + PATIENCE;
    let asked = until(
        what,
        Pace::RETRY,
        deadline,
        |_| (),
        || {
            let answer = look();
            async { answer.await.map(Verdict::Ready) }
        },
    );
    match asked.await {
        Ok(found) => Some(found),
        Err(failure) => {
            let why = match &failure.evidence {
                Some(evidence) => format!("it can not be looked at: {failure} ({evidence})"),
                None => format!("it can not be looked at: {failure}"),
            };
            let item = Item::new(Standing::Unseen, kind, what, place, why);
            items.push(item.advice("mend that, then run `castle audit`"));
            None
        }
    }
}
