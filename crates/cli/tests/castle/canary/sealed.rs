//! SOPS files and the keys that open them: what is made of them, asked of them or refused about them tells no secret.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::plant::{self, Dice};
use super::{Story, watched};
use crate::context::example;
use crate::secrets::{IDENTITY, OTHER};

/// A castle file whose secrets are in a SOPS file and in nothing else.
fn castle_file(shapes: usize) -> String {
    let keys: Vec<String> = (0..shapes).map(|shape| format!("\"SHAPE_{shape}\"")).collect();
    let text = example("sops").replace("secrets.enc.yaml", "a.enc.json");
    text.replace("[\"registry.tls_key\"]", &format!("[\"registry.tls_key\", {}]", keys.join(", ")))
}

/// Gives castle another identity from now on.
fn identify(story: &mut Story, identity: &str) {
    story.environment.retain(|(name, _)| *name != "SOPS_AGE_KEY");
    story.environment.push(("SOPS_AGE_KEY", identity.to_owned()));
}

#[test]
fn work_on_sops_files_tells_no_secret() {
    let mut dice = Dice::thrown();
    let seed = dice.seed();
    let mut story = Story::new(&plant::castle_file("blue", ""), &mut dice);
    let mut plain: BTreeMap<String, Value> = BTreeMap::new();
    for (key, shape) in [("PROXMOX_TOKEN", 8), ("GITHUB_TOKEN", 0)] {
        plain.insert(key.to_owned(), dice.secret(shape).into());
    }
    plain.extend((0..9).map(|shape| (format!("SHAPE_{shape}"), dice.secret(shape).into())));
    for (key, value) in &plain {
        story.canaries.insert(key.clone(), value.as_str().unwrap().as_bytes().to_vec());
    }
    let pem = dice.secret(6);
    story.canaries.insert("registry.tls_key".to_owned(), pem.clone().into_bytes());
    plain.insert("registry".to_owned(), json!({ "tls_key": pem }));
    for identity in [IDENTITY, OTHER] {
        let name = format!("the identity {}", &identity[identity.len() - 4..]);
        story.canaries.insert(name, identity.as_bytes().to_vec());
    }
    story.home.write("castle.hcl", &castle_file(9));
    story.home.write("plain.json", &json!(plain).to_string());
    identify(&mut story, IDENTITY);
    // What a user types is in the list of processes; castle at least does not repeat it.
    story.run(&["secrets", "encrypt", "plain.json", "--recipient", IDENTITY], 2);
    let seen = watched(|| {
        story.run(&["secrets", "encrypt", "plain.json", "--out", "a.enc.json"], 0);
        story.run(&["secrets", "encrypt", "plain.json"], 0);
        story.run(&["secrets", "verify", "a.enc.json"], 0);
        for act in ["list", "check", "escrow"] {
            story.run(&["secrets", act], 0);
            story.run(&["secrets", act, "--json"], 0);
        }
        let whole = story.run_asked(&["secrets", "decrypt", "a.enc.json"], 0).out;
        assert_eq!(serde_json::from_str::<Value>(&whole).unwrap(), json!(plain));
        let one = story.run_asked(&["secrets", "get", "SHAPE_5"], 0).out;
        assert_eq!(plain["SHAPE_5"], one);

        // Damaged, partly in clear, and for somebody else.
        let sealed = std::fs::read_to_string(story.home.folder().join("a.enc.json")).unwrap();
        story.home.write("damaged.enc.json", &sealed.replacen("data:", "data:AAAA", 1));
        let mut open: Value = serde_json::from_str(&sealed).unwrap();
        open["SHAPE_1"] = plain["SHAPE_1"].clone();
        story.home.write("open.enc.json", &open.to_string());
        for bad in ["damaged.enc.json", "open.enc.json", "plain.json"] {
            story.run(&["secrets", "decrypt", bad], 1);
            story.run(&["secrets", "verify", bad], 1);
            story.run(&["secrets", "verify", bad, "--json"], 1);
        }
        identify(&mut story, OTHER);
        for words in [&["decrypt", "a.enc.json"][..], &["list"], &["check"], &["get", "SHAPE_1"]] {
            story.run(&[&["secrets"], words].concat(), 1);
        }
        identify(&mut story, &IDENTITY.replace("2Y5J33", "2Y5J34"));
        story.run(&["secrets", "decrypt", "a.enc.json"], 2);
    });
    let given = ["plain.json", "open.enc.json"];
    assert_eq!(story.hits(&seen, &given), [].into(), "CASTLE_CANARY_SEED={seed} meets it again");
    // Everything would have been found where it does stand.
    let there = story.hits(&seen, &[]);
    for key in story.canaries.keys().filter(|key| key.starts_with("SHAPE_")) {
        assert!(there.iter().any(|hit| hit.starts_with(&**key)), "{key}, seed {seed}");
    }
}
