//! Somebody else over the same state: he asks for it, or takes it away.

use std::fs;
use std::path::{Path, PathBuf};

use castle_journal::StateRoot;

/// A second castle is started over the state, by the same door as any: what it is told is told. Says whether there was anybody to meet.
pub(super) fn knocks(folder: &Path, tell: &dyn Fn(&str)) -> bool {
    let Ok(Some(first)) = StateRoot::holder(folder) else { return false };
    match StateRoot::open(folder, &first) {
        Err(refused) => tell(&format!("the second operator is refused: {refused}")),
        Ok(_) => tell("the second operator was given the state too, which is a bug of castle"),
    }
    true
}

/// Moves the state away, as `mv` does. Says whether it could be.
pub(super) fn takes(folder: &Path, tell: &dyn Fn(&str)) -> bool {
    let away = free_name(folder);
    match fs::rename(folder, &away) {
        Ok(()) => tell(&format!("the state folder is {} now", away.display())),
        Err(error) => tell(&format!("the state folder can not be moved: {error}")),
    }
    !folder.exists()
}

/// A name beside the folder that nothing has.
fn free_name(folder: &Path) -> PathBuf {
    let mut number = 1_u32;
    loop {
        let mut name = folder.to_owned().into_os_string();
        name.push(format!(".taken-{number}"));
        let away = PathBuf::from(name);
        if away.symlink_metadata().is_err() {
            return away;
        }
        number += 1;
    }
}
