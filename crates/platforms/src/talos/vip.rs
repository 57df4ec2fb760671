//! `platform/vip`: the API server answers through the VIP over verified TLS, several times in a row.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Pace, Step};
use castle_kubernetes::readyz;
use castle_model::{Change, Failure, Observed, Verb, Verdict};

use super::access::kube_access;
use super::{LIFE_OUTPUT, Realm};
use crate::handed::LIFE;

/// How many answers in a row are a proof, each over a connection of its own.
const IN_A_ROW: u32 = 5;

/// The pause between two of them: together they span two seconds, in which a VIP that wanders would be noticed.
const PAUSE: Pace = Pace { first: Duration::from_millis(500), most: Duration::from_millis(500) };

/// The step.
pub(super) struct Vip(pub(super) Realm);

impl Vip {
    async fn ask(&self, cx: &Context) -> Result<(), Failure> {
        let access = kube_access(&self.0, cx)?;
        let vip = self.0.spec().network.vip;
        readyz(&self.0.world, &access, vip).await.map_err(|error| error.failure())
    }
}

#[async_trait]
impl Step for Vip {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        match self.ask(cx).await {
            // Proven before, and still so: one answer is enough. The first time, the gate proves it.
            Ok(()) if proven_in_this_life(cx)? => Ok(Observed::right("answers through the VIP")),
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
        let row = AtomicU32::new(0);
        let look = || async {
            if let Err(failure) = self.ask(cx).await {
                row.store(0, Ordering::Relaxed);
                return Err(failure);
            }
            Ok(if row.fetch_add(1, Ordering::Relaxed) + 1 >= IN_A_ROW {
                Verdict::Ready(format!("/readyz through {vip}, {IN_A_ROW} times in a row"))
            } else {
                Verdict::waiting("answers; asked again to be sure")
            })
        };
        cx.wait(PAUSE, &format!("the API server behind the VIP {vip}"), look).await
    }
}

fn proven_in_this_life(cx: &Context) -> Result<bool, Failure> {
    let life = cx.outputs().get(&LIFE)?.incarnation.to_string();
    Ok(cx.state().outputs().get(LIFE_OUTPUT) == Some(&life))
}
