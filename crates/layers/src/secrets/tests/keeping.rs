//! What is kept of a castle: never two lives of it, never somebody else's, and nothing of it after `down`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use castle_engine::{Acted, Context, Step};
use castle_model::spec::{EscrowAfterDown, EscrowFile, EscrowPlace};
use castle_model::{CastleName, Failure, Incarnation, Observed};
use castle_platforms::escrow::{KUBECONFIG_KEY, TALOSCONFIG_KEY};
use castle_platforms::handed::{Life, escrowed_incarnation};
use castle_platforms::handout::Handout;
use castle_platforms::ids::{secrets_escrow, secrets_read};

use super::super::{Vault, escrow, read};
use super::*;

impl Bench {
    /// Somebody writes an entry.
    async fn write(&self, key: &str, text: &Secret) {
        let (vault, place) = self.vault().await;
        vault.upsert(&place, &[(key, text, &BTreeMap::new())]).await.unwrap();
    }

    async fn kept(&self, key: &str) -> Option<Secret> {
        let (vault, place) = self.vault().await;
        vault.list(&place).await.unwrap().own.get(key).map(|entry| entry.value.clone())
    }

    /// Which of the castle's own entries are there.
    fn entries(&self) -> Vec<&'static str> {
        let secrets = self.inventory().secrets;
        [BUNDLE_KEY, KUBECONFIG_KEY, TALOSCONFIG_KEY]
            .into_iter()
            .filter(|key| secrets.iter().any(|secret| secret.ends_with(key)))
            .collect()
    }

    async fn life(&self) -> Incarnation {
        escrowed_incarnation(&self.spec.name, &self.kept(BUNDLE_KEY).await.unwrap()).unwrap()
    }

    /// Another life, as another run would begin it.
    fn another(&self) -> Life {
        Life::begin(&self.host.world()).unwrap()
    }

    fn kubeconfig(&self, life: &Life) -> Secret {
        let handout = Handout::read(&life.bundle.to_yaml()).unwrap();
        handout.kubeconfig(&self.spec, &self.host.world()).unwrap()
    }
}

fn red() -> CastleName {
    "red".parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn machines_of_one_life_are_never_given_the_secrets_of_another() {
    let mut bench = Bench::new(5);
    assert_done(&bench.up().await);
    let (alive, other) = (bench.life().await, bench.another());
    let theirs = other.to_escrow(&bench.spec.name);
    bench.write(BUNDLE_KEY, &theirs).await;
    let before = bench.mutations();
    let report = bench.up().await;
    let failure = &report.failures[&secrets_escrow()];
    assert_eq!(failure.class, Class::Gone, "{failure:?}");
    let there = format!("holds the secrets of the life {}", other.incarnation);
    assert!(failure.why.ends_with(&there), "{failure:?}");
    let hint = failure.hint.as_ref().unwrap();
    assert!(hint.contains("any kubeconfig of that life still opens the cluster"), "{hint}");
    assert!(hint.contains("`castle down` removes them"), "{hint}");
    // A kubeconfig that is still there is named; one of another life is not the one.
    let one = Life { incarnation: alive, bundle: other.bundle.clone() };
    for (life, named) in [(&other, false), (&one, true)] {
        let kubeconfig = life.marked(&bench.spec.name, &bench.kubeconfig(life));
        bench.write(KUBECONFIG_KEY, &kubeconfig).await;
        let report = bench.up().await;
        let hint = report.failures[&secrets_escrow()].hint.clone().unwrap();
        assert_eq!(hint.contains("KUBECONFIG_CONTENT there still opens"), named, "{hint}");
    }
    assert_eq!(bench.mutations(), before + 2, "nothing but our own two entries was written");
    assert_eq!(bench.kept(BUNDLE_KEY).await.unwrap().expose().trim(), theirs.expose().trim());
}

/// The step, with somebody who writes between its look and its act, or between its first try to act and the second.
struct Meanwhile {
    step: escrow::Escrow,
    vault: Infisical,
    place: Place,
    theirs: Secret,
    /// Whether it is to be tried once before.
    late: AtomicBool,
}

#[async_trait]
impl Step for Meanwhile {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        self.step.observe(cx).await
    }

    async fn act(&self, cx: &Context, verb: Verb) -> Result<Acted, Failure> {
        let late = self.late.swap(false, Ordering::Relaxed);
        let tried = if late { Some(self.step.act(cx, verb).await) } else { None };
        let entry = (BUNDLE_KEY, &self.theirs, &BTreeMap::new());
        self.vault.upsert(&self.place, &[entry]).await.unwrap();
        match tried {
            Some(tried) => tried,
            None => self.step.act(cx, verb).await,
        }
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        self.step.gate(cx).await
    }
}

