//! Traps 5, 7, 9, 10, 11, 13 and 14: what is written, how often, and what is never sent.

use std::collections::BTreeMap;

use castle_model::{Class, Secret};
use serde_json::{Value, json};

use super::server::{Answer, Bench, breaks, lists, logs_in, place, refuses, says};
use crate::{InfisicalError, LARGEST_REQUEST, Place};

const LOGIN: &str = "POST v1/auth/universal-auth/login";
const LIST: &str = "GET v4/secrets";
const BATCH: &str = "PATCH v4/secrets/batch";

fn bench(answers: impl IntoIterator<Item = Answer>) -> Bench {
    Bench::new([logs_in("t1")].into_iter().chain(answers))
}

async fn store(bench: &Bench, key: &str, value: &str) -> Result<(), InfisicalError> {
    let metadata = BTreeMap::from([("castle".to_owned(), "blue".to_owned())]);
    bench.client.upsert(&place(), &[(key, &Secret::new(value), &metadata)]).await
}

fn kept(value: &str) -> Answer {
    let note = json!([{"key": "castle", "value": "blue", "isEncrypted": false}]);
    lists(&json!([{"secretKey": "A", "secretValue": value, "version": 3, "secretMetadata": note}]))
}

fn stored() -> Answer {
    says(200, &json!({"secrets": [{"secretKey": "A", "secretValue": "v", "version": 1}]}))
}

fn stumbles() -> Answer {
    refuses(500, "Create", "Something went wrong")
}

#[tokio::test(start_paused = true)]
async fn trap_9_a_stumble_is_looked_at_and_the_same_value_is_not_written_again() {
    // Somebody else wrote the very same; trap 5: it is compared as the server keeps it.
    let one = bench([stumbles(), kept("a: 1\n")]);
    store(&one, "A", "  a: 1\n\n").await.unwrap();
    assert_eq!(one.calls(), [LOGIN, BATCH, LIST]);
    let lost = bench([breaks(), kept("v")]);
    store(&lost, "A", "v").await.unwrap();
    assert_eq!(
        lost.calls(),
        [LOGIN, BATCH, LIST],
        "an answer that was lost is no reason for a new version"
    );
}

#[tokio::test(start_paused = true)]
async fn trap_9_after_a_stumble_what_is_not_there_is_written_once_more_and_nothing_is_written_over()
{
    let one = bench([stumbles(), lists(&json!([])), stored()]);
    store(&one, "A", "v").await.unwrap();
    assert_eq!(one.calls(), [LOGIN, BATCH, LIST, BATCH]);
    // Who loses a race for a new key is told so by a stumble: the value of the winner stays.
    let lost = bench([stumbles(), kept("of the winner"), stored()]);
    let error = store(&lost, "A", "v").await.unwrap_err();
    assert_eq!((lost.calls().len(), error.class()), (3, Class::Transient));
    let twice = bench([stumbles(), lists(&json!([])), stumbles(), stored()]);
    let error = store(&twice, "A", "v").await.unwrap_err();
    assert_eq!((twice.calls().len(), error.class()), (4, Class::Transient));
}

#[tokio::test(start_paused = true)]
async fn trap_9_a_missing_folder_is_made_and_one_that_exists_is_fine() {
    let missing = "Folder with path '/castle/blue' in environment 'dev' not found";
    let exists = "Folder with name 'blue' already exists in path '/castle'";
    let one = bench([refuses(404, "NotFound", missing), refuses(400, "BadRequest", exists)]);
    assert!(store(&one, "A", "v").await.unwrap_err().is_missing());
    one.client.create_folder(&place()).await.unwrap();
    let asked = one.asked();
    assert_eq!(
        asked[2].body,
        json!({"projectId": "p1", "environment": "dev", "name": "blue", "path": "/castle"})
    );
}

#[tokio::test(start_paused = true)]
async fn trap_7_what_is_kept_already_can_be_told_before_it_is_written() {
    let one = bench([kept("a: 1\n")]);
    let found = one.client.list(&place()).await.unwrap();
    let castle = |name: &str| BTreeMap::from([("castle".to_owned(), name.to_owned())]);
    let holds = |value: &str, name| found.holds("A", &Secret::new(value), &castle(name));
    assert!(holds("a: 1\n", "blue") && holds("  a: 1\n\n", "blue"));
    assert!(!holds("a: 1", "blue") && !holds("a: 1\n", "green"));
    assert!(!found.holds("B", &Secret::new("a: 1\n"), &castle("blue")));
}

