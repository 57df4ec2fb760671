//! A small castle and three runs of it, for the tests of every screen.

use castle_model::event::{RunOutcome, SCHEMA};
use castle_model::plan::Direction;
use castle_model::step::Wording;
use castle_model::time::Moment;
use castle_model::{Change, Class, Event, EventKind, Failure, RunId, StepDecl, StepId, Verb};

pub(crate) const START: u64 = 1_770_033_600_000;

/// Events in the order they are put in, numbered, at milliseconds after the start.
#[derive(Default)]
pub(crate) struct Tape {
    pub(crate) events: Vec<Event>,
}

impl Tape {
    pub(crate) fn begun() -> Self {
        let mut tape = Self::default();
        tape.at(
            0,
            EventKind::RunStarted {
                castle: "blue".parse().unwrap(),
                direction: Direction::Up,
                rehearsal: true,
                steps: decls().len(),
            },
        );
        tape
    }

    pub(crate) fn at(&mut self, ms: u64, kind: EventKind) {
        let event = Event {
            v: SCHEMA,
            seq: self.events.len() as u64 + 1,
            at: Moment(START + ms),
            run: RunId::new("20260202-120000-1"),
            kind,
        };
        self.events.push(event);
    }

    pub(crate) fn end(&mut self, ms: u64, outcome: RunOutcome) {
        // The look before the plan is no part of what it took.
        let took_ms = ms.saturating_sub(400);
        self.at(ms, EventKind::RunEnded { outcome, done: 0, failed: 0, not_run: 0, took_ms });
    }

    fn planned(&mut self, counts: &[(Verb, usize)]) {
        let counts = counts.iter().map(|(verb, number)| (verb.to_string(), *number)).collect();
        self.at(400, EventKind::Planned { plan: "c0ffee1234567890".into(), counts });
    }

    fn begin(&mut self, ms: u64, id: &StepId, verb: Verb) {
        let reason = if verb == Verb::Create { "it is absent" } else { "it is as wanted" };
        self.at(ms, EventKind::StepStarted { step: id.clone(), verb, reason: reason.into() });
    }

    fn wait(&mut self, ms: u64, id: &StepId, reason: &str) {
        self.at(ms, EventKind::StepWaiting { step: id.clone(), reason: reason.into() });
    }

    fn done(&mut self, ms: u64, id: &StepId, change: Change, proof: &str, took_ms: u64) {
        let proof = proof.into();
        self.at(ms, EventKind::StepDone { step: id.clone(), change, proof, took_ms });
    }

    fn layer(&mut self, ms: u64, layer: &str, took_ms: u64) {
        self.at(ms, EventKind::LayerDone { layer: layer.parse().unwrap(), took_ms });
    }
}

fn read() -> StepId {
    StepId::new("secrets", "read")
}

fn image() -> StepId {
    StepId::new("platform", "image")
}

fn vm(node: &str) -> StepId {
    StepId::of("platform", "vm", node)
}

fn vip() -> StepId {
    StepId::new("platform", "vip")
}

fn flux() -> StepId {
    StepId::new("gitops", "flux")
}

/// Secrets, an image, two machines, a VIP, Flux.
pub(crate) fn decls() -> Vec<StepDecl> {
    vec![
        StepDecl::new(
            read(),
            "secrets of blue in Infisical",
            "read",
            "every required key is read from its source",
        )
        .always(),
        StepDecl::new(
            image(),
            "Talos 1.13.9 image on pve:local",
            "image",
            "the Talos image is on the image storage",
        )
        .needs([read()])
        .undo(),
        StepDecl::new(vm("cp-01"), "VM cp-01 (421) on pve", "vm", "the VM is running")
            .needs([image(), read()])
            .lane("storage local-lvm", 2)
            .undo(),
        StepDecl::new(vm("w-01"), "VM w-01 (431) on pve", "vm", "the VM is running")
            .needs([image(), read()])
            .lane("storage local-lvm", 2)
            .undo(),
        StepDecl::new(
            vip(),
            "API server at 192.168.1.210",
            "vip",
            "the API server answers through the VIP",
        )
        .needs([vm("cp-01"), vm("w-01"), image()])
        .contained("the VMs"),
        StepDecl::new(flux(), "Flux and its controllers", "flux", "Flux' controllers run")
            .needs([vip()])
            .contained("the VMs"),
    ]
}

