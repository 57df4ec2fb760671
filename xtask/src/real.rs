//! `cargo xtask real`: builds or finds what nobody here wrote, and tells which tests really used it.

mod component;
mod shelf;
mod toolchain;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

pub(crate) use component::Tier;
use component::{Component, Kind};
use shelf::Shelf;
use toolchain::Go;

use crate::talk::{self, say, table};
use crate::tree;

/// The variable by which tests find the components; `crates/reality` reads it.
pub(crate) const PLACE: &str = "CASTLE_REAL";

/// In that folder: a line `component<TAB>found|missing<TAB>test` for each use.
const USES: &str = "uses";

/// What has been prepared for the tests.
pub(crate) struct Prepared {
    /// The folder with one entry for each component that there is.
    pub(crate) place: PathBuf,
    rows: Vec<Row>,
    /// Held until the tests are done.
    _shelf: Shelf,
}

struct Row {
    name: String,
    version: String,
    /// Why it is not there.
    missing: Option<String>,
    /// Whether this run wants it.
    wanted: bool,
}

/// `cargo xtask real`: only prepares, and says where.
pub(crate) fn run(tier: Tier) -> Result<bool> {
    let root = tree::root()?;
    let prepared = prepare(&root, tier)?;
    let rows: Vec<_> = prepared
        .rows
        .iter()
        .map(|row| {
            let state = row.missing.clone().unwrap_or_else(|| "there".to_owned());
            vec![row.name.clone(), row.version.clone(), state]
        })
        .collect();
    say(&table(&["component", "version", "state"], &rows));
    say(&format!(
        "\n{PLACE}={} cargo test -p castle-reality -- --ignored",
        prepared.place.display()
    ));
    Ok(prepared.rows.iter().all(|row| row.missing.is_none() || !row.wanted))
}

/// Builds or finds every component of the tier and those below, one after the other: two Go builds at once need 4 GB and gain nothing.
pub(crate) fn prepare(root: &Path, tier: Tier) -> Result<Prepared> {
    let place = tree::target(root)?.join("real");
    if place.exists() {
        fs::remove_dir_all(&place).with_context(|| format!("clearing {}", place.display()))?;
    }
    fs::create_dir_all(&place).with_context(|| format!("making {}", place.display()))?;
    fs::write(place.join(USES), "").context("beginning the list of uses")?;

    let shelf = Shelf::open()?;
    let components = component::all(root)?;
    let go = Go::find(root, &shelf);
    let wanted: Vec<(Component, Result<String>)> = components
        .into_iter()
        .map(|component| {
            let name =
                folder_name(root, &component, go.as_ref().map_err(|error| format!("{error:#}")));
            (component, name)
        })
        .collect();
    let (wanted, left): (Vec<_>, Vec<_>) =
        wanted.into_iter().partition(|(component, _)| component.tier <= tier);
    announce(&wanted, &shelf);
    let mut rows = Vec::new();
    for (component, name) in wanted {
        let made = name.and_then(|name| {
            if component.kind == Kind::Debian {
                let folder = place.join(&component.name);
                let package = &component.package;
                return toolchain::of_the_machine(root, &component.name, package, &folder);
            }
            let built = shelf.keep(&name, |folder| {
                say(&format!("building {}", component.name));
                make(root, &component, go.as_ref().ok(), folder)
            })?;
            let link = place.join(&component.name);
            std::os::unix::fs::symlink(built, link).context("linking it for the tests")
        });
        rows.push(Row {
            version: component.version(root)?,
            name: component.name,
            missing: made.err().map(|error| format!("{error:#}")),
            wanted: true,
        });
    }
    for (component, _) in left {
        rows.push(Row {
            version: component.version(root)?,
            name: component.name,
            missing: Some("only with --full".to_owned()),
            wanted: false,
        });
    }
    Ok(Prepared { place, rows, _shelf: shelf })
}

/// The name that a component's build is kept under.
fn folder_name(root: &Path, component: &Component, go: Result<&Go, String>) -> Result<String> {
    let key = match component.kind {
        Kind::Go | Kind::GoFiles => {
            component.key(root, &go.map_err(anyhow::Error::msg)?.description())?
        }
        Kind::Python => component.key(root, &[&toolchain::python_version(root)?])?,
        Kind::Debian => "machine".to_owned(),
    };
    Ok(format!("{}-{key}", component.name))
}

