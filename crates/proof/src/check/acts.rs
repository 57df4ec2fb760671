//! Once is enough: nothing that is known to be done is done again, nothing is made twice.

use std::collections::BTreeMap;

use castle_journal::{Records, StepState};
use castle_model::plan::Direction;
use castle_model::{Change, EventKind, StepId};
use castle_rehearsal::trace::Request;

use super::Violation;
use crate::castle::{Command, Run};
use crate::trial::announce::Announcers;

/// How often each changing call succeeded, by what was asked, and of a machine by which.
pub(crate) type Counts = BTreeMap<String, usize>;

/// The step that begins a life.
const LIFE: (&str, &str) = ("secrets", "escrow");

/// Steps whose outcome was in the journal, and that acted again all the same. `alive` says whether a guest bore the mark of
/// this life: one that no machine was made in is begun anew (DESIGN 9.7), and its secrets are written over. Of a process that
/// runs twice, only the first is judged: the second goes the other way.
#[must_use]
pub fn again(known: &Records, alive: bool, ran: &Run) -> Vec<Violation> {
    let first = ran.events.first().map(|event| event.run.clone());
    let ways = ran.ended.as_ref().ok().and_then(|runs| runs.first());
    let direction = match (ran.command, ways) {
        (_, Some((plan, _))) => plan.direction,
        (Command::Up, None) => Direction::Up,
        (Command::Down | Command::Wipe, None) => Direction::Down,
        // Nobody knows which way it would have gone.
        (Command::Rebirth, None) => return Vec::new(),
    };
    let events = ran.events.iter().filter(|event| Some(&event.run) == first.as_ref());
    let life = StepId::new(LIFE.0, LIFE.1);
    let mut found = Vec::new();
    for event in events {
        let EventKind::StepDone { step, change, .. } = &event.kind else { continue };
        if direction == Direction::Up && !alive && *step == life {
            continue;
        }
        let state = known.step(step);
        let again = match direction {
            Direction::Up => {
                matches!(state, StepState::Done { .. })
                    && matches!(change, Change::Created | Change::Updated | Change::Removed)
            }
            Direction::Down => {
                matches!(state, StepState::Undone { .. }) && *change == Change::Removed
            }
        };
        if again {
            let what = format!("{step} was {} in the journal, and {change} again", state.word());
            found.push(Violation::new("no step acts again", what));
        }
    }
    found
}

/// Calls that changed something, by the datacenter's count, where every step that makes such calls was through before the
/// run began. Judged as [`again`] is, but by what was asked and not by what castle tells.
pub(crate) fn asked_again(
    known: &Records,
    alive: bool,
    ran: &Run,
    nodes: &BTreeMap<u32, String>,
) -> Vec<Violation> {
    let up = match ran.command {
        Command::Up => true,
        Command::Down | Command::Wipe => false,
        Command::Rebirth => return Vec::new(),
    };
    let life = StepId::new(LIFE.0, LIFE.1);
    let plans = ran.ended.iter().flatten();
    let all = plans.flat_map(|(plan, _)| plan.steps.iter().map(|planned| &planned.decl.id));
    let mut found = Vec::new();
    for request in ran.requests.iter().filter(|request| request.counted && request.status < 300) {
        let server = request.server.replace('/', " ");
        let call = format!("{server} {} {}", request.method, request.path);
        let announcers = Announcers::of(&call, nodes);
        let through = |state: &StepState| match state {
            StepState::Done { .. } => up,
            StepState::Undone { .. } => !up,
            _ => false,
        };
        // What no machine was made of is begun anew.
        let anew =
            matches!(&announcers, Announcers::Steps(steps) if !alive && steps.contains(&life));
        let open = announcers.any(all.clone(), known, |state| !through(state));
        let any = announcers.any(all.clone(), known, through);
        if any && !open && !anew {
            let what = format!("{call}, and every step that does so was through");
            found.push(Violation::new("no step acts again", what));
        }
    }
    found
}

/// Counts changing calls that succeeded.
pub(crate) fn count(requests: &[Request], counts: &mut Counts) {
    for request in requests.iter().filter(|request| request.counted && request.status < 300) {
        let asked = format!("{} {} {}", request.server, request.method, request.path);
        *counts.entry(asked).or_default() += 1;
    }
}

/// Calls that succeeded more often than without a crash: once more for a step in flight, never for what makes something
/// that would be there twice.
#[must_use]
pub fn doubles(alone: &Counts, together: &Counts) -> Vec<Violation> {
    let mut found = Vec::new();
    for (asked, times) in together {
        let usual = alone.get(asked).copied().unwrap_or_default();
        if makes(asked) && *times > usual {
            let what = format!("{asked} succeeded {times} times, without a crash {usual} times");
            found.push(Violation::new("no second object", what));
        } else if *times > usual + 1 {
            let what = format!("{asked} succeeded {times} times, without a crash {usual} times");
            found.push(Violation::new("in flight acts once more", what));
        }
    }
    found
}

/// Whether a call makes something anew each time. A bootstrap does not: until etcd has written its data a machine takes it
/// again, and that it is never another machine is a law of its own.
fn makes(asked: &str) -> bool {
    asked.starts_with("proxmox POST")
        && (asked.ends_with("/qemu") || asked.ends_with("/download-url"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, path: &str) -> Request {
        Request {
            at: 0,
            server: "proxmox".to_owned(),
            method: method.to_owned(),
            path: path.to_owned(),
            status: 200,
            counted: true,
            took: 0,
        }
    }

    #[test]
    fn a_second_object_and_a_third_try_are_found() {
        let (create, config) = (asked("POST", "/nodes/pve/qemu"), asked("PUT", "/qemu/421/config"));
        let mut alone = Counts::new();
        count(&[create.clone(), config.clone()], &mut alone);
        let mut together = alone.clone();
        count(std::slice::from_ref(&config), &mut together);
        assert_eq!(doubles(&alone, &together), [], "a step in flight may act once more");
        count(&[config, create], &mut together);
        let laws: Vec<&str> = doubles(&alone, &together).iter().map(|found| found.law).collect();
        assert_eq!(laws, ["no second object", "in flight acts once more"]);
    }

    #[test]
    fn a_read_and_a_refusal_do_not_count() {
        let (mut read, mut refused) = (asked("GET", "/nodes"), asked("POST", "/nodes/pve/qemu"));
        (read.counted, refused.status) = (false, 500);
        let mut counts = Counts::new();
        count(&[read, refused], &mut counts);
        assert!(counts.is_empty());
    }
}
