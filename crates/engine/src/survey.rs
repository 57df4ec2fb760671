//! A look at the whole world before the plan: every step that can be seen is observed, none acts.

use std::collections::BTreeMap;
use std::sync::Arc;

use castle_journal::Records;
use castle_model::deadline::Deadlines;
use castle_model::{Class, Failure, Observed, StepDecl, StepId, UndoKind};
use castle_plan::{Look, Survey};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::context::{Context, Message};
use crate::graph::Graph;
use crate::outputs::Outputs;
use crate::scheduler::Scheduler;
use crate::step::Step;
use crate::wait::{Pace, or_again, pause_for};

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
        let by_id: BTreeMap<&StepId, &StepDecl> = decls.iter().map(|d| (&d.id, d)).collect();
        let mut survey = Survey::new();
        let mut tasks = JoinSet::new();
        let mut names = BTreeMap::new();
        let (mailbox, mut heard) = mpsc::unbounded_channel();
        loop {
            for id in scheduler.start() {
                let (Some(step), Some(decl)) = (self.graph.step(&id), by_id.get(&id)) else {
                    continue;
                };
                let cx = Context {
                    step: id.clone(),
                    state: self.records.step(&id).clone(),
                    incarnation: self.records.incarnation.clone(),
                    outputs: self.outputs.clone(),
                    deadline: Instant::now() + self.deadlines.get(&decl.deadline),
                    mailbox: mailbox.clone(),
                    phase: Arc::default(),
                };
                let patient = decl.always;
                let task = tasks.spawn(async move { look_at(step, &cx, question, patient).await });
                names.insert(task.id(), id);
            }
            let (task, look) = match tasks.join_next_with_id().await {
                None => break,
                Some(Ok((task, look))) => (task, look),
                Some(Err(error)) => {
                    let why = "the step panicked while it was looking";
                    (error.id(), Look::Failed(Failure::bug("look at the world", why)))
                }
            };
            let Some(id) = names.remove(&task) else { continue };
            if matches!(look, Look::Seen(Observed::Right { .. }) | Look::Leftover(_)) {
                scheduler.done(&id);
            } else {
                for blocked in scheduler.failed(&id) {
                    survey.entry(blocked).or_insert_with(|| Look::After(id.clone()));
                }
            }
            survey.insert(id, look);
        }
        // What is left as it is will not be asked again in this run, so what it said is told then.
        while let Ok(message) = heard.try_recv() {
            if let Message::Notice { step, text } = message {
                self.outputs.note(step, text);
            }
        }
        survey
    }
}

/// Looks at one step. What everything else hangs on (`patient`) is asked again while it fails transiently.
async fn look_at(step: Arc<dyn Step>, cx: &Context, question: Question, patient: bool) -> Look {
    let mut pause = Pace::RETRY.first;
    loop {
        let look = match question {
            Question::Observe => match timeout_at(cx.deadline(), step.observe(cx)).await {
                Ok(Ok(observed)) => Look::Seen(observed),
                Ok(Err(failure)) => Look::Failed(or_again(failure)),
                Err(_) => Look::Failed(or_again(late(cx.step()))),
            },
            Question::Leftover => match timeout_at(cx.deadline(), step.leftover(cx)).await {
                Ok(Ok(left)) => Look::Leftover(left),
                Ok(Err(failure)) => Look::Failed(or_again(failure)),
                Err(_) => Look::Failed(or_again(late(cx.step()))),
            },
        };
        let Look::Failed(failure) = &look else { return look };
        let delay = pause.max(failure.asked_to_wait());
        if !(patient && failure.is_transient() && Instant::now() + delay < cx.deadline()) {
            return look;
        }
        if delay > pause {
            cx.outputs().waiting(
                cx.step(),
                Some(format!("{failure} (asked again in {} s)", delay.as_secs())),
            );
        }
        pause_for(delay).await;
        cx.outputs().waiting(cx.step(), None);
        pause = Pace::RETRY.after(pause);
    }
}

fn late(step: &StepId) -> Failure {
    Failure::new(Class::Transient, format!("look at {step}"), "no answer in time")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use async_trait::async_trait;
    use castle_model::Verb;

    use super::*;
    use crate::step::Acted;

    /// Is told to come back in a minute, the first time it looks.
    struct Limited(AtomicU32);

    #[async_trait]
    impl Step for Limited {
        async fn observe(&self, _: &Context) -> Result<Observed, Failure> {
            if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
                return Err(Failure::new(Class::Transient, "read secrets", "429").wait(59));
            }
            Ok(Observed::right("seen"))
        }

        async fn act(&self, _: &Context, _: Verb) -> Result<Acted, Failure> {
            Err(Failure::bug("act", "a look never acts"))
        }

        async fn gate(&self, _: &Context) -> Result<String, Failure> {
            Ok("proven".to_owned())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_is_asked_to_wait_waits_so_long_and_says_why() {
        let mut graph = Graph::new();
        let id = StepId::new("secrets", "read");
        let decl = StepDecl::new(id.clone(), "secrets", "read").always().nothing_to_undo("reads");
        graph.add(decl, Limited(AtomicU32::new(0)));
        let outputs = Arc::<Outputs>::default();
        let (records, deadlines) = (Records::default(), Deadlines::default());
        let surveyor = Surveyor {
            graph: &graph,
            records: &records,
            outputs: outputs.clone(),
            deadlines: &deadlines,
        };
        let began = Instant::now();
        let asks = async {
            pause_for(Duration::from_secs(5)).await;
            outputs.waits()
        };
        let (survey, waits) = tokio::join!(surveyor.look(), asks);
        assert!(matches!(survey[&id], Look::Seen(Observed::Right { .. })));
        assert_eq!(began.elapsed().as_secs(), 59);
        assert_eq!(waits, ["read secrets: 429 (asked again in 59 s)"]);
        assert!(outputs.waits().is_empty());
    }
}
