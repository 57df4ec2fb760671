//! The table of kinds: what can be broken, how it is said, and what it does.

mod answer;
mod cluster;
mod machine;
mod own;
mod proxmox;
mod source;

use super::rule::Who;
use super::value::Given;
use crate::trouble::Trouble;

/// What a place in a rule takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// What a call is to: a machine, guest, storage or a part of an address, as the server has it.
    Target,
    /// A machine of the castle file.
    Machine,
    /// A guest, by its number or a machine's name.
    Guest,
    /// A storage of the castle file.
    Storage,
    /// An address, in numbers or as a machine's name or `vip`.
    Address,
    /// A time, `M:SS`.
    Time,
    /// A status of HTTP.
    Status,
    /// A whole number.
    Number,
    /// One of these words.
    Word(&'static [&'static str]),
    /// An object of the cluster: `KIND/NAMESPACE/NAME` or `KIND/NAME`.
    Object,
    /// An object in JSON.
    Json,
    /// An option of a VM, as the schema of Proxmox has it.
    Setting,
    /// What the option before it is set to.
    Value,
    /// Any text; in quotes if it has spaces.
    Text,
}

/// One place in a rule that takes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// How it is called in explanations, in capitals.
    pub name: &'static str,
    /// What it takes.
    pub shape: Shape,
    /// Whether it may be left out.
    pub optional: bool,
}

impl Slot {
    const fn needed(name: &'static str, shape: Shape) -> Self {
        Self { name, shape, optional: false }
    }

    const fn optional(name: &'static str, shape: Shape) -> Self {
        Self { name, shape, optional: true }
    }
}

/// One way in which something breaks.
#[derive(Debug)]
pub struct Kind {
    /// Its words in a rule.
    pub name: &'static str,
    /// Who can break so.
    pub who: &'static [Who],
    /// What stands behind who.
    pub object: Option<Slot>,
    /// What stands behind the name.
    pub arguments: &'static [Slot],
    /// What it does, in one sentence.
    pub about: &'static str,
    /// A rule that works in the example castle.
    pub example: &'static str,
    /// What is told when it strikes, behind who it is; `{0}` is the first argument.
    pub(super) says: &'static str,
    /// What it does.
    pub(super) make: Make,
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.who == other.who
    }
}

impl Kind {
    /// Whether it changes the world at a moment, so that `poke` can do it; else it strikes calls.
    #[must_use]
    pub fn is_change(&self) -> bool {
        matches!(self.make, Make::Change(_) | Make::Passing(..))
    }

    /// Whether it can be over again, with `until` or `for`.
    #[must_use]
    pub fn can_end(&self) -> bool {
        match &self.make {
            Make::Change(_) | Make::Watches(_) => false,
            Make::Own(own) => own.can_end(),
            Make::Passing(..) | Make::Answer(_) | Make::Clock(_) => true,
        }
    }

    /// How a rule of it is written, in general.
    #[must_use]
    pub fn form(&self) -> String {
        let slot = |slot: &Slot| {
            if slot.optional { format!(" [{}]", slot.name) } else { format!(" {}", slot.name) }
        };
        let who = match self.who {
            [who] => who.name(),
            _ => "SERVER",
        };
        let object = self.object.iter().map(slot).collect::<String>();
        let arguments = self.arguments.iter().map(slot).collect::<String>();
        format!("{who}{object}: {}{arguments}", self.name)
    }

