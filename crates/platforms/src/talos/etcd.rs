//! `platform/etcd`: every control plane is a voting member of one etcd, and nobody else is.

use std::time::Duration;

use async_trait::async_trait;
use castle_engine::{Context, Pace, Step};
use castle_model::spec::NodeSpec;
use castle_model::{Class, Failure, Observed, Verdict};
use castle_talos::Member;
use futures::future::join_all;

use super::evidence::Gate;
use super::{Realm, vip};

/// How long a machine may take to list the members. One whose etcd does not run yet never answers at all.
const LIST_DEADLINE: Duration = Duration::from_secs(3);

/// What etcd on one machine says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// The machine cannot be asked; why. Its etcd may run or not.
    Unseen(String),
    /// It does not run; why.
    Down(String),
    /// It runs, but gives no list now; why.
    Mute(String),
    /// It runs and knows these members.
    Members(Vec<Member>),
}

/// Asks every control plane at once for its service and, where that runs, for its members.
pub(super) async fn ask(realm: &Realm, cx: &Context) -> Result<Vec<(NodeSpec, Seen)>, Failure> {
    let nodes = realm.control_planes();
    let answers = join_all(nodes.iter().map(|node| ask_one(realm, cx, node))).await;
    nodes.into_iter().zip(answers).map(|(node, answer)| Ok((node, answer?))).collect()
}

async fn ask_one(realm: &Realm, cx: &Context, node: &NodeSpec) -> Result<Seen, Failure> {
    match question(realm, cx, node).await {
        Err(failure) if failure.is_transient() => Ok(Seen::Unseen(failure.why)),
        answer => answer,
    }
}

async fn question(realm: &Realm, cx: &Context, node: &NodeSpec) -> Result<Seen, Failure> {
    let failed =
        |error: castle_talos::TalosError| error.failure(format!("ask {} for etcd", node.name));
    let talos = realm.open(cx, node).await?;
    let services = talos.services().await.map_err(failed)?;
    let state = services.iter().find(|service| service.id == "etcd").map(|service| &service.state);
    if state.is_none_or(|state| state != "Running") {
        let state = state.map_or("not there", String::as_str);
        return Ok(Seen::Down(format!("etcd on {} is {state}", node.name)));
    }
    match talos.etcd_members(LIST_DEADLINE).await {
        Ok(members) => Ok(Seen::Members(members)),
        Err(error) if error.class().0 == Class::Transient => Ok(Seen::Mute(error.to_string())),
        Err(error) => Err(failed(error)),
    }
}

/// Judges what all control planes say: the same members everywhere, exactly ours, all voting.
pub(super) fn judge(seen: &[(NodeSpec, Seen)]) -> Verdict {
    let mut lists = Vec::new();
    let mut waiting = None;
    for (node, seen) in seen {
        let why = match seen {
            Seen::Members(members) => {
                lists.push((node, members));
                continue;
            }
            Seen::Unseen(why) => format!("{} cannot be asked: {why}", node.name),
            Seen::Down(why) | Seen::Mute(why) => why.clone(),
        };
        waiting.get_or_insert(why);
    }
    // Two that share nothing never will, whatever the others say.
    if let Some(failure) = split(&lists) {
        return Verdict::Failed(failure);
    }
    if let Some(why) = waiting {
        return Verdict::Waiting(why);
    }
    let Some((first, members)) = lists.first() else { return Verdict::waiting("nobody was asked") };
    if let Some((node, _)) = lists.iter().find(|(_, other)| other != members) {
        return Verdict::waiting(format!(
            "{} and {} name different members",
            first.name, node.name
        ));
    }
    for member in *members {
        let url =
            |node: &NodeSpec| member.peer_urls.contains(&format!("https://{}:2380", node.address));
        if !seen.iter().any(|(node, _)| url(node)) {
            let name = if member.hostname.is_empty() { "nameless" } else { &member.hostname };
            return Verdict::Failed(
                failure("a member is none of our machines")
                    .evidence(format!(
                        "{name}, {:016x} at {}",
                        member.id,
                        member.peer_urls.join(", ")
                    ))
                    .hint("if it is a machine that the castle file no longer names, put it back there; if it is left from one that is gone, remove it from etcd by its id"),
            );
        }
        if member.learner {
            return Verdict::waiting(format!("member {:016x} does not vote yet", member.id));
        }
    }
    for (node, _) in seen {
        let own = format!("https://{}:2380", node.address);
        let of_it = members.iter().filter(|member| member.peer_urls.contains(&own)).count();
        if of_it > 1 {
            // One of them is dead, and counts for the quorum all the same.
            return Verdict::waiting(format!("{of_it} members stand for {}", node.name));
        }
    }
    if members.len() < seen.len() {
        return Verdict::waiting(format!("{} of {} members", members.len(), seen.len()));
    }
    Verdict::Ready(format!("{} voting members, the same on every control plane", members.len()))
}

