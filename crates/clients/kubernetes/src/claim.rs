//! Who else has a hand in an object: told by its field managers, labels and annotations.
//!
//! What somebody holds that we do not apply is nobody's business. What we apply may be
//! - *reconciled* by another tool that puts its own values back (Flux, Helm, Argo CD, Terraform, …): a claim, over which
//!   the two would fight;
//! - *changed* by a person or a person's tool: noticed, and put back;
//! - *delegated*: the certificates of webhooks, which their own controllers fill in, and the replicas that an autoscaler
//!   sets. It stays as they have it.

use std::fmt;

use serde_json::Value;

use crate::client::FIELD_MANAGER;
use crate::fields::{Path, held, holds, lost};
use crate::object::Object;

/// How many fields are told of one claim.
const TOLD: usize = 3;

/// Tools that put back what they apply: what their managers' names begin with, and how people call them.
const RECONCILERS: &[(&str, &str)] = &[
    ("kustomize-controller", FLUX),
    ("helm-controller", FLUX),
    ("flux", FLUX),
    ("argocd", "Argo CD"),
    ("helm", "Helm"),
    ("Helm", "Helm"),
    ("terraform", "Terraform"),
    ("Terraform", "Terraform"),
    ("HashiCorp", "Terraform"),
    ("OpenTofu", "OpenTofu"),
    ("pulumi", "Pulumi"),
    ("kapp", "kapp"),
    ("kluctl", "kluctl"),
    ("timoni", "Timoni"),
    ("fleet", "Fleet"),
    ("addon-manager", "the addon manager"),
];
const FLUX: &str = "Flux";

/// Another tool's claim to an object that we want to apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Whose the object seems to be: `Flux (Kustomization flux-system/infra)`.
    pub owner: String,
    /// The field manager, if one was recognised.
    pub manager: Option<String>,
    /// `Apply` or `Update`; empty without a manager.
    pub operation: String,
    /// The fields of ours that it holds, as the server writes them.
    pub fields: Vec<String>,
    /// When it last wrote, as the server says it.
    pub since: Option<String>,
}

impl Claim {
    /// A claim of which only the owner is known.
    pub(crate) fn of(owner: impl Into<String>) -> Self {
        Self {
            owner: owner.into(),
            manager: None,
            operation: String::new(),
            fields: Vec::new(),
            since: None,
        }
    }

    /// The claim of the first reconciler that has applied anything of an object that is there.
    #[must_use]
    pub fn on(there: &Object) -> Option<Self> {
        let (tool, entry) = entries(there).find_map(|entry| Some((entry.reconciler()?, entry)))?;
        Some(Self::by(named(tool, there), entry, there.value()))
    }

    /// Whether it is one of Flux' controllers that claims it.
    #[must_use]
    pub fn is_of_flux(&self) -> bool {
        self.manager.as_deref().and_then(reconciler) == Some(FLUX)
    }

    fn by(owner: String, entry: Entry<'_>, wanted: &Value) -> Self {
        Self {
            owner,
            manager: Some(entry.manager().to_owned()),
            operation: entry.text("operation").to_owned(),
            fields: held(wanted, entry.tree()).iter().map(ToString::to_string).collect(),
            since: Some(entry.text("time").to_owned()).filter(|time| !time.is_empty()),
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.owner)?;
        let Some(manager) = &self.manager else { return Ok(()) };
        let verb = if self.operation == "Apply" { "applies" } else { "has written" };
        write!(f, ": {manager} {verb} {}", few(&self.fields))?;
        match &self.since {
            Some(since) => write!(f, ", last at {since}"),
            None => Ok(()),
        }
    }
}

/// One entry of `metadata.managedFields`.
#[derive(Clone, Copy)]
struct Entry<'a>(&'a Value);

impl<'a> Entry<'a> {
    fn text(self, name: &str) -> &'a str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn manager(self) -> &'a str {
        self.text("manager")
    }

