//! The durable memory of runs: one append-only journal per layer, one for the runs, in a locked folder.
//!
//! Start at [`StateRoot`] (the folder, its lock, its modes), then [`Journals`] (append, commit, records),
//! then [`transition`] (the one function that says what a record means, live and in replay).
//!
//! ```text
//!   append(record) --transition--> fold in memory, line in a buffer
//!   commit()       --write, fsync--> every dirty file; only now may the announced act begin
//!   open()         --read, check sums, chain, heads--> the same fold by the same transition
//! ```
//!
//! Beside them, and less than they are: [`Runs`], the events and times of past runs, which nothing acts on.
//!
//! This room must never know a vendor, hold a secret, read a clock or guess over a damaged entry.
//! Every file it writes is described in `docs/reference/state.md`.

mod aside;
mod audit;
mod disk;
mod entry;
mod error;
mod events;
mod history;
mod holder;
mod journal_file;
mod journals;
mod memory;
mod pages;
mod place;
mod reading;
mod rebirth;
mod record;
mod records;
mod replay;
mod root;
mod state;

pub use aside::SetAside;
pub use disk::{Disk, Taken};
pub use entry::{Entry, Head, SCHEMA};
pub use error::{Corruption, StateError, Torn};
pub use events::{EventFile, EventReader, RUNS_KEPT, Runs, number};
pub use history::History;
pub use holder::{Holder, Presence};
pub use journals::{Journals, Start};
pub use memory::{DiskFault, MemoryDisk};
pub use rebirth::{Cycle, HalfEnd, Rebirth, RebirthEnd, RebirthRecord};
pub use record::Record;
pub use records::{INCARNATION_LAYER, Records, RunRecord};
pub use root::{Peek, StateRoot};
pub use state::{Illegal, StepState, transition};

#[cfg(test)]
mod tests;
