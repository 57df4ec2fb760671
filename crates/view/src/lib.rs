//! What a person reads, made from events and plans alone: no terminal, no files, no clock.
//!
//! [`Progress`] is the fold of the events of one run; every face renders it and nothing else.
//! [`plain`] gives a line for an event, [`screen`] the picture of a run that goes on, [`report`] the closing words, [`plan`], [`status`], [`why`], [`history`], [`secrets`] and [`graph`]
//! the answers of the commands of those names. [`timeline`] is a run in time, as data, for whoever draws it. Text from other systems is cleaned in [`Style`] before it is shown.

pub mod alike;
pub mod audit;
pub mod graph;
pub mod history;
pub mod live;
pub mod plain;
pub mod plan;
pub mod report;
pub mod screen;
pub mod secrets;
pub mod status;
pub mod timeline;
pub mod why;

mod critical_path;
mod progress;
mod style;
mod table;

pub use critical_path::{Path, critical_path, critical_path_so_far};
pub use progress::{LayerTally, Progress, StepProgress, StepStatus};
pub use style::{Line, Palette, Signs, Span, Style, Tone, clean, count, words};
pub use table::laid;

#[cfg(test)]
mod example;
