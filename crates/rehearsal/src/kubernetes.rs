//! The emulated kubernetes. (Being built: whoever merges takes the other side's file.)

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::turn::{HttpCall, HttpReply, Neighbours, Signal, Turn};

/// What is due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Effect {}

/// Where a watch stands.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchCursor {}

/// The cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Kubernetes {}

impl Kubernetes {
    /// Hears of machines.
    pub fn heard(&mut self, _turn: &mut Turn<'_>, _signal: &Signal) {}

    /// Lets what is due happen.
    pub fn fire(&mut self, _turn: &mut Turn<'_>, effect: Effect, _: &dyn Neighbours) {
        match effect {}
    }

    /// Answers a request.
    pub fn call(
        &mut self,
        _turn: &mut Turn<'_>,
        _call: &HttpCall,
        _: &dyn Neighbours,
    ) -> HttpReply {
        HttpReply::empty(503)
    }

    /// The lines of a watch.
    #[must_use]
    pub fn watch_lines(&self, _cursor: &mut WatchCursor) -> Option<Vec<Bytes>> {
        None
    }

    /// The nodes, and whether each is Ready.
    pub fn node_names(&self) -> impl Iterator<Item = (&str, bool)> {
        std::iter::empty()
    }
}
