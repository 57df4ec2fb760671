//! The command line: every command, flag and its help text.

mod clearing;
mod judge;
mod lock;
mod report;
mod scenario;
mod secrets;
mod serve;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::clearing::{AuditArgs, DownArgs, WipeArgs};
pub(crate) use self::judge::JudgeArgs;
pub(crate) use self::lock::LockArgs;
pub(crate) use self::report::ReportArgs;
pub(crate) use self::scenario::ScenarioArgs;
pub(crate) use self::secrets::{
    Ask, Decrypt, Encrypt, Get, Input, RehearsedSecrets, Rule, Secrets, SecretsAct, TextFormat,
    Verify, refuse_private_keys,
};
pub(crate) use self::serve::Serve;
use crate::commands::Values;
use crate::patience::Patience;

/// Raises a whole Kubernetes castle from nothing, hands it to GitOps, keeps it true and razes it without a trace.
///
/// Without a castle file, everything happens in the rehearsal: a datacenter built into this program.
#[derive(Debug, Parser)]
#[command(name = "castle", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) everywhere: Everywhere,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags that every command takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Everywhere {
    /// The castle file (default: castle.hcl in this folder)
    #[arg(short, long, global = true, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The state root (default: $CASTLE_STATE, else $XDG_STATE_HOME/castle/NAME; rehearsals have folders of their own)
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,
    /// Print JSON lines on standard output instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Lines that scroll instead of a live screen, as without a terminal
    #[arg(long, global = true)]
    pub(crate) plain: bool,
    /// Whether text is coloured (default: auto, on a terminal); no meaning is in the colour alone
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "auto|always|never",
        hide_possible_values = true,
        hide_default_value = true,
        default_value_t = Colour::Auto
    )]
    pub(crate) color: Colour,
}

/// When text is coloured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless `NO_COLOR` or `CI` is set or the terminal is dumb
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Raise the castle, from nothing or from wherever it stopped, until it is handed over
    Up(Run),
    /// Back to nothing, even with the cluster dead; ends with a look for leftovers
    Down(DownArgs),
    /// Down and up as one act: whatever ends it, the same command goes on where it was
    Rebirth(RebirthArgs),
    /// Show what would be created, adopted, changed, replaced and left alone
    Plan(Pace),
    /// Read and judge the castle file: every mistake at once, each with its place
    Check,
    /// Show each layer and step: what is known to be true, what failed, what is open, what is going on now
    Status,
    /// Tell what is waited for, since when, what was seen last, what depends on it; of a step, or of all that are open
    ///
    /// Asks the events of the run that is going on, or of the last one. Without a step: every one that is under way or failed, that with the
    /// longest path behind it first. With a step that is done: what proved it, and when.
    Why(WhyArgs),
    /// Look for whatever is there of the castle, in the world and not in our records: what, where, whose, what to do
    ///
    /// Guests in the range or with the castle's mark anywhere in the cluster, disks that bear its numbers, images, tasks that still run,
    /// what is in escrow, and whoever answers at its addresses. Changes nothing. Ends with 0 if all of it is as it should be, and with 4 if
    /// anything is left of a castle that should be gone, or is not part of one that stands.
    Audit(AuditArgs),
    /// The emergency: remove every guest of the castle by number and owner, without any state
    ///
    /// Lists first: name, node, tags, owner, disks, the data that will die. Changes nothing without --yes or the castle's name typed. Guests
    /// in the range that are not proven to be the castle's are shown and left alone, unless each is named by --force-foreign. Then the
    /// image and what is in escrow go as with `down`, and what our journals know of the castle is reset.
    Wipe(WipeArgs),
    /// Show the run that is going on, or the last one, from its beginning to its end; Ctrl-C leaves it alone
    Attach,
    /// Show what earlier runs took, and what has become slower; kept when the castle is gone
    History,
    /// Make the page of a run from its events: what it did over time, what waited for what, what decided how long it took
    ///
    /// Every run leaves such a page beside its events and names it at its end; this makes it again, of any run that is kept. The page is one
    /// file that needs nothing else, holds no secret and can be sent to anybody.
    Report(ReportArgs),
    /// Print the graph of steps and what they need
    Graph(Graph),
    /// Print a talosconfig for talosctl, made from the castle's Talos secrets
    Talosconfig(Access),
    /// Print a kubeconfig for kubectl, made from the castle's Talos secrets
    Kubeconfig(Access),
    /// Print the config that a machine would be sent, its secrets redacted
    Machineconfig(MachineConfig),
    /// Pin what the castle is made from by its content, in castle.lock beside the castle file
    ///
    /// Downloads the manifest of each release that castle installs and the disk image of Talos, and writes their versions, addresses and
    /// SHA-256 to castle.lock: keep it in version control. With a lock, `castle up` takes nothing else. Content that changed under the
    /// same version and address is never pinned anew by itself.
    Lock(LockArgs),
    /// List, check, show, encrypt and decrypt secrets; never to disk in clear unless you say where
    Secrets(Secrets),
    /// Judge Kubernetes objects as the gates do: ready, waiting or failed, and why
    ///
    /// One line for each object. What waits is told with its reason: which pod, which container, what the server says; pods in the same
    /// input explain their workloads. Ends with 0 if every object is ready, with 1 if one is waiting or has failed, and with 2 if the input
    /// can not be read or has no object in it.
    ///
    /// kubectl get deployments,pods -A -o yaml | castle judge -f -
    Judge(JudgeArgs),
    /// Do any of this in the built-in datacenter, with a castle file of your own too
    Rehearse(Rehearse),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page (`castle man | man -l -` shows it), or write one for every command
    Man {
        /// Write castle.1, castle-up.1 and so on into this folder, such as /usr/local/share/man/man1
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
    },
    /// Print what could stand at a place of the command line, one a line; the scripts of `castle completions` ask
    #[command(hide = true)]
    Complete {
        /// What is wanted
        kind: Values,
        /// Of the rehearsal
        #[arg(long)]
        rehearsed: bool,
    },
    /// Print the reference of the command line as Markdown
    #[command(hide = true)]
    Reference,
    /// Go on without a terminal; castle starts this itself
    #[command(hide = true)]
    Detached,
}

