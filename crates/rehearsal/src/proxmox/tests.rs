//! Holds the emulated Proxmox to what the real one was seen to do: statuses, texts and whole lives.

mod known;
mod life;
mod neighbour;
mod privilege;
mod recorded;
mod trouble;
mod words;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Proxmox, ProxmoxBirth};
use crate::durations::Draws;
use crate::proxmox;
use crate::turn::{Dice, Effect, HttpBody, HttpCall, HttpReply, Signal, Turn};

/// An image as the factory names it, and where it is downloaded from.
const IMAGE: &str =
    "talos-1.13.9-376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba.qcow2";
const IMAGE_URL: &str = "https://factory.talos.dev/image/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba/v1.13.9/nocloud-amd64.qcow2";

fn birth() -> ProxmoxBirth {
    ProxmoxBirth {
        node: "pve1".to_owned(),
        storage: "local-lvm".to_owned(),
        image_storage: "local".to_owned(),
        bridge: "vmbr0".to_owned(),
        token_id: "root@pam!ci".to_owned(),
        token_secret: "6f9f3f0e".to_owned(),
        factory: "factory.talos.dev".to_owned(),
    }
}

/// A Proxmox with a queue of its own.
#[derive(Clone)]
struct Bench {
    proxmox: Proxmox,
    token: String,
    dice: Dice,
    now: u64,
    queue: BTreeMap<(u64, u64), Effect>,
    sequence: u64,
    signals: Vec<Signal>,
}

impl Bench {
    /// With a token of root, which may everything but what is for root in person.
    fn new() -> Self {
        Self::of(birth())
    }

    /// With a castle's token, which may no more than a castle needs.
    fn castle() -> Self {
        Self::of(ProxmoxBirth { token_id: "castle@pve!rehearsal".to_owned(), ..birth() })
    }

    fn of(birth: ProxmoxBirth) -> Self {
        Self {
            proxmox: Proxmox::new(&birth),
            token: birth.token_id,
            dice: Dice::new(1),
            now: 0,
            queue: BTreeMap::new(),
            sequence: 0,
            signals: Vec::new(),
        }
    }

    fn turn<T>(&mut self, act: impl FnOnce(&mut Proxmox, &mut Turn<'_>) -> T) -> T {
        let mut due = Vec::new();
        let mut turn = Turn {
            now: self.now,
            dice: &mut self.dice,
            due: &mut due,
            signals: &mut self.signals,
            draws: &mut Draws::default(),
        };
        let result = act(&mut self.proxmox, &mut turn);
        for (delay, effect) in due {
            self.sequence += 1;
            self.queue.insert((self.now + delay, self.sequence), effect);
        }
        result
    }

    fn raw(&mut self, call: &HttpCall) -> HttpReply {
        let mut call = call.clone();
        for (_, value) in &mut call.headers {
            *value = value.replace("root@pam!ci", &self.token);
        }
        let before = (self.proxmox.clone(), self.dice.clone());
        let reply = self.turn(|proxmox, turn| proxmox.call(turn, &call));
        let same = before == (self.proxmox.clone(), self.dice.clone());
        assert_eq!(reply.mutated, !same, "{} {} is logged if it changes", call.method, call.path);
        reply
    }

    fn call(&mut self, method: &str, target: &str, form: &str) -> (u16, Value) {
        let reply = self.raw(&request(method, target, form));
        (reply.status, body(&reply))
    }

    fn data(&mut self, method: &str, target: &str, form: &str) -> Value {
        let (status, body) = self.call(method, target, form);
        assert_eq!(status, 200, "{method} {target}: {body}");
        body["data"].clone()
    }

    fn get(&mut self, target: &str) -> Value {
        self.data("GET", target, "")
    }

    /// Lets one effect happen.
    fn step(&mut self) -> bool {
        let Some(((due, _), effect)) = self.queue.pop_first() else { return false };
        self.now = due;
        // As it would be written down and read back.
        let written = json!(effect)["proxmox"].clone();
        let effect: proxmox::Effect = serde_json::from_value(written).unwrap();
        self.turn(|proxmox, turn| proxmox.fire(turn, effect));
        true
    }

    /// Starts a task, lets everything end, and gives its exit status.
    fn task(&mut self, method: &str, target: &str, form: &str) -> String {
        let upid = self.data(method, target, form).as_str().unwrap().to_owned();
        while self.step() {}
        self.exit(&upid)
    }

    fn exit(&mut self, upid: &str) -> String {
        let status = self.get(&format!("/nodes/pve1/tasks/{}/status", escape(upid)));
        assert_eq!(status["status"], "stopped", "{status}");
        status["exitstatus"].as_str().unwrap().to_owned()
    }
}

fn request(method: &str, target: &str, form: &str) -> HttpCall {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let text = |text: &str| text.to_owned();
    HttpCall {
        method: text(method),
        host: text("pve.lan"),
        path: format!("/api2/json{path}"),
        query: text(query),
        headers: vec![
            (text("authorization"), text("PVEAPIToken=root@pam!ci=6f9f3f0e")),
            (text("content-type"), text("application/x-www-form-urlencoded")),
        ],
        body: form.as_bytes().to_vec(),
        peer: None,
    }
}

fn body(reply: &HttpReply) -> Value {
    let HttpBody::Whole(bytes) = &reply.body else { panic!("no watch here") };
    serde_json::from_slice(bytes).unwrap_or(Value::Null)
}

/// Encodes as a careful client does.
fn form(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
    pairs.join("&")
}

fn escape(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}
