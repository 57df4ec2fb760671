//! What a person needs to look around in a served datacenter: files with keys, and a sheet that names them.

use std::fmt::Write as _;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use castle_config::Sources;
use castle_model::Spec;
use castle_model::shell::{with_environment, word};
use castle_rehearsal::host::Host;
use serde_json::json;

use super::place::{self, Place};
use crate::answer;
use crate::exit::{Exit, Problem};

/// The folder beside the datacenter's own files.
pub(crate) const FOLDER: &str = "served";
pub(super) const KUBECONFIG: &str = "kubeconfig";
pub(super) const TALOSCONFIG: &str = "talosconfig";
pub(crate) const CASTLE_FILE: &str = "served.hcl";
const AUTHORITY: &str = "ca.pem";
pub(crate) const ENVIRONMENT: &str = "environment";
const STATE: &str = "state";
const PROXMOX_HEADER: &str = "proxmox-header";
const PROXMOX_TOKEN: &str = "proxmox-token";
const INFISICAL_LOGIN: &str = "infisical-login.json";
const GIT_CREDENTIALS: &str = "git-credentials";

fn make_folder(path: &Path) -> Result<(), Problem> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|e| not_written(path, &e))
}

/// The folder that the files are in.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes it, for its owner alone.
    pub(super) fn make(datacenter: &Path) -> Result<Self, Problem> {
        let folder = Self(datacenter.join(FOLDER));
        make_folder(&folder.0)?;
        Ok(folder)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file that only its owner can read, in one piece: whoever reads it meanwhile gets the old one or the new one.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> Result<(), Problem> {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            make_folder(parent)?;
        }
        let fresh = path.with_extension("new");
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&fresh)?;
            file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
            file.write_all(content)?;
            std::fs::rename(&fresh, &path)
        };
        write().map_err(|e| not_written(&path, &e))
    }

    /// Writes everything but the ways into a cluster, which is not there yet.
    pub(super) fn write_all(
        &self,
        host: &Host,
        place: &Place,
        spec: &Spec,
        castle_file: &str,
        sources: &Sources,
    ) -> Result<(), Problem> {
        for (name, content) in &sources.files {
            self.write(name, content)?;
        }
        let head = format!(
            "# The castle `{}` at loopback addresses, for the datacenter that `castle rehearse serve` serves.\n# Written by it, anew each time.\n\n",
            spec.name
        );
        self.write(CASTLE_FILE, format!("{head}{castle_file}").as_bytes())?;
        self.write(AUTHORITY, host.root_pem().as_bytes())?;
        let state = self.path(STATE);
        let environment = format!(
            "SSL_CERT_FILE={}\nCASTLE_STATE={}\n",
            word(self.path(AUTHORITY).display()),
            word(state.display())
        );
        self.write(ENVIRONMENT, environment.as_bytes())?;
        let (id, secret) = host.credentials();
        let lines = format!(
            "INFISICAL_CLIENT_ID={}\nINFISICAL_CLIENT_SECRET={}\n",
            id.expose(),
            secret.expose()
        );
        self.write(place::CREDENTIALS, lines.as_bytes())?;
        let login = json!({"clientId": id.expose(), "clientSecret": secret.expose()});
        self.write(INFISICAL_LOGIN, login.to_string().as_bytes())?;
        let (token, secret) = host.proxmox_token();
        let header = format!("Authorization: PVEAPIToken={token}={}\n", secret.expose());
        self.write(PROXMOX_HEADER, header.as_bytes())?;
        self.write(PROXMOX_TOKEN, secret.expose().as_bytes())?;
        let tokens = host.invented_secrets();
        if let Some(token) = spec.gitops.token.as_ref().and_then(|key| tokens.get(&key.0)) {
            let (at, port) = (place.at, place::GIT);
            let line = format!("https://git:{}@{at}:{port}\n", token.expose());
            self.write(GIT_CREDENTIALS, line.as_bytes())?;
        }
        Ok(())
    }
}

fn not_written(path: &Path, error: &io::Error) -> Problem {
    Problem::new(Exit::Failed, format!("{} could not be written", path.display())).because(error)
}

/// What is told when the servers listen.
pub(super) struct Sheet<'a> {
    pub(super) folder: &'a Folder,
    pub(super) place: &'a Place,
    pub(super) spec: &'a Spec,
    pub(super) fingerprint: &'a str,
    pub(super) speed: u32,
}

