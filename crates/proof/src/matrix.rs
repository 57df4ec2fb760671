//! The crash matrix: an act is killed at each of its moments, run again, and held against the act that nobody killed.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use castle_journal::MemoryDisk;
use serde_json::Value;

use crate::castle::{Around, Command, Run, Stand, run};
use crate::check::{self, Counts, Violation};
use crate::point::{Fork, Moment, Point, Recorder, Taker};
use crate::setting::Setting;
use crate::trial::truth;

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// A castle is raised from nothing.
    Up,
    /// A castle that stands is razed.
    Down,
    /// A castle that stands is wiped, with our journals there to be reset and strangers in its range.
    Wipe,
    /// A castle that stands is razed and raised, as one process.
    Rebirth,
    /// A castle is raised from nothing, and after the crash the state folder is thrown away.
    Forgotten,
}

impl Act {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Up, Self::Down, Self::Wipe, Self::Rebirth, Self::Forgotten];

    /// Whether a crash at this point leaves something of its own: where the disk is thrown away, only the world counts.
    #[must_use]
    pub fn is_told_by(self, point: &Point) -> bool {
        let of_calls = [Moment::BeforeSend, Moment::AfterSend, Moment::AfterReply];
        point.fresh && (self != Self::Forgotten || of_calls.contains(&point.moment))
    }

    /// The word that is typed.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Forgotten => "forgotten",
            act => act.command().word(),
        }
    }

    fn command(self) -> Command {
        match self {
            Self::Up | Self::Forgotten => Command::Up,
            Self::Down => Command::Down,
            Self::Wipe => Command::Wipe,
            Self::Rebirth => Command::Rebirth,
        }
    }
}

/// The act without a crash: what all others are held against.
pub struct Reference {
    /// How many points it has.
    pub points: usize,
    /// How many states crashes at them leave.
    pub states: usize,
    act: Act,
    start: Stand,
    /// What the datacenter counted at the end.
    wanted: Value,
    foreign: Value,
    ran: Run,
    counts: Counts,
}

/// What came of one point.
#[derive(Debug, Clone)]
pub struct Judged {
    /// Which.
    pub point: Point,
    /// What did not hold.
    pub violations: Vec<Violation>,
}

/// What came of all points that were tried.
#[derive(Debug, Default)]
pub struct Matrix {
    /// Points of the act.
    pub points: usize,
    /// How many states crashes at them leave.
    pub states: usize,
    /// How many were tried, by their moment.
    pub tried: BTreeMap<Moment, usize>,
    /// Those at which something did not hold, in their order.
    pub broken: Vec<Judged>,
}

/// Runs an act without a crash.
///
/// # Errors
/// If it does not succeed: then there is nothing to compare with.
pub fn reference(setting: &Setting, act: Act) -> Result<Reference, String> {
    let mut start = setting.empty();
    if !matches!(act, Act::Up | Act::Forgotten) {
        let raised =
            run(start, setting, Command::Up, Around { settles: true, ..Around::default() });
        if !raised.is_done() {
            return Err(format!("the castle does not rise: {}", raised.verdict()));
        }
        start = raised.stand;
    }
    let recorder = Recorder::new(Box::new(Nobody));
    let ran = perform(act.command(), start.copy(), setting, Some(&recorder));
    if !ran.is_done() {
        return Err(format!("{} does not succeed: {}", act.word(), ran.verdict()));
    }
    let mut counts = Counts::new();
    check::count(&ran.requests, &mut counts);
    Ok(Reference {
        points: recorder.count(),
        states: recorder.states(),
        act,
        wanted: check::inventory(&ran.stand.datacenter),
        foreign: setting.foreign(&start.datacenter),
        start,
        ran,
        counts,
    })
}

/// Kills an act at one point, and says what did not hold afterwards; none if there is no such point.
#[must_use]
pub fn point_of(setting: &Setting, reference: &Reference, number: usize) -> Option<Judged> {
    let taken = Arc::new(Mutex::new(None));
    let recorder = Recorder::new(Box::new(One { number, taken: taken.clone() }));
    drop(perform(reference.act.command(), reference.start.copy(), setting, Some(&recorder)));
    let fork = taken.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    Some(judge(setting, reference, fork))
}

