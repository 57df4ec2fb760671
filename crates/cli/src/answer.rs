//! What a program gets with `--json`: one object a line, each with the version of the schema and what it answers.
//!
//! An event of a run has `event`, everything else `answer`; `docs/reference/json.md` explains each kind, and
//! `docs/reference/castle.schema.json` says the same to programs.

use castle_model::event::SCHEMA;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::address;
use crate::exit::Problem;

/// One answer as a line. `v` and `answer` come first; an object that has a version keeps it.
pub(crate) fn line(kind: &str, value: &impl Serialize) -> String {
    let mut answer = Map::new();
    answer.insert("v".to_owned(), SCHEMA.into());
    answer.insert("answer".to_owned(), kind.into());
    let mut value = serde_json::to_value(value).unwrap_or_else(|_| json!({}));
    address::value(&mut value);
    match value {
        Value::Object(keys) => answer.extend(keys),
        other => drop(answer.insert("value".to_owned(), other)),
    }
    Value::Object(answer).to_string()
}

/// What a command says that could not do what it was asked for: the last line, also on standard error in words.
pub(crate) fn error(problem: &Problem) -> String {
    let Problem { exit, what, causes, seen, hint } = problem;
    let seen: Vec<Value> =
        seen.iter().map(|(label, text)| json!({ "label": label, "text": text })).collect();
    line(
        "error",
        &json!({
            "exit": *exit as u8, "kind": exit.word(), "what": what, "causes": causes, "seen": seen, "hint": hint,
            "next": problem.next(),
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_all_that_people_are_told() {
        let problem = Problem::refused("the state is held")
            .hint("wait for it (--wait); `castle status` works meanwhile");
        insta::assert_snapshot!(error(&problem), @r#"{"v":1,"answer":"error","exit":3,"kind":"refused","what":"the state is held","causes":[],"seen":[],"hint":"wait for it (--wait); `castle status` works meanwhile","next":["castle status"]}"#);
    }

    #[test]
    fn what_has_a_version_keeps_it_and_what_is_no_object_has_a_key() {
        assert_eq!(line("x", &json!({ "v": 7, "a": 1 })), r#"{"v":7,"answer":"x","a":1}"#);
        assert_eq!(line("x", &json!([1])), r#"{"v":1,"answer":"x","value":[1]}"#);
    }
}
