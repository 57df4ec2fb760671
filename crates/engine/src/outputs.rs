//! What steps hand to the steps that need them: typed, in memory only, so that secrets may be among it.

use std::any::Any;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use castle_model::{Failure, StepId};

/// Names one output and its type. Make it a constant beside the step that gives it.
///
/// ```
/// use castle_engine::outputs::{Key, Outputs};
/// const ADDRESS: Key<String> = Key::new("address");
/// let outputs = Outputs::default();
/// outputs.put(&ADDRESS, "10.0.0.1".to_owned());
/// assert_eq!(*outputs.get(&ADDRESS).unwrap(), "10.0.0.1");
/// ```
pub struct Key<T> {
    name: &'static str,
    kind: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    /// A key with this name; names are unique across the castle.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, kind: PhantomData }
    }
}

/// The outputs of a run.
#[derive(Default)]
pub struct Outputs {
    values: Mutex<BTreeMap<String, Arc<dyn Any + Send + Sync>>>,
    /// What steps wanted a person to know when they were looked at before the plan.
    notices: Mutex<BTreeMap<StepId, Vec<String>>>,
    /// What looks taught, to be journaled where a step is left as it is: also those before the plan, since such a step is
    /// not looked at again.
    learned: Mutex<BTreeMap<StepId, BTreeMap<String, String>>>,
    /// What steps found to be somebody else's by now, and left so.
    left: Mutex<Vec<Left>>,
    /// Why steps that are looked at before the plan wait as long as they do.
    waits: Mutex<BTreeMap<StepId, String>>,
}

/// Something that is not as castle would have it and is left so, because it is somebody else's by now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The step that found it.
    pub step: StepId,
    /// Whose it is.
    pub owner: String,
    /// In what it differs.
    pub what: String,
    /// What a person was told of it.
    pub note: String,
}

impl Outputs {
    /// Keeps what a look taught.
    pub(crate) fn learn(&self, step: &StepId, key: &str, value: String) {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.entry(step.clone()).or_default().insert(key.to_owned(), value);
    }

    /// What looks at one step taught.
    pub(crate) fn learned(&self, step: &StepId) -> BTreeMap<String, String> {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.get(step).cloned().unwrap_or_default()
    }

    /// Keeps what is left to somebody else.
    pub(crate) fn leave(&self, found: Left) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if !left.contains(&found) {
            left.push(found);
        }
    }

    /// What steps found to be somebody else's by now, in the order of their names.
    pub fn left(&self) -> Vec<Left> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner).clone();
        left.sort_by(|one, other| (&one.step, &one.what).cmp(&(&other.step, &other.what)));
        left
    }

    /// Keeps what a step wants a person to know until the run comes to that step.
    pub(crate) fn note(&self, step: StepId, text: String) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        let of_step = notices.entry(step).or_default();
        if !of_step.contains(&text) {
            of_step.push(text);
        }
    }

    /// Sets why a step waits; none if it does not any more.
    pub(crate) fn waiting(&self, step: &StepId, why: Option<String>) {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        match why {
            Some(why) => waits.insert(step.clone(), why),
            None => waits.remove(step),
        };
    }

    /// Why steps that are looked at before the plan wait at this moment, because somebody asked for it.
    pub fn waits(&self) -> Vec<String> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Takes what was kept for one step.
    pub(crate) fn noted(&self, step: &StepId) -> Vec<String> {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        notices.remove(step).unwrap_or_default()
    }

    /// Takes everything that steps wanted a person to know when they were looked at, where no run follows.
    pub fn take_notices(&self) -> Vec<String> {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *notices).into_values().flatten().collect()
    }

    /// Gives a value to those who come after. A later value replaces an earlier one.
    pub fn put<T: Send + Sync + 'static>(&self, key: &Key<T>, value: T) {
        self.put_named(key.name.to_owned(), value);
    }

    /// Gives a value that exists once per object, such as per node.
    pub fn put_of<T: Send + Sync + 'static>(&self, key: &Key<T>, object: &str, value: T) {
        self.put_named(format!("{}/{object}", key.name), value);
    }

    /// Takes a value that a needed step gave.
    ///
    /// # Errors
    /// A bug: no step that runs before this one gives it.
    pub fn get<T: Send + Sync + 'static>(&self, key: &Key<T>) -> Result<Arc<T>, Failure> {
        self.get_named(key.name)
    }

    /// Takes a value that exists once per object.
    ///
    /// # Errors
    /// A bug: no step that runs before this one gives it.
    pub fn get_of<T: Send + Sync + 'static>(
        &self,
        key: &Key<T>,
        object: &str,
    ) -> Result<Arc<T>, Failure> {
        self.get_named(&format!("{}/{object}", key.name))
    }

    fn put_named<T: Send + Sync + 'static>(&self, name: String, value: T) {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).insert(name, Arc::new(value));
    }

    fn get_named<T: Send + Sync + 'static>(&self, name: &str) -> Result<Arc<T>, Failure> {
        let found = self.values.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        found.and_then(|value| value.downcast::<T>().ok()).ok_or_else(|| {
            Failure::bug(format!("take the output `{name}`"), "no earlier step gave it")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: Key<u32> = Key::new("count");

    #[test]
    fn a_missing_output_is_a_bug_and_says_its_name() {
        let failure = Outputs::default().get(&COUNT).unwrap_err();
        assert_eq!(failure.class, castle_model::Class::Bug);
        assert!(failure.what.contains("count"));
    }

    #[test]
    fn objects_have_values_of_their_own() {
        let outputs = Outputs::default();
        outputs.put_of(&COUNT, "a", 1);
        outputs.put_of(&COUNT, "b", 2);
        assert_eq!(
            (*outputs.get_of(&COUNT, "a").unwrap(), *outputs.get_of(&COUNT, "b").unwrap()),
            (1, 2)
        );
        assert!(outputs.get(&COUNT).is_err());
    }
}
