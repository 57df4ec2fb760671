//! Patches of machine configs: found, read as YAML and judged as far as that goes without knowing all of Talos.

use std::ops::Range;

use castle_model::spec::{PatchSpec, PatchTarget, Role};
use serde::Deserialize;
use yaml_serde::Value;

use crate::Sources;
use crate::convert::Located;
use crate::finding::{Finding, Findings};
use crate::function::{UNUSABLE, outside};
use crate::limits::MAX_PATCH_BYTES;
use crate::machines::Group;
use crate::reader::Contents;
use crate::secrets::looks_like_secret;
use crate::suggest::{nearest, one_of};
use crate::talos::module_finding;

/// What may stand at the top of the main document, the one without a kind.
const MAIN_KEYS: [&str; 5] = ["version", "debug", "persist", "machine", "cluster"];

/// The text of one patch and where it stands.
pub(crate) struct Patch<'s> {
    pub(crate) text: String,
    /// The file that it stands in; none if it stands in the castle file.
    pub(crate) file: Option<String>,
    /// The value in the castle file that holds or names it.
    range: Range<usize>,
    castle_file: &'s Sources,
}

/// What is wrong with a document of a patch, and the piece of text by which its line is found.
struct Wrong {
    finding: Finding,
    needle: String,
}

/// Reads the patches in the order of the file; none if one of them is wrong.
pub(crate) fn read(
    machine: &Contents,
    groups: &[Group],
    sources: &Sources,
    findings: &mut Findings,
) -> Option<Vec<PatchSpec>> {
    let blocks = machine.blocks.iter().filter(|b| b.grammar.keyword == "patch");
    let read = blocks.map(|block| {
        let target = block.get::<String>("for").and_then(|t| target(&t, groups, findings));
        let patch = text(block, sources, findings)?;
        judge(&patch, findings);
        Some(PatchSpec { target: target?, origin: patch.origin(), text: patch.text })
    });
    read.collect::<Vec<_>>().into_iter().collect()
}

fn target(
    given: &Located<String>,
    groups: &[Group],
    findings: &mut Findings,
) -> Option<PatchTarget> {
    match given.value.as_str() {
        "all" => return Some(PatchTarget::All),
        "control-plane" => return Some(PatchTarget::Role(Role::ControlPlane)),
        "worker" => return Some(PatchTarget::Role(Role::Worker)),
        _ => {}
    }
    let names: Vec<&str> =
        groups.iter().flat_map(|g| &g.addresses).map(|(name, _)| name.as_str()).collect();
    if names.contains(&given.value.as_str()) {
        return given.value.parse().ok().map(PatchTarget::Node);
    }
    let words = ["all", "control-plane", "worker"].into_iter().chain(names);
    let help = match nearest(&given.value, words) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "write \"all\", \"control-plane\", \"worker\" or the name of a machine".to_owned(),
    };
    findings.add(
        Finding::error("C0907", format!("there are no machines `{}`", given.value))
            .at(&given.range, "neither a role nor a machine")
            .help(help),
    );
    None
}

/// The text of the patch of a block, from `file` or `text`.
pub(crate) fn text<'s>(
    block: &Contents,
    sources: &'s Sources,
    findings: &mut Findings,
) -> Option<Patch<'s>> {
    let (path, text) = (block.get::<String>("file"), block.get::<String>("text"));
    let (file, range, text) = match (path, text) {
        (Some(path), Some(text)) => {
            findings.add(
                Finding::error("C0111", "both `file` and `text` are given")
                    .at(&text.range, "the text")
                    .related(&path.range, "the file")
                    .help("keep one of the two, or make two patches"),
            );
            return None;
        }
        (None, None) => {
            if !block.may_be_written("file") && !block.may_be_written("text") {
                findings.add(
                    Finding::error("C0113", "a patch without `file` and without `text`")
                        .at(&block.header, "patches nothing")
                        .help("add file = \"patches/name.yaml\", or the patch itself as text = <<EOT …"),
                );
            }
            return None;
        }
        (None, Some(text)) => (None, text.range, text.value),
        (Some(path), None) => {
            let found = file(&path, sources);
            let text = found.map_err(|finding| findings.add(*finding)).ok()?;
            (Some(path.value), path.range, text)
        }
    };
    let patch = Patch { text, file, range, castle_file: sources };
    if patch.text.len() > MAX_PATCH_BYTES {
        let title = format!("a patch of more than {} KiB", MAX_PATCH_BYTES >> 10);
        findings.add(Finding::error("C0906", title).at(&patch.range, "too large"));
        return None;
    }
    Some(patch)
}

