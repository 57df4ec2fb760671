//! The steps of the layers that castle brings along.
//!
//! [`secrets`] comes first and reads what all others need.

pub mod secrets;
