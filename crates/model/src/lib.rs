//! The words of the castle: names, spec, plan, events, verdicts, secrets. No I/O, no async, no vendor.
//!
//! Start at [`spec::Spec`] (what a user wants), [`step::StepDecl`] (one unit of work), [`plan::Plan`]
//! (what a run will do) and [`event::Event`] (what happened). Everything here is plain data: this room
//! must never read a file, a clock, the environment or the network.

pub mod address;
pub mod audit;
pub mod deadline;
pub mod digest;
pub mod event;
pub mod failure;
pub mod history;
pub mod lock;
pub mod name;
pub mod plan;
pub mod planted;
pub mod secret;
pub mod shell;
pub mod spec;
pub mod step;
pub mod suggest;
pub mod time;
pub mod verdict;

pub use address::{AddressRange, Subnet};
pub use audit::Audit;
pub use digest::DigestKey;
pub use event::{Event, EventKind};
pub use failure::{Class, Failure, Finding};
pub use history::PastRun;
pub use lock::Lock;
pub use name::{CastleName, Incarnation, LayerName, NodeName, RunId, StepId, VmId};
pub use plan::{Plan, PlannedStep, Verb};
pub use planted::{Bug, planted};
pub use secret::Secret;
pub use spec::Spec;
pub use step::{Change, Lane, StepDecl, UndoKind};
pub use verdict::{Observed, Verdict};
