//! Where secrets come from, and where the castle's own are kept: the blocks `secrets` and `escrow`.

use std::collections::BTreeMap;

use castle_model::Spec;
use castle_model::spec::{
    EnvSpec, EscrowAfterDown, EscrowFile, EscrowPlace, EscrowSpec, FileSpec, InfisicalSpec,
    ReaderSpec, SecretRef, SecretsSpec, Shape, SopsSpec, SourceSpec,
};

use crate::castle::trust;
use crate::convert::Located;
use crate::finding::{Finding, Findings};
use crate::reader::Contents;
use crate::suggest::{nearest, one_of};

/// Reads every block `secrets` and the block `escrow`; none if something of them is wrong.
pub(crate) fn read(castle: &Contents, findings: &mut Findings) -> Option<SecretsSpec> {
    let blocks: Vec<&Contents> =
        castle.blocks.iter().filter(|b| b.grammar.keyword == "secrets").collect();
    let mut sources = Vec::new();
    let (mut require, mut shapes) = (Vec::new(), Some(BTreeMap::new()));
    for block in &blocks {
        sources.push(source(block, findings));
        let keys: Vec<Located<String>> = block.plain("require").unwrap_or_default();
        require.extend(keys.into_iter().map(|key| key.value));
        match (declared_shapes(block, findings), &mut shapes) {
            (Some(declared), Some(shapes)) => shapes.extend(declared),
            (_, shapes) => *shapes = None,
        }
    }
    let escrow = escrow(castle, &blocks, findings);
    let sources: Vec<SourceSpec> = sources.into_iter().collect::<Option<_>>()?;
    let complete = !sources.is_empty();
    Some(SecretsSpec { sources, require, shapes: shapes?, escrow: escrow? }).filter(|_| complete)
}

fn source(block: &Contents, findings: &mut Findings) -> Option<SourceSpec> {
    Some(match block.label.as_ref()?.value.as_str() {
        "infisical" => {
            let (trust, reader) = (trust(block, findings), reader(block, findings));
            SourceSpec::Infisical(InfisicalSpec {
                host: block.plain("host")?,
                trust: trust?,
                project: block.plain("project")?,
                environment: block.plain("environment")?,
                path: block.plain("path")?,
                credentials: block.plain("credentials_file"),
                reader: reader.ok()?,
            })
        }
        "sops" => {
            let file = block.get::<String>("file")?;
            if !is_of(&file.value, &["yaml", "yml", "json"]) {
                findings.add(
                    Finding::error("C0307", "castle reads SOPS files in YAML and JSON")
                        .at(&file.range, "neither of the two")
                        .note("the ending of its name tells which of the two a file is")
                        .help("encrypt it as YAML: sops encrypt --output secrets.enc.yaml secrets.yaml"),
                );
                return None;
            }
            SourceSpec::Sops(SopsSpec { file: file.value })
        }
        "env" => SourceSpec::Env(EnvSpec { prefix: block.plain("prefix").unwrap_or_default() }),
        _ => SourceSpec::File(FileSpec { path: block.plain("path")? }),
    })
}

/// Something that is wrong and has been reported.
struct Wrong;

/// The identity of External Secrets: whole, or not at all.
fn reader(block: &Contents, findings: &mut Findings) -> Result<Option<ReaderSpec>, Wrong> {
    const PARTS: [&str; 2] = ["reader_id", "reader_secret"];
    let parts = PARTS.map(|key| block.get::<SecretRef>(key));
    let missing = PARTS.into_iter().filter(|key| !block.may_be_written(key)).collect::<Vec<_>>();
    match (parts, missing.as_slice()) {
        ([Some(id), Some(secret)], _) => {
            Ok(Some(ReaderSpec { id: id.value, secret: secret.value }))
        }
        ([None, None], [_, _]) => Ok(None),
        (parts, [missing]) => {
            let there = parts.into_iter().flatten().next().ok_or(Wrong)?;
            findings.add(
                Finding::error(
                    "C0113",
                    format!("the other half of this identity, `{missing}`, is missing"),
                )
                .at(&there.range, "half of the identity")
                .help(format!(
                    "add {missing} = secret(\"ESO_CLIENT_{}\")",
                    missing[7..].to_uppercase()
                )),
            );
            Err(Wrong)
        }
        _ => Err(Wrong),
    }
}

