//! The workshop of the house: `cargo xtask test | real | soak | tidy | docs | pictures | bench | release`.
//!
//! All logic of the workshop is here, so that a CI system needs one line and a person needs no shell tricks.

mod bench;
mod elf;
mod generate;
mod house;
mod pictures;
mod planted;
mod real;
mod release;
mod scan;
mod soak;
mod suite;
mod talk;
mod tidy;
mod tree;

use std::process::ExitCode;

use crate::real::Tier;
use crate::talk::say;

const USAGE: &str = "\
usage: cargo xtask <verb>

  test      format, lints, tidy, the whole test suite and the real components, in this order; stops at the
            first failure; `test <stage>` does one of them; `--full` behind either takes the real components
            that are long to build too (Flux' controllers)
  real      builds or finds the real components (Go programs, Python environments, manifests) and lists them;
            `--full` as above
  soak      what takes long: `--rounds` the tests that go in rounds (an API server that is killed, paused and cut,
            among others), 50 rounds; `--matrix [ACT]` up, down and rebirth killed at each of their points;
            `--seeds COUNT [--from FIRST]` lives full of faults and crashes; without a word all of them;
            `--point ACT NUMBER` and `--seed NUMBER` one again, with its story; `--planted [SEEDS]` turns each
            planted bug on, and writes what found it into docs/proof.md
  tidy      the rules of house.toml: edges between rooms, sizes, names, links, fresh generated files
  docs      writes every generated file: reference pages and the clippy.toml of pure rooms
  pictures  takes the pictures of the documentation again, with a real browser (Debian's chromium)
  bench     builds the release binary (or takes the one named) and measures it; prints a table, writes
            bench.json into the target folder
  release   builds the fully static binary and proves that it is static";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["test"] => suite::run(None, Tier::Always),
        ["test", "--full"] => suite::run(None, Tier::Full),
        ["test", stage] => suite::run(Some(stage), Tier::Always),
        ["test", stage, "--full"] => suite::run(Some(stage), Tier::Full),
        ["real"] => real::run(Tier::Always),
        ["real", "--full"] => real::run(Tier::Full),
        ["soak", words @ ..] => soak::run(words),
        ["tidy"] => tidy::run(),
        ["docs"] => generate::run(),
        ["pictures"] => pictures::run(),
        ["bench"] => bench::run(None),
        ["bench", binary] => bench::run(Some(binary.as_ref())),
        ["release"] => release::run(),
        _ => {
            say(USAGE);
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
