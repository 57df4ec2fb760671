//! Arguments of the commands that look for what is left, and remove it.

use clap::Args;

use super::Pace;

/// What is looked for.
#[derive(Debug, Clone, Args)]
pub(crate) struct AuditArgs {
    /// Take the castle for one that should be gone: whatever is there of it is left over
    #[arg(long)]
    pub(crate) gone: bool,
}

/// What is removed in an emergency.
#[derive(Debug, Clone, Args)]
pub(crate) struct WipeArgs {
    #[command(flatten)]
    pub(crate) pace: Pace,
    /// Do not ask before removing what the list shows
    #[arg(long)]
    pub(crate) yes: bool,
    /// Remove this guest too, although nothing proves it to be the castle's; once for each
    #[arg(long, value_name = "VMID")]
    pub(crate) force_foreign: Vec<u32>,
}
