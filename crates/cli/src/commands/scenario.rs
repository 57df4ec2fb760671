//! `castle rehearse scenario`: the castle's folklore, played in memory and held against what is told.

mod check;
mod shelf;
mod stage;

use std::path::Path;

use castle_config::story::{self, Act, Complaint, Story};
use castle_config::{EXAMPLE, Finding, Sources};

use self::check::Check;
use self::shelf::SHELF;
use self::stage::{Play, Stage};
use crate::args::{ScenarioArgs, Speed};
use crate::exit::{Exit, Problem};
use crate::output;
use crate::project::{self, Which};
use crate::rehearsal::runtime;
use crate::settings::{Settings, Stream};

/// The names of the built-in stories.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    shelf::names()
}

/// Plays a story, or lists them.
pub(crate) fn run(args: &ScenarioArgs, json: bool, settings: &Settings) -> Result<Exit, Problem> {
    if args.list && json {
        for line in shelf::lines()? {
            output::data(&line);
        }
        return Ok(Exit::Done);
    }
    if args.list {
        output::page(&shelf::list()?);
        return Ok(Exit::Done);
    }
    if args.page {
        output::page(&shelf::page()?);
        return Ok(Exit::Done);
    }
    let named = args.story.as_deref().unwrap_or_default();
    let sources = find(named, settings)?;
    let play = Play {
        speed: match args.speed {
            Some(Speed::Times(times)) => Some(times),
            Some(Speed::Max) | None => None,
        },
        seed: args.seed,
    };
    let read = story::read(&sources);
    let Some(story) = read.story else {
        let mut findings = read.findings;
        if let Some(draft) = &read.draft {
            let wrong = wrong_rules(draft, named, &sources, play, settings);
            findings.extend(story::complain(&sources, wrong));
            findings.sort_by_key(|finding| finding.place.map_or(usize::MAX, |place| place.start));
        }
        return Err(refuse(&findings, &sources, settings));
    };
    let castle = castle_of(&story, named, &sources, settings)?;
    let checks = runtime()?.block_on(play_out(&story, &sources, castle, play, settings))?;
    let missed = checks.iter().filter(|check| check.missed.is_some()).count();
    output::page(&verdict(&checks));
    Ok(if missed == 0 { Exit::Done } else { Exit::Failed })
}

/// The file of a story: a path, or the name of one on the shelf.
fn find(named: &str, settings: &Settings) -> Result<Sources, Problem> {
    if named.contains('/') || Path::new(named).extension().is_some() {
        let text = project::read_named(Path::new(named), settings)?;
        return Ok(Sources { file: named.to_owned(), text, ..Sources::default() });
    }
    shelf::sources(named).ok_or_else(|| {
        let near = castle_model::suggest::nearest(named, SHELF.iter().map(|(name, _)| *name));
        Problem::usage(format!("there is no story `{named}`")).hint(match near {
            Some(near) => format!("did you mean `castle rehearse scenario {near}`?"),
            None => "`castle rehearse scenario --list` tells which there are; a file of your own is named by its path, such as ./my.hcl".to_owned(),
        })
    })
}

/// What is wrong with the rules of a story that is not right otherwise either; nothing if its castle can not be had.
fn wrong_rules(
    draft: &Story,
    named: &str,
    sources: &Sources,
    play: Play,
    settings: &Settings,
) -> Vec<Complaint> {
    let judged = castle_file(draft, named, sources, settings).and_then(|(_, castle)| {
        runtime()?.block_on(async {
            let stage = Stage::set(draft, castle, play, settings);
            Ok(stage.map_or_else(|wrong| wrong, |stage| stage.judge(draft)))
        })
    });
    judged.unwrap_or_default()
}

fn refuse(findings: &[Finding], sources: &Sources, settings: &Settings) -> Problem {
    let page = castle_config::render(
        findings,
        sources,
        settings.colour(Stream::Talk),
        settings.width(Stream::Talk),
    );
    output::talk(&page);
    Problem::usage(format!("the story {} is not right yet; nothing was played", sources.file))
        .hint("mend what is named above, then play it again")
}

