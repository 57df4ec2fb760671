//! Files on storages: what is there, fetching an image by its URL, removing a volume.

use serde::Deserialize;

use crate::client::{Proxmox, ProxmoxError};
use crate::form::segment;
use crate::lenient;
use crate::task::{Upid, named};

/// A file or disk on a storage.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Volume {
    /// Its name, such as `local:import/talos.qcow2`.
    pub volid: String,
    /// What it is: `import`, `images`, `iso`, …
    #[serde(default)]
    pub content: String,
    /// Its size in bytes.
    #[serde(default, deserialize_with = "lenient::number")]
    pub size: u64,
    /// The guest that it belongs to; 0 if none.
    #[serde(default, deserialize_with = "lenient::number")]
    pub vmid: u64,
}

/// An image to be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Download<'a> {
    /// Where it is.
    pub url: &'a str,
    /// The name that its file gets.
    pub filename: &'a str,
    /// Its SHA-256, if it is known.
    pub sha256: Option<&'a str>,
}

impl Proxmox {
    /// What is on a storage, only of one kind of content if one is given, by name.
    ///
    /// # Errors
    /// If Proxmox does not answer or does not know the storage.
    pub async fn content(
        &self,
        node: &str,
        storage: &str,
        content: Option<&str>,
    ) -> Result<Vec<Volume>, ProxmoxError> {
        let query: Vec<(&str, String)> =
            content.iter().map(|kind| ("content", (*kind).to_owned())).collect();
        let path = format!("{}/content", store(node, storage));
        let mut found: Vec<Volume> = self.get(&path, &query).await?;
        found.sort_by(|a, b| a.volid.cmp(&b.volid));
        Ok(found)
    }

    /// Lets Proxmox fetch an image into `import` content. An existing file is never overwritten: with a check sum the
    /// task compares it, without one it fails.
    ///
    /// # Errors
    /// If Proxmox refuses.
    pub async fn download(
        &self,
        node: &str,
        storage: &str,
        wanted: &Download<'_>,
    ) -> Result<Upid, ProxmoxError> {
        let mut parameters = Vec::new();
        if let Some(sha256) = wanted.sha256 {
            parameters.push(("checksum", sha256.to_owned()));
            parameters.push(("checksum-algorithm", "sha256".to_owned()));
        }
        parameters.extend([
            ("content", "import".to_owned()),
            ("filename", wanted.filename.to_owned()),
            ("url", wanted.url.to_owned()),
        ]);
        let path = format!("{}/download-url", store(node, storage));
        named("POST download-url", &self.post(&path, &parameters).await?)
    }

    /// Removes a volume; one that is gone already is fine with Proxmox.
    ///
    /// # Errors
    /// If Proxmox refuses.
    pub async fn delete_volume(
        &self,
        node: &str,
        storage: &str,
        volid: &str,
    ) -> Result<Upid, ProxmoxError> {
        let path = format!("{}/content/{}", store(node, storage), segment(volid));
        named("DELETE content", &self.delete(&path, &[]).await?)
    }
}

fn store(node: &str, storage: &str) -> String {
    format!("/nodes/{}/storage/{}", segment(node), segment(storage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_read_as_recorded() {
        let recorded = r#"{"volid":"local:422/vm-422-disk-0.qcow2","format":"qcow2","content":"images",
            "ctime":1794788593,"vmid":422,"parent":null,"used":331776,"size":1073741824}"#;
        let volume: Volume = serde_json::from_str(recorded).unwrap();
        assert_eq!((volume.size, volume.vmid), (1_073_741_824, 422));
        let file: Volume = serde_json::from_str(
            r#"{"volid":"local:import/a.qcow2","content":"import","vmid":null}"#,
        )
        .unwrap();
        assert_eq!(file.vmid, 0);
    }
}