/// From nothing to handed over.
pub(crate) fn good_run() -> Vec<Event> {
    let mut tape = Tape::begun();
    tape.planned(&[(Verb::Create, 5), (Verb::Leave, 1)]);
    tape.begin(400, &read(), Verb::Leave);
    tape.done(900, &read(), Change::Unchanged, "7 of 7 keys", 500);
    tape.layer(900, "secrets", 500);
    tape.begin(900, &image(), Verb::Create);
    let task = "UPID:pve:0003D3F1:0A2B5C7D:69ABCDEF:download::root@pam:".to_owned();
    tape.at(1_000, EventKind::StepTask { step: image(), task });
    tape.wait(1_100, &image(), "Proxmox downloads it (31 %)");
    tape.at(12_000, EventKind::StepActed { step: image(), change: Change::Created });
    tape.done(12_200, &image(), Change::Created, "sha256 of 118 MB agrees", 11_300);
    tape.begin(12_200, &vm("cp-01"), Verb::Create);
    tape.begin(12_200, &vm("w-01"), Verb::Create);
    let busy = Failure::new(Class::Transient, "create VM 431 on node pve", "595 no answer");
    tape.at(
        13_000,
        EventKind::StepRetrying { step: vm("w-01"), failure: busy, tries: 1, delay_ms: 1000 },
    );
    tape.done(31_000, &vm("cp-01"), Change::Created, "VM 421 runs with our mark", 18_800);
    tape.done(33_000, &vm("w-01"), Change::Created, "VM 431 runs with our mark", 20_800);
    tape.begin(33_000, &vip(), Verb::Create);
    tape.wait(34_000, &vip(), "connection refused at 192.168.1.210:6443");
    tape.wait(70_000, &vip(), "answered 2 of 5 times in a row");
    tape.done(83_400, &vip(), Change::Created, "5 of 5 answers over verified TLS", 50_400);
    tape.layer(83_400, "platform", 82_500);
    tape.begin(83_400, &flux(), Verb::Create);
    tape.done(96_000, &flux(), Change::Created, "4 controllers run", 12_600);
    tape.layer(96_000, "gitops", 12_600);
    let source = "https://github.com/example/tazlab-k8s, main, clusters/blue at 3f2a91c".to_owned();
    tape.at(96_000, EventKind::Handover { source });
    tape.end(96_100, RunOutcome::Done);
    tape.events
}

/// One machine is refused; what needs it is blocked, the rest is finished.
pub(crate) fn failed_run() -> Vec<Event> {
    let mut tape = Tape::begun();
    tape.planned(&[(Verb::Create, 5), (Verb::Leave, 1)]);
    tape.begin(400, &read(), Verb::Leave);
    tape.done(900, &read(), Change::Unchanged, "7 of 7 keys", 500);
    tape.layer(900, "secrets", 500);
    tape.begin(900, &image(), Verb::Create);
    tape.done(12_200, &image(), Change::Created, "sha256 of 118 MB agrees", 11_300);
    tape.begin(12_200, &vm("cp-01"), Verb::Create);
    tape.begin(12_200, &vm("w-01"), Verb::Create);
    let failure = Failure::new(
        Class::Denied,
        "create VM 431 on node pve",
        "403 Permission check failed (/vms/431, VM.Allocate)",
    )
    .evidence("the token castle@pve!blue has VM.Allocate on /vms/421 to /vms/430 only")
    .hint("give the token's role VM.Allocate on the whole range of vmids");
    tape.at(12_900, EventKind::StepFailed { step: vm("w-01"), failure, took_ms: 700 });
    tape.at(12_900, EventKind::StepBlocked { step: vip(), by: vm("w-01") });
    tape.at(12_900, EventKind::StepBlocked { step: flux(), by: vm("w-01") });
    tape.done(31_000, &vm("cp-01"), Change::Created, "VM 421 runs with our mark", 18_800);
    tape.end(31_100, RunOutcome::Failed);
    tape.events
}

/// Everything is as wanted.
pub(crate) fn quiet_run() -> Vec<Event> {
    let mut tape = Tape::begun();
    tape.planned(&[(Verb::Leave, 6)]);
    for decl in decls() {
        tape.begin(400, &decl.id, Verb::Leave);
        tape.done(420, &decl.id, Change::Unchanged, "as wanted", 20);
    }
    tape.end(500, RunOutcome::Done);
    tape.events
}

/// The names of all kinds of event, as the reader of events knows them.
fn kinds() -> std::collections::BTreeSet<String> {
    let unknown = r#"{"v":1,"seq":1,"at":0,"run":"r","event":"?"}"#;
    let error = serde_json::from_str::<Event>(unknown).unwrap_err().to_string();
    let listed = error.split_once("expected one of ").unwrap().1;
    listed.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_reference_shows_every_kind_of_event_as_it_is_written() {
    let reference = include_str!("../../../docs/reference/events.md");
    let mut shown = std::collections::BTreeSet::new();
    for line in reference.lines().filter(|line| line.starts_with('{')) {
        let event: Event = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let kind = value["event"].as_str().unwrap().to_owned();
        assert!(reference.contains(&format!("`{kind}`: ")), "{kind} is not explained");
        shown.insert(kind);
    }
    assert!(shown.len() > 10);
    assert_eq!(shown, kinds());
}

#[test]
fn the_reference_names_every_word_of_a_plan() {
    let reference = include_str!("../../../docs/reference/events.md");
    let (_, rest) = reference.split_once("`planned`: ").unwrap();
    let planned = rest.split("```").next().unwrap();
    let verbs = [
        Verb::Create,
        Verb::Adopt,
        Verb::Update,
        Verb::Replace,
        Verb::Leave,
        Verb::Remove,
        Verb::Forget,
    ];
    let wordings = [
        None,
        Some(Wording::Prove),
        Some(Wording::Observe),
        Some(Wording::Reset),
        Some(Wording::Set),
    ];
    let words = verbs.iter().flat_map(|verb| wordings.map(|wording| verb.word_for(wording)));
    for word in words.chain(["refused"]) {
        assert!(planned.contains(&format!("`{word}`")), "{word} is not named");
    }
}
