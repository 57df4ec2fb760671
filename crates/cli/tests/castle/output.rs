//! Standard output is data, standard error is talk; references are fresh.

use crate::context::Context;

#[test]
fn json_lines_are_numbered_events_and_nothing_else() {
    let castle = Context::new();
    let said = castle.run(&["up", "--json"]).ends(0);
    assert_eq!(said.err, "");
    let events: Vec<serde_json::Value> =
        said.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let numbers: Vec<u64> = events.iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(events.iter().all(|e| e["v"] == 1));
    let kind = |name: &str| events.iter().filter(|e| e["event"] == name).count();
    assert_eq!(
        (kind("run-started"), kind("planned"), kind("handover"), kind("run-ended")),
        (1, 1, 1, 1)
    );
    assert_eq!(kind("layer-done"), 6);
}

#[test]
fn the_command_line_reference_is_fresh() {
    let castle = Context::new();
    let made = castle.run(&["reference"]).ends(0).out;
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(made == kept, "docs/reference/cli.md is stale: `cargo xtask docs` writes it");
}

#[test]
fn completions_and_manual_come_from_the_same_definition() {
    let castle = Context::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(castle.run(&["completions", shell]).ends(0).out.contains("rehearse"));
    }
    assert!(castle.run(&["man"]).ends(0).out.contains(".TH castle"));
    castle.run(&["man", "--out", "man1"]).ends(0);
    for page in ["castle.1", "castle-up.1", "castle-rehearse-serve.1"] {
        let text = std::fs::read_to_string(castle.folder().join("man1").join(page)).unwrap();
        assert!(text.contains(".TH "), "{page}");
    }
}

#[test]
fn graphs_come_in_five_forms() {
    let castle = Context::new();
    for (format, sign) in [
        ("text", "platform"),
        ("svg", "</svg>"),
        ("dot", "digraph"),
        ("mermaid", "flowchart"),
        ("json", "{"),
    ] {
        let said = castle.run(&["graph", "--format", format]).ends(0);
        assert!(said.out.contains(sign), "{format}: {}", said.out);
    }
}

#[test]
fn looking_leaves_no_trace() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let world = || {
        let folder = castle.datacenter();
        ["world.json", "world.log"].map(|name| std::fs::read(folder.join(name)).unwrap())
    };
    let before = world();
    castle.run(&["plan"]).ends(0);
    castle.run(&["rehearse", "inventory"]).ends(0);
    castle.run(&["status"]).ends(0);
    assert!(before == world(), "plan, inventory and status only look");
}
