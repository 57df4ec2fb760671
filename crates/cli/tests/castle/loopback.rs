//! A real run: castle as everybody starts it, its own dialer, clock and authorities, against servers on real sockets.
//!
//! The servers are those of the rehearsal, put on loopback addresses in a network namespace of their own, where names
//! such as `github.com` lead to them. Nothing of the machine outside is touched, and no privilege is needed.

use std::process::Command;
use std::sync::mpsc;
use std::thread::JoinHandle;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use castle_config::Sources;
use castle_model::Spec;
use castle_model::time::Moment;
use castle_rehearsal::host::front::Front;
use castle_rehearsal::host::{Host, Pace};
use castle_rehearsal::inventory::Inventory;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::context::{Context, Said, example};

/// The names that a run of the example asks for, each with an address of its own.
const NAMES: [&str; 5] =
    ["pve.lan", "eu.infisical.com", "factory.talos.dev", "github.com", "raw.githubusercontent.com"];

/// How many times faster than outside the datacenter lives.
const SPEED: u32 = 30;

/// What goes before a command to run it where the names lead to us. `ip` may be missing where `ifconfig` is not.
const INSIDE: &str =
    "(ip link set lo up || ifconfig lo up) && mount --bind \"$0\" /etc/hosts && exec \"$@\"";

#[test]
fn a_castle_rises_and_goes_over_real_sockets() {
    let home = Context::new();
    let lines: Vec<String> =
        NAMES.iter().zip(1..).map(|(name, n)| format!("127.88.0.{n} {name}\n")).collect();
    home.write("hosts", &format!("127.0.0.1 localhost\n{}", lines.concat()));
    let hosts = home.folder().join("hosts");
    let inside = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "--mount", "sh", "-c", INSIDE]).arg(&hosts);
        command.args(words).output()
    };
    let possible = inside(&["true"]).is_ok_and(|output| output.status.success());
    if !possible {
        #[expect(
            clippy::disallowed_methods,
            reason = "whether a hole in the tests is allowed is for CI to say"
        )]
        let ci = std::env::var_os("CI").is_some();
        assert!(
            !ci,
            "this machine makes no namespaces for users (unshare --map-root-user --net --mount)"
        );
        // A test that could not be done must not look like one that was.
        eprintln!(
            "NOT TESTED: a run over real sockets; this machine makes no namespaces for users"
        );
        return;
    }
    let program = std::env::current_exe().unwrap();
    let test = ["--exact", "loopback::inside_the_namespace", "--ignored", "--nocapture"];
    let words = [&[program.to_str().unwrap()][..], &test].concat();
    Said::of(&inside(&words).unwrap()).ends(0);
}

#[test]
#[ignore = "binds ports below 1024 and other servers' names: the test above runs it in a namespace of its own"]
fn inside_the_namespace() {
    let castle = Context::new();
    let text = example("blue").replace("192.168.1.", "127.0.1.");
    let sources = Sources {
        file: "castle.hcl".to_owned(),
        text: text.clone().into_bytes(),
        ..Sources::default()
    };
    let datacenter = Datacenter::start(castle_config::read(&sources).spec.unwrap());
    let pin = format!("platform \"proxmox\" {{\n    fingerprint = \"{}\"", datacenter.fingerprint);
    castle.write("castle.hcl", &text.replacen("platform \"proxmox\" {", &pin, 1));
    castle.write("roots.pem", &datacenter.roots);
    let run = |words: &[&str]| {
        let mut command = castle.command(words);
        command.env("SSL_CERT_FILE", castle.folder().join("roots.pem"));
        command.env("INFISICAL_CLIENT_ID", &datacenter.credentials.0);
        command.env("INFISICAL_CLIENT_SECRET", &datacenter.credentials.1);
        Said::of(&command.output().unwrap())
    };

    run(&["lock", "--images"]).ends(0);
    assert!(castle.folder().join("castle.lock").exists());
    let up = run(&["up"]).ends(0);
    assert!(up.out.contains("handover: Flux owns what the cluster hosts"), "{}", up.out);
    assert!(!up.out.contains("rehears") && !up.err.contains("rehears"), "{}{}", up.err, up.out);
    assert!(!up.err.contains("unverified"), "{}", up.err);
    let again = run(&["up"]).ends(0);
    assert!(again.out.contains("nothing changed"), "{}", again.out);
    let plan = run(&["plan", "--json"]).ends(0);
    let plan: serde_json::Value = serde_json::from_str(&plan.out).unwrap();
    assert!(plan["steps"].as_array().unwrap().iter().all(|s| s["verb"] == "leave"), "{plan}");
    let status = run(&["status"]).ends(0);
    assert!(status.out.starts_with("castle blue: incarnation "), "{}", status.out);
    let kube = run(&["kubeconfig"]).ends(0);
    assert!(kube.out.contains("server: https://127.0.1.210:6443"), "{}", kube.out);
    run(&["machineconfig", "cp-01"]).ends(0);
    untrusted(&castle, &text, &datacenter, &run);
    run(&["down", "--yes"]).ends(0);
    let left = datacenter.stop();
    assert!(left.proxmox.guests.is_empty(), "{:?}", left.proxmox);
    assert!(left.proxmox.volumes.is_empty() && left.proxmox.files.is_empty(), "{:?}", left.proxmox);
    assert!(
        !left.secrets.iter().any(|key| key.contains("TALOS_SECRETS_BUNDLE")),
        "{:?}",
        left.secrets
    );
}

