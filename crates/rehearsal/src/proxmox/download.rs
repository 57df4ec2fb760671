//! Downloads: files that Proxmox fetches itself, which here means from the image factory and nowhere else.

use std::net::IpAddr;

use castle_model::time::Moment;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::reply::{Answer, Refusal};
use super::storage::Volume;
use super::task::{Task, Work};
use super::{Proxmox, Request, Turn, seconds};
use crate::sources::factory::{IMAGE_LENGTH, image_bytes};

/// What a Talos disk image takes when it is unpacked.
const IMAGE_CAPACITY: u64 = 1246 << 20;
/// What its file takes.
const IMAGE_FILE: u64 = IMAGE_LENGTH;

/// A download as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Download {
    pub(super) storage: String,
    pub(super) content: String,
    pub(super) filename: String,
    pub(super) url: String,
    pub(super) checksum: Option<String>,
}

impl Proxmox {
    /// `POST /nodes/N/storage/S/download-url`.
    pub(super) fn download_url(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Request,
        storage: &str,
    ) -> Result<Answer, Refusal> {
        let value = |name: &str| request.parameters.get(name).cloned();
        let checksum = value("checksum");
        let content = value("content").unwrap_or_default();
        if !self.storage(storage)?.content.contains(&content) {
            let words =
                format!("storage '{storage}' is not configured for content-type '{content}'");
            return Err(Refusal::failed(words));
        }
        let filename = plain_name(&value("filename").unwrap_or_default());
        let extension = filename.rsplit_once('.').map_or("", |(_, extension)| extension);
        let fits: &[&str] = match content.as_str() {
            "import" => &["ova", "qcow2", "raw", "vmdk"],
            "iso" => &["iso", "img"],
            _ => &["gz", "xz", "zst"],
        };
        if filename.len() > 255 || !fits.contains(&extension) {
            return Err(Refusal::parameter("filename", "invalid filename or wrong extension"));
        }
        let url = value("url").unwrap_or_default();
        let download = Download { storage: storage.to_owned(), content, filename, url, checksum };
        Ok(self.begin(turn, request, Work::Download(download)))
    }

    /// `GET /nodes/N/query-url-metadata`.
    pub(super) fn url_metadata(&self, request: &Request) -> Result<Answer, Refusal> {
        let url = request.parameters.get("url").cloned().unwrap_or_default();
        self.reachable(&url)
            .map_err(|_| Refusal::failed("invalid server response: '404 Not Found'"))?;
        let filename = url.rsplit('/').next().unwrap_or_default();
        let kind = "application/octet-stream";
        Ok(Answer::read(json!({"filename": filename, "mimetype": kind, "size": IMAGE_FILE})))
    }

    /// What keeps a download from ending well, as far as can be told without its bytes.
    pub(super) fn judge_download(&self, download: &Download) -> Result<(), String> {
        let volid = download.volid();
        let Some(checksum) = &download.checksum else {
            if self.volumes.contains_key(&volid) {
                return Err(format!(
                    "refusing to override existing file '{}'",
                    self.path_of(&volid)
                ));
            }
            return self.fetchable(download);
        };
        if let Some(there) = self.volumes.get(&volid) {
            let got = sum(there.url.as_deref().unwrap_or_default());
            if got != *checksum {
                return Err(format!(
                    "checksum mismatch: got '{got}' != expect '{checksum}', aborting"
                ));
            }
            return Ok(());
        }
        self.fetchable(download)?;
        let got = sum(&download.url);
        if got != *checksum {
            return Err(format!("checksum mismatch: got '{got}' != expect '{checksum}'"));
        }
        Ok(())
    }

    /// Whether the server has the file and the storage room for it.
    fn fetchable(&self, download: &Download) -> Result<(), String> {
        self.reachable(&download.url)?;
        if self.free_on(&download.storage) < IMAGE_FILE {
            // wget: the file could not be written.
            return Err("download failed: exit code 3".to_owned());
        }
        Ok(())
    }

    /// Whether the image factory has something at an address: `/image/<schematic>/v<version>/<file>`.
    fn reachable(&self, url: &str) -> Result<(), String> {
        let rest = url.split_once("://").map_or("", |(_, rest)| rest);
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        if !self.factories.contains(host) {
            // wget: the name does not resolve from here.
            return Err("download failed: exit code 4".to_owned());
        }
        let path = percent_decode_str(path).decode_utf8_lossy();
        let pieces: Vec<&str> = path.split('/').collect();
        let found = match pieces.as_slice() {
            ["image", schematic, version, file] => {
                schematic.len() == 64
                    && schematic.chars().all(|c| c.is_ascii_hexdigit())
                    && version.starts_with('v')
                    && file.starts_with("nocloud-")
            }
            _ => false,
        };
        // wget: the server answered with an error, here 404.
        if found { Ok(()) } else { Err("download failed: exit code 8".to_owned()) }
    }

    /// What a download that goes on has written: its own words, then wget's in its style for large files.
    pub(super) fn download_log(&self, task: &Task, download: &Download, now: u64) -> Vec<String> {
        let mut log =
            vec![format!("downloading {} to {}", download.url, self.path_of(&download.volid()))];
        // One that is bound to fail does so before anything comes; what lies there already is only compared.
        if !task.is_doomed() && !self.volumes.contains_key(&download.volid()) {
            log.extend(self.fetch_log(task, download, task.part_of(IMAGE_FILE, now)));
        }
        log
    }