    fn tree(self) -> &'a Value {
        self.0.get("fieldsV1").unwrap_or(&Value::Null)
    }

    fn is_ours(self) -> bool {
        self.manager() == FIELD_MANAGER
            && self.text("operation") == "Apply"
            && self.text("subresource").is_empty()
    }

    /// What people call the tool behind it, if that puts back what it applies.
    fn reconciler(self) -> Option<&'static str> {
        reconciler(self.manager()).filter(|_| self.text("subresource") != "status")
    }
}

/// What people call the tool that is this field manager, if it puts back what it applies.
pub(crate) fn reconciler(manager: &str) -> Option<&'static str> {
    RECONCILERS.iter().find(|(start, _)| manager.starts_with(start)).map(|(_, tool)| *tool)
}

fn entries(object: &Object) -> impl Iterator<Item = Entry<'_>> + Clone {
    object.entries("/metadata/managedFields").iter().map(Entry)
}

/// Whether we have applied an object before, as far as its managers tell.
pub(crate) fn is_applied_by_us(there: &Object) -> bool {
    entries(there).any(Entry::is_ours)
}

/// The claim of another reconciler to what we apply, if there is one.
///
/// Namespaces are shared by everybody who puts something into them: there only what was taken away counts. And the
/// objects that tie Flux to its repository are Flux' own once it has found them there.
pub(crate) fn claim(wanted: &Object, there: &Object) -> Option<Claim> {
    let ours = || missing(wanted, there);
    entries(there).find_map(|entry| {
        let tool = entry.reconciler()?;
        if is_handed_over(wanted, tool) {
            return None;
        }
        let claim = Claim::by(named(tool, there), entry, wanted.value());
        let shared =
            wanted.kind() == "Namespace" && !ours().iter().any(|path| holds(entry.tree(), path));
        (!claim.fields.is_empty() && !shared).then_some(claim)
    })
}

/// Whose an object is that we have never applied.
pub(crate) fn owner(wanted: &Object, there: &Object) -> Claim {
    let others = entries(there).filter(|entry| entry.text("subresource") != "status");
    let tool = others.clone().find_map(|entry| Some((entry.reconciler()?, entry)));
    let labelled = tool_by_labels(wanted, there);
    let most = others.max_by_key(|entry| held(wanted.value(), entry.tree()).len());
    match (tool, labelled, most) {
        (Some((tool, entry)), ..) => Claim::by(named(tool, there), entry, wanted.value()),
        (None, Some(owner), Some(entry)) => Claim::by(owner, entry, wanted.value()),
        (None, Some(owner), None) => Claim::of(owner),
        (None, None, Some(entry)) if !entry.manager().is_empty() => {
            let owner = format!("whoever uses {}", entry.manager());
            Claim::by(owner, entry, wanted.value())
        }
        _ => Claim::of("someone unknown"),
    }
}

/// What has become of our fields, in words; none if they are still ours, or are with whom they were delegated to.
pub(crate) fn drift(wanted: &Object, there: &Object) -> Option<String> {
    if !is_applied_by_us(there) {
        return Some("castle is no longer among its field managers".to_owned());
    }
    let missing = missing(wanted, there);
    let others: Vec<Entry<'_>> = entries(there).filter(|entry| !entry.is_ours()).collect();
    let holder = |path: &Path<'_>| others.iter().copied().find(|entry| holds(entry.tree(), path));
    let changed: Vec<&Path<'_>> =
        missing.iter().filter(|path| !stays(wanted, path, holder(path))).collect();
    let first = changed.first()?;
    let fields: Vec<String> =
        changed.iter().map(|path| changed_words(path, wanted, there)).collect();
    Some(match holder(first) {
        Some(entry) => {
            let at = entry.text("time");
            let since = if at.is_empty() { String::new() } else { format!(" at {at}") };
            format!("{} has changed {}{since}", entry.manager(), few(&fields))
        }
        None => format!("somebody has removed {}", few(&fields)),
    })
}

/// A field, and from what to what it would be set: short values alone, and never those of a Secret.
fn changed_words(path: &Path<'_>, wanted: &Object, there: &Object) -> String {
    let value = |object: &Object| match path.at(object.value()) {
        _ if object.kind() == "Secret" => None,
        Some(Value::Array(entries)) => entries.iter().map(short).collect::<Option<Vec<_>>>(),
        other => other.and_then(short).map(|text| vec![text]),
    };
    match (value(there), value(wanted)) {
        (Some(from), Some(to)) if from != to => {
            format!("{path} {} -> {}", from.join(","), to.join(","))
        }
        _ => path.to_string(),
    }
}

