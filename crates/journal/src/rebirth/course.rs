//! The course of a rebirth, as everybody takes it who raises and razes: what is due, and what is recorded when it is done.

use castle_model::RunId;
use castle_model::plan::Direction;
use castle_model::time::Moment;

use super::{Rebirth, RebirthEnd, RebirthRecord};
use crate::error::StateError;
use crate::journals::Journals;

/// How a half of a rebirth ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HalfEnd {
    /// It is done, by this run.
    Done(RunId),
    /// It did not come to its end by itself.
    Stumbled {
        /// With which exit code.
        exit: u8,
        /// In a few words.
        why: String,
    },
}

impl Journals {
    /// Records what the run journal knows better: a castle on its way up is not razed again. Says whether it did.
    ///
    /// # Errors
    /// If a journal can not be written.
    pub fn catch_up_rebirth(&mut self, at: Moment) -> Result<bool, StateError> {
        let last = self.records().last_run.clone();
        let behind = |rebirth: &Rebirth| last.as_ref().is_some_and(|last| rebirth.is_behind(last));
        if !self.open_rebirth().is_some_and(behind) {
            return Ok(false);
        }
        let run = last.map_or_else(|| RunId::new("lost"), |last| last.id);
        self.record_rebirth(at, &RebirthRecord::Razed { run })?;
        Ok(true)
    }

    /// Goes on with the open rebirth, or begins one; of so many cycles if a verdict is wanted.
    ///
    /// # Errors
    /// If the journal is damaged or can not be written.
    pub fn begin_rebirth(&mut self, at: Moment, certify: Option<u32>) -> Result<(), StateError> {
        if let Some(rebirth) = self.open_rebirth() {
            // Between two cycles nothing was cut, and the times of the next one mean what they say.
            let begun = rebirth.has_begun(self.records().last_run.as_ref().map(|run| &run.id));
            return if begun { self.record_rebirth(at, &RebirthRecord::Resumed) } else { Ok(()) };
        }
        let after = self.records().last_run.as_ref().map(|run| run.id.clone());
        let (cycles, certify) = (certify.unwrap_or(1), certify.is_some());
        self.record_rebirth(at, &RebirthRecord::Begun { cycles, certify, after })
    }

    /// Which way the open rebirth goes next, with how far it is; none if nothing is left to be done.
    #[must_use]
    pub fn due_half(&self) -> Option<(Direction, &Rebirth)> {
        let rebirth = self.open_rebirth()?;
        Some((rebirth.due()?, rebirth))
    }

    /// Records how a half ended.
    ///
    /// # Errors
    /// If it was not due, or the journal can not be written.
    pub fn note_half(
        &mut self,
        at: Moment,
        direction: Direction,
        ended: HalfEnd,
    ) -> Result<(), StateError> {
        let record = match (ended, direction) {
            (HalfEnd::Done(run), Direction::Down) => RebirthRecord::Razed { run },
            (HalfEnd::Done(run), Direction::Up) => RebirthRecord::Risen { run },
            (HalfEnd::Stumbled { exit, why }, _) => RebirthRecord::Stumbled { exit, why },
        };
        self.record_rebirth(at, &record)
    }

    /// Ends the open rebirth with its verdict, if there is one.
    ///
    /// # Errors
    /// If the journal can not be written.
    pub fn conclude_rebirth(&mut self, at: Moment) -> Result<(), StateError> {
        let Some(rebirth) = self.open_rebirth() else { return Ok(()) };
        let end = match (rebirth.certify, rebirth.spoiled()) {
            (false, _) => RebirthEnd::Done,
            (true, None) => RebirthEnd::Certified,
            (true, Some(why)) => RebirthEnd::NotCertified { why },
        };
        self.record_rebirth(at, &RebirthRecord::Ended { end })
    }
}