#[tokio::test(start_paused = true)]
async fn trap_14_metadata_that_is_not_given_is_not_wiped() {
    let one = bench([stored()]);
    let none = BTreeMap::new();
    one.client.upsert(&place(), &[("A", &Secret::new("v"), &none)]).await.unwrap();
    let sent = one.asked()[1].body["secrets"][0].clone();
    assert_eq!(sent, json!({"secretKey": "A", "secretValue": "v"}));
}

#[tokio::test(start_paused = true)]
async fn trap_10_names_that_cannot_be_are_refused_before_anything_is_sent() {
    let none = bench([]);
    for key in ["a:b", "a/b", "", &"x".repeat(501)] {
        let error = store(&none, key, "v").await.unwrap_err();
        assert!(matches!(error, InfisicalError::Name { .. }), "{error}");
        assert_eq!(error.class(), Class::Invalid);
        none.client.remove(&place(), key).await.unwrap_err();
    }
    assert_eq!(none.calls().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn trap_10_long_names_and_one_called_batch_go_in_the_body() {
    let long = "x".repeat(101);
    let gone = || says(200, &json!({"secrets": [{"secretKey": "x"}]}));
    let one = bench([stored(), gone(), gone(), says(200, &json!({"secret": {}}))]);
    store(&one, &long, "v").await.unwrap();
    assert!(one.client.remove(&place(), &long).await.unwrap());
    assert!(one.client.remove(&place(), "batch").await.unwrap());
    assert!(one.client.remove(&place(), "a?b").await.unwrap());
    let batch = "DELETE v4/secrets/batch";
    assert_eq!(one.calls(), [LOGIN, BATCH, batch, batch, "DELETE v4/secrets/a%3Fb"]);
    assert_eq!(one.asked()[3].body["secrets"], json!([{"secretKey": "batch"}]));
}

#[tokio::test(start_paused = true)]
async fn trap_11_a_folder_with_a_dot_is_refused_by_its_name() {
    let none = bench([]);
    let there = Place { path: "/castles/blue.lan/x".to_owned(), ..place() };
    let error = none.client.create_folder(&there).await.unwrap_err();
    insta::assert_snapshot!(error, @"`blue.lan` in the path /castles/blue.lan/x cannot be the name of a folder in Infisical");
    assert_eq!((error.class(), none.calls().len()), (Class::Invalid, 0));
    let root = Place { path: "//".to_owned(), ..place() };
    none.client.create_folder(&root).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn trap_13_a_change_that_waits_for_approval_is_no_success() {
    let waits = || says(200, &json!({"approval": {"id": "a1", "status": "open"}}));
    let one = bench([waits(), waits()]);
    for failure in [
        store(&one, "A", "v").await.unwrap_err().failure("keep it"),
        one.client.remove(&place(), "A").await.unwrap_err().failure("remove it"),
    ] {
        assert!(failure.why.contains("approval"), "{}", failure.why);
    }
}

#[tokio::test(start_paused = true)]
async fn more_than_a_megabyte_is_never_sent() {
    let one = bench([]);
    one.client.upsert(&place(), &[]).await.unwrap();
    let error = store(&one, "A", &"x".repeat(LARGEST_REQUEST)).await.unwrap_err();
    assert_eq!(error.class(), Class::Invalid);
    let words = error.to_string();
    assert!(words.contains("bytes, and Infisical takes 1048576 at once"), "{words}");
    assert_eq!(one.calls(), [LOGIN]);
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_not_there_is_removed_already() {
    let one = bench([refuses(404, "NotFound", "Secret not found")]);
    assert!(!one.client.remove(&place(), "A").await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn values_go_in_bodies_only() {
    let one = bench([stored()]);
    store(&one, "A", "hunter3").await.unwrap();
    let asked = one.asked();
    assert_eq!(asked[1].body["secrets"][0]["secretValue"], Value::from("hunter3"));
    assert_eq!(asked[1].body["mode"], "upsert");
    assert!(asked.iter().all(|asked| !asked.target.contains("hunter")));
}
