//! Replays what was recorded from the real daemons: the same calls in the same order get the same answers.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::download::sum;
use super::super::task::Work;
use super::super::{ProxmoxTrouble, StorageKind};
use super::known::{ALLOWED, EXCHANGES, LEFT_OUT};
use super::*;

const TRANSCRIPT: &str = include_str!("transcript.jsonl");

/// The privileges that the second token of the recording was given at `/`.
const PROV: &[&str] = &[
    "Datastore.AllocateSpace",
    "Datastore.Audit",
    "SDN.Use",
    "VM.Allocate",
    "VM.Audit",
    "VM.Clone",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Cloudinit",
    "VM.Config.Disk",
    "VM.Config.HWType",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.Options",
    "VM.GuestAgent.Audit",
    "VM.PowerMgmt",
];

/// One recorded call.
#[derive(Deserialize)]
struct Recorded {
    n: u32,
    #[serde(default)]
    before: Vec<String>,
    call: String,
    #[serde(default)]
    form: String,
    #[serde(default)]
    json: bool,
    status: u16,
    reason: Option<String>,
    errors: Option<Map<String, Value>>,
    /// The kind and the object of the task that was begun, and its name.
    task: Option<String>,
    upid: Option<String>,
    /// How it ended.
    exit: Option<String>,
    /// The shape of the answer.
    data: Option<Value>,
}

/// The recording's world, and what its names are called here.
#[derive(Clone)]
struct Replay {
    bench: Bench,
    /// Credentials that are not those of a token of the bench.
    credentials: Option<String>,
    names: BTreeMap<String, String>,
    differences: Vec<(u32, String)>,
}

#[test]
fn recorded_calls_get_the_recorded_answers() {
    let mut replay = Replay::new();
    for (line, number) in TRANSCRIPT.lines().skip(1).zip(0..) {
        let recorded: Recorded = serde_json::from_str(line).unwrap();
        assert_eq!(recorded.n, number, "every call of the recording is here, in its order");
        for action in &recorded.before {
            replay.act(action);
        }
        if LEFT_OUT.iter().any(|(numbers, _)| numbers.contains(&number)) {
            // What is listed must still be wrong: a server that answers it is not listed any more.
            let mut apart = Replay { differences: Vec::new(), ..replay.clone() };
            apart.play(&recorded);
            assert!(!apart.differences.is_empty(), "call {number} is answered by now");
        } else {
            replay.play(&recorded);
        }
    }
    assert_eq!(TRANSCRIPT.lines().count() - 1, EXCHANGES as usize);
    let allowed = |(n, text): &(u32, String)| {
        ALLOWED.iter().any(|(at, place, _)| at == n && text.starts_with(place))
    };
    let unexpected: Vec<_> = replay.differences.iter().filter(|one| !allowed(one)).collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    for (n, place, why) in ALLOWED {
        let met = replay.differences.iter().any(|(at, text)| at == n && text.starts_with(place));
        assert!(met, "call {n} answers as recorded: {place} ({why})");
    }
}

impl Replay {
    fn new() -> Self {
        let mut bench = Bench::of(ProxmoxBirth {
            storage: "local".to_owned(),
            bridge: "vmbr9".to_owned(),
            ..birth()
        });
        bench.proxmox.add_storage("local", StorageKind::Dir, &["rootdir"]);
        bench.proxmox.add_storage("imgonly", StorageKind::Dir, &["images"]);
        bench.proxmox.access.add_token("prov@pve!t1", "6f9f3f0e");
        let local = "http%3A%2F%2F127.0.0.1%3A809";
        let names = [
            ("1b7af784841125887e688254229e282829e17245d0e47fe7280da9b68a30d9e1", sum(IMAGE_URL)),
            ("a089f4553d6ac90941c3205ff34ed7ed141b7f423254bca814d721e0a64c5ffe", sum(IMAGE_URL)),
            (&format!("{local}9%2Fmissing.qcow2"), escape("https://factory.talos.dev/missing")),
            (&format!("{local}9%2Ftiny.qcow2"), escape(IMAGE_URL)),
            (&format!("{local}9%2Ftiny.img"), escape(IMAGE_URL)),
            (&format!("{local}9%2Ftinyguest.qcow2"), escape(IMAGE_URL)),
            (&format!("{local}8%2Fslow.qcow2"), escape(IMAGE_URL)),
            (&format!("{local}8%2Fslow2.qcow2"), escape(IMAGE_URL)),
        ];
        let names = names.into_iter().map(|(theirs, ours)| (theirs.to_owned(), ours)).collect();
        Self { bench, credentials: None, names, differences: Vec::new() }
    }

