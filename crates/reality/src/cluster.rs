//! A real Kubernetes without machines: etcd, the API server and what else a test wants, in the namespace of the test.

mod keys;

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use castle_kubernetes::{KubeAccess, Kubernetes, ObjectId, readyz};
use castle_model::Secret;
use serde_json::Value;
use tempfile::TempDir;

pub use keys::{Authority, Issued};

use crate::program::{Running, nap};
use crate::raw::Raw;
use crate::{Real, outside};

/// Where the API server listens; a cluster has its namespace for itself.
pub const SERVER: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// Its port.
pub const PORT: u16 = 6443;
/// How long a start may take on a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(3);
/// How often it is asked whether it is there.
const PAUSE: Duration = Duration::from_millis(50);

/// Whose requests the API server keeps a record of: those that change what webhooks judge here.
const AUDIT: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    verbs: [create, update, patch]
    resources: [{group: metallb.io}]
  - level: None
";

/// What a cluster has besides etcd and the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Deployments make pods, owners take what they own along, namespaces end.
    Controllers,
    /// Pods get nodes.
    Scheduler,
}

/// A running cluster. All of it ends when this is dropped.
pub struct Cluster {
    folder: TempDir,
    access: KubeAccess,
    server: Real,
    serving: Option<Running>,
    /// The others, which go on when the API server does not.
    others: Vec<Running>,
    kubectl: Option<Real>,
    authority: Authority,
}

impl Cluster {
    /// Starts one and waits until it serves; none if a component is missing, which is noted. Only inside of [`crate::alone`].
    ///
    /// # Panics
    /// If something of it does not start.
    pub async fn start(parts: &[Part]) -> Option<Self> {
        let (etcd, server) = (Real::find("etcd")?, Real::find("kube-apiserver")?);
        let mut programs = Vec::new();
        for part in parts {
            programs.push(match part {
                Part::Controllers => Real::find("kube-controller-manager")?,
                Part::Scheduler => Real::find("kube-scheduler")?,
            });
        }
        let folder = tempfile::tempdir().expect("a test can make a folder");
        let authority = Authority::new();
        let access = write_keys(folder.path(), &authority);
        let store = Running::start_into(with_etcd(&etcd, folder.path()), &log(&folder, "etcd"));
        let mut cluster = Self {
            access,
            serving: None,
            others: vec![store],
            kubectl: None,
            folder,
            server,
            authority,
        };
        cluster.serve().await;
        for (part, real) in parts.iter().zip(&programs) {
            let place = cluster.folder.path();
            let command = match part {
                Part::Controllers => with_controllers(real, place),
                Part::Scheduler => with_scheduler(real, place),
            };
            let log = log(&cluster.folder, &format!("{part:?}").to_lowercase());
            cluster.others.push(Running::start_into(command, &log));
        }
        if parts.contains(&Part::Controllers) {
            let account = ObjectId::namespaced("v1", "ServiceAccount", "default", "default");
            let client = cluster.client();
            cluster
                .until("no default service account", async || {
                    matches!(client.get(&account).await, Ok(Some(_)))
                })
                .await;
        }
        Some(cluster)
    }

    /// Who we are to it: a member of `system:masters`.
    #[must_use]
    pub fn access(&self) -> &KubeAccess {
        &self.access
    }

    /// The authority of all of its certificates.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// A new client of it, with a connection of its own.
    ///
    /// # Panics
    /// If our own certificates can not be used.
    #[must_use]
    pub fn client(&self) -> Kubernetes {
        Kubernetes::new(&outside(), &self.access).expect("our own certificates can be used")
    }

    /// A caller for plain requests.
    #[must_use]
    pub fn raw(&self) -> Raw {
        Raw::new(&outside(), &self.access)
    }

    /// The folder that goes with the cluster; `kubeconfig` and the logs are in it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The requests that the API server has kept a record of, each with its answer's code; oldest first.
    ///
    /// # Panics
    /// If the record is not as API servers write it.
    #[must_use]
    pub fn audited(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder().join("audit.log")).unwrap_or_default();
        let read = |line: &str| serde_json::from_str(line).expect("the record is JSON lines");
        text.lines().map(read).collect()
    }

    /// kubectl with access to the cluster, ready for its words; none if it is missing.
    pub fn kubectl(&mut self) -> Option<Command> {
        if self.kubectl.is_none() {
            self.kubectl = Some(Real::find("kubectl")?);
        }
        let mut command = self.kubectl.as_ref()?.program();
        command.arg("--kubeconfig").arg(self.folder().join("kubeconfig"));
        command.arg("--cache-dir").arg(self.folder().join("kubectl"));
        Some(command)
    }

    /// Starts the API server (again), and waits until it is ready.
    ///
    /// # Panics
    /// If it does not become so.
    pub async fn serve(&mut self) {
        self.begin_to_serve();
        let entry = self.access.entry(&outside()).expect("our own certificates can be used");
        self.until("the API server is not ready", async || readyz(&entry, SERVER).await.is_ok())
            .await;
    }

    /// Starts the API server (again), and waits for nothing.
    pub fn begin_to_serve(&mut self) {
        self.serving = None;
        let command = with_server(&self.server, self.folder.path());
        self.serving = Some(Running::start_into(command, &log(&self.folder, "kube-apiserver")));
    }

    /// Kills the API server: no goodbye to anybody.
    pub fn kill(&mut self) {
        self.serving = None;
    }

    /// Stops the API server in the middle of whatever it does, until [`Cluster::resume`].
    pub fn pause(&self) {
        self.serving.iter().for_each(Running::pause);
    }

    /// Lets a paused API server go on.
    pub fn resume(&self) {
        self.serving.iter().for_each(Running::resume);
    }

    async fn until(&mut self, otherwise: &str, asked: impl AsyncFn() -> bool) {
        let waiting = async {
            while !asked().await {
                let ended = self.serving.as_mut().is_some_and(|server| !server.goes_on())
                    || self.others.iter_mut().any(|other| !other.goes_on());
                if ended {
                    return false;
                }
                nap(PAUSE).await;
            }
            true
        };
        let came = tokio::time::timeout(PATIENCE, waiting).await;
        if came != Ok(true) {
            let said = ["etcd", "kube-apiserver", "controllers", "scheduler"].map(|name| {
                let text = fs::read_to_string(log(&self.folder, name)).unwrap_or_default();
                let lines: Vec<&str> = text.lines().rev().take(12).collect();
                format!("{name}:\n{}\n", lines.join("\n"))
            });
            panic!("{otherwise}, or something ended; the last lines first:\n{}", said.concat());
        }
    }
}

