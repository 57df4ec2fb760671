//! Files that hold secrets: read only if nobody else can, written whole or not at all.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use zeroize::Zeroizing;

/// No file of secrets is larger.
const MAX_BYTES: u64 = 8 << 20;

/// The content of a file; wiped when it is dropped.
pub type Content = Zeroizing<Vec<u8>>;

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privacy {
    /// Only its owner: it holds secrets in clear.
    Own,
    /// Anybody: it is encrypted.
    Any,
}

/// Files by their paths, relative to the project folder.
pub trait Files: Send + Sync {
    /// What a file holds; none if there is none.
    ///
    /// # Errors
    /// In words, why it can not be used.
    fn read(&self, path: &str, privacy: Privacy) -> Result<Option<Content>, String>;

    /// The names of the files in a folder, sorted; none if it is no folder.
    ///
    /// # Errors
    /// In words, why it can not be used.
    fn names(&self, path: &str) -> Result<Option<Vec<String>>, String>;

    /// Writes a file, whole or not at all, for its owner alone.
    ///
    /// # Errors
    /// In words, why not.
    fn write(&self, path: &str, content: &[u8]) -> Result<(), String>;

    /// Removes a file; one that is not there is fine.
    ///
    /// # Errors
    /// In words, why not.
    fn remove(&self, path: &str) -> Result<(), String>;
}

/// Files on the disk.
#[derive(Debug, Clone)]
pub struct Disk {
    /// The project folder.
    pub project: PathBuf,
    /// The home folder, which `~/` stands for.
    pub home: Option<PathBuf>,
}

impl Disk {
    fn path(&self, path: &str) -> Result<PathBuf, String> {
        let Some(below) = path.strip_prefix("~/") else { return Ok(self.project.join(path)) };
        let home = self.home.as_ref().ok_or("HOME is not set, so `~` means nothing")?;
        Ok(home.join(below))
    }
}

/// Says why somebody else could read what only its owner may.
fn private(facts: &fs::Metadata) -> Result<(), String> {
    let mode = facts.mode() & 0o7777;
    let me = rustix::process::geteuid().as_raw();
    if facts.uid() != me && facts.uid() != 0 {
        return Err(format!("it belongs to the user {}, and only you may own it", facts.uid()));
    }
    if mode & 0o077 != 0 {
        let usual = if facts.is_dir() { "700" } else { "600" };
        return Err(format!("others may read it (mode {mode:04o}): chmod {usual} it"));
    }
    Ok(())
}

impl Files for Disk {
    fn read(&self, path: &str, privacy: Privacy) -> Result<Option<Content>, String> {
        let whole = self.path(path)?;
        // A pipe would be waited for; this flag does not mean anything to a file.
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
            .open(&whole);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        // The facts of the very file that is read, whatever its name means by now.
        let facts = file.metadata().map_err(|error| error.to_string())?;
        if !facts.is_file() {
            return Err("it is not a regular file".to_owned());
        }
        if privacy == Privacy::Own {
            private(&facts)?;
        }
        if facts.len() > MAX_BYTES {
            return Err(format!("it is larger than {} MiB", MAX_BYTES >> 20));
        }
        let mut content =
            Zeroizing::new(Vec::with_capacity(usize::try_from(facts.len()).unwrap_or(0) + 1));
        file.take(MAX_BYTES).read_to_end(&mut content).map_err(|error| error.to_string())?;
        Ok(Some(content))
    }

    fn names(&self, path: &str) -> Result<Option<Vec<String>>, String> {
        let whole = self.path(path)?;
        let Ok(facts) = fs::metadata(&whole) else { return Ok(None) };
        if !facts.is_dir() {
            return Ok(None);
        }
        private(&facts)?;
        let entries = fs::read_dir(&whole).map_err(|error| error.to_string())?;
        let name = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
        let mut names: Vec<String> = entries.filter_map(name).collect();
        names.sort();
        Ok(Some(names))
    }

    fn write(&self, path: &str, content: &[u8]) -> Result<(), String> {
        let whole = self.path(path)?;
        // Behind a link, where the file itself is: else the link would go and the file stay as it was.
        let whole = whole.canonicalize().unwrap_or(whole);
        let folder = whole.parent().map_or(Ok(()), fs::create_dir_all);
        folder.and_then(|()| replace(&whole, content)).map_err(|error| error.to_string())
    }

    fn remove(&self, path: &str) -> Result<(), String> {
        match fs::remove_file(self.path(path)?) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
            _ => Ok(()),
        }
    }
}

/// Puts a new file in the place of an old one; a crash leaves the one or the other.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.new"));
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    if let Err(error) = written.and_then(|()| fs::rename(&beside, path)) {
        fs::remove_file(&beside).ok();
        return Err(error);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Files that are never on a disk, for rehearsals in memory.
#[derive(Debug, Default)]
pub struct Memory(Mutex<BTreeMap<String, Content>>);

impl Memory {
    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Content>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Files for Memory {
    fn read(&self, path: &str, _privacy: Privacy) -> Result<Option<Content>, String> {
        Ok(self.locked().get(path).cloned())
    }

    fn names(&self, _path: &str) -> Result<Option<Vec<String>>, String> {
        Ok(None)
    }

    fn write(&self, path: &str, content: &[u8]) -> Result<(), String> {
        self.locked().insert(path.to_owned(), Zeroizing::new(content.to_vec()));
        Ok(())
    }

    fn remove(&self, path: &str) -> Result<(), String> {
        self.locked().remove(path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_behind_a_link_is_written_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk { project: folder.path().to_owned(), home: None };
        disk.write("kept/file", b"one").unwrap();
        symlink("kept/file", folder.path().join("link")).unwrap();
        disk.write("link", b"two").unwrap();
        assert!(folder.path().join("link").is_symlink());
        let read = |path| disk.read(path, Privacy::Own).unwrap().unwrap().to_vec();
        assert_eq!((read("link"), read("kept/file")), (b"two".to_vec(), b"two".to_vec()));
    }
}
