//! Where an address really leads: upstream, into a mirror, or to a file.
//!
//! ```text
//! https://github.com/a/b.yaml  with mirror https://mirror.lan/castle  ─▶ https://mirror.lan/castle/github.com/a/b.yaml
//!                              with mirror file:///srv/castle         ─▶ /srv/castle/github.com/a/b.yaml
//! file:///srv/b.yaml           always                                 ─▶ /srv/b.yaml
//! ```

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;

use castle_model::spec::DownloadsSpec;

use crate::ArtefactError;
use crate::redirect::split;

/// Where something is read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At an https address.
    Web(String),
    /// In a file.
    File(PathBuf),
}

impl Place {
    /// Where an address leads, given what the castle file says of downloads.
    pub(crate) fn of(downloads: &DownloadsSpec, url: &str) -> Result<Self, ArtefactError> {
        if url.starts_with(FILE) {
            return file(url);
        }
        let Some(mirror) = &downloads.mirror else { return Ok(Self::Web(url.to_owned())) };
        let mirror = mirror.trim_end_matches('/');
        let (server, path) =
            split(url).ok_or_else(|| unusable(url, "it is not an https address"))?;
        let host = server.trim_start_matches("https://");
        let mirrored = format!("{mirror}/{host}{path}");
        if mirrored.starts_with(FILE) { file(&mirrored) } else { Ok(Self::Web(mirrored)) }
    }
}

/// How the address of a file begins.
const FILE: &str = "file:";

/// The file of an address. Its path is taken as it is written: nothing in it is decoded.
fn file(url: &str) -> Result<Place, ArtefactError> {
    let path = url.strip_prefix("file://").filter(|path| path.starts_with('/'));
    let path = path.ok_or_else(|| unusable(url, "a file is named by its whole path, file:///…"))?;
    if path.contains(['%', '?', '#']) {
        return Err(unusable(url, "it holds `%`, `?` or `#`, which are not decoded"));
    }
    if path.split('/').any(|part| part == "..") {
        return Err(unusable(url, "it leads upwards"));
    }
    Ok(Place::File(path.into()))
}

fn unusable(url: &str, why: &'static str) -> ArtefactError {
    ArtefactError::Address { url: url.to_owned(), why }
}

/// Reads a regular file of so many bytes at most; never hangs on a pipe or a device.
pub(crate) fn read(path: &PathBuf, limit: u64) -> Result<Vec<u8>, ArtefactError> {
    let unreadable = |source| ArtefactError::File { path: path.clone(), source };
    let facts = fs::metadata(path).map_err(unreadable)?;
    if !facts.is_file() {
        let words = "it is not a regular file";
        return Err(unreadable(std::io::Error::new(std::io::ErrorKind::InvalidInput, words)));
    }
    let mut content = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(limit + 1).read_to_end(&mut content).map_err(unreadable)?;
    let url = || format!("file://{}", path.display());
    match u64::try_from(content.len()).unwrap_or(u64::MAX) {
        0 => Err(ArtefactError::Empty { url: url() }),
        length if length > limit => Err(ArtefactError::TooLarge { url: url(), limit }),
        _ => Ok(content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://github.com/fluxcd/flux2/releases/download/v2.9.3/install.yaml";

    fn of(mirror: Option<&str>, url: &str) -> Result<Place, String> {
        let downloads = DownloadsSpec { mirror: mirror.map(str::to_owned), factory: None };
        Place::of(&downloads, url).map_err(|error| error.to_string())
    }

    #[test]
    fn a_mirror_has_everything_below_its_host() {
        let web = |url: &str| Ok(Place::Web(url.to_owned()));
        let file = |path: &str| Ok(Place::File(path.into()));
        assert_eq!(of(None, URL), web(URL));
        let path = "github.com/fluxcd/flux2/releases/download/v2.9.3/install.yaml";
        for mirror in ["https://mirror.lan/castle", "https://mirror.lan/castle/"] {
            assert_eq!(of(Some(mirror), URL), web(&format!("https://mirror.lan/castle/{path}")));
        }
        assert_eq!(of(Some("file:///srv/castle"), URL), file(&format!("/srv/castle/{path}")));
        assert_eq!(of(Some("https://mirror.lan"), "file:///srv/a.yaml"), file("/srv/a.yaml"));
    }

    #[test]
    fn a_file_is_named_by_its_whole_plain_path() {
        for wrong in
            ["file:a.yaml", "file://host/a.yaml", "file:///a%20b", "file:///a?b", "file:///a/../b"]
        {
            let said = of(None, wrong).unwrap_err();
            assert!(said.starts_with(&format!("`{wrong}` can not be read: ")), "{said}");
        }
    }

    #[test]
    fn only_whole_regular_files_of_some_length_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        let said = |path: &PathBuf| read(path, 4).unwrap_err().to_string();
        assert!(said(&path).contains("a.yaml"));
        assert!(said(&folder.path().to_owned()).contains("can not be read"));
        fs::write(&path, "").unwrap();
        assert!(said(&path).ends_with("is empty"));
        fs::write(&path, "12345").unwrap();
        assert!(said(&path).ends_with("larger than 4 bytes"));
        fs::write(&path, "1234").unwrap();
        assert_eq!(read(&path, 4).unwrap(), b"1234");
    }
}
