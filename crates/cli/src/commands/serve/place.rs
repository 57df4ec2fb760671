//! Where a served castle stands: its addresses moved to loopback, one by one, and the castle file that says so.

use std::net::Ipv4Addr;

use castle_config::{Setting, Sources};
use castle_model::Spec;
use castle_model::address::Subnet;
use castle_model::spec::{Role, SourceSpec};
use castle_rehearsal::host::front::Moved;
use castle_rehearsal::sources::manifest::invented;
use sha2::{Digest, Sha256};

use crate::exit::Problem;
use crate::project;

/// The ports of the servers: Proxmox' own, and for the others such that need no privilege.
pub(super) const PROXMOX: u16 = 8006;
pub(super) const INFISICAL: u16 = 8443;
pub(super) const DOWNLOADS: u16 = 8444;
pub(super) const GIT: u16 = 8445;
/// Ports of machines.
pub(super) const TALOS: u16 = 50_000;
pub(super) const KUBERNETES: u16 = 6443;

/// The file beside the castle file that holds the machine identity.
pub(super) const CREDENTIALS: &str = "credentials";

/// The widest network whose machines keep the last part of their addresses.
const NARROW: u8 = 24;
/// The widest network whose machines keep the last two.
const WIDE: u8 = 16;

/// Where the servers are, and where the machines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The address of the servers.
    pub(super) at: Ipv4Addr,
    /// The network that the castle file gives the machines.
    from: Subnet,
    /// The first address of the one that they get.
    to: Ipv4Addr,
}

impl Place {
    /// The place of a castle whose servers are at an address: 127.0.0.N gives its machines 127.0.N.0/24.
    pub(super) fn new(at: Ipv4Addr, spec: &Spec) -> Result<Self, Problem> {
        if !at.is_loopback() {
            return Err(Problem::usage(format!("{at} is not a loopback address"))
                .hint("the rehearsal is served to this computer alone: give one of 127.0.0.0/8, such as --at 127.0.0.2"));
        }
        let from = spec.network.subnet;
        let [first, second, third, last] = at.octets();
        // What of the address says nothing about the machines must be 0: two places that differ in it alone would be one.
        let to = match from.prefix() {
            NARROW.. if third == 0 => Ipv4Addr::new(first, second, last, 0),
            NARROW.. => return Err(Self::no_place(at, Ipv4Addr::new(first, second, 0, last))),
            WIDE.. if second == 0 && third == 0 => Ipv4Addr::new(first, last, 0, 0),
            WIDE.. => return Err(Self::no_place(at, Ipv4Addr::new(first, 0, 0, last))),
            wider => {
                return Err(Problem::usage(format!(
                    "the network {from} is too wide to be served: a /{wider} does not fit into 127.0.0.0/8 beside others"
                ))
                .hint(format!("serve a castle whose subnet is a /{WIDE} or narrower")));
            }
        };
        Ok(Self { at, from, to })
    }

    /// Refuses an address whose machines would stand where those of another one do.
    fn no_place(at: Ipv4Addr, twin: Ipv4Addr) -> Problem {
        let why = format!("its machines would be at the very addresses of those of --at {twin}");
        Problem::usage(format!("{at} is no place of its own: {why}"))
            .hint(format!("give an address of the form 127.0.0.N, such as --at {twin}"))
    }

    /// Where an address of the castle file goes; one outside of its network stays.
    fn moved(&self, address: Ipv4Addr) -> Ipv4Addr {
        self.network().outside(address).unwrap_or(address)
    }

    /// The network of the machines, and where it goes: a castle that was raised in it before is served there too.
    pub(super) fn network(&self) -> Moved {
        Moved { from: self.from, to: self.to }
    }

    /// The castle file for whoever builds in the served datacenter, and what it says.
    pub(super) fn castle_file(
        &self,
        sources: &Sources,
        spec: &Spec,
        fingerprint: Option<&str>,
    ) -> Result<(String, Spec), Problem> {
        let text = String::from_utf8_lossy(&sources.text);
        let text = castle_config::edited(&text, &self.settings(spec, fingerprint))
            .ok_or_else(|| Problem::usage("the castle file has no castle in it"))?;
        let moved = Sources { text: text.clone().into_bytes(), lock: None, ..sources.clone() };
        let read = project::read(&moved);
        let spec = read.spec.ok_or_else(|| {
            let why = read.findings.first().map(|finding| finding.title.clone());
            let mut problem =
                Problem::usage("the castle file can not be moved to loopback addresses");
            problem.causes.extend(why);
            problem
        })?;
        Ok((text, spec))
    }

