//! `platform/bootstrap`: etcd runs on the first control plane, begun exactly once in a castle's life.
//!
//! Talos guards a machine against a second bootstrap, not the cluster: called on another control plane it would
//! make a second etcd. So it is only ever called on the first one, only after every control plane was seen to be
//! empty in one look right before the call, and never again once it was proven to run. What was accepted is kept in
//! the machine's memory alone: a restart before the first data are written loses it, and then it is called again, on
//! the same machine.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Pace, Step};
use castle_model::spec::NodeSpec;
use castle_model::{Bug, Change, Class, Failure, Observed, Verb, Verdict, planted};
use castle_talos::TalosError;
use futures::future::join_all;
use tokio::time::Instant;

use super::etcd::{Seen, ask};
use super::evidence::Gate;
use super::{LIFE_OUTPUT, Realm};
use crate::cluster::few;
use crate::handed::LIFE;

/// How long a machine is given to list members that it should not have. Before bootstrap it never answers.
const EMPTY_DEADLINE: Duration = Duration::from_millis(400);

/// How long an accepted bootstrap may show nothing before it is taken for lost and asked for again.
const LOST_AFTER: Duration = Duration::from_mins(1);

/// What a control plane has of an etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Trace {
    /// Nothing, proven.
    Empty,
    /// An etcd runs here, or data of one lie here; in words.
    Etcd(String),
    /// It cannot be said; why.
    Unknown(String),
}

/// What all control planes together allow.
#[derive(Debug, PartialEq, Eq)]
enum Course {
    /// Nobody has anything of an etcd.
    Begin,
    /// There is one already.
    Adopt(String),
    /// Somebody cannot be judged.
    Wait(Vec<String>),
}

/// Decides from what every control plane showed in the same look. One that cannot be judged may hold the castle's etcd.
fn course(traces: &[(String, Trace)]) -> Course {
    let found = traces.iter().find_map(|(_, trace)| match trace {
        Trace::Etcd(words) => Some(words.clone()),
        _ => None,
    });
    let unknown: Vec<String> = traces
        .iter()
        .filter_map(|(name, trace)| match trace {
            Trace::Unknown(why) => Some(format!("{name} ({why})")),
            _ => None,
        })
        .collect();
    match (found, unknown.is_empty(), traces.is_empty()) {
        (Some(words), _, _) => Course::Adopt(words),
        (None, true, false) => Course::Begin,
        (None, _, _) => Course::Wait(unknown),
    }
}

/// The step.
pub(super) struct Bootstrap(pub(super) Realm);

impl Bootstrap {
    fn what(&self) -> Result<String, Failure> {
        Ok(format!("bootstrap etcd on {}", self.0.first()?.name))
    }

    /// Where etcd runs already, if anywhere; fails where that cannot be said.
    async fn runs(&self, cx: &Context) -> Result<Option<String>, Failure> {
        let seen = ask(&self.0, cx).await?;
        let traces: Vec<(String, Trace)> =
            seen.iter().map(|(node, seen)| (node.name.to_string(), trace(node, seen))).collect();
        match course(&traces) {
            Course::Begin => Ok(None),
            Course::Adopt(words) => Ok(Some(words)),
            Course::Wait(unknown) => Err(self.undecided(&unknown)?),
        }
    }

    /// What every control plane has of an etcd, looked at as closely as can be.
    async fn traces(&self, cx: &Context) -> Result<Vec<(String, Trace)>, Failure> {
        let seen = ask(&self.0, cx).await?;
        let looks = seen.iter().map(|(node, seen)| async move {
            let trace = match trace(node, seen) {
                Trace::Empty => self.emptiness(cx, node).await?,
                other => other,
            };
            Ok((node.name.to_string(), trace))
        });
        join_all(looks).await.into_iter().collect()
    }

