//! Time and randomness for whoever lives in the rehearsal.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use castle_model::time::Moment;
use castle_wire::{Clock, Entropy};

use crate::birth::dice_for;
use crate::turn::Dice;

/// The moment of a world's birth: 2026-02-02T00:00:00Z.
pub(super) const EPOCH: Moment = Moment(1_769_990_400_000);

/// RSA keys that protect nothing: see `keys/README.md`.
const RSA_POOL: [&[u8]; 4] = [
    include_bytes!("../keys/rehearsal-only-1.der"),
    include_bytes!("../keys/rehearsal-only-2.der"),
    include_bytes!("../keys/rehearsal-only-3.der"),
    include_bytes!("../keys/rehearsal-only-4.der"),
];

/// Enough for a busy computer to write an answer.
const GRACE: Duration = Duration::from_millis(100);

/// Virtual time: where the world rested, plus what tokio's clock has run since, times the speed.
#[derive(Debug, Clone, Copy)]
pub(super) struct VirtualTime {
    rested: u64,
    began: tokio::time::Instant,
    speed: u32,
    /// The time of day at the world's birth.
    epoch: Moment,
}

impl VirtualTime {
    pub(super) fn from(rested: u64, dawn: u64) -> Self {
        let epoch = Moment(EPOCH.0 + dawn);
        Self { rested, began: tokio::time::Instant::now(), speed: 1, epoch }
    }

    /// Time for people outside of the rehearsal: it goes on from their time of day, at a speed. A world that is ahead of
    /// them stays so: its time never goes back.
    pub(super) fn live(rested: u64, dawn: u64, pace: Pace) -> Self {
        let began = Self::from(rested, dawn);
        let epoch = Moment(pace.now.0.saturating_sub(rested)).max(began.epoch);
        Self { speed: pace.speed.max(1), epoch, ..began }
    }

    /// By how much the world's birth is later than the usual one.
    pub(super) fn dawn(&self) -> u64 {
        self.epoch.0.saturating_sub(EPOCH.0)
    }

    /// Milliseconds since the world's birth.
    pub(super) fn now(&self) -> u64 {
        let elapsed = self.began.elapsed() * self.speed;
        self.rested + u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
    }

    /// When tokio's clock will show a moment of the world.
    pub(super) fn instant(&self, at: u64) -> tokio::time::Instant {
        self.began + self.real(Duration::from_millis(at.saturating_sub(self.rested)))
    }

    /// How long a length of the world's time is by tokio's clock; never shorter, or an effect would be early.
    pub(super) fn real(&self, time: Duration) -> Duration {
        let (time, speed) = (time.as_nanos(), u128::from(self.speed));
        Duration::from_nanos(u64::try_from(time.div_ceil(speed)).unwrap_or(u64::MAX))
    }

    /// How long a connection may finish what was already said on it, when its listener goes. In time that runs faster
    /// than the computer, an answer and the end of its connection fall together, which no real machine shows.
    pub(super) fn grace(&self) -> Option<Duration> {
        (self.speed > 1).then_some(GRACE)
    }

    pub(super) fn moment(&self) -> Moment {
        self.moment_of(self.now())
    }

    /// The time of day at a moment of the world.
    pub(super) fn moment_of(&self, at: u64) -> Moment {
        Moment(self.epoch.0 + at)
    }
}

/// How the time of a live datacenter runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The time of day outside, at which it begins.
    pub now: Moment,
    /// How many times faster than outside it runs.
    pub speed: u32,
}

/// The time of day in the datacenter.
pub(super) struct HostClock {
    pub(super) time: VirtualTime,
    /// By how many milliseconds it is ahead.
    pub(super) shift: Arc<AtomicI64>,
}

impl Clock for HostClock {
    fn now(&self) -> Moment {
        Moment(self.time.moment().0.saturating_add_signed(self.shift.load(Ordering::Relaxed)))
    }
}

/// Seeded randomness.
pub(super) struct HostEntropy {
    dice: Mutex<Dice>,
}

impl HostEntropy {
    /// Two processes never draw the same, or a rebirth would repeat the incarnation before it.
    pub(super) fn new(seed: u64, opens: u64) -> Self {
        Self { dice: Mutex::new(dice_for(seed, &format!("entropy {opens}"))) }
    }
}

impl Entropy for HostEntropy {
    fn fill(&self, buffer: &mut [u8]) {
        self.dice.lock().unwrap_or_else(PoisonError::into_inner).fill(buffer);
    }

    fn rsa_4096(&self) -> Vec<u8> {
        let drawn = self.dice.lock().unwrap_or_else(PoisonError::into_inner).below(4);
        RSA_POOL[usize::try_from(drawn).unwrap_or(0)].to_vec()
    }
}
