//! Machines that lose their power in the middle of a run: nothing on them works, and the report names them.

use castle_rehearsal::fault::{Names, Rule};

use super::*;

#[test]
fn workers_without_power_are_named_as_the_likely_cause() {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let mut rehearsal = Rehearsal::open(sized(1, 2), 1);
        let names = Names::of(&rehearsal.spec);
        let rules =
            ["proxmox worker-01: stopped during nodes", "talos worker-02: dead during nodes"];
        rehearsal.host.arm(rules.iter().map(|text| Rule::parse(text, &names).unwrap()).collect());
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Failed);
        let failure = &report.failures[&networking::metallb_id()];
        let hint = failure.hint.as_deref().unwrap_or_default();
        let likely =
            "worker-01, worker-02 are NotReady, which is the likely cause; only if it is not: ";
        assert!(hint.starts_with(likely), "{failure:#?}");
        // All of it would have run there.
        let left: Vec<&StepId> = rehearsal
            .events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::StepDone { step, .. } => Some(step),
                _ => None,
            })
            .filter(|step| ["engine", "networking", "storage"].contains(&step.layer()))
            .collect();
        assert_eq!(left, [] as [&StepId; 0]);
    });
}
