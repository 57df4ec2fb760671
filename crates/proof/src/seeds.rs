//! A seed is a life: a castle of some shape among neighbours, commands one after the other, faults and crashes on the way.
//!
//! The storm comes first: commands with faults armed and perhaps a crash, state thrown away at times. Then it is calm:
//! what can be mended is mended, and the last command must converge, or say what it waits for. Everything is drawn from the
//! seed, so the same seed is the same life to the last request.

mod calm;
mod storm;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use castle_journal::MemoryDisk;
use castle_rehearsal::turn::Dice;
use castle_rehearsal::world::Input;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::castle::{Around, Command, Run, Stand, run};
use crate::check::{self, Violation};
use crate::point::Fork;
use crate::setting::{Neighbour, Setting, Shape};
use crate::trial::{Watch, always, told, truth};

/// The most commands of a storm.
const COMMANDS_MAX: u64 = 3;

/// What came of one seed.
#[derive(Debug, Clone)]
pub struct Life {
    /// Which.
    pub seed: u64,
    /// What happened, a line for each thing, for whoever replays it.
    pub story: Vec<String>,
    /// The hash over everything that happened: the same seed has the same.
    pub trace: String,
    /// What did not hold.
    pub violations: Vec<Violation>,
    /// The kinds of faults that struck.
    pub kinds: BTreeSet<String>,
    /// How many processes were killed.
    pub crashes: usize,
    /// How many processes ran.
    pub runs: usize,
    /// Whether the last command converged; if not, it has said why.
    pub converged: bool,
    /// How often the last command was started until it converged, or was given up.
    pub starts: usize,
    /// What its end was held against.
    pub end: End,
}

/// What the end of a life was held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// The world of a castle that nothing has ever happened to.
    SameWorld,
    /// The world before the first castle.
    NothingLeft,
    /// One of the two, but for the numbers at which others have put their things.
    Apart,
    /// A rule has broken something for good, or others are in the way: it has to say what it lacks, and to what.
    Explained,
    /// A VM died while it was made, and the journal that could tell whose it is was deleted.
    Ruined,
    /// Something panicked before the end.
    None,
}

impl End {
    /// What it was held against, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::SameWorld => "the same world",
            Self::NothingLeft => "nothing left",
            Self::Apart => "the same but for what others put there",
            Self::Explained => "did not converge, and explained it",
            Self::Ruined => "ruined where no journal can tell",
            Self::None => "no end",
        }
    }

    /// Whether a whole world was compared.
    #[must_use]
    pub fn is_compared(self) -> bool {
        matches!(self, Self::SameWorld | Self::NothingLeft | Self::Apart)
    }
}

/// The worlds of crash-free lives, by shape: what a calm end is held against.
#[derive(Debug, Default)]
pub struct Almanac {
    standing: Mutex<BTreeMap<(usize, usize), Arc<Value>>>,
}

/// The shapes that are drawn, the small ones more often.
const SHAPES: [(Shape, u64); 3] = [
    (Shape { control_planes: 1, workers: 1 }, 70),
    (Shape { control_planes: 1, workers: 2 }, 20),
    (Shape { control_planes: 3, workers: 2 }, 10),
];

/// Lives the life of a seed.
#[must_use]
pub fn live(seed: u64, almanac: &Almanac) -> Life {
    lived(seed, almanac, false)
}

/// The same life, and every moment of it is looked at as in a trial. It takes longer, and its trace is the same.
#[must_use]
pub fn live_watched(seed: u64, almanac: &Almanac) -> Life {
    lived(seed, almanac, true)
}

fn lived(seed: u64, almanac: &Almanac, watched: bool) -> Life {
    let living = || Living { watched, ..Living::of(seed) }.live(almanac);
    catch_unwind(AssertUnwindSafe(living)).unwrap_or_else(|_| Life {
        seed,
        story: Vec::new(),
        trace: String::new(),
        violations: vec![Violation::new("no panic", "something panicked; the words are above")],
        kinds: BTreeSet::new(),
        crashes: 0,
        runs: 0,
        converged: false,
        starts: 0,
        end: End::None,
    })
}

impl Almanac {
    /// Fills it for every shape that is drawn, before anything is broken on purpose.
    ///
    /// # Errors
    /// If a castle does not rise.
    pub fn prepare(&self) -> Result<(), String> {
        for (shape, _) in SHAPES {
            self.standing(&Setting::of(shape, 1), shape)?;
        }
        Ok(())
    }

