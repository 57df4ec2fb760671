//! Release manifests: small stand-ins under the addresses and with the names of the real ones.
//!
//! Each file keeps what a gate can see of the real release (namespaces, CRDs, workloads, webhooks and their
//! services) and leaves out the rest. `VERSION` in a file stands for the version in the address.

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
