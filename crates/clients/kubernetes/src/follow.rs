//! A picture of several kinds that watches keep current: listed once, then moved on event by event.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::time::Duration;

use futures::stream::{self, SelectAll};
use futures::{Stream, StreamExt};
use tokio::time::{Instant, timeout};

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
}

/// How long a watch may say nothing at all. Servers send a bookmark about every minute, so that by then two are overdue
/// and the stream is as good as dead, though its connection may live.
const SILENCE: Duration = Duration::from_secs(150);
/// A watch that ends so soon and has said nothing was refused in effect; whoever waits has to pause.
const TOO_SOON: Duration = Duration::from_secs(1);

type Events = Pin<Box<dyn Stream<Item = (usize, Event)> + Send>>;

/// What the stream of one place brings.
enum Event {
    Seen(Result<Seen, KubeError>),
    /// It has ended, or has been silent for too long; with whether it ended as soon as it began.
    Over {
        at_once: bool,
    },
}

/// The picture.
pub struct Follow {
    client: Kubernetes,
    places: Vec<Place>,
    objects: BTreeMap<ObjectId, Object>,
    /// Which objects each place shows: two places may show the same one.
    shown: Vec<BTreeSet<ObjectId>>,
    events: SelectAll<Events>,
    /// Places whose watch is over. Whoever waits may be dropped while one is begun anew: it is then still here.
    over: BTreeSet<usize>,
}

impl Kubernetes {
    /// Begins to follow some places: one list and one watch for each kind and namespace. Every picture begins with lists
    /// of its own, since only they are sure to show what was written before it began.
    ///
    /// # Errors
    /// If the server does not answer or refuses, or knows no such kind.
    pub async fn follow(&self, places: Vec<Place>) -> Result<Follow, KubeError> {
        let places = without_doubles(places);
        let mut follow = Follow {
            client: self.clone(),
            shown: vec![BTreeSet::new(); places.len()],
            places,
            objects: BTreeMap::new(),
            events: SelectAll::new(),
            over: BTreeSet::new(),
        };
        for index in 0..follow.places.len() {
            follow.begin(index).await?;
        }
        Ok(follow)
    }
}

impl Follow {
    /// The objects as last seen, without what is heavy in them and no judge asks for.
    #[must_use]
    pub fn objects(&self) -> &BTreeMap<ObjectId, Object> {
        &self.objects
    }

    /// Waits until an object has changed, come or gone. A watch that ended, fell silent, or whose place is too old,
    /// begins anew.
    ///
    /// # Errors
    /// If the server does not answer or refuses; then the picture is to be made anew.
    pub async fn changed(&mut self) -> Result<(), KubeError> {
        loop {
            if let Some(index) = self.over.first().copied() {
                return self.begin(index).await;
            }
            let Some((index, event)) = self.events.next().await else {
                return std::future::pending().await;
            };
            match event {
                Event::Seen(Ok(Seen::There(object))) => {
                    self.show(index, object);
                    return Ok(());
                }
                Event::Seen(Ok(Seen::Gone(object))) => {
                    self.hide(index, &object.id());
                    return Ok(());
                }
                Event::Seen(Ok(Seen::Bookmark)) => {}
                Event::Seen(Err(error)) if !error.is_too_old() => return Err(error),
                Event::Seen(Err(_)) | Event::Over { at_once: false } => {
                    self.over.insert(index);
                }
                Event::Over { at_once: true } => {
                    let doing = format!("watch every {}", self.places[index].kind);
                    return Err(KubeError::Ended { doing });
                }
            }
        }
    }

    /// Lists a place and watches it from there.
    async fn begin(&mut self, index: usize) -> Result<(), KubeError> {
        let place = self.places[index].clone();
        let namespace = place.namespace.as_deref();
        let listing =
            self.client.list(&place.api_version, &place.kind, namespace, &place.selector).await?;
        let watch = self.client.watch(&place, &listing.resource_version).await?;
        let now: BTreeSet<ObjectId> = listing.items.iter().map(Object::id).collect();
        let before = std::mem::replace(&mut self.shown[index], now.clone());
        for id in before.difference(&now) {
            self.hide(index, id);
        }
        for object in listing.items {
            self.show(index, object);
        }
        self.events.push(Box::pin(events(watch).map(move |event| (index, event))));
        self.over.remove(&index);
        Ok(())
    }

