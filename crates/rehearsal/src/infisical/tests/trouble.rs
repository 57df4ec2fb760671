//! The rate limit, a server that stumbles, and a proxy in its place.

use serde_json::{Value, json};

use super::super::InfisicalTrouble;
use super::{Bench, fields};
use crate::turn::{HttpBody, HttpReply};

fn header(reply: &HttpReply, name: &str) -> Option<String> {
    reply.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone())
}

#[test]
fn a_minute_takes_so_many_calls_of_a_kind_and_no_more() {
    let mut bench = Bench::logged_in();
    let project = bench.project();
    bench.infisical.suffer(&InfisicalTrouble::Limited(true));
    let list =
        format!("/api/v4/secrets?projectId={project}&environment=dev&secretPath=/castle/blue");
    for left in (0..40).rev() {
        let reply = bench.raw("GET", &list, &Value::Null);
        assert_eq!(header(&reply, "x-ratelimit-remaining"), Some(left.to_string()));
    }
    bench.now = 1_000;
    let words = "Rate limit exceeded. Please try again in 59 seconds";
    bench.refused("GET", &list, &Value::Null, (429, "RateLimitExceeded", words));
    let reply = bench.raw("GET", &list, &Value::Null);
    assert_eq!(header(&reply, "retry-after").as_deref(), Some("59"));
    let folders = format!("/api/v2/folders?projectId={project}&environment=dev&path=/");
    assert_eq!(bench.call("GET", &folders, &Value::Null).0, 200, "each route has its own minute");
    bench.now = 60_000;
    assert_eq!(bench.call("GET", &list, &Value::Null).0, 200);
    bench.infisical.suffer(&InfisicalTrouble::Limited(false));
    assert_eq!(header(&bench.raw("GET", &list, &Value::Null), "x-ratelimit-limit"), None);
}

#[test]
fn a_stumble_writes_nothing_and_says_little() {
    let mut bench = Bench::logged_in();
    let project = bench.project();
    bench.infisical.suffer(&InfisicalTrouble::Stumbles(1));
    let body = fields(&project, "/castle/blue", &json!({"secretValue": "1"}));
    let words = (500, "Create", "Something went wrong");
    bench.refused("POST", "/api/v4/secrets/K", &body, words);
    assert_eq!(bench.call("POST", "/api/v4/secrets/K", &body).0, 200, "it was not there");
}

#[test]
fn a_proxy_answers_everything_with_its_page() {
    let mut bench = Bench::logged_in();
    bench.infisical.suffer(&InfisicalTrouble::Page(502, "Bad gateway".to_owned()));
    let reply = bench.raw("GET", "/api/v1/projects", &Value::Null);
    let HttpBody::Whole(body) = &reply.body else { panic!("no watch here") };
    assert!(String::from_utf8_lossy(body).contains("<title>Bad gateway</title>"));
    assert_eq!(reply.status, 502);
    bench.infisical.suffer(&InfisicalTrouble::PageGone);
    assert_eq!(bench.call("GET", "/api/v1/projects", &Value::Null).0, 200);
}
