//! Our machine configs against those of Talos' own generator, document by document, and judged by its validation.

use std::collections::BTreeSet;
use std::fs;

use castle_model::spec::{
    DiskEncryption, MachinesSpec, PlatformSpec, RegistrySpec, Role, SecretRef, Spec,
};
use castle_model::{Failure, Secret};
use castle_reality::Real;
use castle_talos::{Bundle, config, kubernetes_endpoint, machine_config};
use serde_json::Value;

use crate::setting::{ask, folder, secrets, write};

/// One version: the oracle, its contract, the version of Talos, that of Kubernetes.
const VERSIONS: [[&str; 4]; 3] = [
    ["talosoracle-1.13", "1.12", "1.12.11", "1.35.4"],
    ["talosoracle-1.13", "1.13", "1.13.9", "1.36.3"],
    ["talosoracle-1.14", "1.14", "1.14.1", "1.37.0"],
];

/// What we write on purpose otherwise than the generator: with which options (`*`: any), the kind and name of the
/// document, the place in it (empty: the document itself), and why. Each must be met somewhere in the grid.
const ON_PURPOSE: &[(&str, &str, &str, &str, &str)] = &[
    ("*", "HostnameConfig", "*", "/auto", "nodes have the names of the castle file"),
    ("*", "HostnameConfig", "*", "/hostname", "nodes have the names of the castle file"),
    ("*", "LinkConfig", "*", "", "addresses are static"),
    ("*", "ResolverConfig", "*", "/nameservers", "name servers are those of the castle file"),
    ("*", "TimeSyncConfig", "*", "", "time servers are those of the castle file"),
    ("*", "Layer2VIPConfig", "*", "", "the control planes share the VIP"),
    ("*", "UserVolumeConfig", "longhorn", "", "Longhorn has a disk of its own"),
    ("everything, node id, tpm", "VolumeConfig", "STATE", "", "disks are encrypted when asked for"),
    (
        "everything, node id, tpm",
        "VolumeConfig",
        "EPHEMERAL",
        "/encryption",
        "disks are encrypted when asked for",
    ),
    ("everything", "KernelModuleConfig", "*", "", "modules are those of the castle file"),
    ("everything", "", "", "/machine/kernel", "modules are those of the castle file"),
    ("everything", "", "", "/cluster/coreDNS", "CoreDNS may be somebody else's"),
    ("everything", "KubeCoreDNSConfig", "*", "/enabled", "CoreDNS may be somebody else's"),
    ("everything", "", "", "/cluster/secretboxEncryptionSecret", "encryption in etcd may be off"),
    ("everything", "KubeEtcdEncryptionConfig", "*", "", "encryption in etcd may be off"),
    ("everything", "RegistryAuthConfig", "*", "", "registries may ask who we are"),
    ("everything", "RegistryTLSConfig", "*", "", "registries may have an authority of their own"),
];

/// Documents that hold nothing but what they are: what is left of ours once the purposeful is taken out.
const BARE: usize = 2;

