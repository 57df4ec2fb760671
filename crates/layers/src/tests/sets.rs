//! A set that changes from run to run: what is no longer wanted goes, what others use or own is named and stays.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Step};
use castle_kubernetes::manifest::parse;
use castle_kubernetes::{Mark, Mode};
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::spec::{ExtraLayer, ObjectPatch, UrlManifest};
use castle_model::{Change, Class, EventKind, Failure, Observed, Spec, StepDecl, StepId, Verb};
use castle_platforms::cluster::Cluster;
use castle_platforms::ids;
use castle_rehearsal::host::runtime;
use castle_rehearsal::trouble::{Download, SourcesTrouble};
use tokio::time::timeout;

use super::{Rehearsal, sized};
use crate::secrets::source::Access;
use crate::sets::manifests_id;

const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: garden}\n---\n";

fn config_map(name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: garden}}\ndata: {{a: \"{value}\"}}\n---\n"
    )
}

/// A castle of one machine, without the built-in layers, and with these layers of its own.
fn castle(layers: &[(&str, String)]) -> Spec {
    let mut spec = sized(1, 0);
    spec.engine.enabled = false;
    spec.networking.enabled = false;
    spec.storage.enabled = false;
    spec.gitops.enabled = false;
    let mut after = Vec::new();
    for (name, text) in layers {
        spec.layers.push(ExtraLayer {
            name: name.parse().unwrap(),
            after: std::mem::replace(&mut after, vec![name.parse().unwrap()]),
            manifests: [(format!("{name}.yaml"), text.clone())].into(),
            url: None,
        });
    }
    spec
}

impl Rehearsal {
    /// Raises the castle with other layers; what was removed, and the notices.
    async fn changed_to(&mut self, layers: &[(&str, String)]) -> (Vec<String>, Vec<String>) {
        let mut spec = (*self.spec).clone();
        spec.layers = castle(layers).layers;
        self.spec = Arc::new(spec);
        let (requests, events) = (self.host.requests().len(), self.events.len());
        let report = self.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
        let removed = self.host.requests()[requests..]
            .iter()
            .filter(|request| request.method == "DELETE")
            .map(|request| request.path.clone())
            .collect();
        let notices = self.events[events..].iter().filter_map(|event| match &event.kind {
            EventKind::Notice { text, .. } => Some(text.clone()),
            _ => None,
        });
        (removed, notices.collect())
    }
}

#[test]
fn what_a_set_no_longer_has_is_removed_and_a_namespace_in_use_is_kept() {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let whole = [NAMESPACE, &config_map("a", "1"), &config_map("b", "1")].concat();
        let guest = ("guest", config_map("guest", "1"));
        let layers = [("garden", whole), guest.clone()];
        let mut rehearsal = Rehearsal::open(castle(&layers), 3);
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);

        let less = [NAMESPACE, &config_map("a", "2")].concat();
        let (removed, _) = rehearsal.changed_to(&[("garden", less.clone()), guest.clone()]).await;
        assert_eq!(removed, ["/api/v1/namespaces/garden/configmaps/b"]);
        let before = rehearsal.changes();
        let (removed, _) = rehearsal.changed_to(&[("garden", less), guest.clone()]).await;
        assert_eq!((removed.len(), rehearsal.changes()), (0, before), "once is enough");

        // The guest lives in the garden's namespace: it stays with all that is in it, and that is said.
        let elsewhere = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: default}\n";
        let (removed, notices) =
            rehearsal.changed_to(&[("garden", elsewhere.to_owned()), guest]).await;
        assert_eq!(removed, ["/api/v1/namespaces/garden/configmaps/a"]);
        assert!(
            notices.iter().any(|text| text
                == "Namespace garden is no longer wanted but stays: 1 of others: ConfigMap garden/guest"),
            "{notices:#?}"
        );
        // It is told as long as it is so, and goes once the guest has gone.
        let (garden, before) = (("garden", elsewhere.to_owned()), rehearsal.changes());
        let guest = ("guest", config_map("guest", "1"));
        let (removed, again) = rehearsal.changed_to(&[garden.clone(), guest]).await;
        assert_eq!((removed, again, rehearsal.changes()), (Vec::new(), notices, before));
        let guest = ("guest", elsewhere.replace("name: x", "name: y"));
        let (removed, _) = rehearsal.changed_to(&[garden.clone(), guest.clone()]).await;
        assert_eq!(removed, ["/api/v1/namespaces/garden/configmaps/guest"]);
        let (removed, notices) = rehearsal.changed_to(&[garden, guest]).await;
        assert_eq!((removed, notices), (vec!["/api/v1/namespaces/garden".to_owned()], Vec::new()));
    });
}

