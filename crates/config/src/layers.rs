//! Layers of one's own: their names, their order, cycles, manifests; and the deadlines that name layers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use castle_model::LayerName;
use castle_model::deadline::{Deadlines, TABLE};
use castle_model::name::check_label;
use castle_model::spec::{BUILT_IN_LAYERS, ExtraLayer, UrlManifest};

use crate::Sources;
use crate::convert::Located;
use crate::finding::{Finding, Findings};
use crate::limits::MAX_LAYERS;
use crate::reader::Contents;
use crate::suggest::{nearest, one_of};

/// A layer as it stands in the file.
struct Written<'c> {
    name: &'c Located<String>,
    after: Vec<Located<String>>,
    block: &'c Contents,
}

/// Judges the layers and gives them in an order in which each comes after those it names.
pub(crate) fn read(
    castle: &Contents,
    sources: &Sources,
    findings: &mut Findings,
) -> Vec<ExtraLayer> {
    let mut written: Vec<Written<'_>> = Vec::new();
    for block in castle.blocks.iter().filter(|b| b.grammar.keyword == "layer") {
        let Some(name) = &block.label else { continue };
        if written.len() == MAX_LAYERS {
            let title = format!("more than {MAX_LAYERS} layers");
            findings.add(
                Finding::error("C0707", title)
                    .at(&name.range, "the one too many")
                    .help("join some of them"),
            );
            return Vec::new();
        }
        if let Some(finding) = name_taken(name, &written) {
            findings.add(finding);
            continue;
        }
        written.push(Written { name, after: block.plain("after").unwrap_or_default(), block });
    }
    for layer in &written {
        unknown_after(layer, &written, castle, findings);
    }
    let order = order(&written, findings);
    let read = |index: usize| {
        let layer = &written[index];
        let (manifests, url) = contents(layer.block, sources, findings)?;
        Some(ExtraLayer {
            name: layer.name.value.parse().ok()?,
            after: layer.after.iter().filter_map(|a| a.value.parse::<LayerName>().ok()).collect(),
            manifests,
            url,
        })
    };
    order.into_iter().map(read).collect::<Vec<_>>().into_iter().flatten().collect()
}

