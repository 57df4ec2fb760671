//! Configs of each generation, as castle writes them, and some that no machine may take.

use castle_talos::{machine_config, without_secrets};

use super::*;
use crate::testing::{bundle, spec};

/// The config of a node on a version of Talos, with one thing changed in its text.
fn read(talos: &str, node: usize, from: &str, to: &str) -> Result<Config, String> {
    let mut spec = spec(1, 1);
    spec.talos = talos.parse().unwrap();
    let node = &spec.nodes[node];
    let config = machine_config(&spec, node, bundle(), "88d1", &without_secrets).unwrap();
    let text = config.text.expose();
    assert!(text.contains(from), "{from}");
    let late = spec.talos >= "1.14.0".parse().unwrap();
    Config::read(&text.replacen(from, to, 1), late).map_err(|refusal| match refusal {
        Refusal::Status(Code::InvalidArgument, said) => said,
        other => format!("{other:?}"),
    })
}

#[test]
fn both_generations_say_the_same() {
    for node in [0, 1] {
        let old = read("1.13.9", node, "", "").unwrap();
        let mut new = read("1.14.1", node, "", "").unwrap();
        assert!(new.text != old.text);
        new.text = old.text.clone();
        assert!(new == old, "node {node}");
        assert_eq!(new.control_plane, node == 0);
        assert_eq!(new.vip.is_some(), node == 0);
        assert!(new.endpoint.is_some() && new.hostname.is_some() && new.address.is_some());
    }
}

#[test]
fn what_a_machine_refuses() {
    let again = "---\napiVersion: v1alpha1\nkind: KubeletConfig\nimage: x\n";
    let cases = [
        (
            read("1.14.1", 0, "machine:\n", "machine:\n  kubelet:\n    image: x\n"),
            "kubelet config is already set in v1alpha1 config (.machine.kubelet)",
        ),
        (
            read("1.14.1", 1, "---\n", "---\napiVersion: v1alpha1\nkind: KubeCoreDNSConfig\n---\n"),
            "only allowed on control plane machines: [KubeCoreDNSConfig]",
        ),
        (read("1.14.1", 0, "clusterID:", "id:"), "unknown keys found during decoding:\nid"),
        (
            read("1.14.1", 0, "kind: KubeClusterConfig", "kind: CastleConfig"),
            "\"CastleConfig\" \"v1alpha1\": not registered",
        ),
        (
            read("1.13.9", 0, "---\n", &format!("{again}---\n")),
            "\"KubeletConfig\" \"v1alpha1\": not registered",
        ),
    ];
    for (case, wanted) in cases {
        let said = case.unwrap_err();
        assert!(said.contains(wanted), "{said}");
    }
}
