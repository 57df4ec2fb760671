//! What is known of a castle without looking at the world: each layer, what is open, and who is at work.

use std::collections::BTreeMap;

use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::time::{Moment, length};
use castle_model::{CastleName, Change, Failure, Incarnation, LayerName, StepDecl, StepId, Verb};
use serde::Serialize;

use crate::live::{self, Live};
use crate::report::explained;
use crate::style::{Style, Tone, table};

/// What the records say of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Known {
    /// It had said that it would act, and nobody has seen the end.
    Intended {
        /// What it would do.
        verb: Verb,
        /// What it had begun elsewhere.
        task: Option<String>,
        /// When.
        at: Moment,
    },
    /// Done and proven then.
    Done {
        /// What it did.
        change: Change,
        /// What proved it.
        proof: String,
        /// When.
        at: Moment,
    },
    /// It failed.
    Failed {
        /// Why.
        failure: Failure,
        /// When.
        at: Moment,
    },
    /// What it made was removed.
    Undone {
        /// When.
        at: Moment,
    },
}

/// The last run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LastRun {
    /// Which way it went.
    pub direction: Direction,
    /// When it began.
    pub started: Moment,
    /// When and how it ended; none if it still runs or was killed.
    pub ended: Option<(Moment, RunOutcome)>,
}

/// All that is known of a castle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Standing {
    /// Whose.
    pub castle: CastleName,
    /// Whether its world is the rehearsal's.
    pub rehearsal: bool,
    /// The life it is in.
    pub incarnation: Option<Incarnation>,
    /// The last run.
    pub last_run: Option<LastRun>,
    /// Who works on it now, in words.
    pub holder: Option<String>,
    /// The steps that something is known of.
    pub steps: BTreeMap<StepId, Known>,
    /// The run that is going on, as its events tell it.
    pub now: Option<Live>,
    /// A rebirth that is not over, in words.
    pub rebirth: Option<String>,
    /// Layers whose journal is damaged, and how.
    pub damaged: BTreeMap<LayerName, String>,
    /// What makes all of the journals unreadable, if anything does.
    pub damage: Option<String>,
}

/// The castle as text, for a moment `now`.
#[must_use]
pub fn text(standing: &Standing, decls: &[StepDecl], now: Moment, style: Style) -> String {
    let mut text = headline(standing, style);
    text.push_str(&run_line(standing, now, style));
    if let Some(rebirth) = &standing.rebirth {
        text.push_str(&style.hang("", rebirth, Some(Tone::Wait)));
        text.push('\n');
    }
    if let Some(live) = &standing.now {
        text.push_str(&live::text(live, style));
    }
    text.push('\n');
    let mut rows = vec![["layer", "proven", "open", ""].map(str::to_owned).to_vec()];
    for layer in layers(decls) {
        rows.push(layer_row(standing, decls, layer));
    }
    text.push_str(&table(&rows, &[true, false, false, true]));
    for decl in decls {
        text.push_str(&trouble(decl, standing.steps.get(&decl.id), now, style));
    }
    for (layer, why) in &standing.damaged {
        text.push('\n');
        text.push_str(&style.hang(&format!("damaged: {layer}: "), why, Some(Tone::Bad)));
        text.push('\n');
    }
    if let Some(why) = &standing.damage {
        text.push('\n');
        text.push_str(&style.hang("damaged: ", why, Some(Tone::Bad)));
        text.push('\n');
    }
    if standing.damage.is_some() || !standing.damaged.is_empty() {
        let cure = "`castle up` and `castle down` set it aside and read the world instead";
        text.push_str(&style.hang("         ", cure, None));
        text.push('\n');
    }
    text
}

fn headline(standing: &Standing, style: Style) -> String {
    let world = if standing.rehearsal { " (a rehearsal)" } else { "" };
    let life = match &standing.incarnation {
        Some(id) => format!("incarnation {id}"),
        // The life is written down in the journal of the secrets.
        None if standing.damage.is_some()
            || standing.damaged.keys().any(|l| l.as_str() == "secrets") =>
        {
            "its life is not known here".to_owned()
        }
        None => "not born".to_owned(),
    };
    let text = format!("castle {}{world}: {life}", standing.castle);
    style.hang("", &text, Some(Tone::Title)) + "\n"
}

