//! What is secret is found nowhere: not in a file, an output or a child of castle, in no form, whatever happens.
//!
//! The rehearsal's own world folder is the one exception: it plays the vault. And a kubeconfig or a value that was asked for
//! is where it was asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use crate::context::{Context, Said};

#[path = "canary/children.rs"]
mod children;
#[path = "canary/inflate.rs"]
mod inflate;
#[path = "canary/plant.rs"]
mod plant;
#[path = "canary/proof.rs"]
mod proof;
#[path = "canary/sealed.rs"]
mod sealed;
#[path = "canary/search.rs"]
mod search;

use children::{Seen, Watch};
use plant::{Dice, REQUIRED};
use search::Search;

/// Where programs are.
const PROGRAMS: &str = "/usr/local/bin:/usr/bin:/bin";

/// A program in the place of `git` that writes down what it was started with, and goes on as the real one.
const SHIM: &str = "#!/bin/sh
for what in environ cmdline; do tr '\\0' '\\n' < /proc/$$/$what >> \"$HOME/told-to-git\"; done
PATH=/usr/local/bin:/usr/bin:/bin exec git \"$@\"
";

/// A castle whose every secret is a canary, and all that it ever said.
struct Story {
    home: Context,
    datacenter: PathBuf,
    canaries: BTreeMap<String, Vec<u8>>,
    /// What castle itself is given by its user.
    environment: Vec<(&'static str, String)>,
    said: BTreeMap<String, Vec<u8>>,
}

impl Story {
    fn new(castle_file: &str, dice: &mut Dice) -> Self {
        let home = Context::new();
        let name = castle_file.split('"').nth(1).unwrap();
        let datacenter = home.folder().join(format!("state/castle/rehearsal/{name}.datacenter"));
        let mut canaries = plant::planted(&home, &datacenter, castle_file, dice);
        home.write("bin/git", SHIM);
        home.write("tmp/empty", "");
        let shim = home.folder().join("bin/git");
        std::fs::set_permissions(shim, PermissionsExt::from_mode(0o755)).unwrap();
        let own = ["INFISICAL_CLIENT_SECRET", "SOPS_AGE_KEY", "AWS_SECRET_ACCESS_KEY"];
        let environment = own.map(|name| (name, dice.secret(1))).to_vec();
        canaries.extend(
            environment.iter().map(|(key, value)| {
                (format!("{key} of the environment"), value.clone().into_bytes())
            }),
        );
        // Whatever else is made on the way is known by how it begins.
        for mark in ["PRIVATE KEY-----", "trustdinfo", "eyJhbGciOiJIUzI1NiJ9."] {
            canaries.insert(mark.to_owned(), mark.as_bytes().to_vec());
        }
        Self { home, datacenter, canaries, environment, said: BTreeMap::new() }
    }

    /// Runs a command, and keeps what it said.
    fn run(&mut self, words: &[&str], code: i32) -> Said {
        let mut command = self.home.command(words);
        let folder = self.home.folder();
        command.env("TMPDIR", folder.join("tmp")).envs(self.environment.iter().cloned());
        command.env("PATH", format!("{}:{PROGRAMS}", folder.join("bin").display()));
        command.env("INFISICAL_CLIENT_ID", "somebody").env("RUST_BACKTRACE", "full");
        let output = command.env("RUST_LOG", "trace").output().unwrap();
        let place = format!("{}: {}", self.said.len(), words.join(" "));
        self.said.insert(format!("standard output of {place}"), output.stdout.clone());
        self.said.insert(format!("standard error of {place}"), output.stderr.clone());
        Said::of(&output).ends(code)
    }

    /// Runs a command that is asked for a secret: its standard output is given back, and is not searched.
    fn run_asked(&mut self, words: &[&str], code: i32) -> Said {
        let place = format!("standard output of {}: {}", self.said.len(), words.join(" "));
        let said = self.run(words, code);
        assert!(self.said.remove(&place).is_some(), "{place}");
        said
    }

