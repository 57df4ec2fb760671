//! `castle down --layer`: one layer goes with what it made in the cluster, and the others stay.

use std::collections::BTreeSet;
use std::sync::Arc;

use castle_engine::{Graph, Outputs};
use castle_journal::Journals;
use castle_model::plan::Direction;
use castle_model::step::Wording;
use castle_model::{Observed, StepDecl, StepId, Verb};
use castle_plan::Look;
use castle_platforms::ids;

use crate::args::Run;
use crate::castle;
use crate::clearing::{Clearing, agreed};
use crate::commands::rebirth;
use crate::exit::{Exit, Problem};
use crate::output;
use crate::session::{Consent, Session};

/// Removes one layer.
pub(crate) async fn go(
    session: &Session<'_>,
    args: &Run,
    journals: &mut Journals,
) -> Result<Exit, Problem> {
    let layer = args.layer.as_deref().unwrap_or_default();
    if layer == "platform" {
        output::say("the platform carries every other layer: all of the castle goes");
        let consent = Consent::of(args.yes);
        let consent = rebirth::make_way(session, Direction::Down, consent, journals).await?;
        let ended = session.run(Direction::Down, &consent, journals).await?;
        return Ok(ended.exit);
    }
    let Session { castle, world, access, .. } = session;
    let whole = castle::graph(&castle.spec, world, access.clone())?;
    removable(layer, whole.decls())?;
    let go_on = format!("{} down --layer {layer}", castle.command);
    let clearing = Clearing { session, go_on, whole: false };
    let outputs = Arc::<Outputs>::default();
    reach(&clearing, &whole, layer, &outputs, journals).await?;
    let graph = whole.part(|decl| removed(layer, decl));
    let survey = clearing.surveyor(&graph, journals.records(), &outputs).look_for_leftovers().await;
    let plan = castle_plan::down(&castle.spec.name, graph.decls(), &survey)
        .map_err(|e| Problem::new(Exit::Failed, "the steps do not fit together").because(&e))?;
    output::say(&format!("of castle `{}`, the layer {layer} goes alone:", castle.spec.name));
    for step in plan.steps.iter().filter(|step| step.verb == Verb::Remove) {
        output::say(&format!("  {} {}: {}", step.word(), step.decl.title, step.reason));
    }
    if plan.is_quiet() {
        output::say("  nothing of it is there");
    }
    for text in outputs.take_notices() {
        output::say(&format!("  {text}"));
    }
    for dependent in dependents(layer, whole.decls()) {
        output::say(&format!("  {} ({}) stands on it, and stays", dependent.title, dependent.id));
    }
    if !plan.is_quiet() {
        output::say("whatever runs in the cluster and uses it loses it, until `up` brings it back");
        agreed(castle, session.settings, args.yes)?;
    }
    clearing.run(&graph, &plan, outputs, journals).await
}

/// Refuses what can not go alone, and says why.
fn removable(layer: &str, decls: &[StepDecl]) -> Result<(), Problem> {
    let of_layer: Vec<&StepDecl> =
        decls.iter().filter(|decl| decl.layer.as_str() == layer).collect();
    let refused = |why: &str, hint: &str| {
        Err(Problem::refused(format!("the layer {layer} can not go alone: {why}")).hint(hint))
    };
    if of_layer.is_empty() {
        let names: BTreeSet<&str> = decls.iter().map(|decl| decl.layer.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        return Err(Problem::usage(format!("the castle has no layer `{layer}`"))
            .hint(format!("its layers are {}", names.join(", "))));
    }
    if of_layer.iter().any(|decl| decl.wording == Some(Wording::Observe)) {
        return refused(
            "Flux owns it, and castle only looks at it",
            "take it out of the repository",
        );
    }
    match layer {
        "secrets" => refused(
            "what it keeps in escrow opens the machines that stand",
            "it goes with the whole castle: `castle down`",
        ),
        "gitops" => refused(
            "since the handover Flux owns what the cluster hosts, and would take all of that along",
            "`flux uninstall` takes Flux out and leaves what it applied; `castle down` removes all",
        ),
        _ => Ok(()),
    }
}

/// A step of the layer as it goes: its set of objects by the list that is kept of them, the rest with it.
fn removed(layer: &str, decl: &StepDecl) -> Option<StepDecl> {
    if decl.layer.as_str() != layer {
        return None;
    }
    let decl = decl.clone();
    Some(match decl.wording {
        Some(Wording::Set) => decl.undo(),
        _ => decl.contained("what the layer has installed"),
    })
}

/// Steps of other layers that need the layer.
fn dependents<'a>(layer: &str, decls: &'a [StepDecl]) -> Vec<&'a StepDecl> {
    let mut gone: BTreeSet<&StepId> =
        decls.iter().filter(|decl| decl.layer.as_str() == layer).map(|decl| &decl.id).collect();
    let mut found = Vec::new();
    // Declared in the order of their foundations or not: until nothing is added any more.
    loop {
        let next = decls.iter().find(|decl| {
            !gone.contains(&decl.id) && decl.needs.iter().any(|need| gone.contains(need))
        });
        let Some(next) = next else { return found };
        gone.insert(&next.id);
        found.push(next);
    }
}

