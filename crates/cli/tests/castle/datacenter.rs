//! The rehearsal's servers on loopback addresses, in a network namespace of their own, for castle as it is.

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
use castle_rehearsal::trouble::Trouble;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::context::{Context, Said};

/// The names that a run of the example asks for, each with an address of its own.
const NAMES: [&str; 5] =
    ["pve.lan", "eu.infisical.com", "factory.talos.dev", "github.com", "raw.githubusercontent.com"];

/// How many times faster than outside the datacenter lives.
const SPEED: u32 = 30;

/// What goes before a command to run it where the names lead to us. `ip` may be missing where `ifconfig` is not.
const INSIDE: &str =
    "(ip link set lo up || ifconfig lo up) && mount --bind \"$0\" /etc/hosts && exec \"$@\"";

/// Runs an ignored test of this program in a namespace where the names lead to loopback addresses.
#[expect(clippy::print_stderr, reason = "what was not tested is told where tests are read")]
pub(crate) fn in_a_namespace(test: &str) {
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
    let words = ["--exact", test, "--ignored", "--nocapture"];
    let words = [&[program.to_str().unwrap()][..], &words].concat();
    Said::of(&inside(&words).unwrap()).ends(0);
}

/// What a castle file says.
pub(crate) fn spec_of(text: &str) -> Spec {
    let sources = Sources {
        file: "castle.hcl".to_owned(),
        text: text.as_bytes().to_vec(),
        ..Sources::default()
    };
    castle_config::read(&sources).spec.unwrap()
}

/// The rehearsal's servers on real sockets, on a thread of their own.
pub(crate) struct Datacenter {
    /// The authority of its servers with names.
    roots: String,
    /// That of Proxmox, if it has one.
    pub(crate) fingerprint: String,
    credentials: (String, String),
    orders: UnboundedSender<Order>,
    thread: JoinHandle<()>,
}

/// What is asked of the datacenter itself, behind castle's back: a trouble if there is one, then what is there.
type Order = (Option<Trouble>, mpsc::Sender<Inventory>);

impl Datacenter {
    /// Starts the datacenter that a castle file needs.
    pub(crate) fn start(spec: Spec) -> Self {
        let (orders, mut given) = unbounded_channel::<Order>();
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
                while let Some((trouble, answer)) = given.recv().await {
                    if let Some(trouble) = trouble {
                        host.cause(trouble);
                    }
                    answer.send(host.read(Inventory::of)).unwrap();
                }
                drop(servers);
                front.stop().await;
            });
        });
        let (roots, fingerprint, credentials) = told.recv().unwrap();
        Self { roots, fingerprint, credentials, orders, thread }
    }

    /// A castle's command, with what it needs to reach this datacenter.
    pub(crate) fn run(&self, castle: &Context, words: &[&str]) -> Said {
        castle.write("roots.pem", &self.roots);
        let mut command = castle.command(words);
        command.env("SSL_CERT_FILE", castle.folder().join("roots.pem"));
        command.env("INFISICAL_CLIENT_ID", &self.credentials.0);
        command.env("INFISICAL_CLIENT_SECRET", &self.credentials.1);
        Said::of(&command.output().unwrap())
    }

    /// Lets something go wrong.
    pub(crate) fn cause(&self, trouble: impl Into<Trouble>) {
        self.order(Some(trouble.into()));
    }

    /// How every machine is.
    pub(crate) fn machines(&self) -> Vec<String> {
        self.order(None).machines.into_values().collect()
    }

    /// Ends it, and says what was in it.
    pub(crate) fn stop(self) -> Inventory {
        let left = self.order(None);
        drop(self.orders);
        self.thread.join().unwrap();
        left
    }

    fn order(&self, trouble: Option<Trouble>) -> Inventory {
        let (answer, told) = mpsc::channel();
        self.orders.send((trouble, answer)).unwrap();
        told.recv().unwrap()
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
