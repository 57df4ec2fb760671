//! The list of what a layer's set has applied, kept in the cluster, so that what is no longer wanted can be removed.
//!
//! It names an object before the object is applied, and forgets it only after it is gone: whoever is cut off in
//! between finds it again. What is removed must be in the list *and* carry this layer's mark.

use std::collections::{BTreeMap, BTreeSet};

use castle_engine::{Context, Pace};
use castle_kubernetes::rank::rank;
use castle_kubernetes::scope::{defines, is_ours_alone};
use castle_kubernetes::{Claim, Kubernetes, Mark, Mode, Object, ObjectId};
use castle_model::{Failure, Verdict};
use castle_platforms::cluster::few;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;

use crate::objects::marked;

/// Where the lists are: a namespace that every cluster has and no layer brings.
pub(super) const NAMESPACE: &str = "kube-system";
/// What their names begin with; the layer follows.
const NAME: &str = "castle-ledger-";
/// How many objects are asked for at a time.
const AT_ONCE: usize = 16;
/// How often a removal is tried while others change the object.
const TRIES: usize = 5;

/// The list of one layer.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    ids: BTreeSet<ObjectId>,
}

impl Ledger {
    /// Reads the list; empty if there is none of this life of the castle.
    pub(super) async fn read(client: &Kubernetes, mark: &Mark) -> Result<Self, Failure> {
        let there = client.get(&id(mark)).await?.filter(|object| mark.is_on(object));
        let text = there.as_ref().and_then(|object| object.text("/data/objects"));
        Ok(Self { ids: text.unwrap_or_default().lines().filter_map(parsed).collect() })
    }

    /// Whether all of a set are in the list.
    pub(super) fn holds(&self, wanted: &[Object]) -> bool {
        wanted.iter().all(|object| self.ids.contains(&object.id()))
    }

    /// Puts a set into the list, before anything of it is applied; says whether that changed it.
    pub(super) async fn add(
        &mut self,
        client: &Kubernetes,
        mark: &Mark,
        wanted: &[Object],
    ) -> Result<bool, Failure> {
        if self.holds(wanted) {
            return Ok(false);
        }
        self.ids.extend(wanted.iter().map(Object::id));
        write(client, mark, &self.ids).await?;
        Ok(true)
    }

    /// What is in the list, no longer wanted, still there and still ours: what goes, and what has to stay.
    pub(super) async fn leftovers(
        &self,
        client: &Kubernetes,
        mark: &Mark,
        wanted: &[Object],
    ) -> Result<Leftovers, Failure> {
        let kept: BTreeSet<Thing> = wanted.iter().map(|object| thing(&object.id())).collect();
        let gone = self.ids.iter().filter(|id| !kept.contains(&thing(id)));
        let calls: Vec<_> = gone.map(|id| client.get(id)).collect();
        let there: Vec<Option<Object>> =
            stream::iter(calls).buffered(AT_ONCE).try_collect().await?;
        let ours = |object: &Object| mark.is_on(object) && !is_leaving(object);
        let mut leftovers = Leftovers::default();
        for object in there.into_iter().flatten().filter(ours) {
            match in_use(client, mark, wanted, &object).await? {
                Some(why) => leftovers.kept.push((object.id(), why)),
                None => leftovers.going.push(object),
            }
        }
        Ok(leftovers)
    }

    /// Removes what is no longer wanted, in the reverse order of ranks, and shortens the list to what is, and to what
    /// stays because of others: they may let go one day. Says how many were removed.
    pub(super) async fn prune(
        &self,
        cx: &Context,
        client: &Kubernetes,
        mark: &Mark,
        wanted: &[Object],
    ) -> Result<usize, Failure> {
        let Leftovers { going, kept } = self.leftovers(client, mark, wanted).await?;
        let mut now: BTreeSet<ObjectId> = wanted.iter().map(Object::id).collect();
        now.extend(kept.into_iter().map(|(id, _)| id));
        let mut ranks: BTreeMap<usize, Vec<Object>> = BTreeMap::new();
        for object in going {
            ranks.entry(rank(&object)).or_default().push(object);
        }
        let mut removed = 0;
        for (_, objects) in ranks.into_iter().rev() {
            let mut going = Vec::new();
            for object in objects {
                let id = object.id();
                match remove(client, mark, wanted, object).await? {
                    None => going.push(id),
                    Some(why) => {
                        cx.notice(stays(&id, &why));
                        now.insert(id);
                    }
                }
            }
            // What others stand on goes only after them.
            let (going, client) = (&going, client);
            cx.wait(Pace::GATE, "what is no longer wanted to be gone", || {
                still_there(client, going)
            })
            .await?;
            removed += going.len();
        }
        if now.is_empty() {
            client.delete(&id(mark)).await?;
        } else if now != self.ids {
            write(client, mark, &now).await?;
        }
        Ok(removed)
    }
}

/// What a layer has applied and no longer wants.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    /// What is removed.
    pub(super) going: Vec<Object>,
    /// What stays because of others, with why.
    pub(super) kept: Vec<(ObjectId, String)>,
}

/// What is told of something that stays.
pub(super) fn stays(id: &ObjectId, why: &str) -> String {
    format!("{id} is no longer wanted but stays: {why}")
}