#[test]
fn a_layer_that_the_castle_file_no_longer_has_is_named_and_left() {
    runtime().unwrap().block_on(async {
        let garden = ("garden", [NAMESPACE, &config_map("a", "1")].concat());
        let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: default}\n";
        let shed = ("shed", other.to_owned());
        let mut rehearsal = Rehearsal::open(castle(&[garden.clone(), shed.clone()]), 3);
        let (removed, notices) = rehearsal.changed_to(&[garden, shed.clone()]).await;
        assert_eq!((removed.len(), notices), (0, Vec::new()));
        let (removed, notices) = rehearsal.changed_to(&[shed]).await;
        assert_eq!(removed, Vec::<String>::new());
        assert_eq!(
            notices,
            ["the castle file has no layer garden any more, and 2 of its objects may still be in the cluster: put it back, or remove what ConfigMap kube-system/castle-ledger-garden lists"]
        );
    });
}

#[test]
fn an_object_of_two_layers_is_refused_and_both_are_named() {
    runtime().unwrap().block_on(async {
        let garden = [NAMESPACE, &config_map("a", "1")].concat();
        let shed = [NAMESPACE, &config_map("b", "1")].concat();
        let mut rehearsal = Rehearsal::open(castle(&[("garden", garden), ("shed", shed)]), 3);
        let report = rehearsal.up().await;
        let failure = &report.failures[&manifests_id()];
        assert_eq!((failure.class, report.failures.len()), (Class::Invalid, 1));
        assert_eq!(failure.why, "Namespace garden: the layer garden has it too");
        assert_eq!(rehearsal.host.read(|world| world.proxmox.inventory().guests.len()), 0);
    });
}

#[test]
fn what_does_not_fit_is_known_before_anything_is_built_and_all_of_it() {
    runtime().unwrap().block_on(async {
        let mut spec = sized(1, 0);
        spec.networking.patches.push(ObjectPatch {
            kind: "Deployment".to_owned(),
            name: Some("speaker".to_owned()),
            origin: "castle.hcl:40".to_owned(),
            text: "spec: {replicas: 2}".to_owned(),
        });
        spec.layers.push(ExtraLayer {
            name: "metrics".parse().unwrap(),
            after: Vec::new(),
            manifests: [].into(),
            url: Some(UrlManifest {
                url: "https://example.org/metrics.yaml".to_owned(),
                sha256: "00".repeat(32),
            }),
        });
        let mut rehearsal = Rehearsal::open(spec, 3);
        let report = rehearsal.up().await;
        let failure = &report.failures[&manifests_id()];
        assert_eq!((failure.class, report.failures.len()), (Class::Invalid, 1));
        let told: Vec<&str> =
            failure.findings.iter().map(|finding| finding.place.as_str()).collect();
        assert_eq!(told, ["adjust metallb 0.15.3", "read the manifests of metrics"]);
        let patch =
            "the patch in castle.hcl:40 is for Deployment speaker, and the release has none";
        assert_eq!(failure.findings[0].why, patch);
        assert!(failure.findings[1].why.contains("pinned is 0000"), "{}", failure.findings[1].why);
        // The image of Talos is every castle's: its download does not wait.
        let made = rehearsal.host.read(|world| world.proxmox.inventory());
        assert_eq!((made.guests.len(), made.volumes.len()), (0, 0), "{made:?}");
        assert!(!rehearsal.host.mutations().contains_key("infisical"));
    });
}

