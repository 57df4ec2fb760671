//! The moments at which a run can be killed, each with what a crash then leaves: the world and the disk.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use castle_journal::MemoryDisk;
use castle_rehearsal::Host;
use castle_rehearsal::host::{Stage, Told};
use castle_rehearsal::world::Datacenter;
use tokio::sync::Notify;

use crate::castle::Stand;
use crate::disk::{Hearing, Write};

/// What stands behind a call that changes nothing, since it is only to be tried.
pub(crate) const DRY: &str = " (dry run)";

/// When, at a call or a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// The call was not carried out.
    BeforeSend,
    /// It was carried out, and its answer never came.
    AfterSend,
    /// The answer came, and nothing more was done.
    AfterReply,
    /// The journal was about to be written.
    BeforeJournal,
    /// Half of the bytes are on the disk.
    Torn,
    /// All of them are, and stayed.
    Written,
    /// All of them were, and the host lost its power before they were durable.
    PowerLost,
    /// They are durable, and nothing more was done.
    AfterJournal,
}

impl Moment {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::BeforeSend,
        Self::AfterSend,
        Self::AfterReply,
        Self::BeforeJournal,
        Self::Torn,
        Self::Written,
        Self::PowerLost,
        Self::AfterJournal,
    ];
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BeforeSend => "before send",
            Self::AfterSend => "after send",
            Self::AfterReply => "after reply",
            Self::BeforeJournal => "before journal",
            Self::Torn => "half written",
            Self::Written => "written, not durable",
            Self::PowerLost => "power lost",
            Self::AfterJournal => "after journal",
        })
    }
}

/// One moment of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// Its number within the act, from 0.
    pub number: usize,
    /// When, at a call or a write.
    pub moment: Moment,
    /// The call or the file.
    pub what: String,
    /// Virtual milliseconds since the world's birth.
    pub at: u64,
    /// How many requests had got their answer.
    pub requests: usize,
    /// The number of the state that a crash leaves, from 0: a point at which neither the world nor the disk has changed
    /// since the point before leaves the same.
    pub state: usize,
    /// Whether it is the first with its state.
    pub fresh: bool,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, moment, what) = (self.number, self.moment, &self.what);
        write!(f, "point {number}, {moment}: {what}, at {}.{:03} s", self.at / 1000, self.at % 1000)
    }
}

/// A point, and what a crash there leaves.
pub struct Fork {
    /// Which.
    pub point: Point,
    /// The world and the disk.
    pub stand: Stand,
}

/// Takes forks; says whether it wants the one of this point.
pub trait Taker: Send {
    /// Whether the world and the disk are to be copied at this point.
    fn wants(&mut self, point: &Point) -> bool;
    /// Takes what was wanted.
    fn take(&mut self, fork: Fork);
    /// Whether the process is killed when something was taken.
    fn kills(&self) -> bool {
        false
    }
}

/// What is remembered from one moment to the next.
struct Memory {
    taker: Box<dyn Taker>,
    number: usize,
    states: usize,
    /// Changes of the world and of the disk at the last point.
    last: Option<(u64, u64)>,
    writes: u64,
    kill: Arc<Notify>,
}

/// Counts the moments of a run, and forks where it is asked to.
#[derive(Clone)]
pub struct Recorder {
    memory: Arc<Mutex<Memory>>,
    kill: Arc<Notify>,
}

impl Recorder {
    /// A recorder for one act.
    #[must_use]
    pub fn new(taker: Box<dyn Taker>) -> Self {
        let kill = Arc::new(Notify::new());
        let memory =
            Memory { taker, number: 0, states: 0, last: None, writes: 0, kill: kill.clone() };
        Self { memory: Arc::new(Mutex::new(memory)), kill }
    }

    /// How many points there were.
    #[must_use]
    pub fn count(&self) -> usize {
        self.with(|memory| memory.number)
    }

    /// How many states they leave.
    #[must_use]
    pub fn states(&self) -> usize {
        self.with(|memory| memory.states)
    }

