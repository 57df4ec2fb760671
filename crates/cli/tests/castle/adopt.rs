//! Journals that are damaged or gone, one by one: named, set aside, and read back from the world.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::context::Context;

const LAYERS: [&str; 6] = ["secrets", "platform", "engine", "networking", "storage", "gitops"];

fn journal(castle: &Context, layer: &str) -> PathBuf {
    castle.state().join(format!("layers/{layer}.journal"))
}

/// Turns one bit in the middle of a file.
fn flip(path: &PathBuf) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

/// The journals of the layers as they lie there.
fn journals(castle: &Context) -> BTreeMap<&'static str, Vec<u8>> {
    LAYERS.map(|layer| (layer, std::fs::read(journal(castle, layer)).unwrap())).into()
}

#[test]
fn one_damaged_journal_is_set_aside_and_its_layer_alone_is_read_back() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let life = castle.run(&["status"]).ends(0).out.lines().next().unwrap().to_owned();
    assert!(life.contains("incarnation "), "{life}");
    for layer in LAYERS {
        flip(&journal(&castle, layer));
        let file = format!("layers/{layer}.journal");
        let status = castle.run(&["status"]).ends(0);
        assert!(status.out.contains(&format!("damaged: {layer}: {file}, entry")), "{}", status.out);
        let plan = castle.run(&["plan"]).ends(0);
        assert!(
            plan.err.contains(&format!("the journal of the layer {layer} is damaged")),
            "{}",
            plan.err
        );
        assert!(!plan.out.contains("+ create "), "{layer}: {}", plan.out);
        let before = journals(&castle);
        let up = castle.run(&["up"]).ends(0);
        assert!(up.err.contains(&format!("{file}, entry")), "{}", up.err);
        assert!(up.err.contains(&format!("kept as {file}.damaged-1")), "{}", up.err);
        assert_eq!(up.changes(), 0, "{layer}: nothing in the world is touched");
        let after = journals(&castle);
        for other in LAYERS.iter().filter(|other| **other != layer) {
            assert_eq!(after[other], before[other], "{other} has nothing to do with {layer}");
        }
        let kept = std::fs::read(castle.state().join(format!("{file}.damaged-1"))).unwrap();
        assert_eq!(kept, before[layer], "the damaged file is kept as it was");
        let status = castle.run(&["status"]).ends(0);
        assert_eq!(status.out.lines().next(), Some(life.as_str()), "{layer}");
        assert!(!status.out.contains("damaged"), "{}", status.out);
    }
    assert_eq!(castle.run(&["up"]).ends(0).changes(), 0);
}

#[test]
fn a_missing_journal_is_read_back_and_nothing_is_said_to_be_kept() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    std::fs::remove_file(journal(&castle, "platform")).unwrap();
    let up = castle.run(&["up"]).ends(0);
    assert!(up.err.contains("none is left") && !up.err.contains("kept as"), "{}", up.err);
    assert_eq!(up.changes(), 0);
    assert_eq!(castle.run(&["up"]).ends(0).changes(), 0);
}

#[test]
fn without_its_run_journal_the_whole_castle_is_read_back() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    flip(&castle.state().join("run.journal"));
    let status = castle.run(&["status"]).ends(0);
    assert!(status.out.contains("damaged: run.journal, entry"), "{}", status.out);
    let plan = castle.run(&["plan"]).ends(0);
    assert!(
        plan.out.contains("adopt    vm/cp-01") && plan.err.contains("run.journal"),
        "{}",
        plan.err
    );
    let up = castle.run(&["up"]).ends(0);
    assert!(up.err.contains("run.journal.damaged-1"), "{}", up.err);
    assert!(up.err.contains("layers/platform.journal.damaged-1"), "{}", up.err);
    assert_eq!(up.changes(), 0);
    // Runs go on with the number that follows, so that nothing is called as something was before.
    let run = std::fs::read_to_string(castle.state().join("run.journal")).unwrap();
    assert!(run.contains("\"run\":\"r0002-"), "{run}");
    castle.run(&["down", "--yes"]).ends(0);
    castle.run(&["rehearse", "reset", "--yes"]).ends(0);
    assert!(!castle.state().exists(), "what was set aside goes with the rest");
}

#[test]
fn a_castle_with_damaged_journals_is_razed_by_what_is_there() {
    for files in [&["layers/platform.journal", "layers/secrets.journal"][..], &["run.journal"]] {
        let castle = Context::new();
        castle.run(&["up"]).ends(0);
        for file in files {
            flip(&castle.state().join(file));
        }
        castle.run(&["down", "--yes"]).ends(0);
        assert_eq!(castle.guests(), Vec::<u64>::new());
        let world = castle.inventory();
        assert_eq!(world["proxmox"]["volumes"], serde_json::json!([]));
        assert!(!world["secrets"].to_string().contains("TALOS_SECRETS_BUNDLE"), "{world}");
    }
}