    /// What wget has written when it has so many bytes.
    fn fetch_log(&self, task: &Task, download: &Download, done: u64) -> Vec<String> {
        let server = download.url.split_once("://").map_or("", |(_, rest)| rest);
        let server = server.split('/').next().unwrap_or_default();
        let (host, port) = server.split_once(':').unwrap_or((server, "443"));
        let mut log = vec![format!("--{}--  {}", clock(task.began()), download.url)];
        if host.parse::<IpAddr>().is_ok() {
            log.push(format!("Connecting to {host}:{port}... connected."));
        } else {
            log.push(format!("Resolving {host} ({host})... {FACTORY}"));
            log.push(format!("Connecting to {host} ({host})|{FACTORY}|:{port}... connected."));
        }
        log.push("HTTP request sent, awaiting response... 200 OK".to_owned());
        let length = format!("{IMAGE_FILE} ({}M)", IMAGE_FILE >> 20);
        log.push(format!("Length: {length} [application/octet-stream]"));
        log.push(format!("Saving to: '{}'", self.unfinished(task, download)));
        log.extend(dots(done, IMAGE_FILE));
        log
    }

    /// The file that a download writes to until it is complete.
    fn unfinished(&self, task: &Task, download: &Download) -> String {
        format!("{}.tmp_dwnl.{}", self.path_of(&download.volid()), task.pid())
    }

    /// Keeps what was downloaded.
    pub(super) fn finish_download(
        &mut self,
        turn: &mut Turn<'_>,
        task: &Task,
        download: &Download,
        log: &mut Vec<String>,
    ) {
        let volid = download.volid();
        log.push(format!("downloading {} to {}", download.url, self.path_of(&volid)));
        if self.volumes.contains_key(&volid) {
            let words = "calculating checksum of existing file...OK, got correct file already, no \
                         need to download";
            log.push(words.to_owned());
            return;
        }
        log.extend(self.fetch_log(task, download, IMAGE_FILE));
        let (file, rate) = (self.unfinished(task, download), rate(task.began(), turn.now));
        let saved = format!("({rate} MB/s) - '{file}' saved [{IMAGE_FILE}/{IMAGE_FILE}]");
        log.push(format!("{} {saved}", clock(turn.now)));
        if download.checksum.is_some() {
            log.push("calculating checksum...OK, checksum verified".to_owned());
        }
        log.push(format!("download of '{}' to '{}' finished", download.url, self.path_of(&volid)));
        self.made += 1;
        let format = download.filename.rsplit('.').next().unwrap_or_default();
        let raw = format == "raw";
        self.volumes.insert(
            volid,
            Volume {
                storage: download.storage.clone(),
                vmid: None,
                content: download.content.clone(),
                format: format.to_owned(),
                capacity: IMAGE_CAPACITY,
                used: if raw { IMAGE_CAPACITY } else { IMAGE_FILE },
                made: turn.now,
                serial: self.made,
                image: None,
                url: Some(download.url.clone()),
            },
        );
    }
}

/// Where wget finds the factory.
const FACTORY: &str = "192.0.2.80";

/// The rows of dots: a dot is a mebibyte, eight stand together, four of these are a row. What is complete ends with its part.
fn dots(done: u64, total: u64) -> Vec<String> {
    const ROW: u64 = 32;
    let (count, complete) = (done >> 20, done >= total);
    let mut rows = Vec::new();
    if count == 0 && !complete {
        return rows;
    }
    for begin in (0..=count).step_by(32) {
        let here = (count - begin).min(ROW);
        let mut row = format!("{:>6}K", begin << 10);
        for dot in 0..here {
            row.push_str(if dot % 8 == 0 { " ." } else { "." });
        }
        let last = complete && begin + here == count;
        if here == ROW || last {
            let percent = ((begin + here) << 20).min(total) * 100 / total;
            let percent = if last { 100 } else { percent };
            row = format!("{row:<43}{percent:>3}% 100M{}", if last { "=0s" } else { " 0s" });
        }
        rows.push(row);
        if last {
            break;
        }
    }
    rows
}

/// Megabytes in a second, with a digit behind the point.
fn rate(began: u64, ended: u64) -> String {
    let kilobytes = IMAGE_FILE / ended.saturating_sub(began).max(1);
    format!("{}.{}", kilobytes / 1000, kilobytes % 1000 / 100)
}

/// The time of day, as wget writes it.
fn clock(now: u64) -> String {
    let text = Moment(seconds(now) * 1000).to_string();
    text.replace('T', " ").chars().take(19).collect()
}

impl Download {
    fn volid(&self) -> String {
        format!("{}:{}/{}", self.storage, self.content, self.filename)
    }
}

/// The check sum of what is behind an address of the factory.
pub(super) fn sum(url: &str) -> String {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let path = rest.find('/').map_or("", |at| &rest[at..]);
    hex::encode(Sha256::digest(image_bytes(path)))
}

fn plain_name(name: &str) -> String {
    let kept = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') { c } else { '_' }
    };
    name.chars().map(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_rows_of_thirty_two_mebibytes() {
        let rows = |done: u64, total: u64| dots(done << 20, total << 20).join("\n");
        assert_eq!(rows(0, 100), "");
        insta::assert_snapshot!(rows(43, 100), @r"
             0K ........ ........ ........ ........ 32% 100M 0s
         32768K ........ ...
        ");
        insta::assert_snapshot!(rows(40, 40), @r"
             0K ........ ........ ........ ........ 80% 100M 0s
         32768K ........                           100% 100M=0s
        ");
        // As recorded of a file of 17 MB, and of one that is shorter than a dot.
        assert_eq!(
            dots(17_503_744, 17_503_744),
            ["     0K ........ ........                  100% 100M=0s"]
        );
        assert_eq!(
            dots(196_616, 196_616),
            ["     0K                                    100% 100M=0s"]
        );
    }
}
