//! All journals of a state folder as one: append to memory, commit to disk, and the fold of both.

use std::collections::{BTreeMap, BTreeSet};

use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::time::Moment;
use castle_model::{CastleName, LayerName, RunId};

use crate::audit;
use crate::disk::Disk;
use crate::entry::{self, Entry, GENESIS, Head, SCHEMA};
use crate::error::{StateError, Torn};
use crate::journal_file::{Flush, JournalFile};
use crate::memory::MemoryDisk;
use crate::reading::{RUN_FILE, Reading, layer_file};
use crate::rebirth::RebirthBook;
use crate::record::Record;
use crate::records::{INCARNATION_LAYER, Records};

/// A file that has grown past this is compacted at the end of a run: reading it back stays well under
/// a tenth of the 50 ms that a run with nothing to do may take.
const COMPACT_BYTES: u64 = 64 << 10;

/// What is known when a run begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Which run; never used before in this folder.
    pub run: RunId,
    /// Whose.
    pub castle: CastleName,
    /// Which way.
    pub direction: Direction,
    /// The hash of its plan.
    pub plan: String,
    /// The version of castle that runs.
    pub version: String,
}

/// The journals of one state folder, open for writing.
pub struct Journals {
    pub(crate) disk: Box<dyn Disk>,
    run_file: JournalFile,
    layers: BTreeMap<LayerName, JournalFile>,
    pub(crate) problems: BTreeMap<LayerName, StateError>,
    notices: Vec<Torn>,
    pub(crate) records: Records,
    pub(crate) known_runs: BTreeSet<RunId>,
    current: Option<Current>,
    pub(crate) poisoned: Option<String>,
    pub(crate) rebirth: RebirthBook,
}

struct Current {
    run: RunId,
    seq: u64,
    durable: u64,
}

impl Journals {
    /// Journals in memory only, for rehearsing whoever records.
    ///
    /// # Errors
    /// Never on an empty disk; the signature is that of [`Journals::open`].
    pub fn in_memory() -> Result<Self, StateError> {
        Self::open(Box::new(MemoryDisk::new()))
    }

    /// Reads and checks everything on a disk, and cuts unfinished ends.
    ///
    /// # Errors
    /// If the run journal is damaged, the files do not fit each other, or the disk refuses. Nothing was changed then.
    pub fn open(mut disk: Box<dyn Disk>) -> Result<Self, StateError> {
        let mut reading = Reading::new(disk.as_mut())?;
        let known_runs = reading.check_at_rest()?;
        let run_file = JournalFile::take_up(disk.as_mut(), RUN_FILE.to_owned(), &reading.run)?;
        let mut layers = BTreeMap::new();
        for (layer, read) in &reading.layers {
            let file = JournalFile::take_up(disk.as_mut(), layer_file(layer), read)?;
            layers.insert(layer.clone(), file);
        }
        let (records, problems, notices) = reading.fold();
        let rebirth = RebirthBook::open(disk.as_mut());
        Ok(Self {
            disk,
            run_file,
            layers,
            problems,
            notices,
            records,
            known_runs,
            current: None,
            poisoned: None,
            rebirth,
        })
    }

    /// Puts something between the journals and their disk, such as what breaks in a rehearsal.
    pub fn through(&mut self, between: impl FnOnce(Box<dyn Disk>) -> Box<dyn Disk>) {
        let disk = std::mem::replace(&mut self.disk, Box::new(MemoryDisk::new()));
        self.disk = between(disk);
    }

    /// What all journals say, what is not committed yet included.
    #[must_use]
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Layers whose journal is damaged; nothing can be recorded for them.
    #[must_use]
    pub fn problems(&self) -> &BTreeMap<LayerName, StateError> {
        &self.problems
    }

    /// Unfinished ends that were cut when the files were opened.
    #[must_use]
    pub fn notices(&self) -> &[Torn] {
        &self.notices
    }