/// Removes one object as it was seen. Whoever changes it in between may make it theirs: then it is looked at again.
/// Says why it stays, if it does.
async fn remove(
    client: &Kubernetes,
    mark: &Mark,
    wanted: &[Object],
    mut object: Object,
) -> Result<Option<String>, Failure> {
    for _ in 0..TRIES {
        if let Some(why) = in_use(client, mark, wanted, &object).await? {
            return Ok(Some(why));
        }
        match client.delete_seen(&object).await {
            Ok(_) => return Ok(None),
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
        match client.get(&object.id()).await? {
            None => return Ok(None),
            Some(there) if !mark.is_on(&there) => {
                return Ok(Some("it is not ours any more".into()));
            }
            Some(there) => object = there,
        }
    }
    Ok(Some("somebody changes it all the time".to_owned()))
}

/// Group, kind, namespace and name: an object stays itself in another version of its kind.
type Thing = (String, String, Option<String>, String);

fn thing(id: &ObjectId) -> Thing {
    (id.group().to_owned(), id.kind.clone(), id.namespace.clone(), id.name.clone())
}

fn id(mark: &Mark) -> ObjectId {
    ObjectId::namespaced("v1", "ConfigMap", NAMESPACE, &format!("{NAME}{}", mark.layer))
}

/// The layer that a list is of; none if it is no such list.
pub(super) fn layer(list: &Object) -> Option<&str> {
    list.name().strip_prefix(NAME)
}

async fn write(client: &Kubernetes, mark: &Mark, ids: &BTreeSet<ObjectId>) -> Result<(), Failure> {
    let lines: Vec<String> = ids.iter().map(line).collect();
    let list = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": id(mark).name, "namespace": NAMESPACE},
        "data": {"objects": lines.join("\n")},
    });
    for object in marked(mark, vec![list])? {
        client.apply(&object, Mode::Real).await?;
    }
    Ok(())
}

/// One object of the list: version, kind, namespace or `-`, name.
fn line(id: &ObjectId) -> String {
    let namespace = id.namespace.as_deref().unwrap_or("-");
    format!("{} {} {namespace} {}", id.api_version, id.kind, id.name)
}

/// What a line names; nothing if somebody has written something else there.
fn parsed(line: &str) -> Option<ObjectId> {
    let parts: Vec<&str> = line.split(' ').collect();
    let [api_version, kind, namespace, name] = parts[..] else { return None };
    let complete = [api_version, kind, namespace, name].iter().all(|part| !part.is_empty());
    complete.then(|| match namespace {
        "-" => ObjectId::cluster(api_version, kind, name),
        namespace => ObjectId::namespaced(api_version, kind, namespace, name),
    })
}

fn is_leaving(object: &Object) -> bool {
    object.at("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null())
}

/// Why something can not be removed: another tool applies it too, others or what is still wanted live in the namespace or
/// use the definition.
async fn in_use(
    client: &Kubernetes,
    mark: &Mark,
    wanted: &[Object],
    object: &Object,
) -> Result<Option<String>, Failure> {
    if let Some(claim) = Claim::on(object) {
        return Ok(Some(format!("it belongs to {claim}")));
    }
    let still = |uses: &dyn Fn(&Object) -> bool| -> Vec<String> {
        wanted.iter().filter(|user| uses(user)).map(|user| user.id().to_string()).collect()
    };
    let wanted = match object.kind() {
        "Namespace" => still(&|user| user.namespace() == Some(object.name())),
        "CustomResourceDefinition" => still(&|user| defines(object, user.group(), user.kind())),
        _ => Vec::new(),
    };
    if !wanted.is_empty() {
        return Ok(Some(format!("{} that are wanted need it: {}", wanted.len(), few(&wanted))));
    }
    let users: Vec<String> = match object.kind() {
        "Namespace" => {
            client.strangers(object.name(), mark).await?.iter().map(ToString::to_string).collect()
        }
        "CustomResourceDefinition" => {
            let versions = object.entries("/spec/versions").iter();
            let served = versions
                .filter(|version| version["served"] == true)
                .find_map(|version| version["name"].as_str());
            let (Some(version), Some(group), Some(kind)) =
                (served, object.text("/spec/group"), object.text("/spec/names/kind"))
            else {
                return Ok(None);
            };
            match client.list(&format!("{group}/{version}"), kind, None, "").await {
                Ok(listing) => {
                    let others = listing.items.iter().filter(|user| !is_ours_alone(user, mark));
                    others.map(|user| user.id().to_string()).collect()
                }
                Err(error) if error.is_not_found() => Vec::new(),
                Err(error) => return Err(error.into()),
            }
        }
        _ => Vec::new(),
    };
    Ok((!users.is_empty()).then(|| format!("{} of others: {}", users.len(), few(&users))))
}

async fn still_there(client: &Kubernetes, going: &[ObjectId]) -> Result<Verdict<()>, Failure> {
    for id in going {
        if let Some(object) = client.get(id).await? {
            let held: Vec<&str> =
                object.entries("/metadata/finalizers").iter().filter_map(|f| f.as_str()).collect();
            let by =
                if held.is_empty() { String::new() } else { format!(", held by {}", few(&held)) };
            return Ok(Verdict::Waiting(format!("{id} is still there{by}")));
        }
    }
    Ok(Verdict::Ready(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_as_they_were_and_others_are_passed_over() {
        let ids = [
            ObjectId::cluster("v1", "Namespace", "metallb-system"),
            ObjectId::namespaced("apps/v1", "Deployment", "metallb-system", "controller"),
            ObjectId::cluster(
                "rbac.authorization.k8s.io/v1",
                "ClusterRole",
                "metallb-system:controller",
            ),
        ];
        for id in ids {
            assert_eq!(parsed(&line(&id)), Some(id));
        }
        for line in ["", "v1 Namespace a", "v1 Namespace - a b", "v1  - a", "rm -rf / x y"] {
            assert_eq!(parsed(line), None, "{line}");
        }
    }

    #[test]
    fn a_thing_is_the_same_in_another_version() {
        let of = |version: &str| thing(&ObjectId::cluster(version, "Deployment", "a"));
        assert_eq!(of("apps/v1"), of("apps/v1beta1"));
        assert_ne!(of("apps/v1"), of("example.org/v1"));
    }
}
