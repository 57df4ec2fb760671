//! Trials: short lives of a castle in which one thing goes wrong at one place, watched by every law at every moment.
//!
//! The matrix asks of each moment whether castle comes back; a seed asks of a whole life. A trial is between them: a seed
//! that somebody wrote down, because a planted bug ([`crate::planted`]) is known to show there.

pub(crate) mod told;
mod truth;
mod witness;

use std::sync::{Arc, Mutex, PoisonError};

use castle_journal::MemoryDisk;
use castle_rehearsal::fault::{Names, Rule};
use castle_rehearsal::trace::Request;
use castle_rehearsal::trouble::Trouble;
use castle_rehearsal::world::Input;

use crate::castle::{Around, Command, Run, Stand, run};
use crate::check::{self, Violation};
use crate::point::{Fork, Moment, Point, Recorder, Taker};
use crate::setting::{Setting, Shape};

use witness::Witness;

/// The law that only a journal which tells of this world can be held to.
const AGAIN: &str = "no step acts again";

/// The seed of the trials' world.
const SEED: u64 = 8;

/// A life in parts, one after the other.
#[derive(Debug, PartialEq, Eq)]
pub struct Trial {
    /// What it is called.
    pub name: &'static str,
    /// How many machines.
    pub shape: Shape,
    /// What happens.
    pub parts: &'static [Part],
}

/// A part of a trial.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// Somebody changes the world while nobody runs; as rules of the fault language.
    Happens(&'static [&'static str]),
    /// Somebody deletes the state folder.
    Forgets,
    /// Somebody keeps a copy of the state folder.
    Copies,
    /// Somebody puts the copy back.
    PutsBack,
    /// The last entry of a journal is lost, and no file can tell.
    Loses(&'static str),
    /// A process of castle.
    Runs(Runs),
}

/// A process of castle within a trial.
#[derive(Debug, PartialEq, Eq)]
pub struct Runs {
    /// What is started.
    pub command: Command,
    /// What goes wrong meanwhile; as rules of the fault language.
    pub rules: &'static [&'static str],
    /// Where it is killed: at the first such moment of a call or a write whose name holds this.
    pub killed: Option<(Moment, &'static str)>,
    /// Guests by number that it must not touch.
    pub spares: &'static [u32],
    /// Whether it has to succeed.
    pub succeeds: bool,
}

impl Runs {
    /// A process that nothing disturbs, and that succeeds.
    #[must_use]
    pub const fn quiet(command: Command) -> Self {
        Self { command, rules: &[], killed: None, spares: &[], succeeds: true }
    }

    /// One that meets something, and may fail.
    #[must_use]
    pub const fn among(command: Command, rules: &'static [&'static str]) -> Self {
        Self { rules, succeeds: false, ..Self::quiet(command) }
    }

    /// One that is killed.
    #[must_use]
    pub const fn killed(command: Command, moment: Moment, call: &'static str) -> Self {
        Self { killed: Some((moment, call)), succeeds: false, ..Self::quiet(command) }
    }
}

impl Trial {
    /// Plays it, and says what did not hold.
    ///
    /// # Panics
    /// If a rule of it can not be read, or a place where it is to be killed is not there: then it tries nothing.
    #[must_use]
    pub fn play(&self) -> Vec<Violation> {
        let setting = Setting::of(self.shape, SEED);
        let names = Names::of(&setting.spec);
        let mut stand = setting.empty();
        let foreign = setting.foreign(&stand.datacenter);
        let mut found = Vec::new();
        let (mut kept, mut stale) = (MemoryDisk::new(), false);
        for part in self.parts {
            match part {
                Part::Happens(rules) => {
                    for trouble in read(rules, &names).iter().filter_map(Rule::troubles).flatten() {
                        happen(&mut stand, trouble);
                    }
                }
                Part::Forgets => stand.disk = MemoryDisk::new(),
                Part::Copies => kept = stand.disk.copy(),
                Part::PutsBack => (stand.disk, stale) = (kept.copy(), true),
                Part::Loses(name) => lose_last(&stand.disk, name),
                Part::Runs(runs) => {
                    let (after, broken) = runs.play(&setting, &names, stand);
                    stand = after;
                    // What an old copy says is done may be gone: it is done again.
                    found.extend(broken.into_iter().filter(|v| !stale || v.law != AGAIN));
                    stale = false;
                }
            }
        }
        let razes = |part: &Part| matches!(part, Part::Runs(runs) if runs.command == Command::Down);
        if !self.parts.iter().any(razes) {
            found.extend(told::no_second(&stand.datacenter));
        }
        found.extend(check::foreign(&setting, &foreign, &stand.datacenter));
        found
    }
}

fn read(rules: &[&str], names: &Names) -> Vec<Rule> {
    let read = rules.iter().map(|text| Rule::parse(text, names));
    read.collect::<Result<_, _>>().expect("the rules of a trial can be read")
}

