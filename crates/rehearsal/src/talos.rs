//! The emulated talos. (Being built.)

use serde::{Deserialize, Serialize};

/// What is due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Effect {}

/// A call to a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Call {}

impl Call {
    /// Whether the call can change the machine, so that it must be logged; it is counted if it succeeds.
    #[must_use]
    pub fn mutates(&self) -> bool {
        match *self {}
    }
}

/// Its answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {}

/// Why not.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {}
