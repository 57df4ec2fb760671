//! The journal of a rebirth: which half of which cycle is done, so that a killed one goes on where it was.
//!
//! ```text
//!   begun ─▶ (down runs) ─▶ razed ─▶ (up runs) ─▶ risen ─▶ … as many cycles as were asked for … ─▶ ended
//! ```
//!
//! Each record is durable before the next half begins. What is not recorded is done again, and doing it again is safe:
//! a finished `down` finds nothing, a finished `up` finds everything.

mod course;

use std::collections::BTreeSet;
use std::io;

use castle_model::RunId;
use castle_model::plan::Direction;
use castle_model::time::Moment;
use serde::{Deserialize, Serialize};

use crate::disk::Disk;
use crate::entry::sum;
use crate::error::{Corruption, StateError};
use crate::events::number;
use crate::journals::{Journals, repeated};
use crate::records::RunRecord;

pub use course::HalfEnd;

/// The file, in the state folder.
pub(crate) const REBIRTH_FILE: &str = "rebirth.journal";

/// The version of its lines.
const SCHEMA: u32 = 1;

/// How a rebirth ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "kebab-case")]
pub enum RebirthEnd {
    /// The castle stands again.
    Done,
    /// Every cycle went well without a hand.
    Certified,
    /// Some cycle did not.
    NotCertified {
        /// Why not.
        why: String,
    },
    /// Somebody decided otherwise.
    GivenUp {
        /// By what.
        by: String,
    },
}

/// What is recorded of a rebirth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum RebirthRecord {
    /// It begins.
    Begun {
        /// How often the castle is to go and come back.
        cycles: u32,
        /// Whether a verdict is wanted.
        certify: bool,
        /// The last run before it.
        after: Option<RunId>,
    },
    /// Another process goes on with it.
    Resumed,
    /// The castle is gone.
    Razed {
        /// The run that finished it.
        run: RunId,
    },
    /// The castle stands again: a cycle is over.
    Risen {
        /// The run that finished it.
        run: RunId,
    },
    /// A half did not come to its end by itself.
    Stumbled {
        /// With which exit code.
        exit: u8,
        /// In a few words.
        why: String,
    },
    /// It is over.
    Ended {
        /// How.
        #[serde(flatten)]
        end: RebirthEnd,
    },
}

/// One cycle: down, then up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Cycle {
    /// The run that finished the way down.
    pub down: Option<RunId>,
    /// The run that finished the way up.
    pub up: Option<RunId>,
    /// Whether a process was ended in it and another went on; then its times mean nothing.
    pub resumed: bool,
    /// What did not come to its end by itself, first of all.
    pub stumbled: Option<String>,
}

/// A rebirth as its journal tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rebirth {
    /// When it was begun.
    pub began: Moment,
    /// How many cycles were asked for.
    pub cycles: u32,
    /// Whether a verdict is wanted.
    pub certify: bool,
    /// The last run before it.
    pub after: Option<RunId>,
    /// The cycles so far; the last one may be open.
    pub seen: Vec<Cycle>,
    /// When and how it ended.
    pub ended: Option<(Moment, RebirthEnd)>,
}

impl Rebirth {
    /// Which way it goes next; none if it is over, or nothing is left to be done.
    #[must_use]
    pub fn due(&self) -> Option<Direction> {
        if self.ended.is_some() || self.is_complete() {
            return None;
        }
        let open = self.seen.last().filter(|cycle| cycle.up.is_none());
        let razed = open.is_some_and(|cycle| cycle.down.is_some());
        Some(if razed { Direction::Up } else { Direction::Down })
    }

    /// Whether the run journal knows of a way up that this journal does not: its end was lost, and what is rising
    /// must not be razed again.
    #[must_use]
    pub fn is_behind(&self, last: &RunRecord) -> bool {
        self.due() == Some(Direction::Down)
            && last.direction == Direction::Up
            && self.after.as_ref() != Some(&last.id)
            && !self.runs().contains(&last.id)
    }

    /// The cycle that is under way, from 1.
    #[must_use]
    pub fn cycle(&self) -> usize {
        self.seen.len().max(1)
    }

