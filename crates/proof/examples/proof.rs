//! Runs the crash matrix and seeds from the command line, for `cargo xtask soak` and for whoever replays one of them.
//!
//! `proof matrix ACT [PART/PARTS]` kills an act at its points (at the n-th of every so many), `proof point ACT NUMBER` at one;
//! `proof seeds COUNT [FROM]` lives seeds, `proof seed NUMBER` one of them, with its story;
//! `proof downs SEEDS` prints ways down against their bound, `proof figures [SEEDS]` a JSON line for each figure of `cargo xtask bench`.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::available_parallelism;

use castle_proof::asked::missing;
use castle_proof::castle::{Around, run};
use castle_proof::matrix::{Judged, reference};
use castle_proof::point::{Fork, Point, Recorder, Taker};
use castle_proof::{
    Act, Almanac, Command, End, Life, Setting, Shape, live, live_watched, matrix, point_of,
};
use castle_rehearsal::bound::{GONE, Question, far, longest};
use serde_json::json;

#[path = "proof/progress.rs"]
mod progress;

use progress::Progress;

/// As in the program: ten thousand seeds are some hours of processor time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The seed of the matrix' world.
const SEED: u64 = 8;

/// Each so manieth seed is watched at every moment of its undisturbed runs: that takes longer.
const WATCHED: u64 = 8;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let sound = match words.as_slice() {
        ["matrix", act] => whole(act_of(act)?, (0, 1))?,
        ["matrix", act, part] => whole(act_of(act)?, part_of(part)?)?,
        ["point", act, number] => one(act_of(act)?, number.parse()?)?,
        ["seeds", count] => seeds(count.parse()?, 1)?,
        ["seeds", count, from] => seeds(count.parse()?, from.parse()?)?,
        ["seed", number] => seed(number.parse()?)?,
        ["downs", seeds] => downs(seeds.parse()?)?,
        ["figures"] => figures(20)?,
        ["figures", seeds] => figures(seeds.parse()?)?,
        _ => {
            return Err("proof matrix ACT [PART/PARTS] | point ACT NUMBER | seeds COUNT [FROM] | seed NUMBER".into());
        }
    };
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn act_of(word: &str) -> Result<Act, Box<dyn Error>> {
    let act = Act::ALL.into_iter().find(|act| act.word() == word);
    act.ok_or_else(|| format!("there is no act `{word}`").into())
}

fn part_of(text: &str) -> Result<(usize, usize), Box<dyn Error>> {
    let (part, parts) = text.split_once('/').ok_or("a part is written 3/8")?;
    Ok((part.parse()?, parts.parse::<usize>()?.max(1)))
}

fn whole(act: Act, (part, parts): (usize, usize)) -> Result<bool, Box<dyn Error>> {
    let setting = Setting::of(Shape::WHOLE, SEED);
    let reference = reference(&setting, act)?;
    let threads = available_parallelism()?.get();
    let part = part % parts;
    let chosen_states = (reference.states + parts - 1 - part) / parts;
    let mut progress = Progress::new(act.word(), chosen_states as u64);
    let chosen = move |p: &Point| act.is_told_by(p) && p.state % parts == part;
    let found = matrix(&setting, &reference, chosen, threads, |so_far| {
        let tried: usize = so_far.tried.values().sum();
        progress.at(tried as u64, &format!("{} broken", so_far.broken.len()));
    });
    progress.clear();
    let tried: usize = found.tried.values().sum();
    let word = act.word();
    writeln!(
        stdout(),
        "{word}: {} points, {} states; {tried} tried, {} broken",
        found.points,
        found.states,
        found.broken.len()
    )?;
    for (moment, count) in &found.tried {
        writeln!(stdout(), "  {moment}: {count}")?;
    }
    for judged in &found.broken {
        tell(act, judged)?;
    }
    Ok(found.broken.is_empty() && tried > 0)
}

