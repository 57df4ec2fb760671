//! What a person sees while a run goes on, at several sizes.

use castle_model::{Event, EventKind, StepId};

use super::*;
use crate::example::{START, Tape, decls, failed_run, good_run};
use crate::style::{Palette, Signs};

fn usual() -> Expected {
    let step = |id: StepId, took| (id, took);
    Expected {
        runs: 3,
        whole: Some(95_000),
        layers: [("platform".parse().unwrap(), 80_000), ("gitops".parse().unwrap(), 12_000)].into(),
        steps: [
            step(StepId::new("platform", "image"), 11_000),
            step(StepId::of("platform", "vm", "cp-01"), 19_000),
            step(StepId::of("platform", "vm", "w-01"), 19_000),
            step(StepId::new("platform", "vip"), 20_000),
        ]
        .into(),
    }
}

fn shown(events: &[Event], now: u64, style: Style, height: usize) -> String {
    let decls = decls();
    let mut progress = Progress::new(&decls);
    for event in events {
        progress.apply(event);
    }
    let expected = usual();
    let now = Moment(START + now);
    let scene = Scene { progress: &progress, decls: &decls, expected: &expected, turn: None, now };
    let lines = lines(scene, style, height);
    assert!(lines.len() <= height);
    lines.iter().map(|line| style.line(line)).collect::<Vec<_>>().join("\n")
}

fn wide(width: usize) -> Style {
    Style { width, ..Style::default() }
}