    /// Whether every cycle was gone through. One that stumbled, or that somebody went on with where a verdict was wanted, is
    /// finished, and no other begun.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let last_is_whole = self.seen.last().is_some_and(|cycle| cycle.up.is_some());
        let spoiled = self
            .seen
            .iter()
            .any(|cycle| cycle.stumbled.is_some() || (self.certify && cycle.resumed));
        last_is_whole && (spoiled || self.seen.len() >= self.cycles as usize)
    }

    /// Why it can not be certified any more, if so.
    #[must_use]
    pub fn spoiled(&self) -> Option<String> {
        let mut cycles = self.seen.iter().enumerate();
        cycles.find_map(|(number, cycle)| {
            let number = number + 1;
            match &cycle.stumbled {
                Some(why) => Some(format!("cycle {number}: {why}")),
                None => cycle
                    .resumed
                    .then(|| format!("cycle {number} was interrupted and gone on with by hand")),
            }
        })
    }

    /// Whether a run of the cycle that is due has begun, by the last run that is known.
    fn has_begun(&self, last: Option<&RunId>) -> bool {
        let border = match self.seen.last() {
            None => self.after.as_ref(),
            Some(Cycle { up: Some(up), stumbled: None, .. }) => Some(up),
            Some(_) => return true,
        };
        last != border
    }

    /// The runs that it was made of so far, as far as they came to an end.
    #[must_use]
    pub fn runs(&self) -> BTreeSet<RunId> {
        self.seen.iter().flat_map(|cycle| [&cycle.down, &cycle.up]).flatten().cloned().collect()
    }

    /// Whether a run belongs to it, whatever became of the run: its events are part of what a verdict stands on. All that
    /// came after its beginning do while it is open, and up to its last half once it is over.
    #[must_use]
    pub fn is_of(&self, run: &RunId) -> bool {
        let last = match &self.ended {
            None => u64::MAX,
            Some(_) => self.runs().iter().map(number).max().unwrap_or(0),
        };
        let after = self.after.as_ref().map_or(0, number);
        (after + 1..=last).contains(&number(run))
    }

    fn open_cycle(&mut self) -> &mut Cycle {
        if self.seen.last().is_none_or(|cycle| cycle.up.is_some()) {
            self.seen.push(Cycle::default());
        }
        let last = self.seen.len() - 1;
        &mut self.seen[last]
    }
}