    /// Is notified when the process is to be killed.
    pub(crate) fn killing(&self) -> Arc<Notify> {
        self.kill.clone()
    }

    /// Listens to the calls of a datacenter.
    pub(crate) fn attend(&self, host: &Host, disk: &MemoryDisk) {
        let (recorder, disk) = (self.clone(), disk.clone());
        host.on_call(move |told| recorder.call(told, &disk));
    }

    /// Listens to the writes of a disk beside a datacenter.
    pub(crate) fn hearing(&self, host: &Arc<Host>) -> Hearing {
        let (recorder, host) = (self.clone(), Arc::downgrade(host));
        Arc::new(move |write, disk| {
            if let Some(host) = host.upgrade() {
                recorder.write(write, disk, &host);
            }
        })
    }

    fn call(&self, told: &Told<'_>, disk: &MemoryDisk) {
        let moment = match told.stage {
            Stage::Heard => Moment::BeforeSend,
            Stage::Carried => Moment::AfterSend,
            Stage::Answered => Moment::AfterReply,
        };
        let machine = told.machine.map(|vmid| format!(" {vmid}")).unwrap_or_default();
        let dry = if told.dry { DRY } else { "" };
        let what = format!("{}{machine} {} {}{dry}", told.server, told.method, told.path);
        let seen = Seen { at: told.now, requests: told.requests, changes: told.changes };
        self.with(|memory| {
            memory.moment((moment, what), &seen, || (told.datacenter.clone(), disk.copy()));
        });
    }

    fn write(&self, write: &Write<'_>, disk: &MemoryDisk, host: &Host) {
        let (changes, requests) = host.counted();
        let seen = Seen { at: host.now(), requests, changes };
        let world = || host.read(Clone::clone);
        self.with(|memory| match write {
            Write::Before { name } => {
                let what = (Moment::BeforeJournal, (*name).to_owned());
                memory.moment(what, &seen, || (world(), disk.copy()));
            }
            Write::Durable { name } => {
                memory.writes += 1;
                let what = (Moment::AfterJournal, (*name).to_owned());
                memory.moment(what, &seen, || (world(), disk.copy()));
            }
            Write::Written { name, bytes } => {
                for (moment, kept) in [
                    (Moment::Torn, Some(bytes.len() / 2)),
                    (Moment::Written, Some(bytes.len())),
                    (Moment::PowerLost, None),
                ] {
                    memory.writes += 1;
                    let what = (moment, (*name).to_owned());
                    memory.moment(what, &seen, || (world(), crashed(disk, name, bytes, kept)));
                }
            }
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut Memory) -> T) -> T {
        act(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a disk holds after a crash within a write: so many of its bytes, or only what was durable.
fn crashed(disk: &MemoryDisk, name: &str, bytes: &[u8], kept: Option<usize>) -> MemoryDisk {
    let copy = disk.copy();
    match kept {
        None => copy.lose_power(),
        Some(kept) => {
            let mut content = copy.content(name).unwrap_or_default();
            content.truncate(content.len() - bytes.len() + kept);
            copy.put(name, content);
        }
    }
    copy
}

/// The counts of a moment.
struct Seen {
    at: u64,
    requests: usize,
    changes: u64,
}

impl Memory {
    fn moment(
        &mut self,
        (moment, what): (Moment, String),
        seen: &Seen,
        copy: impl FnOnce() -> (Datacenter, MemoryDisk),
    ) {
        let now = Some((seen.changes, self.writes));
        let fresh = self.last != now;
        let point = Point {
            number: self.number,
            moment,
            what,
            at: seen.at,
            requests: seen.requests,
            state: self.states - usize::from(!fresh),
            fresh,
        };
        self.states += usize::from(fresh);
        self.number += 1;
        self.last = now;
        if self.taker.wants(&point) {
            let (mut datacenter, disk) = copy();
            datacenter.now = datacenter.now.max(seen.at);
            self.taker.take(Fork { point, stand: Stand { datacenter, disk } });
            if self.taker.kills() {
                self.kill.notify_one();
            }
        }
    }
}