/// Somebody else begins a life while this run begins its own: his stays, and no machine is made for ours.
async fn overtaken(mut bench: Bench, late: bool) {
    let access = Access::to_infisical(bench.credentials());
    let shared = Arc::new(Vault::new(&bench.spec, &bench.host.world(), access));
    let theirs = bench.another().to_escrow(&bench.spec.name);
    let (vault, place) = bench.vault().await;
    let mut graph = Graph::new();
    crate::gitops::build_repository(&mut graph, &bench.spec, &bench.host.world());
    crate::sets::build(&mut graph, &bench.spec, &bench.host.world());
    for decl in super::super::declare(&bench.spec) {
        if decl.id == secrets_read() {
            graph.add(decl, read::Read(shared.clone()));
        } else {
            let (vault, place, theirs) = (vault.clone(), place.clone(), theirs.clone());
            let (step, late) = (escrow::Escrow(shared.clone()), AtomicBool::new(late));
            graph.add(decl, Meanwhile { step, vault, place, theirs, late });
        }
    }
    let wanted = castle_platforms::proxmox::wanted::Wanted::of(&bench.spec).unwrap();
    castle_platforms::proxmox::build(&mut graph, wanted, &bench.host.world());
    let (_, report) = bench.run_by(&graph, Direction::Up).await;
    let failure = &report.failures[&secrets_escrow()];
    assert_eq!(failure.class, Class::Conflict, "{failure:?}");
    assert_eq!(failure.why, "TALOS_SECRETS_BUNDLE has changed since this run looked at it");
    assert_eq!(bench.kept(BUNDLE_KEY).await.unwrap().expose().trim(), theirs.expose().trim());
    assert!(bench.inventory().proxmox.guests.is_empty(), "no machine was made for the other life");
}

#[tokio::test(start_paused = true)]
async fn two_who_raise_the_same_castle_do_not_write_over_each_other() {
    overtaken(Bench::new(6), false).await;
}