fn file(path: &Located<String>, sources: &Sources) -> Result<String, Box<Finding>> {
    let help = "check the path: it is relative to the folder of the castle file";
    let name = crate::function::inside(&path.value)
        .map_err(|reason| Box::new(outside(&path.value, &path.range, reason)))?;
    let unusable = |reason: String| {
        Box::new(Finding::error("C0208", reason).at(&path.range, "read here").help(help))
    };
    let bytes = sources
        .files
        .get(&name)
        .ok_or_else(|| unusable(format!("the patch `{name}` can not be used")))
        .map_err(|finding| Box::new(finding.note(UNUSABLE)))?;
    let text = String::from_utf8(bytes.clone())
        .map_err(|_| unusable(format!("the patch `{name}` is not UTF-8")))?;
    if looks_like_secret(&text) {
        return Err(Box::new(
            Finding::error("C0303", format!("a secret stands in the patch `{name}`"))
                .at(&path.range, "holds something that has the shape of a secret")
                .note("patches are sent as they are, and shown in plans")
                .help("take it out, and make it anew: it may have been seen"),
        ));
    }
    Ok(text)
}

/// Judges every document of a patch.
fn judge(patch: &Patch<'_>, findings: &mut Findings) {
    let mut empty = true;
    for (index, document) in yaml_serde::Deserializer::from_str(&patch.text).enumerate() {
        let value = match Value::deserialize(document) {
            Ok(value) => value,
            Err(error) => {
                findings.add(patch.not_yaml(&error));
                return;
            }
        };
        empty &= value.is_null();
        for Wrong { finding, needle } in document_findings(&value) {
            let line = line_of(&patch.text, index, &needle);
            findings.add(patch.place(finding, line));
        }
    }
    if empty {
        let finding = Finding::error("C0902", "this patch holds nothing");
        findings.add(patch.place(finding.help("write the patch, or take it out"), None));
    }
}

fn wrong(finding: Finding, needle: impl Into<String>) -> Wrong {
    Wrong { finding, needle: needle.into() }
}

fn document_findings(value: &Value) -> Vec<Wrong> {
    let map = match value {
        Value::Null => return Vec::new(),
        Value::Mapping(map) => map,
        Value::Sequence(_) => {
            let finding = Finding::error("C0903", "this patch is a list of operations (JSON 6902)")
                .note("Talos refuses such patches for configs of several documents, which all are since 1.12")
                .help("write the part of the config as it should be: machine: { sysctls: { … } }");
            return vec![wrong(finding, "")];
        }
        _ => {
            let finding = Finding::error("C0903", "this patch is no document of a machine config")
                .help("write the part of the config as it should be: machine: { sysctls: { … } }");
            return vec![wrong(finding, "")];
        }
    };
    let key = |name: &str| map.get(name);
    match key("kind").and_then(Value::as_str) {
        None if key("$patch").is_some() => {
            let finding = Finding::error("C0904", "this patch deletes the main document")
                .note("a document without `kind` is the main one, and Talos does not let it be deleted")
                .help("name the document by `apiVersion`, `kind` and `name`, or put `$patch: delete` where it should work");
            vec![wrong(finding, "$patch")]
        }
        None => {
            let named = map.keys().filter_map(Value::as_str);
            let unknown = named.filter(|k| !MAIN_KEYS.contains(k) && *k != "apiVersion");
            let mut found: Vec<Wrong> = unknown.map(|k| wrong(unknown_key(k), k)).collect();
            found.extend(dead(value));
            found
        }
        Some(kind) if key("apiVersion").is_none() => {
            let finding = Finding::error("C0903", format!("`kind: {kind}` without `apiVersion`"))
                .note("a document is found by both, and by its name")
                .help("add apiVersion: v1alpha1");
            vec![wrong(finding, "kind")]
        }
        Some("KernelModuleConfig") => {
            let name = key("name").and_then(Value::as_str);
            name.and_then(module_finding).map(|f| wrong(f, "name")).into_iter().collect()
        }
        Some(_) => Vec::new(),
    }
}