/// A server that shows another certificate than the castle file pins gets nothing, and the line to add is told.
fn untrusted(castle: &Context, text: &str, datacenter: &Datacenter, run: &dyn Fn(&[&str]) -> Said) {
    let other = "ab".repeat(32);
    let pin = format!("platform \"proxmox\" {{\n    fingerprint = \"{other}\"");
    castle.write("wrong.hcl", &text.replacen("platform \"proxmox\" {", &pin, 1));
    run(&["-f", "wrong.hcl", "--state", "wrong", "up"]).ends(1);
    let said = run(&["-f", "wrong.hcl", "plan"]).ends(1);
    let line = said.err.split_once("fingerprint = \"").unwrap_or_default().1;
    let line = line.replace(':', "").to_lowercase();
    assert!(line.starts_with(&datacenter.fingerprint), "{}", said.err);
    castle.write("silent.hcl", &text.replacen("https://pve.lan:8006", "https://pve.lan:1", 1));
    let said = run(&["-f", "silent.hcl", "plan"]).ends(1);
    assert!(said.err.contains("platform/inventory could not be looked at"), "{}", said.err);
}

/// The rehearsal's servers on real sockets, on a thread of their own.
struct Datacenter {
    roots: String,
    fingerprint: String,
    credentials: (String, String),
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Inventory>,
}

impl Datacenter {
    fn start(spec: Spec) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (ready, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let host = Host::live(&spec, 1, Pace { now: now(), speed: SPEED }).unwrap();
                let front = Front::open(&host).await.unwrap();
                let servers = named_servers(&host).await;
                let (id, secret) = host.credentials();
                let credentials = (id.expose().to_owned(), secret.expose().to_owned());
                ready
                    .send((roots(&host), host.proxmox_fingerprint().unwrap(), credentials))
                    .unwrap();
                stopped.await.ok();
                drop(servers);
                front.stop().await;
                host.read(Inventory::of)
            })
        });
        let (roots, fingerprint, credentials) = told.recv().unwrap();
        Self { roots, fingerprint, credentials, stop, thread }
    }

    /// Ends it, and says what was in it.
    fn stop(self) -> Inventory {
        self.stop.send(()).unwrap();
        self.thread.join().unwrap()
    }
}

/// Servers that a castle file or castle itself knows by name: each connection is handed on as it is, TLS included.
async fn named_servers(host: &Host) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let endpoints = host.read(|world| world.birth.endpoints.clone());
    for endpoint in endpoints {
        let Some(n) = NAMES.iter().position(|name| *name == endpoint.host) else { continue };
        let listener =
            TcpListener::bind((format!("127.88.0.{}", n + 1), endpoint.port)).await.unwrap();
        let dialer = host.dialer();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut outside, _)) = listener.accept().await {
                let (dialer, endpoint) = (dialer.clone(), endpoint.clone());
                connections.spawn(async move {
                    let mut server = dialer.dial(&endpoint.host, endpoint.port).await.unwrap();
                    tokio::io::copy_bidirectional(&mut outside, &mut server).await.ok();
                });
            }
        });
    }
    tasks
}

fn roots(host: &Host) -> String {
    let pem = |der: &[u8]| {
        format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            STANDARD.encode(der)
        )
    };
    host.roots().iter().map(|root| pem(root)).collect()
}

/// The time of day, which castle reads too.
fn now() -> Moment {
    castle_wire::Clock::now(&castle_wire::SystemClock)
}
