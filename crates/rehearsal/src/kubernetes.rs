//! The emulated kubernetes. (Being built.)

use serde::{Deserialize, Serialize};

/// What is due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Effect {}

/// Where a watch stands.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchCursor {}
