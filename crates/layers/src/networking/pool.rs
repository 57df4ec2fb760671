//! `networking/pool`: MetalLB accepts the castle's addresses through every API server, and gives one of them away.
//!
//! Pods that run and endpoints that are ready do not prove that the webhook serves. The proof is a dry run of the
//! very objects through each control plane's own API server: only what all of them have accepted is applied, and then
//! it is read back. That addresses are given is proven by a service that gets one and is removed again.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Key, Pace, Step};
use castle_kubernetes::{Mark, Mode, Object};
use castle_model::{Change, Failure, Observed, Verb, Verdict};
use castle_platforms::cluster::Cluster;
use serde_json::json;

use super::NAMESPACE;
use super::probe::{PROBE, address, places, service};
use crate::manifest::lacking;
use crate::objects::marked;
use crate::trial::apply_everywhere;

const VERSION: &str = "metallb.io/v1beta1";
const NAME: &str = "castle";
/// Whose API servers have accepted the pool in this run.
const TRIED: Key<Vec<String>> = Key::new("networking/tried");

/// The step.
pub(crate) struct Pool(pub(crate) Arc<Cluster>);

impl Pool {
    fn wanted(&self, cx: &Context) -> Result<(Mark, Vec<Object>), Failure> {
        let mark = self.0.mark(cx)?;
        let metadata = json!({"name": NAME, "namespace": NAMESPACE});
        let pool = json!({
            "apiVersion": VERSION, "kind": "IPAddressPool", "metadata": metadata,
            "spec": {"addresses": [self.0.spec.network.pool.to_string()], "autoAssign": true},
        });
        let advertisement = json!({
            "apiVersion": VERSION, "kind": "L2Advertisement", "metadata": metadata,
            "spec": {"ipAddressPools": [NAME]},
        });
        let objects = marked(&mark, vec![pool, advertisement])?;
        Ok((mark, objects))
    }

    /// Waits until what is stored is what is wanted.
    async fn read_back(&self, cx: &Context) -> Result<(), Failure> {
        let (mark, wanted) = self.wanted(cx)?;
        let client = self.0.client(cx)?;
        let (client, mark, wanted) = (&client, &mark, &wanted);
        cx.wait(Pace::GATE, "the pool to be read back", || async move {
            Ok(match lacking(&client.survey(mark, wanted).await?) {
                None => Verdict::Ready(()),
                Some(_) => Verdict::waiting("the pool is not stored as wanted"),
            })
        })
        .await
    }
}

/// What its gate proves.
pub(super) const PROVES: &str =
    "the address pool is accepted and read back, and a service got an address of it";

#[async_trait]
impl Step for Pool {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let (mark, wanted) = self.wanted(cx)?;
        let client = self.0.client(cx)?;
        if let Some(observed) = lacking(&client.survey(&mark, &wanted).await?) {
            return Ok(observed);
        }
        if !PROBE.is_proven(&client, &mark).await? {
            return Ok(Observed::wrong("no load balancer has got an address of it yet"));
        }
        if let Some(left) = PROBE.leftover(&client).await? {
            return Ok(Observed::wrong(left));
        }
        Ok(Observed::right(format!("pool {}", self.0.spec.network.pool)))
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let (mark, wanted) = self.wanted(cx)?;
        let client = self.0.client(cx)?;
        let proven = PROBE.is_proven(&client, &mark).await?;
        let trial = apply_everywhere(cx, &self.0, &mark, &wanted).await?;
        let changed = trial.change != Change::Unchanged;
        if !trial.by.is_empty() {
            cx.outputs().put(&TRIED, trial.by);
        }
        if proven && !changed {
            let removed = PROBE.remove(&client).await?;
            return Ok(Acted::of(if removed { Change::Updated } else { Change::Unchanged }));
        }
        if proven {
            PROBE.doubt(&client, &mark).await?;
        }
        for probe in marked(&mark, vec![service()])? {
            client.apply(&probe, Mode::Real).await?;
        }
        Ok(Acted::of(if changed { trial.change } else { Change::Updated }))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        self.read_back(cx).await?;
        let client = self.0.client(cx)?;
        let mark = self.0.mark(cx)?;
        let pool = self.0.spec.network.pool;
        let accepted = match cx.outputs().get(&TRIED) {
            Ok(by) => format!("accepted through {}", by.join(", ")),
            Err(_) => "stored as wanted before".to_owned(),
        };
        if !PROBE.is_proven(&client, &mark).await? {
            let what = "a load balancer to get an address";
            self.0.settled(cx, what, places(), |there| address(pool, there)).await?;
        }
        PROBE.passed(&client, &mark).await?;
        Ok(format!("pool {pool} {accepted} and read back; a probe service got an address of it"))
    }
}
