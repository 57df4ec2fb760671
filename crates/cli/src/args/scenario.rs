//! Arguments of `castle rehearse scenario`.

use clap::Args;

use super::Speed;

/// Which story, and how fast.
#[derive(Debug, Clone, Args)]
pub(crate) struct ScenarioArgs {
    /// The story: the name of a built-in one, or the path of a file of your own
    #[arg(required_unless_present_any = ["list", "page"])]
    pub(crate) story: Option<String>,
    /// List the built-in stories
    #[arg(long)]
    pub(crate) list: bool,
    /// Print the page that tells of all of them, as Markdown
    #[arg(long, hide = true)]
    pub(crate) page: bool,
    /// How many times faster than real time it is played, or `max` (default: max)
    #[arg(long, value_name = "N|max")]
    pub(crate) speed: Option<Speed>,
    /// The seed that its datacenter draws its durations from
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub(crate) seed: u64,
}
