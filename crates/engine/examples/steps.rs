//! Measures the engine itself, for `cargo xtask bench`: prints one JSON line per case.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Graph, Outputs, Runner, Step, Stop};
use castle_journal::{Holder, Journals, Start, StateRoot};
use castle_model::deadline::Deadlines;
use castle_model::plan::Direction;
use castle_model::time::Moment;
use castle_model::{CastleName, Change, Event, Failure, Observed, RunId, StepDecl, StepId, Verb};
use castle_plan::Survey;

/// A step that finds its object right, or makes it without any work.
struct Empty {
    there: bool,
}

#[async_trait]
impl Step for Empty {
    async fn observe(&self, _: &Context) -> Result<Observed, Failure> {
        Ok(if self.there { Observed::right("there") } else { Observed::Absent })
    }

    async fn act(&self, _: &Context, _: Verb) -> Result<Acted, Failure> {
        Ok(Acted::of(Change::Created))
    }

    async fn gate(&self, _: &Context) -> Result<String, Failure> {
        Ok("proven".to_owned())
    }
}

/// So many steps in one layer, each needing three of those before it.
fn graph(steps: usize, there: bool) -> Graph {
    let id = |n: usize| StepId::of("layer", "step", &format!("{n:06}"));
    let mut graph = Graph::new();
    for n in 0..steps {
        let needs: BTreeSet<usize> =
            [n / 2, n / 3, n.saturating_sub(40)].into_iter().filter(|need| *need < n).collect();
        let decl =
            StepDecl::new(id(n), "step", "vm", "it is done").needs(needs.into_iter().map(id));
        graph.add(decl, Empty { there });
    }
    graph
}

async fn run(graph: &Graph, journals: &mut Journals) -> usize {
    let castle: CastleName = "bench".parse().expect("it is a label");
    let plan = castle_plan::up(&castle, graph.decls(), &Survey::new(), &BTreeSet::new())
        .expect("the graph has no cycle");
    let run = RunId::new("r0001");
    let start = Start {
        run: run.clone(),
        castle,
        direction: Direction::Up,
        plan: plan.hash.clone(),
        version: "0".to_owned(),
    };
    journals.start_run(Moment(0), start).expect("the journal can be written");
    let mut events = 0_usize;
    let report = Runner {
        graph,
        plan: &plan,
        journals,
        outputs: Arc::<Outputs>::default(),
        deadlines: &Deadlines::default(),
        now: Arc::new(|| Moment(0)),
        face: &mut |_: &Event| events += 1,
        told: 0,
        run,
        stop: Stop::default(),
    }
    .run()
    .await
    .expect("the journal can be written");
    assert_eq!(report.done, graph.decls().len(), "every step is done");
    report.syncs
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#[expect(clippy::print_stdout, reason = "its output is data for the bench command")]
fn case(name: &str, steps: usize, there: bool, folder: Option<&Path>) {
    let graph = graph(steps, there);
    let holder = Holder::this("bench".into(), Moment(0), "bench".into());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built");
    let began = std::time::Instant::now();
    let syncs = runtime.block_on(async {
        match folder {
            None => run(&graph, &mut Journals::in_memory().expect("memory can be written")).await,
            Some(folder) => {
                let mut root = StateRoot::open(folder, &holder).expect("the folder can be used");
                run(&graph, root.journals_mut()).await
            }
        }
    });
    let milliseconds = began.elapsed().as_secs_f64() * 1000.0;
    let line = serde_json::json!({
        "case": name, "steps": steps, "milliseconds": milliseconds, "syncs": syncs,
    });
    println!("{line}");
}

fn main() {
    case("no-op steps", 1_000, true, None);
    case("no-op steps", 10_000, true, None);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    case("journaled steps", 1_000, false, Some(&folder.path().join("state")));
}
