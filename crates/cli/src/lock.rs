//! Where `castle.lock` lies: beside the castle file; that of a rehearsal with its datacenter, whose images it pins.

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use castle_model::lock::Lock;

use crate::castle::{Castle, Place};
use crate::exit::{Exit, Problem};
use crate::project::{LOCK_FILE, Which};
use crate::state::datacenter;

/// The path of a castle's lock.
pub(crate) fn path(which: &Which, castle: &Castle) -> PathBuf {
    match (castle.place, which) {
        (Place::Real, Which::Own(file)) => file.with_file_name(LOCK_FILE),
        _ => datacenter(castle).join(LOCK_FILE),
    }
}

/// What is pinned of a rehearsal's castle.
pub(crate) fn of_rehearsal(castle: &Castle) -> Result<Lock, Problem> {
    let path = datacenter(castle).join(LOCK_FILE);
    let damaged = |error: &dyn std::error::Error| {
        Problem::refused(format!("the rehearsal's {} can not be used", path.display()))
            .because(error)
            .hint("remove it; `castle rehearse lock --images` makes a new one")
    };
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Lock::default()),
        Err(error) => Err(damaged(&error)),
        Ok(text) => Lock::from_text(&text).map_err(|error| damaged(&error)),
    }
}

/// Writes a lock so that at each moment there is a whole one: the old, then the new. It is no secret, and goes to git.
pub(crate) fn write(path: &Path, lock: &Lock) -> Result<(), Problem> {
    let new = path.with_file_name(format!(".{LOCK_FILE}.new"));
    let put = || {
        let mut file = File::create(&new)?;
        file.write_all(lock.to_text().as_bytes())?;
        file.set_permissions(Permissions::from_mode(0o644))?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    put().map_err(|error| {
        fs::remove_file(&new).ok();
        Problem::new(Exit::Failed, format!("{} could not be written", path.display()))
            .because(&error)
    })
}
