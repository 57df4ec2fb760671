//! What the generated documents hold, for each generation, role and option.

use std::collections::BTreeSet;

use castle_model::spec::{
    DiskEncryption, MachinesSpec, PatchSpec, PatchTarget, PlatformSpec, RegistrySpec, Role,
};

use super::*;
use crate::testing::{FixedClock, TestEntropy, spec};

fn bundle() -> Bundle {
    Bundle::generate(&TestEntropy::new(7), &FixedClock).unwrap()
}

/// Secrets that are made of their key.
#[expect(clippy::unnecessary_wraps, reason = "it stands for a source that may fail")]
fn secrets(key: &SecretRef) -> Result<Secret, Failure> {
    Ok(Secret::new(format!("value of {}", key.0)))
}

fn config_of(spec: &Spec, node: usize) -> (Vec<Value>, Secret) {
    let bundle = bundle();
    let config = machine_config(spec, &spec.nodes[node], &bundle, "88d1", &secrets).unwrap();
    let again = machine_config(spec, &spec.nodes[node], &bundle, "88d1", &secrets).unwrap();
    assert_eq!(config, again, "the same input gives the same config");
    assert_eq!(config.warnings, [""; 0]);
    (read(config.text.expose()).unwrap(), config.text)
}

fn on(talos: &str) -> Spec {
    let mut spec = spec();
    spec.talos = talos.parse().unwrap();
    spec
}

fn kinds(documents: &[Value]) -> Vec<&str> {
    documents.iter().filter_map(|document| document["kind"].as_str()).collect()
}

fn of_kind<'a>(documents: &'a [Value], kind: &str) -> Vec<&'a Value> {
    documents.iter().filter(|document| document["kind"] == kind).collect()
}

