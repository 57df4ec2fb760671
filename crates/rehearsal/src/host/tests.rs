//! Tests of the host over its own wires: dialling, TLS, time, and lives of a world across processes.

use std::net::Ipv4Addr;
use std::path::Path;

use castle_wire::rest::{Reply, Rest};
use castle_wire::tls::{Verify, parse_fingerprint};
use http::{HeaderName, HeaderValue, Method};

use super::*;
use crate::testing::{private_folder, spec};

mod cluster;
mod desk;
mod download;
mod front;
mod keeping;
mod life;
mod machine;
mod malformed;
mod proxmox;
mod vault;
mod wire;

const SCHEMATIC: &str = "customization:\n    systemExtensions:\n        officialExtensions:\n            - siderolabs/iscsi-tools\n";

fn memory(seed: u64) -> Host {
    Host::open(None, &spec(3, 2), seed).unwrap()
}

fn client(host: &Host, base: &str) -> Rest {
    let world = host.world();
    Rest::open(&world, base, &Verify::Roots(world.roots.clone())).unwrap()
}

async fn get(host: &Host, base: &str, path: &str) -> Reply {
    client(host, base).request(Method::GET, path, Vec::new(), "").await.unwrap()
}

async fn register(host: &Host, text: &str) -> Reply {
    let client = client(host, "https://factory.talos.dev");
    client.request(Method::POST, "/schematics", Vec::new(), text.to_owned()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn dialling_fails_as_a_network_does() {
    let host = memory(1);
    let dialer = host.dialer();
    let kind = async |name: &str, port| {
        let before = host.now();
        let Err(error) = dialer.dial(name, port).await else { panic!("{name}:{port} answers") };
        (error.kind(), host.now() - before)
    };
    assert_eq!(kind("192.168.1.77", 50000).await, (io::ErrorKind::HostUnreachable, 3001));
    assert_eq!(kind("pve.lan", 22).await, (io::ErrorKind::ConnectionRefused, 1));
    assert_eq!(kind("no.such.name", 443).await, (io::ErrorKind::NotFound, 1));
}

#[tokio::test(start_paused = true)]
async fn public_servers_are_verified_by_the_rehearsals_root_and_proxmox_by_its_pin() {
    let host = memory(1);
    let path = "/metallb/metallb/v0.15.3/config/manifests/metallb-native.yaml";
    let reply = get(&host, "https://raw.githubusercontent.com", path).await;
    assert_eq!(reply.status, 200);
    assert!(reply.text().contains("image: quay.io/metallb/controller:v0.15.3"));
    assert!(reply.header("date").is_none(), "a date would be another clock");

    let pin = Verify::Fingerprint(parse_fingerprint(&host.proxmox_fingerprint().unwrap()).unwrap());
    let call = |verify: Verify| {
        let client = Rest::open(&host.world(), "https://pve.lan:8006", &verify).unwrap();
        async move { client.request(Method::GET, "/api2/json/version", Vec::new(), "").await }
    };
    assert!(call(pin).await.is_ok());
    assert!(call(Verify::Fingerprint([7; 32])).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_trace() {
    let run = async |seed| {
        let host = memory(seed);
        for _ in 0..3 {
            get(&host, "https://raw.githubusercontent.com", "/nothing").await;
            register(&host, SCHEMATIC).await;
        }
        (host.trace_hash(), host.now(), host.proxmox_fingerprint().unwrap())
    };
    let first = run(5).await;
    assert_eq!(first, run(5).await);
    let other = run(6).await;
    assert_ne!(first.0, other.0);
    assert_ne!(first.2, other.2);
}

#[tokio::test(start_paused = true)]
async fn changes_are_counted_once_and_reads_never() {
    let host = memory(1);
    assert_eq!(register(&host, SCHEMATIC).await.status, 201);
    assert_eq!(register(&host, SCHEMATIC).await.status, 201);
    get(&host, "https://factory.talos.dev", "/schematics/none").await;
    assert_eq!(host.mutations(), BTreeMap::from([("sources".to_owned(), 1)]));
    assert_eq!(host.requests().len(), 3);
}

/// Opens the world in a folder, runs `then` with it and gives what it says.
async fn life<T>(folder: &Path, then: impl AsyncFnOnce(&Host) -> T) -> (Host, T) {
    let host = Host::open(Some(folder), &spec(3, 2), 9).unwrap();
    let said = then(&host).await;
    (host, said)
}

#[tokio::test(start_paused = true)]
async fn a_world_outlives_a_killed_process_and_a_closed_one() {
    let folder = private_folder();
    let folder = folder.path().join("rehearsal");
    let (host, _) = life(&folder, async |host| register(host, SCHEMATIC).await.status).await;
    let live = host.read(Clone::clone);
    drop(host); // Killed: nothing was said goodbye to.

    let (host, entropy) = life(&folder, async |host| {
        let mut bytes = [0; 8];
        host.entropy().fill(&mut bytes);
        bytes
    })
    .await;
    let mut again = host.read(Clone::clone);
    assert_eq!(again.opens, live.opens + 1);
    again.opens = live.opens;
    assert_eq!(again, live);
    get(&host, "https://factory.talos.dev", "/").await;
    let rested = host.now();
    host.close().unwrap();

    let (host, (now, other)) = life(&folder, async |host| {
        let mut bytes = [0; 8];
        host.entropy().fill(&mut bytes);
        (host.now(), bytes)
    })
    .await;
    assert_eq!(now, rested, "time stands still between processes");
    assert_ne!(entropy, other, "two processes draw different numbers");
    assert_eq!(host.read(|world| world.sources.schematics().count()), 1);
}

#[tokio::test(start_paused = true)]
async fn one_process_hosts_a_world() {
    let folder = private_folder();
    let (host, ()) = life(folder.path(), async |_| ()).await;
    let Err(HostError::Store(error)) = Host::open(Some(folder.path()), &spec(3, 2), 9) else {
        panic!("it opened twice");
    };
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    drop(host);
    life(folder.path(), async |_| ()).await;
}

#[tokio::test(start_paused = true)]
async fn a_castle_file_that_changed_finds_its_endpoints() {
    let folder = private_folder();
    let (host, ()) = life(folder.path(), async |_| ()).await;
    host.close().unwrap();
    let mut moved = spec(3, 2);
    moved.platform.proxmox_mut().unwrap().endpoint = "https://other.lan:8006".to_owned();
    moved.gitops.url = "https://github.com/example/elsewhere.git".to_owned();
    let host = Host::open(Some(folder.path()), &moved, 9).unwrap();
    assert!(host.dialer().dial("other.lan", 8006).await.is_ok());
    assert!(host.dialer().dial("pve.lan", 8006).await.is_ok());
    let token = host.read(|world| world.birth.sources.token.clone().unwrap());
    let head = host.read(|world| {
        world.sources.git_head(
            "https://github.com/example/elsewhere",
            "main",
            Some(("git", &token)),
        )
    });
    assert_eq!(head.unwrap().len(), 40);
    drop(host);
    // The log alone brings it back.
    let host = Host::open(Some(folder.path()), &moved, 9).unwrap();
    assert!(host.dialer().dial("other.lan", 8006).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn git_is_asked_as_git_asks() {
    let host = memory(1);
    let path = "/example/tazlab-k8s.git/info/refs?service=git-upload-pack";
    let stranger = get(&host, "https://github.com", path).await;
    assert_eq!(stranger.status, 401);
    assert_eq!(stranger.header("www-authenticate"), Some("Basic realm=\"GitHub\""));

    let token = host.read(|world| world.birth.sources.token.clone().unwrap());
    let basic =
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, format!("git:{token}"));
    let header = (
        HeaderName::from_static("authorization"),
        HeaderValue::try_from(format!("Basic {basic}")).unwrap(),
    );
    let reply = client(&host, "https://github.com")
        .request(Method::GET, path, vec![header], "")
        .await
        .unwrap();
    assert_eq!(reply.header("content-type"), Some("application/x-git-upload-pack-advertisement"));
    let text = reply.text();
    assert!(text.starts_with("001e# service=git-upload-pack\n0000"), "{text}");
    assert!(text.ends_with(" refs/heads/main\n0000"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn debug_output_of_a_world_holds_no_secret() {
    let host = memory(1);
    let (world, birth) = host.read(|world| (format!("{world:?}"), world.birth.clone()));
    let token = birth.sources.token.clone().unwrap();
    let proxmox = &birth.proxmox.token_secret;
    let infisical = birth.infisical.secrets.values().chain([&birth.infisical.client_secret]);
    for secret in infisical.chain([&token, proxmox]).filter(|secret| !secret.contains('!')) {
        assert!(!world.contains(secret.as_str()), "{secret}");
    }
}
