//! What a person asks to be broken in a rehearsal: read, armed, and told when it strikes.

use std::collections::BTreeMap;
use std::path::Path;

use castle_model::Spec;
use castle_model::event::SCHEMA;
use castle_rehearsal::fault::{Names, Rule, Sort, Strike, draw, read};
use castle_rehearsal::host::Host;
use rustix::process::{Signal, getpid, kill_process};

use crate::args::Faults;
use crate::exit::Problem;
use crate::output;

/// How often the strikes of one rule are told one by one.
const TOLD: u32 = 3;

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

/// Arms the rules, and tells each strike as it happens; pokes of others too.
pub(crate) fn arm(host: &Host, rules: Vec<Rule>, json: bool) {
    host.on_strike(move |strike| {
        if json {
            output::data(&line(strike));
        } else if let Some(line) = told(strike) {
            output::talk(&line);
        }
    });
    if rules.is_empty() {
        return;
    }
    // As the operating system would: nothing is said, nothing is tidied up.
    host.on_kill(|| kill_process(getpid(), Signal::KILL).unwrap_or_default());
    host.arm(rules);
}

/// A strike for people; none if it has been told often enough.
pub(crate) fn told(strike: &Strike) -> Option<String> {
    let tell = strike.number <= TOLD || strike.what.ends_with("no more");
    let sort = if strike.sort == Sort::Poke { "poke" } else { "fault" };
    tell.then(|| format!("{}{sort}: {}", clock(strike.at), strike.what))
}

/// Tells what is still broken at the end of a run, because rules or pokes broke it, and how it is mended.
pub(crate) fn remains(host: &Host, json: bool, command: &str) {
    let wrong = host.inventory().wrong;
    let mends = host.unmended();
    if json {
        for what in wrong {
            let line = serde_json::json!({"v": SCHEMA, "event": "still-broken", "what": what});
            output::data(&line.to_string());
        }
        return;
    }
    for what in &wrong {
        output::say(&format!("still broken: {what}"));
    }
    for rule in mends {
        let quoted = rule.replace('\'', "'\\''");
        output::say(&format!("next: `{command} poke --mend '{quoted}'` mends it"));
    }
}

/// Tells what struck more often than was told, and what never did.
pub(crate) fn close(host: &Host, json: bool) {
    if !json {
        let mut often = BTreeMap::new();
        for strike in host.strikes().iter().filter(|strike| strike.number > TOLD) {
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

/// A strike for programs: an event of the rehearsal, which has no number in the run.
fn line(strike: &Strike) -> String {
    let event = if strike.sort == Sort::Poke { "poke" } else { "fault" };
    serde_json::json!({
        "v": SCHEMA, "event": event, "run_ms": strike.at, "rule": strike.rule, "what": strike.what,
    })
    .to_string()
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
