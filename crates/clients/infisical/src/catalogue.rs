//! The real messages of Infisical and what each means for us.

use castle_model::{Class, Failure};

/// What a message means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meaning {
    /// Decides whether the same thing may be tried again.
    pub class: Class,
    /// What a person can do about it.
    pub hint: Option<&'static str>,
}

/// One row: an answer with this status whose message holds this text means this.
struct Row(u16, &'static str, Class, Option<&'static str>);

/// The first row that fits wins. The `error` field is not used: for 404 it carries the name of an operation.
const ROWS: &[Row] = &[
    Row(
        401,
        "temporarily locked",
        Class::Denied,
        Some(
            "three wrong client secrets lock the identity for five minutes, for everyone: wait, then use the right one",
        ),
    ),
    Row(
        401,
        "expired client secret",
        Class::Denied,
        Some("make a new client secret for the machine identity"),
    ),
    Row(
        401,
        "usage limit reached",
        Class::Denied,
        Some("make a new client secret without a limit on its uses"),
    ),
    Row(
        401,
        "Invalid credentials",
        Class::Denied,
        Some(
            "compare the client id, the client secret and the host: US (app.infisical.com) and EU (eu.infisical.com) are \
             separate worlds, and each refuses what belongs to the other",
        ),
    ),
    Row(
        401,
        "",
        Class::Denied,
        Some(
            "even a fresh token is refused: is the machine identity still there, and is this its host? US and EU are \
             separate worlds",
        ),
    ),
    Row(
        403,
        "You are not a member of this project",
        Class::Denied,
        Some("add the machine identity to the project"),
    ),
    Row(
        403,
        "You are not allowed to",
        Class::Denied,
        Some("give the machine identity that right on this path"),
    ),
    Row(403, "", Class::Denied, None),
    Row(
        404,
        "Route ",
        Class::Invalid,
        Some("the server is older than 0.150 and has no v4 API: upgrade it"),
    ),
    Row(
        404,
        "Project with",
        Class::Invalid,
        Some("compare `project` with the slug in the project's settings"),
    ),
    Row(
        404,
        "Environment with slug",
        Class::Invalid,
        Some("compare `environment` with the project's environments"),
    ),
    Row(
        404,
        "Folder with path",
        Class::Gone,
        Some("compare `environment` and `path`, or create the folder"),
    ),
    Row(404, "", Class::Gone, None),
    Row(400, "already exists", Class::Conflict, None),
    Row(
        429,
        "",
        Class::Transient,
        Some(
            "it limits how often it is asked: wait as long as it says, then run the same command again",
        ),
    ),
    Row(500, "", Class::Transient, None),
    Row(502, "", Class::Transient, None),
    Row(503, "", Class::Transient, None),
    Row(504, "", Class::Transient, None),
];

/// What an answer with this status and message means.
#[must_use]
pub fn meaning(status: u16, message: &str) -> Meaning {
    ROWS.iter().find(|Row(code, part, ..)| *code == status && message.contains(part)).map_or(
        Meaning { class: Class::Invalid, hint: None },
        |Row(_, _, class, hint)| Meaning { class: *class, hint: *hint },
    )
}

/// The failure behind an answer; `why` is the whole sentence with host and request id.
#[must_use]
pub fn failure(status: u16, message: &str, what: impl Into<String>, why: String) -> Failure {
    let meaning = meaning(status, message);
    Failure::new(meaning.class, what, why).hint(meaning.hint.unwrap_or(match meaning.class {
        Class::Transient => "the server is not well: run the same command again when it is",
        Class::Denied => {
            "is the machine identity still valid, and may it use this path? Give it a new client secret, or that right"
        }
        _ => "compare `host`, `project`, `environment` and `path` with what the server has",
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_says_what_to_do_next() {
        for status in [400, 401, 403, 404, 409, 418, 500, 502] {
            let told = failure(status, "Your token has expired", "read", "because".to_owned());
            assert!(told.hint.is_some_and(|hint| !hint.is_empty()), "{status}");
        }
    }

    #[test]
    fn answers_mean_what_they_mean() {
        use Class::{Conflict, Denied, Gone, Invalid, Transient};
        for (status, message, class) in [
            (401, "Invalid credentials", Denied),
            (
                401,
                "This identity auth method is temporarily locked, please try again later",
                Denied,
            ),
            (401, "Access denied due to expired client secret", Denied),
            (401, "Failed to authorize: token has been revoked", Denied),
            (403, "Your token has expired. Please re-authenticate.", Denied),
            (403, "You are not allowed to create on secrets", Denied),
            (
                403,
                "You are not a member of this project with ID x. Please assign this identity",
                Denied,
            ),
            (404, "Project with slug 'nope-nope' not found", Invalid),
            (404, "Project with ID 'x' not found during bot lookup.", Invalid),
            (404, "Environment with slug 'nope' in project with ID '1' not found", Invalid),
            (404, "Folder with path '/no/such' in environment 'dev' was not found.", Gone),
            (404, "Secret with name 'NOPE' not found", Gone),
            (404, "Route GET:/api/v9/nothing not found", Invalid),
            (400, "Secret already exists", Conflict),
            (400, "Folder with name 'c' already exists in path '/a/b'", Conflict),
            (400, "Missing project id or environment", Invalid),
            (422, "projectId: Required", Invalid),
            (429, "Rate limit exceeded. Please try again in 59 seconds", Transient),
            (500, "Something went wrong", Transient),
            (503, "", Transient),
        ] {
            assert_eq!(meaning(status, message).class, class, "{status} {message}");
        }
    }

    #[test]
    fn a_lock_out_is_explained_as_one() {
        let locked = "This identity auth method is temporarily locked, please try again later";
        assert!(meaning(401, locked).hint.unwrap().contains("five minutes"));
        assert!(meaning(401, "Invalid credentials").hint.unwrap().contains("EU"));
    }
}