fn lose_last(disk: &MemoryDisk, name: &str) {
    let bytes = disk.content(name).expect("the journal is there");
    let entries: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    disk.put(name, entries[..entries.len() - 1].concat());
}

fn happen(stand: &mut Stand, trouble: &Trouble) {
    let now = stand.datacenter.now;
    drop(stand.datacenter.input(now, &Input::Trouble(trouble.clone())));
}

impl Runs {
    fn play(&self, setting: &Setting, names: &Names, stand: Stand) -> (Stand, Vec<Violation>) {
        let before = stand.copy();
        let seen = Arc::new(Mutex::new(Seen::new(setting, self.killed, &stand)));
        let recorder = Recorder::new(Box::new(Watcher(seen.clone())));
        let rules = read(self.rules, names);
        let around = Around { recorder: Some(recorder), rules, settles: false };
        let ran = run(stand, setting, self.command, around);
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = std::mem::take(&mut seen.witness.found);
        if self.killed.is_some() {
            let fork = seen.taken.take().expect("the place where it is to be killed is there");
            found.retain(|(at, _)| *at <= fork.point.at);
            let found = found.into_iter().map(|(_, violation)| violation).collect();
            return (fork.stand, found);
        }
        let mut found: Vec<Violation> = found.into_iter().map(|(_, found)| found).collect();
        found.extend(seen.witness.is_left_alone(&ran.stand));
        found.extend(self.judge(setting, &before, &ran));
        (ran.stand, found)
    }

    fn judge(&self, setting: &Setting, before: &Stand, ran: &Run) -> Vec<Violation> {
        let mut found = Vec::new();
        if self.succeeds && !ran.is_done() {
            found.push(Violation::new("it converges", ran.verdict()));
        }
        if let Ok(known) = before.records() {
            let alive = !check::incarnations(&before.datacenter).is_empty();
            found.extend(check::again(&known, alive, ran));
        }
        found.extend(always(setting, before.datacenter.now, ran, &ran.requests));
        found.extend(told::tasks(&before.datacenter, &ran.stand.datacenter, &ran.events));
        found.extend(told::waits(self.rules, &ran.requests));
        found.extend(told::no_secret(&ran.stand, &ran.events));
        found.extend(truth::spared(self.spares, before, &ran.stand));
        if self.command == Command::Down && ran.is_done() {
            found.extend(truth::nothing_left(setting, self.spares, &ran.stand.datacenter));
        }
        found
    }
}

/// A watch over one run of somebody else's life.
pub(crate) struct Watch(Arc<Mutex<Seen>>);

impl Watch {
    /// Watches a run that begins here, through the recorder that it is given.
    pub(crate) fn over(setting: &Setting, stand: &Stand) -> (Self, Recorder) {
        let seen = Arc::new(Mutex::new(Seen::new(setting, None, stand)));
        (Self(seen.clone()), Recorder::new(Box::new(Watcher(seen))))
    }

    /// What was broken at a moment of it.
    pub(crate) fn found(self) -> Vec<Violation> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut seen.witness.found).into_iter().map(|(_, found)| found).collect()
    }
}

/// What holds of every run, whatever it meets, by what it told and asked.
pub(crate) fn always(
    setting: &Setting,
    began: u64,
    ran: &Run,
    asked: &[Request],
) -> Vec<Violation> {
    let mut found = told::only_transient(&ran.events);
    // The steps of a second run would seem to come before what they need.
    if let Ok([(plan, _)]) = ran.ended.as_deref() {
        found.extend(told::order(plan, &ran.events));
    }
    found.extend(truth::in_time(began, ran));
    found.extend(truth::one_bootstrap(setting, asked));
    found
}

/// What is seen of a run while it goes on.
struct Seen {
    witness: Witness,
    killed: Option<(Moment, &'static str)>,
    taken: Option<Fork>,
}

impl Seen {
    fn new(setting: &Setting, killed: Option<(Moment, &'static str)>, stand: &Stand) -> Self {
        Self { witness: Witness::new(setting, stand), killed, taken: None }
    }

    fn kills(&self, point: &Point) -> bool {
        let here =
            |(moment, call): &(Moment, &str)| point.moment == *moment && point.what.contains(call);
        self.taken.is_none() && self.killed.as_ref().is_some_and(here)
    }
}

/// Shows the witness what it wants to see.
struct Watcher(Arc<Mutex<Seen>>);

impl Taker for Watcher {
    fn wants(&mut self, point: &Point) -> bool {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.kills(point) || seen.witness.wants(point)
    }

    fn take(&mut self, fork: Fork) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.witness.wants(&fork.point) {
            seen.witness.look(&fork);
        }
        if seen.kills(&fork.point) {
            seen.taken = Some(fork);
        }
    }
}
