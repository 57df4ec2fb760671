//! One process of castle over a world and a disk: what a person starts, and what is left when it ends or is killed.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use castle_engine::whole::WholeError;
use castle_engine::{Graph, Report, Stop, Whole};
use castle_infisical::Credentials;
use castle_journal::{HalfEnd, Journals, MemoryDisk, Records};
use castle_layers::audit::audit;
use castle_layers::secrets::source::Access;
use castle_layers::wipe::Found;
use castle_model::audit::Item;
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::spec::Trust;
use castle_model::time::Moment;
use castle_model::{Event, Failure, Plan, RunId, Spec};
use castle_rehearsal::Host;
use castle_rehearsal::fault::{Rule, Sort};
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

    /// Whether the last rebirth that was begun is over, by its own journal.
    #[must_use]
    pub fn is_reborn(&self) -> bool {
        let Ok(journals) = Journals::open(Box::new(self.disk.copy())) else { return false };
        matches!(journals.rebirth(), Ok(Some(rebirth)) if rebirth.ended.is_some())
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
    /// `castle wipe --yes`.
    Wipe,
    /// `castle rebirth --yes`: one process, both halves, by the journal of its own.
    Rebirth,
}

impl Command {
    /// The word that is typed.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Wipe => "wipe",
            Self::Rebirth => "rebirth",
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
    /// The runs that it was made of, each with how it ended; the words of the error if one came to no report. A wipe that
    /// finds nothing has none, a rebirth up to two.
    pub ended: Result<Vec<(Plan, Report)>, String>,
    /// What castle's own audit says is left, where the command ends with one.
    pub left: Vec<String>,
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
    /// The rules that have changed the world, as they are written.
    pub changed: BTreeSet<String>,
    /// Whether it was killed.
    pub killed: bool,
    /// When the process ended, in virtual milliseconds since the world's birth.
    pub over: u64,
    /// When the audit at the end of a way down began; none if there was none.
    pub audited: Option<u64>,
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
        self.is_done_but(|_| false)
    }

    /// The same, where some of what castle's audit names as left is nothing of ours.
    #[must_use]
    pub fn is_done_but(&self, of_others: impl Fn(&str) -> bool) -> bool {
        let left = self.left.iter().any(|left| !of_others(left));
        !left && self.says_done()
    }

    /// Whether its steps say that they are done, whatever an audit says afterwards.
    #[must_use]
    pub fn says_done(&self) -> bool {
        let done = |(_, report): &(Plan, Report)| report.outcome == RunOutcome::Done;
        self.ended.as_ref().is_ok_and(|runs| runs.iter().all(done))
    }

    /// How it ended, in words.
    #[must_use]
    pub fn verdict(&self) -> String {
        match &self.ended {
            Err(error) => match &self.refused {
                Some(failure) => format!("{error}: {failure}"),
                None => error.clone(),
            },
            Ok(runs) => {
                let mut told: Vec<String> = runs.iter().map(verdict_of).collect();
                told.extend(self.left.iter().map(|what| format!("left over: {what}")));
                told.join(", then ")
            }
        }
    }
}

fn verdict_of((_, report): &(Plan, Report)) -> String {
    let failures = report.failures.iter();
    let told: Vec<String> = failures
        .map(|(step, failure)| {
            let findings = failure.findings.iter().map(|f| format!("; {}: {}", f.place, f.why));
            let seen = failure.evidence.iter().map(|seen| format!(" ({seen})"));
            format!("{step}: {failure}{}{}", seen.collect::<String>(), findings.collect::<String>())
        })
        .collect();
    format!("{:?} {}", report.outcome, told.join("; "))
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
    let changed = struck_by.iter().filter(|strike| strike.sort == Sort::Change);
    let changed = changed.map(|strike| strike.rule.clone()).collect();
    let struck = kinds.into_iter().filter(|(text, _)| struck_by.iter().any(|s| s.rule == *text));
    let struck = struck.map(|(_, kind)| kind).collect();
    let stand = Stand { datacenter, disk };
    let Telling { events, refused, left, audited } = telling;
    let first_call = first.get().map(|heard: &Instant| heard.duration_since(began));
    Run {
        command,
        ended,
        left,
        refused,
        events,
        requests,
        trace,
        strikes,
        struck,
        changed,
        killed,
        over,
        audited,
        first_call,
        stand,
    }
}

/// What a process says while it runs.
#[derive(Default)]
struct Telling {
    events: Vec<Event>,
    refused: Option<Failure>,
    left: Vec<String>,
    audited: Option<u64>,
}

