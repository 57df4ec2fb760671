//! Traps 1 and 2: tokens that end, and logins that must never be repeated.

use castle_model::Class;
use serde_json::json;

use super::server::{Bench, TODAY, lists, logs_in, place, refuses, says};
use crate::InfisicalError;

const LOGIN: &str = "POST v1/auth/universal-auth/login";
const LIST: &str = "GET v4/secrets";

#[tokio::test(start_paused = true)]
async fn trap_1_an_expired_token_is_a_403_and_is_replaced_once() {
    let expired = || refuses(403, "TokenError", "Your token has expired. Please re-authenticate.");
    let bench = Bench::new([logs_in("t1"), expired(), logs_in("t2"), lists(&json!([]))]);
    bench.client.list(&place()).await.unwrap();
    assert_eq!(bench.calls(), [LOGIN, LIST, LOGIN, LIST]);
    let tokens: Vec<_> = bench.asked().into_iter().map(|asked| asked.token).collect();
    assert_eq!(
        (tokens[1].as_deref(), tokens[3].as_deref()),
        (Some("Bearer t1"), Some("Bearer t2"))
    );
    let bench = Bench::new([logs_in("t1"), expired(), logs_in("t2"), expired()]);
    bench.client.list(&place()).await.unwrap_err();
    assert_eq!(bench.calls().len(), 4, "once, then it fails");
}

#[tokio::test(start_paused = true)]
async fn trap_1_a_revoked_token_is_a_401_and_is_replaced_once() {
    let revoked =
        || refuses(401, "UnauthorizedError", "Failed to authorize: token has been revoked");
    let bench = Bench::new([logs_in("t1"), revoked(), logs_in("t2"), lists(&json!([]))]);
    bench.client.list(&place()).await.unwrap();
    let bench = Bench::new([logs_in("t1"), revoked(), logs_in("t2"), revoked()]);
    let error = bench.client.list(&place()).await.unwrap_err();
    let failure = error.failure("read the secrets");
    assert_eq!(failure.class, Class::Denied);
    assert!(failure.why.starts_with("https://eu.infisical.com answers 401"), "{}", failure.why);
    assert!(failure.hint.unwrap().contains("US and EU"));
}

#[tokio::test(start_paused = true)]
async fn trap_1_a_missing_right_is_a_403_and_no_reason_to_log_in_again() {
    let denied = refuses(403, "PermissionDenied", "You are not allowed to readValue on secrets");
    let bench = Bench::new([logs_in("t1"), denied]);
    let error = bench.client.list(&place()).await.unwrap_err();
    assert_eq!(error.class(), Class::Denied);
    assert_eq!(bench.calls(), [LOGIN, LIST]);
}

#[tokio::test(start_paused = true)]
async fn trap_1_a_token_is_replaced_after_four_fifths_of_its_life() {
    let bench = Bench::new([logs_in("t1"), logs_in("t2")]);
    bench.client.login().await.unwrap();
    *bench.clock.0.lock().unwrap() = TODAY + 799_999;
    bench.client.login().await.unwrap();
    assert_eq!(bench.calls().len(), 1);
    *bench.clock.0.lock().unwrap() = TODAY + 800_000;
    bench.client.login().await.unwrap();
    assert_eq!(bench.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn trap_2_a_refused_login_is_never_repeated_and_names_the_host() {
    let wrong = refuses(401, "UnauthorizedError", "Invalid credentials");
    let bench = Bench::new([wrong, logs_in("never")]);
    let first = bench.client.list(&place()).await.unwrap_err();
    let second = bench.client.clone().project("tazlab").await.unwrap_err();
    assert_eq!(bench.calls(), [LOGIN], "the second failure costs no request");
    assert_eq!(first.to_string(), second.to_string());
    let failure = second.failure("log in");
    assert_eq!(failure.class, Class::Denied);
    insta::assert_snapshot!(failure.why, @"https://eu.infisical.com refuses the login (401): Invalid credentials");
    let hint = failure.hint.unwrap();
    assert!(hint.contains("app.infisical.com") && hint.contains("eu.infisical.com"), "{hint}");
    assert_eq!(bench.asked()[0].body["clientSecret"], "hunter2", "trimmed on the way");
}

#[tokio::test(start_paused = true)]
async fn trap_2_a_lock_out_is_told_with_its_end() {
    let words = "This identity auth method is temporarily locked, please try again later";
    let bench = Bench::new([refuses(401, "UnauthorizedError", words)]);
    let error = bench.client.login().await.unwrap_err();
    insta::assert_snapshot!(error, @"https://eu.infisical.com refuses the login (401): This identity auth method is temporarily locked, please try again later; open again by 2026-02-02T02:45:00.000Z at the latest");
    assert!(error.failure("log in").hint.unwrap().contains("five minutes"));
}

#[tokio::test(start_paused = true)]
async fn other_refusals_of_a_login_keep_their_words_and_may_be_asked_again() {
    let unknown = "Sub organization with name nope not found";
    let bench = Bench::new([refuses(404, "NotFound", unknown), logs_in("t1")]);
    let error = bench.client.login().await.unwrap_err();
    assert!(matches!(&error, InfisicalError::Login { refusal, .. } if refusal.message == unknown));
    bench.client.login().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn logging_out_revokes_the_token_once() {
    let gone = says(200, &json!({"message": "Successfully revoked access token"}));
    let bench = Bench::new([logs_in("t1"), gone, logs_in("t2")]);
    bench.client.log_out().await.unwrap();
    assert_eq!(bench.calls().len(), 0, "nothing to revoke");
    bench.client.login().await.unwrap();
    bench.client.log_out().await.unwrap();
    bench.client.log_out().await.unwrap();
    assert_eq!(bench.calls(), [LOGIN, "POST v1/auth/token/revoke"]);
    assert_eq!(bench.asked()[1].body, json!({"accessToken": "t1"}));
    let late = refuses(403, "TokenError", "Your token has expired. Please re-authenticate.");
    let bench = Bench::new([logs_in("t1"), late]);
    bench.client.login().await.unwrap();
    bench.client.log_out().await.unwrap();
}
