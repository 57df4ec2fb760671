//! The cache of built components: one folder for each key, whole or not there at all.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::Builder;

use crate::talk::{self, say};

/// How a folder is named while it is being filled.
const UNFINISHED: &str = ".unfinished-";

/// The cache. Whoever has it is alone with it, and with the loopback addresses of the tests.
pub(crate) struct Shelf {
    folder: PathBuf,
    _lock: File,
}

impl Shelf {
    /// Opens the cache outside of the clone, and throws away what a killed build left.
    pub(crate) fn open() -> Result<Self> {
        let above = match (talk::surrounding("XDG_CACHE_HOME"), talk::surrounding("HOME")) {
            (Some(cache), _) => PathBuf::from(cache),
            (None, Some(home)) => PathBuf::from(home).join(".cache"),
            (None, None) => anyhow::bail!("neither XDG_CACHE_HOME nor HOME says where to build"),
        };
        Self::at(&above.join("castle-real"))
    }

    fn at(folder: &Path) -> Result<Self> {
        let about = || format!("opening the cache {}", folder.display());
        fs::create_dir_all(folder).with_context(about)?;
        let lock = File::create(folder.join("lock")).with_context(about)?;
        if lock.try_lock().is_err() {
            say("waiting for another run with the real components: their addresses are the same");
            lock.lock().with_context(about)?;
        }
        for entry in fs::read_dir(folder).with_context(about)? {
            let entry = entry.with_context(about)?;
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                fs::remove_dir_all(entry.path()).with_context(about)?;
            }
        }
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// Whether something lies there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.folder.join(name).is_dir()
    }

    /// Gives the folder of that name; fills it first if it is not there. It gets its name when it is whole.
    pub(crate) fn keep(
        &self,
        name: &str,
        fill: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let place = self.folder.join(name);
        if !place.is_dir() {
            let making = Builder::new().prefix(UNFINISHED).tempdir_in(&self.folder);
            let making = making.with_context(|| format!("making a place for {name}"))?;
            fill(making.path())?;
            fs::rename(making.path(), &place).with_context(|| format!("keeping {name}"))?;
        }
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_build_leaves_nothing_and_a_whole_one_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(".unfinished-abc/half")).unwrap();
        let shelf = Shelf::at(folder.path()).unwrap();
        assert!(!folder.path().join(".unfinished-abc").exists());

        let failed = shelf.keep("one-1", |place| {
            fs::write(place.join("one"), "half")?;
            anyhow::bail!("killed")
        });
        assert!(failed.is_err() && !shelf.has("one-1"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "only the lock is left");

        let place =
            shelf.keep("one-1", |place| Ok(fs::write(place.join("one"), "whole")?)).unwrap();
        assert_eq!(fs::read_to_string(place.join("one")).unwrap(), "whole");
        shelf.keep("one-1", |_| anyhow::bail!("not asked again")).unwrap();
    }
}
