//! Patches of the objects of a built-in layer's release: found, read as YAML and judged as far as that goes without the release.

use castle_model::spec::ObjectPatch;
use serde::Deserialize;
use yaml_serde::Value;

use crate::Sources;
use crate::finding::{Finding, Findings};
use crate::patches::{Patch, line_of, text};
use crate::reader::Contents;

/// Reads the patches of a layer in the order of the file; none if one of them is wrong.
pub(crate) fn read(
    layer: &Contents,
    sources: &Sources,
    findings: &mut Findings,
) -> Option<Vec<ObjectPatch>> {
    let blocks = layer.blocks.iter().filter(|b| b.grammar.keyword == "patch");
    let read = blocks.map(|block| {
        let (kind, name) = (block.plain::<String>("kind"), block.plain::<String>("name"));
        let patch = text(block, sources, findings)?;
        judge(&patch, kind.as_deref(), name.as_deref(), findings);
        Some(ObjectPatch { kind: kind?, name, origin: patch.origin(), text: patch.text })
    });
    read.collect::<Vec<_>>().into_iter().collect()
}

fn judge(patch: &Patch<'_>, kind: Option<&str>, name: Option<&str>, findings: &mut Findings) {
    let mut documents = Vec::new();
    for document in yaml_serde::Deserializer::from_str(&patch.text) {
        match Value::deserialize(document) {
            Ok(value) => documents.push(value),
            Err(error) => {
                findings.add(patch.not_yaml(&error));
                return;
            }
        }
    }
    let finding = match documents.as_slice() {
        [] | [Value::Null] => Finding::error("C0902", "this patch holds nothing")
            .help("write the part of the object as it should be, or take the patch out"),
        [Value::Mapping(map)] if map.is_empty() => {
            Finding::error("C0902", "this patch holds nothing")
                .help("write the part of the object as it should be, or take the patch out")
        }
        [document @ Value::Mapping(_)] => {
            if let Some((finding, needle)) = other_object(document, kind, name) {
                findings.add(patch.place(finding, line_of(&patch.text, 0, needle)));
            }
            return;
        }
        [Value::Sequence(_)] => {
            Finding::error("C0909", "this patch is a list of operations (JSON 6902)")
                .note("castle merges patches, so that they can be read beside the object")
                .help("write the part of the object as it should be: spec: { replicas: 2 }")
        }
        [_] => Finding::error("C0909", "this patch is no part of an object")
            .help("write the part of the object as it should be: spec: { replicas: 2 }"),
        _ => Finding::error("C0909", "this patch holds several documents")
            .note("it changes the objects of one kind, so one document is all that there is to say")
            .help("make a block `patch` for each"),
    };
    findings.add(patch.place(finding, None));
}

/// A patch that would make another object of the one it changes.
fn other_object(
    document: &Value,
    kind: Option<&str>,
    name: Option<&str>,
) -> Option<(Finding, &'static str)> {
    let metadata = document.get("metadata");
    let named = metadata.and_then(|m| m.get("name"));
    let changes = |value: Option<&Value>, known: Option<&str>| {
        value.is_some_and(|value| value.as_str().is_none() || value.as_str() != known)
    };
    let needle = if kind.is_some() && changes(document.get("kind"), kind) {
        "kind"
    } else if changes(named, name) {
        "name"
    } else if metadata.and_then(|m| m.get("namespace")).is_some() {
        "namespace"
    } else {
        return None;
    };
    let finding = Finding::error(
        "C0909",
        format!("this patch changes the `{needle}` of an object"),
    )
    .note("objects are found by kind and name, so it would be another one")
    .help(format!(
        "take `{needle}` out of the patch; `kind` and `name` of the block say what it changes"
    ));
    Some((finding, needle))
}