    /// What somebody did between two calls.
    fn act(&mut self, action: &str) {
        let words: Vec<&str> = action.split(' ').collect();
        if let ["as" | "with", who] = words[..] {
            self.credentials = (words[0] == "with").then(|| format!("PVEAPIToken={who}"));
        }
        let bench = &mut self.bench;
        let number = |text: &str| text.parse().unwrap();
        let mut suffer = |trouble| bench.turn(|proxmox, turn| proxmox.suffer(turn, &trouble));
        match words[..] {
            ["with", _] => {}
            ["as", "ci"] => bench.token = "root@pam!ci".to_owned(),
            ["as", "prov"] => bench.token = "prov@pve!t1".to_owned(),
            ["grant", "prov"] => {
                for who in ["prov@pve", "prov@pve!t1"] {
                    bench.proxmox.access.grant("/", who, PROV);
                }
            }
            ["start", vmid] => {
                let work = Work::Start { vmid: number(vmid) };
                bench.turn(|proxmox, turn| proxmox.fork(turn, "root@pam", work));
                while bench.step() {}
            }
            ["stop", vmid] => {
                let work = Work::Stop { vmid: number(vmid) };
                bench.turn(|proxmox, turn| proxmox.fork(turn, "root@pam", work));
                while bench.step() {}
            }
            ["edit", vmid, option] => suffer(ProxmoxTrouble::Edited {
                vmid: number(vmid),
                option: option.to_owned(),
                value: None,
            }),
            ["edit", vmid, option, value] => suffer(ProxmoxTrouble::Edited {
                vmid: number(vmid),
                option: option.to_owned(),
                value: Some(value.to_owned()),
            }),
            ["lost", vmid, storage] => {
                suffer(ProxmoxTrouble::LostDisk {
                    vmid: number(vmid),
                    storage: storage.to_owned(),
                });
            }
            ["elsewhere", vmid, node] => {
                let (vmid, node) = (number(vmid), node.to_owned());
                let (name, tags) = ("other".to_owned(), String::new());
                suffer(ProxmoxTrouble::ForeignVm { vmid, name, tags, running: false, node: None });
                suffer(ProxmoxTrouble::Moved { vmid, node });
            }
            ["hang", kind] => suffer(ProxmoxTrouble::TaskHangs { kind: kind.to_owned() }),
            ["warn", kind, count] => {
                let warnings = count.parse().unwrap();
                suffer(ProxmoxTrouble::TaskWarns { kind: kind.to_owned(), warnings });
            }
            ["kill"] => bench.turn(|proxmox, turn| proxmox.kill_tasks(turn)),
            ["later"] => bench.now += 10_000,
            ["wait"] => while bench.step() {},
            _ => panic!("nobody knows how to {action}"),
        }
    }

