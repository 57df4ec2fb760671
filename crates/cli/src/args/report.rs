//! The command line of `castle report`.

use std::path::PathBuf;

use clap::Args;

/// Which run, and where its page goes.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReportArgs {
    /// The run, such as r0012-20260202 or 12 (default: the last one)
    pub(crate) run: Option<String>,
    /// Show it in this system's browser
    #[arg(long, conflicts_with = "out")]
    pub(crate) open: bool,
    /// Write it to this file, or to standard output with `-`, instead of the state folder
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}
