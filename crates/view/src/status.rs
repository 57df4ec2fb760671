//! What is known of a castle without looking at the world: each layer, what is open, and who is at work.

use std::collections::BTreeMap;

use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::time::{Moment, length};
use castle_model::{CastleName, Change, Failure, Incarnation, LayerName, StepDecl, StepId, Verb};
use serde::Serialize;

use crate::live::{self, Live};
use crate::report::{explained, next};
use crate::style::{Style, Tone};
use crate::table::table;

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

/// How one layer stands, as the journals know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerStanding {
    /// In a word: `stands`, `under way`, `interrupted`, `begun`, `failed`, `absent`, `journal damaged`.
    pub state: &'static str,
    /// How many of its steps are done and proven.
    pub proven: usize,
    /// How many are not.
    pub open: usize,
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
    /// How long it took, by a clock that never jumps, if that is remembered.
    pub took_ms: Option<u64>,
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
    /// The castle in a word: `not born`, `at work`, `stands`, `begun`, `failed`, `interrupted`, `killed`, `gone`, `damaged`.
    pub state: &'static str,
    /// Each layer that the castle file declares.
    pub layers: BTreeMap<LayerName, LayerStanding>,
    /// How many steps the castle file declares.
    pub declared: usize,
    /// The command that comes next, if one does.
    pub next: Option<String>,
    /// In a rehearsal: the commands that mend what was broken in the last run, to be given before that.
    pub mends: Vec<String>,
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

impl Standing {
    /// Adds what follows from what is known: layers, the castle in a word, and the next command, of those that begin with
    /// `command`.
    #[must_use]
    pub fn judged(mut self, decls: &[StepDecl], command: &str) -> Self {
        self.declared = decls.len();
        self.layers = layers(decls)
            .into_iter()
            .map(|layer| (layer.clone(), layer_standing(&self, decls, layer)))
            .collect();
        self.state = self.word();
        self.next = self.next_command().map(|word| format!("{command} {word}"));
        if self.next.is_none() {
            self.mends.clear();
        }
        self
    }

    fn word(&self) -> &'static str {
        let all = |state: &str| self.layers.values().all(|layer| layer.state == state);
        let ended = self.last_run.as_ref().map(|run| (run.direction, run.ended));
        if self.damage.is_some() || !self.damaged.is_empty() {
            return "damaged";
        }
        if self.holder.is_some() {
            return "at work";
        }
        match ended {
            None => "not born",
            Some((_, None)) => "killed",
            Some((_, Some((_, RunOutcome::Interrupted)))) => "interrupted",
            Some((_, Some((_, RunOutcome::Failed)))) => "failed",
            Some((Direction::Down, _)) => "gone",
            Some(_) if all("stands") => "stands",
            Some(_) => "begun",
        }
    }

    fn next_command(&self) -> Option<&'static str> {
        if self.holder.is_some() {
            return self.now.is_some().then_some("attach");
        }
        if self.rebirth.is_some() {
            return Some("rebirth");
        }
        let down = self.last_run.as_ref().is_some_and(|run| run.direction == Direction::Down);
        match self.state {
            "stands" => None,
            "interrupted" | "killed" | "failed" | "damaged" if down => Some("down"),
            _ => Some("up"),
        }
    }
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
        let LayerStanding { state, proven, open } = layer_standing(standing, decls, layer);
        let of = format!("{proven}/{}", proven + open);
        rows.push(vec![layer.to_string(), of, open.to_string(), state.to_owned()]);
    }
    text.push_str(&table(&rows, &[true, false, false, true], style.width));
    for decl in decls {
        text.push_str(&trouble(decl, standing, now, style));
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
    if let (Some(command), None) = (&standing.next, &standing.holder) {
        text.push('\n');
        let commands = [standing.mends.as_slice(), std::slice::from_ref(command)].concat();
        text.push_str(&next(&commands));
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
            let took = length(run.took_ms.unwrap_or_else(|| ended.since(run.started)));
            format!("last run: {way}, {how} in {took}, {} ago", length(now.since(*ended)))
        }
        (None, Some(_)) => {
            format!("last run: {way}, under way for {}", length(now.since(run.started)))
        }
        (None, None) => {
            format!("last run: {way}, begun {} ago and killed", length(now.since(run.started)))
        }
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

fn layer_standing(standing: &Standing, decls: &[StepDecl], layer: &LayerName) -> LayerStanding {
    let of_layer: Vec<&StepDecl> = decls.iter().filter(|decl| decl.layer == *layer).collect();
    let known = |decl: &&&StepDecl| standing.steps.get(&decl.id);
    let count = |test: &dyn Fn(&Known) -> bool| {
        of_layer.iter().filter(|decl| known(decl).is_some_and(test)).count()
    };
    let done = count(&|known| matches!(known, Known::Done { .. }));
    let failed = count(&|known| matches!(known, Known::Failed { .. }));
    let intended = count(&|known| matches!(known, Known::Intended { .. }));
    let state = if standing.damaged.contains_key(layer) {
        "journal damaged"
    } else if failed > 0 {
        "failed"
    } else if done == of_layer.len() {
        "stands"
    } else if intended > 0 && standing.holder.is_some() {
        "under way"
    } else if intended > 0 {
        "interrupted"
    } else if done > 0 {
        "begun"
    } else {
        "absent"
    };
    LayerStanding { state, proven: done, open: of_layer.len() - done }
}

fn trouble(decl: &StepDecl, standing: &Standing, now: Moment, style: Style) -> String {
    match standing.steps.get(&decl.id) {
        Some(Known::Failed { failure, at }) => {
            let head =
                format!("{}, {} ago ({})", decl.id, length(now.since(*at)), failure.class.told());
            let head = style.hang("failed: ", &head, Some(Tone::Bad));
            format!("\n{head}\n{}", explained(failure, style))
        }
        Some(Known::Intended { verb, task, at }) => {
            let task = task.as_ref().map(|task| format!(", as {task}")).unwrap_or_default();
            let ago = length(now.since(*at));
            let verb = verb.word_for(decl.wording);
            let text = format!("{}: {verb} {}, begun {ago} ago{task}", decl.id, decl.title);
            // Nobody carries on what nobody works on.
            let label = if standing.holder.is_some() { "open: " } else { "interrupted: " };
            format!("\n{}\n", style.hang(label, &text, Some(Tone::Wait)))
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
