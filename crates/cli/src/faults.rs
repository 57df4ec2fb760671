//! What a person asks to be broken in a rehearsal: read, armed, and told when it strikes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use castle_journal::StateRoot;
use castle_model::event::SCHEMA;
use castle_model::time::Moment;
use castle_model::{EventKind, Spec};
use castle_rehearsal::fault::{Names, Own, OwnDisk, Rule, Sort, Strike, draw, read};
use castle_rehearsal::host::Host;
use castle_view::plain::STRIKES_TOLD;
use rustix::process::{Signal, getpid, kill_process};

use crate::args::Faults;
use crate::exit::Problem;
use crate::output;

pub(crate) mod disk;
mod operator;

use self::disk::{Doing, Gone};

/// The rules that were asked for; those drawn from a seed are printed, so that anybody can repeat them.
pub(crate) fn rules(args: &Faults, spec: &Spec, json: bool) -> Result<Vec<Rule>, Problem> {
    let names = Names::of(spec);
    let mut rules = Vec::new();
    let mut wrong = Vec::new();
    for text in &args.fault {
        match Rule::parse(text, &names) {
            Ok(rule) => rules.push(rule),
            Err(error) => wrong.push(error.picture("--fault", 1)),
        }
    }
    if !wrong.is_empty() {
        return Err(Problem::usage(wrong.join("\n\nerror: ")).hint(LIST));
    }
    if let Some(path) = &args.faults {
        rules.extend(from_file(path, &names)?);
    }
    if let Some(seed) = args.chaos {
        let drawn = draw(seed, &names);
        for rule in drawn.iter().filter(|_| !json) {
            output::say(&format!("chaos {seed}: --fault '{rule}'"));
        }
        rules.extend(drawn);
    }
    Ok(rules)
}

/// Where everything that can be broken is explained.
const LIST: &str = "`castle rehearse --list-faults` explains all of them";

fn from_file(path: &Path, names: &Names) -> Result<Vec<Rule>, Problem> {
    let shown = path.display();
    let text = if path == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.map_err(|error| {
        Problem::usage(format!("the rules in {shown} can not be read")).because(&error)
    })?;
    let shown = shown.to_string();
    read(&text, names).map_err(|error| {
        Problem::usage(error.picture(&shown).replace("\n\n", "\n\nerror: ")).hint(LIST)
    })
}

/// What has struck and is not yet told as an event of the run. Whoever strikes holds the world, so it only leaves word here.
#[derive(Debug, Clone, Default)]
pub(crate) struct Struck {
    waiting: Arc<Mutex<Vec<(Moment, EventKind)>>>,
    /// Whether people were told what is still broken.
    remains_told: Arc<AtomicBool>,
}

impl Struck {
    fn add(&self, at: Moment, strike: &Strike) {
        self.waiting().push((at, event(strike.clone())));
    }