    /// Where canaries are, anywhere but in the datacenter and in what was asked for.
    fn hits(&self, seen: &Seen, asked_for: &[&str]) -> BTreeSet<String> {
        let search = Search::new(&self.canaries);
        let mut excepted: Vec<PathBuf> =
            asked_for.iter().map(|name| self.home.folder().join(name)).collect();
        excepted.push(self.datacenter.clone());
        let mut hits = search.hits_below(self.home.folder(), &excepted);
        for (place, text) in &self.said {
            hits.extend(search.hits(place, text));
        }
        for ((process, what), bytes) in seen {
            hits.extend(search.hits(&format!("{what} of process {process}"), bytes));
        }
        hits
    }
}

/// Does something while somebody watches all children.
fn watched(act: impl FnOnce()) -> Seen {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = Watch::begin(scope, &over);
        // A failure must end the watch too, else nobody would ever hear of it.
        let failed = catch_unwind(AssertUnwindSafe(act)).err();
        let seen = watch.end();
        if let Some(failed) = failed {
            resume_unwind(failed);
        }
        seen
    })
}

/// Asks for all that is told about secrets without a value, and for a few values.
fn asked_about_secrets(story: &mut Story) {
    for act in ["list", "check", "escrow"] {
        let said = story.run(&["rehearse", "secrets", act], 0);
        assert!(!said.out.is_empty(), "{act} told nothing");
        story.run(&["rehearse", "secrets", act, "--json"], 0);
    }
    // A value is where it was asked for, whole, and nowhere else.
    for key in ["CANARY_00", "CANARY_01", "CANARY_05", "DISK_PASSPHRASE"] {
        let value = String::from_utf8(story.canaries[key].clone()).unwrap();
        assert_eq!(story.run_asked(&["rehearse", "secrets", "get", key], 0).out, value, "{key}");
        let said = story.run_asked(&["rehearse", "secrets", "get", key, "--json"], 0);
        let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(told["value"], value, "{key}");
    }
    story.run_asked(&["rehearse", "secrets", "get", "TALOS_SECRETS_BUNDLE"], 0);
    story.run(&["rehearse", "secrets", "get", "CANARY_01", "--out", "a.value"], 0);
    // What is refused is refused without a value.
    story.run(&["rehearse", "secrets", "get", "CANARY_01", "--out", "a.value"], 1);
    story.run(&["rehearse", "secrets", "get", "CANARY_02", "--out", "project/refused"], 3);
    story.run(&["rehearse", "secrets", "get", "NOT_THERE"], 1);
}

#[test]
fn a_whole_life_leaves_no_secret_behind() {
    let mut dice = Dice::thrown();
    let seed = dice.seed();
    let mut story = Story::new(&plant::castle_file("blue", ""), &mut dice);
    assert!(story.canaries.len() > REQUIRED, "{:?}", story.canaries.keys());
    story.home.write("project/.gitignore", "*.kube\n");
    let seen = watched(|| {
        story.run(&["check"], 0);
        story.run(&["rehearse", "plan", "--json"], 0);
        story.run(&["rehearse", "up", "--json"], 0);
        let made = plant::escrowed(&story.datacenter);
        assert!(made.len() >= 14, "{:?}", made.keys());
        story.canaries.extend(made);
        story.run(&["rehearse", "up"], 0);
        for words in [&["status"][..], &["status", "--json"], &["plan"], &["inventory", "--json"]] {
            story.run(&[&["rehearse"], words].concat(), 0);
        }
        // Every run above left a page beside its events, which are searched as all files are; this one is searched as it is said.
        let page = story.run(&["rehearse", "report", "1", "--out", "-"], 0);
        assert!(page.out.contains("What decided how long it took"), "{}", page.out);
        story.run(&["rehearse", "machineconfig", "cp-01"], 0);
        assert!(
            std::process::Command::new("git")
                .args(["init", "--quiet"])
                .current_dir(story.home.folder().join("project"))
                .status()
                .unwrap()
                .success()
        );
        story.run(&["rehearse", "kubeconfig", "--out", "project/a.kube"], 0);
        story.run(&["rehearse", "kubeconfig", "--out", "project/refused"], 3);
        story.run(&["rehearse", "talosconfig", "--out", "talos"], 0);
        story.run_asked(&["rehearse", "talosconfig"], 0);
        asked_about_secrets(&mut story);
        story.run(&["rehearse", "down", "--yes"], 0);
    });
    // What was asked for is where it was asked for, and there alone.
    for asked in ["project/a.kube", "talos"] {
        let text = std::fs::read_to_string(story.home.folder().join(asked)).unwrap();
        let keys = plant::keys_in(asked, &text);
        assert_eq!(keys.len(), 2, "{asked}");
        story.canaries.extend(keys);
    }
    let asked = ["project/a.kube", "talos", "a.value"];
    assert_eq!(story.hits(&seen, &asked), [].into(), "CASTLE_CANARY_SEED={seed} meets it again");
    let told = std::fs::read_to_string(story.home.folder().join("told-to-git")).unwrap();
    assert!(told.contains("HOME=") && told.contains("check-ignore"), "{told}");
    assert!(seen.keys().any(|(_, what)| *what == "cmdline"), "nobody watched");

    // It would have been found: in the files that were asked for, in the vault, and where somebody lets one slip.
    let there = story.hits(&seen, &[]);
    assert!(asked.iter().all(|name| there.iter().any(|hit| hit.contains(name))), "{there:?}");
    let vault = Search::new(&story.canaries).hits_below(&story.datacenter, &[]);
    assert!(vault.len() >= REQUIRED, "{vault:?}");
    let secret = &story.canaries["CANARY_01"];
    let leak = format!("{}/state/castle/rehearsal/blue/layers/leak", story.home.folder().display());
    std::fs::write(&leak, proof::stored(secret)).unwrap();
    let hits = story.hits(&seen, &asked);
    assert!(!hits.is_empty(), "a leak on purpose was not found, seed {seed}");
    assert!(hits.iter().all(|hit| hit.contains("CANARY_01") && hit.contains(&leak)), "{hits:?}");
}

