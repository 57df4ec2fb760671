//! Files that are written by a program: reference pages by the product, `clippy.toml` of pure rooms by us.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::house::{Ban, House};
use crate::talk::{self, say};
use crate::tidy::Finding;
use crate::tree;

/// Writes every generated file that is not as it should be.
pub(crate) fn run() -> Result<bool> {
    let root = tree::root()?;
    let house = House::read(&root)?;
    let mut written = 0;
    for (file, wanted) in wanted(&root, &house)? {
        let path = root.join(&file);
        if fs::read_to_string(&path).is_ok_and(|found| found == wanted) {
            continue;
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        }
        fs::write(&path, wanted).with_context(|| format!("writing {}", path.display()))?;
        say(&format!("docs: wrote {file}"));
        written += 1;
    }
    say(&format!("docs: {written} written, the rest was fresh"));
    Ok(true)
}

/// Finds generated files that are not as the generators would write them.
pub(crate) fn stale(root: &Path, house: &House) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (file, wanted) in wanted(root, house)? {
        let found = fs::read_to_string(root.join(&file)).unwrap_or_default();
        if let Some(line) = first_difference(&found, &wanted) {
            findings.push(Finding::new(
                "stale",
                &file,
                line,
                "not as generated: run `cargo xtask docs` and commit it",
            ));
        }
    }
    Ok(findings)
}

/// The first line, from 1, in which two texts differ.
fn first_difference(found: &str, wanted: &str) -> Option<usize> {
    if found == wanted {
        return None;
    }
    let same = found.lines().zip(wanted.lines()).take_while(|(a, b)| a == b).count();
    Some(same + 1)
}

/// Every generated file with the text it should have.
fn wanted(root: &Path, house: &House) -> Result<Vec<(String, String)>> {
    let path = root.join("clippy.toml");
    let base = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let pure = clippy_of_pure_rooms(&base, house)?;
    let rooms = house.rooms.values().filter(|room| room.pure);
    let mut files: Vec<_> =
        rooms.map(|room| (format!("{}/clippy.toml", room.path), pure.clone())).collect();
    if house.generated.is_empty() {
        return Ok(files);
    }
    let built = built(root)?;
    for generated in &house.generated {
        let mut command = generated.command.clone();
        if let Some(program) = command.first_mut() {
            *program = built.join(&*program).to_string_lossy().into_owned();
        }
        files.push((generated.file.clone(), talk::output(root, &command)?));
    }
    Ok(files)
}

/// Builds every program and example of the house at once, and says where they are.
///
/// One at a time, cargo would ask for the features that this one needs, and build half of the house for each of them;
/// together they are what the tests are made of.
pub(crate) fn built(root: &Path) -> Result<PathBuf> {
    let words = ["cargo", "build", "--workspace", "--bins", "--examples", "--locked", "--quiet"];
    if !talk::runs(root, &words)? {
        bail!("`{}` failed", talk::line(&words));
    }
    Ok(tree::target(root)?.join("debug"))
}

/// The root `clippy.toml` with the bans of pure rooms added: the nearest file replaces the root one.
fn clippy_of_pure_rooms(base: &str, house: &House) -> Result<String> {
    let mut text = String::from(
        "# Written by `cargo xtask docs` from the root clippy.toml and house.toml: change those.\n",
    );
    let (mut methods, mut types) = (false, false);
    for line in base.lines() {
        text += line;
        text.push('\n');
        if line == "disallowed-methods = [" {
            bans(&mut text, &house.pure.methods);
            methods = true;
        } else if line == "disallowed-types = [" {
            bans(&mut text, &house.pure.types);
            types = true;
        }
    }
    if !(methods && types) {
        bail!(
            "the root clippy.toml has no line `disallowed-methods = [` or none `disallowed-types = [`"
        );
    }
    Ok(text)
}

fn bans(text: &mut String, bans: &[Ban]) {
    for ban in bans {
        for path in &ban.paths {
            let written = writeln!(text, "  {{ path = \"{path}\", reason = \"{}\" }},", ban.reason);
            written.expect("writing into memory does not fail");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::house;

    #[test]
    fn a_pure_room_has_the_bans_of_the_house_and_its_own() {
        let base = "a = 1\ndisallowed-methods = [\n  { path = \"m\", reason = \"r\" },\n]\ndisallowed-types = [\n]\n";
        let text = clippy_of_pure_rooms(base, &house()).unwrap();
        let read: toml::Table = text.parse().unwrap();
        let named = |key: &str, path: &str| {
            read[key].as_array().unwrap().iter().any(|ban| ban["path"].as_str() == Some(path))
        };
        assert!(named("disallowed-methods", "m"));
        assert!(named("disallowed-methods", "std::fs::read_to_string"));
        assert!(named("disallowed-types", "std::process::Command"));
        assert!(clippy_of_pure_rooms("a = 1\n", &house()).is_err());
    }

    #[test]
    fn a_difference_is_found_where_it_is() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(first_difference("a\n", "a\nb\n"), Some(2));
        assert_eq!(first_difference("", "a\n"), Some(1));
    }
}
