//! Trials: short lives of a castle in which one thing goes wrong at one place, watched by every law at every moment.
//!
//! The matrix asks of each moment whether castle comes back; a seed asks of a whole life. A trial is between them: a seed
//! that somebody wrote down, because a planted bug ([`crate::planted`]) is known to show there.

pub(crate) mod announce;
pub(crate) mod told;
pub(crate) mod truth;
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

pub(crate) use witness::Sight;
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

/// Rules that somebody wrote down.
///
/// # Panics
/// If one can not be read: then it would try nothing.
pub(crate) fn read(rules: &[&str], names: &Names) -> Vec<Rule> {
    let read = rules.iter().map(|text| Rule::parse(text, names));
    read.collect::<Result<_, _>>().expect("the rules of a trial can be read")
}

fn lose_last(disk: &MemoryDisk, name: &str) {
    let bytes = disk.content(name).expect("the journal is there");
    let entries: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    disk.put(name, entries[..entries.len() - 1].concat());
}

/// Lets something happen to a world while nobody runs.
pub(crate) fn happen(stand: &mut Stand, trouble: &Trouble) {
    let now = stand.datacenter.now;
    drop(stand.datacenter.input(now, &Input::Trouble(trouble.clone())));
}

impl Runs {
    fn play(&self, setting: &Setting, names: &Names, stand: Stand) -> (Stand, Vec<Violation>) {
        let before = stand.copy();
        let place = self.killed.map(|(moment, call)| Place::Call(moment, call));
        let (watch, recorder) = Watch::until(setting, &stand, Sight::WHOLE, place);
        let rules = read(self.rules, names);
        let around = Around { recorder: Some(recorder), rules, settles: false };
        let ran = run(stand, setting, self.command, around);
        if self.killed.is_some() {
            let fork = watch.taken().expect("the place where it is to be killed is there");
            return (fork.stand, watch.found());
        }
        let mut found = watch.found();
        found.extend(watch.end(&ran.stand));
        found.extend(self.judge(setting, &before, &ran));
        (ran.stand, found)
    }

    fn judge(&self, setting: &Setting, before: &Stand, ran: &Run) -> Vec<Violation> {
        let mut found = Vec::new();
        if self.succeeds && !ran.is_done() {
            found.push(Violation::new("it converges", ran.verdict()));
        }
        match before.records() {
            Ok(known) => {
                let alive = !check::incarnations(&before.datacenter).is_empty();
                found.extend(check::again(&known, alive, ran));
            }
            Err(error) => found.push(Violation::new("the journal can be read", error)),
        }
        found.extend(always(setting, before.datacenter.now, ran, &ran.requests));
        found.extend(told::tasks(&before.datacenter, &ran.stand.datacenter, &ran.events));
        found.extend(told::waits(self.rules, &ran.requests));
        found.extend(told::no_secret(&ran.stand, &ran.events));
        for vmid in self.spares {
            found.extend(truth::spared(*vmid, &truth::guest(before, *vmid), &ran.stand));
        }
        if self.command == Command::Down && ran.says_done() {
            found.extend(truth::nothing_left(setting, self.spares, &ran.stand.datacenter));
        }
        found
    }
}

/// Where a process is killed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// At the first such moment of a call or a write whose name holds this.
    Call(Moment, &'static str),
    /// At the point of this number.
    Number(usize),
}

/// A watch over one run: it looks at every moment, if it can see, and kills at one, if it is told to.
pub(crate) struct Watch(Arc<Mutex<Seen>>);

impl Watch {
    /// Watches a run that begins here, through the recorder that it is given.
    pub(crate) fn over(setting: &Setting, stand: &Stand, sight: Sight) -> (Self, Recorder) {
        Self::until(setting, stand, sight, None)
    }

    /// The same, and kills it at a place.
    pub(crate) fn until(
        setting: &Setting,
        stand: &Stand,
        sight: Sight,
        place: Option<Place>,
    ) -> (Self, Recorder) {
        Self::new(Some(Witness::new(setting, stand, sight)), place)
    }

    /// Only kills.
    pub(crate) fn blind(place: Option<Place>) -> (Self, Recorder) {
        Self::new(None, place)
    }

    fn new(witness: Option<Witness>, place: Option<Place>) -> (Self, Recorder) {
        let seen = Arc::new(Mutex::new(Seen { witness, place, taken: None }));
        (Self(seen.clone()), Recorder::new(Box::new(Watcher(seen))))
    }

    /// What the kill left, if it came to it; once.
    pub(crate) fn taken(&self) -> Option<Fork> {
        self.with(|seen| seen.taken.take())
    }

    /// What was broken at a moment of it.
    pub(crate) fn found(&self) -> Vec<Violation> {
        self.with(|seen| seen.witness.as_mut().map(|witness| std::mem::take(&mut witness.found)))
            .unwrap_or_default()
    }

    /// What is broken at its end.
    fn end(&self, stand: &Stand) -> Vec<Violation> {
        self.with(|seen| seen.witness.as_mut().map(|witness| witness.is_left_alone(stand)))
            .unwrap_or_default()
    }

    fn with<T>(&self, act: impl FnOnce(&mut Seen) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
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
    found.extend(told::pauses(&ran.events));
    // The steps of a second run would seem to come before what they need.
    if let Ok([(plan, _)]) = ran.ended.as_deref() {
        found.extend(told::order(plan, &ran.events));
    }
    for (plan, _) in ran.ended.iter().flatten() {
        found.extend(told::in_its_time(plan, &setting.spec.deadlines, &ran.events));
    }
    found.extend(truth::in_time(began, ran));
    found.extend(truth::one_bootstrap(setting, asked));
    found
}

/// What is seen of a run while it goes on.
struct Seen {
    witness: Option<Witness>,
    place: Option<Place>,
    taken: Option<Fork>,
}

impl Seen {
    fn kills(&self, point: &Point) -> bool {
        self.taken.is_none()
            && match self.place {
                Some(Place::Call(moment, call)) => {
                    point.moment == moment && point.what.contains(call)
                }
                Some(Place::Number(number)) => point.number == number,
                None => false,
            }
    }

    fn is_looked_at(&self, point: &Point) -> bool {
        self.taken.is_none() && self.witness.as_ref().is_some_and(|witness| witness.wants(point))
    }
}

/// Shows the witness what it wants to see.
struct Watcher(Arc<Mutex<Seen>>);

impl Watcher {
    fn with<T>(&self, act: impl FnOnce(&mut Seen) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Taker for Watcher {
    fn wants(&mut self, point: &Point) -> bool {
        self.with(|seen| seen.kills(point) || seen.is_looked_at(point))
    }

    fn take(&mut self, fork: Fork) {
        self.with(|seen| {
            if seen.is_looked_at(&fork.point)
                && let Some(witness) = &mut seen.witness
            {
                witness.look(&fork);
            }
            if seen.kills(&fork.point) {
                seen.taken = Some(fork);
            }
        });
    }

    fn kills(&self) -> bool {
        self.with(|seen| seen.taken.is_some())
    }
}