fn one(act: Act, number: usize) -> Result<bool, Box<dyn Error>> {
    let setting = Setting::of(Shape::WHOLE, SEED);
    let reference = reference(&setting, act)?;
    let judged = point_of(&setting, &reference, number).ok_or("there is no such point")?;
    tell(act, &judged)?;
    Ok(judged.violations.is_empty())
}

/// Lives so many seeds on all cores, and tells of each that something broke.
fn seeds(count: u64, from: u64) -> Result<bool, Box<dyn Error>> {
    let threads = available_parallelism()?.get();
    let almanac = Almanac::default();
    let next = AtomicU64::new(from);
    let (results, lives) = channel();
    let (mut kinds, mut crashes, mut runs, mut broken, mut lived) =
        (BTreeSet::new(), 0, 0, 0_u64, 0_u64);
    let mut ends: BTreeMap<End, u64> = BTreeMap::new();
    let mut starts: BTreeMap<usize, u64> = BTreeMap::new();
    let began = processor_seconds()?;
    std::thread::scope(|scope| -> Result<(), Box<dyn Error>> {
        for _ in 0..threads {
            let (results, next, almanac) = (results.clone(), &next, &almanac);
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + count {
                        break;
                    }
                    let watched = seed.is_multiple_of(WATCHED);
                    let life =
                        if watched { live_watched(seed, almanac) } else { live(seed, almanac) };
                    if results.send(life).is_err() {
                        break;
                    }
                }
            });
        }
        drop(results);
        let mut progress = Progress::new("seeds", count);
        for life in lives {
            lived += 1;
            kinds.extend(life.kinds.iter().cloned());
            (crashes, runs) = (crashes + life.crashes, runs + life.runs);
            *ends.entry(life.end).or_default() += 1;
            if life.converged {
                *starts.entry(life.starts).or_default() += 1;
            }
            if !life.violations.is_empty() {
                broken += 1;
                progress.clear();
                story(&life)?;
            }
            let rate = rate(lived, began)?;
            progress.at(lived, &format!("{broken} broken, {rate:.2} a second and core"));
        }
        progress.clear();
        Ok(())
    })?;
    let rate = rate(lived, began)?;
    writeln!(
        stdout(),
        "{lived} seeds from {from}: {broken} broken; {runs} runs, {crashes} killed, {} kinds of faults struck; {rate:.2} seeds a second and core",
        kinds.len()
    )?;
    for rule in missing(&kinds) {
        writeln!(stdout(), "  never struck, of those that were asked for: {rule}")?;
    }
    for (end, lives) in ends {
        writeln!(stdout(), "  {lives}: {}", end.words())?;
    }
    for (starts, lives) in starts {
        writeln!(stdout(), "  {lives} converged at start {starts} of the calm")?;
    }
    Ok(broken == 0 && lived == count)
}

/// How many lives a core plays in a second, by the processor time since.
fn rate(lived: u64, began: f64) -> Result<f64, Box<dyn Error>> {
    let spent = (processor_seconds()? - began).max(0.001);
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more")]
    Ok(lived as f64 / spent)
}

fn seed(number: u64) -> Result<bool, Box<dyn Error>> {
    let life = live_watched(number, &Almanac::default());
    story(&life)?;
    Ok(life.violations.is_empty())
}

fn story(life: &Life) -> Result<(), Box<dyn Error>> {
    writeln!(stdout(), "seed {} (trace {})", life.seed, life.trace)?;
    for line in &life.story {
        writeln!(stdout(), "  {line}")?;
    }
    for violation in &life.violations {
        writeln!(stdout(), "  BROKEN {violation}")?;
    }
    if !life.violations.is_empty() {
        writeln!(stdout(), "  again: cargo xtask soak --seed {}", life.seed)?;
    }
    Ok(())
}