impl Sheet<'_> {
    /// The servers: who, and where.
    fn servers(&self) -> Vec<(&'static str, String)> {
        let at = |port: u16| format!("https://{}:{port}", self.place.at);
        let mut servers = Vec::new();
        if self.spec.platform.proxmox().is_some() {
            servers.push(("Proxmox", at(place::PROXMOX)));
        }
        servers.push(("Infisical", at(place::INFISICAL)));
        servers.push(("downloads", at(place::DOWNLOADS)));
        if self.spec.gitops.enabled {
            servers.push(("Git", self.spec.gitops.url.clone()));
        }
        servers.push((
            "Kubernetes",
            format!("https://{}:{}", self.spec.network.vip, place::KUBERNETES),
        ));
        servers
    }

    /// One line for each tool.
    fn lines(&self) -> Vec<(&'static str, String)> {
        let path = |name: &str| self.folder.path(name).display().to_string();
        let file = |name: &str| word(path(name));
        let (at, authority) = (self.place.at, file(AUTHORITY));
        let environment = with_environment(path(ENVIRONMENT));
        let mut lines =
            vec![("castle", format!("{environment} castle -f {} up", file(CASTLE_FILE)))];
        if self.spec.platform.proxmox().is_some() {
            lines.push((
                "curl",
                format!(
                    "curl --cacert {authority} -H {} https://{at}:{}/api2/json/cluster/resources",
                    word(format!("@{}", path(PROXMOX_HEADER))),
                    place::PROXMOX
                ),
            ));
            // Rust writes a string as Python reads it.
            let program = format!(
                "from proxmoxer import ProxmoxAPI as P; print(P(\"{at}\", port={}, user=\"castle@pve\", token_name=\"rehearsal\", token_value=open({:?}).read(), verify_ssl={:?}).nodes.get())",
                place::PROXMOX,
                path(PROXMOX_TOKEN),
                path(AUTHORITY)
            );
            lines.push(("proxmoxer", format!("python3 -c {}", word(program))));
        }
        lines.push((
            "curl",
            format!(
                "curl --cacert {authority} --json {} https://{at}:{}/api/v1/auth/universal-auth/login",
                word(format!("@{}", path(INFISICAL_LOGIN))),
                place::INFISICAL
            ),
        ));
        if self.spec.gitops.enabled {
            lines.push((
                "git",
                format!(
                    "GIT_SSL_CAINFO={authority} git -c {} clone {}",
                    // Git has the helper run by a shell of its own.
                    word(format!("credential.helper=store --file={}", file(GIT_CREDENTIALS))),
                    self.spec.gitops.url
                ),
            ));
        }
        lines.push((
            "kubectl",
            format!("kubectl --kubeconfig {} get nodes,pods -A", file(KUBECONFIG)),
        ));
        let first = self.spec.nodes.first().map(|node| node.address.to_string());
        lines.push((
            "talosctl",
            format!(
                "talosctl --talosconfig {} -n {} version",
                file(TALOSCONFIG),
                first.unwrap_or_default()
            ),
        ));
        lines
    }

    /// The sheet for a person.
    pub(super) fn text(&self) -> String {
        let mut page = String::new();
        let speed = match self.speed {
            1 => "in real time".to_owned(),
            times => format!("{times} times faster than real time"),
        };
        writeln!(
            page,
            "The datacenter of the castle `{}` is served, {speed}. Ctrl-C ends it.\n",
            self.spec.name
        )
        .ok();
        for (name, place) in self.servers() {
            writeln!(page, "  {name:<12}{place}").ok();
        }
        for node in &self.spec.nodes {
            writeln!(page, "  {:<12}{}:{}", node.name.as_str(), node.address, place::TALOS).ok();
        }
        writeln!(page, "\nMachines listen once they are switched on, Kubernetes once it runs.")
            .ok();
        writeln!(page, "\nIn {}, for you alone to read:", self.folder.0.display()).ok();
        for (name, what) in [
            (CASTLE_FILE, "the castle file for a run from another terminal"),
            (ENVIRONMENT, "what its environment needs: the authority, a state root of its own"),
            (AUTHORITY, "the authority of the servers with fixed addresses"),
            (place::CREDENTIALS, "the machine identity at Infisical"),
            (INFISICAL_LOGIN, "the same as the body of a login"),
            (PROXMOX_HEADER, "the token of Proxmox as a header for curl"),
            (PROXMOX_TOKEN, "its secret alone"),
            (GIT_CREDENTIALS, "the token of the repository"),
            (KUBECONFIG, "written once the castle has its secrets"),
            (TALOSCONFIG, "the same"),
        ] {
            writeln!(page, "  {name:<22}{what}").ok();
        }
        if self.spec.platform.proxmox().is_some() {
            writeln!(page, "\nProxmox' certificate: SHA-256 {}", colons(self.fingerprint)).ok();
        }
        writeln!(page, "\nTo copy:").ok();
        for (_, line) in self.lines() {
            writeln!(page, "  {line}").ok();
        }
        page
    }

    /// The sheet for a program, in one line.
    pub(super) fn json(&self) -> String {
        let object = |pairs: Vec<(&'static str, String)>| -> serde_json::Value {
            pairs.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
        };
        let nodes: Vec<_> = self
            .spec
            .nodes
            .iter()
            .map(|node| json!({"name": node.name.as_str(), "address": node.address}))
            .collect();
        let sheet = json!({
            "folder": self.folder.0,
            "servers": object(self.servers()),
            "nodes": nodes,
            "fingerprint": self.fingerprint,
            "commands": object(self.lines()),
        });
        answer::line("sheet", &sheet)
    }
}

/// A fingerprint as Proxmox shows it.
fn colons(fingerprint: &str) -> String {
    let pairs: Vec<String> = fingerprint
        .as_bytes()
        .chunks(2)
        .map(|pair| String::from_utf8_lossy(pair).to_uppercase())
        .collect();
    pairs.join(":")
}
