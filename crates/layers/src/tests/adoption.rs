//! The state is lost at any point: what is proven ours is adopted, nothing is made twice, and the world ends the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use castle_engine::{Stop, Whole};
use castle_journal::{Journals, MemoryDisk, Records};
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::{Event, EventKind, LayerName, RunId, Spec, StepId};
use castle_rehearsal::host::runtime;
use castle_rehearsal::inventory::Inventory;
use castle_rehearsal::trace::Request;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Access, Rehearsal, sized};

impl Rehearsal {
    /// Raises the castle and is killed right after so many steps have an outcome; whether it came so far.
    async fn killed_after(&mut self, outcomes: usize) -> bool {
        let (world, spec) = (self.host.world(), self.spec.clone());
        let graph = crate::build(&spec, &world, Access::to_infisical(self.identity()));
        let (left, cut) = (AtomicUsize::new(outcomes), Arc::new(Notify::new()));
        let (clock, told) = (world.clock.clone(), cut.clone());
        self.runs += 1;
        let run = RunId::new(format!("run-{}", self.runs));
        let mut face = |event: &Event| {
            if matches!(event.kind, EventKind::StepDone { .. })
                && left.fetch_sub(1, Ordering::Relaxed) == 1
            {
                told.notify_one();
            }
        };
        let whole = Whole {
            castle: &spec.name,
            graph: &graph,
            journals: &mut self.journals,
            deadlines: &spec.deadlines,
            now: Arc::new(move || clock.now()),
            face: &mut face,
            run,
            stop: Stop::default(),
        };
        tokio::select! {
            biased;
            () = cut.notified() => true,
            _ = whole.go(Direction::Up) => false,
        }
    }

    pub(super) fn forget(&mut self) {
        self.journals = Journals::in_memory().unwrap();
    }

    /// What the datacenter knows of itself, but for times, ids and lives.
    pub(super) fn books(&self) -> Value {
        let Inventory {
            proxmox, machines, addresses, etcd, secrets, nodes, workloads, flux, ..
        } = self.host.inventory();
        let guests: Vec<(u32, bool, Option<String>)> =
            proxmox.guests.into_iter().map(|g| (g.vmid, g.running, g.lock)).collect();
        let members: Vec<String> = etcd.into_iter().map(|(name, _)| name).collect();
        let units: Vec<(String, bool)> = flux.into_iter().map(|u| (u.name, u.ready)).collect();
        json!({
            "guests": guests, "volumes": proxmox.volumes, "files": proxmox.files,
            "tasks": proxmox.running_tasks, "machines": machines, "addresses": addresses,
            "members": members, "secrets": secrets, "nodes": nodes, "workloads": workloads,
            "flux": units,
            "etcds": self.host.read(|world| world.talos.etcds_founded()),
        })
    }

    /// What was told since so many events, as far as it holds these words.
    pub(super) fn told_since(&self, events: usize, words: &str) -> Vec<String> {
        let notice = |event: &Event| match &event.kind {
            EventKind::Notice { text, .. } if text.contains(words) => Some(text.clone()),
            _ => None,
        };
        self.events[events..].iter().filter_map(notice).collect()
    }

    /// How often calls were carried out whose path ends so.
    fn calls(&self, ending: &str) -> usize {
        let hits = |r: &&Request| {
            r.counted && r.method == "POST" && r.status < 300 && r.path.ends_with(ending)
        };
        self.host.requests().iter().filter(hits).count()
    }

    /// How often each of those calls was carried out that make something which must be there once.
    fn makings(&self) -> Vec<usize> {
        ["/qemu", "/download-url", "/ApplyConfiguration"].map(|ending| self.calls(ending)).to_vec()
    }