/// What `cargo xtask bench` asks for: ways down against their bound, first calls after a crash, seeds in a second.
fn figures(seeds: u64) -> Result<bool, Box<dyn Error>> {
    downs(seeds)?;
    resumes()?;
    let (began, almanac) = (processor_seconds()?, Almanac::default());
    for seed in 1..=seeds {
        drop(live(seed, &almanac));
    }
    let rate = rate(seeds, began)?;
    writeln!(stdout(), "{}", json!({"case": "seeds", "per_second_and_core": rate}))?;
    Ok(true)
}

/// Ways down against their bound, and with the audit that each ends with.
fn downs(seeds: u64) -> Result<bool, Box<dyn Error>> {
    for seed in 1..=seeds {
        let setting = Setting::of(Shape::WHOLE, seed);
        let around = Around { settles: true, ..Around::default() };
        let raised = run(setting.empty(), &setting, Command::Up, around);
        let began = raised.stand.datacenter.now;
        let razed = run(raised.stand, &setting, Command::Down, Around::default());
        if !razed.is_done() {
            return Err(format!("seed {seed}: {}", razed.verdict()).into());
        }
        let names = BTreeMap::new();
        let asked = Question { since: began, until: u64::MAX, names: &names, goals: &[GONE] };
        let mut draws = razed.stand.datacenter.draws.all().to_vec();
        // The audit at the end is no part of what is bounded: it waits for silence, and nothing depends on it.
        let until = razed.audited.unwrap_or(razed.over);
        let removal: Vec<_> =
            razed.requests.iter().filter(|request| request.at < until).cloned().collect();
        draws.extend(far::answers(&removal));
        draws.sort_by_key(|draw| draw.begun_at);
        let bound = longest(&draws, &asked).ms;
        let took = razed.audited.ok_or("no audit was made")? - began;
        let whole = razed.over - began;
        let line = json!({
            "case": "down", "seed": seed, "took_ms": took, "bound_ms": bound, "whole_ms": whole
        });
        writeln!(stdout(), "{line}")?;
    }
    Ok(true)
}

/// First calls after a crash.
fn resumes() -> Result<(), Box<dyn Error>> {
    let setting = Setting::of(Shape::WHOLE, SEED);
    let forks = Arc::new(Mutex::new(Vec::new()));
    let recorder = Some(Recorder::new(Box::new(Some25th(forks.clone()))));
    let around = Around { recorder, ..Around::default() };
    drop(run(setting.empty(), &setting, Command::Up, around));
    let forks = std::mem::take(&mut *forks.lock().map_err(|_| "a judge panicked")?);
    for Fork { point, stand } in forks {
        let ran = run(stand, &setting, Command::Up, Around::default());
        let first = ran.first_call.ok_or("no call was made")?.as_secs_f64() * 1000.0;
        let line = json!({"case": "resume", "point": point.number, "first_call_ms": first});
        writeln!(stdout(), "{line}")?;
    }
    Ok(())
}

/// Takes every 25th state.
struct Some25th(Arc<Mutex<Vec<Fork>>>);

impl Taker for Some25th {
    fn wants(&mut self, point: &Point) -> bool {
        point.fresh && point.state.is_multiple_of(25)
    }

    fn take(&mut self, fork: Fork) {
        if let Ok(mut forks) = self.0.lock() {
            forks.push(fork);
        }
    }
}

/// Processor time of all threads so far.
fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> =
        text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
    // Fields 14 and 15 of the line, in hundredths of a second; the first two end with the parenthesis.
    Ok((ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0)
}

fn tell(act: Act, judged: &Judged) -> Result<(), Box<dyn Error>> {
    let Judged { point, violations } = judged;
    writeln!(stdout(), "{} {point}", act.word())?;
    for violation in violations {
        writeln!(stdout(), "    {violation}")?;
    }
    if violations.is_empty() {
        writeln!(stdout(), "    holds")?;
    } else {
        let (word, number) = (act.word(), point.number);
        writeln!(stdout(), "    again: cargo xtask soak --point {word} {number}")?;
    }
    Ok(())
}
