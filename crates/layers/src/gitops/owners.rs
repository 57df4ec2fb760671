//! Who installs what: a component of castle's own that the repository installs too would have two owners, and they fight.

use castle_kubernetes::Object;
use castle_model::spec::LayerOwner;
use castle_model::{Finding, Spec};
use serde_json::Value;

use super::NAMESPACE;
use super::contents::{Contents, Placed};

/// A component that castle installs, and what gives it away in a repository.
struct Component {
    /// The block of the castle file.
    block: &'static str,
    name: &'static str,
    /// Its chart, wherever that comes from.
    chart: &'static str,
    /// What stands in the names of its images, and in the address of its source code.
    origin: &'static str,
    /// The group of its definitions.
    group: &'static str,
}

const COMPONENTS: [Component; 3] = [
    Component {
        block: "engine \"external-secrets\"",
        name: "External Secrets",
        chart: "external-secrets",
        origin: "external-secrets/external-secrets",
        group: "external-secrets.io",
    },
    Component {
        block: "networking \"metallb\"",
        name: "MetalLB",
        chart: "metallb",
        origin: "metallb/",
        group: "metallb.io",
    },
    Component {
        block: "storage \"longhorn\"",
        name: "Longhorn",
        chart: "longhorn",
        origin: "longhorn",
        group: "longhorn.io",
    },
];

/// What is wrong with who owns what.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Claims {
    /// Components with two owners.
    pub(super) doubled: Vec<Finding>,
    /// Components that Flux is to install and nobody does.
    pub(super) orphaned: Vec<Finding>,
}

/// Compares what castle installs with what the repository does.
pub(super) fn claims(spec: &Spec, contents: &Contents) -> Claims {
    let owners = [
        (spec.engine.enabled, spec.engine.owner),
        (spec.networking.enabled, spec.networking.owner),
        (spec.storage.enabled, spec.storage.owner),
    ];
    let mut claims = Claims { doubled: ties(spec, contents), ..Claims::default() };
    for (component, (enabled, owner)) in COMPONENTS.iter().zip(owners) {
        let found = component.installed_by(contents);
        match (owner, found.is_empty()) {
            _ if !enabled => {}
            (LayerOwner::Castle, false) => {
                let cure = format!(
                    "set `owner = \"flux\"` in `{}`, or take it out of the repository",
                    component.block
                );
                claims.doubled.extend(found.into_iter().map(|(file, what)| {
                    let why = format!("{what} installs {}, and so does castle", component.name);
                    Finding::new(file, why, &cure)
                }));
            }
            (LayerOwner::Flux, true) => {
                let why = format!(
                    "Flux is to install {}, and nothing in the repository does",
                    component.name
                );
                let cure = "take `owner` out of the block, or push what installs it";
                claims.orphaned.push(Finding::new(component.block, why, cure));
            }
            (LayerOwner::Castle, true) | (LayerOwner::Flux, false) => {}
        }
    }
    claims
}

/// What castle itself places beside Flux, and the repository holds too.
fn ties(spec: &Spec, contents: &Contents) -> Vec<Finding> {
    let token = spec.gitops.token.is_some();
    let ours = |object: &Object| match (object.group(), object.kind(), object.name()) {
        ("", "ConfigMap", "cluster-vars") => true,
        ("", "Secret", NAMESPACE) | ("external-secrets.io", "ExternalSecret", NAMESPACE) => token,
        _ => false,
    };
    let placed = contents.objects.iter();
    placed
        .filter(|placed| placed.object.namespace() == Some(NAMESPACE) && ours(&placed.object))
        .map(|Placed { file, object }| {
            let (setting, why) = match object.kind() {
                "ConfigMap" => ("vars", "castle places that, out of `vars`"),
                _ => ("token", "castle places that, out of `token`"),
            };
            let cure = format!(
                "take it out of the repository; `{setting}` in `gitops \"flux\"` is where it is set"
            );
            Finding::new(file, format!("{}: {why}", object.id()), cure)
        })
        .collect()
}

impl Component {
    /// What of a repository installs it, each with its file: one for each way.
    fn installed_by(&self, contents: &Contents) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for Placed { file, object } in &contents.objects {
            if self.is_installed_by(object, contents) {
                let id = object.id();
                if !found.iter().any(|(known, _): &(String, String)| known == file) {
                    found.push((file.clone(), id.to_string()));
                }
            }
        }
        for (file, address) in &contents.remote {
            if address.contains(&format!("{}/{}", self.chart, self.chart)) {
                found.push((file.clone(), address.clone()));
            }
        }
        found
    }

    fn is_installed_by(&self, object: &Object, contents: &Contents) -> bool {
        match (object.group(), object.kind()) {
            ("helm.toolkit.fluxcd.io", "HelmRelease") => {
                let chart = object.text("/spec/chart/spec/chart");
                chart.is_some_and(|chart| self.is_chart(chart))
                    || referred(object, contents).is_some_and(|url| self.is_chart(url))
            }
            ("source.toolkit.fluxcd.io", "HelmChart") => {
                object.text("/spec/chart").is_some_and(|chart| self.is_chart(chart))
            }
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                object.text("/spec/group") == Some(self.group)
            }
            ("apps", "Deployment" | "DaemonSet" | "StatefulSet") => object
                .entries("/spec/template/spec/containers")
                .iter()
                .filter_map(|container| container.get("image").and_then(Value::as_str))
                .any(|image| self.is_image(image)),
            _ => false,
        }
    }

    /// Whether a chart's name, or the last part of its address, is ours.
    fn is_chart(&self, chart: &str) -> bool {
        chart.trim_end_matches('/').rsplit('/').next() == Some(self.chart)
    }

    fn is_image(&self, image: &str) -> bool {
        let path = image.split(['@']).next().unwrap_or_default();
        path.contains(self.origin) && !path.contains("charts/")
    }
}

