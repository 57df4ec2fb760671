//! The engine: which step starts when, what is written before it acts, how waiting and failing work.
//!
//! Start at [`step::Step`] (the contract), then [`scheduler::Scheduler`] (pure: what may start),
//! [`runner`] (the loop around it, sole owner of the journals), [`attempt`] (one step from look to proof)
//! and [`wait`] (the one place that waits). Knows no vendor, no client, no layer by name.

mod attempt;
mod context;
pub mod decide;
pub mod graph;
pub mod outputs;
pub mod runner;
pub mod scheduler;
pub mod step;
pub mod stop;
pub mod survey;
pub mod wait;
pub mod whole;

pub use context::Context;
pub use graph::Graph;
pub use outputs::{Key, Outputs};
pub use runner::{Report, RunError, Runner};
pub use step::{Acted, Step};
pub use stop::Stop;
pub use wait::Pace;
pub use whole::{Whole, WholeError};
