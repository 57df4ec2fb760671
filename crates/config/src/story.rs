//! Text of a story to [`Story`]: what is broken in a rehearsal, what castle must say, what must be true afterwards.
//!
//! The rules in it are texts here, each with its place: what they mean, the rehearsal knows. See [`complain`].

use std::ops::Range;
use std::time::Duration;

use castle_model::failure::Class;
use hcl_edit::Span as _;
use hcl_edit::structure::{Body, Structure};

use crate::Sources;
use crate::convert::Located;
use crate::evaluate::Evaluator;
use crate::finding::{Finding, Findings};
use crate::grammar::STORY;
use crate::reader::{Contents, Reader};
use crate::syntax;
use castle_model::suggest::{nearest, one_of};

/// The classes of failures.
const CLASSES: [Class; 6] =
    [Class::Transient, Class::Conflict, Class::Denied, Class::Invalid, Class::Gone, Class::Bug];

/// A story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// Its title.
    pub title: String,
    /// What happened once.
    pub told: String,
    /// Where it comes from.
    pub from: Vec<String>,
    /// The castle file beside it, if it has one of its own.
    pub castle: Option<Placed>,
    /// How that file is changed before anything is run.
    pub changes: Vec<Change>,
    /// What happens, in order.
    pub acts: Vec<Act>,
}

/// A text and where it stands in the story's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The text.
    pub text: String,
    /// Its place, quotes included.
    pub range: Range<usize>,
}

/// A change of the castle file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What stands there.
    pub from: Placed,
    /// What shall stand there.
    pub to: String,
}

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// A command is run.
    Run(Run),
    /// Something happens while castle does not run.
    Meanwhile(Meanwhile),
    /// The datacenter is looked at.
    World(World),
}

/// A command, and what is expected of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// `up`, `down`, `plan`, `status`, `audit` or `wipe`.
    pub command: String,
    /// Rules that hold while it runs.
    pub rules: Vec<Placed>,
    /// Its exit code.
    pub exit: u8,
    /// What it says.
    pub says: Vec<String>,
    /// What it does not say.
    pub hides: Vec<String>,
    /// Every step that fails, with the class of its failure.
    pub fails: Option<Vec<(String, Class)>>,
    /// How many calls change something.
    pub changes: Option<u64>,
    /// How long it takes at most.
    pub within: Option<Duration>,
    /// Whether somebody has agreed beforehand.
    pub yes: bool,
}

/// What happens while castle does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meanwhile {
    /// Rules that change the world at once.
    pub pokes: Vec<Placed>,
    /// Rules whose changes are made good again, after those.
    pub mends: Vec<Placed>,
    /// How much time goes by.
    pub later: Option<Duration>,
    /// Whether the state folder is lost.
    pub forget: bool,
    /// How the castle file is changed.
    pub changes: Vec<Change>,
}

/// What is true of the datacenter. Each that is not given is not asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each key is explained by the table that stories are read by")]
pub struct World {
    pub guests: Option<Vec<String>>,
    pub running: Option<Vec<String>>,
    pub ready: Option<Vec<String>>,
    pub disks: Option<u64>,
    pub images: Option<u64>,
    pub tasks: Option<u64>,
    pub members: Option<u64>,
    pub bootstraps: Option<u64>,
    pub vault: Vec<String>,
    pub vault_lacks: Vec<String>,
    pub units: Option<Vec<String>>,
    pub handover: Option<bool>,
    pub untouched: Vec<String>,
    pub nothing_left: Option<bool>,
}

/// What the file of a story amounts to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The story; none if there is an error.
    pub story: Option<Story>,
    /// What is right of one in which there is an error, so that its rules can be judged as well; none if nobody can say
    /// which castle it is about.
    pub draft: Option<Story>,
    /// Everything that was found, sorted by place.
    pub findings: Vec<Finding>,
}

/// Reads a story.
#[must_use]
pub fn read(sources: &Sources) -> Read {
    let mut findings = Findings::default();
    let read = judge(sources, &mut findings);
    let (story, draft) = if findings.any_error() { (None, read) } else { (read, None) };
    Read { story, draft, findings: findings.finish(&sources.file, &sources.text) }
}

/// What is wrong at a place of a story, for whoever knows more than its grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// `C1103` for a rule, `C1105` for the castle file.
    pub code: &'static str,
    /// What is wrong.
    pub title: String,
    /// Where.
    pub range: Range<usize>,
    /// What stands there.
    pub label: String,
    /// Why it is wrong.
    pub notes: Vec<String>,
    /// What to do about it.
    pub help: Option<String>,
}

/// The findings of complaints.
#[must_use]
pub fn complain(
    sources: &Sources,
    complaints: impl IntoIterator<Item = Complaint>,
) -> Vec<Finding> {
    let mut findings = Findings::default();
    for Complaint { code, title, range, label, notes, help } in complaints {
        let finding = Finding::error(code, title).at(&range, label);
        findings.add(Finding { notes, help, ..finding });
    }
    findings.finish(&sources.file, &sources.text)
}

fn judge(sources: &Sources, findings: &mut Findings) -> Option<Story> {
    let text = syntax::readable(&sources.text, findings)?;
    let tree = syntax::parse(text, findings)?;
    let evaluator = Evaluator { sources, broken: &tree.broken, findings };
    let mut reader = Reader { evaluator, lost: &tree.lost, platform: None, root: &STORY };
    let contents = whole(&mut reader, &tree.body)?;
    story(&contents, findings)
}