/// A value that fits into a sentence.
fn short(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
    .filter(|text| text.len() <= 48)
}

/// An object without the fields that others hold and that are theirs to fill in.
pub(crate) fn yielding(wanted: &Object, there: &Object) -> Object {
    let mut value = wanted.value().clone();
    for path in missing(wanted, there) {
        let holder = entries(there).filter(|e| !e.is_ours()).find(|e| holds(e.tree(), &path));
        if stays(wanted, &path, holder) {
            path.remove_from(&mut value);
        }
    }
    Object::new(value).unwrap_or_else(|_| wanted.clone())
}

/// The fields that we apply and no longer hold.
fn missing<'a>(wanted: &'a Object, there: &Object) -> Vec<Path<'a>> {
    let trees: Vec<&Value> = entries(there).filter(|e| e.is_ours()).map(Entry::tree).collect();
    lost(wanted.value(), &trees)
}

/// Whether what another has made of a field stays as it is.
fn stays(wanted: &Object, path: &Path<'_>, holder: Option<Entry<'_>>) -> bool {
    let Some(holder) = holder else { return false };
    let scaled = path.last() == "replicas" && holder.manager() == "kube-controller-manager";
    let flux = holder.reconciler().is_some_and(|tool| is_handed_over(wanted, tool));
    path.last() == "caBundle" || scaled || flux
}

fn is_handed_over(wanted: &Object, tool: &str) -> bool {
    tool == FLUX && wanted.group().ends_with(".toolkit.fluxcd.io")
}

/// The tool with what it calls the thing that made the object.
fn named(tool: &str, there: &Object) -> String {
    flux_unit(there).filter(|_| tool == FLUX).unwrap_or_else(|| match tool {
        "Helm" => helm_release(there).unwrap_or_else(|| tool.to_owned()),
        _ => tool.to_owned(),
    })
}

fn flux_unit(there: &Object) -> Option<String> {
    let unit = |group: &str, kind: &str| {
        let name = there.label(&format!("{group}/name"))?;
        let namespace = there.label(&format!("{group}/namespace")).unwrap_or("flux-system");
        Some(format!("{FLUX} ({kind} {namespace}/{name})"))
    };
    unit("kustomize.toolkit.fluxcd.io", "Kustomization")
        .or_else(|| unit("helm.toolkit.fluxcd.io", "HelmRelease"))
}

fn helm_release(there: &Object) -> Option<String> {
    let name = there.annotation("meta.helm.sh/release-name")?;
    let namespace = there.annotation("meta.helm.sh/release-namespace").unwrap_or("default");
    Some(format!("Helm (release {namespace}/{name})"))
}

/// Whose an object is by what tools write on it. A label that our own object carries too proves nothing: upstream
/// manifests are often printed by Helm and say so.
fn tool_by_labels(wanted: &Object, there: &Object) -> Option<String> {
    let argo = there.annotation("argocd.argoproj.io/tracking-id").is_some()
        || there.label("argocd.argoproj.io/instance").is_some();
    let manager = there
        .label("app.kubernetes.io/managed-by")
        .filter(|tool| wanted.label("app.kubernetes.io/managed-by") != Some(tool));
    let kubectl = there.annotation("kubectl.kubernetes.io/last-applied-configuration").is_some();
    flux_unit(there)
        .or_else(|| argo.then(|| "Argo CD".to_owned()))
        .or_else(|| helm_release(there))
        .or_else(|| manager.map(str::to_owned))
        .or_else(|| kubectl.then(|| "whoever uses kubectl apply".to_owned()))
}

fn few(fields: &[String]) -> String {
    let told = fields.iter().take(TOLD).cloned().collect::<Vec<_>>().join(", ");
    match fields.len().saturating_sub(TOLD) {
        0 if fields.is_empty() => "other fields of it".to_owned(),
        0 => told,
        more => format!("{told} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
