//! One process of castle over a world and a disk: what a person starts, and what is left when it ends or is killed.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use castle_engine::whole::WholeError;
use castle_engine::{Report, Stop, Whole};
use castle_infisical::Credentials;
use castle_journal::{Journals, MemoryDisk, Records};
use castle_layers::secrets::source::Access;
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::spec::Trust;
use castle_model::{Event, Failure, Plan, RunId};
use castle_rehearsal::Host;
use castle_rehearsal::fault::Rule;
use castle_rehearsal::host::runtime;
use castle_rehearsal::trace::Request;
use castle_rehearsal::world::Datacenter;
use tokio::sync::Notify;

use crate::disk::ToldDisk;
use crate::point::Recorder;
use crate::setting::Setting;

/// How long the world goes on by itself before it is looked at, in virtual seconds: whatever was under way is over then.
const SETTLE: Duration = Duration::from_mins(10);

/// The world and the state on disk at one moment.
#[derive(Debug)]
pub struct Stand {
    /// The datacenter.
    pub datacenter: Datacenter,
    /// The state root.
    pub disk: MemoryDisk,
}

impl Stand {
    /// The same once more, which goes its own way from here.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self { datacenter: self.datacenter.clone(), disk: self.disk.copy() }
    }

    /// What the journals say; an error is the journals' own.
    ///
    /// # Errors
    /// If they can not be read.
    pub fn records(&self) -> Result<Records, String> {
        let journals = Journals::open(Box::new(self.disk.copy())).map_err(|e| chain(&e))?;
        Ok(journals.records().clone())
    }
}

/// What is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// `castle up`.
    Up,
    /// `castle down`.
    Down,
}

impl Command {
    /// The word that is typed.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }

    fn direction(self) -> Direction {
        match self {
            Self::Up => Direction::Up,
            Self::Down => Direction::Down,
        }
    }
}

/// What surrounds a run.
#[derive(Default)]
pub struct Around {
    /// Who hears of its moments, and perhaps kills it at one.
    pub recorder: Option<Recorder>,
    /// What goes wrong meanwhile.
    pub rules: Vec<Rule>,
    /// Whether the world goes on for a while afterwards.
    pub settles: bool,
}

/// What a process did.
pub struct Run {
    /// What was started.
    pub command: Command,
    /// How it ended, in the words of the error if it came to no report.
    pub ended: Result<(Plan, Report), String>,
    /// Why it refused to begin, if it did.
    pub refused: Option<Failure>,
    /// What it told.
    pub events: Vec<Event>,
    /// What the servers saw of it.
    pub requests: Vec<Request>,
    /// The hash over requests and effects.
    pub trace: String,
    /// What struck, in words.
    pub strikes: Vec<String>,
    /// The kinds of faults that struck.
    pub struck: BTreeSet<String>,
    /// Whether it was killed.
    pub killed: bool,
    /// When the process ended, in virtual milliseconds since the world's birth.
    pub over: u64,
    /// How long it took in real time until its first call was heard, from the moment when it opened its journals; only if
    /// nobody else listened to its calls.
    pub first_call: Option<Duration>,
    /// The world and the disk afterwards.
    pub stand: Stand,
}

impl Run {
    /// Whether every step is done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(&self.ended, Ok((_, report)) if report.outcome == RunOutcome::Done)
    }

    /// How it ended, in words.
    #[must_use]
    pub fn verdict(&self) -> String {
        match &self.ended {
            Err(error) => match &self.refused {
                Some(failure) => format!("{error}: {failure}"),
                None => error.clone(),
            },
            Ok((_, report)) => {
                let failures = report.failures.iter();
                let told: Vec<String> =
                    failures.map(|(step, failure)| format!("{step}: {failure}")).collect();
                format!("{:?} {}", report.outcome, told.join("; "))
            }
        }
    }
}

/// Runs a command as a process of its own, on a runtime of its own.
///
/// # Panics
/// If the operating system gives no runtime, or the rehearsal no certificates: then nothing can be proven.
#[must_use]
pub fn run(stand: Stand, setting: &Setting, command: Command, around: Around) -> Run {
    runtime().expect("a runtime").block_on(process(stand, setting, command, around))
}