fn declared_shapes(block: &Contents, findings: &mut Findings) -> Option<BTreeMap<String, Shape>> {
    let Some(declared) = block.get::<BTreeMap<String, String>>("shapes") else {
        return (!block.may_be_written("shapes")).then(BTreeMap::new);
    };
    let mut shapes = BTreeMap::new();
    for (key, word) in declared.value {
        let Some(shape) = Shape::named(&word) else {
            let finding =
                Finding::error("C0308", format!("there is no form `{word}` (of `{key}`)"));
            let help = match nearest(&word, Shape::NAMES) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("write {}", one_of(Shape::NAMES)),
            };
            findings.add(finding.at(&declared.range, "not known").help(help));
            return None;
        };
        shapes.insert(key, shape);
    }
    Some(shapes)
}

/// Finds forms that contradict what the castle itself does with a value, and those of keys that nobody asks for.
pub(crate) fn judge_shapes(castle: &Contents, spec: &Spec, findings: &mut Findings) {
    let required = spec.required_secrets();
    for block in castle.blocks.iter().filter(|b| b.grammar.keyword == "secrets") {
        let Some(declared) = block.get::<BTreeMap<String, String>>("shapes") else { continue };
        for (key, word) in declared.value {
            if !required.contains(&key) {
                findings.add(
                    Finding::error("C0308", format!("`{key}` has a form, and nobody asks for it"))
                        .at(&declared.range, "a form of this key")
                        .help(format!("add \"{key}\" to `require`, or take it out here")),
                );
            } else if spec.shape(&key).to_string() != word {
                findings.add(
                    Finding::error("C0308", format!("`{key}` can not be of the form `{word}`"))
                        .at(&declared.range, "a form of this key")
                        .note("castle itself logs in with it, so it is a `token`: one word")
                        .help("take it out here"),
                );
            }
        }
    }
}

fn escrow(castle: &Contents, sources: &[&Contents], findings: &mut Findings) -> Option<EscrowSpec> {
    let block = castle.block("escrow");
    let after_down = match block {
        Some(block) if block.plain::<String>("after_down")? == "keep" => EscrowAfterDown::Keep,
        _ => EscrowAfterDown::Remove,
    };
    let recipients = block.and_then(|block| block.get::<Vec<Located<String>>>("recipients"));
    let place = match block.and_then(|block| block.get::<String>("file")) {
        Some(file) if !file.value.ends_with(".enc.yaml") => {
            findings.add(
                Finding::error(
                    "C0307",
                    "the escrow file is an encrypted one, and its name does not say so",
                )
                .at(&file.range, "does not end with `.enc.yaml`")
                .note("tools and people tell by that ending what must never be there in clear")
                .help(format!(
                    "write file = \"{}.escrow.enc.yaml\"",
                    castle.label.as_ref().map_or("blue", |l| l.value.as_str())
                )),
            );
            return None;
        }
        Some(file) => {
            let recipients = recipients.map(|list| list.value).unwrap_or_default();
            EscrowPlace::File(EscrowFile {
                file: file.value,
                recipients: recipients.into_iter().map(|recipient| recipient.value).collect(),
            })
        }
        None if block.is_some_and(|block| block.may_be_written("file")) => return None,
        None => {
            return in_infisical(castle, sources, recipients.as_ref(), findings)
                .map(|place| EscrowSpec { place, after_down });
        }
    };
    Some(EscrowSpec { place, after_down })
}

/// The place where no file is named: the folder of the first Infisical, or none.
fn in_infisical(
    castle: &Contents,
    sources: &[&Contents],
    recipients: Option<&Located<Vec<Located<String>>>>,
    findings: &mut Findings,
) -> Option<EscrowPlace> {
    if let Some(recipients) = recipients {
        findings.add(
            Finding::error("C0113", "`recipients` without `file`")
                .at(&recipients.range, "nothing is encrypted for them")
                .help("add file = \"blue.escrow.enc.yaml\", or take `recipients` out"),
        );
        return None;
    }
    let label = |block: &&Contents| block.label.as_ref().map(|label| label.value.clone());
    if sources.iter().any(|block| label(block).is_none_or(|label| label == "infisical")) {
        return Some(EscrowPlace::Infisical);
    }
    let first = sources.first()?;
    let name = castle.label.as_ref().map_or("blue", |label| label.value.as_str());
    findings.add(
        Finding::error("C0306", "there is no place to keep the secrets that the castle makes")
            .at(&first.header, "castle can not write to this source")
            .note("without the bundle of Talos secrets nobody can manage the machines again")
            .help(format!(
                "add escrow {{ file = \"{name}.escrow.enc.yaml\" }}: castle encrypts it with age"
            )),
    );
    None
}

fn is_of(path: &str, endings: &[&str]) -> bool {
    path.rsplit_once('.').is_some_and(|(_, ending)| endings.contains(&ending))
}
