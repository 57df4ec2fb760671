//! The rules of the house as read from `house.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// Everything in `house.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct House {
    pub(crate) limits: Limits,
    pub(crate) names: Names,
    pub(crate) paths: Paths,
    pub(crate) licences: Licences,
    pub(crate) rooms: BTreeMap<String, Room>,
    pub(crate) pure: Pure,
    #[serde(default)]
    pub(crate) generated: Vec<Generated>,
    #[serde(default, rename = "exception")]
    pub(crate) exceptions: Vec<Exception>,
}

/// How long things may be.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Limits {
    pub(crate) file_lines: usize,
    pub(crate) file_lines_wished: usize,
    pub(crate) function_lines: usize,
    pub(crate) function_lines_wished: usize,
    pub(crate) inline_test_lines: usize,
    pub(crate) architecture_lines: usize,
    pub(crate) crates_in_lock: usize,
}

/// Names that no file and no module may have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Names {
    pub(crate) banned: Vec<String>,
}

/// Paths of one machine, which no file may mention.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paths {
    pub(crate) machine: Vec<String>,
}

/// Licences that a dependency may have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Licences {
    pub(crate) allowed: Vec<String>,
}

/// One room and the rooms it may depend on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Room {
    pub(crate) path: String,
    /// The name of its package, where it is not `castle-<room>`.
    #[serde(default)]
    pub(crate) package: Option<String>,
    #[serde(default)]
    pub(crate) pure: bool,
    pub(crate) uses: Vec<String>,
    #[serde(default)]
    pub(crate) tests_use: Vec<String>,
}

/// What pure rooms may not touch, beyond the bans of the root `clippy.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pure {
    pub(crate) crates: Vec<String>,
    pub(crate) methods: Vec<Ban>,
    pub(crate) types: Vec<Ban>,
}

/// Items banned for one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ban {
    pub(crate) reason: String,
    pub(crate) paths: Vec<String>,
}

/// A file that a program of ours writes to its standard output.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Generated {
    pub(crate) file: String,
    pub(crate) command: Vec<String>,
}

/// A rule that one file may break up to a limit, for a reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exception {
    pub(crate) rule: String,
    pub(crate) path: String,
    pub(crate) limit: usize,
    pub(crate) reason: String,
}

impl House {
    /// Reads `house.toml` in the root.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let path = root.join("house.toml");
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("understanding {}", path.display()))
    }

    /// The room whose package has this name.
    pub(crate) fn room_of_package(&self, package: &str) -> Option<&str> {
        let named = |(name, room): &(&String, &Room)| {
            room.package
                .as_deref()
                .map_or_else(|| package == format!("castle-{name}"), |own| own == package)
        };
        self.rooms.iter().find(named).map(|(name, _)| name.as_str())
    }
}
