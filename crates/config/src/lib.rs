//! Text of a castle file to [`Spec`], with every mistake in it found in one pass. Start at [`read`].
//!
//! ```text
//! bytes -> limits -> syntax tree -> values held against the grammar -> judged together -> Spec
//!          scan,     syntax          reader, evaluate, convert          castle, machines,
//!          syntax                                                       network, layers, versions
//! ```
//!
//! One table, `grammar`, says what may stand in a file: the reader, its suggestions and the reference come from it.
//! This room must never read a file, a clock, the environment or the network: files and environment come as a
//! snapshot in [`Sources`]. A value that fails never hides the others, and no secret is ever printed.

use std::collections::BTreeMap;

use castle_model::{Spec, suggest};

mod built_in;
mod castle;
mod codes;
mod convert;
mod edit;
mod evaluate;
mod finding;
mod forms;
mod function;
mod grammar;
mod layers;
pub mod limits;
mod machines;
mod mask;
mod network;
mod object_patches;
mod patches;
mod reader;
mod reference;
mod render;
mod scan;
mod secret_sources;
mod secrets;
pub mod story;
mod syntax;
mod talos;
mod typed;
mod value;
mod versions;
mod wanted;

pub use codes::explain;
pub use edit::{Setting, edited};
pub use finding::{Finding, Related, Severity, Span, to_json_lines};
pub use reference::{reference, story_reference};
pub use render::render;
pub use wanted::wanted_files;

use evaluate::Evaluator;
use finding::Findings;
use grammar::CASTLE;
use reader::Reader;

/// The castle file of the example castle, 3+2, which is rehearsed when no other is given.
pub const EXAMPLE: &str = include_str!("../../../examples/blue/castle.hcl");

/// Everything that reading a castle file may look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// The name of the castle file, as it is shown.
    pub file: String,
    /// Its bytes.
    pub text: Vec<u8>,
    /// The environment that `env` reads.
    pub environment: BTreeMap<String, String>,
    /// Files below the project folder by their relative path, those of [`wanted_files`] at least.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The bytes of the `castle.lock` that holds for this castle, if there is one.
    pub lock: Option<Vec<u8>>,
}

/// What a castle file amounts to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The spec; none if there is an error.
    pub spec: Option<Spec>,
    /// Everything that was found, sorted by place.
    pub findings: Vec<Finding>,
}

/// Reads a castle file.
#[must_use]
pub fn read(sources: &Sources) -> Read {
    let mut findings = Findings::default();
    let spec = judge(sources, &mut findings).filter(|_| !findings.any_error());
    if spec.is_none() && !findings.any_error() {
        let finding = Finding::error("C0000", "castle can not say what is wrong with this file");
        findings
            .add(finding.note("this is a bug in castle").help("report it with the castle file"));
    }
    Read { spec, findings: findings.finish(&sources.file, &sources.text) }
}

fn judge(sources: &Sources, findings: &mut Findings) -> Option<Spec> {
    let text = syntax::readable(&sources.text, findings)?;
    secrets::report(text, findings);
    let tree = syntax::parse(text, findings)?;
    let evaluator = Evaluator { sources, broken: &tree.broken, findings };
    let mut reader = Reader { evaluator, lost: &tree.lost, platform: None, root: &CASTLE };
    let contents = reader.file(&tree.body)?;
    castle::read(&contents, sources, findings)
}

/// The spec of [`EXAMPLE`].
///
/// # Panics
/// If the example is wrong, which a test rules out.
#[must_use]
pub fn example() -> Spec {
    let text = EXAMPLE.as_bytes().to_vec();
    let sources = Sources { file: "castle.hcl".to_owned(), text, ..Sources::default() };
    read(&sources).spec.expect("the embedded example is a good castle file")
}

#[cfg(test)]
mod tests;