    fn ours(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (theirs, ours)| text.replace(theirs, ours))
    }

    fn play(&mut self, recorded: &Recorded) {
        let (method, target) = recorded.call.split_once(' ').unwrap();
        let mut call = request(method, &self.ours(target), &self.ours(&recorded.form));
        if recorded.json {
            call.headers[1].1 = "application/json".to_owned();
        }
        if let Some(credentials) = &self.credentials {
            call.headers[0].1.clone_from(credentials);
        }
        let reply = self.bench.raw(&call);
        let answer = body(&reply);
        let n = recorded.n;
        self.expect(n, "status", &json!(recorded.status), &json!(reply.status));
        if recorded.status != 200 {
            let reason = reply.reason.as_deref().unwrap_or_default();
            self.expect(n, "reason", &json!(recorded.reason), &json!(Some(reason)));
            let errors = json!(recorded.errors.clone().unwrap_or_default());
            let ours = answer.get("errors").cloned().unwrap_or(json!({}));
            self.expect(n, "errors", &errors, &ours);
        }
        if let Some(shape) = &recorded.data {
            self.compare(n, "data", shape, &answer["data"]);
        }
        if let (Some(task), Some(theirs)) = (&recorded.task, &recorded.upid) {
            self.follow(recorded, task, theirs, answer["data"].as_str().unwrap_or_default());
        }
    }

    /// Lets a task that was begun end, and compares what it was and how it ended.
    fn follow(&mut self, recorded: &Recorded, task: &str, theirs: &str, upid: &str) {
        let pieces: Vec<&str> = upid.split(':').collect();
        let named = pieces.get(5..7).map(|pieces| pieces.join(":"));
        self.expect(recorded.n, "task", &json!(task), &json!(named));
        self.names.insert(escape_as_recorded(theirs), escape(upid));
        let running =
            |bench: &Bench| bench.proxmox.inventory().running_tasks.contains(&upid.to_owned());
        while running(&self.bench) && self.bench.step() {}
        if let Some(exit) = recorded.exit.as_ref().filter(|_| !upid.is_empty()) {
            let ended = self.bench.exit(upid);
            let exit = self.ours(exit);
            self.expect(recorded.n, "exit", &json!(exit), &json!(ended));
        }
    }

    fn expect(&mut self, n: u32, place: &str, theirs: &Value, ours: &Value) {
        if theirs != ours {
            self.differences.push((n, format!("{place}: recorded {theirs}, here {ours}")));
        }
    }

    /// Compares an answer with a recorded shape.
    fn compare(&mut self, n: u32, place: &str, shape: &Value, ours: &Value) {
        let Some(shape) = shape.as_object() else {
            return self.expect(n, place, shape, &json!(type_of(ours)));
        };
        if let Some(exact) = shape.get("=") {
            return self.expect(n, place, exact, ours);
        }
        if let Some(count) = shape.get("#") {
            return self.compare_list(n, place, (count, shape), ours);
        }
        let empty = Map::new();
        let object = ours.as_object().unwrap_or(&empty);
        for name in shape.keys().chain(object.keys().filter(|name| !shape.contains_key(*name))) {
            let place = format!("{place}.{name}");
            match (shape.get(name), object.get(name)) {
                (Some(shape), Some(ours)) => self.compare(n, &place, shape, ours),
                (theirs, ours) => {
                    let word = |there: bool| json!(if there { "there" } else { "absent" });
                    self.expect(n, &place, &word(theirs.is_some()), &word(ours.is_some()));
                }
            }
        }
    }

    fn compare_list(
        &mut self,
        n: u32,
        place: &str,
        (count, shape): (&Value, &Map<String, Value>),
        ours: &Value,
    ) {
        let empty = Vec::new();
        let list = ours.as_array().unwrap_or(&empty);
        if let Some(ids) = shape.get("ids") {
            let key = ["volid", "vmid", "key", "iface"];
            let id = |one: &Value| key.iter().find_map(|key| one.get(key)).map(text_of);
            let mut here: Vec<String> = list.iter().filter_map(id).collect();
            here.sort();
            self.expect(n, &format!("{place} ids"), ids, &json!(here));
        }
        self.expect(n, &format!("{place} count"), count, &json!(list.len()));
        let (all, some) = (shape.get("all"), shape.get("some"));
        for (name, types) in all.and_then(Value::as_object).into_iter().flatten() {
            for one in list {
                let kind = one.get(name).map_or("absent", type_of);
                if !types.as_array().unwrap().contains(&json!(kind)) {
                    self.expect(n, &format!("{place}[].{name}"), types, &json!(kind));
                    break;
                }
            }
        }
        let known = |name: &String| {
            [all, some].iter().flatten().any(|set| set.get(name.as_str()).is_some())
        };
        let names = list.iter().filter_map(Value::as_object).flat_map(Map::keys);
        let extra: std::collections::BTreeSet<&String> =
            names.filter(|name| !known(name)).collect();
        for name in extra {
            self.expect(n, &format!("{place}[].{name}"), &json!("absent"), &json!("there"));
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) | Value::Object(_) => "object",
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The recording's client left dots and dashes alone.
fn escape_as_recorded(text: &str) -> String {
    escape(text).replace("%2E", ".").replace("%2D", "-").replace("%5F", "_")
}
