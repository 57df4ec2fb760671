//! Where objects belong: kinds that live in namespaces and kinds of the whole cluster, and who lives in a namespace.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt, stream};
use http::Method;
use serde_json::Value;

use crate::claim::Claim;
use crate::client::Kubernetes;
use crate::error::KubeError;
use crate::mark::Mark;
use crate::object::{Object, ObjectId};
use crate::request::{Kind, KindPath};

/// How many lists of one question are on their way at a time.
const AT_ONCE: usize = 16;
/// What every namespace has, and what is written about others and goes with them.
const FURNITURE: &[(&str, &str)] = &[
    ("ConfigMap", "kube-root-ca.crt"),
    ("ServiceAccount", "default"),
    ("Endpoints", ""),
    ("EndpointSlice", ""),
    ("Event", ""),
    ("Lease", ""),
    ("PodMetrics", ""),
];

impl Kubernetes {
    /// The objects of a set that are not where their kind lives, each with what is wrong. A definition in the set counts
    /// before what the server knows; a kind that neither knows is passed over.
    ///
    /// # Errors
    /// If the server does not answer or refuses.
    pub async fn misplaced(&self, wanted: &[Object]) -> Result<Vec<(ObjectId, String)>, KubeError> {
        let defined = defined_scopes(wanted);
        let mut wrong = Vec::new();
        for object in wanted {
            let known = (object.group().to_owned(), object.kind().to_owned());
            let namespaced = match defined.get(&known) {
                Some(namespaced) => Some(*namespaced),
                None => match self.kind(object.api_version(), object.kind()).await {
                    Ok(kind) => Some(kind.namespaced),
                    Err(KubeError::NoSuchKind { .. }) => None,
                    Err(error) => return Err(error),
                },
            };
            let why = match (namespaced, object.namespace()) {
                (Some(false), Some(namespace)) => {
                    format!(
                        "it names the namespace {namespace}, but {} belongs to the whole cluster",
                        object.kind()
                    )
                }
                // Built-in kinds may leave `default` out, as they may everywhere.
                (Some(true), None) if !is_built_in(object) => {
                    format!("it names no namespace, but every {} lives in one", object.kind())
                }
                _ => continue,
            };
            wrong.push((object.id(), why));
        }
        Ok(wrong)
    }

    /// Whether the cluster has a definition of a kind, served or not yet.
    ///
    /// # Errors
    /// If the server does not answer or refuses.
    pub async fn is_defined(&self, group: &str, kind: &str) -> Result<bool, KubeError> {
        let listing =
            self.list("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, "").await?;
        Ok(listing.items.iter().any(|definition| defines(definition, group, kind)))
    }

    /// What is in a namespace that does not carry this mark or that another tool applies too, and is not there only
    /// because of something else.
    ///
    /// # Errors
    /// If the server does not answer or refuses.
    pub async fn strangers(
        &self,
        namespace: &str,
        mark: &Mark,
    ) -> Result<Vec<ObjectId>, KubeError> {
        let mut versions = vec!["v1".to_owned()];
        let doing = "ask for the groups of kinds";
        let reply = self.call(doing, Method::GET, "/apis", Vec::new(), None).await?;
        let groups = reply.get("groups").and_then(Value::as_array).into_iter().flatten();
        let preferred =
            groups.filter_map(|group| group.pointer("/preferredVersion/groupVersion")?.as_str());
        versions.extend(preferred.map(str::to_owned));
        let mut kinds = Vec::new();
        for version in versions {
            // A group whose server is down shows nothing; what it holds is not ours to judge, so it stops here.
            kinds.extend(self.kinds_of_version(&version).await?.into_iter().filter(|kind| {
                kind.namespaced && kind.listed && !FURNITURE.contains(&(kind.name.as_str(), ""))
            }));
        }
        let calls: Vec<_> =
            kinds.into_iter().map(|kind| self.strangers_of(kind, namespace, mark)).collect();
        let found: Vec<Vec<ObjectId>> = stream::iter(calls).buffered(AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn strangers_of(
        &self,
        kind: Kind,
        namespace: &str,
        mark: &Mark,
    ) -> Result<Vec<ObjectId>, KubeError> {
        let (version, name) = (kind.api_version.clone(), kind.name.clone());
        let path = KindPath { kind, namespace: Some(namespace) }.all();
        let doing = format!("list every {name} in {namespace}");
        let items = self.pages(&doing, &path, "", (&version, &name)).await?.items;
        Ok(items.iter().filter(|object| is_stranger(object, mark)).map(Object::id).collect())
    }
}

/// Whether a kind is Kubernetes' own.
#[must_use]
pub fn is_built_in(object: &Object) -> bool {
    !object.group().contains('.') || object.group().ends_with(".k8s.io")
}

fn is_stranger(object: &Object, mark: &Mark) -> bool {
    !is_ours_alone(object, mark)
        && object.entries("/metadata/ownerReferences").is_empty()
        && !FURNITURE.contains(&(object.kind(), object.name()))
}

/// Whether an object carries this mark and no other tool applies anything of it.
#[must_use]
pub fn is_ours_alone(object: &Object, mark: &Mark) -> bool {
    mark.is_on(object) && Claim::on(object).is_none()
}

/// Whether a CustomResourceDefinition is that of a kind.
#[must_use]
pub fn defines(definition: &Object, group: &str, kind: &str) -> bool {
    definition.kind() == "CustomResourceDefinition"
        && definition.text("/spec/group") == Some(group)
        && definition.text("/spec/names/kind") == Some(kind)
}

/// The kinds that a set itself defines, with whether they live in namespaces.
fn defined_scopes(wanted: &[Object]) -> BTreeMap<(String, String), bool> {
    wanted
        .iter()
        .filter(|object| object.kind() == "CustomResourceDefinition")
        .filter_map(|definition| {
            let group = definition.text("/spec/group")?.to_owned();
            let kind = definition.text("/spec/names/kind")?.to_owned();
            Some(((group, kind), definition.text("/spec/scope")? == "Namespaced"))
        })
        .collect()
}