    pub(super) async fn stands_quietly(&mut self, after: &str) {
        let before = self.changes();
        let report = self.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{after}: {:#?}", report.failures);
        assert_eq!(self.changes(), before, "{after}");
    }
}

/// Cuts the first rise after each of these numbers of outcomes, forgets everything, and rises again.
fn lost_after(spec: impl Fn() -> Spec, step: usize) {
    let whole = runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(spec(), 11);
        assert_eq!(rehearsal.up().await.outcome, RunOutcome::Done);
        (rehearsal.books(), rehearsal.makings())
    });
    let mut points = 0;
    for outcomes in (1..).step_by(step) {
        let cut = runtime().unwrap().block_on(async {
            let mut rehearsal = Rehearsal::open(spec(), 11);
            if !rehearsal.killed_after(outcomes).await {
                return false;
            }
            let after = format!("after {outcomes} outcomes");
            rehearsal.forget();
            let report = rehearsal.up().await;
            assert_eq!(report.outcome, RunOutcome::Done, "{after}: {:#?}", report.failures);
            assert_eq!(rehearsal.books(), whole.0, "{after}");
            assert_eq!(rehearsal.makings(), whole.1, "{after}: something was made twice");
            // A bootstrap in flight may be asked for once more, on the same machine; the books tell that one etcd came of it.
            assert!(rehearsal.calls("/Bootstrap") <= 2, "{after}");
            assert!(rehearsal.journals.records().incarnation.is_some(), "{after}");
            rehearsal.stands_quietly(&after).await;
            true
        });
        if !cut {
            break;
        }
        points += 1;
    }
    assert!(points * step > 20, "only {points} points");
}

#[test]
fn a_small_castle_whose_state_is_lost_after_any_step_is_finished_and_nothing_is_made_twice() {
    lost_after(|| sized(1, 1), 1);
}

#[test]
fn a_large_castle_whose_state_is_lost_on_the_way_is_finished_and_nothing_is_made_twice() {
    lost_after(castle_config::example, 7);
}

#[test]
fn a_castle_that_stands_is_adopted_without_a_single_change() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(castle_config::example(), 7);
        assert_eq!(rehearsal.up().await.outcome, RunOutcome::Done);
        let life = rehearsal.journals.records().incarnation.clone();
        assert!(life.is_some());
        rehearsal.forget();
        rehearsal.stands_quietly("without any journal").await;
        assert_eq!(rehearsal.journals.records().incarnation, life, "the life came back");
    });
}

#[test]
fn the_journal_of_any_one_layer_is_rebuilt_from_the_world_and_the_others_stay_as_they_are() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(sized(1, 1), 7);
        let disk = MemoryDisk::new();
        rehearsal.journals = Journals::open(Box::new(disk.clone())).unwrap();
        assert_eq!(rehearsal.up().await.outcome, RunOutcome::Done);
        let before = rehearsal.journals.records().clone();
        for name in ["secrets", "platform", "engine", "networking", "storage", "gitops"] {
            let layer: LayerName = name.parse().unwrap();
            let file = format!("layers/{name}.journal");
            let mut bytes = disk.content(&file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            disk.put(&file, bytes);
            let mut journals = Journals::open(Box::new(disk.clone())).unwrap();
            assert_eq!(journals.problems().keys().collect::<Vec<_>>(), [&layer]);
            journals.set_aside(&layer).unwrap();
            assert_eq!(journals.records().layer(&layer).count(), 0);
            rehearsal.journals = journals;
            rehearsal.stands_quietly(name).await;
            let after = rehearsal.journals.records();
            assert_eq!(after.incarnation, before.incarnation, "{name}");
            // What only an act could tell, such as the fingerprint of a machine before it had a config, is not found again.
            let known = |records: &Records| -> Vec<String> {
                records.steps.iter().map(|(id, state)| format!("{id} {}", state.word())).collect()
            };
            assert_eq!(known(after), known(&before), "{name}");
            // What guards a castle is not forgotten with the journal that told of it.
            for (step, key) in [
                ("secrets/escrow", "incarnation"),
                ("platform/bootstrap", "incarnation"),
                ("platform/vip", "incarnation"),
                ("platform/config/cp-01", "config-digest"),
                ("platform/image", "size"),
            ] {
                let (layer, rest) = step.split_once('/').unwrap();
                let state = after.step(&StepId::new(layer, rest));
                assert!(state.outputs().contains_key(key), "{name}: {step} {state:?}");
            }
        }
    });
}