/// Which step is asked about.
#[derive(Debug, Clone, Args)]
pub(crate) struct WhyArgs {
    /// The step, such as platform/vip (default: every step that is under way or failed)
    #[arg(value_name = "STEP")]
    pub(crate) step: Option<String>,
}

/// A way into the cluster.
#[derive(Debug, Clone, Args)]
pub(crate) struct Access {
    /// Write it to a new file that only you can read, instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Take the Talos secrets from this file (as `talosctl gen secrets` writes it) instead of the secret source
    #[arg(long, value_name = "FILE")]
    pub(crate) bundle: Option<PathBuf>,
}

/// Which machine's config.
#[derive(Debug, Clone, Args)]
pub(crate) struct MachineConfig {
    /// The machine, such as cp-01
    pub(crate) node: String,
    /// Show the secrets too
    #[arg(long)]
    pub(crate) reveal: bool,
    /// Take the Talos secrets from this file (as `talosctl gen secrets` writes it); nothing else is then needed
    #[arg(long, value_name = "FILE")]
    pub(crate) bundle: Option<PathBuf>,
}

/// How fast the rehearsal's time runs, and from which seed it draws.
#[derive(Debug, Clone, Args)]
pub(crate) struct Pace {
    /// How many times faster than real time the rehearsal runs, or `max` (default: 20 on a terminal, else max)
    #[arg(long, value_name = "N|max")]
    pub(crate) speed: Option<Speed>,
    /// The seed that a new rehearsal draws its durations from (default: 1)
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) faults: Faults,
}

/// What breaks in the rehearsal.
#[derive(Debug, Clone, Default, Args)]
#[expect(clippy::struct_field_names, reason = "the fields are named as the flags are")]
pub(crate) struct Faults {
    /// Something that breaks in the rehearsal, such as 'talos cp-02: dead from 0:40'; `castle rehearse --list-faults` explains all
    #[arg(long, value_name = "RULE")]
    pub(crate) fault: Vec<String>,
    /// A file of such rules, one a line; `#` begins a comment
    #[arg(long, value_name = "FILE")]
    pub(crate) faults: Option<PathBuf>,
    /// Break one to three things drawn from a seed; each is printed as a rule, to be repeated with --fault
    #[arg(long, value_name = "SEED")]
    pub(crate) chaos: Option<u64>,
}

/// A command that changes the world.
#[derive(Debug, Clone, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) pace: Pace,
    /// Do not ask before replacing or removing something
    #[arg(long)]
    pub(crate) yes: bool,
    /// Ask here, then go on in a process of its own: this terminal may be closed; `castle attach` shows the run
    #[arg(long)]
    pub(crate) detach: bool,
    /// Wait for whoever works on this castle instead of giving up at once, and at most so long (default: 10m)
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "10m")]
    pub(crate) wait: Option<Patience>,
    /// The layer that alone goes; said to `down` only.
    #[arg(skip)]
    pub(crate) layer: Option<String>,
    /// Guests that go although they are not proven ours; said to `wipe` only.
    #[arg(skip)]
    pub(crate) force_foreign: Vec<u32>,
}

/// A castle that goes and comes back.
#[derive(Debug, Clone, Args)]
pub(crate) struct RebirthArgs {
    /// So many times, without a hand in between; ends with a table of times and a verdict
    #[arg(long, value_name = "CYCLES", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) certify: Option<u32>,
    #[command(flatten)]
    pub(crate) run: Run,
}