/// Looks at everything below the layer, so that its steps have the way into the cluster.
async fn reach(
    clearing: &Clearing<'_>,
    whole: &Graph,
    layer: &str,
    outputs: &Arc<Outputs>,
    journals: &Journals,
) -> Result<(), Problem> {
    let below = below(layer, whole.decls());
    let graph = whole.part(|decl| below.contains(&decl.id).then(|| decl.clone()));
    let seen = clearing.surveyor(&graph, journals.records(), outputs).look().await;
    let why = match seen.get(&ids::access()) {
        Some(Look::Seen(Observed::Right { .. })) => return Ok(()),
        Some(Look::Failed(failure)) => failure.to_string(),
        Some(Look::After(need)) => match seen.get(need) {
            Some(Look::Failed(failure)) => failure.to_string(),
            _ => format!("{need} is not as it should be"),
        },
        _ => "there is no way into it".to_owned(),
    };
    let mut problem = Problem::refused(format!(
        "the layer {layer} lives in the cluster, and the cluster can not be reached"
    ));
    problem.causes.push(why);
    let command = &clearing.session.castle.command;
    Err(problem.hint(format!(
        "`{command} down` razes the whole castle without it; `{command} up` mends it"
    )))
}

/// Everything that the steps of a layer need, and what gives the way into the cluster.
fn below(layer: &str, decls: &[StepDecl]) -> BTreeSet<StepId> {
    let mut wanted: Vec<StepId> = vec![ids::access()];
    for decl in decls.iter().filter(|decl| decl.layer.as_str() == layer) {
        wanted.extend(decl.needs.iter().cloned());
    }
    let mut found = BTreeSet::new();
    while let Some(id) = wanted.pop() {
        let Some(decl) = decls.iter().find(|decl| decl.id == id) else { continue };
        if decl.layer.as_str() != layer && found.insert(id) {
            wanted.extend(decl.needs.iter().cloned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decls() -> Vec<StepDecl> {
        castle::declare(&castle_config::example())
    }

    #[test]
    fn what_stands_on_a_layer_is_found_through_other_layers() {
        let decls = decls();
        let names = |layer: &str| -> Vec<String> {
            dependents(layer, &decls).iter().map(|decl| decl.id.to_string()).collect()
        };
        assert_eq!(names("storage"), [""; 0]);
        let above = ["gitops/token", "gitops/source", "gitops/handover", "gitops/convergence"];
        assert_eq!(names("engine"), above);
        assert!(names("platform").contains(&"storage/volume".to_owned()));
    }

    #[test]
    fn what_can_not_go_alone_says_so() {
        let decls = decls();
        for layer in ["storage", "networking", "engine"] {
            assert!(removable(layer, &decls).is_ok(), "{layer}");
        }
        let refused = |layer: &str| removable(layer, &decls).unwrap_err().to_string();
        assert!(refused("secrets").contains("opens the machines"));
        assert!(refused("gitops").contains("Flux owns"));
        assert!(refused("storge").contains("its layers are"));
    }

    #[test]
    fn the_set_of_a_layer_goes_and_the_rest_with_it() {
        let decls = decls();
        let going: Vec<StepDecl> =
            decls.iter().filter_map(|decl| removed("storage", decl)).collect();
        let explicit = |decl: &&StepDecl| decl.undo == castle_model::UndoKind::Explicit;
        let explicit: Vec<String> =
            going.iter().filter(explicit).map(|decl| decl.id.to_string()).collect();
        assert_eq!((explicit, going.len()), (vec!["storage/longhorn".to_owned()], 2));
        assert!(below("storage", &decls).contains(&ids::secrets_escrow()));
    }
}
