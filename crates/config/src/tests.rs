//! Whole castle files in, findings out.

mod canary;
mod downloads;
mod hostile;
mod layer_settings;
mod platform;
mod secret_sources;
mod shown;

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
        (include_str!("../../../examples/sops/castle.hcl"), 1, 1),
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
        .map(|n| (n, n.vm().unwrap()))
        .map(|(n, vm)| format!("{} {} {} {:?}", n.name, n.address, vm.vmid, vm.data_disk_gib))
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
    assert_eq!(spec.platform.extensions()[0], "siderolabs/iscsi-tools");
    assert_eq!(spec.platform.proxmox().unwrap().trust, castle_model::spec::Trust::System);
}

#[test]
fn line_ends_of_windows_change_nothing() {
    let text = EXAMPLE.replace('\n', "\r\n");
    assert_eq!(read(&sources(&text)).spec, Some(example()));
}

/// The example with pieces replaced; each piece must be there.
fn changed(changes: &[(&str, &str)]) -> Sources {
    let mut text = EXAMPLE.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "the example has no `{from}`");
        text = text.replacen(from, to, 1);
    }
    sources(&text)
}

fn codes(sources: &Sources) -> Vec<&'static str> {
    let read = read(sources);
    let errors = read.findings.iter().any(|f| f.severity == Severity::Error);
    assert_eq!(read.spec.is_none(), errors, "a spec comes exactly when there is no error");
    read.findings.iter().map(|f| f.code).collect()
}

/// Replaces one piece of the example and expects these codes, in the order of their places.
fn check(cases: &[(&str, &str, &[&str])]) {
    for (from, to, expected) in cases {
        let sources = changed(&[(from, to)]);
        assert_eq!(codes(&sources), *expected, "{from} => {to}\n{}", shown(&sources));
        for code in *expected {
            assert!(explain(code).is_some(), "{code} has no meaning");
        }
    }
}

#[test]
fn the_text_itself() {
    for (text, expected) in [
        (&b""[..], "C0006"),
        (b"# nothing\n", "C0006"),
        (b"castle \"a\" {\n}\n\xff", "C0002"),
        (b"castle \"a\" {\0}\n", "C0003"),
        (b"castle \"a\" {\n", "C0005"),
    ] {
        let sources = Sources { text: text.to_vec(), ..sources("") };
        assert_eq!(codes(&sources), [expected], "{}", shown(&sources));
    }
    check(&[
        ("memory     = \"8GiB\"", "memory = 8GiB", &["C0005"]),
        (
            "castle \"blue\" {",
            "castle \"red\" {\n}\ncastle \"blue\" {",
            &["C0103", "C0103", "C0104", "C0104", "C0104", "C0104", "C0509", "C0007"],
        ),
        ("castle \"blue\" {", "network {\n}\nx = 1\ncastle \"blue\" {", &["C0101", "C0102"]),
    ]);
}

#[test]
fn the_grammar() {
    check(&[
        ("gateway     =", "gatway =", &["C0102"]),
        ("  network {", "  netwrok {", &["C0101"]),
        ("talos      = \"1.13.9\"", "", &["C0103"]),
        ("talos      = \"1.13.9\"", "talos = \"1.13.9\"\n  talos = \"1.13.9\"", &["C0106"]),
        (
            "  deadlines {",
            "  network {\n  }\n  deadlines {",
            &["C0103", "C0103", "C0103", "C0103", "C0105"],
        ),
        ("network {", "network \"lan\" {", &["C0107"]),
        ("castle \"blue\"", "castle", &["C0107"]),
        ("castle \"blue\"", "castle \"blue\" \"red\"", &["C0107"]),
        ("nameservers = [\"192.168.1.1\"]", "nameservers = []", &["C0202"]),
        ("vip         = \"192.168.1.210\"", "vip = \"${~ 1 ~}\"", &["C0205"]),
        ("platform \"proxmox\"", "platform \"vsphere\"", &["C0108"]),
        ("secrets \"infisical\"", "secrets \"vault\"", &["C0108"]),
        ("gitops \"flux\"", "gitops \"argo\"", &["C0108"]),
        ("nodes \"worker\"", "nodes \"workers\"", &["C0108"]),
        ("storage \"longhorn\" {", "storage \"longhorn\" {\n owner = \"flux\"", &["C0805"]),
        ("storage \"longhorn\" {", "storage \"longhorn\" {\n owner = \"argo\"", &["C0211"]),
        ("vars = {", "vars {", &["C0110"]),
        ("talos      = \"1.13.9\"", "talos = \"1.13.9\"\n network = 1", &["C0110"]),
        ("node          = \"pve\"", "node = \"pve\"\n vip = \"192.168.1.9\"", &["C0102"]),
        ("nodes \"control-plane\" {", "nodes \"worker\" {", &["C0104", "C0105"]),
    ]);
}