fn unknown_key(key: &str) -> Finding {
    let help = match nearest(key, MAIN_KEYS) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            "name the document by `apiVersion` and `kind`, or put it below `machine` or `cluster`"
                .to_owned()
        }
    };
    Finding::error("C0903", format!("there is no `{key}` in the main document"))
        .note(format!("a document without `kind` is the main one: it holds {}", one_of(MAIN_KEYS)))
        .help(help)
}

/// What Talos takes and does nothing with, or worse.
fn dead(main: &Value) -> Vec<Wrong> {
    let machine = main.get("machine");
    let mut found = Vec::new();
    if machine.and_then(|m| m.get("install")?.get("extensions")).is_some() {
        let finding = Finding::error("C0905", "`machine.install.extensions` does nothing")
            .note("Talos has not looked at it since 1.10: extensions are part of the image")
            .help("name them in `extensions` of the block `platform`");
        found.push(wrong(finding, "extensions"));
    }
    let modules = machine.and_then(|m| m.get("kernel")?.get("modules")?.as_sequence());
    for module in modules.into_iter().flatten() {
        let name = module.get("name").and_then(Value::as_str);
        found.extend(name.and_then(|n| Some(wrong(module_finding(n)?, n))));
    }
    found
}

/// The line (from 1) of the first line of a document that holds the needle; its first line of text for an empty one.
pub(crate) fn line_of(text: &str, document: usize, needle: &str) -> Option<usize> {
    let (mut at, mut begun) = (0, false);
    for (number, line) in text.lines().enumerate() {
        let bare = line.trim();
        if line.starts_with("---") {
            at += usize::from(begun);
            begun = true;
        } else if !bare.is_empty() && !bare.starts_with('#') {
            begun = true;
            if at == document && line.contains(needle) {
                return Some(number + 1);
            }
        }
    }
    None
}

fn line_at(sources: &Sources, offset: usize) -> usize {
    sources.text.iter().take(offset).filter(|b| **b == b'\n').count() + 1
}

impl Patch<'_> {
    /// Where it stands, in few words.
    pub(crate) fn origin(&self) -> String {
        let line = || line_at(self.castle_file, self.range.start);
        self.file.clone().unwrap_or_else(|| format!("{}:{}", self.castle_file.file, line()))
    }

    /// The finding for a text that is no YAML. The parser's words may repeat what stands there, so only those are told
    /// that can not: the place says enough otherwise.
    pub(crate) fn not_yaml(&self, error: &yaml_serde::Error) -> Finding {
        let words = error.to_string();
        let finding = if words.starts_with("repetition limit") {
            Finding::error("C0902", "this patch repeats itself without end")
                .note("its aliases (`*name`) stand for more than castle takes")
                .help("write out what the aliases stand for")
        } else if words.starts_with("recursion limit") {
            Finding::error("C0902", "this patch is nested too deeply")
                .help("write the part of the object as it should be")
        } else {
            Finding::error("C0902", "this patch is not YAML")
                .help("mend the line; `castle check` reads it again")
        };
        self.place(finding, error.location().map(|l| l.line()))
    }

    /// Puts a finding to the line of the patch: in the castle file itself, or named beside the file's path.
    pub(crate) fn place(&self, finding: Finding, line: Option<usize>) -> Finding {
        if let Some(file) = &self.file {
            let place = line.map_or_else(|| file.clone(), |line| format!("{file}:{line}"));
            return finding.at(&self.range, "in this patch").note(format!("it stands in {place}"));
        }
        let range = line.and_then(|line| self.heredoc_line(line));
        finding.at(&range.unwrap_or_else(|| self.range.clone()), "in this patch")
    }

    /// Where a line of a heredoc stands in the castle file. Other texts may hold line ends that the file does not.
    fn heredoc_line(&self, line: usize) -> Option<Range<usize>> {
        let text = std::str::from_utf8(&self.castle_file.text).ok()?;
        let value = text.get(self.range.clone())?;
        if !value.starts_with("<<") {
            return None;
        }
        let mut start = self.range.start;
        for _ in 0..line {
            start += text.get(start..self.range.end)?.find('\n')? + 1;
        }
        let rest = text.get(start..)?;
        let end = start + rest.find('\n').unwrap_or(rest.len());
        let indent = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        Some((start + indent).min(end)..end)
    }
}
