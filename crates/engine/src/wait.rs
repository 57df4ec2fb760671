//! The one place where castle waits: ask, judge, tell when the reason changes, ask again, until a deadline.

use std::future::Future;
use std::time::Duration;

use castle_model::time::length;
use castle_model::{Class, Failure, Verdict};
use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};
use tokio::time::{Instant, timeout_at};

/// How often a question is put again: the pause grows from `first` by a part of itself each time, up to `most`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The pause after the first answer.
    pub first: Duration,
    /// The longest pause.
    pub most: Duration,
    /// Which part of itself it grows by: 2 is half of it. What has been waited for so long is asked for again after
    /// about that part of the time, so the answer is late by no more than it.
    pub part: u32,
}

impl Pace {
    /// For tasks of a server that has no way to tell us (Proxmox).
    pub const TASK: Self = Self::new(50, 500, 2);
    /// For such tasks that are over in a second or two, and that the next one waits for.
    pub const BRIEF_TASK: Self = Self::new(10, 500, 50);
    /// For conditions of a system that is coming up.
    pub const GATE: Self = Self::new(200, 1000, 2);
    /// For conditions of which a system tells when they change: a safety net, should it fall silent.
    pub const WATCHED: Self = Self::new(200, 2000, 2);
    /// For calls that failed transiently and are made again.
    pub const RETRY: Self = Self::new(250, 10_000, 2);

    /// A pace from its shortest and longest pause in milliseconds, and the part of itself that it grows by.
    #[must_use]
    pub const fn new(first: u64, most: u64, part: u32) -> Self {
        Self { first: Duration::from_millis(first), most: Duration::from_millis(most), part }
    }

    /// The pause that follows a pause of this length.
    #[must_use]
    pub fn after(self, pause: Duration) -> Duration {
        (pause + pause / self.part).min(self.most)
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
    changed: impl FnMut(&str) + Send,
    probe: F,
) -> Result<T, Failure>
where
    F: FnMut() -> Fut + Send,
    Fut: Future<Output = Result<Verdict<T>, Failure>> + Send,
    T: Send,
{
    until_told(what, pace, deadline, changed, || stream::pending().boxed(), probe).await
}

/// Asks as [`until`] does, and at once whenever somebody tells that something has changed.
///
/// `watch` opens the stream of such news; it is opened again, before the next question, whenever it has ended. The
/// pace is what holds while it is silent or cannot be opened, so news make it quicker and are never relied on.
///
/// # Errors
/// As [`until`].
pub async fn until_told<'a, T, F, Fut>(
    what: &str,
    pace: Pace,
    deadline: Instant,
    mut changed: impl FnMut(&str) + Send,
    mut watch: impl FnMut() -> BoxStream<'a, ()> + Send,
    mut probe: F,
) -> Result<T, Failure>
where
    F: FnMut() -> Fut + Send,
    Fut: Future<Output = Result<Verdict<T>, Failure>> + Send,
    T: Send,
{
    let began = Instant::now();
    let mut last: Option<(String, Instant)> = None;
    let mut pause = pace.first;
    let mut news: Option<BoxStream<'a, ()>> = None;
    loop {
        // A watch begins with what is there now, so nothing between the question and its opening is missed.
        let told = news.get_or_insert_with(&mut watch);
        let answer = match timeout_at(deadline, probe()).await {
            Ok(answer) => answer,
            Err(_) => Ok(Verdict::Waiting(match &last {
                Some((reason, _)) => reason.clone(),
                None => "no answer yet".to_owned(),
            })),
        };
        let reason = match answer {
            Ok(Verdict::Ready(value)) => return Ok(value),
            Ok(Verdict::Waiting(reason)) => reason,
            Err(failure) if failure.is_transient() => format!("{}: {}", failure.what, failure.why),
            Ok(Verdict::Failed(failure)) | Err(failure) => return Err(failure),
        };
        if last.as_ref().is_none_or(|(before, _)| *before != reason) {
            changed(&reason);
            let since = if last.is_none() { began } else { Instant::now() };
            last = Some((reason, since));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(too_late(what, began.elapsed(), last));
        }
        match rest(told, pause.min(left)).await {
            Rest::Told => {}
            Rest::Over => pause = pace.after(pause),
            Rest::Deaf => {
                news = None;
                pause = pace.after(pause);
            }
        }
    }
}

