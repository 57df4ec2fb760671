//! Waiting with open eyes: where a gate takes longer than usual, a closer look is taken, told, and added to its failure.

use std::future::Future;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use castle_engine::{Context, Pace};
use castle_model::spec::{NodeSpec, Role};
use castle_model::{Failure, Verdict};
use castle_talos::config::KUBERNETES_PORT;
use castle_talos::{Presence, Talos};
use futures::future::join_all;
use tokio::time::{Instant, timeout};

use super::Realm;
use super::diagnosis::{Evidence, Finding, NodeEvidence, Sight, VipEvidence, diagnose};

/// How long one question of a closer look may take: what does not answer by then is left out.
const QUESTION: Duration = Duration::from_secs(2);

/// A gate that looks closer after a while.
pub(super) struct Gate<'a> {
    /// What is waited for.
    pub(super) what: String,
    /// How often it is asked when nobody tells.
    pub(super) pace: Pace,
    /// The machines that it hangs on.
    pub(super) nodes: &'a [NodeSpec],
    /// Whether it hangs on the shared address too.
    pub(super) vip: bool,
}

/// When to look closer, and what was found so.
///
/// Deadlines are some four times what is usual (see the table in `model`), so after a quarter something is unusual.
pub(crate) struct Patience {
    next: Mutex<Instant>,
    pause: Duration,
    found: Mutex<Vec<Finding>>,
}

impl Patience {
    /// For a wait that begins now and may last until the step's deadline.
    pub(crate) fn of(cx: &Context) -> Self {
        let now = Instant::now();
        let whole = cx.deadline().saturating_duration_since(now);
        Self { next: Mutex::new(now + whole / 4), pause: whole / 8, found: Mutex::default() }
    }

    /// When the next closer look is due.
    pub(crate) fn until(&self) -> Instant {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a closer look is due; the next one is then due later.
    pub(crate) fn is_over(&self) -> bool {
        let now = Instant::now();
        let over = now >= self.until();
        if over {
            *self.next.lock().unwrap_or_else(PoisonError::into_inner) = now + self.pause;
        }
        over
    }

    /// Keeps what was found; gives what is new of it.
    fn found_now(&self, now: Vec<Finding>) -> Vec<Finding> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let new = now.iter().filter(|finding| !found.contains(finding)).cloned().collect();
        *found = now;
        new
    }

