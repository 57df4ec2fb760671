//! The repository before anything is built, the handover, and what Flux makes of it afterwards.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use castle_model::event::RunOutcome;
use castle_model::spec::GitCredentials;
use castle_model::{Class, EventKind, Failure, StepId};
use castle_rehearsal::host::runtime;
use castle_rehearsal::trouble::{FluxTrouble, GitTrouble};
use tokio::time::timeout;

use super::{Rehearsal, sized};

const REPOSITORY: &str = "gitops/repository";

impl Rehearsal {
    /// Somebody pushes; a file without a text is removed.
    pub(super) fn push(&self, files: &[(&str, Option<&str>)]) {
        let files: BTreeMap<String, Option<String>> = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), text.map(str::to_owned)))
            .collect();
        let (url, branch) = (self.spec.gitops.url.clone(), self.spec.gitops.branch.clone());
        self.host.cause(GitTrouble::Push { url, branch, files });
    }

    /// How many VMs were made.
    fn made(&self) -> usize {
        let vm = |path: &str| path.ends_with("/qemu");
        self.host.requests().iter().filter(|r| r.method == "POST" && vm(&r.path)).count()
    }

    fn handovers(&self) -> usize {
        self.events.iter().filter(|e| matches!(e.kind, EventKind::Handover { .. })).count()
    }

    /// What was told, as far as it holds these words.
    fn told(&self, words: &str) -> Vec<String> {
        let notice = |kind: &EventKind| match kind {
            EventKind::Notice { text, .. } if text.contains(words) => Some(text.clone()),
            _ => None,
        };
        self.events.iter().filter_map(|event| notice(&event.kind)).collect()
    }

    /// Runs up, which fails at one step only, and gives why.
    async fn fails_at(&mut self, step: &str) -> Failure {
        let report = self.up().await;
        assert_eq!(report.outcome, RunOutcome::Failed);
        let failed: Vec<&str> = report.failures.keys().map(StepId::as_str).collect();
        assert_eq!(failed, [step], "{:#?}", report.failures);
        report.failures.into_values().next().unwrap()
    }

    async fn stands(&mut self) {
        let report = self.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
    }
}

const METALLB: &str = "\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: metallb, namespace: metallb-system}
spec:
  interval: 15m
  chart: {spec: {chart: metallb, sourceRef: {kind: HelmRepository, name: metallb}}}
";

#[test]
fn what_is_wrong_with_the_repository_is_known_before_anything_is_built() {
    type Change = fn(&mut Rehearsal);
    let cases: [(&str, Change, Class, &str); 6] = [
        (
            "a branch that is not there",
            |r| Arc::make_mut(&mut r.spec).gitops.branch = "mian".into(),
            Class::Gone,
            "has no branch `mian`; it has main",
        ),
        (
            "a path that is not there",
            |r| Arc::make_mut(&mut r.spec).gitops.path = "clusters/grey".into(),
            Class::Gone,
            "there is no `clusters/grey`",
        ),
        (
            "a path that is a file",
            |r| {
                let spec = Arc::make_mut(&mut r.spec);
                spec.gitops.path = format!("{}/apps.yaml", spec.gitops.path);
            },
            Class::Invalid,
            "apps.yaml` is a file, not a directory",
        ),
        (
            "an empty repository",
            |r| {
                let (url, branch) = (r.spec.gitops.url.clone(), r.spec.gitops.branch.clone());
                r.host.cause(GitTrouble::Unbranch { url, branch });
            },
            Class::Gone,
            "is empty",
        ),
        (
            "a token without rights",
            |r| {
                let url = r.spec.gitops.url.clone();
                r.host.cause(GitTrouble::Token { url, token: "another".into() });
            },
            Class::Denied,
            "the token may not read the repository",
        ),
        (
            "a component with two owners",
            |r| r.push(&[("infrastructure/bridge/metallb.yaml", Some(METALLB))]),
            Class::Conflict,
            "two owners",
        ),
    ];
    for (case, change, class, why) in cases {
        runtime().unwrap().block_on(async {
            let mut rehearsal = Rehearsal::open(sized(1, 1), 2);
            change(&mut rehearsal);
            let failure = rehearsal.fails_at(REPOSITORY).await;
            assert_eq!(failure.class, class, "{case}: {failure}");
            assert!(failure.why.contains(why), "{case}: {}", failure.why);
            assert!(failure.hint.is_some() || !failure.findings.is_empty(), "{case}: no cure");
            assert_eq!(rehearsal.made(), 0, "{case}");
        });
    }
}