    /// Begins a run; durable when this returns.
    ///
    /// # Errors
    /// If a run is under way, the run's id was used before, or the disk refuses.
    pub fn start_run(&mut self, at: Moment, start: Start) -> Result<(), StateError> {
        if self.current.is_some() && !self.has_ended() {
            return Err(StateError::Misuse { doing: "begin a run within a run" });
        }
        if !self.known_runs.insert(start.run.clone()) {
            return Err(StateError::Misuse { doing: "begin a run under the id of an earlier one" });
        }
        self.current = Some(Current { run: start.run, seq: 0, durable: 0 });
        let heads = self.heads();
        let Start { castle, direction, plan, version, .. } = start;
        let record = Record::RunStarted { castle, direction, plan, version, heads };
        self.push(None, at, record)?;
        self.commit().map(drop)
    }

    /// Records something in memory. It is durable, and may be acted on, after the next [`Journals::commit`].
    ///
    /// # Errors
    /// If no run is under way, the record cannot follow what is known, or the layer's journal is damaged.
    pub fn append(
        &mut self,
        at: Moment,
        layer: &LayerName,
        record: Record,
    ) -> Result<(), StateError> {
        self.push(Some(layer), at, record)
    }

    /// Writes everything appended since the last commit and makes it durable; says how many syncs that took.
    ///
    /// # Errors
    /// If the disk refuses a write: the files are as before, and a later commit tries again. If a sync fails,
    /// nothing is sure any more, and this process may record nothing further.
    pub fn commit(&mut self) -> Result<usize, StateError> {
        self.check_sound()?;
        let mut syncs = 0;
        for file in std::iter::once(&mut self.run_file).chain(self.layers.values_mut()) {
            match file.flush(self.disk.as_mut()) {
                Ok(count) => syncs += count,
                Err(Flush::Refused(error)) => return Err(error),
                Err(Flush::Unsure(why)) => {
                    self.poisoned = Some(why.clone());
                    return Err(StateError::Poisoned { why });
                }
            }
        }
        if let Some(current) = &mut self.current {
            current.durable = current.seq;
        }
        Ok(syncs)
    }

    /// Ends the run, durably.
    ///
    /// # Errors
    /// If no run is under way or the disk refuses; the run then counts as unfinished.
    pub fn end_run(&mut self, at: Moment, outcome: RunOutcome) -> Result<(), StateError> {
        self.commit()?;
        let heads = self.heads();
        self.push(None, at, Record::RunEnded { outcome, heads })?;
        self.commit()?;
        Ok(())
    }

    /// After the end of a run: compacts the files if one has grown long; says whether it did.
    ///
    /// # Errors
    /// If the disk refuses. Nothing is lost then: the long files are still there.
    pub fn compact_if_grown(&mut self, at: Moment) -> Result<bool, StateError> {
        let grown = |file: &JournalFile| file.length > COMPACT_BYTES;
        let wanted = grown(&self.run_file) || self.layers.values().any(grown);
        if wanted {
            self.compact(at)?;
        }
        Ok(wanted)
    }

    /// Compacts every file, the run journal last: until then it knows every run that a layer may name.
    pub(crate) fn compact(&mut self, at: Moment) -> Result<(), StateError> {
        if !self.has_ended() {
            return Err(StateError::Misuse {
                doing: "compact the journals before the end of a run",
            });
        }
        if !self.problems.is_empty() {
            return Ok(());
        }
        let layers: Vec<LayerName> = self.layers.keys().cloned().collect();
        for layer in &layers {
            let steps = self.records.layer(layer).map(|(id, state)| (id.clone(), state.clone()));
            let lives_here = layer.as_str() == INCARNATION_LAYER;
            let snapshot = Record::Snapshot {
                steps: steps.collect(),
                incarnation: self.records.incarnation.clone().filter(|_| lives_here),
                last_run: None,
                heads: BTreeMap::new(),
            };
            self.rewrite(Some(layer), at, snapshot)?;
        }
        let snapshot = Record::Snapshot {
            steps: BTreeMap::new(),
            incarnation: None,
            last_run: self.records.last_run.clone(),
            heads: self.heads(),
        };
        self.rewrite(None, at, snapshot)
    }