async fn castle(
    host: &Host,
    setting: &Setting,
    command: Command,
    disk: ToldDisk,
    told: &mut Telling,
) -> Result<Vec<(Plan, Report)>, String> {
    let mut spec = setting.spec.clone();
    if let Some(proxmox) = spec.platform.proxmox_mut() {
        let fingerprint = host.proxmox_fingerprint().map_err(|e| chain(&e))?;
        proxmox.trust = Trust::Fingerprint(fingerprint);
    }
    let (client_id, client_secret) = host.credentials();
    let mut process = Process {
        host,
        spec: Arc::new(spec),
        access: Access::to_infisical(Credentials { client_id, client_secret }),
        journals: Journals::open(Box::new(disk)).map_err(|e| chain(&e))?,
        told,
        runs: Vec::new(),
    };
    match command {
        Command::Up => process.half(Direction::Up).await.map(drop)?,
        Command::Down => process.down().await?,
        Command::Wipe => process.wipe().await?,
        Command::Rebirth => process.rebirth().await?,
    }
    Ok(process.runs)
}

/// What a process holds.
struct Process<'a> {
    host: &'a Host,
    spec: Arc<Spec>,
    access: Access,
    journals: Journals,
    told: &'a mut Telling,
    runs: Vec<(Plan, Report)>,
}

impl Process<'_> {
    fn now(&self) -> Moment {
        self.host.clock().now()
    }

    /// One way, from the first look to the report.
    async fn half(&mut self, direction: Direction) -> Result<RunId, String> {
        let graph = castle_layers::build(&self.spec, &self.host.world(), self.access.clone());
        self.run(&graph, direction).await
    }

    async fn run(&mut self, graph: &Graph, direction: Direction) -> Result<RunId, String> {
        let opened = self.host.read(|world| world.opens);
        let nth = ["", "b", "c"].get(self.runs.len()).unwrap_or(&"z");
        let run = RunId::new(format!("r{opened:04}{nth}"));
        let (clock, events) = (self.host.clock(), &mut self.told.events);
        let whole = Whole {
            castle: &self.spec.name,
            graph,
            journals: &mut self.journals,
            deadlines: &self.spec.deadlines,
            now: Arc::new(move || clock.now()),
            face: &mut |event: &Event| events.push(event.clone()),
            run: run.clone(),
            stop: Stop::default(),
        };
        let report = match whole.go(direction).await {
            Ok(report) => report,
            Err(error) => {
                let text = chain(&error);
                if let WholeError::Blind(_, failure) | WholeError::Held(_, failure) = error {
                    self.told.refused = Some(*failure);
                }
                return Err(text);
            }
        };
        self.runs.push(report);
        self.journals.compact_if_grown(self.now()).map_err(|e| chain(&e))?;
        Ok(run)
    }

    /// As `castle down` does: it razes, and then looks at everything again. What it can not look at is left, too.
    async fn down(&mut self) -> Result<(), String> {
        self.half(Direction::Down).await?;
        if let Err(unseen) = self.audit().await {
            self.told.refused = None;
            self.told.left.push(unseen);
        }
        Ok(())
    }

    /// As `castle wipe` does once somebody has agreed: it looks, removes, and looks again.
    async fn wipe(&mut self) -> Result<(), String> {
        let world = self.host.world();
        let found = Found::look(&self.spec, &world, &self.access, &BTreeSet::new(), |_| ()).await;
        let found = found.map_err(|failure| self.refuse(failure))?;
        if !(found.is_nothing() && self.journals.records().is_reset()) {
            let recorded = self.journals.records().steps.keys();
            let graph = found.graph(&self.spec, &world, &self.access, recorded);
            self.run(&graph, Direction::Down).await?;
        }
        self.audit().await
    }

    /// As `castle rebirth` does: what is due is done, and recorded in its own journal.
    async fn rebirth(&mut self) -> Result<(), String> {
        self.journals.rebirth().map(drop).map_err(|e| chain(&e))?;
        self.journals.catch_up_rebirth(self.now()).map_err(|e| chain(&e))?;
        self.journals.begin_rebirth(self.now(), None).map_err(|e| chain(&e))?;
        while let Some(direction) = self.journals.due_half().map(|(direction, _)| direction) {
            let run = self.half(direction).await?;
            let done = |(_, report): &(Plan, Report)| report.outcome == RunOutcome::Done;
            let mut sound = self.runs.last().is_some_and(done);
            if direction == Direction::Down {
                self.audit().await?;
                sound &= self.told.left.is_empty();
            }
            let ended = if sound {
                HalfEnd::Done(run)
            } else {
                HalfEnd::Stumbled { exit: 1, why: "it did not come to its end".to_owned() }
            };
            self.journals.note_half(self.now(), direction, ended).map_err(|e| chain(&e))?;
            if !sound {
                return Ok(());
            }
        }
        self.journals.conclude_rebirth(self.now()).map_err(|e| chain(&e))
    }

    /// What castle itself says is left.
    async fn audit(&mut self) -> Result<(), String> {
        self.told.audited = Some(self.host.now());
        let world = self.host.world();
        let found = audit(&self.spec, &world, &self.access, Some(true)).await;
        let found = found.map_err(|failure| self.refuse(failure))?;
        self.told.left.extend(found.amiss().map(Item::words));
        Ok(())
    }

    fn refuse(&mut self, failure: Failure) -> String {
        let text = failure.to_string();
        self.told.refused = Some(failure);
        text
    }
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
