//! `platform/bootstrap`: etcd runs on the first control plane, begun exactly once in a castle's life.
//!
//! Talos guards a machine against a second bootstrap, not the cluster: called on another control plane it would
//! make a second etcd. So it is only ever called on the first one, only while etcd runs nowhere, and never again
//! once it was proven to run.

use async_trait::async_trait;
use castle_engine::{Acted, Context, Pace, Step};
use castle_model::{Change, Class, Failure, Observed, Verb, Verdict};

use super::etcd::{Seen, ask};
use super::{LIFE_OUTPUT, Realm};
use crate::handed::LIFE;

/// The step.
pub(super) struct Bootstrap(pub(super) Realm);

impl Bootstrap {
    fn what(&self) -> Result<String, Failure> {
        Ok(format!("bootstrap etcd on {}", self.0.first()?.name))
    }

    /// Where etcd runs already, if anywhere.
    async fn runs(&self, cx: &Context) -> Result<Option<String>, Failure> {
        let seen = ask(&self.0, cx).await?;
        let running = seen.iter().find(|(_, seen)| !matches!(seen, Seen::Down(_)));
        Ok(running.map(|(node, seen)| match seen {
            Seen::Members(members) => {
                format!("etcd runs on {}, {} members", node.name, members.len())
            }
            _ => format!("etcd runs on {}", node.name),
        }))
    }
}

#[async_trait]
impl Step for Bootstrap {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        if let Some(evidence) = self.runs(cx).await? {
            return Ok(Observed::Right { evidence });
        }
        let life = cx.outputs().get(&LIFE)?.incarnation.to_string();
        if cx.state().outputs().get(LIFE_OUTPUT) == Some(&life) {
            // It ran once: its data is on the disks, and a second beginning would split the brain.
            return Err(Failure::new(
                Class::Conflict,
                self.what()?,
                "etcd was bootstrapped before and runs nowhere now; it is never bootstrapped twice",
            )
            .hint(
                "bring the control planes up again and run `castle up` once more, or raze the castle with `castle down`",
            ));
        }
        Ok(Observed::Absent)
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let life = cx.outputs().get(&LIFE)?.incarnation.to_string();
        if self.runs(cx).await?.is_some() {
            return Ok(Acted::of(Change::Unchanged).with(LIFE_OUTPUT, life));
        }
        let first = self.0.first()?;
        let talos = self.0.open(cx, first).await?;
        match talos.bootstrap().await {
            Ok(()) => Ok(Acted::of(Change::Created)
                .with("node", first.name.as_str())
                .with(LIFE_OUTPUT, life)),
            // An earlier call whose answer was lost, or an old disk: the gate tells which.
            Err(error) if error.is_already_there() => {
                Ok(Acted::of(Change::Unchanged).with(LIFE_OUTPUT, life))
            }
            Err(error) => Err(error.failure(self.what()?)),
        }
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let first = self.0.first()?;
        let what = format!("etcd to run on {}", first.name);
        cx.wait(Pace::GATE, &what, || async {
            let seen = ask(&self.0, cx).await?;
            let own = seen.into_iter().find(|(node, _)| node.name == first.name);
            Ok(match own.map(|(_, seen)| seen) {
                None => Verdict::waiting("it was not asked"),
                Some(Seen::Down(why) | Seen::Mute(why)) => Verdict::Waiting(why),
                Some(Seen::Members(members)) => {
                    let peer = format!("https://{}:2380", first.address);
                    if members.iter().any(|member| member.peer_urls.contains(&peer)) {
                        Verdict::Ready(format!(
                            "etcd runs on {}, {} members",
                            first.name,
                            members.len()
                        ))
                    } else {
                        Verdict::waiting(format!("{} is not a member of its own etcd", first.name))
                    }
                }
            })
        })
        .await
    }
}
