//! Runs the crash matrix and seeds from the command line, for `cargo xtask soak` and for whoever replays one of them.
//!
//! `proof matrix ACT [PART/PARTS]` kills an act at its points (at the n-th of every so many), `proof point ACT NUMBER` at one.

use std::error::Error;
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::thread::available_parallelism;

use castle_proof::matrix::{Judged, reference};
use castle_proof::{Act, Setting, Shape, matrix, point_of};

/// The seed of the matrix' world.
const SEED: u64 = 8;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let sound = match words.as_slice() {
        ["matrix", act] => whole(act_of(act)?, (0, 1))?,
        ["matrix", act, part] => whole(act_of(act)?, part_of(part)?)?,
        ["point", act, number] => one(act_of(act)?, number.parse()?)?,
        _ => return Err("proof matrix ACT [PART/PARTS] | proof point ACT NUMBER".into()),
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
    let found = matrix(&setting, &reference, move |p| p.number % parts == part % parts, threads);
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

fn tell(act: Act, judged: &Judged) -> Result<(), Box<dyn Error>> {
    let Judged { point, violations } = judged;
    writeln!(stdout(), "{} {point}", act.word())?;
    for violation in violations {
        writeln!(stdout(), "    {violation}")?;
    }
    if violations.is_empty() {
        writeln!(stdout(), "    holds")?;
    }
    Ok(())
}
