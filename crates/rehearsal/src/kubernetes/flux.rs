//! Flux: a source is fetched at its head, and Kustomizations are built in the order of their needs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::kinds::condition;
use super::store::{key, parts};
use super::{Kubernetes, set_condition};
use crate::durations::Process;
use crate::turn::{Neighbours, Turn};

mod apply;
mod render;

const NAMESPACE: &str = "flux-system";
/// What somebody asks Flux by to look again.
const REQUESTED: &str = "reconcile.fluxcd.io/requestedAt";

/// What goes wrong with Flux because somebody says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FluxTrouble {
    /// A Kustomization does not hear that what it depends on has become ready: it looks again only at its own interval.
    Miss {
        /// Its name, in the namespace `flux-system`.
        unit: String,
    },
    /// Somebody suspends a Kustomization (or lets it go on): without a name all of them, and their source.
    Suspended {
        /// Its name, in the namespace `flux-system`.
        unit: Option<String>,
        /// Whether it is so from now on.
        suspended: bool,
    },
}

/// Why a Kustomization is not applied: the reason and the message of its condition.
type Held = (&'static str, String);

/// What was applied.
struct Built {
    revision: String,
    inventory: Vec<Value>,
    /// What is waited for, in words.
    unhealthy: Option<String>,
}

impl Kubernetes {
    /// The source controller: where is the branch?
    pub(super) fn fetch(&mut self, turn: &mut Turn<'_>, place: &str, neighbours: &dyn Neighbours) {
        let Some(source) = self.store.shared(place) else { return };
        if source["spec"]["suspend"] == true || !self.acts(NAMESPACE, "source-controller") {
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
        if found.is_ok() {
            let interval = every(&source["spec"]["interval"], 60_000);
            self.plan_in(turn, place, (Process::Interval, interval));
        } else {
            self.plan(turn, place, Process::GitAgain);
        }
        if found.is_ok_and(|revision| before != revision.as_str()) {
            for waiting in self.store.keys("kustomize.toolkit.fluxcd.io", "kustomizations") {
                self.plan(turn, &waiting, Process::FluxLevel);
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

    /// Lets something go wrong with Flux.
    pub fn flux_suffers(&mut self, turn: &mut Turn<'_>, trouble: &FluxTrouble) {
        match trouble {
            FluxTrouble::Miss { unit } => {
                let units = self.store.keys("kustomize.toolkit.fluxcd.io", "kustomizations");
                // Before there is any, nobody knows which there will be.
                if units.is_empty() || units.iter().any(|place| parts(place).3 == unit) {
                    self.deaf.insert(unit.clone());
                }
            }
            FluxTrouble::Suspended { unit, suspended } => {
                let mut places = self.store.keys("kustomize.toolkit.fluxcd.io", "kustomizations");
                match unit {
                    Some(unit) => places.retain(|place| parts(place).3 == unit),
                    None => places
                        .extend(self.store.keys("source.toolkit.fluxcd.io", "gitrepositories")),
                }
                for place in places {
                    self.now = turn.now;
                    self.store.change(&place, |object| suspend(object, *suspended));
                    self.touched(turn, &place);
                }
            }
        }
    }

    /// The helm controller: a release is installed after a while. What a chart holds is not emulated.
    pub(super) fn install(&mut self, place: &str) {
        if !self.acts(NAMESPACE, "helm-controller") {
            return;
        }
        let (stamp, (_, _, namespace, name)) = (self.stamp(), parts(place));
        self.store.change(place, |object| {
            let chart = &object["spec"]["chart"]["spec"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let message = format!(
                "Helm install succeeded for release {namespace}/{name}.v1 with chart {}@{}",
                text(&chart["chart"]),
                text(&chart["version"])
            );
            object["status"]["observedGeneration"] = object["metadata"]["generation"].clone();
            set_condition(object, "Ready", true, "InstallSucceeded", &message, &stamp);
        });
    }

    /// The kustomize controller: with its source fetched and its needs ready, a Kustomization is applied.
    pub(super) fn build(&mut self, turn: &mut Turn<'_>, place: &str, neighbours: &dyn Neighbours) {
        let Some(object) = self.store.shared(place) else { return };
        if object["spec"]["suspend"] == true || !self.acts(NAMESPACE, "kustomize-controller") {
            return;
        }
        let built = self.built(turn, &object, neighbours);
        let interval = every(&object["spec"]["interval"], 600_000);
        let next = match &built {
            Ok(Built { unhealthy: None, .. }) => {
                self.deaf.remove(parts(place).3);
                Some((Process::Interval, interval))
            }
            Ok(_) => None,
            Err(("DependencyNotReady", _)) if self.deaf.contains(parts(place).3) => {
                Some((Process::Interval, interval))
            }
            Err(("DependencyNotReady", _)) => Some((Process::Requeue, self.requeue())),
            Err((_, why)) if why.starts_with("Source artifact not found") => {
                Some((Process::Requeue, self.requeue()))
            }
            Err(_) => Some((Process::Interval, every(&object["spec"]["retryInterval"], interval))),
        };
        let stamp = self.stamp();
        // What was built may have changed the Kustomization itself.
        let Some(object) = self.store.shared(place) else { return };
        let mut after = (*object).clone();
        noted(&mut after, built, &stamp);
        if after != *object {
            self.store.change(place, |object| *object = after);
        }
        match next {
            Some(took) => self.plan_in(turn, place, took),
            None => self.plan(turn, place, Process::FluxHealth),
        }
    }

    /// What was applied, or the reason and message of the failure.
    fn built(
        &mut self,
        turn: &mut Turn<'_>,
        object: &Value,
        neighbours: &dyn Neighbours,
    ) -> Result<Built, Held> {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(NAMESPACE);
        let reference = &object["spec"]["sourceRef"];
        let name = reference["name"].as_str().unwrap_or_default();
        let home = reference["namespace"].as_str().unwrap_or(namespace);
        let source =
            self.store.shared(&key("source.toolkit.fluxcd.io", "gitrepositories", home, name));
        let source = source.ok_or_else(|| {
            let full = "gitrepositories.source.toolkit.fluxcd.io";
            ("ArtifactFailed", format!("{full} \"{name}\" not found"))
        })?;
        let revision = source["status"]["artifact"]["revision"].as_str().map(str::to_owned);
        let revision = revision.ok_or_else(|| {
            let seconds = self.requeue() / 1_000;
            ("ArtifactFailed", format!("Source artifact not found, retrying in {seconds}s"))
        })?;
        self.needs_ready(object, namespace, &revision)?;
        let url = source["spec"]["url"].as_str().unwrap_or_default();
        let commit = revision.rsplit(':').next().unwrap_or_default();
        let empty = BTreeMap::new();
        let files = neighbours.git_files(url, commit).unwrap_or(&empty);
        let texts = render::texts(files, object["spec"]["path"].as_str().unwrap_or("./"))?;
        let values = self.values(object, namespace)?;
        let objects = render::objects(texts, values.as_ref())?;
        let inventory = self.put_all(turn, object, objects)?;
        let unhealthy =
            if object["spec"]["wait"] == true { self.unhealthy(&inventory) } else { None };
        Ok(Built { revision, inventory, unhealthy })
    }

    fn needs_ready(&self, object: &Value, namespace: &str, revision: &str) -> Result<(), Held> {
        for need in object["spec"]["dependsOn"].as_array().map_or(&[][..], Vec::as_slice) {
            let name = need["name"].as_str().unwrap_or_default();
            let home = need["namespace"].as_str().unwrap_or(namespace);
            let full = "kustomizations.kustomize.toolkit.fluxcd.io";
            let there =
                self.store.get(&key("kustomize.toolkit.fluxcd.io", "kustomizations", home, name));
            let why = match there {
                None => format!("not found: {full} \"{name}\" not found"),
                Some(other) if !condition(other, "Ready") => "is not ready".to_owned(),
                Some(other)
                    if other["spec"]["sourceRef"] == object["spec"]["sourceRef"]
                        && other["status"]["lastAppliedRevision"] != revision =>
                {
                    "revision is not up to date".to_owned()
                }
                Some(_) => continue,
            };
            return Err(("DependencyNotReady", format!("dependency '{home}/{name}' {why}")));
        }
        Ok(())
    }

    /// What `postBuild` puts in for variables; none if it does not.
    fn values(
        &self,
        object: &Value,
        namespace: &str,
    ) -> Result<Option<BTreeMap<String, String>>, Held> {
        let build = &object["spec"]["postBuild"];
        if build.is_null() {
            return Ok(None);
        }
        let mut values = BTreeMap::new();
        for from in build["substituteFrom"].as_array().map_or(&[][..], Vec::as_slice) {
            let (kind, name) = (
                from["kind"].as_str().unwrap_or_default(),
                from["name"].as_str().unwrap_or_default(),
            );
            let plural = if kind == "Secret" { "secrets" } else { "configmaps" };
            match self.store.get(&key("", plural, namespace, name)) {
                Some(there) => values.extend(texts_of(&there["data"])),
                None if from["optional"] == true => {}
                None => {
                    let why = format!("{plural} \"{name}\" not found");
                    return Err((
                        "BuildFailed",
                        format!("substitute from '{kind}/{name}' error: {why}"),
                    ));
                }
            }
        }
        values.extend(texts_of(&build["substitute"]));
        Ok(Some(values))
    }

    /// How often a Kustomization looks whether its needs are ready: the controller's argument, else 30 s.
    fn requeue(&self) -> u64 {
        let place = key("apps", "deployments", NAMESPACE, "kustomize-controller");
        let argument = self.store.get(&place).and_then(|controller| {
            let arguments =
                controller["spec"]["template"]["spec"]["containers"][0]["args"].as_array()?;
            arguments
                .iter()
                .find_map(|a| a.as_str()?.strip_prefix("--requeue-dependency="))
                .map(Value::from)
        });
        every(&argument.unwrap_or(Value::Null), Process::Requeue.usual())
    }
}

/// Sets or clears `spec.suspend`, as the flux command does.
fn suspend(object: &mut Value, suspended: bool) {
    if object["spec"]["suspend"].as_bool().unwrap_or(false) == suspended {
        return;
    }
    if suspended {
        object["spec"]["suspend"] = true.into();
    } else if let Some(spec) = object["spec"].as_object_mut() {
        spec.shift_remove("suspend");
    }
    if let Some(generation) = object["metadata"]["generation"].as_i64() {
        object["metadata"]["generation"] = (generation + 1).into();
    }
}

/// Writes into a Kustomization how its building went.
fn noted(object: &mut Value, built: Result<Built, Held>, stamp: &str) {
    let asked = object["metadata"]["annotations"][REQUESTED].clone();
    if !asked.is_null() {
        object["status"]["lastHandledReconcileAt"] = asked;
    }
    if object["status"]["observedGeneration"].is_null() {
        object["status"]["observedGeneration"] = (-1).into();
    }
    match built {
        Ok(built) => {
            let revision = built.revision;
            object["status"]["lastAttemptedRevision"] = revision.clone().into();
            object["status"]["inventory"] = json!({"entries": built.inventory});
            if let Some(what) = built.unhealthy {
                let message = format!("Running health checks for revision {revision}: {what}");
                return progressing(object, &message, stamp);
            }
            let message = format!("Applied revision: {revision}");
            object["status"]["lastAppliedRevision"] = revision.into();
            // Noted by a success alone.
            object["status"]["observedGeneration"] = object["metadata"]["generation"].clone();
            set_condition(object, "Ready", true, "ReconciliationSucceeded", &message, stamp);
        }
        Err((reason, why)) => set_condition(object, "Ready", false, reason, &why, stamp),
    }
}

/// Says that it is neither ready nor not.
fn progressing(object: &mut Value, message: &str, stamp: &str) {
    let conditions = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let same = |c: &Value| c["status"] == "Unknown" && c["message"] == message;
    if conditions.iter().any(same) {
        return;
    }
    set_condition(object, "Ready", false, "Progressing", message, stamp);
    if let Some(conditions) = object["status"]["conditions"].as_array_mut() {
        for condition in conditions.iter_mut().filter(|c| c["type"] == "Ready") {
            condition["status"] = "Unknown".into();
        }
    }
}

fn texts_of(map: &Value) -> impl Iterator<Item = (String, String)> + '_ {
    let entries = map.as_object().into_iter().flatten();
    entries.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
}

/// A Go duration (`1m30s`) in milliseconds.
fn every(text: &Value, otherwise: u64) -> u64 {
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
    if total == 0 { otherwise } else { total }
}