#[test]
fn two_machines_are_made() {
    insta::assert_snapshot!(shown(&good_run()[..13], 14_000, wide(60), 24), @"
    ✓ secrets            0.5 s  1 step, nothing changed
    ▸ platform      0:13/~1:20  1 of 4 steps
      ▸ vm/cp-01    0:01/~0:19  create VM cp-01 (421) on pve
      ? vm/w-01     0:01/~0:19  try 2, after: 595 no answer
      gitops                    1 step to come
    ███░░░░░░░ 2 of 6 steps, 2 under way, 0:13/~1:35
    critical path so far 0:13: image 0:11 > vm/w-01 0:01
    ");
    insta::assert_snapshot!(shown(&good_run()[..13], 14_000, wide(80), 24), @"
    ✓ secrets               0.5 s  1 step, nothing changed
    ▸ platform      0:13 of ~1:20  1 of 4 steps
      ▸ vm/cp-01    0:01 of ~0:19  create VM cp-01 (421) on pve
      ? vm/w-01     0:01 of ~0:19  try 2, after: 595 no answer
      gitops                       1 step to come
    ██████░░░░░░░░░░░░░░ 2 of 6 steps, 2 under way, 0:13 of ~1:35
    critical path so far 0:13: image 0:11 > vm/w-01 0:01
    ");
    insta::assert_snapshot!(shown(&good_run()[..13], 14_000, wide(120), 24), @"
    ✓ secrets               0.5 s  1 step, nothing changed
    ▸ platform      0:13 of ~1:20  1 of 4 steps
      ▸ vm/cp-01    0:01 of ~0:19  create VM cp-01 (421) on pve
      ? vm/w-01     0:01 of ~0:19  try 2, after: 595 no answer
      gitops                       1 step to come
    ██████░░░░░░░░░░░░░░ 2 of 6 steps, 2 under way, 0:13 of ~1:35
    critical path so far 0:13: image 0:11 > vm/w-01 0:01
    ");
}

#[test]
fn a_download_has_a_bar() {
    let mut tape = Tape { events: good_run()[..8].to_vec() };
    let step = StepId::new("platform", "image");
    tape.at(5_000, EventKind::StepProgress { step, done: 42 << 20, total: 97 << 20 });
    insta::assert_snapshot!(shown(&tape.events, 6_000, wide(60), 24), @"

    ✓ secrets            0.5 s  1 step, nothing changed
    ▸ platform      0:05/~1:20  0 of 4 steps
      ▸ image       0:05/~0:11  ████░░░░░░ 42 of 97 MiB
      gitops                    1 step to come
    █░░░░░░░░░ 1 of 6 steps, 1 under way, 0:05/~1:35
    critical path so far 0:05: image 0:05
    ");
    let ascii = Style { signs: Signs::Ascii, ..wide(80) };
    insta::assert_snapshot!(shown(&tape.events, 6_000, ascii, 24), @"

    + secrets               0.5 s  1 step, nothing changed
    > platform      0:05 of ~1:20  0 of 4 steps
      > image       0:05 of ~0:11  ####...... 42 of 97 MiB
      gitops                       1 step to come
    ###................. 1 of 6 steps, 1 under way, 0:05 of ~1:35
    critical path so far 0:05: image 0:05
    ");
}

#[test]
fn a_wait_that_takes_longer_than_usual() {
    insta::assert_snapshot!(shown(&good_run()[..17], 64_000, wide(60), 24), @"
    ✓ secrets            0.5 s  1 step, nothing changed
    ▸ platform      1:03/~1:20  3 of 4 steps
      · vip         0:31/~0:20  connection refused at
          192.168.1.210:6443
      gitops                    1 step to come
    ██████░░░░ 4 of 6 steps, 1 under way, 1:03/~1:35
    critical path so far 1:03: … > vm/w-01 0:20 > vip 0:31
    ");
    insta::assert_snapshot!(shown(&good_run()[..17], 64_000, wide(80), 24), @"
    ✓ secrets               0.5 s  1 step, nothing changed
    ▸ platform      1:03 of ~1:20  3 of 4 steps
      · vip         0:31 of ~0:20  waiting: connection refused at 192.168.1.210:6443
      gitops                       1 step to come
    █████████████░░░░░░░ 4 of 6 steps, 1 under way, 1:03 of ~1:35
    critical path so far 1:03: image 0:11 > vm/w-01 0:20 > vip 0:31
    ");
    insta::assert_snapshot!(shown(&good_run()[..17], 64_000, wide(120), 24), @"
    ✓ secrets               0.5 s  1 step, nothing changed
    ▸ platform      1:03 of ~1:20  3 of 4 steps
      · vip         0:31 of ~0:20  waiting: connection refused at 192.168.1.210:6443
      gitops                       1 step to come
    █████████████░░░░░░░ 4 of 6 steps, 1 under way, 1:03 of ~1:35
    critical path so far 1:03: image 0:11 > vm/w-01 0:20 > vip 0:31
    ");
}

#[test]
fn a_failure_is_told_whole_while_the_rest_goes_on() {
    let run = failed_run();
    let on = &run[..run.len() - 2];
    insta::assert_snapshot!(shown(on, 20_000, wide(60), 24), @"
    ✓ secrets            0.5 s  1 step, nothing changed
    ✗ platform      0:19/~1:20  1 of 4 steps failed, 1 done
      ✗ vm/w-01          0.7 s  failed: create VM 431 on node p…
          what      create VM 431 on node pve
          why       403 Permission check failed (/vms/431,
                    VM.Allocate)
          last seen the token castle@pve!blue has VM.Allocate
                    on /vms/421 to /vms/430 only
          hint      give the token's role VM.Allocate on the
                    whole range of vmids
          blocks    2 steps: gitops/flux, platform/vip
      ▸ vm/cp-01    0:07/~0:19  create VM cp-01 (421) on pve
      gitops                    1 step to come
    ███░░░░░░░ 2 of 6 steps, 1 failed, 1 under way, 0:19/~1:35
    critical path so far 0:19: image 0:11 > vm/cp-01 0:07
    ");
    insta::assert_snapshot!(shown(on, 20_000, wide(80), 24), @"
    ✓ secrets               0.5 s  1 step, nothing changed
    ✗ platform      0:19 of ~1:20  1 of 4 steps failed, 1 done
      ✗ vm/w-01             0.7 s  failed: create VM 431 on node pve: 403 Permissio…
          what      create VM 431 on node pve
          why       403 Permission check failed (/vms/431, VM.Allocate)
          last seen the token castle@pve!blue has VM.Allocate on /vms/421 to
                    /vms/430 only
          hint      give the token's role VM.Allocate on the whole range of vmids
          blocks    2 steps: gitops/flux, platform/vip
      ▸ vm/cp-01    0:07 of ~0:19  create VM cp-01 (421) on pve
      gitops                       1 step to come
    ██████░░░░░░░░░░░░░░ 2 of 6 steps, 1 failed, 1 under way, 0:19 of ~1:35
    critical path so far 0:19: image 0:11 > vm/cp-01 0:07
    ");
    insta::assert_snapshot!(shown(on, 20_000, wide(120), 24), @"
    ✓ secrets               0.5 s  1 step, nothing changed
    ✗ platform      0:19 of ~1:20  1 of 4 steps failed, 1 done
      ✗ vm/w-01             0.7 s  failed: create VM 431 on node pve: 403 Permission check failed (/vms/431, VM.Allocate)
          what      create VM 431 on node pve
          why       403 Permission check failed (/vms/431, VM.Allocate)
          last seen the token castle@pve!blue has VM.Allocate on /vms/421 to /vms/430 only
          hint      give the token's role VM.Allocate on the whole range of vmids
          blocks    2 steps: gitops/flux, platform/vip
      ▸ vm/cp-01    0:07 of ~0:19  create VM cp-01 (421) on pve
      gitops                       1 step to come
    ██████░░░░░░░░░░░░░░ 2 of 6 steps, 1 failed, 1 under way, 0:19 of ~1:35
    critical path so far 0:19: image 0:11 > vm/cp-01 0:07
    ");
    insta::assert_snapshot!(shown(on, 20_000, wide(80), 8), @"
    ✓ secrets               0.5 s  1 step, nothing changed
    ✗ platform      0:19 of ~1:20  1 of 4 steps failed, 1 done
      ✗ vm/w-01             0.7 s  failed: create VM 431 on node pve: 403 Permissio…
      ▸ vm/cp-01    0:07 of ~0:19  create VM cp-01 (421) on pve
      gitops                       1 step to come
    ██████░░░░░░░░░░░░░░ 2 of 6 steps, 1 failed, 1 under way, 0:19 of ~1:35
    critical path so far 0:19: image 0:11 > vm/cp-01 0:07
    ");
}

#[test]
fn in_ascii_every_sign_is_one() {
    let style = Style { signs: Signs::Ascii, ..wide(80) };
    for run in [good_run(), failed_run()] {
        for events in 1..run.len() {
            let text = shown(&run[..events], 20_000, style, 24);
            assert!(text.is_ascii(), "{text}");
        }
    }
    insta::assert_snapshot!(shown(&good_run()[..13], 14_000, style, 24), @"
    + secrets               0.5 s  1 step, nothing changed
    > platform      0:13 of ~1:20  1 of 4 steps
      > vm/cp-01    0:01 of ~0:19  create VM cp-01 (421) on pve
      ? vm/w-01     0:01 of ~0:19  try 2, after: 595 no answer
      gitops                       1 step to come
    ######.............. 2 of 6 steps, 2 under way, 0:13 of ~1:35
    critical path so far 0:13: image 0:11 > vm/w-01 0:01
    ");
}

#[test]
fn a_low_screen_folds_what_is_of_least_interest() {
    insta::assert_snapshot!(shown(&good_run()[..13], 14_000, wide(80), 6), @"
    ✓ secrets               0.5 s  1 step, nothing changed
    ▸ platform      0:13 of ~1:20  1 of 4 steps, + 1 more
      ? vm/w-01     0:01 of ~0:19  try 2, after: 595 no answer
      gitops                       1 step to come
    ██████░░░░░░░░░░░░░░ 2 of 6 steps, 2 under way, 0:13 of ~1:35
    critical path so far 0:13: image 0:11 > vm/w-01 0:01
    ");
    insta::assert_snapshot!(shown(&good_run()[..13], 14_000, wide(80), 5), @"
    ✓ secrets               0.5 s  1 step, nothing changed
    ▸ platform      0:13 of ~1:20  1 of 4 steps, + 1 more
      ? vm/w-01     0:01 of ~0:19  try 2, after: 595 no answer
    ██████░░░░░░░░░░░░░░ 2 of 6 steps, 2 under way, 0:13 of ~1:35
    critical path so far 0:13: image 0:11 > vm/w-01 0:01
    ");
    insta::assert_snapshot!(shown(&good_run()[..13], 14_000, wide(80), 1), @"██████░░░░░░░░░░░░░░ 2 of 6 steps, 2 under way, 0:13 of ~1:35");
}

#[test]
fn no_line_is_wider_and_no_picture_higher_than_the_screen() {
    for run in [good_run(), failed_run()] {
        for events in 1..=run.len() {
            for width in [1, 8, 20, 39, 60, 80, 200] {
                for height in [0, 1, 2, 5, 24] {
                    let text = shown(&run[..events], 40_000, wide(width), height);
                    let widest = text.lines().map(columns).max().unwrap_or(0);
                    assert!(widest <= width, "{width}x{height}: {widest}\n{text}");
                }
            }
        }
    }
}

#[test]
fn colour_changes_no_word_of_the_screen() {
    let run = failed_run();
    let painted = shown(&run[..8], 20_000, Style { palette: Palette::Ansi, ..wide(80) }, 24);
    let mut bare = String::new();
    let mut rest = painted.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        bare.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    bare.push_str(rest);
    assert_eq!(bare, shown(&run[..8], 20_000, wide(80), 24));
    assert_ne!(bare, painted);
}

#[test]
fn a_run_that_stops_says_so_and_one_of_several_which_it_is() {
    let decls = decls();
    let mut tape = Tape { events: good_run()[..12].to_vec() };
    tape.at(13_000, EventKind::Interrupted { settling: 2 });
    let mut progress = Progress::new(&decls);
    for event in &tape.events {
        progress.apply(event);
    }
    let turn = Turn { what: "rebirth: cycle 2 of 5, up".into(), done: 3, of: 10 };
    let expected = Expected::default();
    let now = Moment(START + 13_000);
    let scene =
        Scene { progress: &progress, decls: &decls, expected: &expected, turn: Some(&turn), now };
    let style = wide(80);
    let text: Vec<String> = lines(scene, style, 10).iter().map(|line| style.line(line)).collect();
    insta::assert_snapshot!(text.join("\n"), @"
    ✓ secrets        0.5 s  1 step, nothing changed
    ▸ platform        0:12  1 of 4 steps
      ▸ vm/cp-01      0:00  create VM cp-01 (421) on pve
      ▸ vm/w-01       0:00  create VM w-01 (431) on pve
      gitops                1 step to come
    ██████░░░░░░░░░░░░░░ rebirth: cycle 2 of 5, up
    ██████░░░░░░░░░░░░░░ 2 of 6 steps, 2 under way; stopping, 0:12
    critical path so far 0:12: image 0:11
    ");
}

/// A machine is waited for, with what a real cluster says: whom it is about comes first, how that stands at the end.
const LONG: &str = "Deployment longhorn-system/csi-attacher has 1 of 3 replicas: pod csi-attacher-7bfb7b7c4f-x2x8z: ImagePullBackOff: Back-off pulling image longhornio/csi-attacher:v4.9.0; also 4 others";

#[test]
fn a_long_reason_goes_on_below_while_there_is_room() {
    let mut tape = Tape { events: good_run()[..17].to_vec() };
    let step = StepId::new("platform", "vip");
    tape.at(60_000, EventKind::StepWaiting { step, reason: LONG.into() });
    insta::assert_snapshot!(shown(&tape.events, 64_000, wide(60), 24), @"
    ✓ secrets            0.5 s  1 step, nothing changed
    ▸ platform      1:03/~1:20  3 of 4 steps
      · vip         0:31/~0:20  Deployment
          longhorn-system/csi-attacher has 1 of 3 replicas: pod
          csi-attacher-7bfb7b7c4f-x2x8z: ImagePullBackOff: …
      gitops                    1 step to come
    ██████░░░░ 4 of 6 steps, 1 under way, 1:03/~1:35
    critical path so far 1:03: … > vm/w-01 0:20 > vip 0:31
    ");
    insta::assert_snapshot!(shown(&tape.events, 64_000, wide(80), 24), @"
    ✓ secrets               0.5 s  1 step, nothing changed
    ▸ platform      1:03 of ~1:20  3 of 4 steps
      · vip         0:31 of ~0:20  waiting: Deployment longhorn-system/csi-attacher
          has 1 of 3 replicas: pod csi-attacher-7bfb7b7c4f-x2x8z: ImagePullBackOff:
          Back-off pulling image longhornio/csi-attacher:v4.9.0; also 4 others
      gitops                       1 step to come
    █████████████░░░░░░░ 4 of 6 steps, 1 under way, 1:03 of ~1:35
    critical path so far 1:03: image 0:11 > vm/w-01 0:20 > vip 0:31
    ");
    insta::assert_snapshot!(shown(&tape.events, 64_000, wide(120), 24), @"
    ✓ secrets               0.5 s  1 step, nothing changed
    ▸ platform      1:03 of ~1:20  3 of 4 steps
      · vip         0:31 of ~0:20  waiting: Deployment longhorn-system/csi-attacher has 1 of 3 replicas: pod
          csi-attacher-7bfb7b7c4f-x2x8z: ImagePullBackOff: Back-off pulling image longhornio/csi-attacher:v4.9.0; also 4
          others
      gitops                       1 step to come
    █████████████░░░░░░░ 4 of 6 steps, 1 under way, 1:03 of ~1:35
    critical path so far 1:03: image 0:11 > vm/w-01 0:20 > vip 0:31
    ");
    insta::assert_snapshot!(shown(&tape.events, 64_000, wide(200), 24), @"
    ✓ secrets               0.5 s  1 step, nothing changed
    ▸ platform      1:03 of ~1:20  3 of 4 steps
      · vip         0:31 of ~0:20  waiting: Deployment longhorn-system/csi-attacher has 1 of 3 replicas: pod csi-attacher-7bfb7b7c4f-x2x8z: ImagePullBackOff: Back-off pulling image
          longhornio/csi-attacher:v4.9.0; also 4 others
      gitops                       1 step to come
    █████████████░░░░░░░ 4 of 6 steps, 1 under way, 1:03 of ~1:35
    critical path so far 1:03: image 0:11 > vm/w-01 0:20 > vip 0:31
    ");
    insta::assert_snapshot!(shown(&tape.events, 64_000, wide(80), 6), @"
    ✓ secrets               0.5 s  1 step, nothing changed
    ▸ platform      1:03 of ~1:20  3 of 4 steps
      · vip         0:31 of ~0:20  waiting: Deployment longhorn-system/csi-attacher…
      gitops                       1 step to come
    █████████████░░░░░░░ 4 of 6 steps, 1 under way, 1:03 of ~1:35
    critical path so far 1:03: image 0:11 > vm/w-01 0:20 > vip 0:31
    ");
}

#[test]
fn a_download_without_a_run_has_the_same_bar() {
    let mib = 1 << 20;
    let line = |name, done, total, width| download(name, done, total, wide(width));
    let shown: Vec<String> = [40, 60, 80]
        .iter()
        .flat_map(|width| {
            [
                line("Talos 1.13.9", 5 * mib, Some(8 * mib), *width),
                line("external-secrets 1.3.2", 4_000, Some(10_805), *width),
                line("flux 2.9.3", 3 * mib, None, *width),
            ]
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    Talos 1.13.9: ██████░░░░ 5 of 8 MiB
    external-secre…: ███░░░░░░░ 3 of 11 KiB
    flux 2.9.3: 3 MiB
    Talos 1.13.9: ██████░░░░ 5 of 8 MiB
    external-secrets 1.3.2: ███░░░░░░░ 3 of 11 KiB
    flux 2.9.3: 3 MiB
    Talos 1.13.9: ████████████░░░░░░░░ 5 of 8 MiB
    external-secrets 1.3.2: ███████░░░░░░░░░░░░░ 3 of 11 KiB
    flux 2.9.3: 3 MiB
    ");
    let ascii = Style { signs: Signs::Ascii, ..wide(60) };
    assert_eq!(download("flux", mib / 2, Some(mib), ascii), "flux: #####..... 0 of 1 MiB");
    assert!(columns(&line("a-component-with-a-long-name 1.22.333", 1, Some(9), 30)) < 30);
}
