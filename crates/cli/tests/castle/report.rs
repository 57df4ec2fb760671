//! The page of a run: left beside its events, named at its end, made again by `castle report`.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use crate::context::{Context, Said};

/// The page that a run names at its end.
fn named(said: &Said) -> PathBuf {
    let line = said.err.lines().find_map(|line| line.strip_prefix("timeline: "));
    PathBuf::from(line.unwrap_or_else(|| panic!("no page is named:\n{}", said.err)))
}

#[test]
fn every_run_leaves_its_page_and_report_makes_it_again() {
    let castle = Context::new();
    let none = castle.run(&["report"]).ends(2);
    assert!(none.err.contains("no run of castle `blue` is kept"), "{}", none.err);
    let up = castle.run(&["up"]).ends(0);
    let page = named(&up);
    assert!(page.starts_with(castle.state().join("runs")), "{}", page.display());
    assert_eq!(std::fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o600);
    let first = std::fs::read_to_string(&page).unwrap();
    assert!(first.len() <= 300_000, "the page of 3+2 machines has {} bytes", first.len());
    for told in
        ["platform/vm/cp-01", "storage/longhorn", "What decided how long it took", "Flux owns"]
    {
        assert!(first.contains(told), "{told}");
    }

    let again = castle.run(&["report", "--out", "-"]).ends(0);
    assert_eq!(again.out, first, "the events alone make the page");
    std::fs::remove_file(&page).unwrap();
    let put = castle.run(&["report", "1"]).ends(0);
    assert_eq!(put.out.trim_end(), page.display().to_string());
    assert_eq!(std::fs::read_to_string(&page).unwrap(), first);
    castle.run(&["rehearse", "report", "--out", "copy.html"]).ends(0);
    assert_eq!(std::fs::read_to_string(castle.folder().join("copy.html")).unwrap(), first);

    let quiet = castle.run(&["up"]).ends(0);
    assert_ne!(named(&quiet), page, "each run has its own");
    let down = castle.run(&["down", "--yes"]).ends(0);
    assert!(std::fs::read_to_string(named(&down)).unwrap().contains("is gone"));
    let second = castle.run(&["up"]).ends(0);
    let compared = std::fs::read_to_string(named(&second)).unwrap();
    assert!(compared.contains("previous run") && compared.contains("record"), "runs are compared");
    let wrong = castle.run(&["report", "77"]).ends(2);
    assert!(wrong.err.contains("there is: r0001-"), "{}", wrong.err);
    let json = castle.run(&["report", "--json"]).ends(2);
    assert!(json.err.contains("is HTML"), "{}", json.err);
    castle.run(&["rehearse", "reset", "--yes"]).ends(0);
    assert!(!castle.state().exists(), "a reset leaves nothing");
}

#[test]
fn a_layer_that_goes_and_a_wipe_leave_their_page_and_their_line_too() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let layer = castle.run(&["down", "--layer", "storage", "--yes"]).ends(0);
    assert!(std::fs::read_to_string(named(&layer)).unwrap().contains("storage/longhorn"));
    let wiped = castle.run(&["wipe", "--yes"]).ends(0);
    assert!(std::fs::read_to_string(named(&wiped)).unwrap().contains("platform/vm/cp-01"));
    assert_ne!(named(&wiped), named(&layer));
    let history = castle.run(&["history", "--json"]).ends(0).out;
    assert_eq!(history.lines().count(), 3, "{history}");
}

#[test]
fn a_failed_run_leaves_a_page_with_the_failure_and_the_fault() {
    let castle = Context::new();
    let up = castle.run(&["up", "--fault", "talos cp-02: dead from 0:20"]).ends(1);
    let page = std::fs::read_to_string(named(&up)).unwrap();
    for told in [
        "is not finished",
        "What failed",
        "platform/boot/cp-02",
        "talos cp-02 is dead",
        "next: ",
        "rehearse poke --mend &#39;talos cp-02: dead&#39;",
    ] {
        assert!(page.contains(told), "{told}");
    }
    let shown = castle.run(&["attach"]);
    assert!(shown.err.contains("fault: "), "who attaches is told of the fault:\n{}", shown.err);
}

#[test]
fn the_pictures_of_the_documentation_show_these_pages() {
    let sums = include_str!("../../../../docs/pictures/pages.sha256");
    // As `cargo xtask pictures` plays them.
    let pages: [(&str, &[&[&str]]); 2] = [
        ("timeline", &[&["up"], &["down", "--yes"], &["up"]]),
        ("failed", &[&["up", "--fault", "talos cp-02: dead from 0:20"]]),
    ];
    for (name, runs) in pages {
        let castle = Context::new();
        for words in runs {
            castle.run(words);
        }
        let page = castle.run(&["report", "--out", "page.html"]).ends(0);
        assert_eq!(page.err, "page.html written\n");
        let bytes = std::fs::read(castle.folder().join("page.html")).unwrap();
        let sum = format!("{}  {name}\n", hex::encode(Sha256::digest(&bytes)));
        assert!(
            sums.contains(&sum),
            "the page `{name}` is not the one in docs/pictures: run `cargo xtask pictures`, look at them, and commit them"
        );
    }
}

#[test]
fn a_page_that_can_not_be_written_is_told_and_fails_nothing() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let runs = castle.state().join("runs");
    let first = std::fs::read_dir(&runs).unwrap().map(|file| file.unwrap().file_name());
    let first = first
        .filter_map(|name| name.into_string().ok())
        .find(|name| name.strip_suffix(".jsonl").is_some());
    let date = first.unwrap().split_once('-').unwrap().1.replace(".jsonl", "");
    std::fs::create_dir(runs.join(format!("r0002-{date}.timeline.html"))).unwrap();
    let again = castle.run(&["up"]).ends(0);
    assert!(again.err.contains("notice: the page of this run can not be kept"), "{}", again.err);
    assert!(!again.err.contains("timeline: "), "{}", again.err);
    let left: Vec<_> = std::fs::read_dir(&runs).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".new")), "{left:?}");
}

#[test]
fn without_a_browser_it_is_said_where_the_page_is() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let mut command = castle.command(&["report", "--open"]);
    command.env("PATH", castle.folder());
    let said = Said::of(&command.output().unwrap()).ends(1);
    assert!(said.err.contains("neither `xdg-open` nor `open` is on this system"), "{}", said.err);
    assert!(said.err.contains(said.out.trim_end()), "{}", said.err);
}

#[test]
fn a_browser_is_told_the_page_and_no_secret() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let told = castle.folder().join("told");
    let shim = format!("#!/bin/sh\n/usr/bin/env > {0}\necho \"page $1\" >> {0}\n", told.display());
    castle.write("bin/xdg-open", &shim);
    let program = castle.folder().join("bin/xdg-open");
    std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = castle.command(&["report", "--open"]);
    command.env("PATH", castle.folder().join("bin")).env("DISPLAY", ":7");
    command.env("INFISICAL_CLIENT_SECRET", "canary");
    let said = Said::of(&command.output().unwrap()).ends(0);
    let told = std::fs::read_to_string(told).unwrap();
    assert!(told.contains(&format!("page {}", said.out.trim_end())), "{told}");
    assert!(told.contains("DISPLAY=:7") && !told.contains("canary"), "{told}");
}