#[test]
fn values_and_functions() {
    check(&[
        ("count      = 3", "count = \"3\"", &["C0201"]),
        ("count      = 3", "count = 3.5", &["C0210"]),
        ("count      = 3", "count = 5000", &["C0210"]),
        ("count      = 3", "count = null", &["C0201"]),
        ("count      = 3", "count = 1 + 2", &[]),
        ("count      = 3", "count = true ? 3 : 1", &[]),
        ("count      = 3", "count = 1 / 0", &["C0206"]),
        ("count      = 3", "count = 9223372036854775807 + 1", &["C0206"]),
        ("count      = 3", "count = -(-3)", &[]),
        ("count      = 3", "count = !3", &["C0206"]),
        ("count      = 3", "count = 3 < 4 && 1 != 2 ? 3 : 2", &[]),
        ("count      = 3", "count = three", &["C0205"]),
        ("count      = 3", "count = var.three", &["C0205"]),
        ("count      = 3", "count = [for x in [1] : x]", &["C0205"]),
        ("count      = 3", "count = tonumber(env(\"N\", \"3\"))", &[]),
        ("count      = 3", "count = tonumber(\"three\")", &["C0204"]),
        ("vip         = \"192.168.1.210\"", "vip = cidrhots(\"192.168.1.0/24\", 1)", &["C0203"]),
        ("vip         = \"192.168.1.210\"", "vip = cidrhost(\"192.168.1.0/24\", 300)", &["C0204"]),
        ("vip         = \"192.168.1.210\"", "vip = cidrhost(\"192.168.1.0/24\")", &["C0204"]),
        ("vip         = \"192.168.1.210\"", "vip = \"192.168.1.${200 + 10}\"", &[]),
        ("vip         = \"192.168.1.210\"", "vip = \"fd00::1\"", &["C0202"]),
        ("vip         = \"192.168.1.210\"", "vip = env(\"VIP\")", &["C0207"]),
        ("project     = \"tazlab\"", "project = file(\"project.txt\")", &["C0208"]),
        ("project     = \"tazlab\"", "project = file(\"../project.txt\")", &["C0209"]),
        ("project     = \"tazlab\"", "project = file(\"/etc/hostname\")", &["C0209"]),
        ("project     = \"tazlab\"", "project = file(\"a\", \"b\")", &["C0204"]),
        ("project     = \"tazlab\"", "project = \"\"", &["C0202"]),
        ("memory     = \"8GiB\"", "memory = \"8GB\"", &["C0202"]),
        ("memory     = \"8GiB\"", "memory = 8192", &["C0201"]),
        ("disk       = \"40GiB\"", "disk = \"40500MiB\"", &["C0202"]),
        ("vm = \"5m\"", "vm = \"5 minutes\"", &["C0202"]),
        ("vm = \"5m\"", "vm = \"0s\"", &["C0202"]),
        ("vm = \"5m\"", "vm = \"30m1h\"", &["C0202"]),
        ("nameservers = [\"192.168.1.1\"]", "nameservers = \"192.168.1.1\"", &["C0201"]),
        ("nameservers = [\"192.168.1.1\"]", "nameservers = [\"192.168.1.1.1\"]", &["C0202"]),
        (
            "host        = \"https://eu.infisical.com\"",
            "host = \"http://eu.infisical.com\"",
            &["C0202"],
        ),
        ("path  = \"clusters/blue\"", "path = \"../blue\"", &["C0202"]),
        ("talos      = \"1.13.9\"", "talos = \"v1.13.9\"", &["C0202"]),
        ("bridge        = \"vmbr0\"", "bridge = \"vmbr0,tag=1\"", &["C0202"]),
        ("domain       = \"tazlab.net\"", "domain = [1]", &["C0201"]),
        ("node          = \"pve\"", "node = \"pve\"\n fingerprint = \"AB:CD\"", &["C0202"]),
        ("node          = \"pve\"", "node = \"pve\"\n extensions = [\"iscsi-tools\"]", &["C0202"]),
        (
            "node          = \"pve\"",
            "node = \"pve\"\n extensions = [\"siderolabs/iscsi-tools\"]",
            &["C0803"],
        ),
    ]);
}

