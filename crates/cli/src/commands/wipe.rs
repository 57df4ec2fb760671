//! `castle wipe`: the emergency when even the state is gone. Lists first, and goes by number *and* owner.

use std::collections::BTreeSet;
use std::sync::Arc;

use castle_engine::{Graph, Outputs};
use castle_journal::{Journals, Records, StepState};
use castle_layers::audit::platform_keys;
use castle_model::audit::{Item, Kind};
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::{Audit, Failure, StepId, VmId};
use castle_platforms::ids::secrets_escrow;
use castle_platforms::proxmox::image_id;
use castle_platforms::proxmox::wipe::{Fate, Hit, add, list};
use castle_view::audit::{self, Shown};

use crate::answer;
use crate::castle;
use crate::clearing::{Clearing, agreed, exit_of, show};
use crate::commands::rebirth;
use crate::exit::{Exit, Problem};
use crate::face::style;
use crate::output;
use crate::session::{Consent, Session};

/// Lists, asks, removes, looks again. With `yes`, somebody has agreed beforehand; the numbers are those of guests that go
/// although nothing proves them to be the castle's.
pub(crate) async fn go(
    session: &Session<'_>,
    (yes, forced): (bool, &[u32]),
    journals: &mut Journals,
) -> Result<Exit, Problem> {
    let Session { settings, castle, world, access, json, .. } = session;
    let clearing = Clearing { session, go_on: format!("{} wipe", castle.command) };
    let failed = |failure: Failure| Problem::failure(&failure);
    let keys = platform_keys(&castle.spec, world, access).await.map_err(failed)?;
    let forced: BTreeSet<VmId> = forced.iter().copied().map(VmId).collect();
    let hits = list(&castle.spec, world, &keys, &forced).await.map_err(failed)?;
    let before = clearing.audit().await?;
    show_list(session, &hits, &before);
    let nothing = !hits.iter().any(Hit::goes) && beside(&before).next().is_none();
    if nothing && is_reset(journals.records()) {
        let name = &castle.spec.name;
        output::say(&format!("there is nothing of castle `{name}` to wipe: nothing was done"));
        return Ok(exit_of(RunOutcome::Done, &before));
    }
    agreed(castle, settings, yes)?;
    rebirth::make_way(session, Direction::Down, Consent::Given, journals).await?;
    let graph = graph(session, &hits, journals.records())?;
    let outputs = Arc::<Outputs>::default();
    let surveyor = clearing.surveyor(&graph, journals.records(), &outputs);
    let survey = surveyor.look_for_leftovers().await;
    let plan = castle_plan::down(&castle.spec.name, graph.decls(), &survey)
        .map_err(|e| Problem::new(Exit::Failed, "the steps do not fit together").because(&e))?;
    let report = clearing.run(&graph, &plan, outputs, journals).await?;
    let after = clearing.audit().await?;
    show(&after, *json, settings);
    Ok(exit_of(report.outcome, &after))
}

/// The steps: each guest that goes, what all machines share, and whatever our journals still know, which is forgotten
/// once the guests are gone.
fn graph(session: &Session<'_>, hits: &[Hit], records: &Records) -> Result<Graph, Problem> {
    let Session { castle, world, access, .. } = session;
    let shared = [image_id(), secrets_escrow()];
    let whole = castle::graph(&castle.spec, world, access.clone())?;
    let mut graph =
        whole.part(|decl| (decl.always || shared.contains(&decl.id)).then(|| decl.clone()));
    let going: BTreeSet<StepId> = hits.iter().filter(|hit| hit.goes()).map(Hit::id).collect();
    let known: BTreeSet<StepId> = graph.decls().iter().map(|decl| decl.id.clone()).collect();
    let recorded = records.steps.keys().filter(|id| !known.contains(id) && !going.contains(id));
    let forgotten: Vec<StepId> = recorded.cloned().collect();
    add(&mut graph, &castle.spec, world, hits, &forgotten);
    graph
        .check()
        .map_err(|e| Problem::new(Exit::Failed, "the steps do not fit together").because(&e))?;
    Ok(graph)
}

fn show_list(session: &Session<'_>, hits: &[Hit], before: &Audit) {
    let beside = beside(before);
    if session.json {
        let beside: Vec<&Item> = beside.collect();
        let list = serde_json::json!({ "castle": before.castle, "guests": hits, "beside": beside });
        output::data(&answer::line("wipe", &list));
        return;
    }
    let shown: Vec<Shown> = hits.iter().map(shown).collect();
    let page = audit::list(&shown, style(session.settings));
    if !page.is_empty() {
        output::data(&page);
    }
    for item in beside {
        output::data(&format!("beside them would go: {}, {}", item.what, item.place));
    }
}

/// What goes beside the guests: the image, and what is in escrow.
fn beside(before: &Audit) -> impl Iterator<Item = &Item> {
    before.amiss().filter(|item| matches!(item.kind, Kind::Image | Kind::Escrow))
}

/// Whether our journals know nothing that a wipe would have to reset.
fn is_reset(records: &Records) -> bool {
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
