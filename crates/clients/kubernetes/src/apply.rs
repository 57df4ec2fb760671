//! Sets of objects: how they stand in the cluster, and applying those that are missing or differ.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, TryStreamExt, stream};

use crate::claim::Claim;
use crate::client::{Kubernetes, Mode};
use crate::error::KubeError;
use crate::mark::{self, Mark, Standing};
use crate::object::{Object, ObjectId};

/// Kinds of which a list of all would be large, or show secrets of others.
const HEAVY: &[&str] = &["ConfigMap", "CustomResourceDefinition", "Event", "Pod", "Secret"];
/// So many objects of such a kind are asked for one by one; for more, one list of names is cheaper.
const FEW: usize = 3;
/// How many questions of one survey are on their way at a time.
const AT_ONCE: usize = 16;

/// How a set of wanted objects stands in the cluster.
#[derive(Debug, Default)]
pub struct Survey {
    /// Not there.
    pub absent: Vec<ObjectId>,
    /// There and ours, but not as wanted; with why.
    pub differing: Vec<(ObjectId, String)>,
    /// There and not ours alone, with whose they seem to be.
    pub foreign: Vec<(ObjectId, Claim)>,
    /// There, ours and as wanted, as the server shows them.
    pub same: Vec<Object>,
    /// Those of `foreign`, as the server shows them.
    claimed: BTreeMap<ObjectId, Object>,
}

impl Survey {
    /// Whether nothing of the set is there.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.differing.is_empty() && self.foreign.is_empty() && self.same.is_empty()
    }

    /// Whether all of the set is there as wanted.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.absent.is_empty() && self.differing.is_empty() && self.foreign.is_empty()
    }

    /// What has to be applied.
    pub fn lacking(&self) -> impl Iterator<Item = &ObjectId> {
        self.absent.iter().chain(self.differing.iter().map(|(id, _)| id))
    }

    /// Leaves to Flux what Flux applies too: it counts as being there as wanted. Says how many objects these are.
    pub fn leave_to_flux(&mut self) -> usize {
        let foreign = std::mem::take(&mut self.foreign);
        let (left, foreign): (Vec<_>, Vec<_>) =
            foreign.into_iter().partition(|(_, claim)| claim.is_of_flux());
        self.foreign = foreign;
        self.same.extend(left.iter().filter_map(|(id, _)| self.claimed.remove(id)));
        left.len()
    }

    fn sort_in(&mut self, mark: &Mark, wanted: &Object, there: Option<Object>) {
        let Some(there) = there else {
            self.absent.push(wanted.id());
            return;
        };
        match mark.compare(wanted, &there) {
            Standing::Same => self.same.push(there),
            Standing::Differs(why) => self.differing.push((wanted.id(), why)),
            Standing::Foreign(claim) => {
                self.foreign.push((wanted.id(), claim));
                self.claimed.insert(wanted.id(), there);
            }
        }
    }
}

/// Where objects of one kind are.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Where {
    api_version: String,
    kind: String,
    namespace: Option<String>,
}

impl Where {
    fn of(object: &Object) -> Self {
        Self {
            api_version: object.api_version().to_owned(),
            kind: object.kind().to_owned(),
            namespace: object.namespace().map(str::to_owned),
        }
    }
}

/// The names that are taken somewhere.
type Names = BTreeMap<Where, BTreeSet<String>>;

fn is_heavy(object: &Object) -> bool {
    HEAVY.contains(&object.kind())
}

