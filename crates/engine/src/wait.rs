//! The one place where castle waits: ask, judge, tell when the reason changes, ask again, until a deadline.

use std::future::Future;
use std::time::Duration;

use castle_model::time::length;
use castle_model::{Class, Failure, Verdict};
use tokio::time::{Instant, timeout_at};

/// How often a question is put again: the pause grows from `first` by half each time, up to `most`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The pause after the first answer.
    pub first: Duration,
    /// The longest pause.
    pub most: Duration,
}

impl Pace {
    /// For tasks of a server that has no way to tell us (Proxmox).
    pub const TASK: Self = Self::new(50, 500);
    /// For conditions of a system that is coming up.
    pub const GATE: Self = Self::new(200, 1000);
    /// For calls that failed transiently and are made again.
    pub const RETRY: Self = Self::new(250, 10_000);

    const fn new(first: u64, most: u64) -> Self {
        Self { first: Duration::from_millis(first), most: Duration::from_millis(most) }
    }

    /// The pause that follows a pause of this length.
    #[must_use]
    pub fn after(self, pause: Duration) -> Duration {
        (pause + pause / 2).min(self.most)
    }
}

/// Asks until the answer is ready, and reports every change of the reason.
///
/// A transient failure of the question counts as a reason to wait; any other ends the wait.
///
/// # Errors
/// The deadline passed, with the last reason as evidence, or the answer can never become ready.
pub async fn until<T, F, Fut>(
    what: &str,
    pace: Pace,
    deadline: Instant,
    mut changed: impl FnMut(&str) + Send,
    mut probe: F,
) -> Result<T, Failure>
where
    F: FnMut() -> Fut + Send,
    Fut: Future<Output = Result<Verdict<T>, Failure>> + Send,
    T: Send,
{
    let began = Instant::now();
    let mut last: Option<String> = None;
    let mut pause = pace.first;
    loop {
        let answer = match timeout_at(deadline, probe()).await {
            Ok(answer) => answer,
            Err(_) => Ok(Verdict::Waiting(last.clone().unwrap_or_else(|| "no answer yet".into()))),
        };
        let reason = match answer {
            Ok(Verdict::Ready(value)) => return Ok(value),
            Ok(Verdict::Waiting(reason)) => reason,
            Err(failure) if failure.is_transient() => format!("{}: {}", failure.what, failure.why),
            Ok(Verdict::Failed(failure)) | Err(failure) => return Err(failure),
        };
        if last.as_deref() != Some(&reason) {
            changed(&reason);
            last = Some(reason);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(too_late(what, began.elapsed(), last.unwrap_or_default()));
        }
        pause_for(pause.min(left)).await;
        pause = pace.after(pause);
    }
}

/// Lets time pass between two questions.
#[expect(clippy::disallowed_methods, reason = "this is the one place that waits")]
pub(crate) async fn pause_for(pause: Duration) {
    tokio::time::sleep(pause).await;
}

fn too_late(what: &str, waited: Duration, last: String) -> Failure {
    let waited = length(u64::try_from(waited.as_millis()).unwrap_or(u64::MAX));
    Failure::new(Class::Transient, format!("wait for {what}"), format!("not so after {waited}"))
        .evidence(last)
        .hint("run the same command again to go on from here; `deadlines` in the castle file gives it more time")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deadline(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn tells_a_reason_only_when_it_changes() {
        let mut told = Vec::new();
        let mut answers = vec!["b", "a", "a", "a"];
        let got = until(
            "x",
            Pace::GATE,
            deadline(60),
            |r| told.push(r.to_owned()),
            || {
                let answer = answers.pop();
                async move { Ok(answer.map_or(Verdict::Ready(7), Verdict::waiting)) }
            },
        )
        .await;
        assert_eq!(got, Ok(7));
        assert_eq!(told, ["a", "b"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_names_what_and_the_last_reason() {
        let began = Instant::now();
        let failure = until::<(), _, _>(
            "the VIP",
            Pace::GATE,
            deadline(30),
            |_| (),
            || async { Ok(Verdict::waiting("connection refused")) },
        )
        .await
        .unwrap_err();
        assert!(began.elapsed() <= Duration::from_secs(30));
        assert_eq!(failure.what, "wait for the VIP");
        assert_eq!(failure.evidence.as_deref(), Some("connection refused"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_hangs_does_not_outlive_the_deadline() {
        let began = Instant::now();
        let failure = until::<(), _, _>(
            "x",
            Pace::GATE,
            deadline(5),
            |_| (),
            std::future::pending::<Result<Verdict<()>, Failure>>,
        )
        .await
        .unwrap_err();
        assert_eq!(began.elapsed(), Duration::from_secs(5));
        assert_eq!(failure.evidence.as_deref(), Some("no answer yet"));
    }

    #[tokio::test(start_paused = true)]
    async fn only_transient_failures_are_waited_out() {
        let mut tries = 0;
        let failure = until::<(), _, _>(
            "x",
            Pace::GATE,
            deadline(60),
            |_| (),
            || {
                tries += 1;
                let class = if tries < 3 { Class::Transient } else { Class::Denied };
                async move { Err(Failure::new(class, "call", "no")) }
            },
        )
        .await
        .unwrap_err();
        assert_eq!((tries, failure.class), (3, Class::Denied));
    }
}
