//! Flux: a source is fetched at its head, and Kustomizations are built in the order of their needs.

use serde_json::{Value, json};

use super::kinds::condition;
use super::store::{key, parts};
use super::{Kubernetes, Span, set_condition};
use crate::turn::{Declared, Neighbours, Turn};

const NAMESPACE: &str = "flux-system";
/// How long a controller waits after a failure.
const AGAIN: Span = (4_000, 5_000, 6_000);
/// The label that a Kustomization puts on what it applies.
const APPLIED_BY: &str = "kustomize.toolkit.fluxcd.io/name";

impl Kubernetes {
    /// The source controller: where is the branch?
    pub(super) fn fetch(&mut self, turn: &mut Turn<'_>, place: &str, neighbours: &dyn Neighbours) {
        let Some(source) = self.store.shared(place) else { return };
        if source["spec"]["suspend"] == true
            || !self.is_up(NAMESPACE, "deployments", "source-controller")
        {
            return;
        }
        let before = source["status"]["artifact"]["revision"].clone();
        let found = self.head(&source, neighbours);
        let stamp = self.stamp();
        self.store.change(place, |object| {
            object["status"]["observedGeneration"] = object["metadata"]["generation"].clone();
            match &found {
                Ok(revision) => {
                    if before != revision.as_str() {
                        object["status"]["artifact"] = json!({"revision": revision, "lastUpdateTime": stamp,
                            "path": format!("gitrepository/{}/{}", parts(place).2, parts(place).3)});
                    }
                    let message = format!("stored artifact for revision '{revision}'");
                    set_condition(object, "Ready", true, "Succeeded", &message, &stamp);
                }
                Err(why) => set_condition(object, "Ready", false, "GitOperationFailed", why, &stamp),
            }
        });
        let next = if found.is_ok() { every(&source["spec"]["interval"], 60_000) } else { AGAIN };
        self.plan(turn, place, next);
        if found.is_ok_and(|revision| before != revision.as_str()) {
            for waiting in self.store.keys("kustomize.toolkit.fluxcd.io", "kustomizations") {
                self.plan(turn, &waiting, (2_000, 5_000, 15_000));
            }
        }
    }

    fn head(&self, source: &Value, neighbours: &dyn Neighbours) -> Result<String, String> {
        let spec = &source["spec"];
        let namespace = source["metadata"]["namespace"].as_str().unwrap_or(NAMESPACE);
        let url = spec["url"].as_str().unwrap_or_default();
        let branch = spec["ref"]["branch"].as_str().unwrap_or("master");
        let login = match spec["secretRef"]["name"].as_str() {
            Some(name) => Some(self.credentials(namespace, name)?),
            None => None,
        };
        let credentials = login.as_ref().map(|(user, password)| (user.as_str(), password.as_str()));
        let commit = neighbours.git_head(url, branch, credentials)?;
        Ok(format!("{branch}@sha1:{commit}"))
    }

    /// The kustomize controller: with its source fetched and its needs ready, a Kustomization is applied.
    pub(super) fn build(&mut self, turn: &mut Turn<'_>, place: &str, neighbours: &dyn Neighbours) {
        let Some(object) = self.store.shared(place) else { return };
        if object["spec"]["suspend"] == true
            || !self.is_up(NAMESPACE, "deployments", "kustomize-controller")
        {
            return;
        }
        let stamp = self.stamp();
        match self.built(turn, &object, neighbours) {
            Ok(revision) => {
                let fresh = object["status"]["lastAppliedRevision"] != revision.as_str()
                    || !condition(&object, "Ready");
                self.store.change(place, |object| {
                    let message = format!("Applied revision: {revision}");
                    object["status"]["observedGeneration"] =
                        object["metadata"]["generation"].clone();
                    object["status"]["lastAppliedRevision"] = revision.clone().into();
                    object["status"]["lastAttemptedRevision"] = revision.clone().into();
                    set_condition(
                        object,
                        "Ready",
                        true,
                        "ReconciliationSucceeded",
                        &message,
                        &stamp,
                    );
                });
                if fresh {
                    self.plan(turn, place, every(&object["spec"]["interval"], 600_000));
                }
            }
            Err((reason, why)) => {
                self.store.change(place, |object| {
                    object["status"]["observedGeneration"] =
                        object["metadata"]["generation"].clone();
                    set_condition(object, "Ready", false, reason, &why, &stamp);
                });
                let next = if reason == "DependencyNotReady" { self.requeue() } else { AGAIN };
                self.plan(turn, place, next);
            }
        }
    }