    /// What a datacenter counts of ours when a castle of this shape stands.
    fn standing(&self, setting: &Setting, shape: Shape) -> Result<Arc<Value>, String> {
        let key = (shape.control_planes, shape.workers);
        let mut known = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(&key) {
            return Ok(found.clone());
        }
        let alone = Setting { neighbours: Vec::new(), seed: 1, spec: setting.spec.clone() };
        let around = Around { settles: true, ..Around::default() };
        let raised = run(alone.empty(), &alone, Command::Up, around);
        if !raised.is_done() {
            return Err(raised.verdict());
        }
        let found = Arc::new(check::ours(&alone, &raised.stand.datacenter));
        known.insert(key, found.clone());
        Ok(found)
    }
}

/// A life that is being lived.
struct Living {
    life: Life,
    dice: Dice,
    shape: Shape,
    setting: Setting,
    /// What foreign things were like at the beginning.
    foreign: Value,
    /// What a datacenter counts before the first castle.
    empty: Value,
    /// Where etcd was begun.
    begun: check::Begun,
    /// The rules that have broken something for good, as they are written: those that struck, and no others. Each with what
    /// castle may call what it broke.
    scars: BTreeMap<String, BTreeSet<String>>,
    /// Numbers at which others have put their things, or changed ours into theirs.
    apart: BTreeSet<u32>,
    /// Numbers at which a VM was being made when the state folder was deleted.
    orphans: BTreeSet<u32>,
    mending: Vec<Input>,
    /// What somebody else has put in the place of one of ours, as it came.
    squatter: Option<(u32, Value)>,
    /// Whether every moment is looked at.
    watched: bool,
    hash: Sha256,
}

impl Living {
    fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(8));
        let shape = shape(&mut dice);
        let mut setting = Setting::of(shape, seed);
        setting.neighbours = neighbours(&mut dice, &setting);
        let empty = setting.empty();
        let life = Life {
            seed,
            story: vec![format!("{}+{} machines", shape.control_planes, shape.workers)],
            trace: String::new(),
            violations: Vec::new(),
            kinds: BTreeSet::new(),
            crashes: 0,
            runs: 0,
            converged: false,
            starts: 0,
            end: End::None,
        };
        Self {
            life,
            dice,
            shape,
            foreign: setting.foreign(&empty.datacenter),
            empty: check::ours(&setting, &empty.datacenter),
            setting,
            begun: check::Begun::new(),
            scars: BTreeMap::new(),
            apart: BTreeSet::new(),
            orphans: BTreeSet::new(),
            mending: Vec::new(),
            squatter: None,
            watched: false,
            hash: Sha256::new(),
        }
    }

    fn live(mut self, almanac: &Almanac) -> Life {
        let mut stand = self.setting.empty();
        let commands = 1 + self.dice.below(COMMANDS_MAX);
        // Dice of their own, so that every life that they change nothing of is the one it was.
        let mut other = Dice::new(self.life.seed.wrapping_mul(0x6c07_8965).wrapping_add(1));
        for index in 0..commands {
            let command = wiped(self.command(index), &mut other);
            let crashes = self.life.crashes;
            stand = self.storm(stand, command, index);
            self.meddle(&mut stand, index);
            // Who was killed has a reason to begin anew.
            let lost = other.below(3) == 0 && self.life.crashes > crashes;
            if self.dice.below(7) == 0 || lost {
                self.orphaned(&stand);
                stand.disk = MemoryDisk::new();
                self.life.story.push("the state folder is deleted".to_owned());
            }
        }
        let last = if self.dice.below(3) == 0 { Command::Down } else { Command::Up };
        let last = wiped(last, &mut other);
        self.calm(stand, last, almanac);
        self.life.trace = hex::encode(self.hash.finalize());
        self.life
    }

    fn command(&mut self, index: u64) -> Command {
        if index > 0 && self.dice.below(3) == 0 { Command::Down } else { Command::Up }
    }

    /// A run without faults and crashes of its own: what the laws of trials say of one holds here, too.
    fn undisturbed(&mut self, stand: Stand, command: Command, settles: bool) -> Run {
        let began = stand.datacenter.now;
        let before = stand.datacenter.clone();
        let (watch, recorder) = if self.watched {
            let (watch, recorder) = Watch::over(&self.setting, &stand, self.sight());
            (Some(watch), Some(recorder))
        } else {
            (None, None)
        };
        let around = Around { recorder, settles, ..Around::default() };
        let ran = run(stand, &self.setting, command, around);
        self.heard(&ran, began, None);
        let found = &mut self.life.violations;
        found.extend(told::tasks(&before, &ran.stand.datacenter, &ran.events));
        found.extend(watch.iter().flat_map(Watch::found));
        ran
    }

    /// What every process must keep to.
    fn heard(&mut self, ran: &Run, began: u64, fork: Option<&Fork>) {
        self.life.runs += 1;
        let word = ran.command.word();
        self.life.story.extend(ran.strikes.iter().map(|strike| format!("  {strike}")));
        if ran.killed {
            self.life.story.push(format!("{word} is killed by a fault"));
            self.life.crashes += 1;
        } else if fork.is_none() {
            self.life.story.push(format!("{word}: {}", ran.verdict()));
        }
        self.life.kinds.extend(ran.struck.iter().cloned());
        let answered = fork.map_or(ran.requests.len(), |fork| fork.point.requests);
        let answered = &ran.requests[..answered.min(ran.requests.len())];
        let world = fork.map_or(&ran.stand, |fork| &fork.stand);
        for life in check::incarnations(&world.datacenter) {
            let machines = check::bootstraps(answered).map(str::to_owned);
            self.begun.entry(life).or_default().extend(machines);
        }
        let found = &mut self.life.violations;
        found.extend(check::foreign(&self.setting, &self.foreign, &world.datacenter));
        if let Some((vmid, came)) = &self.squatter {
            found.extend(truth::spared(*vmid, came, world));
        }
        found.extend(check::bootstrapped(&self.begun));
        found.extend(check::outside(&world.datacenter, ran));
        found.extend(check::explained(ran));
        found.extend(always(&self.setting, began, ran, answered));
        // A proxy that repeats a call has made two of it.
        if !self.life.kinds.iter().any(|kind| kind.ends_with("hears twice")) {
            found.extend(told::at_once(&world.datacenter));
        }
        self.hash.update(&ran.trace);
        for event in &ran.events {
            // All of it: words, evidence and order, and what they say is never a secret.
            self.hash.update(serde_json::to_vec(event).unwrap_or_default());
        }
    }
}