fn name_taken(name: &Located<String>, earlier: &[Written<'_>]) -> Option<Finding> {
    if let Err(reason) = check_label(&name.value) {
        let finding =
            Finding::error("C0401", "this is not a name of a layer").at(&name.range, "the name");
        return Some(
            finding.note(reason.to_string()).help("use a-z, 0-9 and `-`, such as \"metrics\""),
        );
    }
    let taken = Finding::error("C0701", format!("the name `{}` is taken", name.value));
    if BUILT_IN_LAYERS.contains(&name.value.as_str()) || TABLE.iter().any(|e| e.key == name.value) {
        let note = format!(
            "built-in layers and kinds of deadline have names too: {}",
            one_of(BUILT_IN_LAYERS)
        );
        return Some(taken.at(&name.range, "built in").note(note).help("choose another name"));
    }
    let first = earlier.iter().find(|l| l.name.value == name.value)?;
    let taken = taken.at(&name.range, "the second layer of this name");
    Some(taken.related(&first.name.range, "the first").help("choose another name"))
}

fn unknown_after(
    layer: &Written<'_>,
    all: &[Written<'_>],
    castle: &Contents,
    findings: &mut Findings,
) {
    for after in &layer.after {
        let own = all.iter().map(|l| l.name.value.as_str()).filter(|n| *n != layer.name.value);
        let names: Vec<&str> = BUILT_IN_LAYERS.into_iter().chain(own).collect();
        if !names.contains(&after.value.as_str()) && after.value != layer.name.value {
            let help = match nearest(&after.value, names.iter().copied()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => {
                    format!("there are {}", one_of(names.iter().copied()).replace(" or ", " and "))
                }
            };
            let title = format!("there is no layer `{}` to come after", after.value);
            findings.add(Finding::error("C0702", title).at(&after.range, "unknown").help(help));
        } else if is_off(castle, &after.value) {
            findings.add(
                Finding::error(
                    "C0705",
                    format!("`{}` waits for `{}`, which is off", layer.name.value, after.value),
                )
                .at(&after.range, "never finished in this castle")
                .help(format!("enable `{}`, or take it out of `after`", after.value)),
            );
        }
    }
}

fn is_off(castle: &Contents, layer: &str) -> bool {
    match castle.block(layer) {
        Some(block) => block.plain("enabled") == Some(false),
        None => layer == "gitops",
    }
}

/// Orders the layers; every cycle is reported as the cycle that it is.
fn order(layers: &[Written<'_>], findings: &mut Findings) -> Vec<usize> {
    let index: BTreeMap<&str, usize> =
        layers.iter().enumerate().map(|(i, l)| (l.name.value.as_str(), i)).collect();
    let needs: Vec<Vec<usize>> = layers
        .iter()
        .map(|l| l.after.iter().filter_map(|a| index.get(a.value.as_str()).copied()).collect())
        .collect();
    let (mut order, mut done) = (Vec::new(), BTreeSet::new());
    loop {
        let free = |i: &usize| !done.contains(i) && needs[*i].iter().all(|n| done.contains(n));
        let Some(next) = (0..layers.len()).find(free) else { break };
        done.insert(next);
        order.push(next);
    }
    // Each layer left over leads into a cycle: follow the first unfinished need until one comes again.
    let mut told: BTreeSet<usize> = BTreeSet::new();
    for start in (0..layers.len()).filter(|i| !done.contains(i)) {
        let mut path = vec![start];
        while let Some(next) = needs[path[path.len() - 1]].iter().find(|n| !done.contains(n)) {
            if let Some(at) = path.iter().position(|p| p == next) {
                let cycle = &path[at..];
                if cycle.iter().all(|i| told.insert(*i)) {
                    findings.add(cycle_finding(layers, cycle));
                }
                break;
            }
            path.push(*next);
        }
    }
    order
}

fn cycle_finding(layers: &[Written<'_>], cycle: &[usize]) -> Finding {
    let name = |i: &usize| layers[*i].name.value.as_str();
    let mut names: Vec<&str> = cycle.iter().map(name).collect();
    names.push(name(&cycle[0]));
    let first = &layers[cycle[0]];
    let finding =
        Finding::error("C0703", format!("layers wait for each other: {}", names.join(" -> ")))
            .at(&first.name.range, "waits for itself in the end")
            .note("read `a -> b` as: a comes after b")
            .help("take one name out of one `after`");
    cycle[1..].iter().fold(finding, |f, i| f.related(&layers[*i].name.range, "in the circle"))
}

/// What a layer applies: the files of a folder, or one manifest at an address.
fn contents(
    block: &Contents,
    sources: &Sources,
    findings: &mut Findings,
) -> Option<(BTreeMap<String, String>, Option<UrlManifest>)> {
    let later = [
        ("chart", "helm template NAME CHART > metrics/chart.yaml"),
        ("module", "tofu apply, outside of castle"),
    ];
    for (key, instead) in later {
        if let Some(value) = block.get::<String>(key) {
            findings.add(
                Finding::error("C0109", format!("a layer of a `{key}` is not in this version yet"))
                    .at(&value.range, "can not be applied")
                    .note(format!("until then: {instead}"))
                    .help("name the manifests: manifests = \"./metrics\""),
            );
            return None;
        }
    }
    let (folder, url) = (block.get::<String>("manifests"), block.get::<String>("url"));
    match (folder, url) {
        (Some(folder), Some(url)) => {
            findings.add(
                Finding::error("C0111", "both `manifests` and `url` are given")
                    .at(&url.range, "the address")
                    .related(&folder.range, "the folder")
                    .help("keep one of the two, or make two layers"),
            );
            None
        }
        (Some(_), None) => {
            if let Some(sha256) = block.get::<String>("sha256") {
                findings.add(
                    Finding::error("C0113", "`sha256` without `url`")
                        .at(&sha256.range, "of nothing that is fetched")
                        .help("take it out: files of the project folder are taken as they are"),
                );
            }
            manifests(block, sources, findings).map(|manifests| (manifests, None))
        }
        (None, Some(url)) => {
            let sha256 = block.plain::<String>("sha256");
            if sha256.is_none() && !block.may_be_written("sha256") {
                findings.add(
                    Finding::error("C0113", "`url` without `sha256`")
                        .at(&url.range, "may give something else tomorrow")
                        .note("what a castle is made from is pinned by its content")
                        .help("add sha256 = \"…\": the output of sha256sum for the file that you have read"),
                );
            }
            Some((BTreeMap::new(), Some(UrlManifest { url: url.value, sha256: sha256? })))
        }
        (None, None) => {
            if !block.may_be_written("manifests") && !block.may_be_written("url") {
                findings.add(
                    Finding::error("C0103", "a layer without `manifests` and without `url`")
                        .at(&block.header, "applies nothing")
                        .help("add manifests = \"./metrics\", or url and sha256"),
                );
            }
            None
        }
    }
}

fn manifests(
    block: &Contents,
    sources: &Sources,
    findings: &mut Findings,
) -> Option<BTreeMap<String, String>> {
    let path = block.get::<String>("manifests")?;
    let folder = format!("{}/", path.value);
    let mut found = BTreeMap::new();
    for (name, bytes) in &sources.files {
        if !is_manifest(name) || (*name != path.value && !name.starts_with(&folder)) {
            continue;
        }
        match String::from_utf8(bytes.clone()) {
            Ok(text) => {
                found.insert(name.clone(), text);
            }
            Err(_) => findings.add(
                Finding::error("C0208", format!("`{name}` is not UTF-8"))
                    .at(&path.range, "one of these manifests"),
            ),
        }
    }
    if found.is_empty() {
        let title = format!("there are no manifests in `{}`", path.value);
        let finding = Finding::error("C0704", title)
            .at(&path.range, "no file that ends in .yaml, .yml or .json");
        findings
            .add(finding.help("check the path: it is relative to the folder of the castle file"));
        return None;
    }
    if found.values().all(|text| is_empty(text)) {
        let title = format!("the manifests in `{}` are empty", path.value);
        findings.add(
            Finding::error("C0704", title)
                .at(&path.range, "nothing but blank lines, comments and `---`")
                .note("a layer that applies nothing is never ready")
                .help("write the objects of the layer there, or take the layer out"),
        );
        return None;
    }
    Some(found)
}

/// Whether a manifest holds no document: only blank lines, comments and the marks between documents.
fn is_empty(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines().all(|line| {
        let line = line.split(" #").next().unwrap_or_default().trim();
        matches!(line, "" | "---" | "...") || line.starts_with(['#', '%'])
    })
}

/// Whether the name is that of a manifest.
pub(crate) fn is_manifest(name: &str) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    matches!(ending, Some("yaml" | "yml" | "json"))
}

/// Reads the deadlines, whose keys are kinds of wait or names of layers.
pub(crate) fn deadlines(castle: &Contents, findings: &mut Findings) -> Deadlines {
    let Some(block) = castle.block("deadlines") else { return Deadlines::default() };
    let own = castle
        .blocks
        .iter()
        .filter(|b| b.grammar.keyword == "layer")
        .filter_map(|b| b.label.as_ref());
    let known: Vec<&str> = TABLE
        .iter()
        .map(|e| e.key)
        .chain(BUILT_IN_LAYERS)
        .chain(own.map(|l| l.value.as_str()))
        .collect();
    let mut deadlines = Deadlines::default();
    for (key, range) in block.keys() {
        if let (true, Some(duration)) = (known.contains(&key), block.plain::<Duration>(key)) {
            deadlines.0.insert(key.to_owned(), duration);
            continue;
        }
        let help = match nearest(key, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                "the kinds of wait are in the table of deadlines in docs/reference/castle-file.md"
                    .to_owned()
            }
        };
        let finding = Finding::error("C0706", format!("there is no deadline `{key}`"));
        findings.add(finding.at(range, "neither a kind of wait nor a layer").help(help));
    }
    deadlines
}