/// Kills an act at every point that is chosen, on so many threads; `told` hears how far it is after each.
#[must_use]
pub fn matrix(
    setting: &Setting,
    reference: &Reference,
    chosen: impl Fn(&Point) -> bool + Send + 'static,
    threads: usize,
    mut told: impl FnMut(&Matrix),
) -> Matrix {
    let mut matrix =
        Matrix { points: reference.points, states: reference.states, ..Matrix::default() };
    let (forks, taken) = sync_channel(threads);
    let taken = Mutex::new(taken);
    let (results, judged) = channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            let results = results.clone();
            let taken = &taken;
            scope.spawn(move || {
                while let Some(fork) = next(taken) {
                    results.send(judge(setting, reference, fork)).ok();
                }
            });
        }
        drop(results);
        scope.spawn(move || {
            let recorder = Recorder::new(Box::new(Sender { forks, chosen: Box::new(chosen) }));
            drop(perform(
                reference.act.command(),
                reference.start.copy(),
                setting,
                Some(&recorder),
            ));
        });
        for judged in judged {
            *matrix.tried.entry(judged.point.moment).or_default() += 1;
            if !judged.violations.is_empty() {
                matrix.broken.push(judged);
            }
            told(&matrix);
        }
    });
    matrix.broken.sort_by_key(|judged| judged.point.number);
    matrix
}

fn next(taken: &Mutex<Receiver<Fork>>) -> Option<Fork> {
    taken.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// One process, after which the world comes to rest.
fn perform(command: Command, start: Stand, setting: &Setting, recorder: Option<&Recorder>) -> Run {
    run(
        start,
        setting,
        command,
        Around { recorder: recorder.cloned(), settles: true, ..Around::default() },
    )
}

/// Goes on after a crash, and says what did not hold.
fn judge(setting: &Setting, reference: &Reference, fork: Fork) -> Judged {
    let point = fork.point.clone();
    let violations = catch_unwind(AssertUnwindSafe(|| judged(setting, reference, fork)))
        .unwrap_or_else(|_| vec![Violation::new("no panic", "the run after the crash panicked")]);
    Judged { point, violations }
}

fn judged(setting: &Setting, reference: &Reference, fork: Fork) -> Vec<Violation> {
    let Fork { point, mut stand } = fork;
    if reference.act == Act::Forgotten {
        stand.disk = MemoryDisk::new();
    }
    let known = match stand.records() {
        Ok(known) => known,
        Err(error) => return vec![Violation::new("the journal can be read", error)],
    };
    let alive = !check::incarnations(&stand.datacenter).is_empty();
    let command = match reference.act {
        // A rebirth that is over is not begun a second time: what it raised stands.
        Act::Rebirth if stand.is_reborn() => Command::Up,
        act => act.command(),
    };
    let again = perform(command, stand, setting, None);
    let mut found = Vec::new();
    if !again.is_done() {
        found.push(Violation::new("it converges", again.verdict()));
    }
    found.extend(check::same(&reference.wanted, &check::inventory(&again.stand.datacenter)));
    found.extend(check::foreign(setting, &reference.foreign, &again.stand.datacenter));
    found.extend(check::again(&known, alive, &again));
    found.extend(check::asked_again(&known, alive, &again, &setting.machines()));
    found.extend(check::outside(&again.stand.datacenter, &again));
    found.extend(check::explained(&again));
    if reference.act == Act::Wipe && !again.stand.records().is_ok_and(|left| left.is_reset()) {
        found
            .push(Violation::new("a wipe resets the state", "the journals still know of a castle"));
    }
    if reference.act == Act::Rebirth && !again.stand.is_reborn() {
        found.push(Violation::new("a rebirth ends", "its journal says that it is open"));
    }
    let mut counts = Counts::new();
    let answered = point.requests.min(reference.ran.requests.len());
    let answered = &reference.ran.requests[..answered];
    found.extend(truth::one_bootstrap(setting, answered));
    found.extend(truth::one_bootstrap(setting, &again.requests));
    check::count(answered, &mut counts);
    check::count(&again.requests, &mut counts);
    found.extend(check::doubles(&reference.counts, &counts));
    found
}

/// Takes nothing: the points are counted all the same.
struct Nobody;

impl Taker for Nobody {
    fn wants(&mut self, _: &Point) -> bool {
        false
    }

    fn take(&mut self, _: Fork) {}
}

/// Takes one.
struct One {
    number: usize,
    taken: Arc<Mutex<Option<Fork>>>,
}

impl Taker for One {
    fn wants(&mut self, point: &Point) -> bool {
        point.number == self.number
    }

    fn take(&mut self, fork: Fork) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = Some(fork);
    }
}

/// Hands on those that are chosen, and waits until somebody has time for them.
struct Sender {
    forks: SyncSender<Fork>,
    chosen: Box<dyn Fn(&Point) -> bool + Send>,
}

impl Taker for Sender {
    fn wants(&mut self, point: &Point) -> bool {
        (self.chosen)(point)
    }

    fn take(&mut self, fork: Fork) {
        // Nobody takes it any more only if every judge is gone, and then nobody asks.
        self.forks.send(fork).ok();
    }
}
