//! What a machine tells as it happens: its events, and the health of its cluster.

use std::net::Ipv4Addr;
use std::time::Duration;

use castle_talos_proto::cluster::cluster_service_server::ClusterService;
use castle_talos_proto::cluster::{HealthCheckProgress, HealthCheckRequest};
use castle_talos_proto::machine::machine_status_event::machine_status::UnmetCondition;
use castle_talos_proto::machine::machine_status_event::{MachineStage, MachineStatus};
use castle_talos_proto::machine::sequence_event;
use castle_talos_proto::machine::service_state_event;
use castle_talos_proto::machine::task_event;
use castle_talos_proto::machine::{
    Event, MachineStatusEvent, SequenceEvent, ServiceHealth, ServiceStateEvent, TaskEvent,
};
use futures::stream::{self, StreamExt};
use prost::Message;
use prost_types::Any;
use serde_json::Value;
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use super::machine::{Answers, error};
use super::{Caller, mixed_up};
use crate::talos::{Call, Happening, Reply, What};

/// The digits of an event's id.
const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// The events of a machine after a certain one, as they come.
pub(super) fn follow(caller: Caller, after: u64, actor: String) -> Answers<Event> {
    let start = (caller, after, actor, Vec::<Happening>::new());
    stream::unfold(start, |(caller, mut after, actor, mut ready)| async move {
        loop {
            if !ready.is_empty() {
                let next = ready.remove(0);
                return Some((Ok(event(next)), (caller, after, actor, ready)));
            }
            let changed = caller.door.changed();
            match caller.put(Call::Events { after }).await {
                Ok(Reply::Events(found)) if found.is_empty() => changed.await,
                Ok(Reply::Events(found)) => {
                    after = found.last().map_or(after, |happening| happening.number);
                    let wanted = |h: &Happening| actor.is_empty() || h.actor == actor;
                    ready = found.into_iter().filter(wanted).collect();
                }
                Ok(_) => return Some((Err(mixed_up()), (caller, after, actor, ready))),
                Err(status) => return Some((Err(status), (caller, after, actor, ready))),
            }
        }
    })
    .boxed()
}

fn event(happening: Happening) -> Event {
    let (name, value) = match happening.what {
        What::Status(status) => ("MachineStatusEvent", status_event(&status).encode_to_vec()),
        What::Service { id, state, message, healthy } => {
            let health = ServiceHealth {
                unknown: healthy.is_none(),
                healthy: healthy == Some(true),
                ..ServiceHealth::default()
            };
            let action = service_state_event::Action::from_str_name(&state.to_uppercase());
            let event = ServiceStateEvent {
                service: id,
                action: action.unwrap_or_default().into(),
                message,
                health: Some(health),
            };
            ("ServiceStateEvent", event.encode_to_vec())
        }
        What::Task(task) => {
            let action = task_event::Action::Start.into();
            ("TaskEvent", TaskEvent { task, action }.encode_to_vec())
        }
        What::Sequence { name, begins, error: why } => {
            let action =
                if begins { sequence_event::Action::Start } else { sequence_event::Action::Stop };
            let event =
                SequenceEvent { sequence: name, action: action.into(), error: why.map(error) };
            ("SequenceEvent", event.encode_to_vec())
        }
    };
    Event {
        metadata: None,
        data: Some(Any { type_url: format!("talos/runtime/machine.{name}"), value }),
        id: id(happening.number),
        actor_id: happening.actor,
    }
}

/// The number of an event in the form that Talos gives it: twenty digits of five bits.
fn id(number: u64) -> String {
    let digit = |place: u32| {
        let bits = if place < 13 { (number >> (5 * place)) & 31 } else { 0 };
        char::from(DIGITS[usize::try_from(bits).unwrap_or(0)])
    };
    // The last digit carries one bit alone, so counting begins at the one before.
    (0..19).rev().map(digit).chain(['0']).collect()
}