    /// Proves that a machine whose etcd does not run has nothing of one: not even a member that only starts slowly.
    async fn emptiness(&self, cx: &Context, node: &NodeSpec) -> Result<Trace, Failure> {
        let talos = self.0.open(cx, node).await?;
        let (status, data, members) = tokio::join!(
            talos.machine_status(),
            talos.has_etcd_data(),
            talos.etcd_members(EMPTY_DEADLINE)
        );
        let unknown = |error: TalosError| match error.class().0 {
            Class::Transient => Ok(Trace::Unknown(error.to_string())),
            _ => Err(error.failure(format!("look for an etcd on {}", node.name))),
        };
        match status {
            Ok(status) if !matches!(status.stage.as_str(), "booting" | "running") => {
                return Ok(Trace::Unknown(status.words()));
            }
            Ok(_) => {}
            Err(error) => return unknown(error),
        }
        match data {
            Ok(false) => {}
            // A member that restarts, or the disk of an earlier life: never begun anew over it, here or elsewhere.
            Ok(true) => return Ok(Trace::Etcd(format!("data of an etcd lie on {}", node.name))),
            Err(error) => return unknown(error),
        }
        Ok(match members {
            Ok(members) => Trace::Etcd(runs_on(node, members.len())),
            Err(TalosError::Deadline { .. }) => Trace::Empty,
            Err(error) => Trace::Unknown(error.to_string()),
        })
    }

    fn undecided(&self, unknown: &[String]) -> Result<Failure, Failure> {
        let why = format!(
            "whether there is an etcd already cannot be said of {}, and a second one would split the brain",
            few(unknown)
        );
        Ok(Failure::new(Class::Transient, self.what()?, why).hint(
            "bring these control planes up, or raze the castle with `castle down`; nothing is bootstrapped before every one of them is seen to be empty",
        ))
    }

    /// Begins the castle's one etcd, if every control plane is proven to be empty now.
    async fn begin(&self, cx: &Context) -> Result<Change, Failure> {
        match course(&self.traces(cx).await?) {
            Course::Adopt(_) => return Ok(Change::Unchanged),
            Course::Wait(unknown) => return Err(self.undecided(&unknown)?),
            Course::Begin => {}
        }
        let mut node = self.0.first()?.clone();
        if planted(Bug::BootstrapMoved) {
            node = self.0.control_planes().into_iter().next_back().unwrap_or(node);
        }
        let talos = self.0.open(cx, &node).await?;
        match talos.bootstrap().await {
            Ok(()) => Ok(Change::Created),
            // An earlier call whose answer was lost, or an old disk: the gate tells which.
            Err(error) if error.is_already_there() => Ok(Change::Unchanged),
            Err(error) => Err(error.failure(self.what()?)),
        }
    }

    /// One look of the gate. A bootstrap that was lost with a restart is asked for again.
    async fn look(&self, cx: &Context, asked: &Mutex<Asked>) -> Result<Verdict, Failure> {
        let first = self.0.first()?;
        let seen = ask(&self.0, cx).await?;
        let own = seen.into_iter().find(|(node, _)| node.name == first.name);
        let why = match own.map(|(_, seen)| seen) {
            Some(Seen::Members(members)) => {
                let peer = format!("https://{}:2380", first.address);
                if members.iter().any(|member| member.peer_urls.contains(&peer)) {
                    return Ok(Verdict::Ready(runs_on(first, members.len())));
                }
                format!("{} is not a member of its own etcd", first.name)
            }
            None => "it was not asked".to_owned(),
            Some(Seen::Mute(why)) => why,
            Some(Seen::Unseen(why)) => {
                asked.lock().unwrap_or_else(PoisonError::into_inner).interrupted = true;
                why
            }
            Some(Seen::Down(why)) => {
                if asked.lock().unwrap_or_else(PoisonError::into_inner).again() {
                    let change = self.begin(cx).await?;
                    if change == Change::Created {
                        cx.notice(format!(
                            "{} had lost the bootstrap; asked for again",
                            first.name
                        ));
                    }
                }
                why
            }
        };
        Ok(Verdict::Waiting(why))
    }
}

/// When a bootstrap was asked for last, and whether the machine was gone since.
struct Asked {
    at: Instant,
    interrupted: bool,
}

impl Asked {
    /// Whether it is time to ask again; if so, it counts as asked now.
    fn again(&mut self) -> bool {
        let lost = self.interrupted || self.at.elapsed() >= LOST_AFTER;
        if lost {
            *self = Self { at: Instant::now(), interrupted: false };
        }
        lost
    }
}

