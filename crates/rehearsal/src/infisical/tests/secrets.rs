//! Secrets and folders that are read and written.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::Infisical;
use super::super::vault::trimmed;
use super::{Bench, birth, fields};

#[test]
fn secrets_are_listed_expanded_or_hidden() {
    let mut bench = Bench::logged_in();
    let project = bench.project();
    let list =
        format!("/api/v4/secrets?projectId={project}&environment=dev&secretPath=%2Fcastle%2Fblue");
    let values = |answer: &Value| -> Vec<String> {
        let listed = answer["secrets"].as_array().unwrap();
        listed.iter().map(|secret| secret["secretValue"].as_str().unwrap().to_owned()).collect()
    };
    let answer = bench.get(&list);
    assert_eq!(values(&answer), ["ghp_canary", "x ghp_canary ${NOSUCH} y"]);
    assert_eq!(answer["imports"], json!([]));
    let plain = bench.get(&format!("{list}&expandSecretReferences=false"));
    assert_eq!(values(&plain)[1], "x ${GITHUB_TOKEN} ${NOSUCH} y");
    let hidden = bench.get(&format!("{list}&viewSecretValue=false"));
    assert_eq!(values(&hidden)[0], "<hidden-by-infisical>");
    assert_eq!(hidden["secrets"][0]["secretValueHidden"], true);
    let root = format!("/api/v4/secrets?projectId={project}&environment=dev");
    assert_eq!(values(&bench.get(&root)).len(), 0);
    assert_eq!(values(&bench.get(&format!("{root}&recursive=true"))).len(), 2);
    let (status, answer) = bench.call("GET", &format!("{root}&recursive=True"), &Value::Null);
    assert_eq!((status, &answer["message"][0]["code"]), (422, &json!("invalid_enum_value")));
    let mut first = bench.get(&list)["secrets"][0].clone();
    for name in ["id", "_id", "workspace"] {
        first[name] = json!("…");
    }
    insta::assert_json_snapshot!(first, @r#"
    {
      "id": "…",
      "_id": "…",
      "workspace": "…",
      "environment": "dev",
      "version": 1,
      "type": "shared",
      "secretKey": "GITHUB_TOKEN",
      "secretValue": "ghp_canary",
      "secretComment": "",
      "secretReminderNote": null,
      "secretReminderRepeatDays": null,
      "skipMultilineEncoding": false,
      "createdAt": "2026-02-02T00:00:00.000Z",
      "updatedAt": "2026-02-02T00:00:00.000Z",
      "isRotatedSecret": false,
      "rotationId": null,
      "secretValueHidden": false,
      "secretPath": "/castle/blue",
      "tags": [],
      "secretMetadata": []
    }
    "#);
}

#[test]
fn a_batch_creates_updates_and_counts_versions() {
    let mut bench = Bench::logged_in();
    let project = bench.project();
    let wanted = |value: &str| {
        let entry = json!({
            "secretKey": "KUBECONFIG", "secretValue": value, "secretComment": "backup",
            "secretMetadata": [{"key": "incarnation", "value": "i1"}],
        });
        fields(&project, "castle//blue/", &json!({"mode": "upsert", "secrets": [entry]}))
    };
    for (value, version, kept) in [
        ("  a: 1\n", 1, "a: 1\n"),
        ("  a: 1\n", 2, "a: 1\n"),
        ("a\nb\n\n", 3, "a\nb\n"),
        ("a  ", 4, "a"),
        ("a\r\n", 5, "a\n"),
    ] {
        let (status, answer) = bench.call("PATCH", "/api/v4/secrets/batch", &wanted(value));
        assert_eq!(status, 200, "{answer}");
        let secret = &answer["secrets"][0];
        assert_eq!((&secret["version"], &secret["secretValue"]), (&json!(version), &json!(kept)));
    }
    let target = format!(
        "/api/v4/secrets/KUBECONFIG?projectId={project}&environment=dev&secretPath=/castle/blue"
    );
    let secret = bench.get(&target)["secret"].clone();
    assert_eq!((&secret["secretComment"], &secret["version"]), (&json!("backup"), &json!(5)));
    assert_eq!(
        secret["secretMetadata"],
        json!([{"key": "incarnation", "value": "i1", "isEncrypted": false}])
    );
    assert_eq!(bench.get(&format!("{target}&version=3"))["secret"]["secretValue"], "a\nb\n");
    let gone = fields(&project, "/castle/blue", &json!({}));
    assert_eq!(bench.call("DELETE", "/api/v4/secrets/KUBECONFIG", &gone).0, 200);
    assert_eq!(bench.call("GET", &target, &Value::Null).0, 404);
}

#[test]
fn a_batch_writes_all_or_nothing() {
    let mut bench = Bench::logged_in();
    let project = bench.project();
    let mixed = json!({"mode": "upsert", "secrets": [
        {"secretKey": "A", "secretValue": "1"},
        {"secretKey": "B", "secretValue": "2", "secretPath": "/no/such"},
    ]});
    let before = bench.infisical.clone();
    let (status, _) =
        bench.call("PATCH", "/api/v4/secrets/batch", &fields(&project, "/castle/blue", &mixed));
    assert_eq!(status, 404);
    assert_eq!(bench.infisical, before);
}

#[test]
fn folders_come_with_their_parents() {
    let mut bench = Bench::logged_in();
    let project = bench.project();
    let wanted = json!({"projectId": project, "environment": "dev", "name": "c", "path": "/a/b"});
    let (_, answer) = bench.call("POST", "/api/v2/folders", &wanted);
    assert_eq!(answer["folder"]["path"], "/a/b/c");
    let list = format!("/api/v2/folders?projectId={project}&environment=dev&path=");
    let names = |answer: &Value| -> Vec<String> {
        let listed = answer["folders"].as_array().unwrap();
        listed.iter().map(|folder| folder["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&bench.get(&format!("{list}/"))), ["a", "castle"]);
    assert_eq!(names(&bench.get(&format!("{list}/a&recursive=true"))), ["b", "c"]);
    assert_eq!(names(&bench.get(&format!("{list}/zzz"))).len(), 0);
}

#[test]
fn what_is_there_survives_a_changed_castle_file_and_a_restart() {
    let mut bench = Bench::logged_in();
    let project = bench.project();
    let body = fields(&project, "/castle/blue", &json!({"secretValue": "rotated"}));
    assert_eq!(bench.call("PATCH", "/api/v4/secrets/GITHUB_TOKEN", &body).0, 200);
    let mut changed = birth();
    changed.path = "/castle/green".to_owned();
    bench.infisical.ensure(&birth());
    bench.infisical.ensure(&changed);
    assert_eq!(
        bench.infisical.keys(),
        [
            "tazlab/dev/castle/blue/GITHUB_TOKEN",
            "tazlab/dev/castle/blue/REFERS",
            "tazlab/dev/castle/green/GITHUB_TOKEN",
            "tazlab/dev/castle/green/REFERS",
        ]
    );
    let text = serde_json::to_string(&bench.infisical).unwrap();
    let read: Infisical = serde_json::from_str(&text).unwrap();
    assert_eq!(read, bench.infisical);
    assert!(text.contains("rotated"), "a write outlives ensure");
    assert!(!text.contains("c0ffee"), "client secrets are kept as hashes");
    let shown = format!("{read:?} {:?}", birth());
    for secret in ["rotated", "ghp_canary", "c0ffee"] {
        assert!(!shown.contains(secret), "{secret}");
    }
}

proptest! {
    /// What the client expects to read back is what the server keeps, whatever was written.
    #[test]
    fn client_and_server_trim_alike(value in "[ \t\r\n\u{b}\u{85}\u{a0}\u{feff}\u{2003}a${}]{0,12}|.*") {
        let kept = trimmed(&value);
        prop_assert_eq!(&castle_infisical::stored_as(&value), &kept);
        prop_assert_eq!(&trimmed(&kept), &kept);
    }
}
