//! What the real server was recorded to say, said again: the requests go in their order to a server that knows nothing,
//! and each answer is compared with the recorded one.
//!
//! `recorded.jsonl` holds one exchange per line. Ids are another server's, so each is paired with ours when it first
//! shows, and must stay paired; times, tokens and client secrets are only compared in shape. A line with `bridge` was
//! not recorded: it does what somebody did between two recordings, so that the next one finds what it found.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::{Infisical, InfisicalTrouble};
use super::Bench;
use super::known::{EXCHANGES, LEFT_OUT};
use crate::turn::{HttpBody, HttpCall, HttpReply};

const RECORDED: &str = include_str!("recorded.jsonl");

/// What of the recorded server corresponds to what of ours.
#[derive(Default)]
struct Pairs {
    ours: BTreeMap<String, String>,
    theirs: BTreeMap<String, String>,
    /// Tokens and client secrets by name.
    kept: BTreeMap<String, String>,
}

impl Pairs {
    /// A recorded text in our words.
    fn translated(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (theirs, ours) in &self.ours {
            text = text.replace(theirs, ours);
        }
        for (name, value) in &self.kept {
            text = text.replace(&format!("<{name}>"), value);
        }
        while let Some((head, rest)) = text.split_once("<long:") {
            let (length, tail) = rest.split_once('>').unwrap();
            text = format!("{head}{}{tail}", "k".repeat(length.parse().unwrap()));
        }
        text
    }

    /// Compares a recorded answer with ours. Of a bridge's answer only what it names is compared.
    fn compare(
        &mut self,
        at: &str,
        theirs: &Value,
        ours: &Value,
        whole: bool,
    ) -> Result<(), String> {
        match (theirs, ours) {
            (Value::Object(theirs), Value::Object(ours)) => {
                let names = |map: &Map<String, Value>| map.keys().cloned().collect::<Vec<_>>();
                let (mut left, mut right) = (names(theirs), names(ours));
                left.sort();
                right.sort();
                if whole && left != right {
                    return Err(format!("{at}: fields {left:?}, ours {right:?}"));
                }
                theirs.iter().try_for_each(|(name, value)| {
                    self.compare(&format!("{at}.{name}"), value, &ours[name], whole)
                })
            }
            (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => {
                theirs.iter().zip(ours).enumerate().try_for_each(|(number, (theirs, ours))| {
                    self.compare(&format!("{at}[{number}]"), theirs, ours, whole)
                })
            }
            (Value::String(theirs), Value::String(ours)) => self.compare_text(at, theirs, ours),
            _ if theirs == ours => Ok(()),
            _ => Err(format!("{at}: {theirs}, ours {ours}")),
        }
    }

    fn compare_text(&mut self, at: &str, theirs: &str, ours: &str) -> Result<(), String> {
        let fits = match theirs {
            "<time>" => ours.len() == 24 && ours.ends_with('Z'),
            "<reqId>" => ours.starts_with("req-"),
            "<jwt>" => ours.split('.').count() == 3,
            "<client-secret>" => ours.len() == 64,
            "<prefix>" => ours.len() == 4,
            "<slug>" => ours.starts_with("homelab-"),
            _ if is_id(theirs) && is_id(ours) => {
                let left = self.ours.entry(theirs.to_owned()).or_insert_with(|| ours.to_owned());
                let right = self.theirs.entry(ours.to_owned()).or_insert_with(|| theirs.to_owned());
                left == ours && right == theirs
            }
            _ => self.translated(theirs) == ours,
        };
        if fits { Ok(()) } else { Err(format!("{at}: {theirs:?}, ours {ours:?}")) }
    }
}

fn is_id(text: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    text.len() == 36
        && text
            .char_indices()
            .all(|(at, c)| if dashes.contains(&at) { c == '-' } else { c.is_ascii_hexdigit() })
}

/// The replay as far as it has come.
struct Replay {
    bench: Bench,
    pairs: Pairs,
    /// The tag of the last answer that bore one.
    tag: Option<String>,
}

impl Replay {
    fn new() -> Self {
        let mut bench = Bench::new();
        bench.infisical = Infisical::default();
        Self { bench, pairs: Pairs::default(), tag: None }
    }

    fn request(&mut self, line: &Value) -> HttpCall {
        let word = |name: &str| line[name].as_str();
        self.bench.token = word("as").map(|name| match name {
            "garbage" => "garbage".to_owned(),
            "forged" => "eyJhbGciOiJIUzI1NiJ9.e30.forged".to_owned(),
            name => self.pairs.kept[&format!("token:{name}")].clone(),
        });
        let query = word("query").map(|query| format!("?{query}")).unwrap_or_default();
        let target = format!("{}{query}", word("path").unwrap());
        let target = self.pairs.translated(&target);
        let mut call = self.bench.request(word("method").unwrap(), &target, &Value::Null);
        if let Some(body) = line.get("body") {
            call.body = self.pairs.translated(&body.to_string()).into_bytes();
        }
        if let Some(raw) = word("raw") {
            call.body = raw.as_bytes().to_vec();
        }
        if line["if-none-match"] == true {
            call.headers.push(("if-none-match".to_owned(), self.tag.clone().unwrap()));
        }
        call
    }

