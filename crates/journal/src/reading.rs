//! Everything that a state folder says, read and checked before anything in it is touched.

use std::collections::{BTreeMap, BTreeSet};

use castle_model::{LayerName, RunId};

use crate::audit;
use crate::disk::Disk;
use crate::error::{Corruption, StateError, Torn};
use crate::records::Records;
use crate::replay::{Replay, replay};

/// The name of the run journal.
pub(crate) const RUN_FILE: &str = "run.journal";

/// The name of a layer's file.
pub(crate) fn layer_file(layer: &LayerName) -> String {
    format!("layers/{layer}.journal")
}

/// Everything that was read from a folder, before anything in it is touched.
pub(crate) struct Reading {
    pub(crate) run: Replay,
    pub(crate) layers: BTreeMap<LayerName, Replay>,
    problems: BTreeMap<LayerName, StateError>,
}

impl Reading {
    /// Reads all files; the run journal first, so that with a live writer the layers are never behind it.
    ///
    /// # Errors
    /// If the run journal is damaged, or a file must not be trusted. Damage in a layer's file stays with it.
    pub(crate) fn new(disk: &mut dyn Disk) -> Result<Self, StateError> {
        let bytes = disk.read(RUN_FILE)?.unwrap_or_default();
        let run = replay(RUN_FILE, None, &bytes)?;
        let mut names: BTreeSet<LayerName> = run.records.heads.keys().cloned().collect();
        for file in disk.layers()? {
            let name = file.trim_start_matches("layers/").trim_end_matches(".journal");
            names.extend(name.parse::<LayerName>().ok());
        }
        let mut layers = BTreeMap::new();
        let mut problems = BTreeMap::new();
        for layer in names {
            let file = layer_file(&layer);
            let bytes = disk.read(&file)?.unwrap_or_default();
            let checked = replay(&file, Some(&layer), &bytes).and_then(|read| {
                audit::check_head(&file, &read, run.records.heads.get(&layer))
                    .map_err(StateError::Corrupt)?;
                Ok(read)
            });
            match checked {
                Ok(read) => drop(layers.insert(layer, read)),
                Err(problem) => drop(problems.insert(layer, problem)),
            }
        }
        Ok(Self { run, layers, problems })
    }

    /// The checks that hold only while nobody writes.
    pub(crate) fn check_at_rest(&mut self) -> Result<BTreeSet<RunId>, StateError> {
        let known: BTreeSet<RunId> = self.run.seen.iter().map(|(run, ..)| run.clone()).collect();
        let strange: Vec<(LayerName, Corruption)> = self
            .layers
            .iter()
            .filter_map(|(layer, read)| {
                let error = audit::check_runs(&layer_file(layer), read, &known).err()?;
                Some((layer.clone(), error))
            })
            .collect();
        for (layer, corruption) in strange {
            self.layers.remove(&layer);
            self.problems.insert(layer, StateError::Corrupt(corruption));
        }
        let unfinished = self.run.records.last_run.as_ref().filter(|run| run.ended.is_none());
        if let Some(run) = unfinished
            && self.problems.is_empty()
        {
            let files = std::iter::once(&self.run).chain(self.layers.values());
            audit::check_unfinished(&run.id, files).map_err(StateError::Corrupt)?;
        }
        Ok(known)
    }

    /// What the readable files say together, the damaged ones, and unfinished ends.
    pub(crate) fn fold(self) -> (Records, BTreeMap<LayerName, StateError>, Vec<Torn>) {
        let mut records = self.run.records;
        let mut torn: Vec<Torn> = self.run.torn.into_iter().collect();
        for read in self.layers.into_values() {
            records.merge(read.records);
            torn.extend(read.torn);
        }
        (records, self.problems, torn)
    }
}
