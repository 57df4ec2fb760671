//! Who may do what, and the cluster that reads with its own identity.

use serde_json::{Value, json};

use super::super::Role;
use super::{Bench, fields};
use crate::turn::SecretQuery;

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
        at: 0,
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

/// What a rule for one identity in the project of all tests gives it.
fn with_rule(bench: &mut Bench, rule: &Value) -> String {
    let project = bench.owned_project();
    let (identity, client_id) = bench.identity("scoped", &json!({}));
    bench.token = bench.admin.clone();
    let target = format!("/api/v1/projects/{project}/memberships/identities/{identity}");
    let role = json!({"roles": [{"role": "no-access"}]});
    assert_eq!(bench.call("POST", &target, &role).0, 200);
    let privilege = json!({
        "identityId": identity, "projectId": project, "slug": "s", "type": {"isTemporary": false},
        "permissions": [rule],
    });
    let target = "/api/v2/identity-project-additional-privilege";
    let (status, answer) = bench.call("POST", target, &privilege);
    assert_eq!(status, 200, "{answer}");
    let target = format!("/api/v1/auth/universal-auth/identities/{identity}/client-secrets");
    let (_, answer) = bench.call("POST", &target, &json!({}));
    bench.login(&client_id, answer["clientSecret"].as_str().unwrap());
    project
}

#[test]
fn a_rule_for_one_path_shows_an_empty_list_elsewhere_and_nothing_of_what_is_there() {
    let mut bench = Bench::set_up();
    let rule = json!({
        "subject": "secrets", "action": ["describeSecret", "readValue"],
        "conditions": {"environment": {"$eq": "dev"}, "secretPath": {"$glob": "/castle/blue/**"}},
    });
    let project = with_rule(&mut bench, &rule);
    let list = format!("/api/v4/secrets?projectId={project}&environment=dev&secretPath=");
    let keys = |answer: &Value| answer["secrets"].as_array().unwrap().len();
    assert_eq!(keys(&bench.get(&format!("{list}/castle/blue"))), 1);
    assert_eq!(keys(&bench.get(&format!("{list}/castle"))), 0);
    assert_eq!(keys(&bench.get(&format!("{list}/&recursive=true"))), 1);
    let get = |path: &str| {
        format!("/api/v4/secrets/K?projectId={project}&environment=dev&secretPath={path}")
    };
    assert_eq!(bench.get(&get("/castle/blue"))["secret"]["secretValue"], "blue");
    let denied = (403, "PermissionDenied", "You are not allowed to describeSecret on secrets");
    bench.refused("GET", &get("/castle"), &Value::Null, denied);
    let body = fields(&project, "/castle/blue", &json!({"secretValue": "1"}));
    let denied = (403, "PermissionDenied", "You are not allowed to edit on secrets");
    bench.refused("PATCH", "/api/v4/secrets/K", &body, denied);
}

#[test]
fn imports_show_where_they_are_imported_and_the_last_one_counts() {
    let mut bench = Bench::set_up();
    let project = bench.owned_project();
    bench.token = bench.admin.clone();
    for (path, key, value) in [
        ("/one", "A", "1"),
        ("/one", "B", "1"),
        ("/two", "B", "2"),
        ("/castle/blue", "C", "own"),
        ("/two", "C", "2"),
    ] {
        let name = path.rsplit('/').next().unwrap();
        let folder = json!({"projectId": project, "environment": "dev", "name": name, "path": "/"});
        bench.call("POST", "/api/v2/folders", &folder);
        let body = fields(&project, path, &json!({"secretValue": value}));
        assert_eq!(bench.call("POST", &format!("/api/v4/secrets/{key}"), &body).0, 200);
    }
    for path in ["/one", "/two"] {
        let import = json!({
            "projectId": project, "environment": "dev", "path": "/castle/blue",
            "import": {"environment": "dev", "path": path},
        });
        let (status, answer) = bench.call("POST", "/api/v2/secret-imports", &import);
        assert_eq!(status, 200, "{answer}");
    }
    let at = format!("?projectId={project}&environment=dev&secretPath=/castle/blue");
    let imports = bench.get(&format!("/api/v4/secrets{at}"))["imports"].clone();
    let of = |number: usize| imports[number]["secrets"].as_array().unwrap().len();
    assert_eq!((of(0), of(1)), (2, 2));
    assert_eq!(
        bench.get(&format!("/api/v4/secrets{at}&includeImports=false"))["imports"],
        json!([])
    );
    let mut value = |key: &str| {
        bench.get(&format!("/api/v4/secrets/{key}{at}"))["secret"]["secretValue"].clone()
    };
    assert_eq!([value("A"), value("B"), value("C")], [json!("1"), json!("2"), json!("own")]);
    let update = fields(&project, "/castle/blue", &json!({"secretValue": "x"}));
    let missing = (404, "NotFound", "Secret with name A not found");
    bench.refused("PATCH", "/api/v4/secrets/A", &update, missing);
}

#[test]
fn the_cluster_needs_no_more_than_to_read_and_is_locked_out_like_anybody() {
    let mut bench = Bench::new();
    bench.infisical.add_identity("nobody", "n");
    bench.infisical.add_member("tazlab", "nobody", Role::NoAccess);
    let query = SecretQuery {
        at: 0,
        host: "https://eu.infisical.com",
        client_id: "reader",
        client_secret: "r",
        project: "tazlab",
        environment: "dev",
        path: "/castle/blue/",
        key: "REFERS",
    };
    assert_eq!(bench.infisical.read(&query), Ok("x ghp_canary ${NOSUCH} y".to_owned()));
    let nobody = SecretQuery { client_id: "nobody", client_secret: "n", ..query };
    let denied = "You are not allowed to describeSecret on secrets";
    assert_eq!(bench.infisical.read(&nobody), Err(denied.to_owned()));
    for _ in 0..3 {
        let wrong = json!({"clientId": "reader", "clientSecret": "wrong"});
        assert_eq!(bench.call("POST", super::LOGIN, &wrong).0, 401);
    }
    let locked = "This identity auth method is temporarily locked, please try again later";
    assert_eq!(bench.infisical.read(&query), Err(locked.to_owned()));
    let later = SecretQuery { at: 300_000, ..query };
    assert!(bench.infisical.read(&later).is_ok());
}
