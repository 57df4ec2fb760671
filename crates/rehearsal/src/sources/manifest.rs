//! Release manifests: small stand-ins under the addresses and with the names of the real ones.
//!
//! Each file keeps what a gate can see of the real release (namespaces, CRDs, workloads, webhooks and their
//! services) and leaves out the rest. `VERSION` in a file stands for the version in the address.

use sha2::{Digest, Sha256};

/// A manifest: its host, the parts of its path around the version, its text.
type Manifest = (&'static str, &'static str, &'static str, &'static str);

const MANIFESTS: [Manifest; 4] = [
    (
        "github.com",
        "/external-secrets/external-secrets/releases/download/v",
        "/external-secrets.yaml",
        include_str!("external-secrets.yaml"),
    ),
    (
        "raw.githubusercontent.com",
        "/metallb/metallb/v",
        "/config/manifests/metallb-native.yaml",
        include_str!("metallb.yaml"),
    ),
    (
        "raw.githubusercontent.com",
        "/longhorn/longhorn/v",
        "/deploy/longhorn.yaml",
        include_str!("longhorn.yaml"),
    ),
    ("github.com", "/fluxcd/flux2/releases/download/v", "/install.yaml", include_str!("flux.yaml")),
];

/// The manifest at an address, of whatever version is asked for.
#[must_use]
pub fn find(host: &str, path: &str) -> Option<String> {
    MANIFESTS.iter().find_map(|(at, before, after, text)| {
        let version = path.strip_prefix(before)?.strip_suffix(after)?;
        let numbers = version.split('.').count() == 3
            && version.split('.').all(|part| part.parse::<u16>().is_ok());
        (*at == host && numbers).then(|| text.replace("VERSION", version))
    })
}

/// The manifest at an address that only a castle file knows: one object that tells whose place it takes.
#[must_use]
pub fn invented(url: &str) -> String {
    let name = &hex::encode(Sha256::digest(url))[..12];
    let shown = serde_json::Value::from(url);
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: stand-in-{name}\n  namespace: default\ndata:\n  url: {shown}\n"
    )
}

/// Host and path of an https address.
pub(super) fn place(url: &str) -> String {
    let rest = url.strip_prefix("https://").unwrap_or(url);
    let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
    format!("{}/{path}", server.split(':').next().unwrap_or_default())
}
