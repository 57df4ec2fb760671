//! `castle secrets get`: one value, to standard output or to a file of one's own.

use castle_model::Failure;
use serde_json::json;

use super::Asked;
use crate::answer;
use crate::args::Get;
use crate::commands::give;
use crate::exit::{Exit, Problem};
use crate::output;

/// Gives a value out.
pub(super) async fn run(asked: &Asked<'_>, args: &Get) -> Result<Result<Exit, Problem>, Failure> {
    let key = args.key.as_str();
    let Some(found) = asked.sources.value(&asked.castle.spec, key).await? else {
        let mut problem = Problem::new(Exit::Failed, format!("no source has the key `{key}`"));
        problem
            .causes
            .extend(asked.sources.places_of(key).into_iter().map(|p| format!("not there: {p}")));
        return Ok(Err(problem.hint(format!(
            "`{} secrets list` shows the keys of this castle and where each would come from",
            asked.castle.command
        ))));
    };
    if let Some(remark) = &found.remark {
        output::talk(&format!("notice: {key}: {remark}"));
    }
    if let Some(path) = &args.out {
        return Ok(give::write(path, &found.value, asked.settings).map(|()| Exit::Done));
    }
    if asked.json {
        let shown = json!({ "key": key, "place": found.place, "value": found.value.expose() });
        output::data(&answer::line("secret", &shown));
    } else {
        output::value(found.value.expose());
    }
    Ok(Ok(Exit::Done))
}