fn make(root: &Path, component: &Component, go: Option<&Go>, folder: &Path) -> Result<()> {
    let sources = component.folder(root);
    match component.kind {
        Kind::Go => {
            let go = go.context("no Go toolchain")?;
            let program = folder.join(&component.name);
            go.build(&sources, &component.package, &component.link, &program)
        }
        Kind::GoFiles => {
            let go = go.context("no Go toolchain")?;
            go.take(&sources, &component.package, &component.files, folder)
        }
        Kind::Python => toolchain::environment(root, folder, &sources.join("requirements.txt")),
        Kind::Debian => Ok(()),
    }
}

/// Says beforehand what has to be built, and how long that will take.
fn announce(wanted: &[(Component, Result<String>)], shelf: &Shelf) {
    let missing: Vec<&Component> = wanted
        .iter()
        .filter(|(component, _)| component.kind != Kind::Debian)
        .filter(|(_, name)| name.as_ref().is_ok_and(|name| !shelf.has(name)))
        .map(|(component, _)| component)
        .collect();
    if missing.is_empty() {
        return;
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let seconds: u64 = missing.iter().map(|component| component.cpu_seconds).sum();
    let names: Vec<&str> = missing.iter().map(|component| component.name.as_str()).collect();
    let minutes = (seconds / cores).div_ceil(60);
    say(&format!(
        "to be built once: {}; up to {seconds} s of CPU, about {minutes} min on {cores} cores (less where Go's cache is warm)",
        names.join(", ")
    ));
}

impl Prepared {
    /// Whether something is missing, told loudly. With `CI=true` that is a failure.
    pub(crate) fn is_enough(&self) -> bool {
        let missing: Vec<&Row> =
            self.rows.iter().filter(|row| row.wanted && row.missing.is_some()).collect();
        for row in &missing {
            let why = row.missing.as_deref().unwrap_or_default();
            say(&format!("MISSING: {} {}: {why}", row.name, row.version));
        }
        let strict = talk::surrounding("CI").is_some_and(|value| value == "true");
        missing.is_empty() || !strict
    }

    /// The table of what was exercised, and how many tests could not use what they are for.
    pub(crate) fn exercised(&self) -> Result<(String, usize)> {
        let text = fs::read_to_string(self.place.join(USES)).context("reading the list of uses")?;
        let uses = Uses::read(&text);
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|row| {
                vec![
                    row.name.clone(),
                    row.version.clone(),
                    uses.verdict(&row.name, row.missing.as_deref()),
                ]
            })
            .collect();
        Ok((table(&["component", "version", "exercised"], &rows), uses.in_vain.len()))
    }
}

/// Which test used which component.
#[derive(Debug, Default)]
struct Uses {
    found: BTreeMap<String, BTreeSet<String>>,
    missing: BTreeMap<String, BTreeSet<String>>,
    /// Tests that missed at least one.
    in_vain: BTreeSet<String>,
}

impl Uses {
    fn read(text: &str) -> Self {
        let mut uses = Self::default();
        for line in text.lines() {
            let mut parts = line.split('\t');
            let (Some(name), Some(state), Some(test)) = (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            let side = if state == "found" {
                &mut uses.found
            } else {
                uses.in_vain.insert(test.to_owned());
                &mut uses.missing
            };
            side.entry(name.to_owned()).or_default().insert(test.to_owned());
        }
        uses
    }

    fn verdict(&self, name: &str, missing: Option<&str>) -> String {
        let count =
            |side: &BTreeMap<String, BTreeSet<String>>| side.get(name).map_or(0, BTreeSet::len);
        match (missing, count(&self.found)) {
            (Some(why), _) => {
                format!("NOT EXERCISED: {why}; {} tests did nothing", count(&self.missing))
            }
            (None, 0) => "NOT EXERCISED: no test used it".to_owned(),
            (None, 1) => "by 1 test".to_owned(),
            (None, tests) => format!("by {tests} tests"),
        }
    }
}

/// A short word that stands for these texts.
fn short_hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    let mut word = hex::encode(hash.finalize());
    word.truncate(16);
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_counted_by_test() {
        let uses = Uses::read(
            "oracle\tfound\ta\noracle\tfound\ta\noracle\tfound\tb\napid\tmissing\tc\nhalf a li",
        );
        assert_eq!(uses.verdict("oracle", None), "by 2 tests");
        assert_eq!(
            uses.verdict("apid", Some("no Go")),
            "NOT EXERCISED: no Go; 1 tests did nothing"
        );
        assert_eq!(uses.verdict("talosctl", None), "NOT EXERCISED: no test used it");
        assert_eq!(uses.in_vain.len(), 1);
    }
}
