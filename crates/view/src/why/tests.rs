//! What the answers read like.

use super::*;
use crate::example::{START, decls, failed_run, good_run};

fn asked(events: &[castle_model::Event], now: u64, step: Option<&str>) -> Why {
    let decls = decls();
    let mut progress = Progress::new(&decls);
    for event in events {
        progress.apply(event);
    }
    let step = step.map(|step| decls.iter().find(|d| d.id.as_str() == step).unwrap().id.clone());
    let (deadlines, now) = (Deadlines::default(), Moment(START + now));
    let over = progress.outcome.is_some();
    let asked = Asked { progress: &progress, decls: &decls, deadlines: &deadlines, now, over };
    why(asked, step.as_ref())
}

#[test]
fn of_a_run_that_is_over_nothing_is_left() {
    let mut tape = crate::example::Tape { events: good_run()[..17].to_vec() };
    tape.end(60_000, castle_model::event::RunOutcome::Interrupted);
    insta::assert_snapshot!(shown(&asked(&tape.events, 60_000, None)), @"
    platform/vip was waiting when the run ended
      what      API server at 192.168.1.210
      waits for connection refused at 192.168.1.210:6443, seen so for 26.0 s
      blocks    1 step: gitops/flux
    ");
}

#[test]
fn nobody_knows_how_long_a_killed_run_waited() {
    let (mut progress, decls) = (Progress::new(&decls()), decls());
    for event in &good_run()[..17] {
        progress.apply(event);
    }
    let (deadlines, now) = (Deadlines::default(), Moment(START + 90_000_000));
    let asked =
        Asked { progress: &progress, decls: &decls, deadlines: &deadlines, now, over: true };
    insta::assert_snapshot!(shown(&why(asked, None)), @"
    platform/vip was waiting when the run ended
      what      API server at 192.168.1.210
      waits for connection refused at 192.168.1.210:6443
      blocks    1 step: gitops/flux
    ");
}

fn shown(why: &Why) -> String {
    text(why, Style::default())
}

#[test]
fn what_is_waited_for_is_told_with_its_deadline_and_what_it_keeps_waiting() {
    insta::assert_snapshot!(shown(&asked(&good_run()[..17], 60_000, None)), @"
    platform/vip has been waiting for 26.0 s, under way for 27.0 s
      what      API server at 192.168.1.210
      waits for connection refused at 192.168.1.210:6443, seen so for 26.0 s
      deadline  5:00 in all, 4:33 left
      blocks    1 step: gitops/flux
    ");
}

#[test]
fn how_far_a_download_is_is_told() {
    let mut tape = crate::example::Tape { events: good_run()[..8].to_vec() };
    let step = StepId::new("platform", "image");
    let kind = castle_model::EventKind::StepProgress { step, done: 42 << 20, total: 97 << 20 };
    tape.at(5_000, kind);
    insta::assert_snapshot!(shown(&asked(&tape.events, 6_000, None)), @"
    platform/image has been waiting for 4.9 s, under way for 5.1 s
      what      Talos 1.13.9 image on pve:local
      waits for Proxmox downloads it (31 %), seen so for 4.9 s
      so far    42 of 97 MiB
      elsewhere as UPID:pve:0003D3F1:0A2B5C7D:69ABCDEF:download::root@pam:
      deadline  10:00 in all, 9:54 left
      blocks    4 steps: gitops/flux, platform/vip, platform/vm (2)
    ");
}

#[test]
fn what_is_under_way_stands_in_the_order_of_what_is_behind_it() {
    let why = asked(&good_run()[..13], 14_000, None);
    insta::assert_snapshot!(shown(&why), @"
    platform/vm/cp-01 has been running for 1.8 s
      what      VM cp-01 (421) on pve
      deadline  5:00 in all, 4:58 left
      blocks    2 steps: gitops/flux, platform/vip

    platform/vm/w-01 has been running for 1.8 s
      what      VM w-01 (431) on pve
      tried     1 failed try: create VM 431 on node pve: 595 no answer
      deadline  5:00 in all, 4:58 left
      blocks    2 steps: gitops/flux, platform/vip
    ");
}

#[test]
fn a_failure_is_explained_and_what_is_blocked_says_by_what() {
    insta::assert_snapshot!(shown(&asked(&failed_run(), 40_000, None)), @"
    platform/vm/w-01 failed after 0.7 s, 27.1 s ago
      what      create VM 431 on node pve
      why       403 Permission check failed (/vms/431, VM.Allocate)
      last seen the token castle@pve!blue has VM.Allocate on /vms/421 to /vms/430
                only
      hint      give the token's role VM.Allocate on the whole range of vmids
      blocks    2 steps: gitops/flux, platform/vip
    ");
    insta::assert_snapshot!(shown(&asked(&failed_run(), 40_000, Some("gitops/flux"))), @"
    gitops/flux is blocked and will not run
      what      Flux and its controllers
      because   platform/vm/w-01 failed: create VM 431 on node pve: 403 Permission
                check failed (/vms/431, VM.Allocate)
      needs     platform/vip (blocked)
    ");
}

#[test]
fn one_step_is_told_wherever_it_stands() {
    insta::assert_snapshot!(shown(&asked(&good_run()[..17], 60_000, Some("platform/image"))), @"
    platform/image is done, in 11.3 s, 47.8 s ago
      what      Talos 1.13.9 image on pve:local
      proof     sha256 of 118 MB agrees
    ");
    insta::assert_snapshot!(shown(&asked(&good_run()[..17], 60_000, Some("gitops/flux"))), @"
    gitops/flux has not begun
      what      Flux and its controllers
      waits for platform/vip: under way for 27.0 s: connection refused at
                192.168.1.210:6443, seen so for 26.0 s
    ");
}

#[test]
fn what_has_not_begun_says_what_it_waits_for_in_the_end() {
    let said = |events: usize, now| shown(&asked(&good_run()[..events], now, Some("gitops/flux")));
    insta::assert_snapshot!(said(17, 60_000), @"
    gitops/flux has not begun
      what      Flux and its controllers
      waits for platform/vip: under way for 27.0 s: connection refused at
                192.168.1.210:6443, seen so for 26.0 s
    ");
    insta::assert_snapshot!(said(13, 14_000), @"
    gitops/flux has not begun
      what      Flux and its controllers
      waits for platform/vm/cp-01 (through platform/vip): running for 1.8 s
      waits for platform/vm/w-01 (through platform/vip): running for 1.8 s
    ");
    insta::assert_snapshot!(said(8, 6_000), @"
    gitops/flux has not begun
      what      Flux and its controllers
      waits for platform/image (through platform/vip): under way for 5.1 s: Proxmox
                downloads it (31 %), seen so for 4.9 s
    ");
}

#[test]
fn going_down_what_depends_is_what_goes_later() {
    let mut events = good_run()[..17].to_vec();
    if let castle_model::EventKind::RunStarted { direction, .. } = &mut events[0].kind {
        *direction = Direction::Down;
    }
    let why = asked(&events, 60_000, None);
    let behind: Vec<&str> = why.steps[0].behind.iter().map(StepId::as_str).collect();
    assert_eq!(behind, ["platform/image", "platform/vm/cp-01", "platform/vm/w-01", "secrets/read"]);
}