#[test]
fn a_failing_run_tells_no_secret() {
    let mut dice = Dice::thrown();
    let seed = dice.seed();
    let file = plant::castle_file("one-and-one", "");
    let mut story = Story::new(&file, &mut dice);
    let right = String::from_utf8(story.canaries["PROXMOX_TOKEN_SECRET"].clone()).unwrap();
    let (wrong, no_token) = (dice.secret(8), dice.secret(5));
    story.canaries.insert("a wrong token".to_owned(), wrong.clone().into_bytes());
    story.canaries.insert("what is no token".to_owned(), no_token.clone().into_bytes());
    let put = |story: &Story, token: &str| {
        plant::change_vault(&story.datacenter, |key, value| {
            if key == "PROXMOX_TOKEN_SECRET" {
                token.clone_into(value);
            }
        });
    };
    let seen = watched(|| {
        for bad in [&no_token, &wrong] {
            put(&story, bad);
            story.run(&["rehearse", "up", "--json"], 1);
            let failed = story.run(&["rehearse", "up"], 1);
            assert!(
                failed.err.contains("timeline: "),
                "a failed run has a page too: {}",
                failed.err
            );
            story.run(&["rehearse", "secrets", "list"], 0);
        }
        put(&story, &no_token);
        story.run(&["rehearse", "secrets", "check"], 1);
        story.run(&["rehearse", "secrets", "check", "--json"], 1);
        put(&story, &right);
        story.home.write("castle.hcl", &plant::castle_file("one-and-one", "boot = \"1s\""));
        story.run(&["rehearse", "up", "--json"], 1);
        story.run(&["rehearse", "status"], 0);
        story.canaries.extend(plant::escrowed(&story.datacenter));
        story.run(&["rehearse", "down", "--yes"], 0);
        // Nobody is there, and castle has the credentials of its user in hand.
        let nobody = plant::castle_file("one-and-one", "secrets = \"1s\"");
        let nobody = nobody.replacen("https://eu.infisical.com", "https://127.0.0.1:1", 1);
        story.home.write("castle.hcl", &nobody);
        story.run(&["up"], 1);
        story.run(&["kubeconfig"], 1);
        for act in ["list", "check", "escrow"] {
            story.run(&["secrets", act], 1);
        }
        story.run(&["secrets", "get", "CANARY_01"], 1);
    });
    assert_eq!(story.hits(&seen, &[]), [].into(), "CASTLE_CANARY_SEED={seed} meets it again");
}
