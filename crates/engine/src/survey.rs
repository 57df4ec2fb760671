//! A look at the whole world before the plan: every step that can be seen is observed, none acts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use castle_journal::Records;
use castle_model::deadline::Deadlines;
use castle_model::{Failure, Observed, StepDecl, StepId, UndoKind};
use castle_plan::{Look, Survey};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::context::{Context, Message};
use crate::graph::Graph;
use crate::outputs::Outputs;
use crate::scheduler::Scheduler;
use crate::step::Step;
use crate::wait::{answered, mute, or_again};

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
#[derive(Clone, Copy)]
enum Question<'a> {
    Observe,
    /// The same, where what these steps stand on may be other than wanted.
    Further(&'a BTreeSet<StepId>),
    Leftover,
}

impl Question<'_> {
    /// Whether what stands behind a step may be asked too.
    fn goes_on(self, id: &StepId, look: &Look) -> bool {
        match self {
            // What does not answer, behind something that is to be mended, is often silent for that reason alone.
            Self::Further(known) => passable(id, look, known) || is_silent(look),
            _ => matches!(look, Look::Seen(Observed::Right { .. }) | Look::Leftover(_)),
        }
    }
}

/// How long a look may take that nobody relies on.
const GLANCE: Duration = Duration::from_secs(10);

/// Whether nobody knows how a step is, at least for now.
fn is_silent(look: &Look) -> bool {
    match look {
        Look::Failed(failure) => failure.is_transient(),
        look => matches!(look, Look::Seen(Observed::Unknown { .. })),
    }
}

