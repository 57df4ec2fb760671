//! A look at the whole world before the plan: every step that can be seen is observed, none acts.

use std::sync::Arc;

use castle_journal::Records;
use castle_model::deadline::Deadlines;
use castle_model::{Failure, Observed, StepDecl, StepId, UndoKind};
use castle_plan::{Look, Survey};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::context::Context;
use crate::graph::Graph;
use crate::outputs::Outputs;
use crate::scheduler::Scheduler;
use crate::step::Step;

/// What a survey needs.
pub struct Surveyor<'a> {
    /// The steps.
    pub graph: &'a Graph,
    /// What the journals say.
    pub records: &'a Records,
    /// Where steps put what they find out.
    pub outputs: Arc<Outputs>,
    /// How long each look may take.
    pub deadlines: &'a Deadlines,
}

/// The question put to a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Question {
    Observe,
    Leftover,
}

impl Surveyor<'_> {
    /// Looks at every step whose needs are all proven, as far as that goes.
    pub async fn look(&self) -> Survey {
        self.ask(self.graph.decls(), Question::Observe).await
    }

    /// Looks at what there is to be removed. Only the steps that are declared `always` are observed before,
    /// for what they give (credentials); everything else may be dead, half made or unknown to our state.
    pub async fn look_for_leftovers(&self) -> Survey {
        let (always, rest): (Vec<StepDecl>, Vec<StepDecl>) =
            self.graph.decls().iter().cloned().partition(|d| d.always);
        let mut survey = self.ask(&always, Question::Observe).await;
        let explicit: Vec<StepDecl> = rest
            .into_iter()
            .filter(|d| d.undo == UndoKind::Explicit)
            .map(|d| StepDecl { needs: Vec::new(), ..d })
            .collect();
        survey.extend(self.ask(&explicit, Question::Leftover).await);
        survey
    }

    async fn ask(&self, decls: &[StepDecl], question: Question) -> Survey {
        let mut scheduler = Scheduler::new(decls);
        let mut survey = Survey::new();
        let mut tasks = JoinSet::new();
        let (mailbox, _unread) = mpsc::unbounded_channel();
        loop {
            for id in scheduler.start() {
                let Some(step) = self.graph.step(&id) else { continue };
                let deadline = decls.iter().find(|d| d.id == id).map_or("", |d| &d.deadline);
                let cx = Context {
                    step: id.clone(),
                    state: self.records.step(&id).clone(),
                    incarnation: self.records.incarnation.clone(),
                    outputs: self.outputs.clone(),
                    deadline: Instant::now() + self.deadlines.get(deadline),
                    mailbox: mailbox.clone(),
                    phase: Arc::default(),
                };
                tasks.spawn(async move { (id, look_at(step, &cx, question).await) });
            }
            match tasks.join_next().await {
                None => return survey,
                Some(Err(_)) => {}
                Some(Ok((id, look))) => {
                    if matches!(look, Look::Seen(Observed::Right { .. }) | Look::Leftover(_)) {
                        scheduler.done(&id);
                    } else {
                        for blocked in scheduler.failed(&id) {
                            survey.entry(blocked).or_insert_with(|| Look::After(id.clone()));
                        }
                    }
                    survey.insert(id, look);
                }
            }
        }
    }
}

async fn look_at(step: Arc<dyn Step>, cx: &Context, question: Question) -> Look {
    let late = |id: &StepId| {
        Look::Failed(Failure::new(
            castle_model::Class::Transient,
            format!("look at {id}"),
            "no answer in time",
        ))
    };
    match question {
        Question::Observe => match timeout_at(cx.deadline(), step.observe(cx)).await {
            Ok(Ok(observed)) => Look::Seen(observed),
            Ok(Err(failure)) => Look::Failed(failure),
            Err(_) => late(cx.step()),
        },
        Question::Leftover => match timeout_at(cx.deadline(), step.leftover(cx)).await {
            Ok(Ok(left)) => Look::Leftover(left),
            Ok(Err(failure)) => Look::Failed(failure),
            Err(_) => late(cx.step()),
        },
    }
}
