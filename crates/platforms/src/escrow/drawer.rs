//! A keeper in memory for tests: it counts what it is asked, and somebody else can write to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use castle_model::{Failure, Incarnation, Secret};

use super::{Escrow, Keeper};

/// The keeper.
#[derive(Debug, Default)]
pub(crate) struct Drawer {
    kept: Mutex<BTreeMap<String, Secret>>,
    /// By key, how often it was written.
    pub(crate) written: Mutex<BTreeMap<String, u32>>,
}

impl Drawer {
    pub(crate) fn escrow(self: &Arc<Self>) -> Escrow {
        Escrow(self.clone())
    }

    /// What is kept under a key.
    pub(crate) fn get(&self, key: &str) -> Option<Secret> {
        self.kept.lock().unwrap().get(key).cloned()
    }

    /// Somebody writes to it.
    pub(crate) fn put(&self, key: &str, text: Secret) {
        self.kept.lock().unwrap().insert(key.to_owned(), text);
    }

    /// How often any entry was written.
    pub(crate) fn writes(&self) -> u32 {
        self.written.lock().unwrap().values().sum()
    }
}

#[async_trait]
impl Keeper for Drawer {
    fn place(&self) -> String {
        "a drawer".to_owned()
    }

    async fn kept(&self) -> Result<BTreeMap<String, Secret>, Failure> {
        self.kept_now().await
    }

    async fn kept_now(&self) -> Result<BTreeMap<String, Secret>, Failure> {
        Ok(self.kept.lock().unwrap().clone())
    }

    async fn write(&self, _life: &Incarnation, entries: &[(&str, &Secret)]) -> Result<(), Failure> {
        for (key, text) in entries {
            self.put(key, Secret::clone(text));
            *self.written.lock().unwrap().entry((*key).to_owned()).or_default() += 1;
        }
        Ok(())
    }

    async fn remove(&self, keys: &[&str]) -> Result<(), Failure> {
        self.kept.lock().unwrap().retain(|key, _| !keys.contains(&key.as_str()));
        Ok(())
    }
}