#[test]
fn environment_and_files_come_from_the_snapshot() {
    let mut sources = changed(&[
        ("project     = \"tazlab\"", "project = file(\"./ids/../project.txt\")"),
        ("node          = \"pve\"", "node = env(\"PVE_NODE\")\n ca = file(\"ca.pem\")"),
    ]);
    sources.files.insert("project.txt".into(), b"other".to_vec());
    let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    sources.files.insert("ca.pem".into(), pem.into());
    sources.environment.insert("PVE_NODE".into(), "pve7".into());
    assert_eq!(wanted_files(&sources.text), ["ca.pem", "project.txt"]);
    let spec = read(&sources).spec.unwrap_or_else(|| panic!("{}", shown(&sources)));
    assert_eq!(
        (
            spec.secrets.infisical().unwrap().project.as_str(),
            spec.platform.proxmox().unwrap().node.as_str()
        ),
        ("other", "pve7")
    );
    assert_eq!(
        spec.platform.proxmox().unwrap().trust,
        castle_model::spec::Trust::Authority(pem.to_owned())
    );
    // What comes from outside is never repeated in a finding.
    sources.environment.insert("PVE_NODE".into(), "hunter two".into());
    sources.files.insert("ca.pem".into(), b"-----BEGIN PRIVATE KEY-----hunter".to_vec());
    sources.files.insert("project.txt".into(), vec![0xff]);
    assert_eq!(codes(&sources), ["C0208", "C0202", "C0202"]);
    assert!(!shown(&sources).contains("hunter"), "{}", shown(&sources));
}

