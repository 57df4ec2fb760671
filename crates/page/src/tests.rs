//! The page of a small run whose one machine is refused: what it says, and that nobody's words become markup.

use castle_model::{Event, PastRun, StepDecl, StepId};
use castle_view::timeline::Fold;

use super::*;

mod outcomes;

const RUN: &str = include_str!("tests/refused-machine.jsonl");

fn decls() -> Vec<StepDecl> {
    let read = StepId::new("secrets", "read");
    let image = StepId::new("platform", "image");
    let vm = |name: &str| StepId::of("platform", "vm", name);
    let vip = StepId::new("platform", "vip");
    vec![
        StepDecl::new(
            read.clone(),
            "secrets of blue in Infisical",
            "read",
            "every required key is read from its source",
        )
        .always(),
        StepDecl::new(
            image.clone(),
            "Talos 1.13.9 image on pve:local",
            "image",
            "the Talos image is on the image storage",
        )
        .needs([read]),
        StepDecl::new(vm("cp-01"), "VM cp-01 (421) on pve", "vm", "the VM is running")
            .needs([image.clone()]),
        StepDecl::new(vm("w-01"), "VM w-01 (431) on pve", "vm", "the VM is running").needs([image]),
        StepDecl::new(
            vip,
            "API server at 192.168.1.210",
            "vip",
            "the API server answers through the VIP",
        )
        .needs([vm("cp-01"), vm("w-01")]),
    ]
}

fn drawn(run: &str, decls: &[StepDecl], history: &[PastRun]) -> Timeline {
    let mut fold = Fold::new(decls);
    for line in run.lines() {
        fold.apply(&serde_json::from_str::<Event>(line).unwrap());
    }
    fold.timeline(&decls.iter().collect::<Vec<_>>(), history)
}

fn words() -> Words {
    let (go_on, again) = (vec!["castle up".to_owned()], "castle report r1".to_owned());
    Words { go_on, again, version: "0.1.0".to_owned() }
}

fn page() -> String {
    timeline(&drawn(RUN, &decls(), &[]), &words())
}

/// Where a reader sees something new begin.
const BLOCKS: [&str; 11] =
    ["title", "h1", "h2", "h3", "p", "ul", "ol", "tr", "div", "summary", "caption"];

/// What a reader sees, without markup, style and script: each block on a line.
fn text(page: &str) -> String {
    let mut lines = vec![Vec::new()];
    let mut hidden = "";
    for piece in page.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap();
        let name = tag.split(' ').next().unwrap();
        if ["style", "script"].contains(&name) {
            hidden = name;
        }
        if BLOCKS.contains(&name) {
            lines.push(Vec::new());
        }
        let text = text.replace("&#39;", "'").replace("&quot;", "\"").replace("&amp;", "&");
        if hidden.is_empty() && !text.trim().is_empty() {
            lines.last_mut().unwrap().push(text.trim().to_owned());
        }
        if name.strip_prefix('/') == Some(hidden) {
            hidden = "";
        }
    }
    let told = lines.into_iter().filter(|line| !line.is_empty());
    told.map(|line| line.join(" ")).collect::<Vec<_>>().join("\n")
}

/// The names of all tags and attributes, without any value.
fn skeleton(page: &str) -> Vec<String> {
    let body = page.split("</style>").nth(1).unwrap().split("<script>").next().unwrap();
    let tags = body.split('<').skip(1).map(|piece| piece.split_once('>').unwrap().0);
    tags.map(|tag| tag.split('"').step_by(2).collect::<String>()).collect()
}

