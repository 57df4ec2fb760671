//! What the steps say that they prove: each kind its own sentence, whatever the castle file makes of it.

use std::collections::{BTreeMap, BTreeSet};

use castle_model::spec::LayerOwner;

use super::*;

/// Castles that together declare every step that there is.
fn castles() -> Vec<Spec> {
    let layer = |name: &str| ExtraLayer {
        name: name.parse().unwrap(),
        after: Vec::new(),
        manifests: [("all.yaml".to_owned(), String::new())].into(),
        url: None,
    };
    let mut own = sized(3, 2);
    own.layers.extend([layer("metrics"), layer("logs")]);
    let mut watched = machines::standing(3, 2);
    watched.engine.owner = LayerOwner::Flux;
    watched.networking.owner = LayerOwner::Flux;
    watched.storage.owner = LayerOwner::Flux;
    vec![own, watched]
}

#[test]
fn no_two_kinds_of_step_share_what_they_prove() {
    for spec in castles() {
        let mut kinds: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let decls = crate::declare(&spec);
        for decl in &decls {
            // A name within its layer, without the machine that it is about.
            let kind = decl.id.as_str().splitn(3, '/').take(2).collect::<Vec<_>>().join("/");
            let is_clause = decl.proves.len() > 8 && !decl.proves.ends_with('.');
            assert!(is_clause, "{} proves {:?}", decl.id, decl.proves);
            kinds.entry(decl.proves.clone()).or_default().insert(kind);
        }
        let shared: Vec<_> = kinds.iter().filter(|(_, kinds)| kinds.len() > 1).collect();
        assert!(shared.is_empty(), "{shared:#?}");
    }
}

/// A deadline says how long, and never what: two steps of one deadline prove different things.
#[test]
fn steps_of_one_deadline_prove_different_things() {
    let decls = crate::declare(&castles()[0]);
    let proves = |id: &str| {
        let found = decls.iter().find(|decl| decl.id.as_str() == id);
        found.map(|decl| (decl.deadline.clone(), decl.proves.clone())).unwrap()
    };
    for (one, other) in [
        ("platform/strays", "platform/vm/cp-01"),
        ("gitops/token", "gitops/source"),
        ("platform/access", "platform/vip"),
        ("engine/store", "engine/proof"),
        ("gitops/flux", "gitops/controllers"),
        ("platform/inventory", "platform/preflight"),
    ] {
        let (one, other) = (proves(one), proves(other));
        assert_eq!(one.0, other.0);
        assert_ne!(one.1, other.1);
    }
}
