//! A real component as `real/` describes it: what it is, its version, and the key that its build is kept under.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::toolchain;

/// All of `real/components.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    component: Vec<Component>,
}

/// How a component is had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// A Go module that is built.
    Go,
    /// Files of a Go module that are taken as they are: manifests, definitions.
    GoFiles,
    /// A virtual environment that packages are installed into.
    Python,
    /// A program that every machine has, or gets as the Debian package `package`.
    Debian,
}

/// When a component is had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tier {
    /// In every run.
    #[default]
    Always,
    /// Only where somebody asks for all: it takes long to build.
    Full,
}

/// One program that nobody here wrote.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Component {
    /// Its name: that of its program, and of its folder where it has one of its own.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// The folder that it shares with others.
    #[serde(default)]
    pub(crate) module: Option<String>,
    /// Which Go package is built, or which Go module the files are of.
    #[serde(default)]
    pub(crate) package: String,
    /// What the linker writes into the program besides: `variable=value`.
    #[serde(default)]
    pub(crate) link: Vec<String>,
    /// Which files or folders of the module are taken.
    #[serde(default)]
    pub(crate) files: Vec<String>,
    #[serde(default)]
    pub(crate) tier: Tier,
    /// Whose version it bears; a program of the machine bears its own.
    #[serde(default)]
    pub(crate) pins: String,
    /// What a cold build takes.
    #[serde(default)]
    pub(crate) cpu_seconds: u64,
}

/// Reads the table.
pub(crate) fn all(root: &Path) -> Result<Vec<Component>> {
    let file = root.join("real/components.toml");
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let table: Table =
        toml::from_str(&text).with_context(|| format!("reading {}", file.display()))?;
    Ok(table.component)
}

impl Component {
    /// Where its sources are.
    pub(crate) fn folder(&self, root: &Path) -> PathBuf {
        root.join("real").join(self.module.as_ref().unwrap_or(&self.name))
    }

    /// Its version, from the file that pins it.
    pub(crate) fn version(&self, root: &Path) -> Result<String> {
        let file = match self.kind {
            Kind::Go | Kind::GoFiles => "go.mod",
            Kind::Python => "requirements.txt",
            Kind::Debian => return Ok(toolchain::version_of(root, &self.name)),
        };
        let path = self.folder(root).join(file);
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        match pinned(&text, &self.pins) {
            Some(version) => Ok(version),
            None => bail!("{} does not pin {}", path.display(), self.pins),
        }
    }

    /// What it was made from and with, in one short word: the same word means the same build.
    pub(crate) fn key(&self, root: &Path, made_with: &[&str]) -> Result<String> {
        let folder = self.folder(root);
        let list = || format!("listing {}", folder.display());
        let mut files = Vec::new();
        for entry in fs::read_dir(&folder).with_context(list)? {
            files.push(entry.with_context(list)?.path());
        }
        files.sort();
        let mut hash = Sha256::new();
        let made_of = [&self.package].into_iter().chain(&self.link).chain(&self.files);
        for part in made_with.iter().copied().chain(made_of.map(String::as_str)) {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        for file in files.iter().filter(|file| file.is_file()) {
            let content = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
            let name = file.file_name().unwrap_or_default().as_encoded_bytes();
            for part in [name, &content] {
                hash.update(part.len().to_le_bytes());
                hash.update(part);
            }
        }
        let mut key = hex::encode(hash.finalize());
        key.truncate(16);
        Ok(key)
    }
}

/// The version that a line of go.mod (`module v1`) or requirements.txt (`package==1`) gives to a name.
fn pinned(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let line = line.trim().trim_start_matches("require ");
        let rest = line.strip_prefix(name)?;
        let version = rest.strip_prefix("==").or_else(|| rest.strip_prefix(' '))?;
        version.split_whitespace().next().map(|version| version.trim_start_matches('v').to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_that_are_pinned() {
        let module =
            "require github.com/a/b v1.2.3\nrequire (\n\tgithub.com/a/b/c v1.13.9 // why\n)\n";
        assert_eq!(pinned(module, "github.com/a/b").unwrap(), "1.2.3");
        assert_eq!(pinned(module, "github.com/a/b/c").unwrap(), "1.13.9");
        assert_eq!(pinned(module, "github.com/a"), None);
        assert_eq!(
            pinned("# x\nproxmoxer==2.3.0 --hash=sha256:00\n", "proxmoxer").unwrap(),
            "2.3.0"
        );
    }

    #[test]
    fn a_key_follows_content_and_tools() {
        let root = tempfile::tempdir().unwrap();
        let component = Component {
            name: "one".to_owned(),
            kind: Kind::Go,
            module: None,
            package: ".".to_owned(),
            link: Vec::new(),
            files: Vec::new(),
            tier: Tier::Always,
            pins: "x".to_owned(),
            cpu_seconds: 1,
        };
        let folder = component.folder(root.path());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("go.mod"), "module x\n").unwrap();
        let key = |tools: &[&str]| component.key(root.path(), tools).unwrap();
        let first = key(&["go1", "flags"]);
        assert_eq!(first, key(&["go1", "flags"]));
        assert_ne!(first, key(&["go2", "flags"]));
        assert_ne!(first, key(&["go1f", "lags"]));
        let sibling = Component {
            name: "two".to_owned(),
            module: Some("one".to_owned()),
            link: vec!["version=1".to_owned()],
            ..component.clone()
        };
        assert_ne!(first, sibling.key(root.path(), &["go1", "flags"]).unwrap());
        fs::write(folder.join("main.go"), "package main\n").unwrap();
        assert_ne!(first, key(&["go1", "flags"]));
    }

    #[test]
    fn every_component_of_the_house_can_be_read() {
        let root = crate::tree::root().unwrap();
        let components = all(&root).unwrap();
        assert!(components.len() >= 5);
        for component in components {
            let (name, kind) = (&component.name, component.kind);
            assert!(!component.version(&root).unwrap().is_empty(), "{name}");
            assert_eq!(kind == Kind::GoFiles, !component.files.is_empty(), "{name}");
            assert_eq!(kind == Kind::Python, component.package.is_empty(), "{name}");
        }
    }
}