fn log(folder: &TempDir, name: &str) -> PathBuf {
    folder.path().join(format!("{name}.log"))
}

/// Writes the keys and kubeconfigs that the programs read from files.
fn write_keys(folder: &Path, authority: &Authority) -> KubeAccess {
    let write = |name: &str, text: &str| {
        fs::write(folder.join(name), text).expect("a test can write into its own folder");
    };
    let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
    let server = authority.server("kube-apiserver", &names, &[SERVER, Ipv4Addr::new(10, 96, 0, 1)]);
    let admin = authority.client("admin", "system:masters");
    write("audit.yaml", AUDIT);
    write("ca.crt", &authority.certificate);
    write("server.crt", &server.certificate);
    write("server.key", &server.key);
    let accounts = keys::key();
    write("accounts.key", &accounts.serialize_pem());
    write("accounts.pub", &accounts.public_key_pem());
    write("admin.crt", &admin.certificate);
    write("admin.key", &admin.key);
    let place = folder.display();
    write(
        "kubeconfig",
        &format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
             clusters: [{{name: test, cluster: {{server: 'https://{SERVER}:{PORT}', certificate-authority: '{place}/ca.crt'}}}}]\n\
             users: [{{name: admin, user: {{client-certificate: '{place}/admin.crt', client-key: '{place}/admin.key'}}}}]\n\
             contexts: [{{name: test, context: {{cluster: test, user: admin}}}}]\n"
        ),
    );
    KubeAccess {
        server: format!("https://{SERVER}:{PORT}"),
        authority: authority.certificate.clone(),
        certificate: admin.certificate,
        key: Secret::new(admin.key),
    }
}

fn with_etcd(etcd: &Real, folder: &Path) -> Command {
    let mut command = etcd.program();
    command.arg("--data-dir").arg(folder.join("etcd"));
    command.args(["--unsafe-no-fsync", "--log-level=warn"]);
    command.args(["--listen-client-urls=http://127.0.0.1:2379"]);
    command.args(["--advertise-client-urls=http://127.0.0.1:2379"]);
    command.args(["--listen-peer-urls=http://127.0.0.1:2380"]);
    command.args(["--initial-advertise-peer-urls=http://127.0.0.1:2380"]);
    command.args(["--initial-cluster=default=http://127.0.0.1:2380"]);
    command
}

fn with_server(server: &Real, folder: &Path) -> Command {
    let mut command = server.program();
    let file = |flag: &str, name: &str| format!("--{flag}={}", folder.join(name).display());
    command.args([
        "--etcd-servers=http://127.0.0.1:2379",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--secure-port=6443",
        "--endpoint-reconciler-type=none",
        "--authorization-mode=RBAC",
        // As Talos does: what is privileged is PodSecurity's business.
        "--allow-privileged=true",
        "--service-cluster-ip-range=10.96.0.0/12",
        "--service-account-issuer=https://kubernetes.default.svc",
        // Webhooks are found by their EndpointSlices: nobody here plays kube-proxy.
        "--enable-aggregator-routing=true",
    ]);
    command.args([
        file("tls-cert-file", "server.crt"),
        file("tls-private-key-file", "server.key"),
        file("client-ca-file", "ca.crt"),
        file("service-account-key-file", "accounts.pub"),
        file("service-account-signing-key-file", "accounts.key"),
        file("audit-policy-file", "audit.yaml"),
        file("audit-log-path", "audit.log"),
    ]);
    command
}

fn with_controllers(controllers: &Real, folder: &Path) -> Command {
    let mut command = controllers.program();
    let file = |flag: &str, name: &str| format!("--{flag}={}", folder.join(name).display());
    command.args([
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        "--secure-port=0",
        // The kubelets here are played, and renew nothing.
        "--node-monitor-grace-period=1h",
    ]);
    command.args([
        file("kubeconfig", "kubeconfig"),
        file("service-account-private-key-file", "accounts.key"),
        file("root-ca-file", "ca.crt"),
    ]);
    command
}

fn with_scheduler(scheduler: &Real, folder: &Path) -> Command {
    let mut command = scheduler.program();
    command.args(["--leader-elect=false", "--secure-port=0"]);
    command.arg("--kubeconfig").arg(folder.join("kubeconfig"));
    command
}