#[test]
fn what_failed_for_one_reason_is_told_once() {
    let failed = RUN.lines().find(|line| line.contains("step-failed")).unwrap();
    let other = failed.replace("vm/w-01", "vm/cp-01").replace("VM 431", "VM 421");
    let lines = RUN.lines().map(|line| {
        let is_done = line.contains("step-done") && line.contains("vm/cp-01");
        if is_done { other.as_str() } else { line }
    });
    let run = lines.collect::<Vec<_>>().join("\n");
    let text = text(&timeline(&drawn(&run, &decls(), &[]), &words()));
    let told = text.split_once("What failed").unwrap().1;
    insta::assert_snapshot!(told.split_once("\nnext: ").unwrap().0, @"
    : 2 steps
    platform/vm/cp-01 denied, at 0:32 , platform/vm/w-01 denied, at 0:32
    what platform/vm/cp-01: create VM 421 on node pve
    what platform/vm/w-01: create VM 431 on node pve
    why 403 Permission check failed
    last seen the token has VM.Allocate on /vms/421 only
    hint give the token's role VM.Allocate on the whole range
    blocks 1 step
    platform/vip
    ");
}

#[test]
fn the_page_says_what_failed_and_why_what_waited_and_what_struck() {
    insta::assert_snapshot!(text(&page()), @"
    castle blue is not finished, 32.7 s (20260202-120000-1) Skip to the timeline
    castle timeline
    blue is not finished
    up rehearsal 5 steps began 2026-02-02 12:00 UTC 20260202-120000-1
    took 32.7 s 2 changed; 0.4 s of looking before
    critical path 32.6 s 99 % of the run
    of it waiting 12.1 s 37 % of the critical path
    What failed
    platform/vm/w-01 denied, at 0:32
    what create VM 431 on node pve
    why 403 Permission check failed
    last seen the token has VM.Allocate on /vms/421 only
    hint give the token's role VM.Allocate on the whole range
    blocks 1 step
    platform/vip
    next: castle up
    What decided how long it took
    3 steps in a row, each needing the one before it: 32.6 s of 32.7 s.
    2 image 3 vm/w-01
    0.5 s 2 % 1 secrets/read secrets of blue in Infisical 11.3 s 35 % 2 platform/image Talos 1.13.9 image on pve:local; waited 11.1 s 20.8 s 64 % 3 platform/vm/w-01 VM w-01 (431) on pve; 1 failed try, 1.0 s of pause
    Timeline
    Every step on one axis of time. Open a row to see why it ran, what it waited for and what proves it.
    work waiting pause before another try ◆ on the critical path ✕ failed on the way: a fault, a poke, something left over on the way: a notice
    Search steps
    − whole run +
    on the way
    2 moments
    secrets
    0:00 0:05 0:10 0:15 0:20 0:25 0:30
    0.5 s
    ◆ read secrets of blue in Infisical 0.5 s 0:00–0:00
    step secrets/read
    plan leave: it is as wanted
    time work 0.5 s; from 0:00 to 0:00
    slack none: it is on the critical path
    change unchanged
    proof 7 of 7 keys
    platform
    0:00 0:05 0:10 0:15 0:20 0:25 0:30
    32.1 s
    ◆ image Talos 1.13.9 image on pve:local 11.3 s 0:00–0:11
    step platform/image
    plan create: it is absent
    time work 0.2 s, waiting 11.1 s; from 0:00 to 0:11
    slack none: it is on the critical path
    needs
    secrets/read
    task UPID:pve:0003D3F1:download::root@pam:
    change created
    proof sha256 of 118 MB agrees
    What it waited for
    from for because
    0:00 11.1 s the download is at 40 %
    vm/cp-01 VM cp-01 (421) on pve 18.8 s 0:11–0:30
    step platform/vm/cp-01
    plan create: it is absent
    time work 18.8 s; from 0:11 to 0:30
    needs
    platform/image
    change created
    proof VM 421 runs with our mark
    ✕ ◆ vm/w-01 VM w-01 (431) on pve failed 20.8 s 0:11–0:32
    what create VM 431 on node pve
    why 403 Permission check failed
    last seen the token has VM.Allocate on /vms/421 only
    hint give the token's role VM.Allocate on the whole range
    step platform/vm/w-01
    plan create: it is absent
    time work 19.8 s, pause 1.0 s; from 0:11 to 0:32
    slack none: it is on the critical path
    needs
    platform/image
    Tried again
    at pause after
    0:12 1.0 s create VM 431: 503 too busy
    vip API server at 192.168.1.210 blocked
    step platform/vip
    blocked by platform/vm/w-01
    needs
    platform/vm/cp-01 platform/vm/w-01
    Layers
    layer steps done changed failed not run began took
    secrets 1 1 0 0 0 0:00 0.5 s
    platform 4 2 2 1 1 0:00 32.1 s
    all 5 3 2 1 1 0:00 32.7 s
    On the way
    when what
    0:12 fault proxmox answers 503
    0:32 notice platform/image the image is not pinned
    Made by castle 0.1.0 from the events of the run. All times are the rehearsal's own, in which a minute is a minute.
    To make it again: castle report r1
    ");
}

#[test]
fn nobodys_words_become_markup() {
    let hostile = [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "</style></title></script><b>",
        "&lt;b&gt; &amp; <!-- -->",
        "\u{202e}gpj.exe\u{0}\u{1b}[31m",
    ];
    let plain = skeleton(&page());
    for evil in hostile {
        let coded = serde_json::to_string(evil).unwrap();
        let coded = &coded[1..coded.len() - 1];
        let mut run = RUN.to_owned();
        for words in [
            "it is absent",
            "the download is at 40 %",
            "UPID:pve:0003D3F1:download::root@pam:",
            "sha256 of 118 MB agrees",
            "503 too busy",
            "create VM 431 on node pve",
            "403 Permission check failed",
            "the token has VM.Allocate on /vms/421 only",
            "give the token's role VM.Allocate on the whole range",
            "the image is not pinned",
            "proxmox answers 503",
        ] {
            assert!(run.contains(words), "{words}");
            run = run.replace(words, coded);
        }
        let mut decls = decls();
        for decl in &mut decls {
            evil.clone_into(&mut decl.title);
        }
        let said = Words { go_on: vec![evil.into()], again: evil.into(), version: evil.into() };
        let page = timeline(&drawn(&run, &decls, &[]), &said);
        assert_eq!(skeleton(&page), plain, "{evil}");
        assert!(!page.contains('\u{202e}') && !page.contains('\u{1b}') && !page.contains('\0'));
    }
}

#[test]
fn the_page_needs_nothing_and_trusts_one_script() {
    let page = page();
    let asks = ["src=", "@import", "url(", "<link", "<iframe", "<object", "fetch(", "XMLHttp"];
    for asking in asks {
        assert!(!page.contains(asking), "{asking}");
    }
    let script = page.split("<script>").nth(1).unwrap().split("</script>").next().unwrap();
    let hash = STANDARD.encode(Sha256::digest(script));
    assert!(page.contains(&format!("script-src &#39;sha256-{hash}&#39;")));
    assert!(page.contains("default-src &#39;none&#39;"));
    assert!(!STYLE.contains('<') && !SCRIPT.contains("</"), "neither ends its own element");
}

#[test]
fn every_link_within_the_page_leads_somewhere() {
    let page = page();
    let links = page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap());
    let links: Vec<&str> = links.collect();
    assert!(links.len() > 5);
    for link in links {
        assert!(page.contains(&format!("id=\"{link}\"")), "{link}");
    }
}
