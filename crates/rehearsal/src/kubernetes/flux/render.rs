//! From the files of a folder to objects: as kustomize puts them together, with variables put in.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::Value;

use super::Held;

/// How deep folders may name each other.
const DEEPEST: u8 = 16;

type Files = BTreeMap<String, String>;

/// The texts that a folder stands for: those that its `kustomization.yaml` names, else all YAML below it.
pub(super) fn texts<'a>(files: &'a Files, path: &str) -> Result<Vec<(&'a str, &'a str)>, Held> {
    let folder = clean(path);
    if files.contains_key(&folder) {
        return Err(("BuildFailed", format!("open {folder}/kustomization.yaml: not a directory")));
    }
    if !is_folder(files, &folder) {
        let why = format!("stat {path}: no such file or directory");
        return Err(("ArtifactFailed", format!("kustomization path not found: {why}")));
    }
    let mut found = Vec::new();
    collect(files, &folder, DEEPEST, &mut found)
        .map_err(|why| ("BuildFailed", format!("kustomize build failed: {why}")))?;
    Ok(found)
}

/// The objects of some texts.
pub(super) fn objects(
    texts: Vec<(&str, &str)>,
    values: Option<&BTreeMap<String, String>>,
) -> Result<Vec<Value>, Held> {
    let mut objects = Vec::new();
    for (file, text) in texts {
        let wrong = |error: &dyn std::fmt::Display| {
            let why = format!("MalformedYAMLError: yaml: {error} in File: {file}");
            ("BuildFailed", format!("kustomize build failed: {why}"))
        };
        let text = values.map_or_else(|| text.to_owned(), |values| substituted(text, values));
        for document in yaml_serde::Deserializer::from_str(&text) {
            let object = Value::deserialize(document).map_err(|error| wrong(&error))?;
            if object.is_null() {
                continue;
            }
            if !object["kind"].is_string() || !object["metadata"]["name"].is_string() {
                return Err(wrong(&"missing Resource metadata"));
            }
            objects.push(object);
        }
    }
    Ok(objects)
}

fn collect<'a>(
    files: &'a Files,
    folder: &str,
    left: u8,
    found: &mut Vec<(&'a str, &'a str)>,
) -> Result<(), String> {
    if left == 0 {
        return Err(format!("cycle detected: {folder}"));
    }
    let Some(text) = named(files, folder) else {
        return below(files, folder, left, found);
    };
    let list: Value =
        yaml_serde::from_str(text).map_err(|e| format!("invalid Kustomization: {e}"))?;
    for resource in list["resources"].as_array().map_or(&[][..], Vec::as_slice) {
        let resource = resource.as_str().unwrap_or_default();
        let path = clean(&format!("{folder}/{resource}"));
        if let Some((path, text)) = files.get_key_value(&path) {
            found.push((path, text));
        } else if is_folder(files, &path) {
            collect(files, &path, left - 1, found)?;
        } else {
            return Err(format!(
                "accumulating resources: accumulation err='accumulating resources from '{resource}': \
                 open {path}: no such file or directory'"
            ));
        }
    }
    Ok(())
}

/// All YAML below a folder; a folder with a list of its own goes by that.
fn below<'a>(
    files: &'a Files,
    folder: &str,
    left: u8,
    found: &mut Vec<(&'a str, &'a str)>,
) -> Result<(), String> {
    let within = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let mut folders = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| path.starts_with(&within)) {
        match path[within.len()..].split_once('/') {
            Some((inner, _)) => folders.push(format!("{within}{inner}")),
            None => {
                if matches!(path.rsplit_once('.'), Some((_, "yaml" | "yml"))) {
                    found.push((path, text));
                }
            }
        }
    }
    folders.dedup();
    folders.iter().try_for_each(|inner| collect(files, inner, left - 1, found))
}

fn named<'a>(files: &'a Files, folder: &str) -> Option<&'a String> {
    let within = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    ["kustomization.yaml", "kustomization.yml", "Kustomization"]
        .iter()
        .find_map(|name| files.get(&format!("{within}{name}")))
}

fn is_folder(files: &Files, folder: &str) -> bool {
    folder.is_empty() || files.keys().any(|path| path.starts_with(&format!("{folder}/")))
}

/// A path without `.` and `..`.
fn clean(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Puts in variables: `${name}`, with a default `${name:=text}` or `${name:-text}`.
fn substituted(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((inside, behind)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            continue;
        };
        let (name, otherwise) =
            inside.split_once(":=").or_else(|| inside.split_once(":-")).unwrap_or((inside, ""));
        out.push_str(values.get(name).map_or(otherwise, String::as_str));
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[(&str, &str)]) -> Files {
        paths.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_folder_is_its_list_or_all_that_is_below() {
        let files = files(&[
            ("apps/a.yaml", "a"),
            ("apps/notes.txt", "n"),
            ("apps/own/kustomization.yaml", "resources: [c.yaml, ../../shared]"),
            ("apps/own/b.yaml", "b"),
            ("apps/own/c.yaml", "c"),
            ("shared/d.yaml", "d"),
        ]);
        let say = |path: &str| -> String {
            texts(&files, path).unwrap().iter().map(|(_, text)| *text).collect()
        };
        assert_eq!(say("./apps"), "acd");
        assert_eq!(say("apps/own/"), "cd");
        let reason = |path: &str| texts(&files, path).unwrap_err();
        assert_eq!(reason("./nowhere").0, "ArtifactFailed");
        assert!(reason("apps/a.yaml").1.contains("not a directory"));
    }

    #[test]
    fn variables_are_put_in() {
        let values = [("domain".to_owned(), "example.org".to_owned())].into();
        let say = |text: &str| substituted(text, &values);
        assert_eq!(say("a ${domain} ${port:=80} ${none} ${torn"), "a example.org 80  ${torn");
    }

    #[test]
    fn what_is_broken_is_told_with_its_file() {
        let wrong = |text: &str| objects(vec![("apps/a.yaml", text)], None).unwrap_err().1;
        assert!(wrong("kind: [").contains("in File: apps/a.yaml"));
        assert!(wrong("kind: A").contains("missing Resource metadata"));
    }
}
