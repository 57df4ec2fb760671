//! Sets of objects: how they stand in the cluster, and applying those that are missing or differ.

use std::collections::{BTreeMap, BTreeSet};

use crate::client::{Kubernetes, Mode};
use crate::error::KubeError;
use crate::mark::{self, Mark, Standing};
use crate::object::{Object, ObjectId};

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
    /// Looks up every wanted object: one list of ours per kind and namespace, and one get for each that is not in it.
    ///
    /// # Errors
    /// If the server does not answer or refuses.
    pub async fn survey(&self, mark: &Mark, wanted: &[Object]) -> Result<Survey, KubeError> {
        let places: BTreeSet<_> =
            wanted.iter().map(|o| (o.api_version(), o.kind(), o.namespace())).collect();
        let selector = format!("{}={}", mark::CASTLE, mark.castle);
        let mut ours: BTreeMap<ObjectId, Object> = BTreeMap::new();
        let mut unknown = BTreeSet::new();
        for (api_version, kind, namespace) in places {
            match self.list(api_version, kind, namespace, &selector).await {
                Ok(listing) => ours.extend(listing.items.into_iter().map(|o| (o.id(), o))),
                Err(error) if error.is_not_found() => {
                    unknown.insert((api_version, kind));
                }
                Err(error) => return Err(error),
            }
        }
        let mut survey = Survey::default();
        for object in wanted {
            let there = match ours.remove(&object.id()) {
                Some(there) => Some(there),
                None if unknown.contains(&(object.api_version(), object.kind())) => None,
                None => self.get(&object.id()).await?,
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
