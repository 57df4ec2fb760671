//! What castle refuses, and the exit codes that say so.

use std::process::Stdio;

use crate::context::{Context, example};

#[test]
fn down_needs_a_yes_where_nobody_can_be_asked() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let said = castle.run(&["down"]).ends(3);
    assert!(said.err.contains("add --yes"), "{}", said.err);
    assert_eq!(castle.guests().len(), 5, "nothing was done");
}

#[test]
fn json_is_refused_where_there_is_none() {
    let castle = Context::new();
    for command in [&["talosconfig"][..], &["rehearse", "kubeconfig"], &["man"]] {
        let said = castle.run(&[command, &["--json"]].concat()).ends(2);
        assert!(said.err.contains("has no answer in JSON"), "{command:?}: {}", said.err);
        assert!(
            said.out.starts_with(r#"{"v":1,"answer":"error","exit":2,"kind":"usage""#),
            "{command:?}: {}",
            said.out
        );
    }
}

#[test]
fn the_state_root_must_lie_outside_any_git_work_tree() {
    let castle = Context::new();
    std::fs::create_dir_all(castle.folder().join("repository/.git")).unwrap();
    let said = castle.run(&["up", "--state", "repository/state"]).ends(3);
    assert!(said.err.contains("git"), "{}", said.err);
    let inside = std::fs::read_dir(castle.folder().join("repository")).unwrap().count();
    assert_eq!(inside, 1, "nothing but .git lies in the work tree");
}

#[test]
fn a_second_process_is_told_who_holds_the_castle() {
    let castle = Context::new();
    let mut first = castle.command(&["up", "--json", "--speed", "20"]);
    let mut first = first.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut reader = std::io::BufReader::new(first.stdout.take().unwrap());
    for _ in 0..5 {
        std::io::BufRead::read_line(&mut reader, &mut String::new()).unwrap();
    }
    let said = castle.run(&["up"]).ends(3);
    for word in [&format!("process {}", first.id()), "`castle up`", "since 20"] {
        assert!(said.err.contains(word), "{word}: {}", said.err);
    }
    assert!(!said.err.contains("reset"), "{}", said.err);
    for look in [&["status"][..], &["plan"], &["rehearse", "inventory"]] {
        castle.run(look).ends(0);
    }
    first.kill().unwrap();
    first.wait().unwrap();
    castle.run(&["up"]).ends(0);
}

#[test]
fn wrong_words_are_usage() {
    let castle = Context::new();
    castle.run(&["upp"]).ends(2);
    castle.run(&["up", "--speed", "fast"]).ends(2);
    castle.run(&["check", "-f", "nowhere.hcl"]).ends(2);
    castle.run(&["check", "-f", "."]).ends(2);
    castle.run(&["--help"]).ends(0);
    castle.run(&["--version"]).ends(0);
}

#[test]
fn a_wrong_castle_file_is_refused_with_every_mistake() {
    let castle = Context::new();
    let text = example("blue")
        .replace("count      = 3", "count      = 4")
        .replace("vip         = \"192.168.1.210\"", "vip         = \"192.168.2.210\"");
    assert_ne!(text, example("blue"), "the example has these lines");
    castle.write("castle.hcl", &text);
    let said = castle.run(&["check"]).ends(2);
    assert!(said.err.contains("castle.hcl:"), "{}", said.err);
    let json = castle.run(&["check", "--json"]).ends(2);
    let findings: Vec<serde_json::Value> =
        json.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert!(findings.len() >= 2, "{}", json.out);
    castle.run(&["rehearse", "up"]).ends(2);
}

#[test]
fn a_failed_step_blocks_only_its_dependents_and_tells_how_to_go_on() {
    let castle = Context::new();
    let text = example("blue");
    let short = if text.contains("deadlines {") {
        text.replacen("deadlines {", "deadlines {\n    volume = \"1s\"", 1)
    } else {
        text.replacen(
            "castle \"blue\" {",
            "castle \"blue\" {\n  deadlines {\n    volume = \"1s\"\n  }\n",
            1,
        )
    };
    castle.write("castle.hcl", &short);
    let said = castle.run(&["rehearse", "up"]).ends(1);
    assert!(said.out.contains("storage/volume"), "{}", said.out);
    assert!(said.out.contains("castle rehearse -f castle.hcl up"), "{}", said.out);
    castle.write("castle.hcl", &text);
    castle.run(&["rehearse", "up"]).ends(0);
}

#[test]
fn a_state_root_belongs_to_one_castle() {
    let castle = Context::new();
    castle.write("one.hcl", &example("one-and-one"));
    castle.write("two.hcl", &example("one-and-two"));
    castle.run(&["rehearse", "-f", "one.hcl", "--state", "here", "up"]).ends(0);
    let said = castle.run(&["rehearse", "-f", "two.hcl", "--state", "here", "up"]).ends(3);
    assert!(said.err.contains("belongs to the castle"), "{}", said.err);
}

#[test]
fn a_castle_of_ones_own_is_not_the_example_even_with_its_name() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    castle.write("castle.hcl", &example("blue"));
    let status = castle.run(&["rehearse", "status"]).ends(0);
    assert!(status.err.contains("no state yet"), "{}{}", status.out, status.err);
}