/// Whether a step answered, so that what stands behind it may be looked at, though nothing may rely on that.
fn passable(id: &StepId, look: &Look, known: &BTreeSet<StepId>) -> bool {
    match look {
        Look::Seen(Observed::Right { .. }) => true,
        Look::Seen(Observed::Wrong { .. } | Observed::Absent | Observed::Unused { .. }) => {
            known.contains(id)
        }
        _ => false,
    }
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

    /// Looks at what stood behind something that is not as wanted, for a plan that wants to name all differences at once.
    /// Nothing is proven by it, so no run may rely on it: what comes after a change is looked at once more, then.
    ///
    /// Only where what was not as wanted answered, and a journal of ours knows that the step was done: of the rest nobody
    /// knows whether it can be looked at. What can not is told with the step that it stands behind.
    pub async fn look_further(&self, survey: &Survey, known: &BTreeSet<StepId>) -> Survey {
        let mut further = Survey::new();
        let waits = |id: &StepId| matches!(survey.get(id), Some(Look::After(_)));
        let behind = self.graph.decls().iter().filter(|decl| waits(&decl.id));
        let mut open: Vec<&StepDecl> = behind.filter(|decl| known.contains(&decl.id)).collect();
        // One is let go at a time, since others may stand behind it.
        while !open.is_empty() {
            let stuck = open.iter().find_map(|decl| {
                let need = decl.needs.iter().find(|need| {
                    let seen = survey.get(*need).is_some_and(|look| passable(need, look, known));
                    !seen && !open.iter().any(|other| other.id == **need)
                })?;
                Some((decl.id.clone(), need.clone()))
            });
            let Some((id, need)) = stuck else { break };
            let root = match further.get(&need) {
                Some(Look::After(root)) => root.clone(),
                _ => need,
            };
            open.retain(|decl| decl.id != id);
            further.insert(id, Look::After(root));
        }
        let decls: Vec<StepDecl> = open.into_iter().cloned().collect();
        further.extend(self.ask(&decls, Question::Further(known)).await);
        further
    }

    async fn ask(&self, decls: &[StepDecl], question: Question<'_>) -> Survey {
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
                    deadline: Instant::now() + self.patience(decl, question),
                    mailbox: mailbox.clone(),
                    phase: Arc::default(),
                };
                let (patient, leftover) = (decl.always, matches!(question, Question::Leftover));
                let task = tasks.spawn(async move { look_at(step, &cx, leftover, patient).await });
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
            if question.goes_on(&id, &look) {
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

    fn patience(&self, decl: &StepDecl, question: Question<'_>) -> Duration {
        let patience = self.deadlines.get(&decl.deadline);
        match question {
            Question::Further(_) => patience.min(GLANCE),
            _ => patience,
        }
    }
}

/// Looks at one step. What everything else hangs on (`patient`) is asked again while it fails transiently.
async fn look_at(step: Arc<dyn Step>, cx: &Context, leftover: bool, patient: bool) -> Look {
    let what = format!("look at {}", cx.step());
    let ask = || async {
        cx.outputs().waiting(cx.step(), None);
        if leftover {
            step.leftover(cx).await.map(Look::Leftover)
        } else {
            step.observe(cx).await.map(Look::Seen)
        }
    };
    let look = if patient {
        let again = |failure: &Failure, delay: Duration| {
            if failure.asked_to_wait() > Duration::ZERO {
                let why = format!("{failure} (asked again in {} s)", delay.as_secs());
                cx.outputs().waiting(cx.step(), Some(why));
            }
        };
        answered(&what, cx.deadline(), again, ask).await
    } else {
        let look = timeout_at(cx.deadline(), ask()).await;
        look.unwrap_or_else(|_| Err(mute(&what))).map_err(or_again)
    };
    look.unwrap_or_else(Look::Failed)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;
    use castle_model::{Class, Verb};

    use super::*;
    use crate::step::Acted;
    use crate::wait::pause_for;

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
        let decl = StepDecl::new(id.clone(), "secrets", "read", "it is done")
            .always()
            .nothing_to_undo("reads");
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

    /// Sees this each time, and counts how often it was looked at.
    struct Sees(Result<Observed, Failure>, Arc<AtomicU32>);

    #[async_trait]
    impl Step for Sees {
        async fn observe(&self, _: &Context) -> Result<Observed, Failure> {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.clone()
        }

        async fn gate(&self, _: &Context) -> Result<String, Failure> {
            Ok("proven".to_owned())
        }
    }

    /// Looks at steps (name, what it needs, what it sees), then further; gives the further looks and how many looks there were.
    async fn further(
        steps: &[(&str, &[&str], Result<Observed, Failure>)],
        known: &[&str],
    ) -> (Vec<String>, u32) {
        let id = |name: &&str| StepId::new("l", name);
        let looks = Arc::new(AtomicU32::new(0));
        let mut graph = Graph::new();
        for (name, needs, seen) in steps {
            let decl = StepDecl::new(id(name), *name, "vm", "it is done")
                .needs(needs.iter().map(id))
                .undo();
            graph.add(decl, Sees(seen.clone(), looks.clone()));
        }
        let (records, deadlines) = (Records::default(), Deadlines::default());
        let surveyor = Surveyor {
            graph: &graph,
            records: &records,
            outputs: Arc::default(),
            deadlines: &deadlines,
        };
        let survey = surveyor.look().await;
        let known = known.iter().map(id).collect();
        let told = surveyor.look_further(&survey, &known).await.into_iter().map(|(id, look)| {
            let words = match look {
                Look::Seen(Observed::Wrong { why, .. }) => why,
                Look::Seen(seen) => format!("{seen:?}"),
                Look::After(need) => format!("after {need}"),
                Look::Failed(failure) => failure.to_string(),
                other @ Look::Leftover(_) => format!("{other:?}"),
            };
            format!("{id}: {words}")
        });
        (told.collect(), looks.load(Ordering::Relaxed))
    }

    #[tokio::test(start_paused = true)]
    async fn behind_what_is_to_be_mended_is_looked_at_too() {
        let wrong = |why: &str| Ok(Observed::wrong(why));
        let gone = Failure::new(Class::Transient, "look", "no answer");
        let steps: Vec<(&str, &[&str], _)> = vec![
            ("vm", &[], wrong("memory")),
            ("pool", &["vm"], wrong("addresses")),
            ("flux", &["pool"], wrong("suspended")),
            ("mute", &["vm"], Err(gone.clone())),
            ("on-mute", &["mute"], wrong("seen all the same")),
            ("new", &["vm"], wrong("never made")),
            ("newer", &["new", "vm"], wrong("stands on it")),
            ("dead", &[], Err(gone)),
            ("on-dead", &["dead", "vm"], wrong("nobody knows")),
            ("above", &["on-dead"], wrong("nobody knows")),
        ];
        let known = ["vm", "pool", "flux", "mute", "on-mute", "newer", "dead", "on-dead", "above"];
        let (told, looks) = further(&steps, &known).await;
        let expected = [
            "l/above: after l/dead",
            "l/flux: suspended",
            "l/mute: look: no answer",
            "l/newer: after l/new",
            "l/on-dead: after l/dead",
            "l/on-mute: seen all the same",
            "l/pool: addresses",
        ];
        assert_eq!((told.as_slice(), looks), (expected.map(str::to_owned).as_slice(), 6));
    }

    #[tokio::test(start_paused = true)]
    async fn where_all_is_as_wanted_nothing_is_asked_twice() {
        let right = || Ok(Observed::right("seen"));
        let steps: Vec<(&str, &[&str], _)> = vec![("vm", &[], right()), ("pool", &["vm"], right())];
        assert_eq!(further(&steps, &["vm", "pool"]).await, (Vec::new(), 2));
    }
}
