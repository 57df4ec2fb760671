//! Arrows between rooms: each manifest may name only the rooms that `house.toml` allows it.

use toml::{Table, Value};

use super::Finding;
use crate::house::{House, Room};
use crate::tree::Source;

const DOWN: &str = "edge";

/// Compares every manifest under `crates/` with the allowed edges.
pub(crate) fn check(house: &House, files: &[Source]) -> Vec<Finding> {
    let mut findings = unknown_rooms(house);
    for file in files
        .iter()
        .filter(|file| file.path.starts_with("crates/") && file.path.ends_with("/Cargo.toml"))
    {
        let folder = file.path.trim_end_matches("/Cargo.toml");
        let Some((name, room)) = house.rooms.iter().find(|(_, room)| room.path == folder) else {
            let text = "this crate is no room of house.toml: add it there with what it may use";
            findings.push(Finding::new(DOWN, &file.path, 0, text));
            continue;
        };
        match file.text.parse::<Table>() {
            Ok(manifest) => {
                findings.extend(check_manifest(house, name, room, &manifest, &file.path));
            }
            Err(error) => {
                findings.push(Finding::new(DOWN, &file.path, 0, format!("not read: {error}")));
            }
        }
    }
    for (name, room) in &house.rooms {
        if !files.iter().any(|file| file.path == format!("{}/Cargo.toml", room.path)) {
            let text = format!(
                "room `{name}` has no {}/Cargo.toml: remove it here or correct its path",
                room.path
            );
            findings.push(Finding::new(DOWN, "house.toml", 0, text));
        }
    }
    findings
}

fn unknown_rooms(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, room) in &house.rooms {
        for used in
            room.uses.iter().chain(&room.tests_use).filter(|used| !house.rooms.contains_key(*used))
        {
            let text =
                format!("room `{name}` may use `{used}`, which is no room: correct the name");
            findings.push(Finding::new(DOWN, "house.toml", 0, text));
        }
    }
    findings
}

fn check_manifest(
    house: &House,
    name: &str,
    room: &Room,
    manifest: &Table,
    path: &str,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let wanted = room.package.clone().unwrap_or_else(|| format!("castle-{name}"));
    let package =
        manifest.get("package").and_then(|package| package.get("name")).and_then(Value::as_str);
    if package != Some(wanted.as_str()) {
        findings.push(Finding::new(DOWN, path, 0, format!("its package must be named `{wanted}`")));
    }
    if manifest.get("lints").and_then(|lints| lints.get("workspace")).and_then(Value::as_bool)
        != Some(true)
    {
        findings.push(Finding::new(
            DOWN,
            path,
            0,
            "it does not take the lints of the house: add [lints] workspace = true",
        ));
    }
    for (kind, dependency) in dependencies(manifest) {
        let for_tests = kind == "dev-dependencies";
        if room.pure && !for_tests && house.pure.crates.contains(&dependency) {
            let text = format!("a pure room may not depend on `{dependency}`: it does no I/O");
            findings.push(Finding::new("pure", path, 0, text));
        }
        let Some(used) = house.room_of_package(&dependency) else { continue };
        // A room that tests itself with other features adds no edge.
        if for_tests && used == name {
            continue;
        }
        let allowed = |rooms: &[String]| rooms.iter().any(|room| room == used);
        if !(allowed(&room.uses) || for_tests && allowed(&room.tests_use)) {
            let list = if for_tests { "tests-use" } else { "uses" };
            let text = format!(
                "`{name}` may not depend on `{used}` ({kind}): move the code, or add the edge to `{list}` in house.toml \
                 and say why in the commit"
            );
            findings.push(Finding::new(DOWN, path, 0, text));
        }
    }
    findings
}

/// Every dependency with its table, those for one target included; renamed ones under their true name.
fn dependencies(manifest: &Table) -> Vec<(&'static str, String)> {
    let targets =
        manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let tables: Vec<&Table> =
        std::iter::once(manifest).chain(targets.filter_map(Value::as_table)).collect();
    let mut found = Vec::new();
    for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
        for table in tables.iter().filter_map(|table| table.get(kind)).filter_map(Value::as_table) {
            for (key, value) in table {
                let renamed = value.get("package").and_then(Value::as_str);
                found.push((kind, renamed.unwrap_or(key).to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::house;

    fn findings(room: &str, dependencies: &str) -> Vec<String> {
        let house = house();
        let text =
            format!("package.name = 'castle-{room}'\nlints.workspace = true\n{dependencies}");
        let found =
            check_manifest(&house, room, &house.rooms[room], &text.parse().unwrap(), "Cargo.toml");
        found.into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn an_allowed_edge_is_silent() {
        assert_eq!(
            findings("engine", "[dependencies]\ncastle-model.workspace = true\ntokio = '1'"),
            [""; 0]
        );
        assert_eq!(
            findings("rehearsal", "[dev-dependencies]\ncastle-proxmox.workspace = true"),
            [""; 0]
        );
        assert_eq!(
            findings("engine", "[dev-dependencies]\ncastle-engine = { path = '.' }"),
            [""; 0]
        );
    }

    #[test]
    fn a_new_edge_is_refused_however_it_is_written() {
        for dependency in [
            "[dependencies]\ncastle-proxmox.workspace = true",
            "[build-dependencies]\ncastle-proxmox.workspace = true",
            "[dependencies]\npve = { package = 'castle-proxmox', path = 'x' }",
            "[target.'cfg(unix)'.dependencies]\ncastle-proxmox.workspace = true",
        ] {
            let found = findings("engine", dependency);
            assert!(
                found.len() == 1 && found[0].starts_with("`engine` may not depend on `proxmox`"),
                "{found:?}"
            );
        }
    }

    #[test]
    fn an_edge_of_tests_is_not_one_of_the_product() {
        let found = findings("rehearsal", "[dependencies]\ncastle-proxmox.workspace = true");
        assert!(found.len() == 1 && found[0].contains("(dependencies)"), "{found:?}");
    }

    #[test]
    fn a_pure_room_takes_no_runtime() {
        assert_eq!(findings("plan", "[dependencies]\ntokio.workspace = true").len(), 1);
        assert_eq!(findings("plan", "[dev-dependencies]\ntokio.workspace = true"), [""; 0]);
    }

    #[test]
    fn a_room_takes_the_lints_of_the_house() {
        let house = house();
        let manifest = "package.name = 'castle-plan'".parse().unwrap();
        assert_eq!(
            check_manifest(&house, "plan", &house.rooms["plan"], &manifest, "Cargo.toml").len(),
            1
        );
    }

    #[test]
    fn the_arrows_have_no_circle() {
        let house = house();
        let mut left: Vec<&String> = house.rooms.keys().collect();
        while !left.is_empty() {
            let before = left.len();
            let current = left.clone();
            left.retain(|name| house.rooms[*name].uses.iter().any(|used| current.contains(&used)));
            assert!(left.len() < before, "a circle among {left:?}");
        }
    }
}