/// The speed of the rehearsal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speed {
    /// From event to event, as fast as the machine goes.
    Max,
    /// So many times faster than real time.
    Times(u32),
}

impl std::str::FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        match text.parse::<u32>() {
            Ok(times) if (1..=100_000).contains(&times) => Ok(Self::Times(times)),
            _ => Err("give a whole number from 1 to 100000, or `max`".to_owned()),
        }
    }
}

/// How the graph is printed.
#[derive(Debug, Clone, Args)]
pub(crate) struct Graph {
    /// In which form (default: text)
    #[arg(long, value_enum)]
    pub(crate) format: Option<GraphFormat>,
    /// Draw each machine by itself, instead of one box for all that are alike
    #[arg(long)]
    pub(crate) expand: bool,
    /// Whose times make the critical path
    #[arg(long, value_enum, default_value_t = GraphTimes::Last)]
    pub(crate) times: GraphTimes,
}

/// Whose times make the critical path of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphTimes {
    /// Those of the last run that raised this castle, or the usual ones if there was none
    Last,
    /// The usual ones, as the steps declare them
    Usual,
}

/// The forms of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Layers and steps in words
    Text,
    /// A picture, for light and dark pages
    Svg,
    /// For Graphviz
    Dot,
    /// For Markdown pages
    Mermaid,
    /// For programs
    Json,
}

/// What to rehearse.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Rehearse {
    /// Explain everything that can be broken with --fault, each with an example
    #[arg(long)]
    pub(crate) list_faults: bool,
    #[command(subcommand)]
    pub(crate) act: Option<RehearseAct>,
}

/// What happens.
#[derive(Debug, Clone, Args)]
pub(crate) struct Poke {
    /// The rule, without any time: WHO [OBJECT]: KIND [ARGUMENT…]
    #[arg(value_name = "RULE", required_unless_present = "list")]
    pub(crate) words: Vec<String>,
    /// Undo it instead: what such a rule has broken is good again
    #[arg(long)]
    pub(crate) mend: bool,
    /// Show everything that a poke can do
    #[arg(long, conflicts_with = "words")]
    pub(crate) list: bool,
}

/// How often, and from which seed.
#[derive(Debug, Clone, Args)]
pub(crate) struct Repeat {
    /// How many times
    #[arg(long, default_value_t = 1)]
    pub(crate) times: u32,
    /// The seed
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Show each run as `up` does: live on a terminal, else line by line
    #[arg(long)]
    pub(crate) show: bool,
}

/// What can be rehearsed.
#[derive(Debug, Subcommand)]
pub(crate) enum RehearseAct {
    /// Raise the castle in the rehearsal
    Up(Run),
    /// Raze it there
    Down(DownArgs),
    /// Raze it and raise it again there, as one act
    Rebirth(RebirthArgs),
    /// Show what would be done there
    Plan(Pace),
    /// Show what is known of it there
    Status,
    /// Tell what is waited for there, since when, what was seen last, what depends on it
    Why(WhyArgs),
    /// Look for whatever is there of the castle in the rehearsal
    Audit(AuditArgs),
    /// Wipe the castle there
    Wipe(WipeArgs),
    /// Show the run that is going on there, or the last one
    Attach,
    /// Show what earlier runs took there, in the rehearsal's time
    History,
    /// Make the page of a run there from its events
    Report(ReportArgs),
    /// Print a talosconfig for the rehearsal's machines
    Talosconfig(Access),
    /// Print a kubeconfig for the rehearsal's cluster
    Kubeconfig(Access),
    /// Print the config that a machine would be sent there, its secrets redacted
    Machineconfig(MachineConfig),
    /// Pin what the castle is made from there, beside the rehearsal's datacenter
    Lock(LockArgs),
    /// List, check and show the secrets of the rehearsal
    Secrets(RehearsedSecrets),
    /// Put the datacenter on loopback sockets, for curl, kubectl, talosctl, git and a `castle up` from another terminal
    ///
    /// The world is the same that `castle rehearse up` builds in, held until Ctrl-C ends the command. Prints a sheet: where each server
    /// is, how it is trusted, and one line to copy for each tool. Keys and tokens go to files that only you can read, never to the
    /// screen. Nothing but loopback addresses is ever bound.
    Serve(Serve),
    /// Show the datacenter as it knows itself, independent of castle's state
    Inventory,
    /// Play a story: what once broke a castle, what castle must say to it, and what must be true afterwards
    Scenario(ScenarioArgs),
    /// Let something happen in the datacenter at once, also while a run is going on in it
    ///
    /// Speaks to the process that hosts the datacenter if there is one, else opens it, changes it and closes it.
    ///
    /// castle rehearse poke 'talos cp-02: dead'
    Poke(Poke),
    /// Raise the castle again and again in memory and print the trace of each run
    #[command(hide = true)]
    Repeat(Repeat),
    /// Throw the rehearsal away: its datacenter and its state
    Reset {
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}