    /// The words that an argument can be, where that is a list.
    #[must_use]
    pub fn words(&self) -> Vec<(&'static str, &'static [&'static str])> {
        let list = |slot: &Slot| match slot.shape {
            Shape::Word(words) => Some((slot.name, words)),
            _ => None,
        };
        self.arguments.iter().filter_map(list).collect()
    }

    /// What a rule with these values does.
    pub(super) fn deed(&self, given: &Given<'_>) -> Deed {
        match &self.make {
            Make::Change(now) => Deed::Change { now: now(given), over: None },
            Make::Passing(now, over) => Deed::Change { now: now(given), over: Some(over(given)) },
            Make::Answer(blow) => Deed::Answer(blow(given)),
            Make::Watches(how) => Deed::Watches(*how),
            Make::Clock(shift) => Deed::Clock(shift(given)),
            Make::Own(own) => Deed::Own(*own),
        }
    }
}

/// What makes the deed of a rule.
#[derive(Debug)]
pub(super) enum Make {
    /// The world changes, for good.
    Change(fn(&Given<'_>) -> Vec<Trouble>),
    /// The world changes, and can change back.
    Passing(fn(&Given<'_>) -> Vec<Trouble>, fn(&Given<'_>) -> Vec<Trouble>),
    /// Calls are struck.
    Answer(fn(&Given<'_>) -> Blow),
    /// All watches end.
    Watches(WatchEnd),
    /// The program's clock is off by so many milliseconds.
    Clock(fn(&Given<'_>) -> i64),
    /// The computer that the program runs on breaks.
    Own(Own),
}

/// What a rule does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Deed {
    /// The world changes.
    Change {
        /// How.
        now: Vec<Trouble>,
        /// How it changes back.
        over: Option<Vec<Trouble>>,
    },
    /// Calls are struck.
    Answer(Blow),
    /// All watches end.
    Watches(WatchEnd),
    /// The program's clock is off by so many milliseconds.
    Clock(i64),
    /// The computer that the program runs on breaks.
    Own(Own),
}

/// What breaks of the computer that the program runs on. No datacenter has it: whoever hosts the program carries it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// Its power is gone, and with it what no disk was made to keep.
    Power,
    /// The disk with the program's state does this from now on.
    Disk(OwnDisk),
    /// Somebody starts the program once more over the same state.
    Operator,
}

/// What a disk does that holds the program's state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OwnDisk {
    /// What it is told to.
    #[default]
    Sound,
    /// It has room for half of what is written next, and for nothing then.
    Full,
    /// It does nothing, and says so.
    Fails,
    /// It takes no change.
    ReadOnly,
    /// It writes half of what comes next, and the power goes.
    Tears,
    /// Somebody has moved the state away, and may have begun another one in its place.
    Taken,
}

impl Own {
    /// Whether it can be over again.
    fn can_end(self) -> bool {
        matches!(self, Self::Disk(OwnDisk::Full | OwnDisk::Fails | OwnDisk::ReadOnly))
    }

    /// How it is over, if it can be.
    pub(super) fn over(self) -> Option<Self> {
        self.can_end().then_some(Self::Disk(OwnDisk::Sound))
    }
}

/// How a watch ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchEnd {
    /// The connection ends.
    Dropped,
    /// The server does not remember what came since.
    Expired,
}

/// What happens to a call that is struck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Blow {
    /// Nobody listens.
    Refused,
    /// No packet arrives.
    Unreachable,
    /// The connection breaks before the call is heard.
    DropBefore,
    /// The connection breaks after the call was carried out.
    DropAfter,
    /// The call is heard, and nobody answers.
    Hangs,
    /// The answer takes so many milliseconds longer.
    Slow(u64),
    /// The answer comes in small pieces over so many milliseconds.
    Drips(u64),
    /// A status, and after how many milliseconds to come again.
    Answers(u16, Option<u64>),
    /// A read is answered as an earlier one was.
    Stale,
    /// The call is carried out twice, and the second answer is given.
    Twice,
    /// The answer comes once more, unasked.
    AnswersTwice,
    /// Events of watches come so many milliseconds late.
    EventsLate(u64),
    /// Events of watches come twice.
    EventsTwice,
    /// The program ends before the call is heard.
    KillBefore,
    /// The program ends after the call was carried out, before it hears of it.
    KillAfter,
}

/// All kinds, in the order in which they are explained.
pub fn kinds() -> impl Iterator<Item = &'static Kind> {
    [answer::KINDS, own::KINDS, proxmox::KINDS, machine::KINDS, cluster::KINDS, source::KINDS]
        .into_iter()
        .flatten()
}

/// The kind of this name that somebody can have.
#[must_use]
pub fn find(who: Who, name: &str) -> Option<&'static Kind> {
    kinds().find(|kind| kind.name == name && kind.who.contains(&who))
}
