//! What builds the components: a Go that is new enough, and a Python with virtual environments.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::shelf::Shelf;
use crate::talk::{self, say};

/// The oldest Go that the modules of `real/` are written for.
const GO_WANTED: (u32, u32, u32) = (1, 26, 6);

/// Where Go's own installer puts it, if the search path does not know it.
const GO_PLACES: [&str; 2] = ["go", "/usr/local/go/bin/go"];

/// How Go builds here: no C, no network of versions, the same bytes in every folder.
const GO_SURROUNDINGS: [(&str, &str); 3] = [
    ("GOTOOLCHAIN", "local"),
    ("CGO_ENABLED", "0"),
    ("GOFLAGS", "-buildvcs=false -mod=readonly -trimpath"),
];

const LINKER_FLAGS: &str = "-s -w";

/// A Go toolchain.
pub(crate) struct Go {
    program: PathBuf,
    version: String,
}

impl Go {
    /// Finds one, or installs the one that `real/go` pins.
    pub(crate) fn find(root: &Path, shelf: &Shelf) -> Result<Self> {
        for place in GO_PLACES {
            if let Some(version) = go_version(Path::new(place)) {
                if go_number(&version) >= Some(GO_WANTED) {
                    return Ok(Self { program: place.into(), version });
                }
                say(&format!("{place} is too old for the real components: {version}"));
            }
        }
        let requirements = root.join("real/go/requirements.txt");
        let text = fs::read_to_string(&requirements).context("reading real/go/requirements.txt")?;
        let python = python_version(root)?;
        let key = super::short_hash(&[&python, &text]);
        let place = shelf.keep(&format!("go-{key}"), |folder| {
            say("no Go that is new enough: installing the one that real/go pins (about 10 s)");
            environment(root, folder, &requirements).context("no Go that is new enough")
        })?;
        let program = packages(&place)?.join("go/bin/go");
        match go_version(&program) {
            Some(version) => Ok(Self { program, version }),
            None => bail!("{} does not run", program.display()),
        }
    }

    /// All that decides what it builds, besides the sources.
    pub(crate) fn description(&self) -> [&str; 4] {
        [&self.version, GO_SURROUNDINGS[2].1, "CGO_ENABLED=0", LINKER_FLAGS]
    }

    /// Builds one package of the module in `folder`, with these variables written by the linker.
    pub(crate) fn build(
        &self,
        folder: &Path,
        package: &str,
        link: &[String],
        to: &Path,
    ) -> Result<()> {
        let mut flags = LINKER_FLAGS.to_owned();
        for variable in link {
            flags.push_str(" -X ");
            flags.push_str(variable);
        }
        let mut command = Command::new(&self.program);
        command.current_dir(folder).envs(GO_SURROUNDINGS);
        command.args(["build", "-ldflags", &flags, "-o"]).arg(to).arg(package);
        let status = command.status().context("starting go build")?;
        if !status.success() {
            bail!("`go build {package}` in {} ended with {status}", folder.display());
        }
        Ok(())
    }

    /// Copies files or folders of a module that `folder` pins, by its checksum, from Go's cache.
    pub(crate) fn take(
        &self,
        folder: &Path,
        module: &str,
        files: &[String],
        to: &Path,
    ) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.current_dir(folder).envs(GO_SURROUNDINGS).stderr(Stdio::inherit());
        command.args(["mod", "download", "-json", module]);
        let output = command.output().context("starting go mod download")?;
        if !output.status.success() {
            bail!(
                "`go mod download {module}` in {} ended with {}",
                folder.display(),
                output.status
            );
        }
        let told: Downloaded = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("reading what `go mod download {module}` says"))?;
        for file in files {
            copy(&told.dir.join(file), to)?;
        }
        Ok(())
    }
}

/// What `go mod download -json` says of one module.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    dir: PathBuf,
}

/// Copies a file, or the files of a folder, into a folder.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let about = || format!("copying {}", from.display());
    if from.is_dir() {
        for entry in fs::read_dir(from).with_context(about)? {
            copy(&entry.with_context(about)?.path(), to)?;
        }
        return Ok(());
    }
    let name = from.file_name().with_context(about)?;
    // The content alone: Go's cache is not writable, and what is kept must be removable.
    fs::write(to.join(name), fs::read(from).with_context(about)?).with_context(about)
}

