//! `secrets/escrow`: which life the castle is in, and its Talos secrets kept before the first machine needs them.
//!
//! A machine of ours exists: its life, with the secrets kept for it, or stop. None exists: a new life, new secrets, kept
//! and read back before anything is made of them (DESIGN 9.7).

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Key, Step};
use castle_model::spec::PlatformSpec;
use castle_model::{Bug, Change, Class, Failure, Incarnation, Observed, Secret, Verb, planted};
use castle_platforms::escrow::{BUNDLE_KEY, Escrow as Keepers, KUBECONFIG_KEY};
use castle_platforms::handed::{LIFE, Life, escrowed_incarnation};
use castle_platforms::machines;
use castle_platforms::proxmox::inventory::INVENTORY;
use castle_platforms::ways::{Standing, Way};

use super::Vault;
use super::source::Values;

/// The life that this run has begun and not yet proven to be kept, so that a second try keeps the same one.
const DRAFT: Key<Life> = Key::new("secrets/draft");

/// The bundle as it was kept when this run looked, whatever was asked or written since.
const SEEN: Key<Option<Secret>> = Key::new("secrets/seen");

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
enum Course {
    /// Go on with the life that is kept.
    GoOn,
    /// Begin a new one.
    Begin,
    /// The secrets of the life that its machines are in are lost.
    Lost,
}

/// Decides from the life that machines are in, and the one whose secrets are kept.
fn course(alive: Option<&Incarnation>, kept: Option<&Incarnation>) -> Course {
    match (alive, kept) {
        (None, _) => Course::Begin,
        (Some(alive), Some(kept)) if alive == kept => Course::GoOn,
        (Some(_), _) => Course::Lost,
    }
}

/// The step.
pub(super) struct Escrow(pub(super) Arc<Vault>);

impl Escrow {
    fn keeper(&self) -> Result<&Keepers, Failure> {
        Ok(&self.0.sources()?.escrow)
    }

    /// The life that machines of the castle are in, as far as any is in one.
    async fn alive(
        &self,
        cx: &Context,
        text: Option<&Secret>,
    ) -> Result<Option<Incarnation>, Failure> {
        let spec = &self.0.spec;
        if let PlatformSpec::Machines(_) = spec.platform {
            let kept = text.map(|text| Life::from_escrow(&spec.name, text)).transpose()?;
            return machines::alive(cx, spec, &self.0.world, kept.as_ref()).await;
        }
        let inventory = cx.outputs().get(&INVENTORY)?;
        // A VM that is just being made bears no mark yet: then the journal knows whose it is.
        let begun = cx.incarnation().filter(|_| !inventory.unfinished.is_empty());
        Ok(inventory.incarnation()?.or(begun).cloned())
    }

    /// The place in words.
    fn place(&self) -> String {
        self.keeper().map(|keeper| keeper.0.place()).unwrap_or_default()
    }

    /// What can still be done for machines whose Talos secrets are gone.
    fn lost(&self, alive: &Incarnation, kept: Option<&Incarnation>, entries: &Values) -> Failure {
        let there =
            kept.map_or("nothing".to_owned(), |life| format!("the secrets of the life {life}"));
        let same_life = |text: &&Secret| {
            escrowed_incarnation(&self.0.spec.name, text).is_ok_and(|life| life == *alive)
        };
        let way_in = match entries.get(KUBECONFIG_KEY).filter(same_life) {
            Some(_) => format!("{KUBECONFIG_KEY} there still opens the cluster until it expires: save its data by that"),
            None => "any kubeconfig of that life still opens the cluster until it expires: save its data by that".to_owned(),
        };
        Failure::new(
            Class::Gone,
            format!("find the Talos secrets of the life {alive}"),
            format!("machines of that life exist, but {BUNDLE_KEY} holds {there}"),
        )
        .evidence(self.place())
        .hint(format!("put an earlier version of the entry back (Infisical and Git both keep some). Without it those machines can not be managed any more; {way_in}, then `castle down` removes them and `castle up` begins a new life"))
    }

    /// Whether a life is to be written. One that an earlier try has kept is not written twice; one that somebody else
    /// has begun since this run looked is not written over: there are never two.
    async fn is_to_be_kept(&self, cx: &Context, life: &Life) -> Result<bool, Failure> {
        let keeper = &self.keeper()?.0;
        let (seen, now) = (cx.outputs().get(&SEEN)?, keeper.kept_now().await?);
        let now = now.get(BUNDLE_KEY);
        let ours = life.to_escrow(&self.0.spec.name);
        if now.is_some_and(|now| now.expose() == keeper.as_kept(ours.expose())) {
            return Ok(false);
        }
        if now == Option::as_ref(&seen) {
            return Ok(true);
        }
        Err(Failure::new(
            Class::Conflict,
            format!("keep the Talos secrets of the life {}", life.incarnation),
            format!("{BUNDLE_KEY} has changed since this run looked at it"),
        )
        .evidence(self.place())
        .hint("somebody else raises this castle too: let one of you finish, then run `up` again"))
    }

