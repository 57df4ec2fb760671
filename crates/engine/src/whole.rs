//! A run from first look to report with nobody to ask: what repeats, benchmarks and tests do.

use std::collections::BTreeSet;
use std::sync::Arc;

use castle_journal::{Journals, Records, Start, StateError, StepState};
use castle_model::deadline::Deadlines;
use castle_model::plan::Direction;
use castle_model::time::Moment;
use castle_model::{CastleName, Event, Failure, Plan, RunId, StepDecl, StepId, UndoKind};
use castle_plan::{Look, OrderError};

use crate::graph::Graph;
use crate::outputs::Outputs;
use crate::runner::{Report, RunError, Runner};
use crate::stop::Stop;
use crate::survey::Surveyor;

/// What a whole run is made of.
pub struct Whole<'a> {
    /// The castle's name.
    pub castle: &'a CastleName,
    /// The steps.
    pub graph: &'a Graph,
    /// Where it is written down.
    pub journals: &'a mut Journals,
    /// How long each kind of step may take.
    pub deadlines: &'a Deadlines,
    /// The time of day.
    pub now: Arc<dyn Fn() -> Moment + Send + Sync>,
    /// Who is told.
    pub face: &'a mut (dyn FnMut(&Event) + Send),
    /// Which run this is.
    pub run: RunId,
    /// How it is asked to end.
    pub stop: Stop,
}

/// Why a whole run came to no report.
#[derive(Debug, thiserror::Error)]
pub enum WholeError {
    /// The steps need each other in a circle, or one that is not there.
    #[error("the steps do not fit together")]
    Order(#[source] OrderError),
    /// Without what every removal needs nothing can be removed, and not even be looked for.
    #[error("nothing was removed: without {0} castle can not look for what is there")]
    Blind(StepId, Box<Failure>),
    /// Nothing is destroyed by a plan that is known not to come to its end.
    #[error("nothing was done: something would be destroyed, though {0} is refused")]
    Held(StepId, Box<Failure>),
    /// The journal did not take the run's beginning.
    #[error("the run could not be begun")]
    Start(#[source] StateError),
    /// The run ended before its steps did.
    #[error("the run was broken off")]
    Run(#[source] RunError),
}

impl Whole<'_> {
    /// Looks, plans, and carries the plan out, whatever it removes.
    ///
    /// # Errors
    /// If there is no plan, or a journal can not be written.
    pub async fn go(self, direction: Direction) -> Result<(Plan, Report), WholeError> {
        let outputs = Arc::<Outputs>::default();
        let surveyor = Surveyor {
            graph: self.graph,
            records: self.journals.records(),
            outputs: outputs.clone(),
            deadlines: self.deadlines,
        };
        let decls = self.graph.decls();
        let plan = match direction {
            Direction::Up => {
                let known = known(self.journals.records());
                castle_plan::up(self.castle, decls, &surveyor.look().await, &known)
            }
            Direction::Down => {
                let survey = surveyor.look_for_leftovers().await;
                // What was not read may be needed by nothing that is removed: then all of that could be looked at.
                let looked =
                    |decl: &&StepDecl| matches!(survey.get(&decl.id), Some(Look::Leftover(_)));
                let seen = decls
                    .iter()
                    .filter(|decl| decl.undo == UndoKind::Explicit)
                    .all(|decl| looked(&decl));
                for decl in decls.iter().filter(|decl| decl.always && !seen) {
                    if let Some(Look::Failed(failure)) = survey.get(&decl.id) {
                        return Err(WholeError::Blind(decl.id.clone(), Box::new(failure.clone())));
                    }
                }
                castle_plan::down(self.castle, decls, &survey)
            }
        }
        .map_err(WholeError::Order)?;
        if plan.is_held()
            && let Some(step) = plan.refused().next()
            && let Some(failure) = step.refused.clone()
        {
            return Err(WholeError::Held(step.decl.id.clone(), failure));
        }
        let start = Start {
            run: self.run.clone(),
            castle: self.castle.clone(),
            direction,
            plan: plan.hash.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        self.journals.start_run((self.now)(), start).map_err(WholeError::Start)?;
        let runner = Runner {
            graph: self.graph,
            plan: &plan,
            journals: self.journals,
            outputs,
            deadlines: self.deadlines,
            now: self.now,
            face: self.face,
            told: 0,
            run: self.run,
            stop: self.stop,
        };
        let report = runner.run().await.map_err(WholeError::Run)?;
        Ok((plan, report))
    }
}

/// The steps whose outcome the journal holds.
fn known(records: &Records) -> BTreeSet<StepId> {
    let done = |state: &StepState| matches!(state, StepState::Done { .. });
    records.steps.iter().filter(|(_, state)| done(state)).map(|(id, _)| id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use castle_journal::MemoryDisk;
    use castle_model::{EventKind, Observed};

    use super::*;
    use crate::context::Context;
    use crate::step::Step;

    /// Is as wanted, and has something to say; or is still to be made, and says it each time it is looked at.
    struct Telling(Observed);

    #[async_trait]
    impl Step for Telling {
        async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
            cx.notice(format!("{} has little room", cx.step()));
            Ok(self.0.clone())
        }

        async fn gate(&self, _cx: &Context) -> Result<String, Failure> {
            Ok("proven".to_owned())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_as_it_is_tells_what_it_said_when_it_was_looked_at() {
        let mut graph = Graph::new();
        for (name, seen) in [("right", Observed::right("seen")), ("absent", Observed::Absent)] {
            let decl = StepDecl::new(StepId::new("l", name), name, "vm", "it is done")
                .only("it only looks");
            graph.add(decl, Telling(seen));
        }
        let mut journals = Journals::open(Box::new(MemoryDisk::new())).unwrap();
        let mut told = Vec::new();
        let whole = Whole {
            castle: &"blue".parse().unwrap(),
            graph: &graph,
            journals: &mut journals,
            deadlines: &Deadlines::default(),
            now: Arc::new(|| Moment(0)),
            face: &mut |event: &Event| {
                if let EventKind::Notice { text, .. } = &event.kind {
                    told.push(text.clone());
                }
            },
            run: RunId::new("r1"),
            stop: Stop::default(),
        };
        whole.go(Direction::Up).await.unwrap();
        told.sort();
        assert_eq!(told, ["l/absent has little room", "l/right has little room"], "each once");
    }
}
