//! What the rehearsal's vault holds is found nowhere outside of the datacenter's own folder.

use std::path::Path;

use crate::context::Context;

/// Every value that the invented vault was born with, and the marks of keys and certificates in their usual forms.
fn canaries(castle: &Context) -> Vec<String> {
    let world = std::fs::read_to_string(castle.datacenter().join("world.json")).unwrap();
    let mut found: Vec<String> =
        ["PRIVATE KEY-----", "LS0tLS1CRUdJTi", "trustdinfo", "BEGIN CERTIFICATE"]
            .map(str::to_owned)
            .to_vec();
    for key in
        ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "PROXMOX_TOKEN_SECRET"]
    {
        let (_, rest) = world.split_once(&format!("\"{key}\":\"")).unwrap();
        found.push(rest.split('"').next().unwrap().to_owned());
    }
    found
}

fn search(canaries: &[String], place: &str, text: &str) -> Vec<String> {
    canaries
        .iter()
        .filter(|c| text.contains(c.as_str()))
        .map(|c| format!("{c} in {place}"))
        .collect()
}

fn search_folder(canaries: &[String], folder: &Path, hits: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            search_folder(canaries, &path, hits);
        } else {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            hits.extend(search(canaries, &path.display().to_string(), &text));
        }
    }
}

#[test]
fn secrets_stay_in_memory() {
    let castle = Context::new();
    let said = [
        castle.run(&["up", "--json"]).ends(0),
        castle.run(&["up"]).ends(0),
        castle.run(&["plan"]).ends(0),
        castle.run(&["status", "--json"]).ends(0),
    ];
    let canaries = canaries(&castle);
    assert_eq!(canaries.len(), 8);
    let mut hits = Vec::new();
    for said in &said {
        hits.extend(search(&canaries, "standard output", &said.out));
        hits.extend(search(&canaries, "standard error", &said.err));
    }
    search_folder(&canaries, &castle.state(), &mut hits);
    assert_eq!(hits, Vec::<String>::new());
    // The search can find: the datacenter plays the vault, so there they are.
    search_folder(&canaries, &castle.datacenter(), &mut hits);
    assert!(hits.len() >= canaries.len() / 2, "{hits:?}");
}
