//! The emulated talos. (Being built.)

use serde::{Deserialize, Serialize};

/// What is due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Effect {}
