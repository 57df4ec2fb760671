//! `castle report`: the page of a run, made again from its events.

use std::path::Path;

use castle_journal::{Runs, number};
use castle_model::RunId;

use crate::args::{Everywhere, ReportArgs};
use crate::browser;
use crate::castle::{self, Castle, Place};
use crate::exit::{Exit, Problem};
use crate::output;
use crate::page::{self, Page};
use crate::project::Which;
use crate::settings::Settings;
use crate::state::{self, state_problem};

/// How many runs are named to somebody who asked for another.
const NAMED: usize = 8;

/// Makes the page and puts it where it is wanted.
pub(crate) fn run(
    which: &Which,
    place: Place,
    args: &ReportArgs,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let castle = Castle::find(which, place, everywhere, settings)?;
    state::its_own(&castle)?;
    let runs = Runs::at(&castle.state).map_err(|e| state_problem(&e))?;
    let kept = runs.as_ref().map(Runs::list).transpose().map_err(|e| state_problem(&e))?;
    let kept = kept.unwrap_or_default();
    let (Some(runs), Some(last)) = (runs, kept.last()) else {
        return Err(Problem::usage(format!(
            "no run of castle `{}` is kept, so there is nothing to report",
            castle.spec.name
        ))
        .hint(format!("`{} up` is the first", castle.command)));
    };
    let run = match &args.run {
        None => last.clone(),
        Some(asked) => chosen(asked, &kept)?,
    };
    let decls = castle::declare(&castle.spec);
    let made = page::make(&castle, &decls, &runs, &run).map_err(|e| state_problem(&e))?;
    let Page { html, skipped } = made.ok_or_else(|| unknown(run.as_str(), &kept))?;
    if skipped > 0 {
        output::talk(&format!(
            "notice: {skipped} lines of the events of {run} could not be read and were passed over"
        ));
    }
    match &args.out {
        Some(path) if path == Path::new("-") => output::data(html.trim_end()),
        Some(path) => {
            std::fs::write(settings.directory.join(path), html).map_err(|error| {
                let what = format!("{} could not be written", path.display());
                Problem::new(Exit::Failed, what).because(&error)
            })?;
            output::talk(&format!("{} written", path.display()));
        }
        None => {
            let path = runs.keep_page(&run, &html).map_err(|e| state_problem(&e))?;
            output::data(&path.display().to_string());
            if args.open {
                browser::open(&path, settings)?;
            }
        }
    }
    Ok(Exit::Done)
}

/// The run that somebody means by its name or its number.
fn chosen(asked: &str, kept: &[RunId]) -> Result<RunId, Problem> {
    let digits = asked.strip_prefix('r').unwrap_or(asked).parse::<u64>().ok();
    let meant = |run: &&RunId| run.as_str() == asked || digits.is_some_and(|n| number(run) == n);
    kept.iter().find(meant).cloned().ok_or_else(|| unknown(asked, kept))
}

fn unknown(asked: &str, kept: &[RunId]) -> Problem {
    let shown = &kept[kept.len().saturating_sub(NAMED)..];
    let named = shown.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let more = match kept.len() - shown.len() {
        0 => String::new(),
        more => format!(", and {more} older"),
    };
    Problem::usage(format!("no run `{asked}` is kept")).hint(format!("there is: {named}{more}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(numbers: std::ops::RangeInclusive<u32>) -> Vec<RunId> {
        numbers.map(|n| RunId::new(format!("r{n:04}-20260202"))).collect()
    }

    #[test]
    fn a_run_is_meant_by_its_name_or_its_number() {
        let kept = kept(1..=12);
        for asked in ["r0012-20260202", "12", "r12", "r0012"] {
            assert_eq!(chosen(asked, &kept).unwrap(), kept[11], "{asked}");
        }
    }

    #[test]
    fn who_asks_for_another_is_told_which_there_are() {
        let told = chosen("77", &kept(1..=2)).unwrap_err().to_string();
        assert!(told.contains("no run `77` is kept"), "{told}");
        assert!(told.contains("there is: r0001-20260202, r0002-20260202"), "{told}");
        let told = chosen("last", &kept(1..=12)).unwrap_err().to_string();
        assert!(told.contains("r0012-20260202, and 4 older"), "{told}");
    }
}