/// Makes a virtual environment with exactly the packages of a requirements file.
pub(crate) fn environment(root: &Path, folder: &Path, requirements: &Path) -> Result<()> {
    let python = folder.join("bin/python3");
    let words = |words: &[&dyn AsRef<std::ffi::OsStr>]| -> Vec<OsString> {
        words.iter().map(|word| word.as_ref().to_owned()).collect()
    };
    let make = words(&[&"python3", &"-m", &"venv", &folder]);
    if !talk::runs(root, &make)? {
        install_python(root, "python3 can not make virtual environments")?;
        must(root, &make)?;
    }
    let mut install = words(&[&python, &"-m", &"pip", &"install", &"--quiet", &"--require-hashes"]);
    install.extend(words(&[&"--only-binary", &":all:", &"-r", &requirements]));
    if !talk::runs(root, &install)? {
        let file = requirements.strip_prefix(root).unwrap_or(requirements);
        bail!("pip can not install what {} pins", file.display());
    }
    Ok(())
}

/// Debian may lack Python, and splits virtual environments from it.
fn install_python(root: &Path, lacking: &str) -> Result<()> {
    install(root, lacking, &["python3", "python3-venv"])
}

/// Installs packages of Debian. Only root can.
fn install(root: &Path, lacking: &str, packages: &[&str]) -> Result<()> {
    let named = packages.join(" and ");
    if talk::output(root, &["id", "-u"])?.trim() != "0" {
        bail!("{lacking}: install the Debian package {named}, or its like");
    }
    say(&format!("{lacking}: installing the Debian package {named}"));
    must(root, &["apt-get", "update"].map(OsString::from))?;
    let words = ["apt-get", "install", "--yes"].iter().chain(packages);
    must(root, &words.map(OsString::from).collect::<Vec<_>>())
}

/// Links a program of the machine into a folder; installs it first where it is missing.
pub(crate) fn of_the_machine(root: &Path, name: &str, package: &str, folder: &Path) -> Result<()> {
    let find = || talk::output(root, &["sh", "-c", &format!("command -v {name}")]);
    let found = if let Ok(found) = find() {
        found
    } else {
        install(root, &format!("there is no {name}"), &[package])?;
        find()?
    };
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    std::os::unix::fs::symlink(found.trim(), folder.join(name)).context("linking it for the tests")
}

/// The version that a program of the machine says it has.
pub(crate) fn version_of(root: &Path, name: &str) -> String {
    let told = talk::output(root, &[name, "--version"]).unwrap_or_default();
    let number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    told.split_whitespace().find(number).unwrap_or("none").to_owned()
}

/// The version of Python, as it says it itself.
pub(crate) fn python_version(root: &Path) -> Result<String> {
    let ask = || talk::output(root, &["python3", "--version"]);
    let version = if let Ok(version) = ask() {
        version
    } else {
        install_python(root, "there is no python3")?;
        ask()?
    };
    Ok(version.trim().to_owned())
}

/// Where an environment keeps its packages.
fn packages(environment: &Path) -> Result<PathBuf> {
    let lib = environment.join("lib");
    for entry in fs::read_dir(&lib).with_context(|| format!("listing {}", lib.display()))? {
        let packages = entry.context("listing an environment")?.path().join("site-packages");
        if packages.is_dir() {
            return Ok(packages);
        }
    }
    bail!("no packages in {}", environment.display())
}

fn must(root: &Path, words: &[OsString]) -> Result<()> {
    if talk::runs(root, words)? { Ok(()) } else { bail!("`{}` failed", talk::line(words)) }
}

/// What `go version` says, such as `go version go1.26.8 linux/amd64`.
fn go_version(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("version").env("GOTOOLCHAIN", "local").stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

fn go_number(version: &str) -> Option<(u32, u32, u32)> {
    let number = version.split_whitespace().nth(2)?.strip_prefix("go")?;
    let mut parts = number.split('.').map(|part| part.parse::<u32>().ok());
    Some((parts.next()??, parts.next()??, parts.next().map_or(Some(0), |part| part)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_go_is_told_from_a_new_one() {
        assert_eq!(go_number("go version go1.26.8 linux/amd64"), Some((1, 26, 8)));
        assert!(go_number("go version go1.19.8 linux/amd64") < Some(GO_WANTED));
        assert!(go_number("go version go1.27 linux/amd64") > Some(GO_WANTED));
        // A development version says nothing that can be compared: the pinned one is taken.
        assert_eq!(go_number("go version devel +abc linux/amd64"), None);
    }

    #[test]
    fn every_module_is_content_with_the_wanted_go() {
        let root = crate::tree::root().unwrap();
        for component in super::super::component::all(&root).unwrap() {
            let Ok(text) = fs::read_to_string(component.folder(&root).join("go.mod")) else {
                continue;
            };
            let wanted = text.lines().find_map(|line| line.strip_prefix("go ")).unwrap();
            let wanted = go_number(&format!("go version go{wanted}"));
            assert!(wanted <= Some(GO_WANTED), "{}", component.name);
        }
    }
}
