//! One number for a whole run: what was asked on the wire and what happened, in order, without key material.

use castle_model::{Event, EventKind};
use sha2::{Digest, Sha256};

/// Folds the events of a run into a hash.
#[derive(Default)]
pub(crate) struct Trace(Sha256);

impl Trace {
    /// Takes in one event: when, what, to which step, with which verb or change. Never its words, which may
    /// hold what keys and clocks decide.
    pub(crate) fn hear(&mut self, event: &Event) {
        let value = serde_json::to_value(event).unwrap_or_default();
        let field = |name: &str| value.get(name).and_then(|v| v.as_str()).unwrap_or("").to_owned();
        let started = matches!(event.kind, EventKind::RunStarted { .. });
        let line = format!(
            "{} {} {} {} {} {started}\n",
            event.at.0,
            field("event"),
            field("step"),
            field("verb"),
            field("change")
        );
        self.0.update(line.as_bytes());
    }

    /// The hash of the events together with that of the requests.
    pub(crate) fn seal(&self, requests: &str) -> String {
        let mut both = self.0.clone();
        both.update(requests.as_bytes());
        hex::encode(both.finalize())
    }
}
