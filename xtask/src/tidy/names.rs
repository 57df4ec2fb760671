//! Names of files and modules, and the rooms that ARCHITECTURE.md must name.

use std::path::Path;

use super::Finding;
use crate::house::House;
use crate::scan;
use crate::tree::Source;

const MAP: &str = "ARCHITECTURE.md";

/// Finds drawers, `mod.rs`, numbered fixtures and rooms that are not on the map.
pub(crate) fn check(house: &House, files: &[Source]) -> Vec<Finding> {
    let mut findings = map(house, files);
    for file in files
        .iter()
        .filter(|file| file.path.starts_with("crates/") || file.path.starts_with("xtask/"))
    {
        let path = Path::new(&file.path);
        if path.file_name().is_some_and(|name| name == "mod.rs") {
            let text =
                "`mod.rs` is not used here: name the file after its module, beside the folder";
            findings.push(Finding::new("mod-rs", &file.path, 0, text));
        }
        let stems =
            path.iter().map(|part| Path::new(part).file_stem().unwrap_or(part).to_string_lossy());
        for drawer in stems.filter(|stem| {
            house.names.banned.iter().any(|banned| stem.replace('-', "_") == *banned)
        }) {
            let text = format!("`{drawer}` is a drawer, not a name: say what is inside");
            findings.push(Finding::new("banned-name", &file.path, 0, text));
        }
        if numbered(path) {
            let text = "a numbered fixture: name it for what it shows";
            findings.push(Finding::new("fixture-name", &file.path, 0, text));
        }
        if file.is_rust() {
            findings.extend(modules(house, file));
        }
    }
    findings
}

/// Modules declared inside a file.
fn modules(house: &House, file: &Source) -> Vec<Finding> {
    let code = scan::scan(&file.text).code;
    let mut findings = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(at) = words.iter().position(|word| *word == "mod") else { continue };
        let Some(name) = words.get(at + 1).map(|name| name.trim_end_matches([';', '{'])) else {
            continue;
        };
        if house.names.banned.iter().any(|banned| banned == name) {
            let text = format!("`mod {name}` is a drawer, not a name: say what is inside");
            findings.push(Finding::new("banned-name", &file.path, index + 1, text));
        }
    }
    findings
}

/// Whether a fixture is called `test1`, `case-2` and the like.
fn numbered(path: &Path) -> bool {
    let stem =
        path.file_stem().map(|stem| stem.to_string_lossy().to_lowercase()).unwrap_or_default();
    let rest = ["test", "case", "fixture", "example", "sample"]
        .iter()
        .find_map(|word| stem.strip_prefix(word));
    rest.map(|rest| rest.trim_start_matches(['-', '_']))
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

fn map(house: &House, files: &[Source]) -> Vec<Finding> {
    let Some(map) = files.iter().find(|file| file.path == MAP) else {
        return vec![Finding::new("map", MAP, 0, "is missing: it is the map of the house")];
    };
    let unnamed =
        house.rooms.values().filter(|room| !map.text.contains(&format!("`{}`", room.path)));
    let mut findings: Vec<Finding> = unnamed
        .map(|room| {
            Finding::new(
                "map",
                MAP,
                0,
                format!("does not name `{}`: say what the room is for", room.path),
            )
        })
        .collect();
    let lines = map.text.lines().count();
    if lines > house.limits.architecture_lines {
        let text = format!(
            "{lines} lines, {} are allowed: it is a map, not the land",
            house.limits.architecture_lines
        );
        findings.push(Finding::new("map", MAP, 0, text));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{file, house};

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        let house = house();
        let map: Vec<String> =
            house.rooms.values().map(|room| format!("`{}`", room.path)).collect();
        let files = [file(MAP, &map.join("\n")), file(path, text)];
        check(&house, &files).into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn drawers_are_refused_as_file_folder_and_module() {
        assert_eq!(rules("crates/a/src/scheduler.rs", "mod lane;"), [""; 0]);
        assert_eq!(rules("crates/a/src/util.rs", ""), ["banned-name"]);
        assert_eq!(rules("crates/a/src/helpers/x.rs", ""), ["banned-name"]);
        assert_eq!(rules("crates/a/src/x.rs", "pub mod misc {\n}"), ["banned-name"]);
        assert_eq!(rules("crates/a/src/x.rs", "// mod misc;"), [""; 0]);
    }

    #[test]
    fn mod_rs_and_numbered_fixtures_are_refused() {
        assert_eq!(rules("crates/a/src/x/mod.rs", ""), ["mod-rs"]);
        assert_eq!(rules("crates/a/tests/test1.hcl", ""), ["fixture-name"]);
        assert_eq!(rules("crates/a/tests/case-02.hcl", ""), ["fixture-name"]);
        assert_eq!(rules("crates/a/tests/two-masters.hcl", ""), [""; 0]);
        assert_eq!(rules("crates/a/src/x/tests.rs", ""), [""; 0]);
    }

    #[test]
    fn every_room_is_on_the_map() {
        let house = house();
        assert_eq!(check(&house, &[file(MAP, "`crates/model`")]).len(), house.rooms.len() - 1);
        assert_eq!(check(&house, &[]).len(), 1);
        let mut long: Vec<String> =
            house.rooms.values().map(|room| format!("`{}`", room.path)).collect();
        long.resize(401, String::new());
        assert_eq!(check(&house, &[file(MAP, &(long.join("\n") + "\n"))]).len(), 1);
    }
}
