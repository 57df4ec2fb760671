//! `cargo xtask release`: builds the fully static binary, proves that it is static, runs it, notes its check sum.
//!
//! The linker and the C compiler come from PyPI (`ziglang`), in a virtual environment inside the target folder,
//! so that no package of the system is needed: no musl-tools, no cmake.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::talk::{self, say};
use crate::{elf, tree};

const TARGET: &str = "x86_64-unknown-linux-musl";

/// Pinned, because a release must be the same tomorrow.
const TOOLS: [&str; 2] = ["cargo-zigbuild==0.24.0", "ziglang==0.17.0"];

/// Builds, proves, notes.
pub(crate) fn run() -> Result<bool> {
    let root = tree::root()?;
    let target = tree::target(&root)?;
    let tools = target.join("release-tools");
    must(&root, &["rustup".into(), "target".into(), "add".into(), TARGET.into()])?;
    install(&root, &tools)?;
    build(&root, &tools)?;
    let binary = target.join(TARGET).join("release/castle");
    let bytes = fs::read(&binary).with_context(|| format!("reading {}", binary.display()))?;
    if !elf::is_static(&bytes)? {
        bail!("{} names a dynamic loader: it is not static", binary.display());
    }
    let version = talk::output(&root, &[binary.as_os_str(), "--version".as_ref()])?;
    if !version.starts_with("castle ") {
        bail!(
            "`{} --version` answered `{}`, not its name and version",
            binary.display(),
            version.trim()
        );
    }
    let sum = hex::encode(Sha256::digest(&bytes));
    let note = binary.with_extension("sha256");
    fs::write(&note, format!("{sum}  castle\n"))
        .with_context(|| format!("writing {}", note.display()))?;
    say(&format!(
        "release: {} is static, {} bytes, runs: {}",
        binary.display(),
        bytes.len(),
        version.trim()
    ));
    say(&format!("release: sha256 {sum}"));
    Ok(true)
}

/// Puts the tools into their virtual environment, unless they are there.
fn install(root: &Path, tools: &Path) -> Result<()> {
    let stamp = tools.join("installed");
    let wanted = TOOLS.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    must(root, &["python3".into(), "-m".into(), "venv".into(), tools.into()])?;
    let mut words: Vec<OsString> =
        vec![tools.join("bin/pip").into(), "install".into(), "--quiet".into()];
    words.extend(TOOLS.map(OsString::from));
    must(root, &words)?;
    fs::write(&stamp, wanted).with_context(|| format!("writing {}", stamp.display()))
}

fn build(root: &Path, tools: &Path) -> Result<()> {
    let words =
        ["cargo", "zigbuild", "--release", "--locked", "--package", "castle", "--target", TARGET];
    let mut folders = vec![tools.join("bin")];
    folders.extend(talk::surrounding("PATH").iter().flat_map(std::env::split_paths));
    let path = std::env::join_paths(folders).context("putting the tools on the search path")?;
    let mut command = talk::program(root, &words)?;
    let status = command.env("PATH", path).status().context("running cargo zigbuild")?;
    if !status.success() {
        bail!("`{}` ended with {status}", talk::line(&words));
    }
    Ok(())
}

fn must(root: &Path, words: &[OsString]) -> Result<()> {
    if !talk::runs(root, words)? {
        bail!("`{}` failed", talk::line(words));
    }
    Ok(())
}
