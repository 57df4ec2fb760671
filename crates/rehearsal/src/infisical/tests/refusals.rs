//! Refusals, word for word.

use serde_json::{Value, json};

use super::{Bench, fields};

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