#[test]
fn addresses() {
    check(&[
        ("vip         = \"192.168.1.210\"", "vip = \"192.168.2.210\"", &["C0402"]),
        ("gateway     = \"192.168.1.1\"", "gateway = \"10.0.0.1\"", &["C0402"]),
        ("first_ip   = \"192.168.1.214\"", "first_ip = \"192.168.1.255\"", &["C0402", "C0403"]),
        ("vip         = \"192.168.1.210\"", "vip = \"192.168.1.0\"", &["C0403"]),
        ("vip         = \"192.168.1.210\"", "vip = \"192.168.1.255\"", &["C0403"]),
        ("vip         = \"192.168.1.210\"", "vip = \"192.168.1.1\"", &["C0404"]),
        ("first_ip   = \"192.168.1.211\"", "first_ip = \"192.168.1.1\"", &["C0404"]),
        ("first_ip   = \"192.168.1.214\"", "first_ip = \"192.168.1.213\"", &["C0405"]),
        ("vip         = \"192.168.1.210\"", "vip = \"192.168.1.212\"", &["C0406"]),
        (
            "192.168.1.230-192.168.1.245",
            "192.168.1.205-192.168.1.245",
            &["C0407", "C0407", "C0407"],
        ),
        ("192.168.1.230-192.168.1.245", "192.168.1.1-192.168.1.9", &["C0407"]),
        ("192.168.1.230-192.168.1.245", "192.168.1.245-192.168.1.230", &["C0202"]),
        ("192.168.1.230-192.168.1.245", "192.168.2.230-192.168.2.245", &["C0402"]),
        ("ntp         =", "pods = \"192.168.0.0/16\"\n ntp =", &["C0408"]),
        ("ntp         =", "services = \"192.168.1.0/24\"\n ntp =", &["C0408"]),
        ("ntp         =", "services = \"10.244.0.0/16\"\n ntp =", &["C0408"]),
        ("ntp         =", "pods = \"10.244.0.0/22\"\n ntp =", &["C0411"]),
        ("ntp         =", "pods = \"10.244.0.0/28\"\n ntp =", &["C0411"]),
        ("ntp         =", "services = \"10.64.0.0/10\"\n ntp =", &["C0412"]),
        ("first_ip   = \"192.168.1.214\"", "first_ip = \"255.255.255.255\"", &["C0402", "C0409"]),
        ("subnet      = \"192.168.1.0/24\"", "subnet = \"192.168.1.208/30\"", &["C0410"]),
        ("subnet      = \"192.168.1.0/24\"", "subnet = \"192.168.1.1/24\"", &["C0202"]),
        (
            "subnet      = \"192.168.1.0/24\"",
            "subnet = \"0.0.0.0/0\"",
            &["C0408", "C0408", "C0410"],
        ),
    ]);
}

#[test]
fn machines() {
    check(&[
        ("count      = 3", "count = 2", &["C0501"]),
        ("count      = 3", "count = 0", &["C0501"]),
        ("count      = 3", "count = 1", &["C0502"]),
        ("first_vmid = 421", "first_vmid = 99", &["C0503"]),
        ("first_vmid = 421", "first_vmid = 420", &["C0504"]),
        ("first_vmid = 431", "first_vmid = 423", &["C0505"]),
        ("vmids         = \"421-432\"", "vmids = \"432-421\"", &["C0202"]),
        ("vmids         = \"421-432\"", "vmids = \"1-432\"", &["C0202"]),
        ("memory     = \"8GiB\"", "memory = \"1GiB\"", &["C0506"]),
        ("memory     = \"8GiB\"", "memory = \"2GiB\"", &[]),
        ("disk       = \"40GiB\"", "disk = \"5GiB\"", &["C0507"]),
        ("count      = 3", "count = 3\n name_prefix = \"worker\"", &["C0508"]),
        ("count      = 3", "count = 3\n name_prefix = \"Node\"", &["C0401"]),
        ("castle \"blue\"", "castle \"Blue\"", &["C0401"]),
        ("talos      = \"1.13.9\"", "talos = \"1.15.0\"", &["C0601"]),
        ("talos      = \"1.13.9\"", "talos = \"1.14.1\"", &[]),
        ("talos      = \"1.13.9\"", "talos = \"1.12.11\"", &["C0602"]),
        ("kubernetes = \"1.36.3\"", "kubernetes = \"1.30.1\"", &["C0602"]),
        ("kubernetes = \"1.36.3\"", "kubernetes = \"1.31.0\"", &[]),
        ("replicas = 2", "replicas = 3", &["C0801"]),
        ("data_disk  = \"100GiB\"", "", &["C0802"]),
        ("replicas = 2", "enabled = false", &[]),
        (
            "node          = \"pve\"",
            "node = \"pve\"\n ca = \"-----BEGIN CERTIFICATE-----\\n-----END CERTIFICATE-----\"\n fingerprint = \"ABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABAB\"",
            &["C0111"],
        ),
    ]);
}