fn status_event(status: &Value) -> MachineStatusEvent {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let stage = text(&status["stage"]).to_uppercase().replace('-', "_");
    let unmet = status["status"]["unmetConditions"].as_array().into_iter().flatten();
    let condition = |unmet: &Value| UnmetCondition {
        name: text(&unmet["name"]),
        reason: text(&unmet["reason"]),
    };
    MachineStatusEvent {
        stage: MachineStage::from_str_name(&stage).unwrap_or_default().into(),
        status: Some(MachineStatus {
            ready: status["status"]["ready"].as_bool().unwrap_or(false),
            unmet_conditions: unmet.map(condition).collect(),
        }),
    }
}

#[tonic::async_trait]
impl ClusterService for Caller {
    type HealthCheckStream = Answers<HealthCheckProgress>;

    /// Says of one check after the other that it is waited for, what is missing, and that it is so.
    async fn health_check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Answers<HealthCheckProgress>>, Status> {
        let request = request.into_inner();
        let wait = request.wait_timeout.map_or(0, |timeout| timeout.seconds);
        let info = request.cluster_info.unwrap_or_default();
        let control_planes = addresses(&info.control_plane_nodes)?;
        let workers = addresses(&info.worker_nodes)?;
        let call = Call::Health { control_planes, workers };
        // The first look is made at once, so that a refusal is the answer to the call itself.
        let Reply::Health { nodes, .. } = self.put(call.clone()).await? else {
            return Err(mixed_up());
        };
        let nodes: Vec<String> = nodes.iter().map(|node| format!("\"{node}\"")).collect();
        let wait = Duration::from_secs(u64::try_from(wait).unwrap_or(0));
        if wait.is_zero() {
            return Err(Status::deadline_exceeded("context deadline exceeded"));
        }
        let state = Checking {
            caller: self.clone(),
            call,
            deadline: Instant::now() + wait,
            check: 0,
            first: Some(format!("discovered nodes: [{}]", nodes.join(" "))),
            said: None,
            ended: false,
        };
        let lines = stream::unfold(state, |mut state| async move {
            let line = state.next().await?;
            Some((line, state))
        });
        Ok(Response::new(lines.boxed()))
    }
}

fn addresses(nodes: &[String]) -> Result<Vec<Ipv4Addr>, Status> {
    let parse = |node: &String| {
        node.parse().map_err(|_| {
            Status::invalid_argument(format!("ParseAddr(\"{node}\"): unable to parse IP"))
        })
    };
    nodes.iter().map(parse).collect()
}

/// A health check on its way.
struct Checking {
    caller: Caller,
    call: Call,
    deadline: Instant,
    /// Which check it is at.
    check: usize,
    /// What is to be said first of all.
    first: Option<String>,
    /// What was said last.
    said: Option<String>,
    ended: bool,
}

impl Checking {
    async fn next(&mut self) -> Option<Result<HealthCheckProgress, Status>> {
        if self.ended {
            return None;
        }
        let say = |message: String| Some(Ok(HealthCheckProgress { metadata: None, message }));
        if let Some(first) = self.first.take() {
            return say(first);
        }
        loop {
            let changed = self.caller.door.changed();
            let checks = match self.caller.put(self.call.clone()).await {
                Ok(Reply::Health { checks, .. }) => checks,
                Ok(_) => return Some(self.end(mixed_up())),
                Err(status) => return Some(self.end(status)),
            };
            let check = checks.get(self.check)?;
            let lead = format!("waiting for {}: ", check.name);
            let begun = self.said.as_ref().is_some_and(|said| said.starts_with(&lead));
            let line = match &check.missing {
                _ if !begun => format!("{lead}..."),
                None => {
                    self.check += 1;
                    return say(format!("{lead}OK"));
                }
                Some(missing) => format!("{lead}{missing}"),
            };
            if self.said.as_ref() != Some(&line) {
                self.said = Some(line.clone());
                return say(line);
            }
            if tokio::time::timeout_at(self.deadline, changed).await.is_err() {
                let status = Status::deadline_exceeded("context deadline exceeded");
                return Some(self.end(status));
            }
        }
    }

    fn end(&mut self, status: Status) -> Result<HealthCheckProgress, Status> {
        self.ended = true;
        Err(status)
    }
}
