//! Writes `docs/reference/fidelity.md` from the lists that the emulated servers and the tests go by.
#![expect(clippy::unwrap_used, reason = "what it reads is part of the house")]

#[path = "../../rehearsal/src/infisical/tests/known.rs"]
mod infisical;
#[path = "../tests/real/contract/known.rs"]
mod kubernetes;
#[path = "../../rehearsal/src/proxmox/tests/known.rs"]
mod proxmox;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use castle_reality::asked::git::QUESTIONS;
use castle_reality::asked::{Asked, CLIENTS, Told};
use castle_rehearsal::fidelity;
use serde_json::Value;

const HEAD: &str = "# Fidelity\n
<!-- Written by `cargo xtask docs` from the lists that the emulated servers and the tests go by: change those. -->\n
What the rehearsal datacenter emulates, how each part is held to reality by things that nobody here wrote, and where it is knowingly different.
A line of this page is a line of a list that a test goes through or a server goes by; what is not here is not promised.\n
| how | what it means |
|---|---|
| contract | the same requests go to the emulation and to the real server, and every answer must agree after ids and times are masked |
| recorded | exchanges recorded from the real server go in their order to a fresh emulated one, which can not read the recording |
| real client | a client that nobody here wrote is asked to do something, and must tell what it would tell of a real server |
| schema | requests are judged by the published description of the API |
";

/// The files of the contract suite, by subject.
const CONTRACT: &[(&str, &str)] = &[
    ("access and size", include_str!("../tests/real/contract/access.rs")),
    ("apply", include_str!("../tests/real/contract/apply.rs")),
    ("kinds", include_str!("../tests/real/contract/kinds.rs")),
    ("lists and watches", include_str!("../tests/real/contract/lists.rs")),
    ("what nobody would send", include_str!("../tests/real/contract/bytes.rs")),
    ("what is hardly a request", include_str!("../tests/real/contract/heads.rs")),
    ("refusals", include_str!("../tests/real/contract/refusals.rs")),
    ("removal", include_str!("../tests/real/contract/removal.rs")),
    ("tables", include_str!("../tests/real/contract/tables.rs")),
    ("webhooks", include_str!("../tests/real/contract/webhooks.rs")),
];

#[expect(clippy::print_stdout, reason = "the page is what this program is for")]
fn main() {
    let mut page = HEAD.to_owned();
    of_proxmox(&mut page);
    of_infisical(&mut page);
    of_talos(&mut page);
    of_kubernetes(&mut page);
    of_the_controllers(&mut page);
    of_the_rest(&mut page);
    print!("{page}");
}

/// Adds text to the page.
fn say(page: &mut String, text: &str) {
    page.push_str(text);
    page.push('\n');
}

fn of_proxmox(page: &mut String) {
    let schema: Value =
        serde_json::from_str(include_str!("../../rehearsal/src/proxmox/schema.json")).unwrap();
    let recording = include_str!("../../rehearsal/src/proxmox/tests/transcript.jsonl");
    let calls: Vec<Value> =
        recording.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let left: u32 = proxmox::LEFT_OUT.iter().map(|(n, _)| n.end() - n.start() + 1).sum();
    let answered: Vec<&str> = calls
        .iter()
        .filter(|call| {
            let number = u32::try_from(call["n"].as_u64().unwrap()).unwrap();
            !proxmox::LEFT_OUT.iter().any(|(numbers, _)| numbers.contains(&number))
        })
        .map(|call| call["call"].as_str().unwrap())
        .collect();
    say(page, "\n## Proxmox VE 9.2\n");
    say(
        page,
        &format!(
            "Schema, recorded ({} of {} recorded calls are replayed; the others are below with their reasons), real client.\n",
            proxmox::EXCHANGES - left,
            proxmox::EXCHANGES
        ),
    );
    say(page, "| call | recorded answers replayed |\n|---|---|");
    for operation in schema["operations"].as_array().unwrap() {
        let (method, path) =
            (operation["method"].as_str().unwrap(), operation["path"].as_str().unwrap());
        let times = answered.iter().filter(|call| fits(call, method, path)).count();
        let closed = if operation["closed"] == true { ", closed to tokens" } else { "" };
        say(page, &format!("| `{method} {path}`{closed} | {times} |"));
    }
    clients(page, "Proxmox");
    different(page);
    for (numbers, why) in proxmox::LEFT_OUT {
        let named = range(numbers.start(), numbers.end());
        say(page, &format!("- recorded {named} not answered as recorded: {why}"));
    }
    for (number, place, why) in proxmox::ALLOWED {
        say(page, &format!("- recorded call {number}, `{place}`: {why}"));
    }
}

