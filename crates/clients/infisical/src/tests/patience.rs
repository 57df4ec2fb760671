//! Trap 16: what is tried again, how often, after which pause; and what answers in the server's place.

use std::time::Duration;

use castle_model::Class;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::server::{Answer, Bench, breaks, hangs, lists, logs_in, place, refuses, says};
use crate::InfisicalError;

fn limited(seconds: Option<&str>) -> Answer {
    let words = "Rate limit exceeded. Please try again in 59 seconds";
    let answer = refuses(429, "RateLimitExceeded", words);
    match seconds {
        Some(seconds) => answer.with("retry-after", seconds),
        None => answer,
    }
}

fn empty(status: u16) -> Answer {
    says(status, &Value::Null).body("text/plain", String::new())
}

/// Lists once, and tells after how many seconds and requests (without the login) it ended, and how.
async fn listed(answers: Vec<Answer>) -> (u64, usize, Result<(), InfisicalError>) {
    let bench = Bench::new([logs_in("t1")].into_iter().chain(answers));
    bench.client.login().await.unwrap();
    let begin = Instant::now();
    let outcome = bench.client.list(&place()).await.map(drop);
    (begin.elapsed().as_secs(), bench.calls().len() - 1, outcome)
}

#[tokio::test(start_paused = true)]
async fn trap_16_a_short_rate_limit_is_waited_for_as_long_as_it_asks() {
    let (waited, asked, outcome) = listed(vec![limited(Some("9")), lists(&json!([]))]).await;
    assert_eq!((waited, asked), (9, 2));
    outcome.unwrap();
}

#[tokio::test(start_paused = true)]
async fn trap_16_a_rate_limit_of_a_minute_is_handed_on_to_somebody_who_can_tell_of_it() {
    let (waited, asked, outcome) = listed(vec![limited(Some("59"))]).await;
    assert_eq!((waited, asked), (0, 1));
    let failure = outcome.unwrap_err().failure("read");
    assert_eq!((failure.class, failure.asked_to_wait().as_secs()), (Class::Transient, 59));
    assert!(failure.why.contains("https://eu.infisical.com answers 429"), "{}", failure.why);
    assert!(failure.hint.unwrap().contains("wait as long as it says"));
    // Nor is a login asked for again before its time.
    let failure =
        Bench::new([limited(Some("59"))]).client.login().await.unwrap_err().failure("log in");
    assert_eq!((failure.class, failure.asked_to_wait().as_secs()), (Class::Transient, 59));
    // What is refused for another reason is never waited for.
    let refusal = refuses(403, "PermissionDenied", "no").with("retry-after", "59");
    let (_, _, outcome) = listed(vec![refusal]).await;
    assert!(outcome.unwrap_err().failure("read").asked_to_wait().is_zero());
}

#[tokio::test(start_paused = true)]
async fn trap_16_a_rate_limit_without_a_time_is_asked_about_ever_more_slowly() {
    let answers = vec![limited(None), limited(Some("soon")), limited(None), lists(&json!([]))];
    let (waited, asked, outcome) = listed(answers).await;
    assert_eq!((waited, asked), (1 + 2 + 4, 4));
    outcome.unwrap();
}