impl Kubernetes {
    /// Looks up every wanted object by one list per kind and namespace. Of kinds that may hold secrets or much data,
    /// only ours are listed; whether somebody else's are there under a wanted name is told by a list of names.
    ///
    /// # Errors
    /// If the server does not answer or refuses.
    pub async fn survey(&self, mark: &Mark, wanted: &[Object]) -> Result<Survey, KubeError> {
        let mut listed = self.listed(mark, wanted).await?;
        let mut survey = Survey::default();
        // In the order of the set, whatever comes from where.
        let there: Vec<(&Object, Option<Object>)> = wanted
            .iter()
            .map(|object| {
                let id = object.id();
                // What names no namespace but needs one is in `default`.
                let placed = id.namespace.clone().or_else(|| Some("default".to_owned()));
                let placed = ObjectId { namespace: placed, ..id.clone() };
                (object, listed.remove(&id).or_else(|| listed.remove(&placed)))
            })
            .collect();
        let names = self.names_of_missing(&there).await?;
        // The calls are made before they are polled: streams do not take closures over references well.
        let calls: Vec<_> =
            there.into_iter().map(|(object, there)| self.found(object, there, &names)).collect();
        let found: Vec<Option<Object>> =
            stream::iter(calls).buffered(AT_ONCE).try_collect().await?;
        for (object, there) in wanted.iter().zip(found) {
            survey.sort_in(mark, object, there);
        }
        Ok(survey)
    }

    /// The names that are taken, of each kind and namespace in which a list of ours lacks more than a few.
    async fn names_of_missing(
        &self,
        there: &[(&Object, Option<Object>)],
    ) -> Result<Names, KubeError> {
        let mut missing: BTreeMap<Where, usize> = BTreeMap::new();
        for (wanted, _) in
            there.iter().filter(|(wanted, there)| there.is_none() && is_heavy(wanted))
        {
            *missing.entry(Where::of(wanted)).or_default() += 1;
        }
        let mut names = Names::new();
        for (place, _) in missing.into_iter().filter(|(_, lacking)| *lacking > FEW) {
            let Where { api_version, kind, namespace } = &place;
            let taken = match self.names(api_version, kind, namespace.as_deref()).await {
                Err(error) if error.is_not_found() => BTreeSet::new(),
                taken => taken?,
            };
            names.insert(place, taken);
        }
        Ok(names)
    }

    /// What a list showed of an object, or what a get shows where the list left out what is not ours.
    async fn found(
        &self,
        wanted: &Object,
        listed: Option<Object>,
        names: &Names,
    ) -> Result<Option<Object>, KubeError> {
        if listed.is_some() || !is_heavy(wanted) {
            return Ok(listed);
        }
        match names.get(&Where::of(wanted)) {
            Some(taken) if !taken.contains(wanted.name()) => Ok(None),
            _ => self.get(&wanted.id()).await,
        }
    }

    async fn listed(
        &self,
        mark: &Mark,
        wanted: &[Object],
    ) -> Result<BTreeMap<ObjectId, Object>, KubeError> {
        let places: BTreeSet<_> =
            wanted.iter().map(|o| (o.api_version(), o.kind(), o.namespace())).collect();
        let ours =
            format!("{}={},{}={}", mark::CASTLE, mark.castle, mark::LAYER, mark.layer.as_str());
        let calls: Vec<_> = places
            .into_iter()
            .map(|(api_version, kind, namespace)| {
                let selector = if HEAVY.contains(&kind) { ours.as_str() } else { "" };
                self.listed_in(api_version, kind, namespace, selector)
            })
            .collect();
        let lists: Vec<Vec<Object>> = stream::iter(calls).buffered(AT_ONCE).try_collect().await?;
        Ok(lists.into_iter().flatten().map(|object| (object.id(), object)).collect())
    }

    /// The objects of a kind; none if there is no such kind.
    async fn listed_in(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Object>, KubeError> {
        match self.list(api_version, kind, namespace, selector).await {
            Ok(listing) => Ok(listing.items),
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Applies one marked object unless it is there already as wanted. Says whether anything was sent.
    ///
    /// # Errors
    /// If the server does not answer, refuses, or knows no such kind.
    pub async fn ensure(&self, mark: &Mark, wanted: &Object) -> Result<bool, KubeError> {
        if let Some(there) = self.get(&wanted.id()).await?
            && mark.compare(wanted, &there) == Standing::Same
        {
            return Ok(false);
        }
        self.apply(wanted, Mode::Real).await.map(|_| true)
    }
}
