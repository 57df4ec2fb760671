//! `platform/keys`: the kubeconfig and the talosconfig, kept where the castle's own secrets are, once they are true.
//!
//! Compared first, written only if something differs, and read back. What is there and is not ours stays.

use std::collections::BTreeMap;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Step};
use castle_model::{Change, Class, Failure, Observed, Secret, Verb};

use super::Realm;
use super::access::{KUBECONFIG, PROVEN, TALOSCONFIG, prove};
use crate::escrow::ESCROW;
use crate::handed::LIFE;
use crate::ways::{Standing, Way, date};

/// The step.
pub(super) struct Keys(pub(super) Realm);

/// How each entry stands.
type Found = [(Way, Standing); 2];

impl Keys {
    /// Judges both entries; one that is not ours ends it.
    fn judge(&self, cx: &Context, kept: &BTreeMap<String, Secret>) -> Result<Found, Failure> {
        let life = cx.outputs().get(&LIFE)?;
        let (spec, world) = (self.0.spec(), &self.0.world);
        let found =
            Way::ALL.map(|way| (way, way.judge(spec, Some(&life), world, kept.get(way.key()))));
        for (way, standing) in &found {
            if let Standing::Foreign { why } = standing {
                return Err(way.conflict(&cx.outputs().get(&ESCROW)?.0.place(), why));
            }
        }
        Ok(found)
    }

    /// The text of an entry as this run would keep it.
    fn text(&self, cx: &Context, way: Way) -> Result<Secret, Failure> {
        let outputs = cx.outputs();
        let text = outputs.get(match way {
            Way::Kubernetes => &KUBECONFIG,
            Way::Talos => &TALOSCONFIG,
        })?;
        Ok(outputs.get(&LIFE)?.marked(&self.0.spec().name, &text))
    }

    /// Both entries in words, if both are right, or would be at another time of day where that is enough.
    fn proof(found: &Found, place: &str, time: Time) -> Option<String> {
        let until = |(way, standing): &(Way, Standing)| match standing {
            Standing::Untimely { .. } if time == Time::Matters => None,
            Standing::Right { until } | Standing::Untimely { until, .. } => {
                Some(format!("{} until {}", way.key(), date(*until)))
            }
            _ => None,
        };
        let [kube, talos] = [until(&found[0])?, until(&found[1])?];
        Some(format!("{kube}, {talos}, in {place}"))
    }
}

/// Whether the time of day counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Time {
    Matters,
    /// What this run has just written is right, whatever the clock here has been set to since.
    MayHaveJumped,
}

/// In what an entry differs, in words.
fn difference((way, standing): &(Way, Standing)) -> Option<String> {
    let why = match standing {
        Standing::Right { .. } => return None,
        Standing::Absent => "it is not there",
        Standing::Unmarked => "it leads to this castle, but does not say that it belongs to it",
        Standing::Untimely { why, .. } | Standing::Stale { why } | Standing::Foreign { why } => why,
    };
    Some(format!("{}: {why}", way.key()))
}

/// What its gate proves.
pub(super) const PROVES: &str = "the kubeconfig and the talosconfig are kept and read back";

#[async_trait]
impl Step for Keys {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let keeper = &cx.outputs().get(&ESCROW)?.0;
        let found = self.judge(cx, &keeper.kept().await?)?;
        if let Some(proof) = Self::proof(&found, &keeper.place(), Time::Matters) {
            return Ok(Observed::right(proof));
        }
        if found.iter().all(|(_, standing)| *standing == Standing::Absent) {
            return Ok(Observed::Absent);
        }
        let differences: Vec<String> = found.iter().filter_map(difference).collect();
        Ok(Observed::wrong(differences.join("; ")))
    }

    async fn act(&self, cx: &Context, verb: Verb) -> Result<Acted, Failure> {
        // Only what has opened the castle in this run is kept: the first run's gate has seen that, a later one not yet.
        if cx.outputs().get(&PROVEN).is_err() {
            cx.outputs().put(&PROVEN, prove(&self.0, cx).await?);
        }
        let escrow = cx.outputs().get(&ESCROW)?;
        // Somebody may have written since this run first looked.
        let found = self.judge(cx, &escrow.0.kept_now().await?)?;
        let mut entries = Vec::new();
        for (way, standing) in &found {
            if matches!(standing, Standing::Right { .. }) {
                continue;
            }
            if *standing == Standing::Unmarked {
                let (key, place) = (way.key(), escrow.0.place());
                cx.notice(format!("{key} in {place} led to this castle without saying whose it is; it is written over"));
            }
            entries.push((way.key(), self.text(cx, *way)?));
        }
        if entries.is_empty() {
            return Ok(Acted::of(Change::Unchanged));
        }
        let entries: Vec<(&str, &Secret)> =
            entries.iter().map(|(key, text)| (*key, text)).collect();
        escrow.keep(&cx.outputs().get(&LIFE)?.incarnation, &entries).await?;
        Ok(Acted::of(if verb == Verb::Create { Change::Created } else { Change::Updated }))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let keeper = &cx.outputs().get(&ESCROW)?.0;
        let found = self.judge(cx, &keeper.kept().await?)?;
        let differences: Vec<String> = found.iter().filter_map(difference).collect();
        let differences = differences.join("; ");
        let Some(proof) = Self::proof(&found, &keeper.place(), Time::MayHaveJumped) else {
            return Err(Failure::new(Class::Conflict, "keep the ways in", differences)
                .hint("somebody else may have written them, too: look at them and run again"));
        };
        if !differences.is_empty() {
            cx.notice(format!(
                "{differences}: the clock of this computer was set since they were made; compare it (`date -u`) with the right time"
            ));
        }
        Ok(proof)
    }
}
