//! Logins, their lock-out, and tokens.

use serde_json::{Value, json};

use super::super::counts;
use super::{Bench, LOGIN};

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
fn client_secrets_end_by_time_or_by_use() {
    let mut bench = Bench::set_up();
    let (identity, client_id) = bench.identity("tool", &json!({}));
    let target = format!("/api/v1/auth/universal-auth/identities/{identity}/client-secrets");
    let secret = |bench: &mut Bench, limits: Value| {
        bench.token = bench.admin.clone();
        let (status, answer) = bench.call("POST", &target, &limits);
        assert_eq!(status, 200, "{answer}");
        bench.token = None;
        json!({"clientId": client_id, "clientSecret": answer["clientSecret"]})
    };
    let invalid = (401, "UnauthorizedError", "Invalid credentials");
    let once = secret(&mut bench, json!({"numUsesLimit": 1}));
    assert_eq!(bench.call("POST", LOGIN, &once).0, 200);
    let spent =
        (401, "UnauthorizedError", "Access denied due to client secret usage limit reached");
    bench.refused("POST", LOGIN, &once, spent);
    bench.refused("POST", LOGIN, &once, invalid);
    let short = secret(&mut bench, json!({"ttl": 1}));
    assert_eq!(bench.call("POST", LOGIN, &short).0, 200);
    bench.now = 1000;
    let expired = (401, "UnauthorizedError", "Access denied due to expired client secret");
    bench.refused("POST", LOGIN, &short, expired);
    bench.refused("POST", LOGIN, &short, invalid);
    let lasting = secret(&mut bench, json!({}));
    assert_eq!(bench.call("POST", LOGIN, &lasting).0, 200);
}

#[test]
fn a_token_is_used_up_and_that_is_logged_though_nothing_else_changed() {
    let mut bench = Bench::set_up();
    let (identity, client_id) = bench.identity("tool", &json!({"accessTokenNumUsesLimit": 1}));
    bench.token = bench.admin.clone();
    let target = format!("/api/v1/auth/universal-auth/identities/{identity}/client-secrets");
    let (_, answer) = bench.call("POST", &target, &json!({}));
    bench.login(&client_id, answer["clientSecret"].as_str().unwrap());
    assert_eq!(bench.get("/api/v1/projects"), json!({"projects": []}));
    let spent = (401, "UnauthorizedError", "Failed to authorize: token usage limit reached");
    bench.refused("GET", "/api/v1/projects", &Value::Null, spent);
}
