//! The runner against scripted steps: what is durable when, what is retried, what a stop does.

mod disk;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use castle_journal::{Journals, MemoryDisk, Start, StepState};
use castle_model::deadline::Deadlines;
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::time::Moment;
use castle_model::{
    Change, Class, Event, EventKind, Failure, Observed, RunId, StepDecl, StepId, Verb, Verdict,
};
use castle_plan::Survey;

use super::{LayerTimes, Report, RunError, Runner};
use crate::context::Context;
use crate::graph::Graph;
use crate::outputs::Outputs;
use crate::step::{Acted, Step};
use crate::stop::Stop;
use crate::wait::{Pace, pause_for};

/// What a scripted step does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Fine,
    TransientTwice,
    Denied,
    Panics,
    /// Acts for five seconds without a task.
    SlowAct,
    /// Begins a task and waits for it for ever.
    Parked,
    /// Is never proven.
    SlowGate,
    /// Its first proof meets a transient failure.
    FlakyGate,
    /// Fails transiently for ever.
    Refused,
    /// Waits for what it began, and is refused what comes next, for ever.
    WaitsThenRefused,
    /// Is told to come back in so many seconds, the first time.
    Limited(u32),
}

#[derive(Default)]
struct Shared {
    acts: BTreeMap<StepId, u32>,
    made: BTreeMap<StepId, bool>,
    gates: u32,
}

struct Scripted {
    script: Script,
    shared: Arc<Mutex<Shared>>,
    disk: MemoryDisk,
}

impl Scripted {
    fn made(&self, cx: &Context) -> bool {
        self.shared.lock().unwrap().made.get(cx.step()).copied().unwrap_or_default()
    }
}

#[async_trait]
impl Step for Scripted {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        Ok(if self.made(cx) { Observed::right("seen") } else { Observed::Absent })
    }

    async fn act(&self, cx: &Context, _: Verb) -> Result<Acted, Failure> {
        // Power fails now: what the disk holds must already say what we are about to do.
        let journal =
            String::from_utf8(self.disk.durable("layers/l.journal").unwrap_or_default()).unwrap();
        let announced = format!("\"step\":\"{}\"", cx.step());
        assert!(
            journal.lines().any(|l| l.contains("intent") && l.contains(&announced)),
            "{journal}"
        );
        let tries = {
            let mut shared = self.shared.lock().unwrap();
            let tries = shared.acts.entry(cx.step().clone()).or_default();
            *tries += 1;
            *tries
        };
        match self.script {
            Script::TransientTwice if tries < 3 => {
                return Err(Failure::new(Class::Transient, "call", "refused"));
            }
            Script::Refused => return Err(Failure::new(Class::Transient, "call", "refused")),
            Script::WaitsThenRefused => {
                cx.wait(Pace::TASK, "the VM to be made", || async {
                    pause_for(Duration::from_millis(20)).await;
                    Ok(Verdict::Ready(()))
                })
                .await?;
                return Err(Failure::new(Class::Transient, "start the VM", "500 got timeout"));
            }
            Script::Limited(seconds) if tries == 1 => {
                return Err(Failure::new(Class::Transient, "call", "429").wait(seconds));
            }
            Script::Denied => return Err(Failure::new(Class::Denied, "call", "403")),
            Script::Panics => panic!("a secret could be in here"),
            Script::SlowAct => pause_for(Duration::from_secs(5)).await,
            Script::Parked => {
                cx.task("UPID:1").await?;
                cx.wait(Pace::TASK, "the task", || async { Ok(Verdict::<()>::waiting("running")) })
                    .await?;
            }
            _ => {}
        }
        self.shared.lock().unwrap().made.insert(cx.step().clone(), true);
        Ok(Acted::of(Change::Created))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        if self.script == Script::SlowGate {
            cx.wait(Pace::GATE, "never", || async { Ok(Verdict::<()>::waiting("not yet")) })
                .await?;
        }
        if self.script == Script::FlakyGate {
            let mut shared = self.shared.lock().unwrap();
            shared.gates += 1;
            if shared.gates == 1 {
                return Err(Failure::new(Class::Transient, "delete the probe", "503"));
            }
        }
        Ok("proven".to_owned())
    }

    async fn leftover(&self, cx: &Context) -> Result<Option<String>, Failure> {
        Ok(self.made(cx).then(|| format!("thing of {}", cx.step())))
    }

    async fn undo(&self, cx: &Context) -> Result<(), Failure> {
        self.shared.lock().unwrap().made.remove(cx.step());
        Ok(())
    }
}