/// A way down is an emergency at times.
fn wiped(command: Command, dice: &mut Dice) -> Command {
    let emergency = dice.below(3) == 0;
    if command == Command::Down && emergency { Command::Wipe } else { command }
}

fn shape(dice: &mut Dice) -> Shape {
    let mut drawn = dice.below(SHAPES.iter().map(|(_, weight)| weight).sum());
    for (shape, weight) in SHAPES {
        if drawn < weight {
            return shape;
        }
        drawn -= weight;
    }
    Shape::SMALL
}

/// Others, at random places; some bear names and tags of ours.
fn neighbours(dice: &mut Dice, setting: &Setting) -> Vec<Neighbour> {
    let own: BTreeSet<u32> =
        setting.spec.nodes.iter().filter_map(|node| Some(node.vm()?.vmid.0)).collect();
    let mut all = Vec::new();
    let mut taken = own.clone();
    for index in 0..dice.below(5) {
        // Half of them stand among ours.
        let vmid = if dice.below(2) == 0 { 421 + dice.below(12) } else { 100 + dice.below(900) };
        let vmid = u32::try_from(vmid).unwrap_or(100);
        if !taken.insert(vmid) {
            continue;
        }
        let named = ["router", "blue-cp-01", "worker-01", "backup"];
        let name = named[usize::try_from(dice.below(4)).unwrap_or(0)].to_owned();
        let tags = ["", "castle", "castle;castle-blue", "mine"];
        let tags = tags[usize::try_from(dice.below(4)).unwrap_or(0)].to_owned();
        all.push(match dice.below(3) {
            0 => Neighbour::Container { vmid, name },
            1 => Neighbour::Disk { vmid },
            _ => Neighbour::Vm { vmid, name, tags, running: dice.below(2) == 0 },
        });
        if index == 0 {
            all.push(Neighbour::Secrets {
                path: "/ephemeral-castle/green".to_owned(),
                values: BTreeMap::from([("KUBECONFIG_CONTENT".to_owned(), "not ours".to_owned())]),
            });
        }
    }
    all
}
