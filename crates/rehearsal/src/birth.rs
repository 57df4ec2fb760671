//! What a datacenter is built for: the endpoints and the invented secrets of one castle file.

use std::collections::BTreeMap;
use std::fmt;

use castle_model::spec::{Body, InfisicalSpec, ProxmoxSpec, Shape, Spec, TokenSpec};
use serde::{Deserialize, Serialize};

use crate::infisical::InfisicalBirth;
use crate::proxmox::ProxmoxBirth;
use crate::sources::factory::Schematic;
use crate::sources::{FACTORY_HOST, MANIFEST_HOSTS, SourcesBirth};
use crate::turn::{Dice, Server, VmFacts};

/// The token that every emulated Proxmox knows.
const TOKEN_ID: &str = "castle@pve!rehearsal";

/// What a machine that stands already is made of.
const STANDING_DISK_GIB: u64 = 40;
const STANDING_DATA_DISK_GIB: u64 = 100;
const STANDING_MEMORY_MIB: u64 = 8192;
const STANDING_CORES: u64 = 4;

/// All that a castle file asks of the world around it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Birth {
    /// Where all randomness comes from.
    pub seed: u64,
    /// Who listens where.
    pub endpoints: Vec<Endpoint>,
    /// Proxmox VE.
    pub proxmox: ProxmoxBirth,
    /// Infisical.
    pub infisical: InfisicalBirth,
    /// Image factory, manifests, Git.
    pub sources: SourcesBirth,
    /// The machines that stand already, switched on and without a config.
    pub machines: Vec<VmFacts>,
}

/// A server with a fixed address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Who answers.
    pub server: Server,
}

impl Birth {
    /// What a castle file asks for. Every secret is invented, from the seed.
    #[must_use]
    pub fn of(spec: &Spec, seed: u64) -> Self {
        let mut secrets: BTreeMap<String, String> = spec
            .required_secrets()
            .into_iter()
            .map(|key| (key.clone(), shaped(spec.shape(&key), invent(seed, &key))))
            .collect();
        let client_id = uuid(seed, "infisical client id");
        let client_secret = invent(seed, "infisical client secret");
        let reader = spec.secrets.infisical().and_then(|i| i.reader.as_ref()).map(|reader| {
            let own = (uuid(seed, "infisical reader id"), invent(seed, "infisical reader secret"));
            secrets.insert(reader.id.0.clone(), own.0.clone());
            secrets.insert(reader.secret.0.clone(), own.1.clone());
            own
        });
        let token_secret = uuid(seed, "proxmox token");
        let platform = spec.platform.proxmox();
        match platform.map(|platform| &platform.token) {
            Some(TokenSpec::Parts { id, secret }) => {
                secrets.insert(id.0.clone(), TOKEN_ID.to_owned());
                secrets.insert(secret.0.clone(), token_secret.clone());
            }
            Some(TokenSpec::Whole(token)) => {
                secrets.insert(token.0.clone(), format!("{TOKEN_ID}={token_secret}"));
            }
            None => {}
        }
        // Nobody can reach the Proxmox of a castle without one.
        let name_of = |part: &dyn Fn(&ProxmoxSpec) -> &String| {
            platform.map_or_else(|| "none".to_owned(), |platform| part(platform).clone())
        };
        // Nor the Infisical of one whose secrets come from elsewhere.
        let folder = |part: &dyn Fn(&InfisicalSpec) -> &String| {
            spec.secrets.infisical().map_or_else(|| "none".to_owned(), |i| part(i).clone())
        };
        let git_token = spec.gitops.token.as_ref().and_then(|key| secrets.get(&key.0)).cloned();
        Self {
            seed,
            endpoints: endpoints(spec),
            proxmox: ProxmoxBirth {
                node: name_of(&|p| &p.node),
                storage: name_of(&|p| &p.storage),
                image_storage: name_of(&|p| &p.image_storage),
                bridge: name_of(&|p| &p.bridge),
                token_id: TOKEN_ID.to_owned(),
                token_secret,
                factory: spec.downloads.installers().to_owned(),
            },
            infisical: InfisicalBirth {
                host: folder(&|i| &i.host),
                project: folder(&|i| &i.project),
                environment: folder(&|i| &i.environment),
                path: folder(&|i| &i.path),
                client_id,
                client_secret,
                reader,
                secrets,
            },
            sources: SourcesBirth {
                url: spec.gitops.url.clone(),
                branch: spec.gitops.branch.clone(),
                path: spec.gitops.path.clone(),
                token: git_token,
                manifests: manifests(spec).map(str::to_owned).collect(),
            },
            machines: machines(spec, seed),
        }
    }

    /// Whether another castle file asks for something that is not here.
    pub(crate) fn lacks(&self, other: &Self) -> bool {
        let mut together = self.clone();
        together.ensure(other);
        together != *self
    }

