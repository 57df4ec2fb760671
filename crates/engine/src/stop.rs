//! How a run is asked to end: once for "settle and stop", twice for "now".

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

/// A handle by which a signal handler asks a run to end.
#[derive(Clone, Default)]
pub struct Stop(Arc<Inner>);

#[derive(Default)]
struct Inner {
    asked: AtomicU8,
    changed: Notify,
}

impl Stop {
    /// Asks once more.
    pub fn ask(&self) {
        self.0.asked.store(self.times().saturating_add(1), Ordering::Relaxed);
        self.0.changed.notify_waiters();
    }

    /// How often it was asked.
    #[must_use]
    pub fn times(&self) -> u8 {
        self.0.asked.load(Ordering::Relaxed)
    }

    /// Resolves once it was asked at least so often.
    pub async fn asked(&self, times: u8) {
        loop {
            let changed = self.0.changed.notified();
            if self.times() >= times {
                return;
            }
            changed.await;
        }
    }
}