    /// What came of the last strike, at the same moment.
    fn note(&self, text: &str) {
        let mut waiting = self.waiting();
        let at = waiting.last().map_or(Moment(0), |(at, _)| *at);
        waiting.push((at, EventKind::Notice { step: None, text: text.to_owned() }));
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<(Moment, EventKind)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has struck since the last time, as events.
    pub(crate) fn take(&self) -> Vec<(Moment, EventKind)> {
        std::mem::take(&mut *self.waiting())
    }

    /// Tells people what is still broken, because rules or pokes broke it, and gives the commands that mend it.
    pub(crate) fn tell_remains(&self, host: &Host, command: &str) -> Vec<String> {
        self.remains_told.store(true, Ordering::Relaxed);
        for what in &host.inventory().wrong {
            output::say(&format!("still broken: {what}"));
        }
        host.unmended().iter().map(|rule| mend(rule, command)).collect()
    }

    /// Tells programs what no event of a run will tell: lines without a number.
    pub(crate) fn tell_alone(&self, json: bool) {
        for (_, kind) in self.take().into_iter().filter(|_| json) {
            output::data(&serde_json::to_string(&kind).unwrap_or_default());
        }
    }
}

/// The command that mends what a rule changed.
pub(crate) fn mend(rule: &str, command: &str) -> String {
    format!("{command} poke --mend '{}'", rule.replace('\'', "'\\''"))
}

/// Arms the rules, and tells each strike to people as it happens; pokes of others too. As events they come with the next
/// one of the run. `state` is castle's own, if it writes any: rules can break the disk that it is on.
pub(crate) fn arm(
    host: &Host,
    rules: Vec<Rule>,
    json: bool,
    state: Option<&mut StateRoot>,
) -> Struck {
    let struck = Struck::default();
    let (listening, began) = (struck.clone(), host.world().clock.now());
    host.on_strike(move |strike| {
        listening.add(Moment(began.0.saturating_add(strike.at)), strike);
        if let Some(line) = told(strike).filter(|_| !json) {
            output::talk(&line);
        }
    });
    if rules.is_empty() {
        return struck;
    }
    let last = struck.clone();
    let end = move || {
        last.tell_alone(json);
        // As the operating system would: nothing more is said, nothing is tidied up.
        kill_process(getpid(), Signal::KILL).unwrap_or_default();
    };
    host.on_kill(end.clone());
    if let Some(state) = state {
        let news = struck.clone();
        let tell = move |text: &str| {
            news.note(text);
            if !json {
                output::talk(&format!("fault: {text}"));
            }
        };
        break_own(host, state, end, tell);
    }
    host.arm(rules);
    struck
}

/// Lets rules break the computer that castle runs on: its power, and the disk under its state.
fn break_own(
    host: &Host,
    state: &mut StateRoot,
    end: impl Fn() + Send + Sync + 'static,
    tell: impl Fn(&str) + Send + Sync + 'static,
) {
    let runs = state.runs().ok();
    let before = runs.as_ref().and_then(|runs| runs.list().ok()).unwrap_or_default();
    let gone: Gone = Arc::new(move || {
        // Journals are synced whenever something was written; the events of this run never were.
        for run in runs.iter().flat_map(|runs| runs.list().unwrap_or_default()) {
            if !before.contains(&run) {
                runs.as_ref().and_then(|runs| runs.lose(&run).ok()).unwrap_or_default();
            }
        }
        end();
    });
    let (does, folder) = (Doing::default(), state.path().to_owned());
    disk::under(state.journals_mut(), &does, &gone);
    host.on_break(move |own| match own {
        Own::Power => {
            gone();
            true
        }
        // The real folder goes, and its own guard has to notice.
        Own::Disk(OwnDisk::Taken) => operator::takes(&folder, &tell),
        Own::Disk(disk) => {
            does.set(disk);
            true
        }
        Own::Operator => operator::knocks(&folder, &tell),
    });
}

fn event(strike: Strike) -> EventKind {
    let Strike { sort, at, rule, what, number } = strike;
    let struck = castle_model::event::Struck { run_ms: at, rule, what, number };
    if sort == Sort::Poke { EventKind::Poke(struck) } else { EventKind::Fault(struck) }
}

/// A strike for people; none if it has been told often enough.
pub(crate) fn told(strike: &Strike) -> Option<String> {
    let tell = strike.number <= STRIKES_TOLD || strike.what.ends_with("no more");
    let sort = if strike.sort == Sort::Poke { "poke" } else { "fault" };
    tell.then(|| format!("{}{sort}: {}", clock(strike.at), strike.what))
}

/// Tells what is still broken at the end of a run, because rules or pokes broke it, and how it is mended; unless the run's own
/// report did.
pub(crate) fn remains(host: &Host, json: bool, command: &str, struck: &Struck) {
    if json {
        for what in host.inventory().wrong {
            let line = serde_json::json!({"v": SCHEMA, "event": "still-broken", "what": what});
            output::data(&line.to_string());
        }
        return;
    }
    if struck.remains_told.load(Ordering::Relaxed) {
        return;
    }
    for mend in struck.tell_remains(host, command) {
        output::say(&format!("next: `{mend}` mends it"));
    }
}

/// Tells what struck more often than was told, and what never did.
pub(crate) fn close(host: &Host, json: bool) {
    if !json {
        let mut often = BTreeMap::new();
        for strike in host.strikes().iter().filter(|strike| strike.number > STRIKES_TOLD) {
            often.insert(strike.rule.clone(), strike.number);
        }
        for (rule, number) in often {
            output::say(&format!("fault: `{rule}` struck {number} times in all"));
        }
    }
    for rule in host.unstruck() {
        if json {
            let line =
                serde_json::json!({"v": SCHEMA, "event": "fault-never-struck", "rule": rule});
            output::data(&line.to_string());
        } else {
            output::say(&format!("fault: never struck: {rule}"));
        }
    }
}

/// The time of the run, as event lines have it.
fn clock(at: u64) -> String {
    let seconds = at / 1000;
    if seconds < 3600 {
        format!("[{:2}:{:02}] ", seconds / 60, seconds % 60)
    } else {
        format!("[{}:{:02}:{:02}] ", seconds / 3600, seconds / 60 % 60, seconds % 60)
    }
}