/// One set of options: its name, what it changes in the castle file, and what the oracle is told.
type Options = (&'static str, fn(&mut Spec), &'static [&'static str]);

const OPTIONS: &[Options] = &[
    ("plain", |_| {}, &["-install-disk", "/dev/sda"]),
    (
        "names",
        |spec| spec.machine.cert_sans = vec!["api.lan".to_owned(), "10.9.9.9".to_owned()],
        &["-install-disk", "/dev/sda", "-san", "api.lan", "-san", "10.9.9.9"],
    ),
    (
        "mirror",
        |spec| spec.machine.registries = vec![registry("docker.io", &["https://mirror.lan:5000"])],
        &["-install-disk", "/dev/sda", "-mirror", "docker.io=https://mirror.lan:5000"],
    ),
    ("machines", stand, &["-install-disk", "/dev/nvme0n1"]),
    ("everything", everything, &["-install-disk", "/dev/sda"]),
    (
        "node id",
        |spec| spec.machine.disk_encryption = Some(DiskEncryption::NodeId),
        &["-install-disk", "/dev/sda"],
    ),
    (
        "tpm",
        |spec| spec.machine.disk_encryption = Some(DiskEncryption::Tpm),
        &["-install-disk", "/dev/sda"],
    ),
];

fn registry(host: &str, mirrors: &[&str]) -> RegistrySpec {
    RegistrySpec {
        host: host.to_owned(),
        mirrors: mirrors.iter().map(|url| (*url).to_owned()).collect(),
        skip_fallback: false,
        ca: None,
        username: None,
        password: None,
    }
}

fn stand(spec: &mut Spec) {
    spec.platform = PlatformSpec::Machines(MachinesSpec {
        installer: "metal".to_owned(),
        install_disk: "/dev/nvme0n1".to_owned(),
        link: "enp1s0".to_owned(),
        extensions: Vec::new(),
    });
}

fn everything(spec: &mut Spec) {
    let machine = &mut spec.machine;
    machine.secretbox = false;
    machine.coredns = false;
    machine.kernel_modules = vec!["nvme_tcp".to_owned(), "vfio_pci".to_owned()];
    machine.disk_encryption = Some(DiskEncryption::Passphrase(SecretRef("DISK".to_owned())));
    let mut private = registry("ghcr.io", &[]);
    private.username = Some(SecretRef("USER".to_owned()));
    private.password = Some(SecretRef("PASSWORD".to_owned()));
    private.ca = Some(AUTHORITY.to_owned());
    machine.registries = vec![private];
}

/// A certificate that Talos can read.
const AUTHORITY: &str = include_str!("authority.pem");

/// Secrets of the castle file, invented.
#[expect(clippy::unnecessary_wraps, reason = "a source of secrets may fail")]
pub(crate) fn invented(key: &SecretRef) -> Result<Secret, Failure> {
    Ok(Secret::new(format!("value-of-{}", key.0)))
}

/// The example castle on a version of Talos, with some of its nodes.
pub(crate) fn castle(talos: &str, kubernetes: &str, control_planes: usize, workers: usize) -> Spec {
    let mut spec = castle_config::example();
    spec.talos = talos.parse().unwrap();
    spec.kubernetes = kubernetes.parse().unwrap();
    let of = |role, count| spec.nodes.iter().filter(move |it| it.role == role).take(count);
    spec.nodes =
        of(Role::ControlPlane, control_planes).chain(of(Role::Worker, workers)).cloned().collect();
    assert_eq!(spec.nodes.len(), control_planes + workers);
    spec
}

/// Takes out what is on purpose, and notes what was met.
fn strip(mut documents: Vec<Value>, option: &str, met: &mut BTreeSet<usize>) -> Vec<Value> {
    for (index, (options, kind, name, path, _)) in ON_PURPOSE.iter().enumerate() {
        if *options != "*" && !options.split(", ").any(|one| one == option) {
            continue;
        }
        let is_meant = |document: &Value| {
            document["kind"].as_str().unwrap_or_default() == *kind
                && (["", "*"].contains(name) || document["name"] == *name)
        };
        let before = documents.clone();
        if path.is_empty() {
            documents.retain(|document| !is_meant(document));
        } else {
            let (parent, key) = path.rsplit_once('/').unwrap();
            for document in documents.iter_mut().filter(|document| is_meant(document)) {
                if let Some(Value::Object(map)) = document.pointer_mut(parent) {
                    map.shift_remove(key);
                }
            }
        }
        if documents != before {
            met.insert(index);
        }
    }
    // A document of ours from which all was taken has no counterpart.
    documents.retain(|document| {
        let map = document.as_object().unwrap();
        let named = usize::from(map.contains_key("name"));
        let ours = ["ResolverConfig", "VolumeConfig"]
            .contains(&document["kind"].as_str().unwrap_or_default());
        !ours || map.len() > BARE + named
    });
    documents
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn ours_are_theirs_but_for_what_we_add_on_purpose() {
    let place = folder();
    let mut met = BTreeSet::new();
    let mut compared = 0;
    for [name, contract, talos, kubernetes] in VERSIONS {
        let Some(oracle) = Real::find(name) else { return };
        let file = secrets(&oracle, place.path(), "secrets.yaml").await;
        let bundle = Bundle::from_yaml(&Secret::new(fs::read_to_string(&file).unwrap())).unwrap();
        for (control_planes, workers) in [(1, 1), (3, 2)] {
            for (option, change, words) in OPTIONS {
                let mut spec = castle(talos, kubernetes, control_planes, workers);
                change(&mut spec);
                let platform = if *option == "machines" { "metal" } else { "nocloud" };
                let image = format!("factory.talos.dev/{platform}-installer/88d1:v{talos}");
                let out = place.path().display().to_string();
                let endpoint = kubernetes_endpoint(&spec);
                let castle = spec.name.to_string();
                let fixed = [
                    "gen",
                    "-contract",
                    contract,
                    "-kubernetes",
                    kubernetes,
                    "-install-image",
                    &image,
                ];
                let all: Vec<&str> = fixed
                    .into_iter()
                    .chain(words.iter().copied())
                    .chain([file.as_str(), &castle, &endpoint, &out])
                    .collect();
                drop(ask(&oracle, &all).await);
                for node in &spec.nodes {
                    let role = match node.role {
                        Role::ControlPlane => "controlplane.yaml",
                        Role::Worker => "worker.yaml",
                    };
                    let theirs = fs::read_to_string(place.path().join(role)).unwrap();
                    let theirs = strip(config::read(&theirs).unwrap(), option, &mut met);
                    let ours = machine_config(&spec, node, &bundle, "88d1", &invented).unwrap();
                    let ours = strip(config::read(ours.text.expose()).unwrap(), option, &mut met);
                    differ(&ours, &theirs, &format!("{contract} {option} {}", node.name));
                    compared += 1;
                }
            }
        }
    }
    assert_eq!(compared, VERSIONS.len() * OPTIONS.len() * 7);
    for (index, (_, kind, _, path, why)) in ON_PURPOSE.iter().enumerate() {
        assert!(met.contains(&index), "listed but never met: {kind}{path}: {why}");
    }
}

/// Stops at the first difference, and names the place without the values: they may be keys.
fn differ(ours: &[Value], theirs: &[Value], what: &str) {
    let kinds = |documents: &[Value]| -> Vec<String> {
        documents.iter().map(|it| format!("{} {}", it["kind"], it["name"])).collect()
    };
    assert_eq!(kinds(ours), kinds(theirs), "{what}");
    for (ours, theirs) in ours.iter().zip(theirs) {
        if let Some(path) = difference(ours, theirs, "") {
            panic!("{what}: {} differs at {path}", ours["kind"]);
        }
    }
}

fn difference(ours: &Value, theirs: &Value, path: &str) -> Option<String> {
    if let (Value::Object(one), Value::Object(other)) = (ours, theirs) {
        let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        return keys.into_iter().find_map(|key| match (one.get(key), other.get(key)) {
            (Some(one), Some(other)) => difference(one, other, &format!("{path}/{key}")),
            (ours, _) => Some(format!("{path}/{key}, ours: {}", ours.is_some())),
        });
    }
    (ours != theirs).then(|| path.to_owned())
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn every_config_of_ours_is_valid() {
    let place = folder();
    for [name, contract, talos, kubernetes] in VERSIONS {
        let Some(oracle) = Real::find(name) else { return };
        let file = secrets(&oracle, place.path(), "secrets.yaml").await;
        let bundle = Bundle::from_yaml(&Secret::new(fs::read_to_string(&file).unwrap())).unwrap();
        let mut files = Vec::new();
        for (option, change, _) in OPTIONS {
            let mut spec = castle(talos, kubernetes, 3, 2);
            change(&mut spec);
            for node in &spec.nodes {
                let ours = machine_config(&spec, node, &bundle, "88d1", &invented).unwrap();
                let file = format!("{contract} {option} {}.yaml", node.name);
                let file = write(place.path(), &file, ours.text.expose());
                files.push(file.display().to_string());
            }
        }
        for mode in ["cloud", "metal"] {
            let words: Vec<&str> =
                ["validate", mode].into_iter().chain(files.iter().map(String::as_str)).collect();
            let said = ask(&oracle, &words).await;
            assert_eq!(said.matches(" is valid for ").count(), files.len());
            assert!(!said.contains("warning:"), "{contract} {mode}: {said}");
        }
    }
}
