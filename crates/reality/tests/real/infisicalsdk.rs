//! infisicalsdk, the Python client of Infisical, against the emulated one.

use castle_model::spec::{ReaderSpec, SecretRef, SourceSpec, Spec};
use castle_reality::{Real, run};
use serde_json::Value;

use crate::datacenter::{Datacenter, LIMIT};
use crate::setting::{folder, pem, with, write};

/// What it reads, in the words of the real Infisical.
const TOLD: &[&str] = &[
    r#"no token: {"error":"UnauthorizedError","status":401,"text":"Token missing"}"#,
    r#"login: ["Bearer",2592000,2592000]"#,
    r#"folder: ["blue","/sdk/blue"]"#,
    r#"folders: ["blue"]"#,
    r#"folder again: {"error":"BadRequest","status":400,"text":"Folder with name 'blue' already exists in path '/sdk'"}"#,
    "folder with a dot: 422",
    r#"created: ["TOKEN","käse: 1\n",1]"#,
    r#"created again: {"error":"BadRequest","status":400,"text":"Secret already exists"}"#,
    r#"listed: [["REFERS","<käse: 1\n>",1,""],["TOKEN","käse: 1\n",1,"by the sdk"]]"#,
    r#"as written: ["<${TOKEN}>","käse: 1\n"]"#,
    r#"hidden: ["<hidden-by-infisical>","<hidden-by-infisical>"]"#,
    "by slug: 2",
    r#"updated: ["2",2]"#,
    r#"got: ["TOKEN","2",2,"by the sdk"]"#,
    r#"first version: "käse: 1\n""#,
    r#"not there: {"error":"NotFound","status":404,"text":"Secret with name 'NOPE' not found"}"#,
    r#"no such folder: {"error":"SecretPathNotFound","status":404,"text":"Folder with path '/no/such' in environment 'dev' was not found. Please ensure the environment slug and secret path is correct."}"#,
    r#"deleted: "TOKEN""#,
    r#"deleted again: {"error":"NotFound","status":404,"text":"Secret not found"}"#,
    r#"a reader reads: ["REFERS"]"#,
    r#"a reader writes: {"error":"PermissionDenied","status":403,"text":"You are not allowed to create on secrets"}"#,
    r#"wrong secret: ["Invalid credentials","Invalid credentials","Invalid credentials","This identity auth method is temporarily locked, please try again later"]"#,
];

/// The example castle, with its Infisical at `127.0.<net>.3:8443`, and an identity that only reads.
fn infisical(net: u8) -> Spec {
    let mut spec = castle_config::example();
    let source = spec.secrets.sources.iter_mut().find_map(|source| match source {
        SourceSpec::Infisical(source) => Some(source),
        _ => None,
    });
    let source = source.unwrap();
    source.host = format!("https://127.0.{net}.3:8443");
    source.reader = Some(ReaderSpec {
        id: SecretRef("READER_ID".to_owned()),
        secret: SecretRef("READER_SECRET".to_owned()),
    });
    spec
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn a_stranger_keeps_secrets() {
    let Some(real) = Real::find("infisicalsdk") else { return };
    let datacenter = Datacenter::open(infisical(82)).await;
    let place = folder();
    let roots: String =
        datacenter.host.roots().iter().map(|root| pem("CERTIFICATE", root)).collect();
    let ca = write(place.path(), "ca.pem", &roots);
    let birth = datacenter.host.read(|world| world.birth.infisical.clone());
    let project = datacenter.host.read(|world| world.infisical.project_id(&birth.project));
    let (reader, reader_secret) = birth.reader.unwrap();
    let script = include_str!("infisical.py");
    let words = ["-c", script, &birth.host, &birth.project, &project.unwrap()];
    let mut command = with(real.python(), &words);
    command.env("REQUESTS_CA_BUNDLE", ca);
    command.env("CLIENT_ID", &birth.client_id).env("CLIENT_SECRET", &birth.client_secret);
    command.env("READER_ID", reader).env("READER_SECRET", reader_secret);
    let told = run(command, LIMIT).await.expect_success();
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<String> = told
        .iter()
        .map(|line| format!("{}: {}", line["what"].as_str().unwrap(), line["value"]))
        .collect();
    assert_eq!(told, TOLD);
}