#[tokio::test(start_paused = true)]
async fn trap_16_a_rate_limit_that_does_not_end_ends_with_the_patience() {
    let (waited, asked, outcome) = listed((0..99).map(|_| limited(None)).collect()).await;
    assert_eq!((waited, asked), (1 + 2 + 4, 4));
    let failure = outcome.unwrap_err().failure("read");
    assert_eq!((failure.class, failure.asked_to_wait().as_secs()), (Class::Transient, 16));
    let bench = Bench::new([limited(Some("3"))]);
    let hasty = bench.client.clone().patience(Duration::from_secs(2));
    hasty.login().await.unwrap_err();
    assert_eq!(bench.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn trap_16_a_gateway_without_its_server_is_asked_twice_more() {
    let (waited, asked, outcome) = listed(vec![empty(502), empty(503), lists(&json!([]))]).await;
    assert_eq!((waited, asked), (3, 3));
    outcome.unwrap();
    let (_, asked, outcome) = listed((0..9).map(|_| empty(504)).collect()).await;
    assert_eq!((asked, outcome.unwrap_err().class()), (3, Class::Transient));
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_nothing_is_waited_for_in_silence() {
    let (waited, asked, outcome) = listed(vec![hangs()]).await;
    assert_eq!((waited, asked), (40, 1), "one deadline and no more");
    assert_eq!(outcome.unwrap_err().class(), Class::Transient);
    let (waited, asked, outcome) = listed(vec![breaks()]).await;
    assert_eq!((waited, asked), (0, 1));
    assert_eq!(outcome.unwrap_err().class(), Class::Transient);
}

#[tokio::test(start_paused = true)]
async fn trap_16_an_inner_error_is_asked_about_once_more() {
    let broken = || refuses(500, "Find one", "Something went wrong");
    let (_, asked, outcome) = listed(vec![broken(), lists(&json!([]))]).await;
    assert_eq!(asked, 2);
    outcome.unwrap();
    let (_, asked, outcome) = listed(vec![broken(), broken(), lists(&json!([]))]).await;
    assert_eq!(asked, 2);
    outcome.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn trap_16_what_can_never_succeed_is_never_repeated() {
    for (status, error) in [
        (400, "BadRequest"),
        (403, "PermissionDenied"),
        (403, "ProjectMembershipNotFound"),
        (422, "ValidationFailure"),
    ] {
        let (waited, asked, outcome) = listed(vec![refuses(status, error, "no")]).await;
        assert_eq!((waited, asked), (0, 1), "{status}");
        outcome.unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_whose_answer_was_lost_is_not_sent_again() {
    // It may have been a wrong secret, and would count twice.
    let bench = Bench::new([breaks(), logs_in("t1")]);
    bench.client.login().await.unwrap_err();
    assert_eq!(bench.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_page_in_the_place_of_an_answer_is_named_and_never_shown() {
    let page = |status| {
        let text = "<!DOCTYPE html><html><head><title>Sign in | Example</title></head>hunter2";
        says(status, &Value::Null).body("text/html; charset=utf-8", text.to_owned())
    };
    for (answer, class, words) in [
        (page(200), Class::Invalid, "status 200, a page titled \"Sign in | Example\""),
        (page(403), Class::Invalid, "status 403, a page titled \"Sign in | Example\""),
        (
            empty(302).with("location", "https://sso.example/login?state=hunter2"),
            Class::Invalid,
            "status 302, it sends us to https://sso.example/login",
        ),
    ] {
        let (_, asked, outcome) = listed(vec![answer]).await;
        let failure = outcome.unwrap_err().failure("read the secrets");
        let expected = format!(
            "what answers at https://eu.infisical.com is not the API of Infisical: {words}"
        );
        assert_eq!((asked, failure.class, failure.why), (1, class, expected));
        assert!(failure.hint.unwrap().contains("host"));
    }
    let (_, asked, outcome) = listed(vec![page(503), page(503), page(503)]).await;
    assert_eq!((asked, outcome.unwrap_err().class()), (3, Class::Transient));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_neither_json_nor_a_page_is_not_quoted() {
    let odd = says(200, &Value::Null).body("application/json", "{\"secrets\": hunter2".to_owned());
    let (_, _, outcome) = listed(vec![odd]).await;
    let failure = outcome.unwrap_err().failure("read the secrets");
    assert!(failure.why.contains("cannot be read") && !failure.why.contains("hunter2"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_many_megabytes_is_refused() {
    let huge = says(200, &Value::Null).body("application/json", " ".repeat((8 << 20) + 1));
    let (_, asked, outcome) = listed(vec![huge]).await;
    let failure = outcome.unwrap_err().failure("read the secrets");
    assert_eq!((asked, failure.class), (1, Class::Invalid));
    assert!(failure.why.contains("larger than 8388608 bytes"), "{}", failure.why);
}
