//! What rules and pokes broke in the world of a run: it stands in the way of the next run too, unless somebody mends it.

use castle_model::plan::Direction;
use castle_model::{Event, EventKind, Spec};
use castle_rehearsal::fault::{Names, Rule};
use castle_rehearsal::host::Host;
use castle_rehearsal::trouble::Trouble;

use crate::castle::{Castle, Place};
use crate::faults;
use crate::rehearsal::{SEED, rehearse, runtime};
use crate::state;

/// The rules whose change of the rehearsal's world lasts, without their times, and how each is mended.
#[derive(Debug, Default)]
pub(crate) struct Broken(Vec<(String, Vec<Trouble>)>);

impl Broken {
    /// Takes in an event of the run.
    pub(crate) fn note(&mut self, spec: &Spec, event: &Event) {
        let EventKind::Fault(struck) = &event.kind else { return };
        let Ok(rule) = Rule::parse(&struck.rule, &Names::of(spec)) else { return };
        let timeless = rule.timeless();
        self.0.retain(|(known, _)| *known != timeless);
        if let Some(mending) = rule.mending().filter(|_| !struck.what.ends_with("no more")) {
            self.0.push((timeless, mending.to_vec()));
        }
    }

    /// Without what somebody has mended since. A world that can not be looked at is taken to be as the run left it.
    pub(crate) fn still(mut self, castle: &Castle) -> Self {
        if self.0.is_empty() || castle.place == Place::Real {
            return self;
        }
        if let Ok(runtime) = runtime() {
            runtime.block_on(async {
                let folder = state::datacenter(castle);
                // What is only looked at is never written down: mending it there tells whether there is something to mend.
                if let Ok(host) = Host::look(Some(&folder), &castle.spec, SEED) {
                    self.0.retain(|(_, mending)| host.poke(mending).is_none_or(|it| it.changed));
                }
            });
        }
        self
    }

    /// The commands that mend it.
    pub(crate) fn mends(&self, castle: &Castle) -> Vec<String> {
        let command = rehearse(&castle.command);
        self.0.iter().map(|(rule, _)| faults::mend(rule, &command)).collect()
    }

    /// What to do next after a run that is not finished, as its last words say it too.
    pub(crate) fn go_on(&self, castle: &Castle, direction: Direction) -> Vec<String> {
        let mut commands = self.mends(castle);
        commands.push(state::goes_on(castle, direction));
        commands
    }
}
