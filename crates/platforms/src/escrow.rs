//! Where the secrets that a castle makes are kept, and the one way in which they are: compared, written, read back.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::Key;
use castle_model::spec::EscrowPlace;
use castle_model::{Class, Failure, Incarnation, Secret, Spec};

#[cfg(test)]
pub(crate) mod drawer;

/// The key of the bundle of Talos secrets, which nobody could make again.
pub const BUNDLE_KEY: &str = "TALOS_SECRETS_BUNDLE";
/// The key of the kubeconfig.
pub const KUBECONFIG_KEY: &str = "KUBECONFIG_CONTENT";
/// The key of the talosconfig.
pub const TALOSCONFIG_KEY: &str = "TALOSCONFIG_CONTENT";

/// Where this run keeps what the castle makes; given by `secrets/read`.
pub const ESCROW: Key<Escrow> = Key::new("secrets/keeper");

/// The place where what the castle makes is kept, in words.
#[must_use]
pub fn words(spec: &Spec) -> String {
    match (&spec.secrets.escrow.place, spec.secrets.infisical()) {
        (EscrowPlace::File(escrow), _) => escrow.file.clone(),
        (EscrowPlace::Infisical, infisical) => {
            infisical.map(|infisical| infisical.host.clone()).unwrap_or_default()
        }
    }
}

/// A place that keeps secrets by their keys.
#[async_trait]
pub trait Keeper: Send + Sync {
    /// The place in words.
    fn place(&self) -> String;

    /// Why nothing could be written there, as far as that is known without trying.
    ///
    /// # Errors
    /// What a run would be refused for.
    fn writable(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Everything that is kept there, as it was first seen in this run and changed by it.
    async fn kept(&self) -> Result<BTreeMap<String, Secret>, Failure>;

    /// Everything that is kept there, asked for now.
    async fn kept_now(&self) -> Result<BTreeMap<String, Secret>, Failure>;

    /// Writes entries of one life, all or none.
    async fn write(&self, life: &Incarnation, entries: &[(&str, &Secret)]) -> Result<(), Failure>;

    /// Removes entries; one that is not there is fine. They hang on each other in nothing, so they go at once.
    async fn remove(&self, keys: &[&str]) -> Result<(), Failure>;

    /// A text as the place keeps it.
    fn as_kept(&self, text: &str) -> String {
        text.to_owned()
    }
}

/// The keeper of a castle.
#[derive(Clone)]
pub struct Escrow(pub Arc<dyn Keeper>);

impl Escrow {
    /// Keeps entries and proves it: what is written is read back and compared.
    ///
    /// # Errors
    /// If the place can not be written, or holds something else afterwards.
    pub async fn keep(
        &self,
        life: &Incarnation,
        entries: &[(&str, &Secret)],
    ) -> Result<(), Failure> {
        self.0.write(life, entries).await?;
        let kept = self.0.kept_now().await?;
        for (key, text) in entries {
            if kept.get(*key).is_none_or(|kept| kept.expose() != self.0.as_kept(text.expose())) {
                return Err(Failure::new(
                    Class::Conflict,
                    format!("keep {key} of the life {life}"),
                    "it was stored, but reads back as something else",
                )
                .evidence(self.0.place())
                .hint(
                    "somebody else writes to the same entry: give each castle a place of its own",
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place that says yes and keeps something else, or nothing.
    struct Unfaithful(Option<&'static str>);

    #[async_trait]
    impl Keeper for Unfaithful {
        fn place(&self) -> String {
            "a place".to_owned()
        }

        async fn kept(&self) -> Result<BTreeMap<String, Secret>, Failure> {
            self.kept_now().await
        }

        async fn kept_now(&self) -> Result<BTreeMap<String, Secret>, Failure> {
            Ok(self.0.iter().map(|text| (BUNDLE_KEY.to_owned(), Secret::new(*text))).collect())
        }

        async fn write(&self, _: &Incarnation, _: &[(&str, &Secret)]) -> Result<(), Failure> {
            Ok(())
        }

        async fn remove(&self, _: &[&str]) -> Result<(), Failure> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn what_was_written_counts_only_once_it_is_read_back() {
        let life = "0011223344556677".parse().unwrap();
        let text = Secret::new("ours");
        for (kept, class) in [
            (Some("ours"), None),
            (Some("theirs"), Some(Class::Conflict)),
            (None, Some(Class::Conflict)),
        ] {
            let told = Escrow(Arc::new(Unfaithful(kept))).keep(&life, &[(BUNDLE_KEY, &text)]).await;
            assert_eq!(told.err().map(|failure| failure.class), class, "{kept:?}");
        }
    }
}