#[test]
fn a_manifest_that_can_not_be_had_any_more_keeps_only_its_layer() {
    runtime().unwrap().block_on(async {
        let mut spec = sized(1, 1);
        spec.engine.enabled = false;
        spec.storage.enabled = false;
        spec.gitops.enabled = false;
        spec.layers.push(ExtraLayer {
            name: "metrics".parse().unwrap(),
            after: Vec::new(),
            manifests: [("a.yaml".to_owned(), [NAMESPACE, &config_map("a", "1")].concat())].into(),
            url: None,
        });
        let mut rehearsal = Rehearsal::open(spec, 3);
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
        let (done, address) = (report.done, "metallb".to_owned());
        rehearsal.host.cause(SourcesTrouble { address, how: Download::Missing });
        let report = rehearsal.up().await;
        let metallb = crate::networking::metallb_id();
        assert_eq!(
            report.failures.keys().collect::<Vec<_>>(),
            [&metallb],
            "{:#?}",
            report.failures
        );
        assert_eq!(report.done, done - 2, "but for MetalLB and its pool, all was looked at");
    });
}

#[test]
fn what_still_lives_in_a_namespace_keeps_it_though_the_set_no_longer_names_it() {
    runtime().unwrap().block_on(async {
        let mut rehearsal =
            Rehearsal::open(castle(&[("garden", [NAMESPACE, &config_map("a", "1")].concat())]), 3);
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
        let (removed, notices) = rehearsal.changed_to(&[("garden", config_map("a", "1"))]).await;
        assert_eq!(removed, Vec::<String>::new());
        assert_eq!(
            notices,
            ["Namespace garden is no longer wanted but stays: 1 that are wanted need it: ConfigMap garden/a"]
        );
    });
}

#[test]
fn what_flux_applies_by_now_is_not_removed_though_the_layer_no_longer_has_it() {
    runtime().unwrap().block_on(async {
        let whole = [NAMESPACE, &config_map("a", "1"), &config_map("b", "1")].concat();
        let mut spec = sized(1, 1);
        spec.layers = castle(&[("garden", whole)]).layers;
        let mut rehearsal = Rehearsal::open(spec, 3);
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
        let file = format!("{}/garden.yaml", rehearsal.spec.gitops.path);
        rehearsal.push(&[(&file, Some(&config_map("a", "2")))]);
        timeout(Duration::from_mins(5), pending::<()>()).await.ok();
        let elsewhere = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: default}\n";
        let (removed, notices) = rehearsal.changed_to(&[("garden", elsewhere.to_owned())]).await;
        assert_eq!(removed, ["/api/v1/namespaces/garden/configmaps/b"]);
        let stays = "is no longer wanted but stays";
        assert!(notices[0].starts_with(&format!("ConfigMap garden/a {stays}: it belongs to Flux (Kustomization flux-system/flux-system)")), "{notices:#?}");
        assert!(notices.contains(&format!("Namespace garden {stays}: 1 of others: ConfigMap garden/a")), "{notices:#?}");
    });
}

#[test]
fn an_empty_namespace_goes_and_so_does_a_definition_that_nobody_uses() {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
            metadata: {name: gauges.example.org}\nspec:\n  group: example.org\n  scope: Namespaced\n  \
            names: {plural: gauges, kind: Gauge}\n  versions: [{name: v1, served: true, storage: true}]\n---\n";
        let gauge = "apiVersion: example.org/v1\nkind: Gauge\nmetadata: {name: needle, namespace: garden}\n---\n";
        let stays = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: default}\n";
        let whole = [NAMESPACE, definition, gauge, stays].concat();
        let mut rehearsal = Rehearsal::open(castle(&[("garden", whole)]), 4);
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
        let (removed, notices) = rehearsal.changed_to(&[("garden", stays.to_owned())]).await;
        assert_eq!(
            removed,
            [
                "/apis/example.org/v1/namespaces/garden/gauges/needle",
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gauges.example.org",
                "/api/v1/namespaces/garden",
            ],
            "in the reverse order of ranks"
        );
        assert_eq!(notices, Vec::<String>::new());
    });
}

