//! Liveness: a run that does not converge says what was done, to what, why it failed and what to do next.

use castle_model::{Class, Failure};

use super::Violation;
use crate::castle::Run;

/// What a run that failed leaves unexplained.
#[must_use]
pub fn explained(ran: &Run) -> Vec<Violation> {
    match &ran.ended {
        _ if ran.killed => Vec::new(),
        Err(error) if ran.refused.is_some() => {
            let lacking = ran.refused.as_ref().and_then(lacking);
            let told =
                |lacking| Violation::new("failures are explained", format!("{error} {lacking}"));
            lacking.map(told).into_iter().collect()
        }
        Err(error) => vec![Violation::new("no run breaks off", error.clone())],
        Ok(runs) => runs
            .iter()
            .flat_map(|(_, report)| &report.failures)
            .filter_map(|(step, failure)| {
                let lacking = lacking(failure)?;
                Some(Violation::new(
                    "failures are explained",
                    format!("{step} {lacking}: {failure}"),
                ))
            })
            .collect(),
    }
}

fn lacking(failure: &Failure) -> Option<&'static str> {
    if failure.class == Class::Bug {
        return Some("blames castle itself");
    }
    let hint = failure.hint.as_deref().unwrap_or_default();
    match (failure.what.is_empty(), failure.why.is_empty(), hint.is_empty()) {
        (true, _, _) => Some("does not say what was done"),
        (_, true, _) => Some("does not say why"),
        (_, _, true) => Some("does not say what to do next"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_without_a_word_is_found() {
        let failure = Failure::new(Class::Transient, "ask the node", "no answer").hint("wait");
        assert_eq!(lacking(&failure), None);
        let silent = Failure { hint: None, ..failure.clone() };
        assert_eq!(lacking(&silent), Some("does not say what to do next"));
        let empty = Failure { why: String::new(), ..failure.clone() };
        assert_eq!(lacking(&empty), Some("does not say why"));
        assert_eq!(lacking(&Failure::bug("count", "minus one")), Some("blames castle itself"));
        let vague = Failure { what: String::new(), ..failure };
        assert_eq!(lacking(&vague), Some("does not say what was done"));
    }
}
