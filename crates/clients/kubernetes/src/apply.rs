//! Sets of objects: how they stand in the cluster, and applying those that are missing or differ.

use std::collections::{BTreeMap, BTreeSet};

use crate::client::{Kubernetes, Mode};
use crate::error::KubeError;
use crate::mark::{self, Mark, Standing};
use crate::object::{Object, ObjectId};

/// Kinds of which a list of all would be large, or show secrets of others.
const HEAVY: &[&str] = &["ConfigMap", "Event", "Pod", "Secret"];

/// How a set of wanted objects stands in the cluster.
#[derive(Debug, Default)]
pub struct Survey {
    /// Not there.
    pub absent: Vec<ObjectId>,
    /// There and ours, but not as wanted.
    pub differing: Vec<ObjectId>,
    /// There and not ours, with whose they seem to be.
    pub foreign: Vec<(ObjectId, String)>,
    /// There, ours and as wanted, as the server shows them.
    pub same: Vec<Object>,
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

    fn sort_in(&mut self, mark: &Mark, wanted: &Object, there: Option<Object>) {
        let Some(there) = there else {
            self.absent.push(wanted.id());
            return;
        };
        match mark.compare(wanted, &there) {
            Standing::Same => self.same.push(there),
            Standing::Differs => self.differing.push(wanted.id()),
            Standing::Foreign(owner) => self.foreign.push((wanted.id(), owner)),
        }
    }
}

impl Kubernetes {
    /// Looks up every wanted object by one list per kind and namespace. Of kinds that may hold secrets or much data,
    /// only ours are listed, and one get follows for each that is not among them.
    ///
    /// # Errors
    /// If the server does not answer or refuses.
    pub async fn survey(&self, mark: &Mark, wanted: &[Object]) -> Result<Survey, KubeError> {
        let places: BTreeSet<_> =
            wanted.iter().map(|o| (o.api_version(), o.kind(), o.namespace())).collect();
        let ours = format!("{}={}", mark::CASTLE, mark.castle);
        let mut listed: BTreeMap<ObjectId, Object> = BTreeMap::new();
        for (api_version, kind, namespace) in places {
            let selector = if HEAVY.contains(&kind) { ours.as_str() } else { "" };
            match self.list(api_version, kind, namespace, selector).await {
                Ok(listing) => listed.extend(listing.items.into_iter().map(|o| (o.id(), o))),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        let mut survey = Survey::default();
        for object in wanted {
            let id = object.id();
            // What names no namespace but needs one is in `default`.
            let placed = id.namespace.clone().or_else(|| Some("default".to_owned()));
            let placed = ObjectId { namespace: placed, ..id.clone() };
            let there = match listed.remove(&id).or_else(|| listed.remove(&placed)) {
                None if HEAVY.contains(&object.kind()) => self.get(&id).await?,
                there => there,
            };
            survey.sort_in(mark, object, there);
        }
        Ok(survey)
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
