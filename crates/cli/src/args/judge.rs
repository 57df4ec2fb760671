//! The arguments of `castle judge`.

use std::path::PathBuf;

use clap::Args;

/// Whose readiness.
#[derive(Debug, Clone, Args)]
pub(crate) struct JudgeArgs {
    /// YAML or JSON with objects as the cluster shows them, lists too; `-` reads standard input
    #[arg(short, long, required = true, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}