async fn process(stand: Stand, setting: &Setting, command: Command, around: Around) -> Run {
    let Stand { datacenter, disk } = stand;
    let host = Arc::new(Host::of(datacenter, &setting.spec).expect("certificates"));
    host.spawn_driver();
    let kinds: Vec<(String, String)> =
        around.rules.iter().map(|rule| (rule.to_string(), rule.kind().form())).collect();
    host.arm(around.rules);
    let hearing = around.recorder.as_ref().map(|recorder| {
        recorder.attend(&host, &disk);
        recorder.hearing(&host)
    });
    let first = Arc::new(OnceLock::new());
    if around.recorder.is_none() {
        let first = first.clone();
        host.on_call(move |_| _ = first.get_or_init(watch));
    }
    let mut telling = Telling::default();
    let told = ToldDisk { disk: disk.clone(), hearing };
    let kill = around.recorder.as_ref().map(Recorder::killing);
    let mut killed = false;
    let began = watch();
    let ended = tokio::select! {
        biased;
        () = host.killed() => Err(()),
        () = asked(kill) => Err(()),
        ended = castle(&host, setting, command, told, &mut telling) => Ok(ended),
    };
    let ended = ended.unwrap_or_else(|()| {
        killed = true;
        Err("killed".to_owned())
    });
    let (over, requests, trace) = (host.now(), host.requests(), host.trace_hash());
    if around.settles {
        pass(SETTLE).await;
    }
    let mut datacenter = host.read(Clone::clone);
    datacenter.now = datacenter.now.max(host.now());
    let struck_by = host.strikes();
    let strikes = struck_by.iter().map(|strike| {
        let (seconds, millis) = (strike.at / 1000, strike.at % 1000);
        format!("{seconds}.{millis:03} s: {} ({})", strike.what, strike.rule)
    });
    let strikes = strikes.collect();
    let struck = kinds.into_iter().filter(|(text, _)| struck_by.iter().any(|s| s.rule == *text));
    let struck = struck.map(|(_, kind)| kind).collect();
    let stand = Stand { datacenter, disk };
    let Telling { events, refused } = telling;
    let first_call = first.get().map(|heard: &Instant| heard.duration_since(began));
    Run {
        command,
        ended,
        refused,
        events,
        requests,
        trace,
        strikes,
        struck,
        killed,
        over,
        first_call,
        stand,
    }
}

/// What a process says while it runs.
#[derive(Default)]
struct Telling {
    events: Vec<Event>,
    refused: Option<Failure>,
}

async fn castle(
    host: &Host,
    setting: &Setting,
    command: Command,
    disk: ToldDisk,
    told: &mut Telling,
) -> Result<(Plan, Report), String> {
    let mut spec = setting.spec.clone();
    if let Some(proxmox) = spec.platform.proxmox_mut() {
        let fingerprint = host.proxmox_fingerprint().map_err(|e| chain(&e))?;
        proxmox.trust = Trust::Fingerprint(fingerprint);
    }
    let spec = Arc::new(spec);
    let (client_id, client_secret) = host.credentials();
    let access = Access::to_infisical(Credentials { client_id, client_secret });
    let graph = castle_layers::build(&spec, &host.world(), access);
    let mut journals = Journals::open(Box::new(disk)).map_err(|e| chain(&e))?;
    let clock = host.clock();
    let now = clock.clone();
    let opened = host.read(|world| world.opens);
    let whole = Whole {
        castle: &spec.name,
        graph: &graph,
        journals: &mut journals,
        deadlines: &spec.deadlines,
        now: Arc::new(move || clock.now()),
        face: &mut |event: &Event| told.events.push(event.clone()),
        run: RunId::new(format!("r{opened:04}")),
        stop: Stop::default(),
    };
    let report = match whole.go(command.direction()).await {
        Ok(report) => report,
        Err(error @ WholeError::Blind(..)) => {
            let text = chain(&error);
            if let WholeError::Blind(_, failure) = error {
                told.refused = Some(*failure);
            }
            return Err(text);
        }
        Err(error) => return Err(chain(&error)),
    };
    journals.compact_if_grown(now.now()).map_err(|e| chain(&e))?;
    Ok(report)
}

/// Ends when the process is to be killed.
async fn asked(kill: Option<Arc<Notify>>) {
    match kill {
        Some(kill) => kill.notified().await,
        None => std::future::pending().await,
    }
}

/// Reads a stop watch.
#[expect(clippy::disallowed_methods, reason = "how long a person waits is real time")]
fn watch() -> Instant {
    Instant::now()
}

/// Lets virtual time pass.
#[expect(clippy::disallowed_methods, reason = "the world goes on while nobody runs")]
async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// An error with all that is behind it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(behind) = at {
        text = format!("{text}: {behind}");
        at = behind.source();
    }
    text
}