#[tokio::test(start_paused = true)]
async fn a_second_try_does_not_write_over_what_somebody_kept_after_the_first() {
    let bench = Bench::new(6);
    // The first try: the server stumbles twice, which is once more than it is forgiven in silence.
    bench.host.cause(InfisicalTrouble::Stumbles(2));
    overtaken(bench, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stumbles_and_one_that_limits_cost_time_and_no_second_version() {
    let mut bench = Bench::new(6);
    bench.host.cause(InfisicalTrouble::Stumbles(2));
    let (vault, place) = bench.vault().await;
    bench.host.cause(InfisicalTrouble::Limited(true));
    for _ in 0..40 {
        vault.list(&place).await.unwrap();
    }
    let before = bench.host.now();
    assert_done(&bench.up().await);
    bench.assert_risen();
    assert!(bench.host.now() - before > 55_000, "the limit was waited for");
    let patient = vault.patience(Duration::from_secs(75));
    assert_eq!(patient.list(&place).await.unwrap().own[BUNDLE_KEY].version, 1);
}

#[tokio::test(start_paused = true)]
async fn the_way_in_of_another_castle_is_found_before_anything_is_made() {
    let mut bench = Bench::new(7);
    let life = bench.another();
    let theirs = life.marked(&red(), &bench.kubeconfig(&life));
    bench.write(KUBECONFIG_KEY, &theirs).await;
    let written = |bench: &Bench| bench.host.mutations().get("infisical").copied();
    let before = written(&bench);
    let report = bench.up().await;
    let failure = &report.failures[&secrets_escrow()];
    assert_eq!(failure.class, Class::Conflict, "{failure:?}");
    assert!(failure.why.ends_with("it belongs to the castle `red`"), "{failure:?}");
    let evidence = failure.evidence.as_ref().unwrap();
    assert!(evidence.starts_with("KUBECONFIG_CONTENT in https://eu.infisical.com"), "{evidence}");
    assert!(bench.inventory().proxmox.guests.is_empty());
    assert_eq!(bench.entries(), [KUBECONFIG_KEY]);
    assert_eq!(written(&bench), before, "no life was begun");
}

#[tokio::test(start_paused = true)]
async fn every_entry_of_ours_is_named_and_goes_and_no_other() {
    let mut bench = Bench::new(8);
    assert_done(&bench.up().await);
    let (id, life) = (bench.life().await, bench.another());
    let earlier = &life.incarnation;
    bench.write(KUBECONFIG_KEY, &life.marked(&bench.spec.name, &Secret::new("torn"))).await;
    bench.write(TALOSCONFIG_KEY, &life.marked(&red(), &Secret::new("theirs"))).await;
    let (plan, report) = bench.run(Direction::Down).await;
    assert_done(&report);
    let place = bench.spec.secrets.infisical().unwrap();
    assert_eq!(
        plan.step(&secrets_escrow()).unwrap().reason,
        format!(
            "KUBECONFIG_CONTENT of the life {earlier}, TALOS_SECRETS_BUNDLE of the life {id} in {place}"
        )
    );
    assert_eq!(bench.entries(), [TALOSCONFIG_KEY]);
}

#[tokio::test(start_paused = true)]
async fn entries_that_are_to_be_kept_stay_and_the_next_birth_overwrites_them() {
    let mut bench = Bench::new(9);
    let mut spec = Spec::clone(&bench.spec);
    spec.secrets.escrow.after_down = EscrowAfterDown::Keep;
    bench.spec = Arc::new(spec);
    assert_done(&bench.up().await);
    let first = bench.life().await;
    assert_done(&bench.run(Direction::Down).await.1);
    assert_eq!((bench.entries(), bench.life().await), (vec![BUNDLE_KEY], first.clone()));
    assert_done(&bench.up().await);
    assert_ne!(bench.life().await, first);
}

#[tokio::test(start_paused = true)]
async fn an_infisical_that_may_only_be_read_needs_a_file_and_says_so() {
    let mut bench = Bench::new(10);
    bench.host.cause(InfisicalTrouble::ReadOnly);
    let report = bench.up().await;
    let failure = &report.failures[&secrets_escrow()];
    assert_eq!(failure.class, Class::Denied, "{failure:?}");
    let hint = failure.hint.as_ref().unwrap();
    assert!(hint.contains("escrow { file = \"blue.escrow.enc.yaml\" }"), "{hint}");
    assert!(bench.inventory().proxmox.guests.is_empty(), "no machine without a place");
    // As it says.
    let mut spec = Spec::clone(&bench.spec);
    let (file, recipients) = ("blue.escrow.enc.yaml".to_owned(), Vec::new());
    spec.secrets.escrow.place = EscrowPlace::File(EscrowFile { file, recipients });
    bench.spec = Arc::new(spec);
    let mut access = Access::to_infisical(bench.credentials());
    access.age = Arc::new(castle_sops::Identities::of_seed(&[7; 32]));
    bench.access = Some(access);
    assert_done(&bench.up().await);
    assert_eq!(bench.entries(), Vec::<&str>::new());
}