fn run_line(standing: &Standing, now: Moment, style: Style) -> String {
    let Some(run) = &standing.last_run else {
        return style.hang("", "no run is recorded", None) + "\n";
    };
    let way = match run.direction {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    let text = match (&run.ended, &standing.holder) {
        (Some((ended, outcome)), _) => {
            let how = match outcome {
                RunOutcome::Done => "done",
                RunOutcome::Failed => "failed",
                RunOutcome::Interrupted => "interrupted",
            };
            let took = length(ended.since(run.started));
            format!("last run: {way}, {how} in {took}, {} ago", length(now.since(*ended)))
        }
        (None, Some(_)) => {
            format!("last run: {way}, under way for {}", length(now.since(run.started)))
        }
        (None, None) => format!(
            "last run: {way}, begun {} ago and killed; run the same command again, it goes on",
            length(now.since(run.started))
        ),
    };
    // What is going on has a line of its own, with more in it.
    let mut text = match standing.now {
        Some(_) => String::new(),
        None => style.hang("", &text, None) + "\n",
    };
    if let Some(holder) = &standing.holder {
        text.push_str(&style.hang("at work: ", holder, Some(Tone::Wait)));
        text.push('\n');
    }
    text
}

/// The layers in the order of their first step.
fn layers(decls: &[StepDecl]) -> Vec<&LayerName> {
    let mut layers = Vec::new();
    for decl in decls {
        if !layers.contains(&&decl.layer) {
            layers.push(&decl.layer);
        }
    }
    layers
}

fn layer_row(standing: &Standing, decls: &[StepDecl], layer: &LayerName) -> Vec<String> {
    let of_layer: Vec<&StepDecl> = decls.iter().filter(|decl| decl.layer == *layer).collect();
    let known = |decl: &&&StepDecl| standing.steps.get(&decl.id);
    let count = |test: &dyn Fn(&Known) -> bool| {
        of_layer.iter().filter(|decl| known(decl).is_some_and(test)).count()
    };
    let done = count(&|known| matches!(known, Known::Done { .. }));
    let failed = count(&|known| matches!(known, Known::Failed { .. }));
    let intended = count(&|known| matches!(known, Known::Intended { .. }));
    let word = if standing.damaged.contains_key(layer) {
        "journal damaged"
    } else if failed > 0 {
        "failed"
    } else if done == of_layer.len() {
        "stands"
    } else if intended > 0 {
        "under way"
    } else if done > 0 {
        "begun"
    } else {
        "absent"
    };
    let open = of_layer.len() - done;
    vec![layer.to_string(), format!("{done}/{}", of_layer.len()), open.to_string(), word.to_owned()]
}

fn trouble(decl: &StepDecl, known: Option<&Known>, now: Moment, style: Style) -> String {
    match known {
        Some(Known::Failed { failure, at }) => {
            let head = format!("{}, {} ago ({})", decl.id, length(now.since(*at)), failure.class);
            let head = style.hang("failed: ", &head, Some(Tone::Bad));
            format!("\n{head}\n{}", explained(failure, style))
        }
        Some(Known::Intended { verb, task, at }) => {
            let task = task.as_ref().map(|task| format!(", as {task}")).unwrap_or_default();
            let ago = length(now.since(*at));
            let verb = verb.word_for(decl.wording);
            let text = format!("{}: {verb} {}, begun {ago} ago{task}", decl.id, decl.title);
            format!("\n{}\n", style.hang("open: ", &text, Some(Tone::Wait)))
        }
        // What Flux builds is not castle's, so its layer alone does not tell how it stood.
        Some(Known::Done { proof, at, .. }) if decl.id == StepId::new("gitops", "convergence") => {
            let text = format!("{proof}, {} ago", length(now.since(*at)));
            format!("\n{}\n", style.hang("units: ", &text, None))
        }
        Some(Known::Done { .. } | Known::Undone { .. }) | None => String::new(),
    }
}

#[cfg(test)]
mod tests;
