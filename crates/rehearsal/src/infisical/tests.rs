//! Holds the emulated Infisical to what the real one was recorded to say.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Infisical, InfisicalBirth};
use crate::durations::Draws;
use crate::turn::{Dice, HttpBody, HttpCall, HttpReply, Turn};

mod known;
mod login;
mod refusals;
mod replay;
mod scopes;
mod secrets;
mod trouble;

const LOGIN: &str = "/api/v1/auth/universal-auth/login";

struct Bench {
    infisical: Infisical,
    dice: Dice,
    now: u64,
    token: Option<String>,
    /// The token of whoever set the server up.
    admin: Option<String>,
}

fn birth() -> InfisicalBirth {
    InfisicalBirth {
        host: "https://eu.infisical.com".to_owned(),
        project: "tazlab".to_owned(),
        environment: "dev".to_owned(),
        path: "/castle/blue".to_owned(),
        client_id: "8d91c11e".to_owned(),
        client_secret: "c0ffee".to_owned(),
        reader: Some(("reader".to_owned(), "r".to_owned())),
        secrets: BTreeMap::from([
            ("GITHUB_TOKEN".to_owned(), "ghp_canary".to_owned()),
            ("REFERS".to_owned(), "x ${GITHUB_TOKEN} ${NOSUCH} y".to_owned()),
        ]),
    }
}

impl Bench {
    fn new() -> Self {
        Self {
            infisical: Infisical::new(&birth()),
            dice: Dice::new(3),
            now: 0,
            token: None,
            admin: None,
        }
    }

    fn logged_in() -> Self {
        let mut bench = Self::new();
        bench.login("8d91c11e", "c0ffee");
        bench
    }

    /// A server that somebody has just set up.
    fn set_up() -> Self {
        let mut bench = Self::new();
        bench.infisical = Infisical::default();
        let wanted = json!({"email": "a@b.c", "password": "p", "organization": "homelab"});
        let (status, answer) = bench.call("POST", "/api/v1/admin/bootstrap", &wanted);
        assert_eq!(status, 200, "{answer}");
        let token = &answer["identity"]["credentials"]["token"];
        bench.admin = token.as_str().map(str::to_owned);
        bench
    }

    /// A new identity with a login: its id and its client id.
    fn identity(&mut self, name: &str, login: &Value) -> (String, String) {
        self.token = self.admin.clone();
        let wanted = json!({"name": name, "organizationId": "o"});
        let (_, answer) = self.call("POST", "/api/v1/identities", &wanted);
        let identity = answer["identity"]["id"].as_str().unwrap().to_owned();
        let target = format!("/api/v1/auth/universal-auth/identities/{identity}");
        let (status, answer) = self.call("POST", &target, login);
        assert_eq!(status, 200, "{answer}");
        let client_id = answer["identityUniversalAuth"]["clientId"].as_str().unwrap();
        (identity, client_id.to_owned())
    }

    /// A new project of the one who set the server up, with a key in `/castle` and one in `/castle/blue`.
    fn owned_project(&mut self) -> String {
        self.token = self.admin.clone();
        let (_, answer) = self.call("POST", "/api/v1/projects", &json!({"projectName": "tazlab"}));
        let project = answer["project"]["id"].as_str().unwrap().to_owned();
        let folder =
            json!({"projectId": project, "environment": "dev", "name": "blue", "path": "/castle"});
        assert_eq!(self.call("POST", "/api/v2/folders", &folder).0, 200);
        for (path, value) in [("/castle", "castle"), ("/castle/blue", "blue")] {
            let body = fields(&project, path, &json!({"secretValue": value}));
            assert_eq!(self.call("POST", "/api/v4/secrets/K", &body).0, 200);
        }
        project
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