#[test]
fn a_control_plane_holds_the_vip_and_every_authority() {
    let (documents, _) = config_of(&spec(), 0);
    assert_eq!(
        kinds(&documents),
        ["HostnameConfig", "LinkConfig", "ResolverConfig", "TimeSyncConfig", "Layer2VIPConfig"]
    );
    let main = &documents[0];
    assert_eq!(main["machine"]["type"], "controlplane");
    assert_eq!(main["cluster"]["controlPlane"]["endpoint"], "https://192.168.1.210:6443");
    for path in ["/machine/ca/key", "/cluster/ca/key", "/cluster/etcd/ca/key"] {
        assert!(!main.pointer(path).unwrap().as_str().unwrap().is_empty(), "{path}");
    }
    insta::assert_snapshot!(yaml_serde::to_string(&documents[1..]).unwrap(), @r#"
    - apiVersion: v1alpha1
      kind: HostnameConfig
      hostname: cp-01
      auto: off
    - apiVersion: v1alpha1
      kind: LinkConfig
      name: eth0
      addresses:
      - address: 192.168.1.211/24
      routes:
      - gateway: 192.168.1.1
    - apiVersion: v1alpha1
      kind: ResolverConfig
      nameservers:
      - address: 192.168.1.1
    - apiVersion: v1alpha1
      kind: TimeSyncConfig
      ntp:
        servers:
        - time.cloudflare.com
    - apiVersion: v1alpha1
      kind: Layer2VIPConfig
      name: 192.168.1.210
      link: eth0
    "#);
}

#[test]
fn a_worker_is_given_no_key_to_sign_with() {
    for talos in ["1.12.11", "1.13.9", "1.14.1"] {
        let (documents, text) = config_of(&on(talos), 1);
        assert_eq!(kinds(&documents).last(), Some(&"UserVolumeConfig"));
        assert!(!kinds(&documents).contains(&"Layer2VIPConfig"));
        let bundle = bundle();
        for authority in [&bundle.os, &bundle.kubernetes, &bundle.etcd, &bundle.aggregator] {
            assert!(!text.expose().contains(&STANDARD.encode(authority.key.expose())));
            let line = authority.key.expose().lines().nth(1).unwrap();
            assert!(!text.expose().contains(line), "{talos}");
        }
        assert!(!text.expose().contains(bundle.secretbox.expose()));
        assert_eq!(documents[0]["machine"]["ca"]["key"], "");
        assert!(documents[0]["cluster"].get("apiServer").is_none());
    }
}

#[test]
fn from_1_14_on_there_are_many_documents_and_none_twice() {
    let (control_plane, _) = config_of(&on("1.14.1"), 0);
    let (worker, _) = config_of(&on("1.14.1"), 1);
    // 28 and 14 of Talos' generator, one that installs, and ours.
    assert_eq!((control_plane.len(), worker.len()), (28 + 1 + 3, 14 + 1 + 3));
    let names: BTreeSet<String> =
        control_plane.iter().map(|it| format!("{} {}", it["kind"], it["name"])).collect();
    assert_eq!(names.len(), control_plane.len());
    insta::assert_snapshot!(
        yaml_serde::to_string(&of_kind(&control_plane, "ResolverConfig")).unwrap(),
        @r"
    - apiVersion: v1alpha1
      kind: ResolverConfig
      hostDNS:
        enabled: true
        forwardKubeDNSToHost: true
      nameservers:
      - address: 192.168.1.1
    "
    );
}

#[test]
fn an_unknown_config_format_is_refused() {
    for talos in ["1.11.9", "1.15.0", "2.13.0"] {
        let spec = on(talos);
        let failure = machine_config(&spec, &spec.nodes[0], &bundle(), "x", &secrets).unwrap_err();
        assert_eq!(failure.class, Class::Invalid, "{talos}");
    }
}

#[test]
fn machines_that_stand_already_have_their_own_installer_disk_and_link() {
    for talos in ["1.13.9", "1.14.1"] {
        let mut spec = on(talos);
        spec.platform = PlatformSpec::Machines(MachinesSpec {
            installer: "metal".to_owned(),
            install_disk: "/dev/nvme0n1".to_owned(),
            link: "enp1s0".to_owned(),
            extensions: Vec::new(),
        });
        let (documents, text) = config_of(&spec, 0);
        let image = format!("factory.talos.dev/metal-installer/88d1:v{talos}");
        assert!(text.expose().contains(&image) && text.expose().contains("/dev/nvme0n1"));
        assert_eq!(of_kind(&documents, "LinkConfig")[0]["name"], "enp1s0");
        assert_eq!(of_kind(&documents, "Layer2VIPConfig")[0]["link"], "enp1s0");
    }
}

/// A castle with every option.
fn rich(talos: &str) -> Spec {
    let mut spec = on(talos);
    spec.machine.cert_sans = vec!["api.lan".to_owned()];
    spec.machine.secretbox = false;
    spec.machine.coredns = false;
    spec.machine.disk_encryption = Some(DiskEncryption::Passphrase(SecretRef("DISK".to_owned())));
    spec.machine.kernel_modules = vec!["nvme_tcp".to_owned()];
    let registry = |host: &str, mirrors: &[&str], ca: Option<&str>| RegistrySpec {
        host: host.to_owned(),
        mirrors: mirrors.iter().map(|url| (*url).to_owned()).collect(),
        skip_fallback: host == "docker.io",
        ca: ca.map(str::to_owned),
        username: (host == "ghcr.io").then(|| SecretRef("USER".to_owned())),
        password: (host == "ghcr.io").then(|| SecretRef("PASSWORD".to_owned())),
    };
    spec.machine.registries = vec![
        registry("docker.io", &["https://mirror.lan:5000/v2"], Some("CA")),
        registry("quay.io", &["https://mirror.lan:5000"], Some("CA")),
        registry("ghcr.io", &[], None),
    ];
    spec
}

#[test]
fn options_become_documents_of_each_generation() {
    for talos in ["1.13.9", "1.14.1"] {
        let (documents, text) = config_of(&rich(talos), 0);
        let (worker, _) = config_of(&rich(talos), 1);
        assert!(!text.expose().contains(bundle().secretbox.expose()));
        let volumes = of_kind(&documents, "VolumeConfig");
        assert_eq!(volumes.len(), 2);
        for volume in volumes.into_iter().chain(of_kind(&worker, "UserVolumeConfig")) {
            let phrase = volume.pointer("/encryption/keys/0/static/passphrase");
            assert_eq!(phrase.unwrap(), "value of DISK");
        }
        assert_eq!(of_kind(&documents, "RegistryMirrorConfig").len(), 2);
        let tls = of_kind(&documents, "RegistryTLSConfig");
        assert_eq!((tls.len(), &tls[0]["name"]), (1, &json!("mirror.lan:5000")));
        let auth = of_kind(&documents, "RegistryAuthConfig");
        assert_eq!((auth.len(), &auth[0]["password"]), (1, &json!("value of PASSWORD")));
        assert_eq!(documents[0]["machine"]["certSANs"], json!(["api.lan"]));
    }
    let (old, _) = config_of(&rich("1.13.9"), 0);
    assert_eq!(old[0]["cluster"]["apiServer"]["certSANs"], json!(["api.lan"]));
    assert_eq!(old[0]["cluster"]["coreDNS"], json!({ "disabled": true }));
    assert_eq!(old[0]["machine"]["kernel"]["modules"], json!([{ "name": "nvme_tcp" }]));
    let (new, _) = config_of(&rich("1.14.1"), 0);
    assert_eq!(of_kind(&new, "KubeAPIServerConfig")[0]["certExtraSANs"], json!(["api.lan"]));
    assert_eq!(of_kind(&new, "KubeCoreDNSConfig")[0]["enabled"], false);
    assert_eq!(of_kind(&new, "KernelModuleConfig")[0]["name"], "nvme_tcp");
    let open =
        of_kind(&new, "KubeEtcdEncryptionConfig")[0].pointer("/config/resources/0/providers");
    assert_eq!(open.unwrap(), &json!([{ "identity": {} }]));
}

#[test]
fn a_secret_that_is_not_there_stops_the_config() {
    let spec = rich("1.13.9");
    let failure =
        machine_config(&spec, &spec.nodes[0], &bundle(), "x", &without_secrets).unwrap_err();
    assert!(failure.what.contains("DISK"), "{failure}");
}

fn patched(patches: &[(PatchTarget, &str)], node: usize) -> Result<MachineConfig, Failure> {
    let mut spec = spec();
    let patch = |(target, text): &(PatchTarget, &str)| PatchSpec {
        target: target.clone(),
        origin: "castle.hcl:40".to_owned(),
        text: (*text).to_owned(),
    };
    spec.machine.patches = patches.iter().map(patch).collect();
    machine_config(&spec, &spec.nodes[node], &bundle(), "x", &secrets)
}

#[test]
fn patches_are_applied_in_their_order_where_they_belong() {
    let one = "machine: {sysctls: {vm.swappiness: '1'}}";
    let two = "machine: {sysctls: {vm.swappiness: '2'}}";
    let worker = PatchTarget::Role(Role::Worker);
    let this = PatchTarget::Node("worker-01".parse().unwrap());
    let sysctl = |node: usize, patches: &[(PatchTarget, &str)]| {
        let config = patched(patches, node).unwrap();
        read(config.text.expose()).unwrap()[0]["machine"]["sysctls"].clone()
    };
    let both = [(PatchTarget::All, one), (worker.clone(), two)];
    assert_eq!(sysctl(0, &both), json!({ "vm.swappiness": "1" }));
    assert_eq!(sysctl(1, &both), json!({ "vm.swappiness": "2" }));
    assert_eq!(sysctl(0, &[(this.clone(), one)]), Value::Null);
    assert_eq!(sysctl(1, &[(this, two), (worker, one)]), json!({ "vm.swappiness": "1" }));
}

#[test]
fn a_patch_without_effect_or_with_another_is_told_and_a_wrong_one_is_refused() {
    let idle = patched(&[(PatchTarget::All, "machine: {type: controlplane}")], 0).unwrap();
    assert_eq!(idle.warnings, ["the patch castle.hcl:40 changes nothing on cp-01"]);
    let volume = "{apiVersion: v1alpha1, kind: UserVolumeConfig, name: longhorn, \
        provisioning: {minSize: 5GiB}}";
    let losing = patched(&[(PatchTarget::All, volume)], 1).unwrap();
    assert_eq!(
        losing.warnings,
        ["the patch castle.hcl:40 does not repeat `provisioning.diskSelector.match` of \
          UserVolumeConfig longhorn, so it is lost"]
    );
    let failure = patched(&[(PatchTarget::All, "machine: [1]")], 0).unwrap_err();
    insta::assert_snapshot!(
        format!("{failure}\nhint: {}", failure.hint.as_deref().unwrap()),
        @r"
    apply the patch castle.hcl:40 to the machine config of cp-01: in the main document, `machine` is a mapping in the config and a list in the patch
    hint: give the value the same form as in the config: see `castle machineconfig`
    "
    );
}
