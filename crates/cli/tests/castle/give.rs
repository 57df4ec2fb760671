//! What people are given: configs for other programs.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::context::{Context, Said, example};

/// The escrowed Talos secrets, found in the datacenter's own vault.
fn bundle(castle: &Context) -> String {
    fn find(value: &serde_json::Value) -> Option<String> {
        match value {
            serde_json::Value::String(text)
                if text.starts_with("# castle blue ") && text.contains("\ntrustdinfo:") =>
            {
                Some(text.clone())
            }
            serde_json::Value::Array(list) => list.iter().find_map(find),
            serde_json::Value::Object(map) => map.values().find_map(find),
            _ => None,
        }
    }
    let world = std::fs::read_to_string(castle.datacenter().join("world.json")).unwrap();
    world.lines().find_map(|line| find(&serde_json::from_str(line).ok()?)).unwrap()
}

/// The values after a key in a text of YAML.
fn values<'t>(text: &'t str, key: &str) -> Vec<&'t str> {
    let lines = text.lines().filter_map(|l| l.trim().strip_prefix(key)?.strip_prefix(": "));
    lines.filter(|value| !value.is_empty() && *value != "\'\'").collect()
}

#[test]
fn the_ways_in_are_made_from_what_is_escrowed() {
    let castle = Context::new();
    let early = castle.run(&["talosconfig"]).ends(1);
    assert!(early.err.contains("the castle was not raised yet"), "{}", early.err);
    assert_eq!(early.out, "");
    castle.run(&["up"]).ends(0);
    let talos = castle.run(&["talosconfig"]).ends(0);
    for word in ["context: blue", "- 192.168.1.211", "- 192.168.1.213", "crt: ", "key: "] {
        assert!(talos.out.contains(word), "{word}: {}", talos.out);
    }
    assert!(!talos.out.contains("192.168.1.210"), "the VIP is no endpoint: {}", talos.out);
    let said = castle.run(&["rehearse", "kubeconfig", "--out", "kube"]).ends(0);
    assert_eq!(said.out, "", "what is in the file is not on the screen");
    assert!(!said.err.contains("git"), "{}", said.err);
    let kube = std::fs::read_to_string(castle.folder().join("kube")).unwrap();
    assert!(kube.contains("server: https://192.168.1.210:6443"), "{kube}");
    let mode = std::fs::metadata(castle.folder().join("kube")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = castle.run(&["kubeconfig", "--out", "kube"]).ends(1);
    assert!(again.err.contains("remove it first"), "{}", again.err);
    assert_eq!(std::fs::read_to_string(castle.folder().join("kube")).unwrap(), kube);
}

/// Runs git as a user would, without any rules of the one who runs the tests.
fn git(castle: &Context, words: &[&str]) {
    let mut git = Command::new("git");
    git.args(words).env("HOME", castle.folder()).env("GIT_CONFIG_NOSYSTEM", "1");
    let output = git.current_dir(castle.folder().join("project")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn keys_are_not_written_where_git_would_take_them() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    // Whatever the environment says of repositories is about somebody else's.
    let out = |path: &str| {
        let mut command = castle.command(&["kubeconfig", "--out", path]);
        let way = std::env::join_paths(["/usr/local/bin", "/usr/bin", "/bin"]).unwrap();
        Said::of(&command.env("PATH", way).env("GIT_DIR", "nowhere").output().unwrap())
    };
    let there = |path: &str| castle.folder().join(path).exists();
    castle.write("project/.gitignore", "/keys/\n*.kube\n!shown.kube\n");
    castle.write("project/keys/old", "tracked by force");
    castle.write("project/inner/readme", "");
    git(&castle, &["init", "--quiet"]);
    git(&castle, &["add", "--force", "keys/old"]);
    std::fs::remove_file(castle.folder().join("project/keys/old")).unwrap();

    for ignored in ["project/keys/new", "project/blue.kube", "project/inner/blue.kube"] {
        out(ignored).ends(0);
        assert!(there(ignored), "{ignored}");
    }
    // Names that would be patterns or options are names all the same.
    for name in ["kube", "inner/kube", "shown.kube", ":(top)x", "*.kubeconfig", "--quiet"] {
        let path = format!("project/{name}");
        let said = out(&path).ends(3);
        assert!(said.err.contains("no rule of the repository ignores it"), "{}", said.err);
        assert!(said.err.contains("hint: choose a path outside"), "{}", said.err);
        assert!(!there(&path), "{path}");
    }
    let said = out("project/keys/old").ends(3);
    assert!(said.err.contains("already tracks") && said.err.contains("git rm --cached"));
    assert!(!there("project/keys/old"));
    // By a link from outside it is the same place; through `..` it is outside.
    std::os::unix::fs::symlink(castle.folder().join("project"), castle.folder().join("link"))
        .unwrap();
    out("link/kube").ends(3);
    out("project/../kube").ends(0);
    // A work tree that is linked to its repository by a file is one too.
    git(&castle, &["init", "--quiet", "--separate-git-dir", "../elsewhere", "../linked"]);
    out("linked/kube").ends(3);
    // Without git nobody can say.
    let said = castle.command(&["kubeconfig", "--out", "project/no.kube"]);
    let said = { said }.env("PATH", castle.folder()).output().unwrap();
    let said = Said::of(&said).ends(3);
    assert!(
        said.err.contains("`git`, which knows what is ignored there, was not found"),
        "{}",
        said.err
    );
    castle.write("broken/.git/HEAD", "");
    let said = out("broken/kube").ends(3);
    assert!(said.err.contains("`git check-ignore` ended with exit status: 128"), "{}", said.err);
}

#[test]
fn a_machine_config_is_redacted_unless_somebody_asks() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let revealed = castle.run(&["machineconfig", "cp-01", "--reveal"]).ends(0).out;
    let redacted = castle.run(&["machineconfig", "cp-01"]).ends(0).out;
    assert!(redacted.contains("hostname: cp-01"), "{redacted}");
    let secrets: Vec<&str> = ["key", "token", "secret", "secretboxEncryptionSecret"]
        .iter()
        .flat_map(|k| values(&revealed, k))
        .collect();
    assert!(secrets.len() >= 8, "{revealed}");
    for secret in secrets {
        assert!(!redacted.contains(secret), "{secret} in {redacted}");
    }
    let said = castle.run(&["machineconfig", "cp-09"]).ends(2);
    assert!(said.err.contains("its machines are cp-01, cp-02"), "{}", said.err);

    // The same secrets from a file give the same config, with nothing else: no state, no rehearsal, no credentials.
    let elsewhere = Context::new();
    elsewhere.write("secrets.yaml", &bundle(&castle));
    elsewhere.write("castle.hcl", &example("blue"));
    let words = ["machineconfig", "cp-01", "--reveal", "--bundle", "secrets.yaml"];
    assert_eq!(elsewhere.run(&words).ends(0).out, revealed);
    assert!(!elsewhere.folder().join("state").exists());
    let registry = "machine {\n registry \"docker.io\" {\n username = secret(\"WHO\")\n password = secret(\"HOW\")\n }\n }\n  deadlines {";
    elsewhere.write("castle.hcl", &example("blue").replacen("deadlines {", registry, 1));
    let said = elsewhere.run(&words).ends(0);
    let shown = &said.out;
    assert!(shown.contains("<secret WHO>") && shown.contains("<secret HOW>"), "{shown}");
    assert!(said.err.contains("warning: `<secret KEY>` stands for"), "{}", said.err);
    elsewhere.write("secrets.yaml", "cluster: {id: hunter2}");
    let said = elsewhere.run(&words).ends(1);
    assert!(
        said.err.contains("talosctl gen secrets") && !said.err.contains("hunter2"),
        "{}",
        said.err
    );
}
