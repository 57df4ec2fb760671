//! `castle wipe`: the emergency when even the state is gone. Lists first, and goes by number *and* owner.

use std::collections::BTreeSet;
use std::sync::Arc;

use castle_engine::{Graph, Outputs};
use castle_journal::{Journals, Records, StepState};
use castle_layers::audit::platform_keys;
use castle_layers::secrets::source::Access;
use castle_model::audit::{Item, Kind};
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::{Audit, Failure, StepId, VmId};
use castle_platforms::ids::secrets_escrow;
use castle_platforms::proxmox::image_id;
use castle_platforms::proxmox::wipe::{Fate, Hit, add, list};
use castle_view::audit::{self, Shown};
use castle_wire::World;

use crate::args::{Everywhere, WipeArgs};
use crate::castle::{self, Castle, Place};
use crate::clearing::{Clearing, agreed, exit_of};
use crate::exit::{Exit, Problem};
use crate::face::style;
use crate::faults;
use crate::output;
use crate::project::Which;
use crate::real;
use crate::rehearsal::{self, Rehearsal};
use crate::settings::Settings;
use crate::state;

/// Wipes a castle.
pub(crate) fn run(
    which: &Which,
    place: Place,
    args: &WipeArgs,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    match place {
        Place::Real => for_real(which, args, everywhere, settings),
        Place::Rehearsal => rehearsed(which, args, everywhere, settings),
    }
}

fn for_real(
    which: &Which,
    args: &WipeArgs,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    real::refuse_pace(&args.pace)?;
    let castle = Castle::find(which, Place::Real, everywhere, settings)?;
    let access = real::access(&castle, settings)?;
    let world = real::world(settings)?;
    if !everywhere.json {
        output::say(&real::announce(&castle));
    }
    let mut root = state::hold(&castle, settings, Direction::Down)?;
    let wipe = Wipe { settings, castle: &castle, rehearsal: false, json: everywhere.json, args };
    real::runtime()?.block_on(wipe.go((&world, &access), root.journals_mut()))
}

fn rehearsed(
    which: &Which,
    args: &WipeArgs,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let mut rehearsal = Rehearsal::find(which, everywhere, Some(&args.pace), settings)?;
    let json = everywhere.json;
    let rules = faults::rules(&args.pace.faults, &rehearsal.castle.spec, json)?;
    let mut root = state::hold(&rehearsal.castle, settings, Direction::Down)?;
    rehearsal::runtime()?.block_on(async {
        let host = rehearsal.open("wipe")?;
        host.spawn_driver();
        faults::arm(&host, rules, json);
        let (world, access) = (host.world(), rehearsal.access(&host));
        let wipe = Wipe { settings, castle: &rehearsal.castle, rehearsal: true, json, args };
        let braked = async {
            match rehearsal.speed {
                None => std::future::pending().await,
                Some(speed) => castle_rehearsal::brake::hold(speed).await,
            }
        };
        let exit = tokio::select! {
            biased;
            error = host.trouble() => return Err(rehearsal.unusable(&error)),
            exit = wipe.go((&world, &access), root.journals_mut()) => exit,
            () = braked => Ok(Exit::Interrupted),
        };
        faults::close(&host, json);
        host.close().map_err(|e| {
            Problem::new(Exit::Failed, "the rehearsal's datacenter could not be saved").because(&e)
        })?;
        exit
    })
}

/// One wipe.
pub(crate) struct Wipe<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) castle: &'a Castle,
    pub(crate) rehearsal: bool,
    pub(crate) json: bool,
    pub(crate) args: &'a WipeArgs,
}

