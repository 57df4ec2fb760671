//! The screens in the documentation are what castle shows: each is made here once more, from the events of a rehearsed run.

use std::path::Path;

use castle_journal::Runs;
use castle_layers::declare;
use castle_model::time::Moment;
use castle_model::{Event, EventKind, StepDecl, StepId};
use castle_view::history::{Expected, expected};
use castle_view::screen::{Scene, lines};
use castle_view::why::{self, Asked};
use castle_view::{Progress, Style, plain};

use crate::context::Context;

/// A run of the example castle that did what an earlier one did.
struct Rehearsed {
    /// The steps as they are declared, and as they stand in a plan.
    declared: Vec<StepDecl>,
    decls: Vec<StepDecl>,
    /// What strikes, as people are told.
    struck: Vec<String>,
    events: Vec<Event>,
    expected: Expected,
}

impl Rehearsed {
    /// Raises the castle, razes it, and raises it once more, then with these words besides.
    fn again(words: &[&str]) -> Self {
        let castle = Context::new();
        castle.run(&["up"]).ends(0);
        castle.run(&["down", "--yes"]).ends(0);
        let said = castle.run(&[&["up"], words].concat());
        let struck = said.err.lines().filter(|line| line.contains("] fault: ")).map(str::to_owned);
        let declared = declare(&castle_config::example());
        let order = castle_plan::order(&declared).unwrap();
        let decls = order.into_iter().map(|at| declared[at].clone()).collect();
        let runs = Runs::at(&castle.state()).unwrap().unwrap();
        let last = runs.list().unwrap().pop().unwrap();
        let events = runs.events(&last).unwrap().unwrap().more().unwrap();
        let history = runs.history().unwrap().runs;
        let (this, earlier) = history.split_last().unwrap();
        let expected = expected(this, earlier);
        Self { declared, decls, struck: struck.collect(), events, expected }
    }

    /// When the first step began, or this one.
    fn began(&self, which: Option<&StepId>) -> Moment {
        let is = |event: &&Event| match &event.kind {
            EventKind::StepStarted { step, .. } => which.is_none_or(|which| which == step),
            _ => false,
        };
        self.events.iter().find(is).unwrap().at
    }

    /// How it stands at a moment, and what has been told above the picture by then.
    fn at(&self, now: Moment, style: Style) -> (Progress, Vec<String>) {
        let mut progress = Progress::new(&self.declared);
        let (mut said, mut struck) = (Vec::new(), self.struck.iter());
        for event in self.events.iter().filter(|event| event.at <= now) {
            progress.apply(event);
            match &event.kind {
                EventKind::Fault(_) => said.extend(struck.next().cloned()),
                // What comes before the first step is told before there is a picture.
                _ if progress.at_work.is_none() => {}
                _ => said
                    .extend(plain::news(event, &progress, style.signs).map(|news| news.lay(style))),
            }
        }
        (progress, said)
    }

    /// The picture at a moment of the run, on a screen of this size, and what was told above it.
    fn picture(&self, after_ms: u64, (width, height): (usize, usize)) -> (Vec<String>, String) {
        // The last column stays free.
        let style = Style { width: width - 1, ..Style::default() };
        let now = Moment(self.began(None).0 + after_ms);
        let (progress, said) = self.at(now, Style { width, ..style });
        let Self { decls, expected, .. } = self;
        let scene = Scene { progress: &progress, decls, expected, turn: None, now };
        let shown = lines(scene, style, height);
        let shown: Vec<String> = shown
            .iter()
            .map(|line| style.line(line).trim_end().to_owned())
            .skip_while(String::is_empty)
            .collect();
        (said, shown.join("\n"))
    }
}

/// The block of a page of the documentation that has this in it.
fn sample(page: &str, sign: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let mut blocks = text.split("\n```").skip(1).step_by(2);
    let block = blocks.find(|block| block.contains(sign)).unwrap();
    block.split_once('\n').unwrap().1.to_owned()
}

#[track_caller]
fn holds(page: &str, sign: &str, shown: &str) {
    let sample = sample(page, sign);
    assert!(sample == shown, "{page} shows\n\n{sample}\n\nbut castle shows\n\n{shown}\n");
}

#[test]
fn the_readme_shows_the_live_screen() {
    let (_, picture) = Rehearsed::again(&[]).picture(120_000, (100, 24));
    holds("README.md", "critical path so far", &picture);
}

#[test]
fn the_page_of_the_terminal_shows_a_machine_that_dies() {
    let run = Rehearsed::again(&["--fault", "talos cp-02: dead from 0:35"]);
    let (said, picture) = run.picture(59_000, (100, 24));
    let shown = format!("{}\n\n{picture}", said.join("\n"));
    holds("docs/terminal.md", "critical path so far", &shown);
}

#[test]
fn the_page_of_the_terminal_shows_what_is_waited_for() {
    let run = Rehearsed::again(&[]);
    let now = Moment(run.began(Some(&StepId::new("platform", "vip"))).0 + 10_000);
    let style = Style { width: 100, ..Style::default() };
    let (progress, _) = run.at(now, style);
    let deadlines = castle_config::example().deadlines;
    let asked =
        Asked { progress: &progress, decls: &run.decls, deadlines: &deadlines, now, over: false };
    let told = why::text(&why::why(asked, None), style);
    holds("docs/terminal.md", "$ castle why", &format!("$ castle why\n{}", told.trim_end()));
}
