//! The watchdog: a unit whose needs are met and that nobody looks at again is asked for, a few times at most.
//!
//! Flux looks again at a unit with unmet needs after its requeue interval. Where that is missed (a restart at the wrong
//! moment) the unit rests until its own interval, which may be an hour, with nothing failing. Times are our own: how
//! long *we* have seen a unit unchanged, so that the clocks of the cluster do not matter.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use castle_kubernetes::{Object, ObjectId};
use castle_platforms::cluster::Objects;
use tokio::time::Instant;

use super::units::{State, units};

/// The annotation by which Flux is asked to look.
pub(super) const REQUESTED: &str = "reconcile.fluxcd.io/requestedAt";

/// How long a unit may stay as it is: six times the requeue interval that castle sets.
const BOUND: Duration = Duration::from_secs(30);
/// How often one unit is asked for.
const MOST: u32 = 3;

/// What is known of units that are late.
#[derive(Default)]
pub(super) struct Watchdog(Mutex<BTreeMap<ObjectId, Late>>);

struct Late {
    /// What a look of the controller would change.
    seen: String,
    since: Instant,
    asked: u32,
}

impl Watchdog {
    /// Takes in a picture.
    pub(super) fn see(&self, there: &Objects, now: Instant) {
        let states = units(there);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|id, _| matches!(states.get(id), Some(State::Late(_))));
        for (id, state) in &states {
            let (State::Late(_), Some(unit)) = (state, there.get(id)) else { continue };
            if !is_idle(unit) {
                known.remove(id);
                continue;
            }
            let seen = traces(unit);
            let late = known.entry(id.clone()).or_insert_with(|| Late {
                seen: seen.clone(),
                since: now,
                asked: 0,
            });
            if late.seen != seen {
                late.seen = seen;
                late.since = now;
            }
        }
    }

    /// When the next unit is to be asked for; none if none is.
    pub(super) fn due(&self) -> Option<Instant> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.values().filter(|late| late.asked < MOST).map(|late| late.since + BOUND).min()
    }

    /// The units that are to be asked for now; each counts as asked for.
    pub(super) fn overdue(&self, now: Instant) -> Vec<ObjectId> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ids = Vec::new();
        for (id, late) in known.iter_mut() {
            if late.asked < MOST && late.since + BOUND <= now {
                late.asked += 1;
                late.since = now;
                ids.push(id.clone());
            }
        }
        ids
    }
}

/// Whether the controller is done with a unit: it has seen its last change, and is not at work on it.
fn is_idle(unit: &Object) -> bool {
    let generation = unit.number("/metadata/generation");
    // Flux notes the generation of a success in the status, and that of every look in the condition.
    let looked = unit.condition("Ready").and_then(|ready| ready.observed_generation());
    let observed = looked.unwrap_or_else(|| unit.number("/status/observedGeneration"));
    let works = |kind: &str| {
        unit.condition(kind).is_some_and(|c| c.reason() == "Progressing" && c.status() != "False")
    };
    observed >= generation && !works("Ready") && !works("Reconciling")
}

/// What a look of the controller would change.
fn traces(unit: &Object) -> String {
    let text = |at: &str| unit.text(at).unwrap_or_default().to_owned();
    let ready = unit.condition("Ready").map(|ready| ready.words()).unwrap_or_default();
    format!(
        "{} {} {} {ready}",
        text("/status/lastAttemptedRevision"),
        text("/status/lastHandledReconcileAt"),
        unit.number("/status/observedGeneration")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::NAMESPACE;
    use super::super::revision::tests::{holding, picture, unit};
    use super::*;

    const NOW: &str = "main@sha1:2";

    fn tree(change: impl FnOnce(&mut Value)) -> Objects {
        let git = json!({"kind": "GitRepository", "name": NAMESPACE});
        let mut late = unit("late", &git, "");
        late["spec"]["dependsOn"] = json!([{"name": "first"}]);
        late["status"]["conditions"][0] = json!({"type": "Ready", "status": "False",
            "reason": "DependencyNotReady", "message": "dependency 'flux-system/first' is not ready"});
        change(&mut late);
        picture(vec![unit("first", &git, NOW), late, holding("GitRepository", NAMESPACE, NOW)])
    }

    fn after(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_unit_that_nobody_looks_at_is_asked_for_a_few_times() {
        let (dog, start) = (Watchdog::default(), Instant::now());
        assert_eq!(dog.due(), None);
        dog.see(&tree(|_| ()), start);
        assert_eq!(dog.due(), Some(start + BOUND));
        assert_eq!(dog.overdue(start + after(29)), []);
        for round in 1..=3 {
            let now = start + BOUND * round;
            dog.see(&tree(|_| ()), now);
            assert_eq!(dog.overdue(now).len(), 1, "round {round}");
            assert_eq!(dog.overdue(now), [], "once per bound");
        }
        assert_eq!(dog.due(), None, "never more often");
        assert_eq!(dog.overdue(start + after(3600)), []);
    }

    #[test]
    fn a_unit_that_was_looked_at_gets_its_time_again() {
        let (dog, start) = (Watchdog::default(), Instant::now());
        dog.see(&tree(|_| ()), start);
        let looked = |late: &mut Value| late["status"]["lastHandledReconcileAt"] = "1".into();
        dog.see(&tree(looked), start + after(20));
        assert_eq!(dog.overdue(start + after(40)), []);
        assert_eq!(dog.overdue(start + after(50)).len(), 1);
    }

    #[test]
    fn units_that_rest_work_or_wait_rightly_are_left_alone() {
        type Change = fn(&mut Value);
        let cases: [(&str, Change); 5] = [
            ("suspended", |late| late["spec"]["suspend"] = true.into()),
            ("just changed", |late| late["metadata"]["generation"] = 2.into()),
            ("at work", |late| {
                late["status"]["conditions"][0]["reason"] = "Progressing".into();
                late["status"]["conditions"][0]["status"] = "Unknown".into();
            }),
            ("waits for one that is not ready", |late| {
                late["spec"]["dependsOn"] = json!([{"name": "first"}, {"name": "late"}]);
            }),
            ("waits for one that is not there", |late| {
                late["spec"]["dependsOn"] = json!([{"name": "first", "namespace": "away"}]);
            }),
        ];
        for (case, change) in cases {
            let (dog, start) = (Watchdog::default(), Instant::now());
            dog.see(&tree(change), start);
            assert_eq!(dog.overdue(start + after(60)), [], "{case}");
        }
    }
}