    /// Takes over what another castle file asks for; endpoints that were there stay.
    pub(crate) fn ensure(&mut self, other: &Self) {
        let mut endpoints = self.endpoints.clone();
        for endpoint in &other.endpoints {
            let place = |e: &Endpoint| e.host == endpoint.host && e.port == endpoint.port;
            endpoints.retain(|e| !place(e) || e == endpoint);
            if !endpoints.iter().any(place) {
                endpoints.push(endpoint.clone());
            }
        }
        *self = Self { seed: self.seed, endpoints, ..other.clone() };
    }
}

impl fmt::Debug for Birth {
    /// Without the secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Birth")
            .field("seed", &self.seed)
            .field("endpoints", &self.endpoints)
            .finish_non_exhaustive()
    }
}

/// The machines that stand already. Their numbers are below those that Proxmox gives to VMs.
fn machines(spec: &Spec, seed: u64) -> Vec<VmFacts> {
    let extensions = spec.platform.extensions();
    let id = Schematic::with(extensions.to_vec()).id();
    let standing = spec.nodes.iter().zip(1..).filter_map(|(node, number)| match &node.body {
        Body::Vm(_) => None,
        Body::Standing(standing) => Some((node, standing, number)),
    });
    standing
        .map(|(node, standing, number)| VmFacts {
            vmid: number,
            name: node.name.to_string(),
            uuid: standing
                .uuid
                .clone()
                .unwrap_or_else(|| uuid(seed, &format!("machine {}", node.name))),
            address: Some(node.address),
            disk: format!("disk of {}", node.name),
            image: Some(format!("talos-{}-{}.raw", spec.talos, &id[..16])),
            disk_gib: STANDING_DISK_GIB,
            data_disk_gib: standing.data_disk.then_some(STANDING_DATA_DISK_GIB),
            memory_mib: STANDING_MEMORY_MIB,
            cores: STANDING_CORES,
            extensions: extensions.to_vec(),
        })
        .collect()
}

/// Host and port of an `https` address; the port is 443 unless it says otherwise.
#[must_use]
pub fn host_and_port(url: &str) -> Option<(String, u16)> {
    let uri: http::Uri = url.parse().ok()?;
    Some((uri.host()?.to_owned(), uri.port_u16().unwrap_or(443)))
}

/// The https addresses of manifests that layers of one's own name.
fn manifests(spec: &Spec) -> impl Iterator<Item = &str> {
    let urls = spec.layers.iter().filter_map(|layer| Some(layer.url.as_ref()?.url.as_str()));
    urls.filter(|url| url.starts_with("https://"))
}

fn endpoints(spec: &Spec) -> Vec<Endpoint> {
    let mut endpoints: Vec<Endpoint> = Vec::new();
    let mut add = |place: Option<(String, u16)>, server| {
        let Some((host, port)) = place else { return };
        if !endpoints.iter().any(|e| e.host == host && e.port == port) {
            endpoints.push(Endpoint { host, port, server });
        }
    };
    if let Some(proxmox) = spec.platform.proxmox() {
        add(host_and_port(&proxmox.endpoint), Server::Proxmox);
    }
    if let Some(infisical) = spec.secrets.infisical() {
        add(host_and_port(&infisical.host), Server::Infisical);
    }
    add(Some((FACTORY_HOST.to_owned(), 443)), Server::Sources);
    for host in MANIFEST_HOSTS {
        add(Some((host.to_owned(), 443)), Server::Sources);
    }
    for url in manifests(spec) {
        add(host_and_port(url), Server::Sources);
    }
    // Mirrors and factories of somebody's own have what the public ones have.
    let own = [&spec.downloads.mirror, &spec.downloads.factory];
    for url in own.into_iter().flatten().filter(|url| url.starts_with("https://")) {
        add(host_and_port(url), Server::Sources);
    }
    if spec.gitops.enabled {
        add(host_and_port(&spec.gitops.url), Server::Sources);
    }
    endpoints
}

/// An invented value in the form that its key must have.
fn shaped(shape: Shape, value: String) -> String {
    match shape {
        Shape::Token | Shape::Free => value,
        Shape::Pem => format!("-----BEGIN PRIVATE KEY-----\n{value}\n-----END PRIVATE KEY-----\n"),
        Shape::AgeKey => {
            let digits = value.bytes().cycle().take(58).map(|b| char::from(b'A' + b % 26));
            format!("AGE-SECRET-KEY-1{}", digits.collect::<String>())
        }
        Shape::Yaml => format!("invented: {value}\n"),
    }
}

/// A generator for one purpose, so that adding a purpose never changes another's values.
pub(crate) fn dice_for(seed: u64, purpose: &str) -> Dice {
    let folded = purpose.bytes().fold(seed ^ 0x6361_7374_6c65_2121, |sum, b| {
        (sum ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut dice = Dice::new(folded);
    // The fold is weak at its end; one turn of the generator mixes it.
    Dice::new(dice.next_u64())
}

fn invent(seed: u64, key: &str) -> String {
    let mut bytes = [0; 20];
    dice_for(seed, key).fill(&mut bytes);
    hex::encode(bytes)
}

fn uuid(seed: u64, purpose: &str) -> String {
    let mut bytes = [0; 16];
    dice_for(seed, purpose).fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex::encode(bytes);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
