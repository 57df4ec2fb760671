//! The Kubernetes client: objects as plain data over `kube`, server-side apply, and a pure judge of readiness.
//!
//! Start at [`Kubernetes`] (the calls), [`manifest::parse`] (text into objects) and [`judge::judge`] (is it ready?).
//! This room knows objects and the API server. It knows no step and no layer; how long something may take
//! is the engine's business.

pub mod apply;
mod busy;
pub mod catalogue;
pub mod claim;
pub mod client;
pub mod error;
mod fields;
pub mod follow;
pub mod judge;
pub mod manifest;
pub mod mark;
pub mod object;
pub mod rank;
mod request;
pub mod scope;

pub use apply::Survey;
pub use claim::Claim;
pub use client::{KubeAccess, KubeEntry, Kubernetes, Listing, Mode, Seen, readyz};
pub use error::KubeError;
pub use follow::{Follow, Place};
pub use mark::{Mark, Standing};
pub use object::{Object, ObjectId};