/// Asks for something that changes nothing, and again while it fails transiently: as long as there is time, and not before
/// the other side allows. `again` is told of each such failure, and how long nobody asks now.
///
/// # Errors
/// What the last question met, with what to do next.
pub async fn answered<T, F, Fut>(
    what: &str,
    deadline: Instant,
    mut again: impl FnMut(&Failure, Duration) + Send,
    mut ask: F,
) -> Result<T, Failure>
where
    F: FnMut() -> Fut + Send,
    Fut: Future<Output = Result<T, Failure>> + Send,
    T: Send,
{
    let mut pause = Pace::RETRY.first;
    let mut last = None;
    loop {
        let failure = match timeout_at(deadline, ask()).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(failure)) => failure,
            // What an earlier question met says more than that this one was cut off.
            Err(_) => return Err(or_again(last.unwrap_or_else(|| mute(what)))),
        };
        let delay = pause.max(failure.asked_to_wait());
        if !failure.is_transient() || Instant::now() + delay >= deadline {
            return Err(or_again(failure));
        }
        again(&failure, delay);
        last = Some(failure);
        pause_for(delay).await;
        pause = Pace::RETRY.after(pause);
    }
}

/// A question that nobody answers.
pub(crate) fn mute(what: &str) -> Failure {
    Failure::new(Class::Transient, what, "no answer in time")
}

/// How a pause ended.
enum Rest {
    /// Somebody told that something has changed.
    Told,
    /// It lasted its time.
    Over,
    /// It lasted its time, and there is nobody left to tell.
    Deaf,
}

/// Lets time pass until something changes, or until the pause is over.
async fn rest(news: &mut BoxStream<'_, ()>, pause: Duration) -> Rest {
    let over = pause_for(pause);
    tokio::pin!(over);
    tokio::select! {
        biased;
        told = news.next() => {
            if told.is_some() {
                // What was told in the meantime is one piece of news.
                while news.next().now_or_never().flatten().is_some() {}
                return Rest::Told;
            }
            over.await;
            Rest::Deaf
        }
        () = &mut over => Rest::Over,
    }
}

/// Lets time pass between two questions.
#[expect(clippy::disallowed_methods, reason = "this is the one place that waits")]
pub(crate) async fn pause_for(pause: Duration) {
    tokio::time::sleep(pause).await;
}

fn too_late(what: &str, waited: Duration, last: Option<(String, Instant)>) -> Failure {
    let words = |time: Duration| length(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let (reason, since) = last.map_or_else(Default::default, |(reason, since)| {
        let since = since.elapsed();
        // A reason that held all the time needs no second figure.
        let told = if since + Duration::from_secs(1) < waited {
            format!(" (for the last {})", words(since))
        } else {
            String::new()
        };
        (reason, told)
    });
    let why = format!("not so after {}", words(waited));
    Failure::new(Class::Transient, format!("wait for {what}"), why)
        .evidence(format!("{reason}{since}"))
        .hint(AGAIN)
}

/// What to do about something that may pass by itself, and did not in time.
const AGAIN: &str = "run the same command again to go on from here; `deadlines` in the castle file gives it more time";

/// A failure with a next step: one that could have passed by itself was tried until there was no time left, so that the same
/// command goes on from there. What it said itself says more.
pub(crate) fn or_again(failure: Failure) -> Failure {
    if failure.is_transient() && failure.hint.is_none() { failure.hint(AGAIN) } else { failure }
}

#[cfg(test)]
mod tests;