#[test]
fn a_castle_needs_a_worker() {
    check(&[
        ("count      = 2", "count = 0", &["C0509"]),
        ("count      = 2", "count = 1", &["C0801"]),
    ]);
    let start = EXAMPLE.find("  nodes \"worker\"").unwrap();
    let end = EXAMPLE.find("  # The layers inside").unwrap();
    let without = sources(&format!("{}{}", &EXAMPLE[..start], &EXAMPLE[end..]));
    assert_eq!(codes(&without), ["C0509"], "{}", shown(&without));
    let help = read(&without).findings[0].help.clone().unwrap();
    assert!(help.contains("count = 1"), "{help}");
    // A block that could not be read is not called missing besides.
    check(&[("nodes \"worker\"", "node \"worker\"", &["C0101"])]);
}

#[test]
fn layers_and_deadlines() {
    let layer = |text: &str| {
        let mut sources = changed(&[("  deadlines {", &format!("{text}\n  deadlines {{"))]);
        sources.files.insert("m/a.yaml".into(), b"kind: A".to_vec());
        sources.files.insert("m/sub/b.yml".into(), b"kind: B".to_vec());
        sources.files.insert("m/README.md".into(), b"no manifest".to_vec());
        sources.files.insert("more/c.yaml".into(), b"kind: C".to_vec());
        sources
    };
    let one = |name: &str, after: &str| {
        format!("layer \"{name}\" {{\n after = [{after}]\n manifests = \"./m\"\n}}\n")
    };
    let good = layer(&(one("b", "\"a\", \"networking\"") + &one("a", "")));
    let spec = read(&good).spec.unwrap_or_else(|| panic!("{}", shown(&good)));
    let names: Vec<&str> = spec.layers.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["a", "b"], "each comes after those it names");
    let files: Vec<&str> = spec.layers[0].manifests.keys().map(String::as_str).collect();
    assert_eq!(files, ["m/a.yaml", "m/sub/b.yml"]);
    for (text, expected) in [
        (one("platform", ""), &["C0701"][..]),
        (one("a", "") + &one("a", ""), &["C0701"]),
        (one("A_b", ""), &["C0401"]),
        (one("a", "\"netwroking\""), &["C0702"]),
        (one("a", "\"a\""), &["C0703"]),
        (
            one("a", "\"b\"") + &one("b", "\"c\"") + &one("c", "\"a\"") + &one("d", "\"c\""),
            &["C0703"],
        ),
        (one("a", "").replace("./m", "./none"), &["C0704"]),
        (one("a", "").replace("./m", "../m"), &["C0209"]),
        (one("a", "\"engine\"") + "engine \"external-secrets\" {\n enabled = false\n}", &["C0705"]),
    ] {
        let sources = layer(&text);
        assert_eq!(codes(&sources), expected, "{}", shown(&sources));
    }
    check(&[
        ("vm = \"5m\"", "vms = \"5m\"", &["C0706"]),
        ("vm = \"5m\"", "platform = \"1h30m\"", &[]),
    ]);
    let own = layer(&one("extra", "")).text;
    let own = String::from_utf8(own).unwrap().replace("vm = \"5m\"", "extra = \"90s\"");
    let mut sources = sources(&own);
    sources.files.insert("m/a.yaml".into(), b"kind: A".to_vec());
    let spec = read(&sources).spec.unwrap();
    assert_eq!(spec.deadlines.0["extra"].as_secs(), 90);
    // Files that hold nothing are no manifests; one that does is enough.
    for (text, expected) in [
        ("", &["C0704"][..]),
        ("\n---\n# later\n--- # more\n...\n", &["C0704"]),
        ("\u{feff}%YAML 1.2\n---\r\n", &["C0704"]),
        ("---\nkind: A\n", &[]),
    ] {
        sources.files.insert("m/a.yaml".into(), text.into());
        sources.files.insert("m/b.yaml".into(), b"---\n".to_vec());
        assert_eq!(codes(&sources), expected, "{text:?}");
    }
    sources.files = [("m/README.md".to_owned(), b"kind: A".to_vec())].into();
    assert_eq!(codes(&sources), ["C0704"]);
    assert!(read(&sources).findings[0].place.is_some());
}