/// Whether a recorded call is one of an operation.
fn fits(call: &str, method: &str, path: &str) -> bool {
    let (own, target) = call.split_once(' ').unwrap();
    let target = target.split('?').next().unwrap();
    let (target, path): (Vec<&str>, Vec<&str>) =
        (target.split('/').collect(), path.split('/').collect());
    own == method
        && target.len() == path.len()
        && target
            .iter()
            .zip(&path)
            .all(|(piece, wanted)| wanted.starts_with('{') || piece == wanted)
}

fn of_infisical(page: &mut String) {
    let recording = include_str!("../../rehearsal/src/infisical/tests/recorded.jsonl");
    let mut calls: BTreeMap<String, usize> = BTreeMap::new();
    for line in recording.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let number = line["n"].as_u64();
        let left = number.is_some_and(|number| {
            infisical::LEFT_OUT.iter().any(|(numbers, _)| numbers.contains(&number))
        });
        if line.get("bridge").is_some() || left {
            continue;
        }
        let call = format!(
            "{} {}",
            line["method"].as_str().unwrap(),
            general(line["path"].as_str().unwrap())
        );
        *calls.entry(call).or_default() += 1;
    }
    let left: u64 = infisical::LEFT_OUT.iter().map(|(n, _)| n.end() - n.start() + 1).sum();
    say(page, "\n## Infisical\n");
    say(
        page,
        &format!(
            "Recorded ({} of {} recorded exchanges are replayed, each answer compared whole), real client.\n",
            infisical::EXCHANGES as u64 - left,
            infisical::EXCHANGES
        ),
    );
    say(page, "| call | recorded answers replayed |\n|---|---|");
    for (call, times) in calls {
        say(page, &format!("| `{call}` | {times} |"));
    }
    clients(page, "Infisical");
    different(page);
    for (numbers, why) in infisical::LEFT_OUT {
        say(page, &format!("- recorded {}: {why}", range(numbers.start(), numbers.end())));
    }
}

/// A path with its ids and names left out.
fn general(path: &str) -> String {
    let mut before = "";
    let piece = |piece| {
        let is_id = |text: &str| text.len() == 36 && text.matches('-').count() == 4;
        let named = matches!(before, "secrets" | "raw" | "slug");
        let shown = match piece {
            "batch" | "raw" | "" => piece,
            id if is_id(id) => "{id}",
            _ if named => "{name}",
            other => other,
        };
        before = piece;
        shown
    };
    path.split('/').map(piece).collect::<Vec<_>>().join("/")
}

fn of_talos(page: &mut String) {
    let methods = fidelity::talos_methods();
    say(page, "\n## Talos 1.13\n");
    let recorded: usize = methods.iter().map(|method| method.recorded).sum();
    say(
        page,
        &format!(
            "Recorded ({recorded} answers of a real machine to empty requests, in maintenance mode and configured), contract (the real apid is asked the same: `apid.rs`), real client; a client of 1.14 by Talos' own machinery.\n"
        ),
    );
    say(page, "| method | emulated | modes recorded |\n|---|---|---|");
    for method in &methods {
        let word = match (method.emulated, method.recorded) {
            (true, _) => "yes",
            (false, 0) => "no: says so",
            (false, _) => "no: refuses as recorded, or says so",
        };
        let path = method.path.trim_start_matches('/');
        say(page, &format!("| `{path}` | {word} | {} |", method.recorded));
    }
    let resources: Vec<String> = fidelity::talos_resources()
        .iter()
        .map(|(kind, space)| format!("`{kind}` ({space})"))
        .collect();
    say(page, &format!("\nResources, read and followed: {}.", resources.join(", ")));
    say(
        page,
        "\nRecorded too, and not replayed, because the moments are those of the machine that it ran on; what is seen in the end, and in which order, is held by a test:\n",
    );
    for course in fidelity::TALOS_COURSES {
        let test = match course.test {
            "" => "no test".to_owned(),
            test => format!("`{test}`"),
        };
        say(page, &format!("- {}: {test}", course.what));
    }
    clients(page, "Talos");
    differences_of(page, "Talos");
}

