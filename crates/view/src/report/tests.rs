//! The closing report of runs that ended in every way.

use castle_model::failure::Class;

use super::*;
use crate::example::{decls, failed_run, good_run, quiet_run};

fn shown(events: &[castle_model::Event], go_on: &[&str]) -> String {
    shown_at(80, events, go_on)
}

fn shown_at(width: usize, events: &[castle_model::Event], go_on: &[&str]) -> String {
    let style = Style { width, ..Style::default() };
    let go_on: Vec<String> = go_on.iter().map(|command| (*command).to_owned()).collect();
    let decls = decls();
    let mut progress = Progress::new(&decls);
    for event in events {
        progress.apply(event);
    }
    end(&progress, &decls.iter().collect::<Vec<_>>(), &go_on, style)
}

#[test]
fn after_a_good_run() {
    insta::assert_snapshot!(shown(&good_run(), &[]), @"
    castle blue (a rehearsal) stands: 6 steps, 5 changed, 1:35

    layer     steps  done  changed    took
    secrets       1     1        0   0.5 s
    platform      4     4        4    1:22
    gitops        1     1        1  12.6 s
    all           6     6        5    1:35

    critical path: 1:35 of 1:35 (100 %)
      secrets/read       0.5 s  secrets of blue in Infisical
      platform/image    11.3 s  Talos 1.13.9 image on pve:local
      platform/vm/w-01  20.8 s  VM w-01 (431) on pve
      platform/vip      50.4 s  API server at 192.168.1.210
      gitops/flux       12.6 s  Flux and its controllers

    handover: Flux owns what the cluster hosts, from
              https://github.com/example/tazlab-k8s, main, clusters/blue at 3f2a91c;
              castle only observes
    ");
}

#[test]
fn after_a_failed_run() {
    insta::assert_snapshot!(shown(&failed_run(), &["castle up"]), @"
    castle blue (a rehearsal) is not finished: 1 of 6 steps failed, 2 changed, 30.7
    s

    layer     steps  done  changed  failed  not run    took
    secrets       1     1        0       0        0   0.5 s
    platform      4     2        2       1        1  30.1 s
    gitops        1     0        0       0        1       -
    all           6     3        2       1        2  30.7 s

    critical path: 30.6 s of 30.7 s (99 %)
      secrets/read        0.5 s  secrets of blue in Infisical
      platform/image     11.3 s  Talos 1.13.9 image on pve:local
      platform/vm/cp-01  18.8 s  VM cp-01 (421) on pve

    failed: platform/vm/w-01 (not allowed)
      what      create VM 431 on node pve
      why       403 Permission check failed (/vms/431, VM.Allocate)
      last seen the token castle@pve!blue has VM.Allocate on /vms/421 to /vms/430
                only
      hint      give the token's role VM.Allocate on the whole range of vmids
      blocks    2 steps: gitops/flux, platform/vip

    next: `castle up`
    ");
}

#[test]
fn what_fails_for_one_reason_is_told_once() {
    let mut decls = decls();
    decls.push(StepDecl::new(StepId::of("platform", "vm", "w-02"), "VM w-02", "vm", "it runs"));
    let mut progress = Progress::new(&decls);
    for event in &failed_run() {
        progress.apply(event);
    }
    for (name, why) in
        [("cp-01", "401 no such token"), ("w-01", "401 no such token"), ("w-02", "595 no answer")]
    {
        let step = progress.steps.get_mut(&StepId::of("platform", "vm", name)).unwrap();
        let what = format!("create VM {name} on node pve");
        step.status = StepStatus::Failed;
        step.failure = Some(
            Failure::new(Class::Denied, what, why)
                .evidence("the user castle@pve has no token `blue` any more")
                .hint("make the token again"),
        );
    }
    let flux = progress.steps.get_mut(&StepId::new("gitops", "flux")).unwrap();
    flux.blocked_by = Some(StepId::of("platform", "vm", "cp-01"));
    insta::assert_snapshot!(failures(&progress, Style::default()).join("\n"), @"
    failed: platform/vm/cp-01, platform/vm/w-01 (not allowed)
      what      platform/vm/cp-01: create VM cp-01 on node pve
      what      platform/vm/w-01: create VM w-01 on node pve
      why       401 no such token
      last seen the user castle@pve has no token `blue` any more
      hint      make the token again
      blocks    2 steps: gitops/flux, platform/vip

    failed: platform/vm/w-02 (not allowed)
      what      create VM w-02 on node pve
      why       595 no answer
      last seen the user castle@pve has no token `blue` any more
      hint      make the token again
    ");
}

#[test]
fn what_is_blocked_alone_has_the_name_of_a_step_that_exists() {
    let config = |name| StepId::of("platform", "config", name);
    let (one, other, flux) = (config("cp-02"), config("cp-03"), StepId::new("gitops", "flux"));
    assert_eq!(folded(&[&one, &flux]), "2 steps: gitops/flux, platform/config/cp-02");
    assert_eq!(folded(&[&one, &other]), "2 steps: platform/config (2)");
}

#[test]
fn what_goes_on_without_castle_is_told_after_an_interruption() {
    let decls = decls();
    let mut progress = Progress::new(&decls);
    progress.direction = Some(Direction::Down);
    for name in ["cp-01", "w-01"] {
        let step = progress.steps.get_mut(&StepId::of("platform", "vm", name)).unwrap();
        step.status = StepStatus::Waiting;
        step.task = Some("UPID:pve:1:2:3:qmdestroy:421:castle@pve!blue:".to_owned());
    }
    progress.outcome = Some(RunOutcome::Interrupted);
    progress.took_ms = 900;
    let order: Vec<&StepDecl> = decls.iter().collect();
    let go_on = ["castle down".to_owned()];
    insta::assert_snapshot!(end(&progress, &order, &go_on, Style::default()), @"
    castle was interrupted: 6 steps, 2 begun and not over, 0.9 s

    under way: 2 steps: platform/vm (2); what they have begun goes on without
               castle, and the next run waits for its end
    not run: 4 steps: gitops/flux, platform/image, platform/vip, secrets/read

    next: `castle down`
    ");
}

#[test]
fn on_a_narrow_terminal_no_line_is_left_to_the_terminal_to_break() {
    for width in [44, 60] {
        let text = shown_at(width, &good_run(), &[]);
        let widest = text.lines().map(crate::style::columns).max().unwrap_or(0);
        assert!(widest <= width, "{width}: {widest}\n{text}");
    }
    insta::assert_snapshot!(shown_at(44, &good_run(), &[]), @"
    castle blue (a rehearsal) stands: 6 steps, 5
    changed, 1:35

    layer     steps  done  changed    took
    secrets       1     1        0   0.5 s
    platform      4     4        4    1:22
    gitops        1     1        1  12.6 s
    all           6     6        5    1:35

    critical path: 1:35 of 1:35 (100 %)
      secrets/read       0.5 s  secrets of blue…
      platform/image    11.3 s  Talos 1.13.9 im…
      platform/vm/w-01  20.8 s  VM w-01 (431) o…
      platform/vip      50.4 s  API server at 1…
      gitops/flux       12.6 s  Flux and its co…

    handover: Flux owns what the cluster hosts,
              from
          https://github.com/example/tazlab-k8s,
              main, clusters/blue at 3f2a91c;
              castle only observes
    ");
}

#[test]
fn a_layer_that_went_alone_is_not_the_castle() {
    let mut decls = decls();
    decls.retain(|decl| decl.layer.as_str() == "gitops");
    let mut progress = Progress::new(&decls);
    progress.direction = Some(Direction::Down);
    progress.outcome = Some(RunOutcome::Done);
    let told = headline(&progress, Style::default());
    assert_eq!(told, "layer gitops of castle is gone: 1 step, nothing changed, 0.0 s\n");
    progress.left.push((StepId::new("platform", "guests"), "VM 421".to_owned()));
    let told = headline(&progress, Style::default());
    assert!(told.contains("is gone but for 1 thing: 1 step"), "{told}");
}

#[test]
fn after_a_run_with_nothing_to_do() {
    insta::assert_snapshot!(shown(&quiet_run(), &[]), @"castle blue (a rehearsal) stands: 6 steps, nothing changed, 0.1 s");
}
