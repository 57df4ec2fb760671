//! `secrets/escrow`: which life the castle is in, and its Talos secrets kept before the first machine needs them.
//!
//! A machine of ours exists: its life, with the secrets kept for it, or stop. None exists: a new life, new secrets, kept
//! and read back before anything is made of them (DESIGN 9.7).

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Key, Step};
use castle_infisical::stored_as;
use castle_model::spec::PlatformSpec;
use castle_model::{Change, Class, Failure, Incarnation, Observed, Secret, Verb};
use castle_platforms::handed::{LIFE, Life, escrowed_incarnation};
use castle_platforms::machines;
use castle_platforms::proxmox::inventory::INVENTORY;

use super::Vault;

/// The key under which the Talos secrets are kept.
pub const BUNDLE_KEY: &str = "TALOS_SECRETS_BUNDLE";

/// The life that this run has begun and not yet proven to be kept, so that a second try keeps the same one.
const DRAFT: Key<Life> = Key::new("secrets/draft");

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
    async fn kept(&self) -> Result<Option<Secret>, Failure> {
        let vault = &self.0;
        let found = vault.client()?.list(&vault.place().await?).await;
        let found =
            found.map_err(|error| vault.failure("look for the Talos secrets in", &error))?;
        Ok(found.own.get(BUNDLE_KEY).map(|entry| entry.value.clone()))
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

    fn lost(&self, alive: &Incarnation, kept: Option<&Incarnation>) -> Failure {
        let there =
            kept.map_or("nothing".to_owned(), |life| format!("the secrets of the life {life}"));
        Failure::new(
            Class::Gone,
            format!("find the Talos secrets of the life {alive}"),
            format!("machines of that life exist, but {BUNDLE_KEY} holds {there}"),
        )
        .evidence(self.0.place_words())
        .hint("put an earlier version of the entry back; without it those machines can not be managed, only removed by `castle down`")
    }

    fn proof(&self, life: &Life) -> String {
        format!("life {}, kept as {BUNDLE_KEY} in {}", life.incarnation, self.0.place_words())
    }

    async fn keep(&self, text: &Secret, life: &Life) -> Result<(), Failure> {
        let vault = &self.0;
        let (client, place) = (vault.client()?, vault.place().await?);
        let metadata = BTreeMap::from([
            ("castle".to_owned(), vault.spec.name.to_string()),
            ("incarnation".to_owned(), life.incarnation.to_string()),
        ]);
        let secrets = [(BUNDLE_KEY, text, &metadata)];
        let failed = |error| vault.failure("keep the Talos secrets in", &error);
        match client.upsert(&place, &secrets).await {
            Err(error) if error.is_missing() => {
                client.create_folder(&place).await.map_err(failed)?;
                client.upsert(&place, &secrets).await.map_err(failed)
            }
            outcome => outcome.map_err(failed),
        }
    }
}

#[async_trait]
impl Step for Escrow {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let castle = &self.0.spec.name;
        let text = self.kept().await?;
        let kept = match text.as_ref().map(|text| escrowed_incarnation(castle, text)) {
            None => None,
            Some(Ok(life)) => Some(life),
            Some(Err(why)) => {
                return Ok(Observed::Foreign {
                    owner: format!("{BUNDLE_KEY} in {}: {why}", self.0.place_words()),
                });
            }
        };
        let alive = self.alive(cx, text.as_ref()).await?;
        match (course(alive.as_ref(), kept.as_ref()), text, &alive) {
            (Course::GoOn, Some(text), _) => {
                let life = Life::from_escrow(castle, &text)?;
                let proof = self.proof(&life);
                cx.outputs().put(&LIFE, life);
                Ok(Observed::right(proof))
            }
            (Course::Lost, _, Some(alive)) => Err(self.lost(alive, kept.as_ref())),
            _ => Ok(Observed::Absent),
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
        self.keep(&text, &life).await?;
        let read_back = self.kept().await?;
        if read_back.is_none_or(|kept| kept.expose() != stored_as(text.expose())) {
            return Err(Failure::new(
                Class::Conflict,
                "keep the Talos secrets of the new life",
                format!("{BUNDLE_KEY} was stored, but reads back as something else"),
            )
            .evidence(vault.place_words())
            .hint("somebody else writes to the same entry: give each castle a path of its own"));
        }
        let incarnation = life.incarnation.to_string();
        cx.outputs().put(&LIFE, Life::clone(&life));
        Ok(Acted::of(Change::Created).with("incarnation", incarnation))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        Ok(self.proof(&*cx.outputs().get(&LIFE)?))
    }

    async fn leftover(&self, _cx: &Context) -> Result<Option<String>, Failure> {
        let kept = self.kept().await?;
        let ours = kept.and_then(|text| escrowed_incarnation(&self.0.spec.name, &text).ok());
        Ok(ours.map(|life| format!("{BUNDLE_KEY} of the life {life} in {}", self.0.place_words())))
    }

    async fn undo(&self, cx: &Context) -> Result<(), Failure> {
        let vault = &self.0;
        let removed = vault.client()?.remove(&vault.place().await?, BUNDLE_KEY).await;
        removed.map_err(|error| vault.failure("remove the Talos secrets from", &error))?;
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
