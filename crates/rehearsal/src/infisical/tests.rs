//! Holds the emulated Infisical to what the real one was recorded to say.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Infisical, InfisicalBirth, Role, counts};
use crate::durations::Draws;
use crate::turn::{Dice, HttpBody, HttpCall, HttpReply, SecretQuery, Turn};

const LOGIN: &str = "/api/v1/auth/universal-auth/login";

struct Bench {
    infisical: Infisical,
    dice: Dice,
    now: u64,
    token: Option<String>,
}

fn birth() -> InfisicalBirth {
    InfisicalBirth {
        host: "https://eu.infisical.com".to_owned(),
        project: "tazlab".to_owned(),
        environment: "dev".to_owned(),
        path: "/castle/blue".to_owned(),
        client_id: "8d91c11e".to_owned(),
        client_secret: "c0ffee".to_owned(),
        secrets: BTreeMap::from([
            ("GITHUB_TOKEN".to_owned(), "ghp_canary".to_owned()),
            ("REFERS".to_owned(), "x ${GITHUB_TOKEN} ${NOSUCH} y".to_owned()),
        ]),
    }
}

impl Bench {
    fn new() -> Self {
        Self { infisical: Infisical::new(&birth()), dice: Dice::new(3), now: 0, token: None }
    }

    fn logged_in() -> Self {
        let mut bench = Self::new();
        bench.login("8d91c11e", "c0ffee");
        bench
    }

    fn login(&mut self, client_id: &str, secret: &str) {
        let wanted = json!({"clientId": client_id, "clientSecret": secret});
        let (status, answer) = self.call("POST", LOGIN, &wanted);
        assert_eq!(status, 200, "{answer}");
        self.token = answer["accessToken"].as_str().map(str::to_owned);
    }

    fn raw(&mut self, method: &str, target: &str, body: &Value) -> HttpReply {
        let call = self.request(method, target, body);
        self.send(&call)
    }

    fn send(&mut self, call: &HttpCall) -> HttpReply {
        let before = (self.infisical.clone(), self.dice.clone());
        let mut turn = Turn {
            now: self.now,
            dice: &mut self.dice,
            due: &mut Vec::new(),
            signals: &mut Vec::new(),
            draws: &mut Draws::default(),
        };
        let reply = self.infisical.call(&mut turn, call);
        let same = before == (self.infisical.clone(), self.dice.clone());
        assert_eq!(reply.mutated, !same, "{} {} is logged if it changes", call.method, call.path);
        reply
    }

    fn request(&self, method: &str, target: &str, body: &Value) -> HttpCall {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        if let Some(token) = &self.token {
            headers.push(("authorization".to_owned(), format!("Bearer {token}")));
        }
        HttpCall {
            method: method.to_owned(),
            host: "eu.infisical.com".to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers,
            body: if body.is_null() { Vec::new() } else { body.to_string().into_bytes() },
            peer: None,
        }
    }

    fn call(&mut self, method: &str, target: &str, body: &Value) -> (u16, Value) {
        let reply = self.raw(method, target, body);
        let HttpBody::Whole(bytes) = &reply.body else { panic!("no watch here") };
        (reply.status, serde_json::from_slice(bytes).unwrap())
    }

    fn get(&mut self, target: &str) -> Value {
        let (status, answer) = self.call("GET", target, &Value::Null);
        assert_eq!(status, 200, "{target}: {answer}");
        answer
    }

    fn project(&mut self) -> String {
        let project = self.get("/api/v1/projects/slug/tazlab");
        project["id"].as_str().unwrap().to_owned()
    }

    /// Checks a refusal's status, name and text.
    fn refused(&mut self, method: &str, target: &str, body: &Value, expected: (u16, &str, &str)) {
        let (status, answer) = self.call(method, target, body);
        let got = (status, answer["error"].as_str().unwrap(), answer["message"].as_str().unwrap());
        assert_eq!(got, expected, "{method} {target}");
        assert_eq!(answer["statusCode"], status);
        assert_eq!(answer["reqId"].is_string(), expected.1 != "Not Found", "{answer}");
    }
}