#[test]
fn secrets_in_the_file() {
    let literal = "token_secret  = secret(\"PROXMOX_TOKEN_SECRET\")";
    check(&[
        (literal, "token_secret = \"5f2d-hunter2\"", &["C0302"]),
        (literal, "token_secret = \"x-${env(\"S\", \"hunter2\")}\"", &["C0302"]),
        (literal, "token_secret = env(\"HUNTER2\")", &["C0302"]),
        (literal, "token_secret = 12345", &["C0302"]),
        (literal, "token_secret = hunter2verysecret8374", &["C0302"]),
        (literal, "token_secret = hunter2.very.secret", &["C0302"]),
        (literal, "token_secret = Hunter2(\"A\")", &["C0302"]),
        (literal, "token_secret = secret", &["C0205"]),
        (literal, "token_secret = \"${hunter2}\"", &["C0205"]),
        (literal, "token_secret = cidrhost(\"hunter2\", 1)", &["C0204"]),
        (literal, "token_secret = \"x-${secret(\"A\")}\"", &["C0301"]),
        (literal, "token_secret = true ? secret(\"A\") : secret(\"B\")", &["C0301"]),
        (literal, "token_secret = sekret(\"A\")", &["C0203"]),
        (literal, "token_secret = secret(\"A B\")", &["C0304"]),
        (literal, "token_secret = secret()", &["C0304"]),
        (literal, "token_secret = secret(env(\"A\"))", &["C0304"]),
        (literal, "token_secret = \"ghp_hunter2hunter2hunter2\"", &["C0303"]),
        ("project     = \"tazlab\"", "project = secret(\"PROJECT\")", &["C0301"]),
        ("project     = \"tazlab\"", "project = \"ghp_hunter2hunter2hunter2\"", &["C0303"]),
        ("project     = \"tazlab\"", "project = \"ghp\\u005fhunter2hunter2hunter2\"", &["C0303"]),
        (
            "domain       = \"tazlab.net\"",
            "domain = \"AGE-SECRET-KEY-1HUNTER2HUNTER2HUNTER2\"",
            &["C0303"],
        ),
        ("domain       = \"tazlab.net\"", "domain = secret(\"DOMAIN\")", &["C0301"]),
        ("# disks", "# github_pat_hunter2hunter2hunter2", &["C0303"]),
        ("# disks", "\n # -----BEGIN OPENSSH PRIVATE KEY-----\n # hunter2", &["C0303"]),
        ("https://github.com/", "https://me:hunter2@github.com/", &["C0303"]),
    ]);
}

#[test]
fn everything_is_found_in_one_pass() {
    let sources = changed(&[
        ("talos      = \"1.13.9\"", "talos = upper(\"1.13.9\")"),
        ("node          = \"pve\"", "node = env(\"NOPE\")"),
        ("bridge        = \"vmbr0\"", "bridge ="),
        ("vip         = \"192.168.1.210\"", "vip = \"192.168.1.300\""),
        ("count      = 3", "count = 4"),
        ("memory     = \"8GiB\"", "memory = 8GiB"),
        ("vm = \"5m\"", "vmm = \"5m\""),
    ]);
    let expected = ["C0203", "C0207", "C0005", "C0202", "C0501", "C0405", "C0005", "C0706"];
    let mut found = codes(&sources);
    let places: Vec<usize> =
        read(&sources).findings.iter().map(|f| f.place.map_or(0, |p| p.start)).collect();
    assert!(places.is_sorted());
    found.sort_unstable();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected, "{}", shown(&sources));
}