fn split(lists: &[(&NodeSpec, &Vec<Member>)]) -> Option<Failure> {
    let (first, members) = lists.first()?;
    let apart =
        |other: &[Member]| !other.iter().any(|one| members.iter().any(|own| own.id == one.id));
    let (node, _) = lists.iter().find(|(_, other)| apart(other))?;
    Some(
        failure("there are two of them: the brain is split")
            .evidence(format!("{} and {} share no member", first.name, node.name))
            .hint("this castle cannot be mended: raze it with `castle down`, then `castle up`"),
    )
}

/// Judges whom the control planes follow, each by the id of its leader (0 for none): all the same one.
fn judge_leaders(leaders: &[(NodeSpec, u64)]) -> Verdict {
    let Some((first, leader)) = leaders.first() else {
        return Verdict::waiting("nobody was asked");
    };
    if let Some((node, _)) = leaders.iter().find(|(_, leader)| *leader == 0) {
        return Verdict::waiting(format!("{} follows no leader", node.name));
    }
    match leaders.iter().find(|(_, other)| other != leader) {
        Some((node, _)) => {
            Verdict::waiting(format!("{} and {} follow different leaders", first.name, node.name))
        }
        None => Verdict::Ready(format!("one leader, {leader:016x}")),
    }
}

fn failure(why: &str) -> Failure {
    Failure::new(Class::Conflict, "prove that the control planes share one etcd", why)
}

/// The step.
pub(super) struct Etcd(pub(super) Realm);

impl Etcd {
    /// One look: members everywhere and, where these are right, the leader.
    async fn look(&self, cx: &Context) -> Result<Verdict, Failure> {
        let seen = ask(&self.0, cx).await?;
        let members = match judge(&seen) {
            Verdict::Ready(members) => members,
            other => return Ok(other),
        };
        let asked = seen.iter().map(|(node, _)| async {
            let talos = self.0.open(cx, node).await?;
            let status = talos.etcd_status(LIST_DEADLINE).await;
            let status =
                status.map_err(|e| e.failure(format!("ask {} for its leader", node.name)))?;
            Ok((node.clone(), status.leader))
        });
        let leaders: Result<Vec<(NodeSpec, u64)>, Failure> =
            join_all(asked).await.into_iter().collect();
        Ok(match judge_leaders(&leaders?) {
            Verdict::Ready(leader) => Verdict::Ready(format!("{members}; {leader}")),
            other => other,
        })
    }
}

