//! Where what castle installs is fetched from.

use serde::{Deserialize, Serialize};

/// Settings of downloads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DownloadsSpec {
    /// The address, https or file, of a folder that has manifests as `<host>/<path>` of their own address.
    pub mirror: Option<String>,
    /// The https address of an image factory of one's own, without a path; none for the public one.
    pub factory: Option<String>,
}

/// The public image factory.
pub const FACTORY: &str = "https://factory.talos.dev";

impl DownloadsSpec {
    /// The address of the image factory that schematics are registered with and images come from.
    #[must_use]
    pub fn factory(&self) -> &str {
        self.factory.as_deref().unwrap_or(FACTORY).trim_end_matches('/')
    }

    /// The factory as a registry of container images, which installers are pulled from: its host and port.
    #[must_use]
    pub fn installers(&self) -> &str {
        let factory = self.factory();
        factory.split_once("://").map_or(factory, |(_, place)| place)
    }
}