    /// The ways in of somebody else would be in the way once the castle stands: better to know before it is made.
    fn refuse_foreign_ways(&self, entries: &Values) -> Result<(), Failure> {
        for way in Way::ALL {
            let vault = &self.0;
            let standing = way.judge(&vault.spec, None, &vault.world, entries.get(way.key()));
            if let Standing::Foreign { why } = standing {
                return Err(way.conflict(&self.place(), &why));
            }
        }
        Ok(())
    }

    /// The entries of this castle, of whatever life.
    fn ours(&self, entries: &Values) -> Vec<(&'static str, Incarnation)> {
        let keys = Way::ALL.map(Way::key).into_iter().chain([BUNDLE_KEY]);
        let life = |key: &'static str| {
            let text = entries.get(key)?;
            Some((key, escrowed_incarnation(&self.0.spec.name, text).ok()?))
        };
        keys.filter_map(life).collect()
    }

    fn proof(&self, life: &Life) -> String {
        format!("life {}, kept as {BUNDLE_KEY} in {}", life.incarnation, self.place())
    }
}

/// What its gate proves.
pub(super) const PROVES: &str = "the Talos secrets of this life are kept and read back";

#[async_trait]
impl Step for Escrow {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let castle = &self.0.spec.name;
        let entries = self.keeper()?.0.kept().await?;
        let text = entries.get(BUNDLE_KEY).cloned();
        if cx.outputs().get(&DRAFT).is_err() {
            cx.outputs().put(&SEEN, text.clone());
        }
        let kept = match text.as_ref().map(|text| escrowed_incarnation(castle, text)) {
            None => None,
            Some(Ok(life)) => Some(life),
            Some(Err(why)) => {
                return Ok(Observed::Foreign {
                    owner: format!("{BUNDLE_KEY} in {}: {why}", self.place()),
                });
            }
        };
        let alive = self.alive(cx, text.as_ref()).await?;
        match (course(alive.as_ref(), kept.as_ref()), text, &alive) {
            (Course::GoOn, Some(text), _) => {
                let life = Life::from_escrow(castle, &text)?;
                let proof = self.proof(&life);
                // The journal that knew it may be lost: machines and escrow agree on it, which is the proof.
                cx.lives(&life.incarnation);
                cx.learn("incarnation", life.incarnation.to_string());
                cx.outputs().put(&LIFE, life);
                Ok(Observed::right(proof))
            }
            (Course::Lost, _, Some(alive)) => Err(self.lost(alive, kept.as_ref(), &entries)),
            _ => {
                self.refuse_foreign_ways(&entries)?;
                self.keeper()?.0.writable()?;
                Ok(match kept {
                    Some(life) => Observed::Unused {
                        why: format!(
                            "no machine was made in the life {life}, so another one begins"
                        ),
                    },
                    None => Observed::Absent,
                })
            }
        }
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let vault = &self.0;
        let life = if let Ok(draft) = cx.outputs().get(&DRAFT) {
            draft
        } else {
            let mut life = Life::begin(&vault.world)?;
            // A seeded world that was thrown away would give its first life again, and what is known of that one.
            while cx.incarnation() == Some(&life.incarnation) {
                life = Life::begin(&vault.world)?;
            }
            cx.born(&life.incarnation).await?;
            cx.outputs().put(&DRAFT, life);
            cx.outputs().get(&DRAFT)?
        };
        let text = life.to_escrow(&vault.spec.name);
        if !planted(Bug::KeptTooLate) && self.is_to_be_kept(cx, &life).await? {
            self.keeper()?.keep(&life.incarnation, &[(BUNDLE_KEY, &text)]).await?;
        }
        let incarnation = life.incarnation.to_string();
        cx.outputs().put(&LIFE, Life::clone(&life));
        Ok(Acted::of(Change::Created).with("incarnation", incarnation))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let life = cx.outputs().get(&LIFE)?;
        if planted(Bug::SecretTold) {
            return Ok(life.to_escrow(&self.0.spec.name).expose().to_owned());
        }
        Ok(self.proof(&life))
    }

    async fn leftover(&self, _cx: &Context) -> Result<Option<String>, Failure> {
        // What this run has seen is asked for anew once it has removed something; the audit looks again anyway.
        let ours = self.ours(&self.keeper()?.0.kept().await?);
        let named: Vec<String> =
            ours.iter().map(|(key, life)| format!("{key} of the life {life}")).collect();
        Ok((!named.is_empty()).then(|| format!("{} in {}", named.join(", "), self.place())))
    }

    async fn undo(&self, cx: &Context) -> Result<(), Failure> {
        let keeper = &self.keeper()?.0;
        let ours = self.ours(&keeper.kept().await?);
        let keys: Vec<&str> = ours.iter().map(|(key, _)| *key).collect();
        keeper.remove(&keys).await?;
        if let Some(life) = cx.incarnation() {
            cx.gone(life);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_living_castle_keeps_its_life_and_a_dead_one_gets_a_new_one() {
        let one: Incarnation = "0011223344556677".parse().unwrap();
        let two: Incarnation = "8899aabbccddeeff".parse().unwrap();
        assert_eq!(course(Some(&one), Some(&one)), Course::GoOn);
        assert_eq!(course(Some(&one), Some(&two)), Course::Lost);
        assert_eq!(course(Some(&one), None), Course::Lost);
        assert_eq!(course(None, Some(&one)), Course::Begin);
        assert_eq!(course(None, None), Course::Begin);
    }
}
