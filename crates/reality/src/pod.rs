//! What a real program finds around it when a played kubelet starts it as a container: a root of its own, the volumes and
//! the environment that its manifest names, and who it is to the API server.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::{Authority, Cluster};
use crate::kubelet::Container;
use crate::program::nap;
use crate::raw::Raw;
use crate::{Real, bare};

/// How often Secrets are looked at that volumes show.
const GLANCE: Duration = Duration::from_millis(50);
/// Where a program finds who it is.
const IDENTITY: &str = "identity";
/// Where a pod finds its service account.
const ACCOUNT: &str = "var/run/secrets/kubernetes.io/serviceaccount";
/// Puts the folder of the program into the root, and goes there.
const ENTER: &str =
    "mount --bind \"$1\" \"$2/program\" && root=$2 && shift 2 && exec chroot \"$root\" \"$@\"";

/// The insides of the pods of a cluster.
pub struct Pods {
    folder: PathBuf,
    server: String,
    authority: Authority,
    raw: Raw,
    volumes: RefCell<Vec<Volume>>,
}

/// A Secret that a container sees as a folder.
#[derive(Clone)]
struct Volume {
    /// Where the API server has it.
    path: String,
    folder: PathBuf,
    shown: Value,
    /// What it will show, and when.
    next: Option<(Value, Instant)>,
}

impl Pods {
    /// The pods of this cluster.
    #[must_use]
    pub fn new(cluster: &Cluster) -> Self {
        Self {
            folder: cluster.folder().join("pods"),
            server: cluster.access().server.clone(),
            authority: cluster.authority().clone(),
            raw: cluster.raw(),
            volumes: RefCell::default(),
        }
    }

    /// A program as this container: its arguments and environment are the container's, and it is the pod's service account.
    ///
    /// # Panics
    /// If the container has something that can not be played.
    #[must_use]
    pub fn program(&self, real: &Real, container: &Container<'_>) -> Command {
        let pod = container.pod;
        let uid = pod.text("/metadata/uid").unwrap_or_default();
        let root = self.folder.join(uid).join(container.name());
        let namespace = pod.namespace().unwrap_or("default");
        let account = pod.text("/spec/serviceAccountName").unwrap_or("default");
        for place in ["program", "tmp", "etc", IDENTITY, ACCOUNT] {
            make(&root.join(place));
        }
        write(&root, "etc/hosts", "127.0.0.1 localhost\n");
        write(&root, &format!("{ACCOUNT}/namespace"), namespace);
        write(&root, &format!("{ACCOUNT}/ca.crt"), &self.authority.certificate);
        self.write_identity(&root, namespace, account);
        self.mount(&root, namespace, container);
        let environment = environment(container);
        let mut command = bare(Path::new("unshare"));
        command.args(["--mount", "sh", "-c", ENTER, "sh"]).arg(real.folder()).arg(&root);
        command.arg(format!("/program/{}", real.name()));
        command.args(container.arguments().into_iter().map(|text| expand(text, &environment)));
        command.env("KUBECONFIG", format!("/{IDENTITY}/kubeconfig"));
        command.envs(environment);
        command
    }

    /// A certificate in place of the account's token: the API server takes both for the same account.
    fn write_identity(&self, root: &Path, namespace: &str, account: &str) {
        let name = format!("system:serviceaccount:{namespace}:{account}");
        let issued = self.authority.client(&name, "system:serviceaccounts");
        write(root, "identity/ca.crt", &self.authority.certificate);
        write(root, "identity/tls.crt", &issued.certificate);
        write(root, "identity/tls.key", &issued.key);
        let server = &self.server;
        write(
            root,
            "identity/kubeconfig",
            &format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: pod\n\
                 clusters: [{{name: pod, cluster: {{server: '{server}', certificate-authority: ca.crt}}}}]\n\
                 users: [{{name: pod, user: {{client-certificate: tls.crt, client-key: tls.key}}}}]\n\
                 contexts: [{{name: pod, context: {{cluster: pod, user: pod, namespace: {namespace}}}}}]\n"
            ),
        );
    }

    fn mount(&self, root: &Path, namespace: &str, container: &Container<'_>) {
        let volumes = container.pod.entries("/spec/volumes");
        let mounts = container.spec["volumeMounts"].as_array();
        for mount in mounts.into_iter().flatten() {
            let path = mount["mountPath"].as_str().unwrap_or_default();
            let folder = root.join(path.trim_start_matches('/'));
            make(&folder);
            let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]);
            let secret = volume.and_then(|volume| volume.pointer("/secret/secretName"));
            if let Some(name) = secret.and_then(Value::as_str) {
                let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
                let volume = Volume { path, folder, shown: Value::Null, next: None };
                self.volumes.borrow_mut().push(volume);
            }
        }
    }

    /// Shows Secrets in their volumes, each so long after it changed: kubelets look at them now and then.
    pub async fn refresh(&self, lag: impl Fn() -> Duration) -> Infallible {
        loop {
            let volumes = self.volumes.borrow().clone();
            for volume in volumes {
                let Ok(answer) = self.raw.get(&volume.path).await else { continue };
                let data = answer.body["data"].clone();
                let mut volumes = self.volumes.borrow_mut();
                let known = volumes.iter_mut().find(|known| known.folder == volume.folder);
                if let Some(known) = known {
                    known.follow(data, &lag);
                }
            }
            nap(GLANCE).await;
        }
    }

    /// Forgets the volumes of pods that are gone.
    pub fn forget(&self) {
        self.volumes.borrow_mut().clear();
    }
}

impl Volume {
    fn follow(&mut self, data: Value, lag: impl Fn() -> Duration) {
        if data.is_null() || data == self.shown {
            return;
        }
        let now = Instant::now();
        let due = match self.next.take() {
            Some((next, due)) if next == data => due,
            _ => now + lag(),
        };
        if due > now {
            self.next = Some((data, due));
            return;
        }
        for (name, value) in data.as_object().into_iter().flatten() {
            let bytes = STANDARD.decode(value.as_str().unwrap_or_default());
            let bytes = bytes.expect("the API server writes base64");
            fs::write(self.folder.join(name), bytes).expect("a test can write into its own folder");
        }
        self.shown = data;
    }
}

/// The environment of a container.
fn environment(container: &Container<'_>) -> BTreeMap<String, String> {
    let mut environment = BTreeMap::new();
    for entry in container.spec["env"].as_array().into_iter().flatten() {
        let name = entry["name"].as_str().unwrap_or_default().to_owned();
        let value = match entry.pointer("/valueFrom/fieldRef/fieldPath").and_then(Value::as_str) {
            Some(path) => field(container, path),
            None if entry.get("valueFrom").is_some() => panic!("can not be played: {entry}"),
            None => expand(entry["value"].as_str().unwrap_or_default(), &environment),
        };
        environment.insert(name, value);
    }
    environment
}

fn field(container: &Container<'_>, path: &str) -> String {
    if path == "status.podIP" {
        return container.address.to_string();
    }
    let pointer = format!("/{}", path.replace('.', "/"));
    container.pod.text(&pointer).unwrap_or_else(|| panic!("no {path}")).to_owned()
}

/// Puts variables in, as kubelets do: `$(NAME)`.
fn expand(text: &str, environment: &BTreeMap<String, String>) -> String {
    environment
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("$({name})"), value))
}

fn make(folder: &Path) {
    fs::create_dir_all(folder).expect("a test can make folders in its own");
}

fn write(root: &Path, name: &str, text: &str) {
    fs::write(root.join(name), text).expect("a test can write into its own folder");
}
