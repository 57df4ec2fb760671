//! The same questions to the rehearsed Git host and to Git's own server, which has the same repository: both must say the same.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::Path;

use bytes::Bytes;
use castle_reality::asked::git::QUESTIONS;
use castle_reality::cluster::Authority;
use castle_reality::web::{Web, answer_by_git};
use castle_reality::{Real, outside, run};
use castle_wire::tls::client_config;
use castle_wire::{Connector, Rest, Verify};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request};

use crate::datacenter::{Datacenter, proxmox};
use crate::git::git;
use crate::setting::{SOON, folder, pem, to_base64, with, write};

/// Who is asked.
struct Asked {
    rest: Rest,
    path: &'static str,
    authorization: Option<String>,
}

impl Asked {
    fn new(base: &str, authority: &str, path: &'static str, authorization: Option<String>) -> Self {
        let verify = Verify::Authority(authority.to_owned());
        let config = client_config(&verify, None, outside().clock, &[b"http/1.1"]).unwrap();
        let rest = Rest::over(Connector::new(outside().dialer, config), base);
        Self { rest, path, authorization }
    }

    /// Puts one question; what is told, without what may differ.
    async fn ask(&self, version: &str, lines: &str, place: &Path) -> Vec<String> {
        let greets = lines.is_empty();
        let mut headers = Vec::new();
        let text = |text: &str| HeaderValue::from_str(text).unwrap();
        headers.push((HeaderName::from_static("git-protocol"), text(version)));
        if let Some(authorization) = &self.authorization {
            headers.push((AUTHORIZATION, text(authorization)));
        }
        let (method, path) = if greets {
            (Method::GET, format!("{}/info/refs?service=git-upload-pack", self.path))
        } else {
            headers.push((CONTENT_TYPE, text("application/x-git-upload-pack-request")));
            (Method::POST, format!("{}/git-upload-pack", self.path))
        };
        let reply = self.rest.request(method, &path, headers, packets(lines)).await.unwrap();
        let kind = reply.headers.get(CONTENT_TYPE).map_or("", |kind| kind.to_str().unwrap());
        let mut told = vec![format!("{} {kind}", reply.status.as_u16())];
        if reply.status == 200 {
            let mut lines = read(&reply.body, place).await;
            if version == "version=2" && lines.first().is_some_and(|line| line.starts_with('#')) {
                // GitHub names the service in this version too, Git's own program does not; clients take both.
                lines.drain(..2);
            }
            told.extend(lines);
        }
        told
    }
}

/// Lines as packets; `|` ends one, `~` is a delimiter, `.` the end.
fn packets(lines: &str) -> String {
    let packet = |line: &str| match line {
        "" => String::new(),
        "~" => "0001".to_owned(),
        "." => "0000".to_owned(),
        line => format!("{:04x}{line}\n", line.len() + 5),
    };
    lines.split('|').map(packet).collect()
}

/// An answer as lines; the objects of a pack by their ids.
async fn read(body: &Bytes, place: &Path) -> Vec<String> {
    let (mut told, mut pack, mut rest) = (Vec::new(), Vec::new(), &body[..]);
    while rest.len() >= 4 {
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..4]).unwrap(), 16).unwrap();
        let (packet, after) = rest.split_at(length.max(4));
        match (length, packet.get(4)) {
            (0, _) => told.push(".".to_owned()),
            (1..4, _) => told.push("~".to_owned()),
            (_, Some(1)) => pack.extend_from_slice(&packet[5..]),
            // Progress is for people.
            (_, Some(2)) => {}
            _ => told.extend(shown(&String::from_utf8_lossy(&packet[4..]))),
        }
        rest = after;
    }
    if !pack.is_empty() {
        told.extend(objects(&pack, place).await);
    }
    told
}

/// A line without what a server may do beside: the agent's name, and abilities that nobody must use.
fn shown(line: &str) -> Option<String> {
    let line = line.trim_end_matches('\n');
    let (line, abilities) = line.split_once('\0').unwrap_or((line, ""));
    let symref = abilities.split(' ').find(|word| word.starts_with("symref="));
    match line.split_once('=').unwrap_or((line, "")) {
        ("server-option" | "object-info" | "bundle-uri", _) => None,
        (name @ ("agent" | "fetch" | "ls-refs"), _) => Some(name.to_owned()),
        _ => Some(format!("{line}{}", symref.map(|word| format!(" {word}")).unwrap_or_default())),
    }
}

/// The ids of the objects of a pack, as git itself reads it.
async fn objects(pack: &[u8], place: &Path) -> BTreeSet<String> {
    let file = place.join("some.pack");
    std::fs::write(&file, pack).unwrap();
    let name = file.display().to_string();
    let words = ["index-pack", "--object-format=sha1", &name];
    drop(run(with(git(place), &words), SOON).await.expect_success());
    let told = run(with(git(place), &["verify-pack", "-v", &name]), SOON).await.expect_success();
    let id = |line: &str| line.split(' ').next().filter(|id| id.len() == 40).map(str::to_owned);
    told.lines().filter_map(id).collect()
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn the_rehearsed_git_host_says_what_git_says() {
    if Real::find("git").is_none() {
        return;
    }
    let mut spec = proxmox(94);
    spec.gitops.url = "https://127.0.94.3:8443/example/blue".to_owned();
    let datacenter = Datacenter::open(spec).await;
    let place = folder();
    let roots: String =
        datacenter.host.roots().iter().map(|root| pem("CERTIFICATE", root)).collect();
    let token = datacenter.host.read(|world| world.birth.sources.token.clone().unwrap());
    let trust = format!("http.sslCAInfo={}", write(place.path(), "ca.pem", &roots).display());
    let url = format!("https://git:{token}@127.0.94.3:8443/example/blue");
    let to = place.path().join("x").display().to_string();
    let words = ["-c", &trust, "clone", "--quiet", "--mirror", &url, &to];
    drop(run(with(git(place.path()), &words), SOON).await.expect_success());
    let head = with(git(place.path()), &["-C", &to, "rev-parse", "HEAD"]);
    let head = run(head, SOON).await.expect_success().trim().to_owned();

    let authority = Authority::new();
    let web = Web::listen(&authority, &[], Ipv4Addr::new(127, 0, 94, 4), 8443).await;
    let basic = format!("Basic {}", to_base64(format!("git:{token}").as_bytes()));
    let ours = Asked::new("https://127.0.94.3:8443", &roots, "/example/blue", Some(basic));
    let real = Asked::new("https://127.0.94.4:8443", &authority.certificate, "/x", None);
    let comparing = async {
        let mut wrong = Vec::new();
        for (what, version, lines) in QUESTIONS {
            let lines = lines.replace("{head}", &head);
            let theirs = real.ask(version, &lines, place.path()).await;
            let told = ours.ask(version, &lines, place.path()).await;
            assert!(!theirs.is_empty());
            if told != theirs {
                wrong.push(format!("{what}:\nours {told:#?}\ngit  {theirs:#?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    };
    let answer = async |request: Request<Bytes>| answer_by_git(place.path(), request).await;
    tokio::select! {
        biased;
        () = comparing => {}
        _ = web.serve(answer) => {}
    }
}

#[test]
fn lines_become_packets() {
    assert_eq!(packets("command=ls-refs|~|peel|."), "0014command=ls-refs\n00010009peel\n0000");
}
