//! The proof that castle comes back from anything: crashes at every call and every write, and seeds full of surprises.
//!
//! A crash leaves two things: the world and the disk. Both are data here, so a crash is a copy of the two taken at one
//! moment of a run ([`point`]), and the run after it is a new process over the copy. [`matrix`] takes a copy at every
//! moment of a run; [`seeds`] plays whole lives of castles with faults, crashes and neighbours drawn from a number. What
//! must hold afterwards is in [`check`], one checker for each law. [`trial`] plays short lives that somebody wrote down, with
//! laws that watch every moment; `planted` breaks castle on purpose and plays the trial that has to find it.
//!
//! ```text
//!  Stand { world, disk } --castle::run--> Run { events, requests, Stand after }
//!        |                      |
//!        |                      +--at each moment--> Fork { Point, Stand } --castle::run--> judged by check
//! ```
//! Nothing of this room is in the binary. It must never know what castle thinks of the world: it asks the datacenter.

pub mod asked;
pub mod castle;
pub mod check;
mod disk;
pub mod matrix;
#[cfg(debug_assertions)]
pub mod planted;
pub mod point;
pub mod seeds;
pub mod setting;
pub mod trial;

pub use castle::{Command, Run, Stand};
pub use check::Violation;
pub use matrix::{Act, Matrix, matrix, point_of};
pub use seeds::{Almanac, End, Life, live, live_watched};
pub use setting::{Setting, Shape};
