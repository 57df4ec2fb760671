//! The crash matrix: an act is killed at each of its moments, run again, and held against the act that nobody killed.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::castle::{Around, Command, Run, Stand, run};
use crate::check::{self, Counts, Violation};
use crate::point::{Fork, Moment, Point, Recorder, Taker};
use crate::setting::Setting;

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// A castle is raised from nothing.
    Up,
    /// A castle that stands is razed.
    Down,
    /// A castle that stands is razed and raised.
    Rebirth,
}

impl Act {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Up, Self::Down, Self::Rebirth];

    /// The word that is typed.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Rebirth => "rebirth",
        }
    }

    fn commands(self) -> &'static [Command] {
        match self {
            Self::Up => &[Command::Up],
            Self::Down => &[Command::Down],
            Self::Rebirth => &[Command::Down, Command::Up],
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
    /// The changing calls of each command that succeeded, in their order.
    runs: Vec<Run>,
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
    if act != Act::Up {
        let raised =
            run(start, setting, Command::Up, Around { settles: true, ..Around::default() });
        if !raised.is_done() {
            return Err(format!("the castle does not rise: {}", raised.verdict()));
        }
        start = raised.stand;
    }
    let recorder = Recorder::new(Box::new(Nobody));
    let runs = runs_of(act, start.copy(), setting, 0, Some(&recorder));
    let last = runs.last().ok_or("an act has a command")?;
    if let Some(failed) = runs.iter().find(|run| !run.is_done()) {
        return Err(format!("{} does not succeed: {}", failed.command.word(), failed.verdict()));
    }
    let mut counts = Counts::new();
    for run in &runs {
        check::count(&run.requests, &mut counts);
    }
    Ok(Reference {
        points: recorder.count(),
        states: recorder.states(),
        act,
        wanted: check::inventory(&last.stand.datacenter),
        foreign: setting.foreign(&start.datacenter),
        start,
        runs,
        counts,
    })
}

/// Kills an act at one point, and says what did not hold afterwards; none if there is no such point.
#[must_use]
pub fn point_of(setting: &Setting, reference: &Reference, number: usize) -> Option<Judged> {
    let taken = Arc::new(Mutex::new(None));
    let recorder = Recorder::new(Box::new(One { number, taken: taken.clone() }));
    drop(runs_of(reference.act, reference.start.copy(), setting, 0, Some(&recorder)));
    let fork = taken.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    Some(judge(setting, reference, fork))
}

/// Kills an act at every point that is chosen, on so many threads.
#[must_use]
pub fn matrix(
    setting: &Setting,
    reference: &Reference,
    chosen: impl Fn(&Point) -> bool + Send + 'static,
    threads: usize,
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
            runs_of(reference.act, reference.start.copy(), setting, 0, Some(&recorder));
        });
        for judged in judged {
            *matrix.tried.entry(judged.point.moment).or_default() += 1;
            if !judged.violations.is_empty() {
                matrix.broken.push(judged);
            }
        }
    });
    matrix.broken.sort_by_key(|judged| judged.point.number);
    matrix
}

fn next(taken: &Mutex<Receiver<Fork>>) -> Option<Fork> {
    taken.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// Runs the commands of an act from one of them on; each is a process of its own.
fn runs_of(
    act: Act,
    start: Stand,
    setting: &Setting,
    from: usize,
    recorder: Option<&Recorder>,
) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut stand = start;
    for (index, command) in act.commands().iter().enumerate().skip(from) {
        if let Some(recorder) = recorder {
            recorder.begin(index);
        }
        let last = index + 1 == act.commands().len();
        let around = Around { recorder: recorder.cloned(), settles: last, ..Around::default() };
        let ran = run(stand, setting, *command, around);
        stand = ran.stand.copy();
        let stop = !ran.is_done();
        runs.push(ran);
        if stop {
            break;
        }
    }
    runs
}

/// Goes on after a crash, and says what did not hold.
fn judge(setting: &Setting, reference: &Reference, fork: Fork) -> Judged {
    let point = fork.point.clone();
    let violations = catch_unwind(AssertUnwindSafe(|| judged(setting, reference, fork)))
        .unwrap_or_else(|_| vec![Violation::new("no panic", "the run after the crash panicked")]);
    Judged { point, violations }
}

fn judged(setting: &Setting, reference: &Reference, fork: Fork) -> Vec<Violation> {
    let Fork { point, stand } = fork;
    let known = match stand.records() {
        Ok(known) => known,
        Err(error) => return vec![Violation::new("the journal can be read", error)],
    };
    let alive = !check::incarnations(&stand.datacenter).is_empty();
    let known = if alive { known } else { check::unborn(known) };
    let runs = runs_of(reference.act, stand, setting, point.command, None);
    let Some(last) = runs.last() else { return Vec::new() };
    let mut found: Vec<Violation> = runs
        .iter()
        .filter(|run| !run.is_done())
        .map(|run| Violation::new("it converges", run.verdict()))
        .collect();
    found.extend(check::same(&reference.wanted, &check::inventory(&last.stand.datacenter)));
    found.extend(check::foreign(setting, &reference.foreign, &last.stand.datacenter));
    if let Some(first) = runs.first() {
        found.extend(check::again(&known, first.command, &first.events));
    }
    let mut counts = Counts::new();
    for (index, run) in reference.runs.iter().enumerate().take(point.command + 1) {
        let answered = if index < point.command { run.requests.len() } else { point.requests };
        check::count(&run.requests[..answered.min(run.requests.len())], &mut counts);
    }
    for run in &runs {
        check::count(&run.requests, &mut counts);
    }
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
