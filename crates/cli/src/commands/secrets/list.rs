//! `castle secrets list`: every key, what it is for, and where it would come from.

use std::collections::BTreeMap;

use castle_layers::secrets::gather::Gathered;
use castle_model::Failure;
use castle_model::spec::{DiskEncryption, SecretRef, Spec, TokenSpec};
use castle_view::secrets::{Key, KeyState, Keys};

use super::{Asked, escrow};
use crate::answer;
use crate::castle::{Castle, Place};
use crate::exit::{Exit, Problem};
use crate::face::style;
use crate::output;
use crate::settings::{Settings, Stream};

/// Prints the keys; what is missing is no failure of a list.
pub(super) async fn run(asked: &Asked<'_>) -> Result<Result<Exit, Problem>, Failure> {
    let gathered = asked.sources.gather(&asked.castle.spec).await?;
    let mut keys = keys(asked.castle, Some(&gathered));
    keys.escrow = Some(escrow::kept(asked).await?);
    show(&keys, asked.json, asked.settings);
    Ok(Ok(Exit::Done))
}

/// Prints keys as text or JSON.
pub(super) fn show(keys: &Keys, json: bool, settings: &Settings) {
    output::page(&if json {
        answer::line("secrets", keys)
    } else {
        keys.text(style(settings, Stream::Data))
    });
}

/// The keys of a castle, with what was found of them.
pub(super) fn keys(castle: &Castle, gathered: Option<&Gathered>) -> Keys {
    let spec = &castle.spec;
    let sources: Vec<String> = spec.secrets.sources.iter().map(ToString::to_string).collect();
    let mut uses = uses(spec);
    let key = |key: String| Key {
        used_for: uses.remove(&key).unwrap_or_default(),
        form: spec.shape(&key),
        state: gathered.map_or(KeyState::NotAsked, |gathered| state(&key, gathered, &sources)),
        key,
    };
    let keys = spec.required_secrets().into_iter().map(key).collect();
    Keys {
        castle: spec.name.clone(),
        rehearsal: castle.place == Place::Rehearsal,
        sources,
        keys,
        notices: gathered.map(|gathered| gathered.notices.clone()).unwrap_or_default(),
        escrow: None,
    }
}

fn state(key: &str, gathered: &Gathered, sources: &[String]) -> KeyState {
    let number = gathered.numbers.get(key);
    let Some(from) = number.and_then(|number| sources.get(*number)).cloned() else {
        return KeyState::Missing { place: gathered.places.get(key).cloned().unwrap_or_default() };
    };
    match gathered.wrong.get(key).cloned() {
        Some((place, why)) => KeyState::Wrong { from, place, why },
        None => KeyState::Found { from },
    }
}

/// What each key is for.
fn uses(spec: &Spec) -> BTreeMap<String, Vec<String>> {
    let mut uses: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut used = |key: &SecretRef, what: &str| {
        let list = uses.entry(key.0.clone()).or_default();
        if !list.iter().any(|known| known == what) {
            list.push(what.to_owned());
        }
    };
    match spec.platform.proxmox().map(|proxmox| &proxmox.token) {
        Some(TokenSpec::Parts { id, secret }) => {
            used(id, "Proxmox token");
            used(secret, "Proxmox token");
        }
        Some(TokenSpec::Whole(token)) => used(token, "Proxmox token"),
        None => {}
    }
    if let Some(DiskEncryption::Passphrase(key)) = &spec.machine.disk_encryption {
        used(key, "disk passphrase");
    }
    for registry in &spec.machine.registries {
        for key in registry.username.iter().chain(&registry.password) {
            used(key, &format!("registry {}", registry.host));
        }
    }
    for key in spec.secrets.secrets() {
        used(key, "reader for the cluster");
    }
    if let Some(token) = spec.gitops.token.as_ref().filter(|_| spec.gitops.enabled) {
        used(token, "Git token");
    }
    for key in &spec.secrets.require {
        used(&SecretRef(key.clone()), "required");
    }
    uses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_a_castle_has_a_use() {
        let sources = castle_config::Sources {
            file: "castle.hcl".to_owned(),
            text: castle_config::EXAMPLE.as_bytes().to_vec(),
            ..castle_config::Sources::default()
        };
        let spec = castle_config::read(&sources).spec.unwrap();
        let keys = spec.required_secrets();
        let uses = uses(&spec);
        assert!(keys.len() > 2);
        assert_eq!(keys, uses.keys().cloned().collect::<Vec<_>>());
    }
}