    /// A failure with what the last closer look found.
    pub(crate) fn explained(&self, failure: Failure) -> Failure {
        explained(failure, &self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Realm {
    /// Waits for a gate as [`Context::wait_on`] does, told by the machines it hangs on. Where that takes longer than
    /// usual a closer look is taken, and again from time to time; what it finds is told at once, and is part of the
    /// failure, should it come to that.
    pub(super) async fn gate<F, Fut>(
        &self,
        cx: &Context,
        gate: Gate<'_>,
        probe: F,
    ) -> Result<String, Failure>
    where
        F: Fn() -> Fut + Send + Sync,
        Fut: Future<Output = Result<Verdict, Failure>> + Send,
    {
        let patience = Patience::of(cx);
        let (probe, gate, patience) = (&probe, &gate, &patience);
        let watch = || self.news(cx, gate.nodes);
        let asked = cx.wait_on(watch, gate.pace, &gate.what, move || async move {
            let verdict = probe().await;
            let waits = match &verdict {
                Ok(Verdict::Waiting(_)) => true,
                Err(failure) => failure.is_transient(),
                Ok(_) => false,
            };
            if waits && patience.is_over() {
                self.look_closer(cx, gate.nodes, gate.vip, patience).await;
            }
            verdict
        });
        asked.await.map_err(|failure| patience.explained(failure))
    }

    /// Looks at some machines as closely as can be, and tells what is new.
    pub(crate) async fn look_closer(
        &self,
        cx: &Context,
        nodes: &[NodeSpec],
        vip: bool,
        patience: &Patience,
    ) {
        let looks = nodes.iter().map(|node| self.examine(cx, node));
        let mut evidence = Evidence { nodes: join_all(looks).await, vip: None };
        if vip {
            evidence.vip = self.examine_vip(cx).await.map(|seen| (self.spec().network.vip, seen));
        }
        for finding in patience.found_now(diagnose(&evidence)) {
            cx.notice(format!("{}; {}", finding.what, finding.cure));
        }
    }

    /// Everything that one machine shows.
    async fn examine(&self, cx: &Context, node: &NodeSpec) -> NodeEvidence {
        let mut evidence = NodeEvidence {
            name: node.name.clone(),
            role: node.role,
            address: node.address,
            sight: Sight::Maintenance,
            unmet: Vec::new(),
            services: Vec::new(),
            addresses: Vec::new(),
            affiliates: Vec::new(),
            in_sync: None,
            members: None,
            etcd_data: None,
        };
        match self.look(cx, node.address).await {
            Ok(Presence::Maintenance(talos)) => {
                let in_sync = timeout(QUESTION, talos.time_in_sync()).await;
                evidence.in_sync = in_sync.ok().and_then(Result::ok).flatten();
            }
            Ok(Presence::Untimely { why }) => evidence.sight = Sight::Untimely(why),
            Ok(Presence::Silent { why }) => evidence.sight = Sight::Silent(why),
            Ok(Presence::Foreign { why }) => evidence.sight = Sight::Foreign(why),
            Err(failure) => evidence.sight = Sight::Faulty(failure.why),
            Ok(Presence::Ours(talos)) => {
                evidence.sight = Sight::Ours;
                ask_everything(&talos, &mut evidence).await;
            }
        }
        evidence
    }

    /// How far the shared address answers; none if all is well with it.
    async fn examine_vip(&self, cx: &Context) -> Option<VipEvidence> {
        let vip = self.spec().network.vip;
        let host = vip.to_string();
        let dial = self.world.dialer.dial(&host, KUBERNETES_PORT);
        match timeout(QUESTION, dial).await {
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                Some(VipEvidence::Refuses)
            }
            Err(_) | Ok(Err(_)) => Some(VipEvidence::Silent),
            Ok(Ok(_)) => {
                let failure = super::vip::ask(self, cx, vip).await.err()?;
                Some(VipEvidence::NoTls(failure.why))
            }
        }
    }
}

async fn ask_everything(talos: &Talos, evidence: &mut NodeEvidence) {
    let (status, services, addresses, affiliates, in_sync) = tokio::join!(
        timeout(QUESTION, talos.machine_status()),
        timeout(QUESTION, talos.services()),
        timeout(QUESTION, talos.addresses()),
        timeout(QUESTION, talos.affiliates()),
        timeout(QUESTION, talos.time_in_sync()),
    );
    if let Ok(Ok(status)) = status {
        evidence.unmet = status.status.unmet_conditions;
    }
    evidence.services = services.ok().and_then(Result::ok).unwrap_or_default();
    evidence.addresses = addresses.ok().and_then(Result::ok).unwrap_or_default();
    evidence.affiliates = affiliates.ok().and_then(Result::ok).unwrap_or_default();
    evidence.in_sync = in_sync.ok().and_then(Result::ok).flatten();
    let runs = |service: &castle_talos::Service| service.id == "etcd" && service.state == "Running";
    if evidence.services.iter().any(runs) {
        evidence.members = talos.etcd_members(QUESTION).await.ok();
    } else if evidence.role == Role::ControlPlane {
        evidence.etcd_data =
            timeout(QUESTION, talos.has_etcd_data()).await.ok().and_then(Result::ok);
    }
}

/// A failure with what the last closer look found.
fn explained(mut failure: Failure, found: &[Finding]) -> Failure {
    let Some(first) = found.first().filter(|_| failure.is_transient()) else { return failure };
    let told: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
    let seen = failure.evidence.take().filter(|seen| !seen.is_empty());
    failure.evidence =
        Some(seen.into_iter().chain([told.join("; ")]).collect::<Vec<_>>().join("; "));
    failure.hint = Some(first.cure.clone());
    failure
}

#[cfg(test)]
mod tests {
    use castle_model::Class;

    use super::*;

    #[test]
    fn a_failure_tells_what_was_found_and_the_first_cure() {
        let finding = |what: &str, cure: &str| Finding { what: what.into(), cure: cure.into() };
        let late = || {
            Failure::new(Class::Transient, "wait for etcd", "not so after 5m")
                .evidence("etcd on cp-01 is Preparing")
                .hint("run again")
        };
        let told = explained(late(), &[finding("a", "cure a"), finding("b", "cure b")]);
        assert_eq!(told.evidence.as_deref(), Some("etcd on cp-01 is Preparing; a; b"));
        assert_eq!(told.hint.as_deref(), Some("cure a"));
        assert_eq!(explained(late(), &[]), late());
        // What can never be has its own words.
        let never = Failure::new(Class::Conflict, "wait for etcd", "split");
        assert_eq!(explained(never.clone(), &[finding("a", "b")]), never);
    }
}
