//! Nothing can be dumped, and a step that panics with a secret in its words tells none of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Graph, Runner, Step, Stop};
use castle_journal::{Holder, Start, StateRoot};
use castle_model::deadline::Deadlines;
use castle_model::plan::Direction;
use castle_model::time::Moment;
use castle_model::{CastleName, Event, Failure, Observed, RunId, StepDecl, StepId, Verb};
use castle_plan::Survey;
use rustix::process::{DumpableBehavior, dumpable_behavior, getrlimit};
use search::Search;

use super::*;

// The search of the canary test, which looks for every form of a text.
#[path = "../../tests/castle/canary/inflate.rs"]
mod inflate;
#[path = "../../tests/castle/canary/search.rs"]
mod search;

/// What no panic may tell.
const CANARY: &str = "bundle: yellow-feathers-4711";

#[test]
fn nothing_can_be_dumped() {
    undumpable().unwrap();
    no_core().unwrap();
    assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    assert_eq!(getrlimit(Resource::Core), Rlimit { current: Some(0), maximum: Some(0) });
}

/// A step that does not expect what it meets.
struct Panics;

#[async_trait]
impl Step for Panics {
    async fn observe(&self, _: &Context) -> Result<Observed, Failure> {
        Ok(Observed::Absent)
    }

    async fn act(&self, _: &Context, _: Verb) -> Result<Acted, Failure> {
        panic!("an answer of 200 bytes: {CANARY}");
    }

    async fn gate(&self, _: &Context) -> Result<String, Failure> {
        Ok("proven".to_owned())
    }
}

/// Runs an ignored test in a process of its own: a panic hook is for the whole process.
fn alone(test: &str, folder: &Path) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("hardening::tests::{test}"), "--ignored", "--nocapture"]);
    command.env("RUST_BACKTRACE", "full").current_dir(folder).output().unwrap()
}

#[test]
fn the_words_of_a_panic_are_not_told() {
    let folder = tempfile::tempdir().unwrap();
    let output = alone("a_step_panics", folder.path());
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    let search = Search::new(&BTreeMap::from([("panic".to_owned(), CANARY.as_bytes().to_vec())]));
    let mut hits = search.hits_below(folder.path(), &[]);
    hits.extend(search.hits("standard output", &output.stdout));
    hits.extend(search.hits("standard error", &output.stderr));
    assert!(hits.is_empty(), "{hits:?}");
    let journal =
        std::fs::read_to_string(folder.path().join("state/layers/layer.journal")).unwrap();
    // What happened is told all the same, to the user and to the journal.
    assert!(
        err.contains("castle: internal error at ") && err.contains("hardening/tests.rs:"),
        "{err}"
    );
    assert!(
        out.contains("the step panicked") && journal.contains("the step panicked"),
        "{journal}"
    );
    // Without the hook it would have been told.
    let output = alone("a_panic_without_hardening", folder.path());
    assert!(!search.hits("standard error", &output.stderr).is_empty());
}

#[test]
#[ignore = "it is run by another test, in a process of its own"]
fn a_panic_without_hardening() {
    panic!("{CANARY}");
}

#[test]
#[ignore = "it is run by another test, in a process of its own"]
fn a_step_panics() {
    harden();
    let mut graph = Graph::new();
    graph
        .add(StepDecl::new(StepId::of("layer", "step", "one"), "step", "vm", "it is done"), Panics);
    let castle: CastleName = "blue".parse().unwrap();
    let plan = castle_plan::up(&castle, graph.decls(), &Survey::new(), &BTreeSet::new()).unwrap();
    let run = RunId::new("r0001");
    let (direction, version) = (Direction::Up, "0".to_owned());
    let start = Start { run: run.clone(), castle, direction, plan: plan.hash.clone(), version };
    let holder = Holder::this("h".into(), Moment(0), "test".into());
    let mut root = StateRoot::open(Path::new("state"), &holder).unwrap();
    root.journals_mut().start_run(Moment(0), start).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let report = runtime.block_on(
        Runner {
            graph: &graph,
            plan: &plan,
            journals: root.journals_mut(),
            outputs: Arc::default(),
            deadlines: &Deadlines::default(),
            now: Arc::new(|| Moment(0)),
            face: &mut |event: &Event| output::data(&serde_json::to_string(event).unwrap()),
            told: 0,
            run,
            stop: Stop::default(),
        }
        .run(),
    );
    assert_eq!(report.unwrap().failures.len(), 1);
}
