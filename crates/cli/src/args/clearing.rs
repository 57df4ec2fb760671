//! Arguments of the commands that look for what is left, and remove it.

use clap::Args;

use super::{Pace, Run};
use crate::commands::run::Act;
use crate::patience::Patience;

/// What is looked for.
#[derive(Debug, Clone, Args)]
pub(crate) struct AuditArgs {
    /// Take the castle for one that should be gone: whatever is there of it is left over
    #[arg(long)]
    pub(crate) gone: bool,
}

/// What is razed.
#[derive(Debug, Clone, Args)]
pub(crate) struct DownArgs {
    #[command(flatten)]
    run: Run,
    /// Only this layer, with what it made in the cluster; what stands on it is named first
    #[arg(long, value_name = "LAYER", conflicts_with = "detach")]
    layer: Option<String>,
}

impl DownArgs {
    /// What is to be done, and how.
    pub(crate) fn act(&self) -> (Act, Run) {
        let act = if self.layer.is_some() { Act::Layer } else { Act::Down };
        (act, Run { layer: self.layer.clone(), ..self.run.clone() })
    }
}

/// What is removed in an emergency.
#[derive(Debug, Clone, Args)]
pub(crate) struct WipeArgs {
    #[command(flatten)]
    pace: Pace,
    /// Do not ask before removing the guests
    #[arg(long)]
    yes: bool,
    /// Wait for whoever works on this castle instead of giving up at once, and at most so long (default: 10m)
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "10m")]
    wait: Option<Patience>,
    /// Remove this guest too, although nothing proves it to be the castle's; once for each
    #[arg(long, value_name = "VMID")]
    force_foreign: Vec<u32>,
}

impl WipeArgs {
    /// How it is to be done.
    pub(crate) fn run(&self) -> Run {
        Run {
            pace: self.pace.clone(),
            yes: self.yes,
            detach: false,
            wait: self.wait,
            layer: None,
            force_foreign: self.force_foreign.clone(),
        }
    }
}
