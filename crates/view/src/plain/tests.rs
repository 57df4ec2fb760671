//! What lines say.

use castle_model::event::EventKind;

use super::*;
use crate::example::{Tape, decls, failed_run, good_run};

fn shown(events: &[Event], style: Style) -> String {
    let mut progress = Progress::new(&decls());
    let mut lines = Vec::new();
    for event in events {
        progress.apply(event);
        lines.extend(line(event, &progress, style));
    }
    lines.join("\n")
}

#[test]
fn a_good_run() {
    insta::assert_snapshot!(shown(&good_run(), Style::default()), @"
    castle blue: up, a rehearsal, 6 steps
    [ 0:00] plan c0ffee12: create 5, leave 1
    [ 0:00] layer secrets stands after 0.5 s: 1 step, nothing changed
    [ 0:00] platform/image    > create Talos 1.13.9 image on pve:local
    [ 0:00] platform/image    . waiting: Proxmox downloads it (31 %)
    [ 0:11] platform/image    + created in 11.3 s: sha256 of 118 MB agrees
    [ 0:11] platform/vm/cp-01 > create VM cp-01 (421) on pve
    [ 0:11] platform/vm/w-01  > create VM w-01 (431) on pve
    [ 0:12] platform/vm/w-01  ? create VM 431 on node pve: 595 no answer; try 2 in
                                1.0 s
    [ 0:30] platform/vm/cp-01 + created in 18.8 s: VM 421 runs with our mark
    [ 0:32] platform/vm/w-01  + created in 20.8 s: VM 431 runs with our mark
    [ 0:32] platform/vip      > create API server at 192.168.1.210
    [ 0:33] platform/vip      . waiting: connection refused at 192.168.1.210:6443
    [ 1:09] platform/vip      . waiting: answered 2 of 5 times in a row
    [ 1:23] platform/vip      + created in 50.4 s: 5 of 5 answers over verified TLS
    [ 1:23] layer platform stands after 1:22: 4 steps, 4 changed
    [ 1:23] gitops/flux       > create Flux and its controllers
    [ 1:35] gitops/flux       + created in 12.6 s: 4 controllers run
    [ 1:35] layer gitops stands after 12.6 s: 1 step, 1 changed
    [ 1:35] handover: Flux owns what the cluster hosts, from
            https://github.com/example/tazlab-k8s, main, clusters/blue at 3f2a91c
    ");
}

#[test]
fn above_a_live_screen_stands_only_what_is_not_seen_in_it() {
    let mut progress = Progress::new(&decls());
    let mut lines = Vec::new();
    for event in good_run() {
        progress.apply(&event);
        let style = Style::default();
        lines.extend(news(&event, &progress, style.signs).map(|news| news.lay(style)));
    }
    insta::assert_snapshot!(lines.join("\n"), @"
    castle blue: up, a rehearsal, 6 steps
    [ 0:00] plan c0ffee12: create 5, leave 1
    [ 0:00] layer secrets stands after 0.5 s: 1 step, nothing changed
    [ 1:23] layer platform stands after 1:22: 4 steps, 4 changed
    [ 1:35] layer gitops stands after 12.6 s: 1 step, 1 changed
    [ 1:35] handover: Flux owns what the cluster hosts, from
            https://github.com/example/tazlab-k8s, main, clusters/blue at 3f2a91c
    ");
}

#[test]
fn of_many_failed_tries_few_are_told() {
    let step = StepId::of("platform", "vm", "w-01");
    let failure =
        castle_model::Failure::new(castle_model::Class::Transient, "ask pve", "no answer");
    let told = |tries| {
        let mut tape = Tape::begun();
        let (step, failure) = (step.clone(), failure.clone());
        tape.at(0, EventKind::StepRetrying { step, failure, tries, delay_ms: 1000 });
        news(&tape.events[1], &Progress::new(&decls()), Signs::Unicode).is_some()
    };
    let shown: Vec<u32> = (1..=20).filter(|tries| told(*tries)).collect();
    assert_eq!(shown, [2, 4, 8, 16]);
}

#[test]
fn a_failed_run_on_a_narrow_screen() {
    let style = Style { width: 60, ..Style::default() };
    insta::assert_snapshot!(shown(&failed_run(), style), @"
    castle blue: up, a rehearsal, 6 steps
    [ 0:00] plan c0ffee12: create 5, leave 1
    [ 0:00] layer secrets stands after 0.5 s: 1 step, nothing
            changed
    [ 0:00] platform/image    > create Talos 1.13.9 image on
                                pve:local
    [ 0:11] platform/image    + created in 11.3 s: sha256 of 118
                                MB agrees
    [ 0:11] platform/vm/cp-01 > create VM cp-01 (421) on pve
    [ 0:11] platform/vm/w-01  > create VM w-01 (431) on pve
    [ 0:12] platform/vm/w-01  ! failed after 0.7 s: create VM
                                431 on node pve: 403 Permission
                                check failed (/vms/431,
                                VM.Allocate)
    [ 0:30] platform/vm/cp-01 + created in 18.8 s: VM 421 runs
                                with our mark
    ");
}

#[test]
fn a_stopped_run_with_notices_and_strangers() {
    let mut tape = Tape::begun();
    tape.at(0, EventKind::Notice { step: None, text: "the last run was killed".into() });
    tape.at(
        61_000,
        EventKind::Surveyed {
            step: StepId::of("platform", "vm", "cp-01"),
            observed: "foreign".into(),
            evidence: "VM 421 has no mark of a castle".into(),
        },
    );
    let (step, verb) = (StepId::new("secrets", "read"), castle_model::Verb::Leave);
    tape.at(100_000, EventKind::StepStarted { step, verb, reason: "it is as wanted".into() });
    tape.at(3_800_000, EventKind::Interrupted { settling: 2 });
    tape.end(3_801_000, RunOutcome::Interrupted);
    insta::assert_snapshot!(shown(&tape.events, Style::default()), @"
    castle blue: up, a rehearsal, 6 steps
    [ 0:00] notice: the last run was killed
    [ 0:00] platform/vm/cp-01 ! not ours: VM 421 has no mark of a castle
    [1:01:40] stopping: 2 steps are brought to a safe point; once more stops at once
    [1:01:41] stopped; everything done is recorded
    ");
}

#[test]
fn no_line_is_wider_than_the_screen() {
    for width in [50, 60, 80, 120] {
        let style = Style { width, ..Style::default() };
        for events in [good_run(), failed_run()] {
            for line in shown(&events, style).lines() {
                let long = line.chars().count();
                assert!(long <= width.max(8 + STEP_COLUMN + 3 + 24), "{width}: {line}");
            }
        }
    }
}

#[test]
fn a_long_reason_keeps_its_beginning_and_is_cut_at_a_word() {
    let brief = |text: &str| brief(text, REASON_SHOWN, Signs::Unicode);
    let whole = "Deployment external-secrets/external-secrets has 0 of 1 replicas: Pod external-secrets-5d8f finds no node: \
         Unschedulable: 0/5 nodes are available: 3 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }";
    assert_eq!(brief(whole), whole, "a line has room for the whole evidence");
    let long = format!("Deployment a/b: {}", "0 of 1 ".repeat(80));
    let shown = brief(long.trim_end());
    assert!(shown.starts_with("Deployment a/b: 0 of 1 "), "{shown}");
    assert!(shown.ends_with(" …") && shown.chars().count() <= REASON_SHOWN + 2, "{shown}");
    assert!(!shown.trim_end_matches(" …").contains('…'), "nothing is left out inside: {shown}");
    let nearly = "a".repeat(390);
    assert_eq!(brief(&format!("{nearly}; also DaemonSet d and 3 more")), nearly);
}

/// What a run says of tries, each a failure's words; above a live screen, if so.
fn tries(words: &[&str], above: bool) -> String {
    let step = StepId::of("platform", "vm", "w-01");
    let mut progress = Progress::new(&decls());
    let mut tape = Tape::begun();
    for (tries, why) in (1..).zip(words) {
        let failure = castle_model::Failure::new(castle_model::Class::Transient, "ask pve", *why);
        let step = step.clone();
        tape.at(0, EventKind::StepRetrying { step, failure, tries, delay_ms: 1000 });
    }
    let mut lines = Vec::new();
    for event in &tape.events[1..] {
        progress.apply(event);
        let above_screen = |event: &Event, progress: &Progress, style: Style| {
            news(event, progress, style.signs).map(|news| news.lay(style))
        };
        let told: fn(&Event, &Progress, Style) -> Option<String> =
            if above { above_screen } else { line };
        lines.extend(told(event, &progress, Style::default()));
    }
    lines.join("\n")
}

#[test]
fn a_try_that_met_the_same_is_told_in_two_words() {
    insta::assert_snapshot!(tries(&["no answer", "no answer", "no answer", "refused", "refused"], false), @"
    [ 0:00] platform/vm/w-01  ? ask pve: no answer; try 2 in 1.0 s
    [ 0:00] platform/vm/w-01  ? as before; try 3 in 1.0 s
    [ 0:00] platform/vm/w-01  ? as before; try 4 in 1.0 s
    [ 0:00] platform/vm/w-01  ? ask pve: refused; try 5 in 1.0 s
    [ 0:00] platform/vm/w-01  ? as before; try 6 in 1.0 s
    ");
    // Above a live screen few are told: the same as what was told last is meant.
    insta::assert_snapshot!(tries(&["no answer"; 9], true), @"
    [ 0:00] platform/vm/w-01  ? ask pve: no answer; try 3 in 1.0 s
    [ 0:00] platform/vm/w-01  ? as before; try 5 in 1.0 s
    [ 0:00] platform/vm/w-01  ? as before; try 9 in 1.0 s
    ");
    let changed = ["a", "a", "b", "a", "a", "a", "a", "a"];
    insta::assert_snapshot!(tries(&changed, true), @"
    [ 0:00] platform/vm/w-01  ? ask pve: a; try 3 in 1.0 s
    [ 0:00] platform/vm/w-01  ? ask pve: a; try 5 in 1.0 s
    [ 0:00] platform/vm/w-01  ? as before; try 9 in 1.0 s
    ");
}