/// The one block of the file.
fn whole(reader: &mut Reader<'_>, body: &Body) -> Option<Contents> {
    let mut story = None;
    for structure in body {
        let place = match structure {
            Structure::Block(node) if node.has_ident("story") && story.is_none() => {
                story = Some(reader.block(&STORY, node));
                continue;
            }
            Structure::Block(node) => node.ident.span(),
            Structure::Attribute(node) => node.key.span(),
        };
        reader.evaluator.add(
            Finding::error("C1101", "a story file holds one block `story`, and nothing else")
                .at(&place.unwrap_or_default(), "this stands beside it")
                .help("move it into the block, or into a file of its own"),
        );
    }
    if story.is_none() {
        let finding = Finding::error("C1101", "there is no story in the file");
        reader.evaluator.add(finding.help("begin with story \"a title\" { … }"));
    }
    story
}

fn story(contents: &Contents, findings: &mut Findings) -> Option<Story> {
    let acts: Vec<Act> = contents.blocks.iter().filter_map(|block| act(block, findings)).collect();
    if contents.block("run").is_none() && !contents.may_be_written("run") {
        findings.add(
            Finding::error("C1102", "nothing is run in this story")
                .at(&contents.header, "this story")
                .help("add run \"up\" { … }"),
        );
    }
    let castle = contents.block("castle");
    if castle.map_or(contents.may_be_written("castle"), |castle| castle.wrong) {
        return None;
    }
    // What is not there has been reported.
    Some(Story {
        title: label(contents),
        told: sentence(&contents.plain::<String>("told").unwrap_or_default()),
        from: texts(contents, "from"),
        castle: castle.and_then(|castle| castle.get::<String>("file")).map(placed),
        changes: castle.map(changes).unwrap_or_default(),
        acts,
    })
}

fn act(block: &Contents, findings: &mut Findings) -> Option<Act> {
    Some(match block.grammar.keyword {
        "run" => Act::Run(Run {
            command: label(block),
            rules: rules(block, "break"),
            exit: number(block, "exit").and_then(|code| u8::try_from(code).ok()).unwrap_or(0),
            says: texts(block, "says"),
            hides: texts(block, "hides"),
            fails: block.get("fails").map(|list| failures(list, findings)),
            changes: number(block, "changes"),
            within: block.plain("within"),
            yes: block.plain("yes").unwrap_or(true),
        }),
        "meanwhile" => Act::Meanwhile(Meanwhile {
            pokes: rules(block, "poke"),
            mends: rules(block, "mend"),
            later: block.plain("later"),
            forget: block.plain("forget").unwrap_or(false),
            changes: changes(block),
        }),
        "world" => {
            if block.keys().next().is_none() && !block.wrong && !block.may_be_written("") {
                findings.add(
                    Finding::error("C1102", "nothing is expected of the world here")
                        .at(&block.header, "an empty look")
                        .help("say what must be true, such as guests = [421, 422]"),
                );
            }
            Act::World(world(block))
        }
        _ => return None,
    })
}

fn world(block: &Contents) -> World {
    let list = |key: &str| block.is_given(key).then(|| texts(block, key));
    World {
        guests: list("guests"),
        running: list("running"),
        ready: list("ready"),
        disks: number(block, "disks"),
        images: number(block, "images"),
        tasks: number(block, "tasks"),
        members: number(block, "members"),
        bootstraps: number(block, "bootstraps"),
        vault: texts(block, "vault"),
        vault_lacks: texts(block, "vault_lacks"),
        units: list("units"),
        handover: block.plain("handover"),
        untouched: texts(block, "untouched"),
        nothing_left: block.plain("nothing_left"),
    }
}

/// Steps and classes; what is not so is reported.
fn failures(list: Located<Vec<Located<String>>>, findings: &mut Findings) -> Vec<(String, Class)> {
    let mut failures = Vec::new();
    for Located { value, range } in list.value {
        let (step, class) = value.split_once(": ").unwrap_or((&value, ""));
        let known = CLASSES.iter().find(|known| known.word() == class);
        match known {
            Some(class) if step.contains('/') => failures.push((step.to_owned(), *class)),
            _ => {
                let words = CLASSES.iter().map(|class| class.word());
                let help = match nearest(class, words.clone()) {
                    Some(near) if step.contains('/') => format!("did you mean \"{step}: {near}\"?"),
                    _ => "write it like \"platform/vm/cp-02: conflict\"".to_owned(),
                };
                findings.add(
                    Finding::error("C1104", "a failure is expected as LAYER/STEP: CLASS")
                        .at(&range, "not such a failure")
                        .note(format!("the class is {}", one_of(words)))
                        .help(help),
                );
            }
        }
    }
    failures
}

fn label(block: &Contents) -> String {
    block.label.as_ref().map(|label| label.value.clone()).unwrap_or_default()
}

fn changes(block: &Contents) -> Vec<Change> {
    let change = |inner: &Contents| {
        Some(Change { from: placed(inner.get("from")?), to: inner.plain("to")? })
    };
    block.blocks.iter().filter_map(change).collect()
}

fn number(block: &Contents, key: &str) -> Option<u64> {
    block.plain::<i64>(key).and_then(|number| u64::try_from(number).ok())
}

fn rules(block: &Contents, key: &str) -> Vec<Placed> {
    let list = block.plain::<Vec<Located<String>>>(key).unwrap_or_default();
    list.into_iter().map(placed).collect()
}

fn texts(block: &Contents, key: &str) -> Vec<String> {
    rules(block, key).into_iter().map(|placed| placed.text).collect()
}

fn placed(located: Located<String>) -> Placed {
    Placed { text: located.value, range: located.range }
}

/// Lines of a file as a sentence.
fn sentence(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
