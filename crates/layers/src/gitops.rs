//! The gitops layer: Flux, the repository it follows, the handover, and what Flux builds from there.

use std::sync::Arc;

use castle_engine::Graph;
use castle_model::spec::GitCredentials;
use castle_model::{Spec, StepDecl, StepId};
use castle_platforms::cluster::Cluster;
use castle_platforms::ids;
use castle_wire::World;
use serde_json::Value;

use crate::engine;
use crate::manifest::Running;
use crate::overlay::{Adjustment, add_flag, containers, patches};
use crate::release::{Release, step};

mod contents;
mod convergence;
mod handover;
mod note;
mod owners;
mod repository;
mod revision;
mod source;
mod token;
mod units;
mod watchdog;

/// The namespace that the release brings, and the name of everything that ties Flux to the repository.
pub(crate) const NAMESPACE: &str = "flux-system";

const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";
const HELM: &str = "helm.toolkit.fluxcd.io/v2";
/// How often Flux looks whether what a Kustomization depends on is ready; its default of 30 s costs 15 s a level.
const REQUEUE: &str = "--requeue-dependency=5s";

pub(crate) const RELEASE: Release = Release {
    layer: "gitops",
    component: "flux",
    proves: "what Flux brings is applied, and its kinds are served",
    overlay,
    makes: &[],
    yields: true,
};

/// The step that installs Flux.
#[must_use]
pub fn flux_id() -> StepId {
    StepId::new("gitops", "flux")
}

/// The step that sees Flux run.
#[must_use]
pub fn controllers_id() -> StepId {
    StepId::new("gitops", "controllers")
}

/// The step that gives Flux the repository's credentials.
#[must_use]
pub fn token_id() -> StepId {
    StepId::new("gitops", "token")
}

/// The step that ties Flux to the repository.
#[must_use]
pub fn source_id() -> StepId {
    StepId::new("gitops", "source")
}

/// The step that hands the cluster over to Flux.
#[must_use]
pub fn handover_id() -> StepId {
    StepId::new("gitops", "handover")
}

/// The step that waits for what Flux builds.
#[must_use]
pub fn convergence_id() -> StepId {
    StepId::new("gitops", "convergence")
}

/// The steps of this layer; none if it is switched off.
#[must_use]
pub fn declare(spec: &Spec) -> Vec<StepDecl> {
    if !spec.gitops.enabled {
        return Vec::new();
    }
    let gitops = &spec.gitops;
    let mut token_needs = vec![flux_id(), ids::secrets_read()];
    if through_engine(spec) {
        token_needs.push(engine::store_id());
    }
    let within = "the VMs";
    // What fetches the repository needs the kinds of Flux and the token; that all of Flux runs is proven meanwhile.
    let mut source_needs = vec![flux_id(), ids::secrets_read()];
    let token = gitops.token.as_ref().map(|token| {
        source_needs.push(token_id());
        StepDecl::new(
            token_id(),
            format!("{} for the repository", token.0),
            "source",
            token::PROVES,
        )
        .needs(token_needs)
        .weight(3_000)
        .lives_on([ids::bootstrap()])
        .disturbed_by([ids::nodes()])
        .contained(within)
    });
    let mut steps = vec![
        StepDecl::new(
            ids::repository(),
            format!("what {} holds", gitops.url),
            "repository",
            repository::PROVES,
        )
        .needs([ids::secrets_read()])
        .weight(500)
        .only("it only looks"),
        StepDecl::new(flux_id(), "Flux", "flux", RELEASE.proves)
            .set()
            .needs([ids::access()])
            .weight(1_000)
            .lives_on([ids::bootstrap()])
            .disturbed_by([ids::nodes()])
            .contained(within)
            .notes(RELEASE.notes(spec)),
        StepDecl::new(controllers_id(), "Flux' controllers", "flux", "Flux' controllers run")
            .needs([flux_id()])
            .weight(15_000)
            .lives_on([ids::bootstrap()])
            .disturbed_by([ids::nodes()])
            .only("it only proves"),
    ];
    steps.extend(token);
    steps.extend([
        StepDecl::new(
            source_id(),
            format!("{} at {}", gitops.url, gitops.branch),
            "source",
            source::PROVES,
        )
        .needs(source_needs)
        .weight(6_000)
        .lives_on([ids::bootstrap()])
        .disturbed_by([ids::nodes()])
        .contained(within),
        StepDecl::new(
            handover_id(),
            format!("handover of {}", gitops.path),
            "handover",
            handover::PROVES,
        )
        .needs([source_id(), controllers_id(), ids::nodes()])
        .weight(6_000)
        .lives_on([ids::bootstrap()])
        .disturbed_by([ids::nodes()])
        .contained(within),
        StepDecl::new(convergence_id(), "what Flux builds", "convergence", convergence::PROVES)
            .needs([handover_id()])
            .weight(40_000)
            .lives_on([ids::bootstrap()])
            .disturbed_by([ids::nodes()])
            .only("it only proves"),
    ]);
    steps
}

/// Adds the look at the repository alone, which the steps that make machines wait for.
pub(crate) fn build_repository(graph: &mut Graph, spec: &Arc<Spec>, world: &World) {
    let cluster = Cluster::new(spec, world);
    for decl in declare(spec).into_iter().filter(|decl| decl.id == ids::repository()) {
        graph.add(decl, repository::Repository(cluster.clone()));
    }
}

/// Adds the steps of this layer.
pub fn build(graph: &mut Graph, spec: &Arc<Spec>, world: &World) {
    let cluster = Cluster::new(spec, world);
    build_repository(graph, spec, world);
    for decl in declare(spec).into_iter().filter(|decl| decl.id != ids::repository()) {
        if decl.id == flux_id() {
            graph.add(decl, step(&RELEASE, &cluster).applied());
        } else if decl.id == controllers_id() {
            graph.add(decl, Running(step(&RELEASE, &cluster)));
        } else if decl.id == token_id() {
            graph.add(decl, token::Token(cluster.clone()));
        } else if decl.id == source_id() {
            graph.add(decl, source::Source(cluster.clone()));
        } else if decl.id == handover_id() {
            graph.add(decl, handover::Handover(cluster.clone()));
        } else {
            graph.add(decl, convergence::Convergence(cluster.clone()));
        }
    }
}

/// Whether the repository's token comes into the cluster through the secret store.
fn through_engine(spec: &Spec) -> bool {
    let gitops = &spec.gitops;
    gitops.credentials == GitCredentials::Engine
        && gitops.token.is_some()
        && engine::has_store(spec)
}

/// Flux looks at dependencies often enough, and the castle file's patches.
fn overlay(spec: &Spec) -> Vec<Adjustment> {
    let what = format!("Flux looks every 5 s whether what it waits for is ready ({REQUEUE})");
    let requeue = |object: &mut Value| {
        let Some(container) = containers(object).first_mut() else { return false };
        add_flag(container, REQUEUE);
        true
    };
    let layer = "gitops \"flux\"";
    let requeue = Adjustment::object(layer, "Deployment", "kustomize-controller", what, requeue);
    [requeue].into_iter().chain(patches(&spec.gitops.patches)).collect()
}