impl Wipe<'_> {
    /// Lists, asks, removes, looks again.
    pub(crate) async fn go(
        &self,
        (world, access): (&World, &Access),
        journals: &mut Journals,
    ) -> Result<Exit, Problem> {
        let (settings, castle, json) = (self.settings, self.castle, self.json);
        let (rehearsal, go_on) = (self.rehearsal, format!("{} wipe", castle.command));
        let clearing = Clearing { settings, castle, world, access, rehearsal, json, go_on };
        let failed = |failure: Failure| Problem::failure(&failure);
        let keys = platform_keys(&castle.spec, world, access).await.map_err(failed)?;
        let forced: BTreeSet<VmId> = self.args.force_foreign.iter().copied().map(VmId).collect();
        let hits = list(&castle.spec, world, &keys, &forced).await.map_err(failed)?;
        let before = clearing.audit().await?;
        self.show(&hits, &before);
        let beside = beside(&before).next().is_some();
        if !hits.iter().any(Hit::goes) && !beside && is_empty(journals.records()) {
            let name = &castle.spec.name;
            output::say(&format!("there is nothing of castle `{name}` to wipe: nothing was done"));
            return Ok(exit_of(RunOutcome::Done, &before));
        }
        agreed(castle, settings, self.args.yes)?;
        let graph = self.graph((world, access), &hits, journals.records())?;
        let outputs = Arc::<Outputs>::default();
        let surveyor = clearing.surveyor(&graph, journals.records(), &outputs);
        let survey = surveyor.look_for_leftovers().await;
        let plan = castle_plan::down(&castle.spec.name, graph.decls(), &survey).map_err(|e| {
            Problem::new(Exit::Failed, "the steps do not fit together").because(&e)
        })?;
        let report = clearing.run(&graph, &plan, outputs, journals).await?;
        let after = clearing.audit().await?;
        clearing.show(&after);
        Ok(exit_of(report.outcome, &after))
    }

    /// The steps: each guest that goes, what all machines share, and whatever our journals still know, which is forgotten
    /// once the guests are gone.
    fn graph(
        &self,
        (world, access): (&World, &Access),
        hits: &[Hit],
        records: &Records,
    ) -> Result<Graph, Problem> {
        let whole = castle::graph(&self.castle.spec, world, access.clone())?;
        let shared = [image_id(), secrets_escrow()];
        let mut graph = whole.part(|decl| decl.always || shared.contains(&decl.id));
        let going: BTreeSet<StepId> = hits.iter().filter(|hit| hit.goes()).map(Hit::id).collect();
        let known: BTreeSet<StepId> = graph.decls().iter().map(|decl| decl.id.clone()).collect();
        let forgotten: Vec<StepId> = records
            .steps
            .keys()
            .filter(|id| !known.contains(id) && !going.contains(id))
            .cloned()
            .collect();
        add(&mut graph, &self.castle.spec, world, hits, &forgotten);
        graph
            .check()
            .map_err(|e| Problem::new(Exit::Failed, "the steps do not fit together").because(&e))?;
        Ok(graph)
    }

    fn show(&self, hits: &[Hit], before: &Audit) {
        if self.json {
            let beside: Vec<_> = beside(before).collect();
            let list = serde_json::json!({ "castle": before.castle, "guests": hits, "beside": beside });
            output::data(&list.to_string());
            return;
        }
        let shown: Vec<Shown> = hits.iter().map(shown).collect();
        let page = audit::list(&shown, style(self.settings));
        if !page.is_empty() {
            output::data(&page);
        }
        for item in beside(before) {
            output::data(&format!("beside them would go: {} on {}", item.what, item.place));
        }
    }
}

/// What goes beside the guests: the image, and what is in escrow.
fn beside(before: &Audit) -> impl Iterator<Item = &Item> {
    before.amiss().filter(|item| matches!(item.kind, Kind::Image | Kind::Escrow))
}

fn is_empty(records: &Records) -> bool {
    let nothing = |state: &StepState| matches!(state, StepState::Absent | StepState::Undone { .. });
    records.incarnation.is_none() && records.steps.values().all(nothing)
}

fn shown(hit: &Hit) -> Shown {
    Shown {
        what: hit.what.clone(),
        node: hit.node.clone(),
        tags: hit.tags.clone(),
        owner: hit.owner.clone(),
        disks: hit.disks.clone(),
        spared: hit.spared.clone(),
        forced: hit.fate == Fate::Forced,
        stays: match &hit.fate {
            Fate::Stays { why } => Some(why.clone()),
            Fate::Goes | Fate::Forced => None,
        },
    }
}