/// The address of the artifact that a release refers to.
fn referred<'a>(release: &Object, contents: &'a Contents) -> Option<&'a str> {
    let reference = |key: &str| release.text(&format!("/spec/chartRef/{key}"));
    let (kind, name) = (reference("kind")?, reference("name")?);
    let home = reference("namespace").or(release.namespace());
    let source = contents.objects.iter().map(|placed| &placed.object).find(|object| {
        object.kind() == kind
            && object.name() == name
            && (object.namespace().is_none() || object.namespace() == home)
    })?;
    source.text("/spec/url").or_else(|| source.text("/spec/chart"))
}

#[cfg(test)]
mod tests {
    use castle_git::Tree;

    use super::*;

    fn spec() -> Spec {
        castle_config::example()
    }

    fn say(spec: &Spec, text: &str) -> Vec<String> {
        let tree = Tree::of("c0ffee", [("clusters/blue/all.yaml", text)]);
        let claims = claims(spec, &Contents::read(&tree, "clusters/blue"));
        let told = claims.doubled.iter().chain(&claims.orphaned);
        told.map(|finding| format!("{}: {}", finding.place, finding.why)).collect()
    }

    fn release(chart: &str) -> String {
        format!(
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\n\
             metadata: {{name: lb, namespace: networking}}\n\
             spec: {{chart: {{spec: {{chart: {chart}, sourceRef: {{kind: HelmRepository, name: x}}}}}}}}\n"
        )
    }

    const BY_REFERENCE: &str = "\
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: storage, namespace: storage}
spec: {url: 'oci://registry.example/charts/longhorn'}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: storage, namespace: storage}
spec: {chartRef: {kind: OCIRepository, name: storage}}
";

    fn workload(image: &str) -> String {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: controller, namespace: x}}\n\
             spec: {{template: {{spec: {{containers: [{{name: c, image: '{image}'}}]}}}}}}\n"
        )
    }

    #[test]
    fn a_component_with_two_owners_is_named_however_it_is_installed() {
        let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
             metadata: {name: externalsecrets.external-secrets.io}\nspec: {group: external-secrets.io}\n";
        for (text, expected) in [
            (release("metallb"), "HelmRelease networking/lb installs MetalLB, and so does castle"),
            (
                BY_REFERENCE.to_owned(),
                "HelmRelease storage/storage installs Longhorn, and so does castle",
            ),
            (
                workload("quay.io/metallb/controller:v0.15.3"),
                "Deployment x/controller installs MetalLB, and so does castle",
            ),
            (
                workload("ghcr.io/external-secrets/external-secrets:v1"),
                "Deployment x/controller installs External Secrets, and so does castle",
            ),
            (
                definition.to_owned(),
                "CustomResourceDefinition externalsecrets.external-secrets.io installs External Secrets, and so does castle",
            ),
        ] {
            assert_eq!(say(&spec(), &text), [format!("clusters/blue/all.yaml: {expected}")]);
        }
    }

    #[test]
    fn what_castle_places_beside_flux_is_not_in_the_repository_too() {
        let object = |version: &str, kind: &str, name: &str| {
            format!(
                "apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}, namespace: flux-system}}\n"
            )
        };
        let vars = object("v1", "ConfigMap", "cluster-vars");
        let told = "clusters/blue/all.yaml: ConfigMap flux-system/cluster-vars: castle places that, out of `vars`";
        assert_eq!(say(&spec(), &vars), [told]);
        assert_eq!(say(&spec(), &vars.replace("flux-system", "apps")), [""; 0]);
        assert_eq!(say(&spec(), &object("v1", "ConfigMap", "flux-system")), [""; 0]);
        let way = object("external-secrets.io/v1", "ExternalSecret", "flux-system");
        assert_eq!(say(&spec(), &way).len(), 1);
        let mut open = spec();
        open.gitops.token = None;
        assert_eq!(say(&open, &way), [""; 0]);
    }

    #[test]
    fn what_only_uses_a_component_is_no_owner_of_it() {
        let pool = "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {name: p, namespace: metallb-system}\n";
        for text in
            [release("traefik"), release("metallb-exporter"), workload("nginx:1"), pool.to_owned()]
        {
            assert_eq!(say(&spec(), &text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_layer_goes_by_its_owner() {
        let mut spec = spec();
        spec.networking.owner = LayerOwner::Flux;
        assert_eq!(say(&spec, &release("metallb")), [""; 0]);
        assert_eq!(
            say(&spec, &release("traefik")),
            [
                "networking \"metallb\": Flux is to install MetalLB, and nothing in the repository does"
            ]
        );
        spec.networking.enabled = false;
        assert_eq!(say(&spec, &release("traefik")), [""; 0]);
        spec.networking.owner = LayerOwner::Castle;
        assert_eq!(say(&spec, &release("metallb")), [""; 0], "castle has no such layer");
    }
}