/// A small world: scripted steps, a memory disk, and everything that was told.
struct Bench {
    graph: Graph,
    shared: Arc<Mutex<Shared>>,
    disk: MemoryDisk,
    events: Vec<Event>,
    runs: u32,
    stop: Stop,
}

fn id(name: &str) -> StepId {
    StepId::new("l", name)
}

impl Bench {
    fn new(steps: &[(&str, &[&str], Script)]) -> Self {
        let (shared, disk) = (Arc::<Mutex<Shared>>::default(), MemoryDisk::new());
        let mut graph = Graph::new();
        for (name, needs, script) in steps {
            let decl = StepDecl::new(id(name), *name, "vm", "it is done")
                .needs(needs.iter().map(|n| id(n)))
                .undo();
            graph.add(
                decl,
                Scripted { script: *script, shared: shared.clone(), disk: disk.clone() },
            );
        }
        Self { graph, shared, disk, events: Vec::new(), runs: 0, stop: Stop::default() }
    }

    async fn run(&mut self, direction: Direction) -> Result<Report, RunError> {
        self.runs += 1;
        let castle = "blue".parse().unwrap();
        let mut journals = Journals::open(Box::new(self.disk.clone())).unwrap();
        let plan = match direction {
            Direction::Up => {
                castle_plan::up(&castle, self.graph.decls(), &Survey::new(), &BTreeSet::new())
                    .unwrap()
            }
            Direction::Down => {
                castle_plan::down(&castle, self.graph.decls(), &Survey::new()).unwrap()
            }
        };
        let run = RunId::new(format!("r{}", self.runs));
        let start = Start {
            run: run.clone(),
            castle,
            direction,
            plan: plan.hash.clone(),
            version: "0".to_owned(),
        };
        journals.start_run(Moment(0), start).map_err(RunError::Journal)?;
        let events = &mut self.events;
        Runner {
            graph: &self.graph,
            plan: &plan,
            journals: &mut journals,
            outputs: Arc::<Outputs>::default(),
            deadlines: &Deadlines::default(),
            now: Arc::new(|| Moment(0)),
            face: &mut |event: &Event| events.push(event.clone()),
            told: 0,
            run,
            stop: self.stop.clone(),
        }
        .run()
        .await
    }

    fn acts(&self, name: &str) -> u32 {
        self.shared.lock().unwrap().acts.get(&id(name)).copied().unwrap_or_default()
    }

    fn state(&self, name: &str) -> StepState {
        Journals::open(Box::new(self.disk.clone())).unwrap().records().step(&id(name)).clone()
    }
}

