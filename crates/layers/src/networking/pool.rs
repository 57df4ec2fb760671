//! `networking/pool`: MetalLB accepts the castle's addresses, through the API server and its webhook.
//!
//! Pods that run and endpoints that are ready do not prove that the webhook serves. The proof is a dry run of the
//! very objects: only what the server has accepted in a dry run is applied, and then it is read back.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Pace, Step};
use castle_kubernetes::{Mark, Object};
use castle_model::{Failure, Observed, Verb, Verdict};
use castle_platforms::cluster::Cluster;
use serde_json::json;

use super::NAMESPACE;
use crate::manifest::lacking;
use crate::objects::{apply_tried, marked};

const VERSION: &str = "metallb.io/v1beta1";
const NAME: &str = "castle";

/// The step.
pub(super) struct Pool(pub(super) Arc<Cluster>);

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
}

#[async_trait]
impl Step for Pool {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let (mark, wanted) = self.wanted(cx)?;
        let survey = self.0.client(cx)?.survey(&mark, &wanted).await?;
        Ok(lacking(&survey)
            .unwrap_or_else(|| Observed::right(format!("pool {}", self.0.spec.network.pool))))
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let (mark, wanted) = self.wanted(cx)?;
        apply_tried(cx, &self.0.client(cx)?, &mark, &wanted).await.map(Acted::of)
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let (mark, wanted) = self.wanted(cx)?;
        let client = self.0.client(cx)?;
        let (client, mark, wanted) = (&client, &mark, &wanted);
        cx.wait(Pace::GATE, "the pool to be read back", || async move {
            Ok(match lacking(&client.survey(mark, wanted).await?) {
                None => Verdict::Ready(()),
                Some(_) => Verdict::waiting("the pool is not stored as wanted"),
            })
        })
        .await?;
        Ok(format!("pool {} accepted by the webhook and read back", self.0.spec.network.pool))
    }
}