#[test]
fn data_that_can_not_be_written_is_a_failure() {
    let castle = Context::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let status = castle.command(&["graph"]).stdout(full).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn reset_removes_what_castle_wrote_and_nothing_else() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    std::fs::write(castle.state().join("mine.txt"), "x").unwrap();
    castle.run(&["rehearse", "reset"]).ends(3);
    let said = castle.run(&["rehearse", "reset", "--yes"]).ends(0);
    assert!(said.err.contains("holds other files too"), "{}", said.err);
    let left: Vec<_> =
        std::fs::read_dir(castle.state()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["mine.txt"]);
    assert!(!castle.datacenter().exists());
}

#[test]
fn modes_are_private_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    for umask in ["000", "0777", "0177"] {
        let castle = Context::new();
        let inner = castle.command(&["up"]);
        let script = format!("umask {umask}; exec \"$0\" up");
        let mut shell = std::process::Command::new("/bin/sh");
        shell
            .arg("-c")
            .arg(script)
            .arg(inner.get_program())
            .current_dir(castle.folder())
            .env_clear();
        shell.envs(inner.get_envs().filter_map(|(k, v)| Some((k, v?))));
        assert!(shell.output().unwrap().status.success(), "umask {umask}");
        for (path, mode) in [
            (castle.state().parent().unwrap().to_owned(), 0o700),
            (castle.state(), 0o700),
            (castle.state().join("run.journal"), 0o600),
            (castle.state().join("layers/platform.journal"), 0o600),
            (castle.datacenter(), 0o700),
            (castle.datacenter().join("world.json"), 0o600),
        ] {
            let found = std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
            assert_eq!(found, mode, "{} under umask {umask}", path.display());
        }
    }
}

/// Another castle's state, and that of a rehearsal: nothing of either is told as if it were this castle's.
#[test]
fn whoever_looks_is_told_nothing_of_another_castle() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    castle.write("small.hcl", &example("one-and-one"));
    let state = castle.state().display().to_string();
    let (rehearsal, blue) = ("is that of a rehearsal", "belongs to the castle `blue`");
    for look in ["status", "why", "history", "report", "attach", "plan"] {
        // A real plan asks for credentials first.
        if look != "plan" {
            let real = castle.run(&["-f", "small.hcl", "--state", &state, look]).ends(3);
            assert!(real.err.contains(rehearsal), "{look}: {}", real.err);
        }
        let rehearsed = ["rehearse", "-f", "small.hcl", "--state", &state, look];
        let rehearsed = castle.run(&rehearsed).ends(3);
        assert!(rehearsed.err.contains(blue), "{look}: {}", rehearsed.err);
    }
    let inventory = ["rehearse", "-f", "small.hcl", "--state", &state, "inventory"];
    assert!(castle.run(&inventory).ends(3).err.contains(blue));
}
