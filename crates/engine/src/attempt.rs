//! One step in one run, from the look to the proof, with its retries. Owns nothing; tells the runner all.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use castle_model::plan::Direction;
use castle_model::{Bug, Change, Class, Failure, Observed, PlannedStep, Verb, planted};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::context::{Context, Message};
use crate::decide::{Decision, decide};
use crate::step::{Acted, Step};
use crate::wait::{Pace, or_again, pause_for};

/// What the wrapper tells the runner on the way.
pub(crate) enum Progress {
    /// About to act; answered once that is durable.
    Intent { verb: Verb, reason: String, durable: oneshot::Sender<()> },
    /// Acted; the gate comes next.
    Acted { change: Change },
    /// A transient failure; the same thing is tried again.
    Retrying { failure: Failure, tries: u32, delay: Duration },
}

/// How one step ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Done and proven.
    Done { change: Change, proof: String, outputs: BTreeMap<String, String> },
    /// Failed for good.
    Failed(Failure),
    /// Dropped at a safe point because the run was asked to stop.
    Dropped,
}

/// Carries a step out.
pub(crate) async fn attempt(
    step: Arc<dyn Step>,
    planned: PlannedStep,
    direction: Direction,
    cx: Context,
) -> Ended {
    let result = match direction {
        Direction::Up => raise(step.as_ref(), &planned, &cx).await,
        Direction::Down => raze(step.as_ref(), &cx).await,
    };
    match result {
        Ok((acted, proof)) => Ended::Done { change: acted.change, proof, outputs: acted.outputs },
        Err(failure) => Ended::Failed(or_again(failure)),
    }
}

async fn raise(
    step: &dyn Step,
    planned: &PlannedStep,
    cx: &Context,
) -> Result<(Acted, String), Failure> {
    let decision = retried(cx, || async {
        let observed = match step.observe(cx).await {
            Err(_) if planted(Bug::UnknownActedOn) => Observed::Absent,
            observed => observed?,
        };
        match decide(cx.step(), planned.verb, observed) {
            Decision::Refuse(failure) => Err(failure),
            decision => Ok(decision),
        }
    })
    .await?;
    let (verb, reason) = match decision {
        Decision::Leave(evidence) if planted(Bug::RightActedOn) => (Verb::Update, evidence),
        Decision::Leave(evidence) => {
            intent(cx, Verb::Adopt, &evidence).await?;
            cx.phase.end_act();
            // What an earlier run gave to know is still so: it was only looked at.
            let outputs = cx.known_outputs();
            return Ok((Acted { change: Change::Unchanged, outputs }, evidence));
        }
        Decision::Act(verb, reason) => (verb, reason),
        Decision::Refuse(failure) => return Err(failure),
    };
    let act = || retried(cx, || step.act(cx, verb));
    let early = if planted(Bug::ActBeforeIntent) { Some(act().await?) } else { None };
    intent(cx, verb, &reason).await?;
    let acted = match early {
        Some(acted) => acted,
        None => act().await?,
    };
    cx.phase.end_act();
    tell(cx, Progress::Acted { change: acted.change });
    if planted(Bug::GateSkipped) {
        return Ok((acted, "it was made".to_owned()));
    }
    let proof = retried(cx, || step.gate(cx)).await?;
    Ok((acted, proof))
}

async fn raze(step: &dyn Step, cx: &Context) -> Result<(Acted, String), Failure> {
    if planted(Bug::LeftoverUnseen) {
        return Ok((Acted::of(Change::Unchanged), "nothing there".to_owned()));
    }
    let Some(what) = retried(cx, || step.leftover(cx)).await? else {
        return Ok((Acted::of(Change::Unchanged), "nothing there".to_owned()));
    };
    intent(cx, Verb::Remove, &what).await?;
    retried(cx, || step.undo(cx)).await?;
    cx.phase.end_act();
    match retried(cx, || step.leftover(cx)).await? {
        None => Ok((Acted::of(Change::Removed), format!("{what}: gone"))),
        Some(left) => {
            Err(Failure::new(Class::Conflict, format!("undo {}", cx.step()), "something is left")
                .evidence(left)
                .hint("run `castle down` again; what is left is named above"))
        }
    }
}

/// Makes the intent durable; from here on the step may not be dropped until it has a task or an outcome.
async fn intent(cx: &Context, verb: Verb, reason: &str) -> Result<(), Failure> {
    let (durable, written) = oneshot::channel();
    tell(cx, Progress::Intent { verb, reason: reason.to_owned(), durable });
    written.await.map_err(|_| {
        Failure::new(
            Class::Transient,
            format!("{verb} {}", cx.step()),
            "the run is ending; nothing was done",
        )
    })?;
    cx.phase.begin_act();
    Ok(())
}

/// Does something until it succeeds, fails for good, or the step's deadline has passed.
async fn retried<T, F, Fut>(cx: &Context, mut call: F) -> Result<T, Failure>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, Failure>>,
{
    let mut pause = Pace::RETRY.first;
    let mut tries = 0;
    let mut last = None;
    loop {
        tries += 1;
        let in_time = Instant::now() < cx.deadline();
        let failure = match within_deadline(cx, call()).await {
            Some(Ok(value)) => return Ok(value),
            Some(Err(failure)) if !failure.is_transient() && !planted(Bug::RetryOfAnything) => {
                return Err(failure);
            }
            // A try that began with no time left met nothing but that.
            Some(Err(failure)) if in_time => failure,
            // What an earlier try met says more than that the last one was cut off.
            Some(Err(failure)) => return Err(last.unwrap_or(failure)),
            None => return Err(last.unwrap_or_else(|| late(cx))),
        };
        let left = cx.deadline().saturating_duration_since(Instant::now());
        // To ask sooner than the other side allows would only be refused again.
        let asked = failure.asked_to_wait();
        if left.is_zero() || asked > left {
            return Err(failure);
        }
        let delay = pause.min(left).max(asked);
        tell(cx, Progress::Retrying { failure: failure.clone(), tries, delay });
        last = Some(failure);
        // Nothing is in flight during the pause, so a stop need not wait for it.
        cx.phase.resting(pause_for(delay)).await;
        pause = Pace::RETRY.after(pause);
    }
}

/// A little more than the step's own waits may take, so that their last reason is what is told.
const GRACE: Duration = Duration::from_secs(1);

/// What a call says, or nothing if it says nothing in time.
async fn within_deadline<T>(
    cx: &Context,
    call: impl Future<Output = Result<T, Failure>>,
) -> Option<Result<T, Failure>> {
    timeout_at(cx.deadline() + GRACE, call).await.ok()
}

fn late(cx: &Context) -> Failure {
    Failure::new(Class::Transient, format!("finish {}", cx.step()), "its deadline has passed")
}

fn tell(cx: &Context, progress: Progress) {
    cx.send(Message::Progress { step: cx.step().clone(), progress });
}
