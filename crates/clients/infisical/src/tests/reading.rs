//! Traps 3, 4, 6, 8, 12 and 15: lists that are not what they seem.

use castle_model::Class;
use serde_json::{Value, json};

use super::server::{Answer, Bench, lists, logs_in, place, refuses, says};
use crate::{Missing, Reason};

fn secret(key: &str, value: &str) -> Value {
    json!({"secretKey": key, "secretValue": value, "version": 1, "secretValueHidden": false})
}

fn bench(answers: impl IntoIterator<Item = Answer>) -> Bench {
    Bench::new([logs_in("t1")].into_iter().chain(answers))
}

#[tokio::test(start_paused = true)]
async fn trap_3_an_empty_list_is_explained_key_by_key() {
    let denied =
        refuses(403, "PermissionDenied", "You are not allowed to describeSecret on secrets");
    let bench = bench([
        lists(&json!([])),
        refuses(404, "NotFound", "Secret with name 'NOPE' not found"),
        denied,
        says(200, &json!({"secret": secret("LATE", "v")})),
    ]);
    assert_eq!(bench.client.list(&place()).await.unwrap(), crate::Found::default());
    let long = "x".repeat(101);
    let keys = ["NOPE", "HID:DEN?", "LATE", &long];
    let found = bench.client.explain_missing(&place(), &keys).await.unwrap();
    let words: Vec<String> = found.iter().take(3).map(Missing::to_string).collect();
    insta::assert_snapshot!(words.join("\n"), @r"
    NOPE does not exist
    HID:DEN? is not for this identity to see (You are not allowed to describeSecret on secrets)
    LATE is there by now
    ");
    assert_eq!(found[3].reason, Reason::Unasked);
    assert_eq!(bench.calls()[3], "GET v4/secrets/HID%3ADEN%3F");
    let target = bench.asked()[2].target.clone();
    assert!(target.contains("expandSecretReferences=false"), "{target}");
}

#[tokio::test(start_paused = true)]
async fn trap_3_a_folder_that_is_not_there_is_no_answer_about_its_keys() {
    let lost = "Folder with path '/castle/blue' in environment with slug 'dev' not found";
    let bench = bench([refuses(404, "GetSecretByName", lost)]);
    let error = bench.client.explain_missing(&place(), &["A", "B"]).await.unwrap_err();
    assert!(error.is_missing());
}

#[tokio::test(start_paused = true)]
async fn trap_4_hidden_values_are_refused_by_their_names() {
    let hidden = |key: &str| json!({"secretKey": key, "secretValue": "<hidden-by-infisical>", "secretValueHidden": true});
    let imports = json!([{"secretPath": "/x", "environment": "dev", "secrets": [hidden("C")]}]);
    let own = json!([hidden("A"), secret("B", "v"),]);
    let bench = bench([says(200, &json!({"secrets": own, "imports": imports}))]);
    let failure = bench.client.list(&place()).await.unwrap_err().failure("read the secrets");
    assert_eq!(failure.class, Class::Denied);
    assert_eq!(failure.why, "https://eu.infisical.com hides the value of `A`, `C`");
}

#[tokio::test(start_paused = true)]
async fn trap_6_references_are_never_expanded_and_the_query_is_exact() {
    let bench = bench([lists(&json!([secret("A", "x ${B} y")]))]);
    let found = bench.client.list(&place()).await.unwrap();
    assert_eq!(found.own["A"].value.expose(), "x ${B} y");
    assert_eq!(
        bench.asked()[1].target,
        "/api/v4/secrets?projectId=p1&environment=dev&secretPath=%2Fcastle%2Fblue&recursive=false\
         &includeImports=true&expandSecretReferences=false&viewSecretValue=true"
    );
}

#[tokio::test(start_paused = true)]
async fn trap_8_own_secrets_win_over_imported_ones_and_later_imports_over_earlier_ones() {
    let imports = json!([
        {"secretPath": "/one", "environment": "dev", "folderId": "f1",
         "secrets": [secret("A", "first"), secret("B", "first"), secret("C", "first")]},
        {"secretPath": "/two", "environment": "prod", "folderId": "f2",
         "secrets": [secret("A", "second"), secret("B", "second")]},
    ]);
    let own = json!([secret("A", "own")]);
    let bench = bench([says(200, &json!({"secrets": own, "imports": imports}))]);
    let found = bench.client.list(&place()).await.unwrap();
    let value = |key: &str| found.get(key).unwrap().value.expose().to_owned();
    assert_eq!([value("A"), value("B"), value("C")], ["own", "second", "first"]);
    assert!(!found.own.contains_key("B"), "what is imported is not there to be overwritten");
}

#[tokio::test(start_paused = true)]
async fn trap_12_a_missing_environment_is_told_from_a_missing_folder() {
    let words = "Folder with path '/castle/blue' in environment 'dev' was not found. Please ensure \
                 the environment slug and secret path is correct.";
    let lost = || refuses(404, "SecretPathNotFound", words);
    let there = says(200, &json!({"folders": []}));
    let one = bench([lost(), there]);
    assert!(one.client.list(&place()).await.unwrap_err().is_missing());
    assert_eq!(one.asked()[2].target, "/api/v2/folders?projectId=p1&environment=dev&path=%2F",);
    let nowhere = refuses(404, "NotFound", "Environment with slug 'dev' not found");
    let other = bench([lost(), nowhere]);
    let error = other.client.list(&place()).await.unwrap_err();
    assert!(!error.is_missing(), "no folder can be made in an environment that is not there");
    assert!(error.failure("read").hint.unwrap().contains("`environment`"));
}

#[tokio::test(start_paused = true)]
async fn trap_15_an_old_server_is_named_as_one() {
    let route = json!({"message": "Route GET:/api/v4/secrets?projectId=p1 not found", "error": "Not Found", "statusCode": 404});
    let bench = bench([says(404, &route)]);
    let error = bench.client.list(&place()).await.unwrap_err();
    assert!(!error.is_missing(), "it is not the folder that is missing");
    let failure = error.failure("read the secrets");
    assert_eq!(failure.class, Class::Invalid);
    assert!(
        failure.why.contains("too old for the v4 API: version 0.150 or later"),
        "{}",
        failure.why
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_asks_for_nothing_twice() {
    let project = says(200, &json!({"id": "p1", "environments": []}));
    let keys: Vec<Value> = (0..40).map(|n| secret(&format!("K{n}"), "v")).collect();
    let bench = bench([project, lists(&json!(keys))]);
    assert_eq!(bench.client.project("a b").await.unwrap(), "p1");
    assert_eq!(bench.client.list(&place()).await.unwrap().own.len(), 40);
    assert_eq!(bench.client.clone().project("a b").await.unwrap(), "p1");
    assert_eq!(
        bench.calls(),
        ["POST v1/auth/universal-auth/login", "GET v1/projects/slug/a%20b", "GET v4/secrets"]
    );
}

#[tokio::test(start_paused = true)]
async fn slashes_and_api_at_the_end_of_the_address_are_taken_off() {
    for host in
        ["https://eu.infisical.com/", "https://eu.infisical.com//", "https://eu.infisical.com/api/"]
    {
        let bench = Bench::at(host, [logs_in("t1")]);
        bench.client.login().await.unwrap();
        assert_eq!(bench.asked()[0].target, "/api/v1/auth/universal-auth/login");
        assert_eq!(bench.client.host(), "https://eu.infisical.com");
    }
}
