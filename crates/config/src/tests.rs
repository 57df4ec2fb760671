//! Whole castle files in, findings out.

use super::*;

fn sources(text: &str) -> Sources {
    Sources { file: "castle.hcl".to_owned(), text: text.as_bytes().to_vec(), ..Sources::default() }
}

fn shown(sources: &Sources) -> String {
    render(&read(sources).findings, sources, false, 120)
}

#[test]
fn the_examples_are_good() {
    let examples = [
        (EXAMPLE, 3, 2),
        (include_str!("../../../examples/one-and-one/castle.hcl"), 1, 1),
        (include_str!("../../../examples/one-and-two/castle.hcl"), 1, 2),
    ];
    for (text, control_planes, workers) in examples {
        let sources = sources(text);
        let spec = read(&sources).spec.unwrap_or_else(|| panic!("{}", shown(&sources)));
        assert_eq!(spec.control_planes().count(), control_planes);
        assert_eq!(spec.workers().count(), workers);
    }
}

#[test]
fn the_example_says_what_the_design_says() {
    let spec = example();
    let nodes: Vec<String> = spec
        .nodes
        .iter()
        .map(|n| format!("{} {} {} {:?}", n.name, n.address, n.vmid, n.data_disk_gib))
        .collect();
    assert_eq!(
        nodes,
        [
            "cp-01 192.168.1.211 421 None",
            "cp-02 192.168.1.212 422 None",
            "cp-03 192.168.1.213 423 None",
            "worker-01 192.168.1.214 431 Some(100)",
            "worker-02 192.168.1.215 432 Some(100)",
        ]
    );
    assert_eq!(
        spec.required_secrets(),
        [
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "PROXMOX_TOKEN_ID",
            "PROXMOX_TOKEN_SECRET"
        ]
    );
    assert_eq!(spec.network.pool.to_string(), "192.168.1.230-192.168.1.245");
    assert_eq!(spec.network.pods.to_string(), "10.244.0.0/16");
    assert_eq!((spec.storage.replicas, spec.gitops.branch.as_str()), (2, "main"));
    assert_eq!(spec.platform.extensions[0], "siderolabs/iscsi-tools");
    assert_eq!(spec.platform.trust, castle_model::spec::Trust::System);
}
