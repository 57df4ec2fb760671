//! `platform/vip`: the API server answers through the VIP over verified TLS, several times in a row.

use std::net::Ipv4Addr;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Pace, Step};
use castle_kubernetes::readyz;
use castle_model::{Change, Failure, Observed, Verb, Verdict};
use tokio::time::Instant;

use super::evidence::Gate;
use super::{LIFE_OUTPUT, Realm};
use crate::handed::LIFE;

/// How many answers in a row are a proof, each over a connection of its own.
const IN_A_ROW: u32 = 5;

/// How long they must span together: in this time a VIP that wanders would be noticed.
const SPAN: Duration = Duration::from_secs(2);

/// The pause between two of them.
const PAUSE: Pace = Pace::new(250, 250, 2);

/// Answers in a row, and when the first of them came.
#[derive(Debug, Default)]
struct Row {
    answers: u32,
    since: Option<Instant>,
}

impl Row {
    /// Counts an answer; whether the row is a proof now.
    fn answered(&mut self) -> bool {
        self.answers += 1;
        let since = *self.since.get_or_insert_with(Instant::now);
        self.answers >= IN_A_ROW && since.elapsed() >= SPAN
    }
}

/// The step.
pub(super) struct Vip(pub(super) Realm);

impl Vip {
    async fn ask(&self, cx: &Context) -> Result<(), Failure> {
        ask(&self.0, cx, self.0.spec().network.vip).await
    }

    /// Whether it answers as often as a proof takes, without a miss: so it is with a castle that stands and whose journal
    /// is lost, and a plan can then look further.
    async fn holds(&self, cx: &Context) -> Result<bool, Failure> {
        let row = Mutex::new(Row::default());
        cx.wait(PAUSE, "the VIP to answer in a row", || async {
            if self.ask(cx).await.is_err() {
                return Ok(Verdict::Ready(false));
            }
            let mut row = row.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(if row.answered() {
                Verdict::Ready(true)
            } else {
                Verdict::waiting("answers; asked again to be sure")
            })
        })
        .await
    }
}

/// Asks the API server at one address whether it is ready, over a connection and a handshake of its own, with the
/// administrator's certificate: to a stranger it would answer 401.
pub(super) async fn ask(realm: &Realm, cx: &Context, address: Ipv4Addr) -> Result<(), Failure> {
    let entry = realm.keys(cx)?.kube_entry;
    readyz(&entry, address).await.map_err(|error| error.failure())
}

/// What its gate proves.
pub(super) const PROVES: &str = "the API server answers through the VIP, several times in a row";

#[async_trait]
impl Step for Vip {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        match self.ask(cx).await {
            // Proven before, and still so: one answer is enough.
            Ok(()) if proven_in_this_life(cx)? => Ok(Observed::right("answers through the VIP")),
            Ok(()) if self.holds(cx).await? => {
                cx.learn(LIFE_OUTPUT, cx.outputs().get(&LIFE)?.incarnation.to_string());
                Ok(Observed::right("answers through the VIP, several times in a row"))
            }
            Ok(()) => Ok(Observed::Absent),
            Err(failure) if failure.is_transient() => Ok(Observed::Absent),
            Err(failure) => Err(failure),
        }
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let life = cx.outputs().get(&LIFE)?.incarnation.to_string();
        Ok(Acted::of(Change::Unchanged).with(LIFE_OUTPUT, life))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let vip = self.0.spec().network.vip;
        let row = Mutex::new(Row::default());
        let nodes = self.0.control_planes();
        let gate = Gate {
            what: format!("the API server behind the VIP {vip}"),
            pace: PAUSE,
            nodes: &nodes,
            vip: true,
        };
        let look = || async {
            let answer = self.ask(cx).await;
            let mut row = row.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(failure) = answer {
                *row = Row::default();
                return Err(failure);
            }
            Ok(if row.answered() {
                Verdict::Ready(format!("/readyz through {vip}, {} times in a row", row.answers))
            } else {
                Verdict::waiting("answers; asked again to be sure")
            })
        };
        self.0.gate(cx, gate, look).await
    }
}

/// Whether an earlier run proved the step in the present life.
pub(crate) fn proven_in_this_life(cx: &Context) -> Result<bool, Failure> {
    let life = cx.outputs().get(&LIFE)?.incarnation.to_string();
    Ok(cx.state().outputs().get(LIFE_OUTPUT) == Some(&life))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_row_is_a_proof_by_number_and_by_time() {
        let mut quick = Row::default();
        assert!((0..9).all(|_| !quick.answered()), "nine at once prove nothing");
        tokio::time::advance(SPAN).await;
        assert!(quick.answered());
        let mut slow = Row::default();
        for _ in 0..4 {
            assert!(!slow.answered());
            tokio::time::advance(SPAN).await;
        }
        assert!(slow.answered());
    }
}