#[test]
fn two_owners_are_named_with_file_and_cure() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(sized(1, 1), 2);
        rehearsal.push(&[
            ("infrastructure/bridge/metallb.yaml", Some(METALLB)),
            ("infrastructure/bridge/broken.yaml", Some("kind: [\n")),
        ]);
        let failure = rehearsal.fails_at(REPOSITORY).await;
        let told: Vec<String> =
            failure.findings.iter().map(|f| format!("{}: {}; {}", f.place, f.why, f.cure)).collect();
        assert_eq!(told, [
            "infrastructure/bridge/metallb.yaml: HelmRelease metallb-system/metallb installs MetalLB, and so does castle; \
             set `owner = \"flux\"` in `networking \"metallb\"`, or take it out of the repository",
        ]);
    });
}

#[test]
fn a_git_host_that_is_away_is_waited_for_and_a_castle_that_stands_does_not_need_it() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(sized(1, 1), 2);
        rehearsal.host.cause(GitTrouble::Away(true));
        let failure = rehearsal.fails_at(REPOSITORY).await;
        assert_eq!((failure.class, rehearsal.made()), (Class::Transient, 0), "{failure}");
        rehearsal.host.cause(GitTrouble::Away(false));
        rehearsal.stands().await;
        rehearsal.host.cause(GitTrouble::Away(true));
        let before = rehearsal.changes();
        rehearsal.stands().await;
        assert_eq!(rehearsal.changes(), before);
        assert_eq!(rehearsal.told("is not looked into again").len(), 1);
    });
}

#[test]
fn the_handover_is_once_and_what_others_change_afterwards_is_told_and_left() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(sized(1, 1), 3);
        rehearsal.stands().await;
        assert_eq!(rehearsal.handovers(), 1);
        // What the castle file says is castle's to follow, without a second handover.
        let unit = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hue, namespace: flux-system}\n";
        rehearsal.push(&[("clusters/violet/hue.yaml", Some(unit))]);
        let first = std::mem::replace(
            &mut Arc::make_mut(&mut rehearsal.spec).gitops.path,
            "clusters/violet".into(),
        );
        rehearsal.stands().await;
        assert_eq!(rehearsal.handovers(), 1);
        assert_eq!(rehearsal.told("follows the castle file again").len(), 1);
        // The repository takes its own root in hand, as `flux bootstrap` writes it.
        let folder = rehearsal.spec.gitops.path.clone();
        let root = format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n\
             metadata: {{name: flux-system, namespace: flux-system}}\n\
             spec: {{interval: 1h, path: ./{folder}, prune: true, sourceRef: {{kind: GitRepository, name: flux-system}}}}\n"
        );
        rehearsal.push(&[(&format!("{folder}/flux-system.yaml"), Some(&root))]);
        timeout(Duration::from_mins(5), pending::<()>()).await.ok();
        let before = rehearsal.changes();
        rehearsal.stands().await;
        rehearsal.stands().await;
        assert_eq!(rehearsal.handovers(), 1, "it stands");
        assert_eq!(rehearsal.changes(), before, "castle only observes");
        assert!(!rehearsal.told("no longer as castle applied it (spec.interval").is_empty());
        // From now on the repository says where the root is: a castle file that says otherwise would be undone by Flux.
        Arc::make_mut(&mut rehearsal.spec).gitops.path = first;
        let failure = rehearsal.fails_at("gitops/handover").await;
        assert_eq!(failure.class, Class::Conflict);
        assert!(failure.why.contains("kustomize-controller"), "{failure}");
        assert!(failure.hint.unwrap().starts_with("the repository itself holds"));
    });
}