fn fields(project: &str, path: &str, more: &Value) -> Value {
    let mut body = json!({"projectId": project, "environment": "dev", "secretPath": path});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[test]
fn wrong_secrets_lock_an_identity() {
    let mut bench = Bench::new();
    let wrong = json!({"clientId": "8d91c11e", "clientSecret": "wrong"});
    let right = json!({"clientId": "8d91c11e", "clientSecret": "c0ffee"});
    let invalid = (401, "UnauthorizedError", "Invalid credentials");
    let locked = (
        401,
        "UnauthorizedError",
        "This identity auth method is temporarily locked, please try again later",
    );
    let unknown = json!({"clientId": "00000000", "clientSecret": "x"});
    bench.refused("POST", LOGIN, &unknown, invalid);
    // Two wrong ones, then a pause that makes them forgotten.
    bench.refused("POST", LOGIN, &wrong, invalid);
    bench.refused("POST", LOGIN, &wrong, invalid);
    bench.now = 40_000;
    for _ in 0..3 {
        bench.refused("POST", LOGIN, &wrong, invalid);
    }
    bench.refused("POST", LOGIN, &wrong, locked);
    bench.refused("POST", LOGIN, &right, locked);
    bench.now = 340_000;
    bench.login("8d91c11e", "c0ffee");
    assert!(!counts(&bench.request("POST", LOGIN, &right)));
}

#[test]
fn a_login_answers_in_the_real_shape() {
    let mut bench = Bench::new();
    let wanted = json!({"clientId": "8d91c11e", "clientSecret": "c0ffee"});
    let (_, answer) = bench.call("POST", LOGIN, &wanted);
    assert_eq!((&answer["expiresIn"], &answer["tokenType"]), (&json!(2_592_000), &json!("Bearer")));
    let (status, answer) = bench.call("POST", LOGIN, &json!({"clientId": "abc"}));
    assert_eq!((status, &answer["error"]), (422, &json!("ValidationFailure")));
    assert_eq!(
        answer["message"],
        json!([{
            "code": "invalid_type", "expected": "string", "received": "undefined",
            "path": ["clientSecret"], "message": "Required",
        }])
    );
    let nothing = (500, "InternalServerError", "Something went wrong");
    bench.refused("POST", LOGIN, &Value::Null, nothing);
    let slug =
        json!({"clientId": "8d91c11e", "clientSecret": "c0ffee", "organizationSlug": "nope"});
    let missing = (404, "NotFound", "Sub organization with name nope not found");
    bench.refused("POST", LOGIN, &slug, missing);
}

#[test]
fn tokens_are_missing_broken_revoked_or_over() {
    let mut bench = Bench::logged_in();
    let good = bench.token.clone();
    let list = "/api/v1/projects";
    for (token, expected) in [
        (None, (401, "UnauthorizedError", "Token missing")),
        (
            Some("garbage"),
            (
                403,
                "TokenError",
                "The provided access token is malformed. Please use a valid token or generate a \
                 new one and try again.",
            ),
        ),
        (Some("a.b.c"), (403, "TokenError", "invalid signature")),
    ] {
        bench.token = token.map(str::to_owned);
        bench.refused("GET", list, &Value::Null, expected);
    }
    bench.token = good.clone();
    bench.now = 8_000;
    let this = json!({"accessToken": good});
    let (_, renewed) = bench.call("POST", "/api/v1/auth/token/renew", &this);
    assert_eq!(renewed["expiresIn"], 2_591_992);
    let (_, answer) = bench.call("POST", "/api/v1/auth/token/revoke", &this);
    assert_eq!(answer, json!({"message": "Successfully revoked access token"}));
    let revoked = (401, "UnauthorizedError", "Failed to authorize: token has been revoked");
    bench.refused("GET", list, &Value::Null, revoked);
    bench.token = renewed["accessToken"].as_str().map(str::to_owned);
    assert_eq!(bench.get(list)["projects"][0]["slug"], "tazlab");
    bench.now = 2_592_000_000;
    let over = (403, "TokenError", "Your token has expired. Please re-authenticate.");
    bench.refused("GET", list, &Value::Null, over);
    bench.refused("POST", "/api/v1/auth/token/renew", &json!({"accessToken": bench.token}), over);
}

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
fn refusals_about_one_secret_are_word_for_word() {
    let mut bench = Bench::logged_in();
    let project = bench.project();
    let value = json!({"secretValue": "1"});
    let there = fields(&project, "/castle/blue", &value);
    let astray = fields(&project, "/no/such", &value);
    let blue = format!("?projectId={project}&environment=dev&secretPath=/castle/blue");
    let lost = format!("?projectId={project}&environment=dev&secretPath=/no/such");
    let no_folder = "Folder with path '/no/such' in environment with slug 'dev' not found";
    let missing = "Secret with name 'NOPE' not found";
    let unquoted = "Secret with name NOPE not found";
    let taken = "Secret already exists";
    for (method, target, body, expected) in [
        ("GET", format!("K{lost}"), &Value::Null, (404, "GetSecretByName", no_folder)),
        ("GET", format!("NOPE{blue}"), &Value::Null, (404, "NotFound", missing)),
        ("POST", "GITHUB_TOKEN".to_owned(), &there, (400, "BadRequest", taken)),
        ("POST", "K".to_owned(), &astray, (404, "CreateSecret", no_folder)),
        ("PATCH", "K".to_owned(), &astray, (404, "UpdateSecret", no_folder)),
        ("PATCH", "NOPE".to_owned(), &there, (404, "NotFound", unquoted)),
        ("DELETE", "NOPE".to_owned(), &there, (404, "NotFound", "Secret not found")),
    ] {
        bench.refused(method, &format!("/api/v4/secrets/{target}"), body, expected);
    }
    let (status, answer) = bench.call("POST", "/api/v4/secrets/a%3Ab", &there);
    let issue = "Secret name cannot contain colon or forward slash.";
    assert_eq!((status, &answer["message"][0]["message"]), (422, &json!(issue)));
}

#[test]
fn refusals_of_lists_and_batches_are_word_for_word() {
    let mut bench = Bench::logged_in();
    let project = bench.project();
    let list = "/api/v4/secrets";
    let astray = format!("{list}?projectId={project}&environment=dev&secretPath=/no/such");
    let no_path = "Folder with path '/no/such' in environment 'dev' was not found. Please ensure \
                   the environment slug and secret path is correct.";
    let no_project = "Project with ID 'tazlab' not found during bot lookup. Are you sure you are \
                      using the correct project ID?";
    let bare = "Missing project id or environment";
    for (target, expected) in [
        (astray.as_str(), (404, "SecretPathNotFound", no_path)),
        ("/api/v4/secrets?environment=dev", (400, "BadRequest", bare)),
        ("/api/v4/secrets?projectId=tazlab&environment=dev", (404, "NotFound", no_project)),
        ("/api/v9/secrets", (404, "Not Found", "Route GET:/api/v9/secrets not found")),
    ] {
        bench.refused("GET", target, &Value::Null, expected);
    }
    let one = |key: &str| json!([{"secretKey": key, "secretValue": "1"}]);
    let upsert = json!({"mode": "upsert", "secrets": one("K")});
    let mut nowhere = fields(&project, "/castle/blue", &upsert);
    nowhere["environment"] = json!("nope");
    let no_environment =
        format!("Environment with slug 'nope' in project with ID '{project}' not found");
    let no_folder = "Folder with path '/no/such' in environment 'dev' not found";
    let no_key = "Secret does not exist: K in path /castle/blue";
    let taken = "Secret already exists: GITHUB_TOKEN";
    let update = fields(&project, "/castle/blue", &json!({"secrets": one("K")}));
    let create = fields(&project, "/castle/blue", &json!({"secrets": one("GITHUB_TOKEN")}));
    for (method, body, expected) in [
        ("PATCH", fields(&project, "/no/such", &upsert), (404, "NotFound", no_folder)),
        ("PATCH", nowhere, (404, "NotFound", no_environment.as_str())),
        ("PATCH", update, (404, "NotFound", no_key)),
        ("POST", create, (400, "BadRequest", taken)),
    ] {
        bench.refused(method, "/api/v4/secrets/batch", &body, expected);
    }
}

#[test]
fn refusals_about_folders_and_projects_are_word_for_word() {
    let mut bench = Bench::logged_in();
    let project = bench.project();
    let folder = |name: &str, path: &str, environment: &str| json!({"projectId": project, "environment": environment, "name": name, "path": path});
    let taken = "Folder with name 'blue' already exists in path '/castle'";
    let no_environment =
        format!("Environment with slug 'nope' in project with ID '{project}' not found");
    let folders = "/api/v2/folders";
    let nowhere = format!("{folders}?projectId={project}&environment=nope&path=/");
    bench.refused("POST", folders, &folder("blue", "/castle", "dev"), (400, "BadRequest", taken));
    let missing = (404, "NotFound", no_environment.as_str());
    bench.refused("POST", folders, &folder("x", "/", "nope"), missing);
    let missing = (404, "NotFound", "Environment with slug 'nope' not found");
    bench.refused("GET", &nowhere, &Value::Null, missing);
    let missing = (404, "NotFound", "Project with slug 'nope' not found");
    bench.refused("GET", "/api/v1/projects/slug/nope", &Value::Null, missing);
    let (status, answer) = bench.call("POST", folders, &folder("has.dot", "/", "dev"));
    let issue = "Invalid folder name. Only alphanumeric characters, dashes, and underscores are \
                 allowed.";
    assert_eq!((status, &answer["message"][0]["message"]), (422, &json!(issue)));
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
fn roles_are_kept() {
    let mut bench = Bench::new();
    bench.infisical.add_identity("viewer", "v");
    bench.infisical.add_member("tazlab", "viewer", Role::Viewer);
    bench.infisical.add_identity("stranger", "s");
    bench.login("viewer", "v");
    let project = bench.project();
    let body = fields(&project, "/castle/blue", &json!({"secretValue": "1"}));
    let denied = (403, "PermissionDenied", "You are not allowed to create on secrets");
    bench.refused("POST", "/api/v4/secrets/K", &body, denied);
    let denied = (403, "PermissionDenied", "You are not allowed to edit on secrets");
    bench.refused("PATCH", "/api/v4/secrets/GITHUB_TOKEN", &body, denied);
    let folder = json!({"projectId": project, "environment": "dev", "name": "x", "path": "/"});
    let denied = (403, "PermissionDenied", "You are not allowed to create on secret-folders");
    bench.refused("POST", "/api/v2/folders", &folder, denied);
    bench.login("stranger", "s");
    assert_eq!(bench.get("/api/v1/projects"), json!({"projects": []}));
    let outsider = format!(
        "You are not a member of this project with ID {project}. Please assign this identity to \
         the project with the appropriate permissions, then try again."
    );
    let denied = (403, "ProjectMembershipNotFound", outsider.as_str());
    bench.refused("GET", "/api/v1/projects/slug/tazlab", &Value::Null, denied);
}

#[test]
fn the_cluster_reads_with_its_own_credentials() {
    let bench = Bench::new();
    let query = SecretQuery {
        host: "https://eu.infisical.com/",
        client_id: "8d91c11e",
        client_secret: "c0ffee",
        project: "tazlab",
        environment: "dev",
        path: "castle/blue",
        key: "GITHUB_TOKEN",
    };
    let read = |query: &SecretQuery<'_>| bench.infisical.read(query);
    assert_eq!(read(&query), Ok("ghp_canary".to_owned()));
    for (query, words) in [
        (SecretQuery { client_secret: "x", ..query }, "Invalid credentials"),
        (SecretQuery { key: "NOPE", ..query }, "Secret with name 'NOPE' not found"),
        (
            SecretQuery { path: "/no", ..query },
            "Folder with path '/no' in environment with slug 'dev' not found",
        ),
        (SecretQuery { host: "https://us.x", ..query }, "dial tcp: lookup us.x: no such host"),
    ] {
        assert_eq!(read(&query), Err(words.to_owned()));
    }
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