fn of_kubernetes(page: &mut String) {
    say(page, "\n## Kubernetes 1.36\n");
    say(
        page,
        "Contract (kube-apiserver 1.36.3 with etcd and the controller manager), real client.\n",
    );
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for kind in fidelity::kubernetes_kinds() {
        let parts = if kind.parts.is_empty() {
            String::new()
        } else {
            format!(" ({})", kind.parts.join(", "))
        };
        groups.entry(kind.version).or_default().push(format!("{}{parts}", kind.name));
    }
    say(
        page,
        "Every kind is created, read, listed, watched, replaced, patched, applied and deleted; in parentheses what is read and written apart. Kinds of definitions come besides.\n",
    );
    say(page, "| group | kinds |\n|---|---|");
    for (group, kinds) in groups {
        say(page, &format!("| `{group}` | {} |", kinds.join(", ")));
    }
    say(page, "\nAsked of both servers:\n");
    for (subject, text) in CONTRACT {
        let cases: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("|api| Box::pin("))
            .filter_map(|line| line.trim().strip_prefix("(\"")?.split('"').next())
            .collect();
        assert!(!cases.is_empty(), "no case of {subject} is found");
        let all = text.matches("|api| Box::pin(").count();
        assert_eq!(cases.len(), all, "a case of {subject} is written over several lines");
        say(page, &format!("- {subject}: {}", cases.join("; ")));
    }
    clients(page, "Kubernetes");
    differences_of(page, "Kubernetes");
    for (case, steps, why) in kubernetes::KNOWN_DIFFERENCES {
        say(page, &format!("- contract, {case} ({}): {why}", steps.join(", ")));
    }
}

fn of_the_controllers(page: &mut String) {
    say(page, "\n## What works of itself in the cluster\n");
    say(
        page,
        "No real controller stands behind these: each does what the real one was seen or is documented to do, as far as a castle meets it. The tests that are named hold that.\n",
    );
    say(page, "| what | does | held by | knowingly different |\n|---|---|---|---|");
    for controller in fidelity::CONTROLLERS {
        let fidelity::Controller { name, what, test, different } = controller;
        say(page, &format!("| {name} | {what} | `{test}` | {different} |"));
    }
}

fn of_the_rest(page: &mut String) {
    say(page, "\n## Git\n");
    say(
        page,
        "Smart HTTP, versions 0 and 2, reading only. Contract (`git http-backend` is asked the same: `smart.rs`), real client.",
    );
    let questions: Vec<&str> = QUESTIONS.iter().map(|(what, _, _)| *what).collect();
    say(
        page,
        &format!(
            "\nAsked of both servers in the same bytes, abilities and the agent's name masked: {}.",
            questions.join("; ")
        ),
    );
    clients(page, "Git");
    say(page, "\n## All servers, by curl\n");
    say(
        page,
        "TLS with its pins and authorities, HTTP/1.1 and HTTP/2 as each real server speaks them, HEAD, ranges, refusals.",
    );
    clients(page, "all of them");
    different(page);
    for line in fidelity::HTTP_DIFFERENCES {
        say(page, &format!("- {line}"));
    }
}

fn different(page: &mut String) {
    say(page, "\nKnowingly different:\n");
}

/// What clients are told in another way than by a real server.
fn differences_of(page: &mut String, server: &str) {
    different(page);
    let asked = CLIENTS.iter().filter(|client| client.server == server);
    for client in asked {
        for question in
            client.asked.iter().copied().flatten().filter(|asked| !asked.differs.is_empty())
        {
            say(page, &format!("- `{} {}`: {}", client.name, question.words, question.differs));
        }
    }
}

/// What the clients of a server are asked.
fn clients(page: &mut String, server: &str) {
    for client in CLIENTS.iter().filter(|client| client.server == server) {
        let questions: Vec<&Asked> = client.asked.iter().copied().flatten().collect();
        let refused =
            questions.iter().filter(|asked| matches!(asked.told, Told::Ends(1.., _))).count();
        let mut list = String::new();
        let mut before = BTreeSet::new();
        for asked in &questions {
            if before.insert((asked.who, asked.words)) {
                let who =
                    if asked.who.is_empty() { String::new() } else { format!(" ({})", asked.who) };
                let comma = if list.is_empty() { "" } else { ", " };
                write!(list, "{comma}`{}`{who}", asked.words).unwrap();
            }
        }
        // A script goes on after a refusal, and tells of it.
        let refused = match refused {
            0 => String::new(),
            refused => format!(", of which {refused} must be refused"),
        };
        let asked = questions.len();
        say(page, &format!("\n{} is asked {asked} things{refused}: {list}.", client.name));
    }
}

fn range<T: std::fmt::Display + PartialEq>(first: &T, last: &T) -> String {
    if first == last { format!("call {first}") } else { format!("calls {first} to {last}") }
}