#[tokio::test(start_paused = true)]
async fn everything_is_done_once_and_a_second_run_acts_no_more() {
    let mut bench = Bench::new(&[("a", &[], Script::Fine), ("b", &["a"], Script::Fine)]);
    let report = bench.run(Direction::Up).await.unwrap();
    assert_eq!((report.outcome, report.done), (RunOutcome::Done, 2));
    assert!(matches!(bench.state("b"), StepState::Done { change: Change::Created, .. }));
    let report = bench.run(Direction::Up).await.unwrap();
    assert_eq!((report.outcome, bench.acts("a"), bench.acts("b")), (RunOutcome::Done, 1, 1));
    let numbers: Vec<u64> = bench.events.iter().map(|e| e.seq).collect();
    assert!(numbers.windows(2).all(|w| w[1] == w[0] + 1 || w[1] == 1), "{numbers:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failure_blocks_its_dependents_and_nothing_else() {
    let mut bench = Bench::new(&[
        ("bad", &[], Script::Denied),
        ("after", &["bad"], Script::Fine),
        ("further", &["after"], Script::Fine),
        ("other", &[], Script::Fine),
    ]);
    let report = bench.run(Direction::Up).await.unwrap();
    assert_eq!(report.outcome, RunOutcome::Failed);
    assert_eq!(bench.acts("bad"), 1, "only transient failures are tried again");
    assert_eq!(report.failures.keys().collect::<Vec<_>>(), [&id("bad")]);
    assert_eq!(report.not_run.keys().collect::<Vec<_>>(), [&id("after"), &id("further")]);
    assert_eq!(bench.acts("other"), 1);
    assert!(matches!(bench.state("bad"), StepState::Failed { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_transient_failure_is_tried_again() {
    let mut bench = Bench::new(&[("a", &[], Script::TransientTwice)]);
    let report = bench.run(Direction::Up).await.unwrap();
    assert_eq!((report.outcome, bench.acts("a")), (RunOutcome::Done, 3));
    let retries =
        bench.events.iter().filter(|e| matches!(e.kind, EventKind::StepRetrying { .. })).count();
    assert_eq!(retries, 2);
}

#[tokio::test(start_paused = true)]
async fn a_try_that_begins_at_the_deadline_does_not_hide_what_the_earlier_ones_met() {
    let mut bench = Bench::new(&[("a", &[], Script::WaitsThenRefused)]);
    let report = bench.run(Direction::Up).await.unwrap();
    let failure = &report.failures[&id("a")];
    assert_eq!(
        (failure.what.as_str(), failure.why.as_str()),
        ("start the VM", "500 got timeout"),
        "{failure:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn whatever_ends_by_its_deadline_says_what_to_do_next() {
    let again = "run the same command again to go on from here; `deadlines` in the castle file gives it more time";
    for script in
        [Script::Refused, Script::WaitsThenRefused, Script::SlowGate, Script::Limited(3600)]
    {
        let mut bench = Bench::new(&[("a", &[], script)]);
        let report = bench.run(Direction::Up).await.unwrap();
        assert_eq!(report.failures[&id("a")].hint.as_deref(), Some(again));
    }
    let mut bench = Bench::new(&[("a", &[], Script::Denied)]);
    let report = bench.run(Direction::Up).await.unwrap();
    assert_eq!(report.failures[&id("a")].hint, None, "what does not pass is not tried again");
}

#[tokio::test(start_paused = true)]
async fn who_asks_to_be_left_alone_is_left_alone_for_as_long_and_that_is_told() {
    let mut bench = Bench::new(&[("a", &[], Script::Limited(59))]);
    let began = tokio::time::Instant::now();
    let report = bench.run(Direction::Up).await.unwrap();
    assert_eq!((report.outcome, bench.acts("a")), (RunOutcome::Done, 2));
    assert_eq!(began.elapsed().as_secs(), 59);
    let told = |e: &&Event| matches!(e.kind, EventKind::StepRetrying { delay_ms: 59_000, .. });
    assert_eq!(bench.events.iter().filter(told).count(), 1);
    // Longer than the step may take: then nobody waits in vain.
    let mut bench = Bench::new(&[("a", &[], Script::Limited(3600))]);
    let began = tokio::time::Instant::now();
    let report = bench.run(Direction::Up).await.unwrap();
    assert_eq!((report.outcome, bench.acts("a")), (RunOutcome::Failed, 1));
    assert_eq!(began.elapsed().as_secs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_transient_failure_of_a_gate_is_tried_again_and_the_act_is_not() {
    let mut bench = Bench::new(&[("a", &[], Script::FlakyGate)]);
    let report = bench.run(Direction::Up).await.unwrap();
    assert_eq!((report.outcome, bench.acts("a")), (RunOutcome::Done, 1));
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_a_pause_between_tries() {
    let mut bench = Bench::new(&[("a", &[], Script::Refused)]);
    let stop = bench.stop.clone();
    let began = tokio::time::Instant::now();
    let asks = async {
        pause_for(Duration::from_mins(1)).await;
        stop.ask();
    };
    let (report, ()) = tokio::join!(bench.run(Direction::Up), asks);
    assert_eq!(report.unwrap().outcome, RunOutcome::Interrupted);
    assert!(began.elapsed() < Duration::from_millis(60_100), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_contained_and_named_without_its_words() {
    let mut bench = Bench::new(&[("a", &[], Script::Panics), ("b", &[], Script::Fine)]);
    let report = bench.run(Direction::Up).await.unwrap();
    let failure = &report.failures[&id("a")];
    assert_eq!(failure.class, Class::Bug);
    assert!(failure.what.contains("l/a"));
    assert!(!format!("{failure:?}").contains("secret"), "{failure:?}");
    assert_eq!(bench.acts("b"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_acts_end_drops_gates_and_starts_nothing() {
    let mut bench = Bench::new(&[
        ("act", &[], Script::SlowAct),
        ("gate", &[], Script::SlowGate),
        ("task", &[], Script::Parked),
        ("later", &["act"], Script::Fine),
    ]);
    let stop = bench.stop.clone();
    let began = tokio::time::Instant::now();
    let asks = async {
        pause_for(Duration::from_secs(1)).await;
        stop.ask();
    };
    let (report, ()) = tokio::join!(bench.run(Direction::Up), asks);
    assert_eq!(report.unwrap().outcome, RunOutcome::Interrupted);
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(bench.shared.lock().unwrap().made[&id("act")], "the act reached its end");
    assert_eq!(bench.acts("later"), 0);
    assert_eq!(bench.state("task").task(), Some("UPID:1"), "a later run finds the task again");
    assert!(matches!(bench.state("gate"), StepState::Intended { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_drops_everything_at_once_is_still_an_interruption() {
    let mut bench =
        Bench::new(&[("gate", &[], Script::SlowGate), ("later", &["gate"], Script::Fine)]);
    let stop = bench.stop.clone();
    let asks = async {
        pause_for(Duration::from_secs(1)).await;
        stop.ask();
    };
    let (report, ()) = tokio::join!(bench.run(Direction::Up), asks);
    let report = report.unwrap();
    assert_eq!((report.outcome, report.done), (RunOutcome::Interrupted, 0));
    assert_eq!(report.not_run.len(), 2);
    assert_eq!(bench.acts("later"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_second_stop_ends_at_once() {
    let mut bench = Bench::new(&[("act", &[], Script::SlowAct)]);
    let stop = bench.stop.clone();
    let began = tokio::time::Instant::now();
    let asks = async {
        pause_for(Duration::from_secs(1)).await;
        stop.ask();
        pause_for(Duration::from_millis(1)).await;
        stop.ask();
    };
    let (report, ()) = tokio::join!(bench.run(Direction::Up), asks);
    assert_eq!(report.unwrap().outcome, RunOutcome::Interrupted);
    assert!(began.elapsed() < Duration::from_secs(2));
    assert!(matches!(bench.state("act"), StepState::Intended { .. }), "nothing is lost either way");
}

#[tokio::test(start_paused = true)]
async fn one_fsync_serves_a_whole_turn() {
    let names: Vec<String> = (0..200).map(|n| format!("s{n:03}")).collect();
    let steps: Vec<(&str, &[&str], Script)> =
        names.iter().map(|n| (n.as_str(), &[] as &[&str], Script::Fine)).collect();
    let mut bench = Bench::new(&steps);
    let report = bench.run(Direction::Up).await.unwrap();
    assert_eq!(report.done, 200);
    assert!(report.syncs < 10, "{} fsyncs for 200 steps", report.syncs);
}

#[tokio::test(start_paused = true)]
async fn going_down_removes_what_is_there_in_reverse_and_twice_is_fine() {
    let mut bench = Bench::new(&[("a", &[], Script::Fine), ("b", &["a"], Script::Fine)]);
    bench.run(Direction::Up).await.unwrap();
    bench.events.clear();
    let report = bench.run(Direction::Down).await.unwrap();
    assert_eq!(report.outcome, RunOutcome::Done);
    let removed: Vec<&StepId> = bench
        .events
        .iter()
        .filter_map(|e| match &e.kind {
            EventKind::StepDone { step, change: Change::Removed, .. } => Some(step),
            _ => None,
        })
        .collect();
    assert_eq!(removed, [&id("b"), &id("a")]);
    assert_eq!(bench.run(Direction::Down).await.unwrap().outcome, RunOutcome::Done);
    assert!(bench.shared.lock().unwrap().made.is_empty());
}

#[test]
fn what_was_only_looked_at_ahead_is_no_part_of_a_layers_time() {
    let start = tokio::time::Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let mut times = LayerTimes::default();
    times.begin(at(0), true);
    times.rested = Some(at(1));
    times.begin(at(60), true);
    assert_eq!(times.began, Some(at(60)));
    times.rested = Some(at(70));
    times.begin(at(72), true);
    assert_eq!(times.began, Some(at(60)), "a short pause belongs to it");
    times.begin(at(500), false);
    assert_eq!(times.began, Some(at(60)), "another of its steps was at work");
    times.changed = true;
    times.begin(at(900), true);
    assert_eq!(times.began, Some(at(60)), "what it changed is its work");
}