/// The castle file that a story is about, without mistakes.
fn castle_of(
    story: &Story,
    named: &str,
    sources: &Sources,
    settings: &Settings,
) -> Result<Sources, Problem> {
    let (own, castle) = castle_file(story, named, sources, settings)?;
    if let Some(which) = own {
        // Its mistakes are shown as `castle check` shows them.
        project::spec(&which, crate::castle::Place::Rehearsal, false, settings)?;
    }
    Ok(castle)
}

/// The castle file that a story is about as it is, and where it lies if it is one of its own.
fn castle_file(
    story: &Story,
    named: &str,
    sources: &Sources,
    settings: &Settings,
) -> Result<(Option<Which>, Sources), Problem> {
    let Some(file) = &story.castle else {
        let text = EXAMPLE.as_bytes().to_vec();
        let example = Sources { file: "example/castle.hcl".to_owned(), text, ..Sources::default() };
        return Ok((None, example));
    };
    if shelf::sources(named).is_some() {
        let complaint = Complaint {
            code: "C1105",
            title: "a built-in story has no castle file beside it".to_owned(),
            range: file.range.clone(),
            label: "only a story of your own has".to_owned(),
            notes: Vec::new(),
            help: None,
        };
        return Err(refuse(&story::complain(sources, [complaint]), sources, settings));
    }
    let folder = settings.directory.join(named);
    let path = folder.parent().unwrap_or(&settings.directory).join(&file.text);
    let which = Which::Own(path);
    let castle = project::load(&which, settings)?;
    Ok((Some(which), Sources { lock: None, ..castle }))
}

/// Plays every act in turn. What is expected of each is told after it.
async fn play_out(
    story: &Story,
    sources: &Sources,
    castle: Sources,
    play: Play,
    settings: &Settings,
) -> Result<Vec<Check>, Problem> {
    let settings = unwatched(settings);
    let refused = |complaints: Vec<Complaint>| {
        refuse(&story::complain(sources, complaints), sources, &settings)
    };
    let mut stage = Stage::set(story, castle, play, &settings).map_err(refused)?;
    let wrong = stage.judge(story);
    if !wrong.is_empty() {
        return Err(refused(wrong));
    }
    output::page(&opening(story));
    let mut checks = Vec::new();
    for act in &story.acts {
        let told = stage.act(act).await?;
        let heading = match act {
            Act::World(_) => "the datacenter itself",
            Act::Run(_) | Act::Meanwhile(_) => "",
        };
        for line in lines(heading, &told) {
            output::data(&line);
        }
        checks.extend(told);
    }
    Ok(checks)
}

/// The settings of commands whose words are compared: no colour, no broken lines, nobody to ask.
fn unwatched(settings: &Settings) -> Settings {
    let mut unwatched = settings.clone();
    unwatched.environment.remove("COLUMNS");
    Settings {
        stderr_is_terminal: false,
        stdout_is_terminal: false,
        stdin_is_terminal: false,
        ..unwatched
    }
}

fn opening(story: &Story) -> String {
    format!("{}\n{}\n(from {})\n", story.title, story.told, story.from.join(", "))
}

fn lines(heading: &str, checks: &[Check]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    if !heading.is_empty() && !checks.is_empty() {
        lines.push(format!("{heading}:"));
    }
    lines.extend(checks.iter().map(|check| match &check.missed {
        None => format!("  ok      {}", check.what),
        Some(seen) => format!("  NOT OK  {}: {seen}", check.what),
    }));
    lines
}

fn verdict(checks: &[Check]) -> String {
    let missed = checks.iter().filter(|check| check.missed.is_some()).count();
    let all = match checks.len() {
        1 => "1 expectation".to_owned(),
        several => format!("{several} expectations"),
    };
    match missed {
        0 if checks.len() == 1 => format!("the story holds: {all}, met"),
        0 => format!("the story holds: {all}, all met"),
        _ => format!("the story does not hold: {missed} of {all} missed"),
    }
}