#[test]
fn a_broken_unit_keeps_the_handover_and_is_repaired_by_a_push() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(sized(1, 1), 3);
        Arc::make_mut(&mut rehearsal.spec).gitops.milestones = vec!["apps-static".into()];
        let (site, good) = ("infrastructure/configs/site.yaml", "\
apiVersion: v1
kind: ConfigMap
metadata: {name: site, namespace: blog}
");
        rehearsal.push(&[(site, Some("apiVersion: example.org/v1\nkind: Ghost\nmetadata: {name: g}\n"))]);
        let failure = rehearsal.fails_at("gitops/convergence").await;
        let evidence = failure.evidence.clone().unwrap();
        let cause = "3 of 7 are not ready: Kustomization flux-system/configs is not ready: ReconciliationFailed: \
             Ghost/g dry-run failed: no matches for kind \"Ghost\" in version \"example.org/v1\"; also apps-static";
        assert!(evidence.starts_with(cause), "{evidence}");
        assert!(evidence.contains("milestones: apps-static not reached"), "{evidence}");
        assert!(failure.hint.as_deref().unwrap().contains("the handover stands"), "{failure}");
        let units: Vec<&str> = failure.findings.iter().map(|f| f.place.as_str()).collect();
        let named = ["configs", "apps-static", "monitoring"];
        assert_eq!(units, named.map(|name| format!("Kustomization flux-system/{name}")));
        assert_eq!(rehearsal.handovers(), 1);
        let milestone = |r: &Rehearsal| {
            let named = |kind: &EventKind| {
                matches!(kind, EventKind::Milestone { name, .. } if name == "apps-static")
            };
            r.events.iter().filter(|event| named(&event.kind)).count()
        };
        assert_eq!(milestone(&rehearsal), 0);
        rehearsal.push(&[(site, Some(good))]);
        rehearsal.stands().await;
        assert_eq!((rehearsal.handovers(), milestone(&rehearsal)), (1, 1));
    });
}

#[test]
fn a_unit_that_missed_that_it_may_go_on_is_asked_for() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(sized(1, 1), 3);
        rehearsal.host.cause(FluxTrouble::Miss { unit: "bridge".into() });
        rehearsal.stands().await;
        let asked = rehearsal.told("Flux is asked to look again");
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert!(asked[0].starts_with("Kustomization flux-system/bridge"), "{asked:?}");
    });
}

#[test]
fn a_milestone_that_is_no_unit_is_told_when_all_is_ready() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(sized(1, 1), 3);
        Arc::make_mut(&mut rehearsal.spec).gitops.milestones = vec!["blog".into()];
        let failure = rehearsal.fails_at("gitops/convergence").await;
        assert_eq!(failure.class, Class::Invalid, "{failure}");
        assert_eq!(failure.what, "reach the milestone blog");
        assert_eq!(rehearsal.told("the milestone blog is no Kustomization").len(), 1);
        assert_eq!(rehearsal.handovers(), 1);
    });
}

#[test]
fn a_token_can_be_placed_without_the_engine() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(sized(1, 1), 3);
        Arc::make_mut(&mut rehearsal.spec).gitops.credentials = GitCredentials::Direct;
        rehearsal.stands().await;
        let through = |path: &str| path.ends_with("/externalsecrets/flux-system");
        let requests = rehearsal.host.requests();
        assert!(!requests.iter().any(|request| request.counted && through(&request.path)));
    });
}

#[test]
fn a_castle_that_stands_can_take_the_other_way_for_its_token_and_back() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(sized(1, 1), 3);
        rehearsal.stands().await;
        for way in [GitCredentials::Direct, GitCredentials::Engine, GitCredentials::Direct] {
            Arc::make_mut(&mut rehearsal.spec).gitops.credentials = way;
            rehearsal.stands().await;
            let before = rehearsal.changes();
            rehearsal.stands().await;
            assert_eq!(rehearsal.changes(), before, "{way:?}: once is enough");
        }
        assert_eq!(rehearsal.handovers(), 1);
    });
}

/// What `flux bootstrap` has written into a repository at the last birth of a castle.
const COMPONENTS: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: flux-system, labels: {app.kubernetes.io/part-of: flux, app.kubernetes.io/version: v2.0.0}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kustomize-controller, namespace: flux-system, labels: {app.kubernetes.io/version: v2.0.0}}
spec:
  replicas: 1
  selector: {matchLabels: {app: kustomize-controller}}
  template:
    metadata: {labels: {app: kustomize-controller}}
    spec:
      containers:
      - {name: manager, image: \"ghcr.io/fluxcd/kustomize-controller:v1.0.0\", args: [--log-level=info]}
";

#[test]
fn a_repository_that_installs_flux_itself_is_left_to_do_so() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(sized(1, 1), 3);
        let file = format!("{}/gotk-components.yaml", rehearsal.spec.gitops.path);
        rehearsal.push(&[(&file, Some(COMPONENTS))]);
        rehearsal.stands().await;
        timeout(Duration::from_mins(5), pending::<()>()).await.ok();
        let before = rehearsal.changes();
        rehearsal.stands().await;
        rehearsal.stands().await;
        assert_eq!(rehearsal.changes(), before, "castle only observes");
        assert_eq!(rehearsal.handovers(), 1);
        let told = rehearsal.told("the repository installs flux");
        assert!(!told.is_empty() && told.len() <= 2, "{told:?}");
    });
}
