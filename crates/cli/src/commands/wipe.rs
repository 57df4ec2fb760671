//! `castle wipe`: the emergency when even the state is gone. Lists first, and goes by number *and* owner.

use std::collections::BTreeSet;
use std::sync::Arc;

use castle_engine::Outputs;
use castle_journal::Journals;
use castle_layers::wipe::Found;
use castle_model::audit::Item;
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::{Audit, VmId};
use castle_platforms::proxmox::wipe::{Fate, Hit};
use castle_view::audit::{self, Shown};

use crate::answer;
use crate::clearing::{Clearing, agreed, exit_of, show};
use crate::commands::rebirth;
use crate::exit::{Exit, Problem};
use crate::face::style;
use crate::output;
use crate::session::{Consent, Session};
use crate::settings::Stream;

/// Lists, asks, removes, looks again. With `yes`, somebody has agreed beforehand; the numbers are those of guests that go
/// although nothing proves them to be the castle's.
pub(crate) async fn go(
    session: &Session<'_>,
    (yes, forced): (bool, &[u32]),
    journals: &mut Journals,
) -> Result<Exit, Problem> {
    let Session { settings, castle, world, access, .. } = session;
    let clearing = Clearing { session, go_on: format!("{} wipe", castle.command), whole: true };
    let forced: BTreeSet<VmId> = forced.iter().copied().map(VmId).collect();
    let mut told = String::new();
    let waits = |what: &str| {
        if told != what {
            output::talk(&format!("waiting for {what}"));
            what.clone_into(&mut told);
        }
    };
    let found = Found::look(&castle.spec, world, access, &forced, waits).await;
    let found = found.map_err(|failure| Problem::failure(&failure))?;
    check_forced(&forced, &found)?;
    show_list(session, &found);
    if found.is_nothing() && journals.records().is_reset() {
        return Ok(nothing(session, &found.before));
    }
    agreed(castle, settings, yes)?;
    rebirth::make_way(session, Direction::Down, Consent::Given, journals).await?;
    let misfit = |e| Problem::new(Exit::Failed, "the steps do not fit together").because(&e);
    let spec = Arc::new(castle.spec.clone());
    let graph = found.graph(&spec, world, access, journals.records().steps.keys());
    graph.check().map_err(misfit)?;
    let outputs = Arc::<Outputs>::default();
    let surveyor = clearing.surveyor(&graph, journals.records(), &outputs);
    let survey = surveyor.look_for_leftovers().await;
    let plan = castle_plan::down(&castle.spec.name, graph.decls(), &survey).map_err(misfit)?;
    clearing.run(&graph, &plan, outputs, journals).await
}

/// Where nothing can go: what is left all the same is shown, each thing with what to do about it.
fn nothing(session: &Session<'_>, before: &Audit) -> Exit {
    let is_left = before.amiss().next().is_some();
    let what = if is_left { "that a wipe removes" } else { "to wipe" };
    output::say(&format!(
        "there is nothing of castle `{}` {what}: nothing was done",
        before.castle
    ));
    if is_left {
        show(before, session.json, session.settings);
    }
    exit_of(RunOutcome::Done, is_left)
}

/// Whoever forces a number means a guest of the list: anything else is a slip of the hand.
fn check_forced(forced: &BTreeSet<VmId>, found: &Found) -> Result<(), Problem> {
    let listed = |vmid: &&VmId| found.hits.iter().any(|hit| hit.vmid == **vmid);
    let Some(unknown) = forced.iter().find(|vmid| !listed(vmid)) else { return Ok(()) };
    let what = format!(
        "--force-foreign {unknown}: no guest of that number is in the castle's range or bears its tag; nothing was done"
    );
    Err(Problem::usage(what)
        .hint("it is for guests that the list shows; anything else is for Proxmox itself"))
}

fn show_list(session: &Session<'_>, found: &Found) {
    let (hits, before, beside) = (&found.hits, &found.before, found.beside());
    if session.json {
        let beside: Vec<&Item> = beside.collect();
        let list = serde_json::json!({ "castle": before.castle, "guests": hits, "beside": beside });
        output::data(&answer::line("wipe", &list));
        return;
    }
    let shown: Vec<Shown> = hits.iter().map(shown).collect();
    let page = audit::list(&shown, style(session.settings, Stream::Data));
    if !page.is_empty() {
        output::page(&page);
    }
    for item in beside {
        output::page(&format!("beside them would go: {}, {}", item.what, item.place));
    }
    if found.keeps() {
        output::page(
            "the image and what is kept in escrow stay, because a guest does that is this castle's, or may be",
        );
    }
}

fn shown(hit: &Hit) -> Shown {
    Shown {
        what: hit.what.clone(),
        node: hit.node.clone(),
        tags: hit.tags.clone(),
        owner: hit.owner.clone(),
        disks: hit.disks.clone(),
        data: hit.data.clone(),
        spared: hit.spared.clone(),
        forced: hit.fate == Fate::Forced,
        stays: match &hit.fate {
            Fate::Stays { why } => Some(why.clone()),
            Fate::Goes | Fate::Forced => None,
        },
    }
}