    /// All values of a castle file that say where something is.
    fn settings<'a>(&self, spec: &'a Spec, fingerprint: Option<&str>) -> Vec<Setting<'a>> {
        let quoted = |text: String| Some(format!("\"{text}\""));
        let server = |port: u16| quoted(format!("https://{}:{port}", self.at));
        let set = |block, label, key, value| Setting { block, label, key, value };
        let mut settings = Vec::new();
        for key in ["fingerprint", "ca"] {
            settings.push(set("secrets", Some("infisical"), key, None));
        }
        settings.push(set("secrets", Some("infisical"), "host", server(INFISICAL)));
        let credentials = quoted(CREDENTIALS.to_owned());
        settings.push(set("secrets", Some("infisical"), "credentials_file", credentials));
        if spec.platform.proxmox().is_some() {
            settings.push(set("platform", None, "endpoint", server(PROXMOX)));
            settings.push(set("platform", None, "ca", None));
            let pin = fingerprint.and_then(|pin| quoted(pin.to_owned()));
            settings.push(set("platform", None, "fingerprint", pin));
        }
        let network = &spec.network;
        let subnet =
            format!("{}/{}", self.moved(network.subnet.network()), network.subnet.prefix());
        settings.push(set("network", None, "subnet", quoted(subnet)));
        let (gateway, vip) = (self.moved(network.gateway), self.moved(network.vip));
        settings.push(set("network", None, "gateway", quoted(gateway.to_string())));
        settings.push(set("network", None, "vip", quoted(vip.to_string())));
        let (first, last) = (network.pool.first(), network.pool.last());
        let pool = format!("{}-{}", self.moved(first), self.moved(last));
        settings.push(set("network", None, "pool", quoted(pool)));
        for (role, label) in [(Role::ControlPlane, "control-plane"), (Role::Worker, "worker")] {
            if let Some(node) = spec.nodes.iter().find(|node| node.role == role) {
                let first = quoted(self.moved(node.address).to_string());
                settings.push(set("nodes", Some(label), "first_ip", first));
            }
        }
        if spec.gitops.enabled {
            let repository = spec.gitops.url.split_once("://").map_or("", |(_, rest)| rest);
            let path = repository.split_once('/').map_or("", |(_, path)| path);
            let url = quoted(format!("https://{}:{GIT}/{path}", self.at));
            settings.push(set("gitops", None, "url", url));
        }
        for layer in &spec.layers {
            let https = layer.url.as_ref().filter(|url| url.url.starts_with("https://"));
            if let Some(url) = https {
                let digest = hex::encode(Sha256::digest(invented(&url.url)));
                settings.push(set("layer", Some(layer.name.as_str()), "sha256", quoted(digest)));
            }
        }
        settings.push(set("downloads", None, "mirror", server(DOWNLOADS)));
        settings.push(set("downloads", None, "factory", server(DOWNLOADS)));
        settings
    }

    /// Every socket that the castle may listen at, with who it is.
    pub(super) fn sockets(&self, served: &Spec) -> Vec<(Ipv4Addr, u16, String)> {
        let mut sockets = Vec::new();
        if served.platform.proxmox().is_some() {
            sockets.push((self.at, PROXMOX, "Proxmox".to_owned()));
        }
        sockets.push((self.at, INFISICAL, "Infisical".to_owned()));
        sockets.push((self.at, DOWNLOADS, "the downloads".to_owned()));
        if served.gitops.enabled {
            sockets.push((self.at, GIT, "Git".to_owned()));
        }
        for node in &served.nodes {
            sockets.push((node.address, TALOS, format!("Talos on {}", node.name)));
            if node.role == Role::ControlPlane {
                sockets.push((node.address, KUBERNETES, format!("Kubernetes on {}", node.name)));
            }
        }
        sockets.push((served.network.vip, KUBERNETES, "Kubernetes".to_owned()));
        sockets
    }
}

/// Refuses a castle whose secrets castle would read from somewhere that is not served.
pub(super) fn refuse_other_sources(spec: &Spec) -> Result<(), Problem> {
    let infisical = |source: &SourceSpec| matches!(source, SourceSpec::Infisical(_));
    if spec.secrets.sources.iter().all(infisical) {
        return Ok(());
    }
    Err(Problem::usage("only a castle whose secrets all come from Infisical can be served")
        .hint("a run from another process would read the real secrets of the other sources; `castle rehearse up` invents them"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    fn placed(at: &str, subnet: &str) -> Result<(Ipv4Addr, Ipv4Addr), Problem> {
        let network = SUBNET.replace("192.168.1.0/24", subnet);
        let sources = Sources {
            text: castle_config::EXAMPLE.replace(SUBNET, &network).into_bytes(),
            ..Sources::default()
        };
        let spec = project::read(&sources).spec.unwrap();
        let place = Place::new(at.parse().unwrap(), &spec)?;
        Ok((place.to, place.moved(spec.network.vip)))
    }

    const SUBNET: &str = "\"192.168.1.0/24\"";

    #[test]
    fn no_two_places_are_one() {
        let (narrow, wide) = ("192.168.1.0/24", "192.168.0.0/16");
        let to = |at, subnet| placed(at, subnet).unwrap().0.to_string();
        assert_eq!(to("127.0.0.1", narrow), "127.0.1.0");
        assert_eq!(to("127.7.0.1", narrow), "127.7.1.0");
        assert_eq!(to("127.0.0.5", wide), "127.5.0.0");
        for (at, subnet, twin) in [
            ("127.0.1.1", narrow, "127.0.0.1"),
            ("127.7.40.2", narrow, "127.7.0.2"),
            ("127.0.1.5", wide, "127.0.0.5"),
            ("127.7.0.5", wide, "127.0.0.5"),
        ] {
            let problem = placed(at, subnet).unwrap_err();
            assert_eq!(problem.exit, Exit::Usage, "{at}");
            let hint = problem.hint.unwrap();
            assert!(hint.contains(&format!("127.0.0.N, such as --at {twin}")), "{hint}");
        }
    }
}
