//! What is known of a castle without looking at the world: each layer, what is open, and who is at work.

use std::collections::BTreeMap;

use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::time::{Moment, length};
use castle_model::{CastleName, Change, Failure, Incarnation, LayerName, StepDecl, StepId, Verb};
use serde::Serialize;

use crate::report::explained;
use crate::style::{Style, Tone, table};

/// What the records say of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// Layers whose journal is damaged, and how.
    pub damaged: BTreeMap<LayerName, String>,
}

/// The castle as text, for a moment `now`.
#[must_use]
pub fn text(standing: &Standing, decls: &[StepDecl], now: Moment, style: Style) -> String {
    let mut text = headline(standing, style);
    text.push_str(&run_line(standing, now, style));
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
    text
}

fn headline(standing: &Standing, style: Style) -> String {
    let world = if standing.rehearsal { " (a rehearsal)" } else { "" };
    let life = match &standing.incarnation {
        Some(id) => format!("incarnation {id}"),
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
    let mut text = style.hang("", &text, None) + "\n";
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
mod tests {
    use castle_model::{Class, Finding};

    use super::*;
    use crate::example::{START, decls};

    fn standing() -> Standing {
        Standing {
            castle: "blue".parse().unwrap(),
            rehearsal: true,
            incarnation: None,
            last_run: None,
            holder: None,
            steps: BTreeMap::new(),
            damaged: BTreeMap::new(),
        }
    }

    fn shown(standing: &Standing) -> String {
        text(standing, &decls(), Moment(START + 3_600_000), Style::default())
    }

    #[test]
    fn before_the_first_run() {
        insta::assert_snapshot!(shown(&standing()), @"
        castle blue (a rehearsal): not born
        no run is recorded

        layer     proven  open
        secrets      0/1     1  absent
        platform     0/4     4  absent
        gitops       0/1     1  absent
        ");
    }

    #[test]
    fn a_castle_that_stands() {
        let mut standing = standing();
        standing.incarnation = Some(Incarnation::from_bytes([7; 8]));
        let ended = Some((Moment(START + 96_000), RunOutcome::Done));
        standing.last_run =
            Some(LastRun { direction: Direction::Up, started: Moment(START), ended });
        for decl in decls() {
            let (change, proof) = (Change::Created, "seen".to_owned());
            standing.steps.insert(decl.id, Known::Done { change, proof, at: Moment(START) });
        }
        insta::assert_snapshot!(shown(&standing), @"
        castle blue (a rehearsal): incarnation 0707070707070707
        last run: up, done in 1:36, 58:24 ago

        layer     proven  open
        secrets      1/1     0  stands
        platform     4/4     0  stands
        gitops       1/1     0  stands
        ");
    }

    #[test]
    fn units_are_told_ready_or_not() {
        let decls = [StepDecl::new(StepId::new("gitops", "convergence"), "what Flux builds", "")];
        let at = Moment(START + 3_000_000);
        let say = |known: Known| {
            let mut standing = standing();
            standing.steps.insert(StepId::new("gitops", "convergence"), known);
            let text = text(&standing, &decls, Moment(START + 3_600_000), Style::default());
            text.lines().skip(5).map(|line| format!("{line}\n")).collect::<String>()
        };
        let proof = "7 Kustomizations ready at main@sha1:3f2a91c; milestones: apps-static reached";
        let (change, proof) = (Change::Unchanged, proof.to_owned());
        insta::assert_snapshot!(say(Known::Done { change, proof, at }), @"
        units: 7 Kustomizations ready at main@sha1:3f2a91c; milestones: apps-static
               reached, 10:00 ago
        ");
        let cause = "is not ready: BuildFailed: no such file";
        let failure =
            Failure::new(Class::Transient, "wait for every Kustomization", "not so after 15:00")
                .evidence("2 of 7 are not ready")
                .findings(vec![
                    Finding::new("Kustomization flux-system/configs", cause, "correct it"),
                    Finding::new("Kustomization flux-system/apps", "waits for configs", "nothing"),
                ]);
        insta::assert_snapshot!(say(Known::Failed { failure, at }), @"
        failed: gitops/convergence, 10:00 ago (transient)
          what      wait for every Kustomization
          why       not so after 15:00
          finding   Kustomization flux-system/configs: is not ready: BuildFailed: no
                    such file
                    correct it
          finding   Kustomization flux-system/apps: waits for configs
                    nothing
          last seen 2 of 7 are not ready
        ");
    }

    #[test]
    fn a_killed_run_with_a_failure_and_damage() {
        let mut standing = standing();
        standing.last_run =
            Some(LastRun { direction: Direction::Up, started: Moment(START), ended: None });
        let at = Moment(START + 3_000_000);
        let (change, proof) = (Change::Unchanged, "7 of 7 keys".to_owned());
        standing.steps.insert(StepId::new("secrets", "read"), Known::Done { change, proof, at });
        let failure = Failure::new(Class::Denied, "create VM 431", "403 Permission check failed")
            .hint("give the token's role VM.Allocate");
        standing.steps.insert(StepId::of("platform", "vm", "w-01"), Known::Failed { failure, at });
        let task = Some("UPID:pve:0003D3F1:0A2B5C7D:69ABCDEF:qmcreate:421:root@pam:".to_owned());
        let open = Known::Intended { verb: Verb::Create, task, at };
        standing.steps.insert(StepId::of("platform", "vm", "cp-01"), open);
        let why = "layers/gitops.journal, entry 4: its check sum does not fit its text";
        standing.damaged.insert("gitops".parse().unwrap(), why.to_owned());
        insta::assert_snapshot!(shown(&standing), @"
        castle blue (a rehearsal): not born
        last run: up, begun 1:00:00 ago and killed; run the same command again, it goes
        on

        layer     proven  open
        secrets      1/1     0  stands
        platform     0/4     4  failed
        gitops       0/1     1  journal damaged

        open: platform/vm/cp-01: create VM cp-01 (421) on pve, begun 10:00 ago, as
              UPID:pve:0003D3F1:0A2B5C7D:69ABCDEF:qmcreate:421:root@pam:

        failed: platform/vm/w-01, 10:00 ago (denied)
          what      create VM 431
          why       403 Permission check failed
          hint      give the token's role VM.Allocate

        damaged: gitops: layers/gitops.journal, entry 4: its check sum does not fit its
                         text
        ");
    }

    #[test]
    fn a_run_at_work() {
        let mut standing = standing();
        standing.last_run = Some(LastRun {
            direction: Direction::Down,
            started: Moment(START + 3_590_000),
            ended: None,
        });
        standing.holder = Some("`castle down` (process 4242 on desk, since 13:00)".into());
        let first_lines: Vec<String> =
            shown(&standing).lines().take(3).map(str::to_owned).collect();
        insta::assert_snapshot!(first_lines.join("\n"), @"
        castle blue (a rehearsal): not born
        last run: down, under way for 10.0 s
        at work: `castle down` (process 4242 on desk, since 13:00)
        ");
    }
}
