//! A picture of several kinds that watches keep current: listed once, then moved on event by event.

use std::collections::BTreeMap;
use std::pin::Pin;

use futures::stream::SelectAll;
use futures::{Stream, StreamExt};

use crate::client::{Kubernetes, Seen};
use crate::error::KubeError;
use crate::object::{Object, ObjectId};

/// Which objects a picture shows: those of a kind, in one namespace or all, that a label selector matches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace; none for all.
    pub namespace: Option<String>,
    /// The label selector; empty for all.
    pub selector: String,
}

impl Place {
    /// All objects of a kind in a namespace.
    #[must_use]
    pub fn within(api_version: &str, kind: &str, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..Self::everywhere(api_version, kind) }
    }

    /// All objects of a kind.
    #[must_use]
    pub fn everywhere(api_version: &str, kind: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            selector: String::new(),
        }
    }

    /// Only those that a label selector matches.
    #[must_use]
    pub fn only(mut self, selector: impl Into<String>) -> Self {
        self.selector = selector.into();
        self
    }

    fn holds(&self, id: &ObjectId) -> bool {
        id.kind == self.kind
            && id.api_version == self.api_version
            && (self.namespace.is_none() || self.namespace == id.namespace)
    }
}

type Events = Pin<Box<dyn Stream<Item = (usize, Event)> + Send>>;

/// What the stream of one place brings: an event, or its end.
type Event = Option<Result<Seen, KubeError>>;

/// The picture.
pub struct Follow {
    client: Kubernetes,
    places: Vec<Place>,
    objects: BTreeMap<ObjectId, Object>,
    events: SelectAll<Events>,
}

impl Kubernetes {
    /// Begins to follow some places.
    ///
    /// # Errors
    /// If the server does not answer or refuses, or knows no such kind.
    pub async fn follow(&self, places: Vec<Place>) -> Result<Follow, KubeError> {
        let mut follow = Follow {
            client: self.clone(),
            places,
            objects: BTreeMap::new(),
            events: SelectAll::new(),
        };
        for index in 0..follow.places.len() {
            follow.begin(index).await?;
        }
        Ok(follow)
    }
}

impl Follow {
    /// The objects as last seen.
    #[must_use]
    pub fn objects(&self) -> &BTreeMap<ObjectId, Object> {
        &self.objects
    }

    /// Waits until an object has changed, come or gone. A watch that ended, or whose place is too old, begins anew.
    ///
    /// # Errors
    /// If the server does not answer or refuses; then the picture is to be made anew.
    pub async fn changed(&mut self) -> Result<(), KubeError> {
        match self.events.next().await {
            Some((_, Some(Ok(Seen::There(object))))) => {
                self.objects.insert(object.id(), object);
                Ok(())
            }
            Some((_, Some(Ok(Seen::Gone(object))))) => {
                self.objects.remove(&object.id());
                Ok(())
            }
            Some((index, Some(Err(error)))) if error.is_too_old() => self.begin(index).await,
            Some((_, Some(Err(error)))) => Err(error),
            Some((index, None)) => self.begin(index).await,
            None => std::future::pending().await,
        }
    }

    /// Lists a place and watches it from there.
    async fn begin(&mut self, index: usize) -> Result<(), KubeError> {
        let place = self.places[index].clone();
        let namespace = place.namespace.as_deref();
        let listing =
            self.client.list(&place.api_version, &place.kind, namespace, &place.selector).await?;
        self.objects.retain(|id, _| !place.holds(id));
        self.objects.extend(listing.items.into_iter().map(|object| (object.id(), object)));
        let watch = self.client.watch(&place, &listing.resource_version).await?;
        let end = futures::stream::once(std::future::ready(None));
        let events = watch.map(Some).chain(end).map(move |event| (index, event));
        self.events.push(Box::pin(events));
        Ok(())
    }
}