/// What follows: the one function for live recording and for reading back.
pub(crate) fn follow(
    known: Option<Rebirth>,
    at: Moment,
    record: RebirthRecord,
) -> Result<Rebirth, &'static str> {
    let open = |known: Option<Rebirth>| {
        known.filter(|rebirth| rebirth.ended.is_none()).ok_or("no rebirth is open")
    };
    match record {
        RebirthRecord::Begun { cycles, certify, after } => {
            if known.is_some_and(|rebirth| rebirth.ended.is_none()) {
                return Err("a rebirth is open already");
            }
            Ok(Rebirth { began: at, cycles, certify, after, seen: Vec::new(), ended: None })
        }
        RebirthRecord::Resumed => {
            let mut rebirth = open(known)?;
            if !rebirth.is_complete() {
                rebirth.open_cycle().resumed = true;
            }
            Ok(rebirth)
        }
        RebirthRecord::Razed { run } => {
            let mut rebirth = open(known)?;
            if rebirth.due() != Some(Direction::Down) {
                return Err("the way down is done already");
            }
            rebirth.open_cycle().down = Some(run);
            Ok(rebirth)
        }
        RebirthRecord::Risen { run } => {
            let mut rebirth = open(known)?;
            if rebirth.due() != Some(Direction::Up) {
                return Err("the way down comes first");
            }
            rebirth.open_cycle().up = Some(run);
            Ok(rebirth)
        }
        RebirthRecord::Stumbled { exit, why } => {
            let mut rebirth = open(known)?;
            let told = format!("{why} (exit code {exit})");
            rebirth.open_cycle().stumbled.get_or_insert(told);
            Ok(rebirth)
        }
        RebirthRecord::Ended { end } => {
            let mut rebirth = open(known)?;
            rebirth.ended = Some((at, end));
            Ok(rebirth)
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Line {
    v: u32,
    at: Moment,
    #[serde(flatten)]
    record: RebirthRecord,
}

/// The line of a record, with its check sum before it: `SUM {"v":1,…}`.
pub(crate) fn encode(at: Moment, record: &RebirthRecord) -> Vec<u8> {
    let line = Line { v: SCHEMA, at, record: record.clone() };
    let text = serde_json::to_vec(&line).unwrap_or_default();
    [sum(&text).as_bytes(), b" ", &text, b"\n"].concat()
}

/// The journal as a process that may write has it.
pub(crate) struct RebirthBook {
    known: Result<Option<Rebirth>, StateError>,
    /// How many bytes of the file are whole lines.
    length: u64,
}

impl RebirthBook {
    /// Reads the journal. One that is damaged stays as it is, and spoils nothing but the rebirth.
    pub(crate) fn open(disk: &mut dyn Disk) -> Self {
        match read(disk) {
            Ok((known, length)) => Self { known: Ok(known), length },
            Err(problem) => Self { known: Err(problem), length: 0 },
        }
    }
}

impl Journals {
    /// The last rebirth that was begun, over or not.
    ///
    /// # Errors
    /// If its journal is damaged.
    pub fn rebirth(&self) -> Result<Option<&Rebirth>, StateError> {
        self.rebirth.known.as_ref().map(Option::as_ref).map_err(repeated)
    }

    /// The rebirth that was begun and is not over.
    #[must_use]
    pub fn open_rebirth(&self) -> Option<&Rebirth> {
        let known = self.rebirth.known.as_ref().ok().and_then(Option::as_ref);
        known.filter(|rebirth| rebirth.ended.is_none())
    }

    /// Records how a rebirth goes on; durable when this returns. A new one takes the place of the last.
    ///
    /// # Errors
    /// If it can not follow what is known, the journal is damaged, or the disk refuses.
    pub fn record_rebirth(&mut self, at: Moment, record: &RebirthRecord) -> Result<(), StateError> {
        self.check_sound()?;
        let known = self.rebirth()?.cloned();
        let next = follow(known, at, record.clone())
            .map_err(|_| StateError::Misuse { doing: "record a rebirth out of its order" })?;
        let line = encode(at, record);
        let refused = |source| StateError::Write { file: REBIRTH_FILE.to_owned(), source };
        if matches!(record, RebirthRecord::Begun { .. }) {
            self.disk.replace(REBIRTH_FILE, &line).map_err(refused)?;
            self.rebirth = RebirthBook { known: Ok(Some(next)), length: line.len() as u64 };
            return Ok(());
        }
        let length = self.rebirth.length;
        let there = self.disk.length(REBIRTH_FILE).map_err(refused)?;
        if there < length {
            // Cutting it to a length that it does not have would fill it up with nothing.
            return Err(refused(io::Error::other(format!(
                "somebody has shortened it meanwhile, from {length} bytes to {there}"
            ))));
        }
        // What a stopped write has left behind the last whole line goes first.
        self.disk.truncate(REBIRTH_FILE, length).map_err(refused)?;
        if let Err(source) = self.disk.append(REBIRTH_FILE, &line) {
            self.disk.truncate(REBIRTH_FILE, length).ok();
            return Err(refused(source));
        }
        if let Err(error) = self.disk.sync(REBIRTH_FILE) {
            let why = format!("{REBIRTH_FILE} could not be made durable ({error})");
            self.poisoned = Some(why.clone());
            return Err(StateError::Poisoned { why });
        }
        self.rebirth = RebirthBook { known: Ok(Some(next)), length: length + line.len() as u64 };
        Ok(())
    }
}

/// What is on a disk, and how many bytes of it are whole lines; an unfinished last one was never acted on.
pub(crate) fn read(disk: &mut dyn Disk) -> Result<(Option<Rebirth>, u64), StateError> {
    let Some(bytes) = disk.read(REBIRTH_FILE)? else { return Ok((None, 0)) };
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    if whole == 0 {
        // Its first line comes with the file, whole or not at all.
        let (file, why) = (REBIRTH_FILE.to_owned(), "its beginning is gone".to_owned());
        return Err(StateError::Corrupt(Corruption { file, entry: 1, why }));
    }
    let mut rebirth = None;
    let lines = bytes[..whole].split_inclusive(|byte| *byte == b'\n');
    for (number, line) in lines.enumerate() {
        let wrong = |why: String| {
            let (file, entry) = (REBIRTH_FILE.to_owned(), number as u64 + 1);
            StateError::Corrupt(Corruption { file, entry, why })
        };
        let line = decode(line).map_err(|why| match why {
            Unreadable::Newer(found) => {
                StateError::Newer { file: REBIRTH_FILE.to_owned(), found, known: SCHEMA }
            }
            Unreadable::Damaged(why) => wrong(why),
        })?;
        let next = follow(rebirth, line.at, line.record);
        rebirth = Some(next.map_err(|why| wrong(why.to_owned()))?);
    }
    Ok((rebirth, whole as u64))
}

enum Unreadable {
    Damaged(String),
    Newer(u32),
}

fn decode(line: &[u8]) -> Result<Line, Unreadable> {
    let damaged = |why: &str| Unreadable::Damaged(why.to_owned());
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let space = line.iter().position(|byte| *byte == b' ');
    let (told, text) = line.split_at(space.ok_or_else(|| damaged("it has no check sum"))?);
    let text = &text[1..];
    if sum(text).as_bytes() != told {
        return Err(damaged("its check sum does not fit"));
    }
    let value: serde_json::Value =
        serde_json::from_slice(text).map_err(|error| Unreadable::Damaged(error.to_string()))?;
    let version = value.get("v").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if version > u64::from(SCHEMA) {
        return Err(Unreadable::Newer(u32::try_from(version).unwrap_or(u32::MAX)));
    }
    serde_json::from_value(value).map_err(|error| Unreadable::Damaged(error.to_string()))
}