    fn send(&mut self, line: &Value) -> HttpReply {
        self.bench.now += line["wait"].as_u64().unwrap_or(0);
        if line["limited"] == true {
            self.bench.infisical.suffer(&InfisicalTrouble::Limited(true));
        }
        let call = self.request(line);
        for _ in 1..line["times"].as_u64().unwrap_or(1) {
            assert_eq!(self.bench.send(&call).status, 200, "{line}");
        }
        self.bench.send(&call)
    }

    /// Compares an answer with its line, and keeps what later lines speak of.
    fn judge(&mut self, line: &Value, reply: &HttpReply) -> Result<(), String> {
        let HttpBody::Whole(body) = &reply.body else { panic!("no watch here") };
        let ours: Value = serde_json::from_slice(body).unwrap_or_default();
        let status = line["status"].as_u64().unwrap_or(200);
        if status != u64::from(reply.status) {
            return Err(format!("status {status}, ours {}: {ours}", reply.status));
        }
        let header = |name: &str| reply.headers.iter().find(|(own, _)| own == name).map(|(_, v)| v);
        if let Some(answer) = line.get("answer") {
            let whole = line.get("bridge").is_none();
            self.pairs.compare("", answer, &ours, whole)?;
            let kind = header("content-type").map(String::as_str);
            if kind != Some("application/json; charset=utf-8") {
                return Err(format!("content-type {kind:?}"));
            }
        } else if line.get("bridge").is_none() && !body.is_empty() {
            return Err(format!("a body: {ours}"));
        }
        for (name, value) in line["headers"].as_object().into_iter().flatten() {
            if header(name).map(String::as_str) != value.as_str() {
                return Err(format!("{name}: {value}, ours {:?}", header(name)));
            }
        }
        self.tag = header("etag").cloned().or(self.tag.take());
        if let Some(name) = line["keeps"].as_str() {
            let token = &ours["accessToken"];
            let found = [token, &ours["identity"]["credentials"]["token"], &ours["clientSecret"]];
            let value = found.iter().find_map(|value| value.as_str()).unwrap();
            let name = self.pairs.translated(name);
            self.pairs.kept.insert(name, value.to_owned());
        }
        Ok(())
    }
}

fn left_out(line: &Value) -> bool {
    let number = line["n"].as_u64();
    number.is_some_and(|number| LEFT_OUT.iter().any(|(numbers, _)| numbers.contains(&number)))
}

#[test]
fn recorded_requests_are_answered_as_recorded() {
    let mut replay = Replay::new();
    let (mut wrong, mut compared, mut out) = (Vec::new(), 0, 0);
    for (number, line) in RECORDED.lines().enumerate() {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["fresh"] == true {
            replay = Replay::new();
        }
        if left_out(&line) {
            // What is listed must still be wrong: a server that answers it is not listed any more.
            let call = replay.request(&line);
            let before = (replay.bench.infisical.clone(), replay.bench.dice.clone());
            let reply = replay.bench.send(&call);
            assert!(replay.judge(&line, &reply).is_err(), "{} is answered by now", line["n"]);
            (replay.bench.infisical, replay.bench.dice) = before;
            out += 1;
            continue;
        }
        let reply = replay.send(&line);
        if let Err(why) = replay.judge(&line, &reply) {
            wrong.push(format!("line {}, exchange {}: {why}", number + 1, line["n"]));
        }
        compared += usize::from(line.get("bridge").is_none());
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    let listed: u64 = LEFT_OUT.iter().map(|(numbers, _)| numbers.end() - numbers.start() + 1).sum();
    assert_eq!((compared + out, u64::try_from(out).unwrap()), (EXCHANGES, listed));
}

#[test]
fn a_difference_is_noticed() {
    let theirs = serde_json::json!({"a": [{"id": "3d20eb1b-ae54-46f4-90f4-4e4bf2bc4f76"}], "t": "<time>", "n": 1});
    let ours =
        |id: &str| serde_json::json!({"a": [{"id": id}], "t": "2026-02-02T00:00:00.000Z", "n": 1});
    let (one, two) =
        ("11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222");
    let mut pairs = Pairs::default();
    pairs.compare("", &theirs, &ours(one), true).unwrap();
    pairs.compare("", &theirs, &ours(one), true).unwrap();
    assert!(pairs.compare("", &theirs, &ours(two), true).is_err(), "another id than before");
    for (field, value) in [("n", Value::from(2)), ("t", Value::from("now")), ("more", Value::Null)]
    {
        let mut other = ours(one);
        other[field] = value;
        assert!(pairs.compare("", &theirs, &other, true).is_err(), "{field}");
    }
}