    /// The revision that was applied, or the reason and message of the failure.
    fn built(
        &mut self,
        turn: &mut Turn<'_>,
        object: &Value,
        neighbours: &dyn Neighbours,
    ) -> Result<String, (&'static str, String)> {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(NAMESPACE);
        let reference = &object["spec"]["sourceRef"];
        let name = reference["name"].as_str().unwrap_or_default();
        let home = reference["namespace"].as_str().unwrap_or(namespace);
        let source = self
            .store
            .get(&key("source.toolkit.fluxcd.io", "gitrepositories", home, name))
            .cloned();
        let source = source.ok_or_else(|| {
            (
                "ArtifactFailed",
                format!("GitRepository.source.toolkit.fluxcd.io \"{name}\" not found"),
            )
        })?;
        let revision = source["status"]["artifact"]["revision"].as_str().map(str::to_owned);
        let revision = revision.ok_or_else(|| {
            ("ArtifactFailed", "Source artifact not found, retrying in 30s".to_owned())
        })?;
        self.needs_ready(object, namespace, &revision)?;
        self.values_there(object, namespace)?;
        let url = source["spec"]["url"].as_str().unwrap_or_default();
        let path = object["spec"]["path"].as_str().unwrap_or("./");
        let child = !object["metadata"]["labels"][APPLIED_BY].is_null();
        match neighbours.kustomizations(url, path) {
            Some(declared) => self.declare(turn, object, &declared),
            None if child => {}
            None => {
                return Err((
                    "ArtifactFailed",
                    format!("kustomization path not found: stat {path}: no such file or directory"),
                ));
            }
        }
        Ok(revision)
    }

    fn needs_ready(
        &self,
        object: &Value,
        namespace: &str,
        revision: &str,
    ) -> Result<(), (&'static str, String)> {
        for need in object["spec"]["dependsOn"].as_array().map_or(&[][..], Vec::as_slice) {
            let name = need["name"].as_str().unwrap_or_default();
            let home = need["namespace"].as_str().unwrap_or(namespace);
            let there =
                self.store.get(&key("kustomize.toolkit.fluxcd.io", "kustomizations", home, name));
            let ready = there.is_some_and(|o| {
                condition(o, "Ready") && o["status"]["lastAppliedRevision"] == revision
            });
            if !ready {
                return Err((
                    "DependencyNotReady",
                    format!("dependency '{home}/{name}' is not ready"),
                ));
            }
        }
        Ok(())
    }

    /// What `postBuild` substitutes from must be there.
    fn values_there(&self, object: &Value, namespace: &str) -> Result<(), (&'static str, String)> {
        for from in
            object["spec"]["postBuild"]["substituteFrom"].as_array().map_or(&[][..], Vec::as_slice)
        {
            let (kind, name) = (
                from["kind"].as_str().unwrap_or_default(),
                from["name"].as_str().unwrap_or_default(),
            );
            let plural = if kind == "Secret" { "secrets" } else { "configmaps" };
            if self.store.get(&key("", plural, namespace, name)).is_none()
                && from["optional"] != true
            {
                return Err((
                    "BuildFailed",
                    format!("substitute from '{kind}/{name}' error: {plural} \"{name}\" not found"),
                ));
            }
        }
        Ok(())
    }

    /// The Kustomizations in a folder of the repository become objects.
    fn declare(&mut self, turn: &mut Turn<'_>, parent: &Value, declared: &[Declared]) {
        let name = parent["metadata"]["name"].as_str().unwrap_or_default();
        for child in declared {
            let needs: Vec<Value> = child.depends_on.iter().map(|n| json!({"name": n})).collect();
            let place =
                key("kustomize.toolkit.fluxcd.io", "kustomizations", NAMESPACE, &child.name);
            if self.store.get(&place).is_some() {
                continue;
            }
            self.make(turn, ("kustomize.toolkit.fluxcd.io", "kustomizations"), json!({
                "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
                "metadata": {"name": child.name, "namespace": NAMESPACE, "labels": {APPLIED_BY: name}},
                "spec": {"interval": "15m", "retryInterval": "1m", "prune": true, "path": child.path,
                    "dependsOn": needs, "sourceRef": parent["spec"]["sourceRef"]},
            }));
        }
    }

    /// How often a Kustomization looks whether its needs are ready: the controller's argument, else 30 s.
    fn requeue(&self) -> Span {
        let place = key("apps", "deployments", NAMESPACE, "kustomize-controller");
        let argument = self.store.get(&place).and_then(|controller| {
            let arguments =
                controller["spec"]["template"]["spec"]["containers"][0]["args"].as_array()?;
            arguments
                .iter()
                .find_map(|a| a.as_str()?.strip_prefix("--requeue-dependency="))
                .map(Value::from)
        });
        every(&argument.unwrap_or(Value::Null), 30_000)
    }
}

/// A Go duration (`1m30s`) as a span that is always as long.
fn every(text: &Value, otherwise: u64) -> Span {
    let mut total = 0;
    let mut number = String::new();
    let mut unit = String::new();
    let text = text.as_str().unwrap_or_default();
    for character in text.chars().chain(['0']) {
        if character.is_ascii_digit() && !unit.is_empty() {
            total += number.parse::<u64>().unwrap_or(0)
                * match unit.as_str() {
                    "h" => 3_600_000,
                    "m" => 60_000,
                    "s" => 1_000,
                    "ms" => 1,
                    _ => 0,
                };
            number.clear();
            unit.clear();
        }
        if character.is_ascii_digit() { number.push(character) } else { unit.push(character) }
    }
    let length = if total == 0 { otherwise } else { total };
    (length, length, length)
}