fn trace(node: &NodeSpec, seen: &Seen) -> Trace {
    match seen {
        Seen::Unseen(why) => Trace::Unknown(why.clone()),
        Seen::Down(_) => Trace::Empty,
        Seen::Mute(_) => Trace::Etcd(format!("etcd runs on {}", node.name)),
        Seen::Members(members) => Trace::Etcd(runs_on(node, members.len())),
    }
}

fn runs_on(node: &NodeSpec, members: usize) -> String {
    let plural = if members == 1 { "" } else { "s" };
    format!("etcd runs on {}, {members} member{plural}", node.name)
}

/// What its gate proves.
pub(super) const PROVES: &str = "etcd runs on the first control plane";

#[async_trait]
impl Step for Bootstrap {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let life = cx.outputs().get(&LIFE)?.incarnation.to_string();
        if let Some(evidence) = self.runs(cx).await? {
            // Whoever has lost the journal and finds it running never begins another one either.
            cx.learn(LIFE_OUTPUT, life);
            return Ok(Observed::Right { evidence });
        }
        if cx.state().outputs().get(LIFE_OUTPUT) == Some(&life) {
            match course(&self.traces(cx).await?) {
                // The machines were just switched on: nothing is begun, and the gate waits for what lies there.
                Course::Adopt(words) => {
                    return Ok(Observed::wrong(format!("{words}, but it does not run")));
                }
                Course::Wait(unknown) => return Err(self.undecided(&unknown)?),
                Course::Begin => {}
            }
            // It ran once and nothing is left of it: who begins anew gives all of the castle's data up.
            return Err(Failure::new(
                Class::Conflict,
                self.what()?,
                "etcd was bootstrapped before, and every control plane is empty now; it is never bootstrapped twice",
            )
            .hint(
                "the data of the castle were on disks that are gone: `castle down`, then `castle up`, then restore your backups",
            ));
        }
        Ok(Observed::Absent)
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let life = cx.outputs().get(&LIFE)?.incarnation.to_string();
        let first = self.0.first()?.name.as_str();
        let change = self.begin(cx).await?;
        Ok(Acted::of(change).with("node", first).with(LIFE_OUTPUT, life))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let nodes = self.0.control_planes();
        let asked = Mutex::new(Asked { at: Instant::now(), interrupted: false });
        let gate = Gate {
            what: format!("etcd to run on {}", self.0.first()?.name),
            pace: Pace::WATCHED,
            nodes: &nodes,
            vip: false,
        };
        self.0.gate(cx, gate, || self.look(cx, &asked)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(traces: &[Trace]) -> Course {
        let named: Vec<(String, Trace)> = (1..)
            .zip(traces)
            .map(|(number, trace)| (format!("cp-0{number}"), trace.clone()))
            .collect();
        course(&named)
    }

    #[test]
    fn only_a_look_that_shows_every_control_plane_empty_begins_an_etcd() {
        let (empty, runs) = (Trace::Empty, Trace::Etcd("etcd runs on cp-02".to_owned()));
        let unknown = Trace::Unknown("no answer".to_owned());
        assert_eq!(decided(&[Trace::Empty, Trace::Empty, Trace::Empty]), Course::Begin);
        assert_eq!(
            decided(&[empty.clone(), runs.clone(), unknown.clone()]),
            Course::Adopt("etcd runs on cp-02".to_owned())
        );
        assert_eq!(
            decided(&[empty.clone(), empty, unknown]),
            Course::Wait(vec!["cp-03 (no answer)".to_owned()])
        );
        assert_eq!(decided(&[]), Course::Wait(Vec::new()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_bootstrap_is_asked_for_again_after_a_restart_or_a_long_silence() {
        let mut asked = Asked { at: Instant::now(), interrupted: false };
        assert!(!asked.again());
        asked.interrupted = true;
        assert!(asked.again());
        assert!(!asked.again(), "asked again once");
        tokio::time::advance(LOST_AFTER).await;
        assert!(asked.again());
    }
}
