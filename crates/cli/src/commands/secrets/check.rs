//! `castle secrets check`: every key judged as a run would judge it, and the place of escrow read.

use castle_model::Failure;

use super::{Asked, escrow, list};
use crate::exit::{Exit, Problem};
use crate::output;

/// Names all that is wrong at once; that is exit code 1.
pub(super) async fn run(asked: &Asked<'_>) -> Result<Result<Exit, Problem>, Failure> {
    let gathered = asked.sources.gather(&asked.castle.spec).await?;
    let mut keys = list::keys(asked.castle, Some(&gathered));
    let escrow = escrow::kept(asked).await?;
    let (place, foreign) = (escrow.place.clone(), escrow.foreign());
    keys.escrow = Some(escrow);
    if asked.json {
        list::show(&keys, true, asked.settings);
    } else {
        for notice in &gathered.notices {
            output::talk(&format!("notice: {notice}"));
        }
    }
    if let Some(failure) = gathered.failure() {
        return Err(failure);
    }
    asked.sources.keeps()?;
    if !foreign.is_empty() {
        let mut problem = Problem::new(
            Exit::Failed,
            format!("{place} keeps what is not of the castle `{}`", asked.castle.spec.name),
        );
        problem.causes = foreign;
        return Ok(Err(problem.hint("give each castle a place of its own")));
    }
    if !asked.json {
        let (count, from) = (keys.keys.len(), keys.sources.join(", then "));
        let are = if count == 1 { "key is" } else { "keys are" };
        output::data(&format!(
            "castle `{}`: {count} {are} there and usable, from {from}; what castle makes is kept in {place}",
            asked.castle.spec.name
        ));
    }
    Ok(Ok(Exit::Done))
}
