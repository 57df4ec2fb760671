//! A castle of machines that stand already: it rises, is found standing, is given back, and never takes another's.

use castle_model::spec::{Body, MachinesSpec, PlatformSpec, StandingSpec};
use castle_platforms::escrow::BUNDLE_KEY;
use castle_rehearsal::trouble::TalosTrouble;

use super::*;

/// The example's nodes, as machines that somebody has set up.
pub(super) fn standing(control_planes: usize, workers: usize) -> Spec {
    let mut spec = sized(control_planes, workers);
    spec.platform = PlatformSpec::Machines(MachinesSpec {
        installer: "metal".to_owned(),
        install_disk: "/dev/sda".to_owned(),
        link: "eth0".to_owned(),
        extensions: spec.platform.extensions().to_vec(),
    });
    for node in &mut spec.nodes {
        let data_disk = node.has_data_disk();
        node.body = Body::Standing(StandingSpec { uuid: None, data_disk });
    }
    spec
}

impl Rehearsal {
    /// How every machine is.
    fn machines(&self) -> Vec<String> {
        self.host.read(|world| world.talos.inventory().into_values().collect())
    }
}

fn done(report: &Report) {
    assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
}

#[test]
fn machines_rise_stand_are_given_back_and_rise_again() {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let mut rehearsal = Rehearsal::open(standing(3, 2), 7);
        done(&rehearsal.up().await);
        let changes = rehearsal.changes();
        done(&rehearsal.up().await);
        assert_eq!(rehearsal.changes(), changes, "a castle that stands is only looked at");
        // The state folder is lost: the escrow and the machines themselves tell.
        rehearsal.journals = Journals::in_memory().unwrap();
        let posted = 1;
        done(&rehearsal.up().await);
        assert!(rehearsal.changes() <= changes + posted, "only the factory was told again");
        done(&rehearsal.down().await);
        let machines = rehearsal.machines();
        assert_eq!(machines.len(), 5);
        assert!(machines.iter().all(|state| state.ends_with("(maintenance)")), "{machines:?}");
        let before = rehearsal.changes();
        done(&rehearsal.down().await);
        assert_eq!(rehearsal.changes(), before, "there is nothing left to take down");
        done(&rehearsal.up().await);
    });
}

#[test]
fn a_machine_that_cannot_be_reached_is_left_over_with_the_keys_that_open_it() {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let mut rehearsal = Rehearsal::open(standing(1, 2), 3);
        done(&rehearsal.up().await);
        rehearsal.host.cause(TalosTrouble::Dead(3));
        let report = rehearsal.down().await;
        assert_eq!(report.outcome, RunOutcome::Failed);
        let (step, failure) = report.failures.first_key_value().unwrap();
        assert_eq!(step.to_string(), "platform/machine/worker-02", "{:#?}", report.failures);
        assert!(failure.hint.as_ref().unwrap().contains("wipe its disk by hand"), "{failure:?}");
        assert!(report.not_run.contains_key(&castle_platforms::ids::secrets_escrow()));
    });
}

#[test]
fn machines_whose_keys_are_lost_are_not_called_gone() {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let mut rehearsal = Rehearsal::open(standing(1, 1), 3);
        done(&rehearsal.up().await);
        let vault = secrets::Vault::new(
            &rehearsal.spec,
            &rehearsal.host.world(),
            Access::to_infisical(rehearsal.identity()),
        );
        vault.sources().unwrap().escrow.0.remove(&[BUNDLE_KEY]).await.unwrap();
        let before = rehearsal.host.mutations().get("talos").copied();
        let report = rehearsal.up().await;
        let failure = &report.failures[&castle_platforms::ids::secrets_escrow()];
        assert!(failure.why.contains("no Talos secrets are kept"), "{failure:?}");
        let report = rehearsal.down().await;
        assert_eq!(report.outcome, RunOutcome::Failed);
        let failed: Vec<String> = report.failures.keys().map(ToString::to_string).collect();
        assert_eq!(failed[..1], ["platform/machine/worker-01"], "{:#?}", report.failures);
        let (_, failure) = report.failures.first_key_value().unwrap();
        assert!(failure.why.contains("are kept no more"), "{failure:?}");
        assert_eq!(rehearsal.host.mutations().get("talos").copied(), before);
    });
}

#[test]
fn machines_of_somebody_else_are_never_touched() {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let spec = standing(1, 1);
        let theirs = spec.nodes[1].address;
        let mut rehearsal = Rehearsal::open(spec, 4);
        rehearsal.host.cause(TalosTrouble::Foreign(theirs));
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Failed);
        let failure = &report.failures[&castle_platforms::ids::secrets_escrow()];
        assert!(failure.why.contains("worker-01 at"), "{failure:?}");
        assert_eq!(
            rehearsal.host.mutations().get("talos"),
            None,
            "nothing was sent to any machine"
        );
    });
}

#[test]
fn another_machine_than_the_castle_file_names_is_found_before_anything_is_made() {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let mut rehearsal = Rehearsal::open(standing(1, 1), 5);
        let mut spec = Spec::clone(&rehearsal.spec);
        spec.nodes[0].body = Body::Standing(StandingSpec {
            uuid: Some("00000000-1111-2222-3333-444444444444".to_owned()),
            data_disk: false,
        });
        rehearsal.spec = Arc::new(spec);
        let report = rehearsal.up().await;
        let failure = &report.failures[&StepId::new("platform", "preflight")];
        assert!(failure.why.contains("the castle file names 00000000-1111"), "{failure:?}");
        assert_eq!(rehearsal.changes(), 0);
    });
}
