//! The page of each run, beside its events: made from them, and made again from them by whoever misses it.

use std::path::PathBuf;

use castle_model::RunId;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::error::StateError;
use crate::events::{FOLDER, Runs};
use crate::place;

/// How the name of a page ends.
const ENDING: &str = ".timeline.html";

impl Runs {
    /// Keeps the page of a run, in the place of an older one, and says where.
    ///
    /// # Errors
    /// If the file system refuses; an older page is still there then.
    pub fn keep_page(&self, run: &RunId, page: &str) -> Result<PathBuf, StateError> {
        let folder = self.folder(true)?.ok_or_else(|| self.missing())?;
        let leaf = format!("{run}{ENDING}");
        let path = self.path.join(FOLDER).join(&leaf);
        place::replace(&folder, &path, &leaf, page.as_bytes())?;
        Ok(path)
    }

    /// Removes the page of a run, if there is one.
    pub(crate) fn drop_page(&self, run: &RunId) -> Result<(), StateError> {
        let Some(folder) = self.folder(false)? else { return Ok(()) };
        let leaf = format!("{run}{ENDING}");
        match rustix::fs::unlinkat(&folder, &leaf, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => {
                let path = self.path.join(FOLDER).join(&leaf);
                Err(StateError::Access { doing: "remove", path, source: errno.into() })
            }
        }
    }
}