impl Etcd {
    /// Etcd as a whole, then each control plane's own API server: the shared address shows one of them only.
    async fn look_at_all(&self, cx: &Context, nodes: &[NodeSpec]) -> Result<Verdict, Failure> {
        let members = match self.look(cx).await? {
            Verdict::Ready(members) => members,
            other => return Ok(other),
        };
        let asked = nodes.iter().map(|node| vip::ask(&self.0, cx, node.address));
        for (node, answer) in nodes.iter().zip(join_all(asked).await) {
            match answer {
                Ok(()) => {}
                Err(failure) if failure.is_transient() => {
                    return Ok(Verdict::Waiting(format!(
                        "the API server of {} does not answer: {}",
                        node.name, failure.why
                    )));
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(Verdict::Ready(format!("{members}; an API server on each")))
    }
}

/// What its gate proves.
pub(super) const PROVES: &str = "every control plane votes in one etcd and serves Kubernetes";

#[async_trait]
impl Step for Etcd {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        // What is right is not proven again by the gate, so it is all that the gate would ask for.
        match self.look_at_all(cx, &self.0.control_planes()).await? {
            Verdict::Ready(evidence) => Ok(Observed::Right { evidence }),
            Verdict::Waiting(_) => Ok(Observed::Absent),
            Verdict::Failed(failure) => Err(failure),
        }
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let nodes = self.0.control_planes();
        let gate = Gate {
            what: "every control plane to vote in etcd and to serve Kubernetes".to_owned(),
            pace: Pace::WATCHED,
            nodes: &nodes,
            vip: false,
        };
        self.0.gate(cx, gate, || self.look_at_all(cx, &nodes)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u8) -> NodeSpec {
        serde_json::from_value(serde_json::json!({
            "name": format!("cp-{number:02}"), "role": "control-plane",
            "address": format!("192.168.1.21{number}"),
            "body": { "standing": { "uuid": null, "data_disk": false } },
        }))
        .unwrap()
    }

    fn member(number: u8, learner: bool) -> Member {
        Member {
            id: u64::from(number),
            hostname: format!("cp-{number:02}"),
            peer_urls: vec![format!("https://192.168.1.21{number}:2380")],
            learner,
        }
    }

    fn said(lists: &[&[(u8, bool)]]) -> String {
        let seen: Vec<(NodeSpec, Seen)> = (1..)
            .zip(lists)
            .map(|(number, list)| {
                let members =
                    list.iter().map(|(number, learner)| member(*number, *learner)).collect();
                (node(number), Seen::Members(members))
            })
            .collect();
        match judge(&seen) {
            Verdict::Ready(proof) => format!("ready: {proof}"),
            Verdict::Waiting(reason) => format!("waiting: {reason}"),
            Verdict::Failed(failure) => format!("failed: {}", failure.why),
        }
    }

    #[test]
    fn only_one_etcd_of_all_and_none_but_ours_is_ready() {
        let all: &[(u8, bool)] = &[(1, false), (2, false), (3, false)];
        let ready = "ready: 3 voting members, the same on every control plane";
        assert_eq!(said(&[all, all, all]), ready);
        let learning: &[(u8, bool)] = &[(1, false), (2, false), (3, true)];
        assert!(said(&[learning; 3]).contains("does not vote yet"));
        assert!(said(&[&all[..2], &all[..2], &all[..2]]).contains("2 of 3 members"));
        assert!(said(&[all, &all[..2], all]).contains("different members"));
        assert!(said(&[&all[..1], &all[1..], &all[..1]]).contains("split"));
        let twice: &[(u8, bool)] = &[(1, false), (2, false), (3, false), (3, false)];
        assert!(said(&[twice; 3]).contains("2 members stand for cp-03"));
        let instead: &[(u8, bool)] = &[(1, false), (2, false), (2, false)];
        assert!(said(&[instead; 3]).contains("2 members stand for cp-02"));
        let ghost: &[(u8, bool)] = &[(1, false), (9, false)];
        assert!(said(&[ghost]).contains("none of our machines"));
    }

    #[test]
    fn all_must_follow_one_leader() {
        let said = |leaders: &[u64]| {
            let leaders: Vec<(NodeSpec, u64)> =
                (1..).zip(leaders).map(|(number, leader)| (node(number), *leader)).collect();
            judge_leaders(&leaders)
        };
        assert_eq!(said(&[7, 7, 7]), Verdict::Ready("one leader, 0000000000000007".to_owned()));
        assert_eq!(said(&[7, 0, 7]), Verdict::waiting("cp-02 follows no leader"));
        assert_eq!(said(&[7, 7, 8]), Verdict::waiting("cp-01 and cp-03 follow different leaders"));
    }

    #[test]
    fn a_machine_whose_etcd_does_not_run_is_waited_for() {
        let seen = [(node(1), Seen::Down("etcd on cp-01 is Preparing".to_owned()))];
        assert_eq!(judge(&seen), Verdict::waiting("etcd on cp-01 is Preparing"));
        let [down] = seen;
        let split = [
            (node(1), Seen::Members(vec![member(1, false)])),
            down,
            (node(3), Seen::Members(vec![member(3, false)])),
        ];
        assert!(matches!(judge(&split), Verdict::Failed(_)), "two etcds need no third");
    }
}
