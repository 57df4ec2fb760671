//! What was fetched before, by content, in a folder that all castles of a user share.
//!
//! Nothing in it is believed: what is read is compared with the name that it lies under. So a torn write, a damaged disk
//! or a folder that can not be written cost a download and nothing else.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use sha2::{Digest, Sha256};

/// The content with this SHA-256, if it is there, of so many bytes at most. What lies there and is something else is removed.
pub(crate) fn get(folder: &Path, sha256: &str, limit: u64) -> Option<Vec<u8>> {
    let path = folder.join(sha256);
    let facts = fs::symlink_metadata(&path).ok()?;
    let mut content = Vec::new();
    if facts.is_file() && facts.len() <= limit {
        File::open(&path).ok()?.take(limit).read_to_end(&mut content).ok()?;
    }
    if hex::encode(Sha256::digest(&content)) == sha256 {
        return Some(content);
    }
    fs::remove_file(&path).ok();
    None
}

/// Keeps content under its SHA-256. That it can not be kept is no failure of whoever fetched it.
pub(crate) fn put(folder: &Path, sha256: &str, content: &[u8]) {
    let new = folder.join(format!(".{sha256}.{}", std::process::id()));
    let kept = || {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(content)?;
        fs::rename(&new, folder.join(sha256))
    };
    if kept().is_err() {
        fs::remove_file(&new).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// The SHA-256 of `a: b`.
    fn name() -> String {
        hex::encode(Sha256::digest("a: b"))
    }

    #[test]
    fn what_is_kept_is_found_and_private() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("castle/manifests");
        assert_eq!(get(&folder, &name(), 100), None);
        put(&folder, &name(), b"a: b");
        put(&folder, &name(), b"a: b");
        assert_eq!(get(&folder, &name(), 100).as_deref(), Some(&b"a: b"[..]));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join(name()))), (0o700, 0o600));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing half written is left");
    }

    #[test]
    fn what_is_damaged_is_not_given_and_goes() {
        let home = tempfile::tempdir().unwrap();
        for wrong in [&b""[..], b"a: ", b"a: c", &[b'x'; 200]] {
            fs::write(home.path().join(name()), wrong).unwrap();
            assert_eq!(get(home.path(), &name(), 100), None);
            assert!(!home.path().join(name()).exists());
        }
    }

    #[test]
    fn a_folder_that_can_not_be_written_is_no_failure() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        put(&file, &name(), b"a: b");
        assert_eq!(get(&file, &name(), 100), None);
    }
}
