//! Our client of Infisical against the emulated one, in good days and bad.

use std::collections::BTreeMap;
use std::time::Duration;

use castle_infisical::{Credentials, Infisical, InfisicalError, Place, Reason};
use castle_model::{Class, Secret};

use super::*;
use crate::trouble::InfisicalTrouble;

async fn vault(host: &Host) -> (Infisical, Place) {
    let birth = host.read(|world| world.birth.infisical.clone());
    let credentials = Credentials {
        client_id: Secret::new(birth.client_id),
        client_secret: Secret::new(birth.client_secret),
    };
    let vault = Infisical::new(&host.world(), &birth.host, credentials).unwrap();
    let project = vault.project(&birth.project).await.unwrap();
    (vault, Place { project, environment: birth.environment, path: birth.path })
}

async fn store(vault: &Infisical, place: &Place, value: &str) -> Result<(), InfisicalError> {
    let notes = BTreeMap::from([("castle".to_owned(), "blue".to_owned())]);
    vault.upsert(place, &[("KEPT", &Secret::new(value), &notes)]).await
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_is_read_back_as_the_server_keeps_it() {
    let host = memory(7);
    let (vault, place) = vault(&host).await;
    let deep = Place { path: "/new/folders/three".to_owned(), ..place.clone() };
    assert!(vault.list(&deep).await.unwrap_err().is_missing());
    assert!(store(&vault, &deep, "v").await.unwrap_err().is_missing());
    vault.create_folder(&deep).await.unwrap();
    vault.create_folder(&deep).await.unwrap();
    store(&vault, &deep, "  a: ${X}\n\n").await.unwrap();
    let found = vault.list(&deep).await.unwrap();
    assert_eq!(found.own["KEPT"].value.expose(), "a: ${X}\n");
    assert_eq!(found.own["KEPT"].metadata["castle"], "blue");
    let missing = vault.explain_missing(&deep, &["NOPE"]).await.unwrap();
    assert_eq!(missing[0].reason, Reason::Absent);
    assert!(vault.remove(&deep, "KEPT").await.unwrap());
    assert!(!vault.remove(&deep, "KEPT").await.unwrap());
    let nowhere = Place { environment: "nope".to_owned(), ..place };
    assert_eq!(vault.list(&nowhere).await.unwrap_err().class(), Class::Invalid);
}

#[tokio::test(start_paused = true)]
async fn names_that_no_route_takes_come_and_go_all_the_same() {
    let host = memory(7);
    let (vault, place) = vault(&host).await;
    let (long, notes) = ("x".repeat(200), BTreeMap::new());
    for key in ["batch", "a?b %", "ÄÖ", &long] {
        vault.upsert(&place, &[(key, &Secret::new("v"), &notes)]).await.unwrap();
        assert_eq!(vault.list(&place).await.unwrap().own[key].version, 1, "{key}");
        assert!(vault.remove(&place, key).await.unwrap(), "{key}");
        assert!(!vault.remove(&place, key).await.unwrap(), "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_costs_a_minute_of_the_worlds_time_and_nothing_else() {
    let host = memory(7);
    let (hasty, place) = vault(&host).await;
    host.cause(InfisicalTrouble::Limited(true));
    let before = host.now();
    for _ in 0..40 {
        hasty.list(&place).await.unwrap();
    }
    let failure = hasty.list(&place).await.unwrap_err().failure("read");
    assert!((50..60).contains(&failure.asked_to_wait().as_secs()), "{failure:?}");
    let patient = hasty.clone().patience(Duration::from_secs(75));
    patient.list(&place).await.unwrap();
    let waited = host.now() - before;
    assert!((59_000..63_000).contains(&waited), "{waited} ms");
}

#[tokio::test(start_paused = true)]
async fn a_stumble_leaves_one_version_and_a_page_is_named() {
    let host = memory(7);
    let (vault, place) = vault(&host).await;
    host.cause(InfisicalTrouble::Stumbles(1));
    store(&vault, &place, "v").await.unwrap();
    assert_eq!(vault.list(&place).await.unwrap().own["KEPT"].version, 1);
    host.cause(InfisicalTrouble::Stumbles(1));
    assert_eq!(store(&vault, &place, "w").await.unwrap_err().class(), Class::Transient);
    assert_eq!(vault.list(&place).await.unwrap().own["KEPT"].value.expose(), "v");
    host.cause(InfisicalTrouble::Page(200, "Sign in".to_owned()));
    let failure = vault.list(&place).await.unwrap_err().failure("read the secrets");
    assert!(failure.why.ends_with("status 200, a page titled \"Sign in\""), "{}", failure.why);
    host.cause(InfisicalTrouble::PageGone);
    vault.list(&place).await.unwrap();
    vault.log_out().await.unwrap();
    vault.list(&place).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wrong_secret_is_sent_once_and_locks_nobody_out() {
    let host = memory(7);
    let birth = host.read(|world| world.birth.infisical.clone());
    let credentials = Credentials {
        client_id: Secret::new(birth.client_id),
        client_secret: Secret::new("wrong"),
    };
    let wrong = Infisical::new(&host.world(), &birth.host, credentials).unwrap();
    for _ in 0..5 {
        let error = wrong.login().await.unwrap_err();
        assert!(error.to_string().contains("Invalid credentials"), "{error}");
    }
    vault(&host).await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_is_told_from_one_that_may_not_be_seen() {
    let host = memory(7);
    let (vault, place) = vault(&host).await;
    let key = vault.list(&place).await.unwrap().own.keys().next().unwrap().clone();
    host.cause(InfisicalTrouble::Confined("/elsewhere/**".to_owned()));
    assert!(vault.list(&place).await.unwrap().own.is_empty());
    let missing = vault.explain_missing(&place, &[&key]).await.unwrap();
    let words = "You are not allowed to describeSecret on secrets";
    assert_eq!(missing[0].reason, Reason::Denied(words.to_owned()));
    let why = store(&vault, &place, "v").await.unwrap_err();
    assert_eq!(why.class(), Class::Denied);
}

#[tokio::test(start_paused = true)]
async fn credentials_that_ended_are_refused_until_they_are_good_again() {
    let host = memory(7);
    let (logged_in, place) = vault(&host).await;
    for (trouble, wrong) in [
        (InfisicalTrouble::Expired, "the client secrets of Infisical have run out"),
        (InfisicalTrouble::Revoked, "the client secrets of Infisical are revoked"),
    ] {
        host.cause(trouble);
        assert_eq!(logged_in.list(&place).await.unwrap_err().class(), Class::Denied);
        assert_eq!(host.inventory().wrong, [wrong]);
    }
    host.cause(InfisicalTrouble::Restored);
    // Who was refused once does not ask again, lest the identity be locked: the next process does.
    let (next, place) = vault(&host).await;
    next.list(&place).await.unwrap();
    assert!(host.inventory().wrong.is_empty());
}
