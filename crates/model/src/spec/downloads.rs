//! Where what castle installs is fetched from.

use serde::{Deserialize, Serialize};

/// Settings of downloads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DownloadsSpec {
    /// The address, https or file, of a folder that has manifests as `<host>/<path>` of their own address.
    pub mirror: Option<String>,
}
