//! Layers that Flux installs, versions that can not follow each other, and what the gates say they have proven.

use std::sync::Arc;

use castle_model::event::RunOutcome;
use castle_model::spec::{LayerOwner, ObjectPatch};
use castle_model::{Event, EventKind, Spec, StepId};
use castle_rehearsal::host::runtime;
use castle_rehearsal::trouble::KubernetesTrouble;

use super::{Rehearsal, sized};
use crate::{networking, storage};

impl Rehearsal {
    /// Goes on with another castle file.
    fn now(&mut self, change: impl FnOnce(&mut Spec)) {
        let mut spec = (*self.spec).clone();
        change(&mut spec);
        self.spec = Arc::new(spec);
    }

    /// What the last gate of a step said.
    fn proof(&self, step: &StepId) -> String {
        let proof = |event: &Event| match &event.kind {
            EventKind::StepDone { step: of, proof, .. } if of == step => Some(proof.clone()),
            _ => None,
        };
        self.events.iter().filter_map(proof).next_back().unwrap_or_default()
    }

    /// The changes to objects below a path since so many requests.
    fn changes_of(&self, part: &str, since: usize) -> Vec<String> {
        let requests = self.host.requests();
        let changes = requests[since..].iter().filter(|r| r.counted && r.path.contains(part));
        changes.map(|request| format!("{} {}", request.method, request.path)).collect()
    }
}

/// The releases of some charts, in a namespace that the repository makes.
fn releases(charts: &[&str]) -> String {
    let release = |chart: &&str| {
        format!(
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\n\
             metadata: {{name: {chart}, namespace: ingress}}\n\
             spec: {{chart: {{spec: {{chart: {chart}, sourceRef: {{kind: HelmRepository, name: {chart}}}}}}}}}\n---\n"
        )
    };
    charts.iter().map(release).collect()
}

#[test]
fn a_layer_that_flux_does_not_install_is_missed_after_the_handover_and_never_applied() {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let mut spec = sized(1, 1);
        spec.networking.owner = LayerOwner::Flux;
        let mut rehearsal = Rehearsal::open(spec, 7);
        // The repository says that it does; what a chart holds is not rehearsed.
        rehearsal.push(&[("infrastructure/bridge/lb.yaml", Some(&releases(&["metallb"])))]);
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Failed);
        let failed: Vec<&StepId> = report.failures.keys().collect();
        assert_eq!(failed, [&networking::metallb_id()], "{:#?}", report.failures);
        let failure = &report.failures[&networking::metallb_id()];
        assert_eq!(
            failure.evidence.as_deref(),
            Some("Flux has not made ipaddresspools.metallb.io yet"),
            "{failure:?}"
        );
        assert_eq!(rehearsal.changes_of("metallb", 0), Vec::<String>::new());
    });
}

#[test]
fn a_workload_that_is_late_is_told_with_the_pod_that_keeps_it_and_its_words() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(sized(1, 1), 7);
        let none = KubernetesTrouble::PullsLimited("quay.io".into(), 0, 86_400_000);
        rehearsal.host.cause(none);
        let report = rehearsal.up().await;
        let failure = &report.failures[&networking::metallb_id()];
        let told = failure.evidence.clone().unwrap_or_default();
        assert!(told.contains("; Pod metallb-system/controller-"), "{told}");
        assert!(told.contains("waits in container controller: ImagePullBackOff"), "{told}");
    });
}

#[test]
fn a_layer_that_is_there_is_only_looked_at_once_it_is_left_to_flux() {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let mut rehearsal = Rehearsal::open(sized(3, 2), 7);
        assert_eq!(rehearsal.up().await.outcome, RunOutcome::Done);
        assert_eq!(
            rehearsal.proof(&networking::pool_id()),
            "pool 192.168.1.230-192.168.1.245 accepted through cp-01, cp-02, cp-03 and read back; \
             a probe service got an address of it"
        );
        let longhorn = rehearsal.proof(&storage::longhorn_id());
        assert!(
            longhorn.ends_with("; iscsi-tools and util-linux-tools on worker-01, worker-02"),
            "{longhorn}"
        );
        let before = rehearsal.changes();
        rehearsal.now(|spec| {
            spec.networking.owner = LayerOwner::Flux;
            spec.storage.owner = LayerOwner::Flux;
        });
        let installed = releases(&["metallb", "longhorn"]);
        rehearsal.push(&[("infrastructure/bridge/layers.yaml", Some(&installed))]);
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
        assert_eq!(rehearsal.changes(), before, "castle only looks");
    });
}

#[test]
fn a_longhorn_that_is_too_old_stops_the_layer_before_its_first_write() {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let mut spec = sized(1, 1);
        spec.storage.patches = vec![ObjectPatch {
            kind: "DaemonSet".into(),
            name: Some("longhorn-manager".into()),
            origin: "castle.hcl:9".into(),
            text: "spec: {template: {spec: {containers: [{name: longhorn-manager, image: 'longhornio/longhorn-manager:v1.7.2'}]}}}".into(),
        }];
        let mut rehearsal = Rehearsal::open(spec, 7);
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
        rehearsal.now(|spec| spec.storage.patches.clear());
        let since = rehearsal.host.requests().len();
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Failed);
        let failure = &report.failures[&storage::longhorn_id()];
        assert!(failure.why.contains("1.7.2 → 1.8 → 1.9 → 1.10.0"), "{failure:?}");
        assert_eq!(rehearsal.changes_of("longhorn", since), Vec::<String>::new());
    });
}

#[test]
fn the_pool_waits_for_the_webhook_through_every_control_plane() {
    runtime().unwrap().block_on(async {
        let spec = sized(3, 1);
        let (second, end) = (spec.nodes[1].clone(), 200_000);
        let mut rehearsal = Rehearsal::open(spec, 5);
        // Two of three API servers reach it long before.
        rehearsal.host.cause(KubernetesTrouble::WebhooksCutOff(second.address, end));
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
        let requests = rehearsal.host.requests();
        let pools = requests.iter().filter(|request| request.path.contains("/ipaddresspools/"));
        let (stored, tried): (Vec<_>, Vec<_>) = pools.partition(|request| request.counted);
        assert!(
            tried.iter().any(|request| request.at < end && request.status == 201),
            "others accept it"
        );
        assert!(
            tried.iter().any(|request| request.at < end && request.status == 500),
            "and one can not"
        );
        assert!(!stored.is_empty() && stored.iter().all(|request| request.at >= end), "{stored:?}");
        let waits = rehearsal.events.iter().filter_map(|event| match &event.kind {
            EventKind::StepWaiting { step, reason } if *step == networking::pool_id() => {
                Some(reason.clone())
            }
            EventKind::StepRetrying { step, failure, .. } if *step == networking::pool_id() => {
                Some(failure.to_string())
            }
            _ => None,
        });
        let waits: Vec<String> = waits.collect();
        assert!(waits.iter().any(|reason| reason.contains("cp-02")), "{waits:#?}");
        let proof = rehearsal.proof(&networking::pool_id());
        assert!(proof.contains("accepted through cp-01, cp-02, cp-03"), "{proof}");
    });
}
