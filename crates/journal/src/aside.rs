//! Sets aside what can not be trusted, so that it is recorded anew from what the world shows. Nothing is thrown away.

use std::collections::BTreeSet;

use castle_model::{LayerName, RunId};

use crate::disk::Disk;
use crate::entry::Entry;
use crate::error::StateError;
use crate::journals::Journals;
use crate::reading::{RUN_FILE, layer_file};
use crate::rebirth::{REBIRTH_FILE, RebirthBook};
use crate::replay::replay;

/// A file that was set aside, and under which name it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// The file as it was called, relative to the state folder.
    pub file: String,
    /// What it is called now; none if there was no such file any more.
    pub kept_as: Option<String>,
}

impl Journals {
    /// Moves the damaged journal of a layer out of the way, so that the layer can be recorded anew from what
    /// the world shows. The run journal forgets its end with the start of the next run.
    ///
    /// # Errors
    /// If the layer's journal is not damaged, was written by a later castle, or the disk refuses.
    pub fn set_aside(&mut self, layer: &LayerName) -> Result<SetAside, StateError> {
        match self.problems.get(layer) {
            Some(StateError::Corrupt(_)) => {}
            Some(StateError::Newer { file, found, known }) => {
                let (file, found, known) = (file.clone(), *found, *known);
                return Err(StateError::Newer { file, found, known });
            }
            Some(_) | None => {
                return Err(StateError::Misuse {
                    doing: "set aside a journal that is not damaged",
                });
            }
        }
        let file = layer_file(layer);
        let named = disk_runs(self.disk.as_mut(), std::slice::from_ref(&file))?;
        let aside = set_aside(self.disk.as_mut(), file)?;
        self.problems.remove(layer);
        self.records.heads.remove(layer);
        self.remember(named);
        Ok(aside)
    }

    /// Moves the journal of a rebirth out of the way if it is damaged, so that another one can begin; why, and where it is kept.
    ///
    /// # Errors
    /// If a later castle wrote it, or the disk refuses.
    pub fn set_aside_rebirth(&mut self) -> Result<Option<(StateError, SetAside)>, StateError> {
        match self.rebirth() {
            Ok(_) => Ok(None),
            Err(damage @ StateError::Corrupt(_)) => {
                let aside = set_aside(self.disk.as_mut(), REBIRTH_FILE.to_owned())?;
                self.rebirth = RebirthBook::open(self.disk.as_mut());
                Ok(Some((damage, aside)))
            }
            Err(other) => Err(other),
        }
    }

    /// Opens a folder whose run journal can not be trusted. What the journals of the layers say can then not be held
    /// against anything, so all files are set aside, and the whole castle is read back from the world.
    ///
    /// # Errors
    /// If a later castle wrote one of the files, or the disk refuses. Nothing was changed in the first case.
    pub fn open_anew(mut disk: Box<dyn Disk>) -> Result<(Self, Vec<SetAside>), StateError> {
        let mut files = vec![RUN_FILE.to_owned()];
        files.extend(disk.layers()?);
        for file in &files {
            let layer = file.strip_prefix("layers/").and_then(|f| f.strip_suffix(".journal"));
            let layer = layer.and_then(|name| name.parse::<LayerName>().ok());
            let bytes = disk.read(file)?.unwrap_or_default();
            if let Err(newer @ StateError::Newer { .. }) = replay(file, layer.as_ref(), &bytes) {
                return Err(newer);
            }
        }
        let named = disk_runs(disk.as_mut(), &files)?;
        let mut aside = Vec::new();
        // The run journal last: whoever is cut off in between finds it damaged once more.
        for file in files.into_iter().rev() {
            aside.push(set_aside(disk.as_mut(), file)?);
        }
        aside.reverse();
        let mut journals = Self::open(disk)?;
        journals.remember(named);
        Ok((journals, aside))
    }

    /// Keeps in mind which runs were named by files that are no longer read, so that none is named so again.
    fn remember(&mut self, named: BTreeSet<RunId>) {
        self.records.earlier = self.records.earlier.take().max(named.last().cloned());
        self.known_runs.extend(named);
    }
}

fn set_aside(disk: &mut dyn Disk, file: String) -> Result<SetAside, StateError> {
    let there = disk.read(&file)?.is_some();
    let refused = |source| StateError::Write { file: file.clone(), source };
    let kept_as = if there { Some(disk.set_aside(&file).map_err(refused)?) } else { None };
    Ok(SetAside { file, kept_as })
}

/// The runs that are named by those entries of some files that can still be read.
fn disk_runs(disk: &mut dyn Disk, files: &[String]) -> Result<BTreeSet<RunId>, StateError> {
    let mut runs = BTreeSet::new();
    for file in files {
        let bytes = disk.read(file)?.unwrap_or_default();
        let entries =
            bytes.split(|byte| *byte == b'\n').filter_map(|line| Entry::decode(line).ok());
        runs.extend(entries.map(|entry| entry.run));
    }
    Ok(runs)
}
