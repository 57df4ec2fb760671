//! Where `castle.lock` lies: beside the castle file; that of a rehearsal with its datacenter, whose images it pins.

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use castle_artefact::{Component, installed, pinned};
use castle_model::lock::Lock;
use castle_model::spec::Version;
use castle_platforms::proxmox::image::key;

use crate::castle::{Castle, Place};
use crate::exit::{Exit, Problem};
use crate::output;
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
            .hint("remove it; `castle rehearse lock` makes a new one")
    };
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Lock::default()),
        Err(error) => Err(damaged(&error)),
        Ok(text) => Lock::from_text(&text).map_err(|error| damaged(&error)),
    }
}

/// Refuses a castle whose lock does not pin everything that it is made from. Without any lock nothing is refused: what
/// nothing pins is told instead, so that a first castle needs no ceremony.
pub(crate) fn judge(castle: &Castle, json: bool) -> Result<(), Problem> {
    let spec = &castle.spec;
    let (mut lacking, mut unpinned) = (Vec::new(), Vec::new());
    for component in installed(spec) {
        let source = component.wanted(spec);
        if !json {
            tell_unknown(component, source.version);
        }
        match pinned(&spec.lock, &source) {
            Ok(Some(_)) => {}
            Ok(None) => unpinned.push(format!("{} {}", source.component, source.version)),
            Err(error) => lacking.push(error.to_string()),
        }
    }
    let image = key(spec).map_err(|failure| Problem::failure(&failure))?;
    if let Some(image) = image.filter(|image| !spec.lock.images.contains_key(image))
        && !spec.lock.is_empty()
    {
        lacking.push(format!("castle.lock does not pin the image {image}"));
    }
    if !lacking.is_empty() {
        let mut problem = Problem::refused(
            "castle.lock does not pin everything that the castle is made from; nothing was done",
        )
        .hint(format!("`{} lock` pins what is missing", castle.command));
        problem.causes = lacking;
        return Err(problem);
    }
    if !unpinned.is_empty() && !json {
        output::say(&format!(
            "notice: nothing pins the manifests of {} (unverified); `{} lock` does",
            unpinned.join(", "),
            castle.command
        ));
    }
    Ok(())
}

/// Says that castle was not tried with a version.
pub(crate) fn tell_unknown(component: &Component, version: Version) {
    if !component.knows(version) {
        let (name, known) = (component.name, component.version);
        output::say(&format!(
            "notice: castle was tried with {name} {}.{}; what it adjusts may have other names in {version}",
            known.major, known.minor
        ));
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