    fn show(&mut self, index: usize, mut object: Object) {
        object.lighten();
        self.shown[index].insert(object.id());
        self.objects.insert(object.id(), object);
    }

    /// It is no longer in this place: it may still be in another.
    fn hide(&mut self, index: usize, id: &ObjectId) {
        self.shown[index].remove(id);
        if !self.shown.iter().any(|shown| shown.contains(id)) {
            self.objects.remove(id);
        }
    }
}

/// The events of a watch until it ends or has been silent for too long.
fn events(
    watch: impl Stream<Item = Result<Seen, KubeError>> + Send + 'static,
) -> impl Stream<Item = Event> + Send {
    let start = (Instant::now(), false);
    stream::unfold((Some(Box::pin(watch)), start), |(watch, (began, heard))| async move {
        let mut watch = watch?;
        match timeout(SILENCE, watch.next()).await {
            Ok(Some(seen)) => Some((Event::Seen(seen), (Some(watch), (began, true)))),
            Ok(None) => {
                let at_once = !heard && began.elapsed() < TOO_SOON;
                Some((Event::Over { at_once }, (None, (began, heard))))
            }
            Err(_) => Some((Event::Over { at_once: false }, (None, (began, heard)))),
        }
    })
}

/// The places without those that another shows anyway: one watch for each kind and namespace is enough.
fn without_doubles(places: Vec<Place>) -> Vec<Place> {
    let places: BTreeSet<Place> = places.into_iter().collect();
    let covers = |wide: &Place, narrow: &Place| {
        wide != narrow
            && (&wide.api_version, &wide.kind) == (&narrow.api_version, &narrow.kind)
            && (wide.namespace.is_none() || wide.namespace == narrow.namespace)
            && (wide.selector.is_empty() || wide.selector == narrow.selector)
    };
    places.iter().filter(|place| !places.iter().any(|wide| covers(wide, place))).cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(name: &str) -> Seen {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}});
        Seen::There(Object::new(pod).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_misses_its_bookmarks_is_over_and_one_that_sends_them_is_not() {
        let start = Instant::now();
        let silent = stream::iter([Ok(seen("a"))]).chain(stream::pending());
        let mut events_of_silent = Box::pin(events(silent));
        assert!(matches!(events_of_silent.next().await, Some(Event::Seen(Ok(Seen::There(_))))));
        let end = events_of_silent.next().await;
        assert!(matches!(end, Some(Event::Over { at_once: false })));
        assert_eq!(start.elapsed(), SILENCE);
        assert!(events_of_silent.next().await.is_none());

        let minute = || timeout(Duration::from_mins(1), std::future::pending::<()>());
        let marked = stream::unfold(0, move |sent| async move {
            minute().await.ok();
            (sent < 10).then_some((Ok(Seen::Bookmark), sent + 1))
        });
        let start = Instant::now();
        let heard: Vec<Event> = events(marked).collect().await;
        assert_eq!(heard.len(), 11, "ten bookmarks and the end");
        assert_eq!(start.elapsed(), Duration::from_mins(11));
    }

    #[test]
    fn places_that_another_shows_anyway_are_not_watched() {
        let all = Place::everywhere("v1", "Pod");
        let here = Place::within("v1", "Pod", "a");
        let some = here.clone().only("x=1");
        let kept = |places: &[&Place]| without_doubles(places.iter().copied().cloned().collect());
        assert_eq!(kept(&[&here, &some, &here]), std::slice::from_ref(&here));
        assert_eq!(kept(&[&some, &all, &here]), std::slice::from_ref(&all));
        let other = Place::within("v1", "Pod", "a").only("x=2");
        assert_eq!(kept(&[&some, &other]).len(), 2);
        assert_eq!(kept(&[&all.only("x=1"), &some]).len(), 1);
        assert_eq!(kept(&[&here, &Place::within("v1", "Service", "a")]).len(), 2);
    }
}
