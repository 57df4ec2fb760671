//! Plants each bug, plays its known trial and then seeds, and prints the table of `docs/proof.md`.
//!
//! `planted [SEEDS [BUG…]]`: so many seeds are tried at most for each bug; 0 plays the trials alone.

use std::error::Error;
use std::io::{Write, stdout};
use std::process::ExitCode;

#[cfg(debug_assertions)]
use castle_proof::Almanac;

#[cfg(debug_assertions)]
fn main() -> Result<ExitCode, Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let seeds: u64 = words.first().map_or(Ok(0), |text| text.parse())?;
    let wanted = words.get(1..).unwrap_or_default();
    // What seeds are held against is taken from castles without bugs.
    let almanac = Almanac::default();
    if seeds > 0 {
        almanac.prepare()?;
    }
    let mut missed = 0;
    writeln!(stdout(), "| bug | what castle then does | its trial | law | first seed |")?;
    writeln!(stdout(), "|---|---|---|---|---|")?;
    for planted in castle_proof::planted::all() {
        let name = format!("{:?}", planted.bug);
        if !wanted.is_empty() && !wanted.contains(&name) {
            continue;
        }
        let found = castle_proof::planted::play(&planted);
        let law = found.iter().find(|violation| violation.law == planted.law);
        missed += usize::from(law.is_none());
        let law = law.map_or_else(
            || format!("**missed** {:?}", found.iter().map(|v| v.law).collect::<Vec<_>>()),
            |violation| violation.law.to_owned(),
        );
        let seed = match castle_proof::planted::first_seed(planted.bug, &almanac, seeds) {
            Some((seed, law)) => format!("{seed}: {law}"),
            None => format!("not by {seeds}"),
        };
        let (about, trial) = (planted.about, planted.trial.name);
        writeln!(stdout(), "| {name} | {about} | {trial} | {law} | {seed} |")?;
        stdout().flush()?;
    }
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(not(debug_assertions))]
fn main() -> Result<ExitCode, Box<dyn Error>> {
    writeln!(stdout(), "no bug can be planted without debug assertions")?;
    Ok(ExitCode::FAILURE)
}