#[test]
fn a_set_with_an_object_in_the_wrong_place_or_of_an_unknown_kind_is_refused_before_anything_is_applied()
 {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let wrong = [NAMESPACE, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
            metadata: {name: gauges.example.org}\nspec:\n  group: example.org\n  scope: Namespaced\n  \
            names: {plural: gauges, kind: Gauge}\n  versions: [{name: v1, served: true, storage: true}]\n---\n\
            apiVersion: example.org/v1\nkind: Gauge\nmetadata: {name: needle}\n"].concat();
        let unknown = "apiVersion: nowhere.org/v1\nkind: Thing\nmetadata: {name: x, namespace: default}\n";
        let mut rehearsal =
            Rehearsal::open(castle(&[("wrong", wrong), ("unknown", unknown.to_owned())]), 5);
        rehearsal.spec = {
            let mut spec = (*rehearsal.spec).clone();
            spec.layers[1].after.clear();
            Arc::new(spec)
        };
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Failed);
        let told: Vec<String> = report
            .failures
            .iter()
            .map(|(step, failure)| format!("{step}: {} [{}]", failure.why, failure.hint.as_deref().unwrap_or("")))
            .collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
        unknown/manifests: no matches for kind "Thing" in version "nowhere.org/v1" [no CustomResourceDefinition of Thing is in this layer or in the cluster: add it, or name the layer that brings it in `after`]
        wrong/manifests: Gauge needle: it names no namespace, but every Gauge lives in one [correct `metadata.namespace` in the manifest]
        "#);
        let made: Vec<String> = rehearsal
            .host
            .requests()
            .iter()
            .filter(|request| request.counted && request.path.contains("garden"))
            .map(|request| request.path.clone())
            .collect();
        assert_eq!(made, Vec::<String>::new());
    });
}

/// Another castle that has been in this cluster, and left some objects.
struct Neighbour(Arc<Cluster>, String);

#[async_trait]
impl Step for Neighbour {
    async fn observe(&self, _cx: &Context) -> Result<Observed, Failure> {
        Ok(Observed::Absent)
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let mark = Mark { castle: "green".parse().unwrap(), ..self.0.mark(cx)? };
        for mut object in parse("green", &self.1).unwrap() {
            mark.put_on(&mut object);
            self.0.client(cx)?.apply(&object, Mode::Real).await?;
        }
        Ok(Acted::of(Change::Created))
    }

    async fn gate(&self, _cx: &Context) -> Result<String, Failure> {
        Ok("they are there".to_owned())
    }
}

#[test]
fn a_set_of_which_somebody_else_owns_a_part_is_refused_whole_and_every_owner_is_named() {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let theirs =
            [NAMESPACE, &config_map("a", "0"), &config_map("b", "0"), &config_map("c", "0")]
                .concat();
        let ours = [&*theirs, &config_map("d", "1")].concat();
        let mut rehearsal = Rehearsal::open(castle(&[]), 6);
        let (spec, world) = (rehearsal.spec.clone(), rehearsal.host.world());
        let mut graph = crate::build(&spec, &world, Access::to_infisical(rehearsal.identity()));
        let decl = StepDecl::new(StepId::new("platform", "green"), "a neighbour", "nodes", "it is done");
        graph.add(decl.needs([ids::access()]), Neighbour(Cluster::new(&spec, &world), theirs));
        let report = rehearsal.run_by(graph, Direction::Up).await;
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);

        let mut spec = (*rehearsal.spec).clone();
        spec.layers = castle(&[("garden", ours)]).layers;
        rehearsal.spec = Arc::new(spec);
        let before = rehearsal.changes();
        let report = rehearsal.up().await;
        let failure = &report.failures[&StepId::new("garden", "manifests")];
        assert_eq!(failure.class, Class::Conflict);
        insta::assert_snapshot!(failure.why, @r#"what is there is not ours: Namespace garden (castle green); ConfigMap garden/a (castle green); ConfigMap garden/b (castle green) and 1 more. One of the two has to let go: leave the layer out (`enabled = false`), leave it to Flux (`owner = "flux"`), or remove the objects there"#);
        assert_eq!(rehearsal.changes(), before, "nothing was written");
    });
}