    fn rewrite(
        &mut self,
        layer: Option<&LayerName>,
        at: Moment,
        snapshot: Record,
    ) -> Result<(), StateError> {
        let line = self.line(layer, at, snapshot)?.0;
        let file = match layer {
            Some(layer) => self.layers.get_mut(layer),
            None => Some(&mut self.run_file),
        };
        let Some(file) = file else { return Ok(()) };
        let refused = |source| StateError::Write { file: file.name.clone(), source };
        self.disk.replace(&file.name, &line).map_err(refused)?;
        file.lseq += 1;
        file.chain = entry::chain(&file.chain, &line[..line.len() - 1]);
        file.length = line.len() as u64;
        if let Some(current) = &mut self.current {
            current.seq += 1;
            current.durable = current.seq;
        }
        Ok(())
    }

    fn push(
        &mut self,
        layer: Option<&LayerName>,
        at: Moment,
        record: Record,
    ) -> Result<(), StateError> {
        self.check_sound()?;
        if layer.is_some() && self.has_ended() {
            return Err(StateError::Misuse { doing: "record something after the end of a run" });
        }
        if let Some(problem) = layer.and_then(|layer| self.problems.get(layer)) {
            return Err(repeated(problem));
        }
        let (line, entry) = self.line(layer, at, record)?;
        self.records.apply(&entry).map_err(StateError::Illegal)?;
        let file = match layer {
            None => &mut self.run_file,
            Some(layer) => self
                .layers
                .entry(layer.clone())
                .or_insert_with(|| JournalFile::new(layer_file(layer))),
        };
        file.lseq = entry.lseq;
        file.chain = entry::chain(&entry.prev, &line[..line.len() - 1]);
        file.buffer.extend_from_slice(&line);
        if let Some(current) = &mut self.current {
            current.seq = entry.seq;
        }
        Ok(())
    }

    /// The next entry of a file, and its line with the newline.
    fn line(
        &self,
        layer: Option<&LayerName>,
        at: Moment,
        record: Record,
    ) -> Result<(Vec<u8>, Entry), StateError> {
        let Some(current) = &self.current else {
            return Err(StateError::Misuse { doing: "record something outside of a run" });
        };
        let file = layer.map_or(Some(&self.run_file), |layer| self.layers.get(layer));
        let entry = Entry {
            v: SCHEMA,
            run: current.run.clone(),
            seq: current.seq + 1,
            durable: current.durable,
            layer: layer.cloned(),
            lseq: file.map_or(0, |file| file.lseq) + 1,
            at,
            record,
            prev: file.map_or_else(|| GENESIS.to_owned(), |file| file.chain.clone()),
        };
        let mut line =
            entry.encode().map_err(|_| StateError::Misuse { doing: "record what is no JSON" })?;
        line.push(b'\n');
        Ok((line, entry))
    }

    fn heads(&self) -> BTreeMap<LayerName, Head> {
        let files = self.layers.iter().filter(|(_, file)| file.lseq > 0);
        let ends =
            files.map(|(layer, file)| (layer, Head { lseq: file.lseq, chain: file.chain.clone() }));
        audit::heads_with(&self.records.heads, ends)
    }

    /// Whether the run that this process began is over.
    fn has_ended(&self) -> bool {
        let last = self.records.last_run.as_ref();
        self.current.as_ref().is_some_and(|current| {
            last.is_some_and(|run| run.id == current.run && run.ended.is_some())
        })
    }

    pub(crate) fn check_sound(&self) -> Result<(), StateError> {
        match &self.poisoned {
            None => Ok(()),
            Some(why) => Err(StateError::Poisoned { why: why.clone() }),
        }
    }
}

/// The problem of a layer, told again to whoever would record in it.
pub(crate) fn repeated(problem: &StateError) -> StateError {
    match problem {
        StateError::Corrupt(corruption) => StateError::Corrupt(corruption.clone()),
        StateError::Newer { file, found, known } => {
            StateError::Newer { file: file.clone(), found: *found, known: *known }
        }
        other => StateError::Poisoned { why: other.to_string() },
    }
}
