//! The second platform, the token's two forms, and what every machine's Talos may be told.

use castle_model::spec::{Body, DiskEncryption, PatchTarget, PlatformSpec, Role, TokenSpec};

use super::{Sources, changed, codes, read, render, shown, sources};
use crate::{explain, to_json_lines};

const MACHINES: &str = include_str!("../../../../examples/machines/castle.hcl");
const SYSCTLS: &str = include_str!("../../../../examples/machines/patches/sysctls.yaml");
const ID: &str = "    token_id      = secret(\"PROXMOX_TOKEN_ID\")\n";
const SECRET: &str = "    token_secret  = secret(\"PROXMOX_TOKEN_SECRET\")\n";
const PATCH: &str = "file = \"patches/sysctls.yaml\"";

/// The example of standing machines with pieces replaced.
fn iron(changes: &[(&str, &str)]) -> Sources {
    let mut text = MACHINES.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "the example has no `{from}`");
        text = text.replacen(from, to, 1);
    }
    let mut sources = sources(&text);
    sources.files.insert("patches/sysctls.yaml".into(), SYSCTLS.into());
    sources
}

/// Replaces one piece and expects these codes; the one control plane of the example is warned of besides.
fn check_iron(cases: &[(&str, &str, &[&str])]) {
    for (from, to, expected) in cases {
        let sources = iron(&[(from, to)]);
        let mut found = codes(&sources);
        found.retain(|code| *code != "C0502");
        assert_eq!(found, *expected, "{from} => {to}\n{}", shown(&sources));
        assert!(expected.iter().all(|code| explain(code).is_some()));
    }
}

#[test]
fn machines_that_stand_already() {
    let spec = read(&iron(&[])).spec.unwrap_or_else(|| panic!("{}", shown(&iron(&[]))));
    let PlatformSpec::Machines(machines) = &spec.platform else { panic!("{spec:?}") };
    assert_eq!(
        (machines.installer.as_str(), machines.install_disk.as_str(), machines.link.as_str()),
        ("metal", "/dev/nvme0n1", "enp1s0")
    );
    let bodies: Vec<String> = spec
        .nodes
        .iter()
        .map(|node| match &node.body {
            Body::Standing(m) => {
                format!("{} {} {:?} {}", node.name, node.address, m.uuid, m.data_disk)
            }
            Body::Vm(_) => panic!("a VM"),
        })
        .collect();
    assert_eq!(
        bodies,
        [
            "cp-01 192.168.7.11 None false",
            "worker-01 192.168.7.21 Some(\"4c4c4544-0039-3010-8036-b7c04f4b4d31\") true",
            "worker-02 192.168.7.22 Some(\"4c4c4544-0039-3010-8036-b7c04f4b4d32\") true",
        ]
    );
    assert_eq!(spec.required_secrets(), Vec::<String>::new());
    assert_eq!(spec.storage.replicas, 2, "both workers have a disk for volumes");
    let patch = &spec.machine.patches[0];
    assert_eq!(
        (&patch.target, patch.origin.as_str()),
        (&PatchTarget::Role(Role::Worker), "patches/sysctls.yaml")
    );
    assert_eq!(patch.text, SYSCTLS);
    assert_eq!(spec.machine.cert_sans, ["iron.lan"]);
    assert_eq!(spec.machine.registries[0].mirrors, ["https://mirror.gcr.io"]);
    let bare =
        iron(&[("installer    = \"metal\"\n", ""), ("install_disk = \"/dev/nvme0n1\"\n", "")]);
    let PlatformSpec::Machines(machines) = read(&bare).spec.unwrap().platform else { panic!() };
    assert_eq!(
        (machines.installer.as_str(), machines.install_disk.as_str()),
        ("metal", "/dev/sda")
    );
}

#[test]
fn a_key_of_the_other_platform_is_named() {
    check_iron(&[
        ("link         =", "vmids = \"1-2\"\n link =", &["C0112"]),
        ("count    = 1", "count    = 1\n first_vmid = 421\n cores = 4", &["C0112", "C0112"]),
        ("data_disk = true", "data_disk = \"100GiB\"", &["C0201"]),
        ("/dev/nvme0n1", "nvme0n1", &["C0202"]),
        ("4c4c4544-0039-3010-8036-b7c04f4b4d31", "4c4c4544", &["C0202"]),
        ("count     = 2", "count     = 3", &["C0510"]),
        ("b7c04f4b4d32", "b7c04f4b4d31", &["C0202"]),
        (
            "first_ip = \"192.168.7.11\"",
            "first_ip = \"192.168.7.11\"\n uuids = [\"4C4C4544-0039-3010-8036-B7C04F4B4D31\"]",
            &["C0511"],
        ),
        ("platform \"machines\"", "platform \"maschines\"", &["C0108"]),
        ("\"siderolabs/iscsi-tools\", ", "", &["C0803"]),
    ]);
    let text = shown(&changed(&[("cores      = 4", "cores      = 4\n    uuids      = []")]));
    insta::assert_snapshot!(text, @r#"
    error[C0112]: `uuids` belongs to castles of platform "machines"
      --> castle.hcl:49:5
       |
    22 |   platform "proxmox" {
       |            --------- the platform of this castle
    ...
    49 |     uuids      = []
       |     ^^^^^ not in this castle
       |
       = why: castle makes the VMs itself, so it knows all that there is to know about them
       = hint: take `uuids` out

    castle.hcl: 1 error
    "#);
    let loopback = MACHINES.replace("192.168.7.", "127.0.7.");
    let sources = Sources { text: loopback.into_bytes(), ..iron(&[]) };
    assert_eq!(codes(&sources), ["C0413", "C0502"], "{}", shown(&sources));
}

#[test]
fn the_token_has_two_forms() {
    let whole = "    token = secret(\"PROXMOX_TOKEN\")\n";
    let spec = read(&changed(&[(ID, whole), (SECRET, "")])).spec.unwrap();
    let token = &spec.platform.proxmox().unwrap().token;
    assert_eq!(*token, TokenSpec::Whole(castle_model::spec::SecretRef("PROXMOX_TOKEN".into())));
    for (id, secret, expected) in [
        ("", "", &["C0103"][..]),
        ("", SECRET, &["C0103"]),
        (ID, "", &["C0103"]),
        (whole, SECRET, &["C0111"]),
        ("    token = \"root@pam!x=hunter2\"\n", "", &["C0302"]),
        ("    tokn = secret(\"A\")\n", "", &["C0102"]),
    ] {
        let sources = changed(&[(ID, id), (SECRET, secret)]);
        assert_eq!(codes(&sources), expected, "{}", shown(&sources));
    }
    insta::assert_snapshot!(shown(&changed(&[(ID, whole)])), @r#"
    error[C0111]: both `token` and `token_secret` are given
      --> castle.hcl:25:21
       |
    24 |     token = secret("PROXMOX_TOKEN")
       |             ----------------------- the whole token
    25 |     token_secret  = secret("PROXMOX_TOKEN_SECRET")
       |                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ a part of the token
       |
       = why: `token` is the whole of it, USER@REALM!ID=SECRET, and the file does not say which one counts
       = hint: keep `token`, or `token_id` and `token_secret`

    castle.hcl: 1 error
    "#);
}

#[test]
fn what_talos_is_told() {
    check_iron(&[
        (
            "cert_sans = [",
            "kernel_modules = [\"nvme_tcp\"]\n coredns = false\n secretbox = false\n cert_sans = [",
            &[],
        ),
        ("cert_sans = [", "kernel_modules = [\"iscsi_generic\"]\n cert_sans = [", &["C0901"]),
        ("cert_sans = [", "kernel_modules = [\"a b\"]\n cert_sans = [", &["C0202"]),
        ("cert_sans = [", "disk_encryption {\n method = \"tpm\"\n }\n cert_sans = [", &[]),
        ("cert_sans = [", "disk_encryption {\n method = \"luks\"\n }\n cert_sans = [", &["C0211"]),
        ("cert_sans = [", "disk_encryption {\n }\n cert_sans = [", &["C0103"]),
        (
            "cert_sans = [",
            "disk_encryption {\n method = \"passphrase\"\n }\n cert_sans = [",
            &["C0113"],
        ),
        (
            "cert_sans = [",
            "disk_encryption {\n method = \"tpm\"\n passphrase = secret(\"A\")\n }\n cert_sans = [",
            &["C0113"],
        ),
        (
            "cert_sans = [",
            "disk_encryption {\n method = \"passphrase\"\n passphrase = \"hunter2\"\n }\n cert_sans = [",
            &["C0302"],
        ),
        ("mirrors = [", "username = secret(\"A\")\n mirrors = [", &["C0113"]),
        ("mirrors = [", "username = secret(\"A\")\n password = secret(\"B\")\n mirrors = [", &[]),
        ("mirrors = [", "ca = \"no\"\n mirrors = [", &["C0202"]),
        ("https://mirror.gcr.io", "ftp://mirror.gcr.io", &["C0202"]),
        ("https://mirror.gcr.io", "http://mirror.lan:5000", &[]),
        ("registry \"docker.io\"", "registry \"https://docker.io\"", &["C0908"]),
        ("registry \"docker.io\"", "registry \"*\"", &[]),
        (
            "registry \"docker.io\" {",
            "registry \"docker.io\" {\n}\n registry \"docker.io\" {",
            &["C0105"],
        ),
    ]);
    let encrypted = iron(&[(
        "cert_sans = [",
        "disk_encryption {\n method = \"passphrase\"\n passphrase = secret(\"DISK\")\n }\n cert_sans = [",
    )]);
    let spec = read(&encrypted).spec.unwrap();
    assert_eq!(spec.required_secrets(), ["DISK"]);
    assert!(matches!(spec.machine.disk_encryption, Some(DiskEncryption::Passphrase(_))));
}

#[test]
fn patches_are_read_and_judged() {
    let text = |patch: &str| format!("text = <<EOT\n{patch}\nEOT");
    check_iron(&[
        ("for  = \"worker\"", "for  = \"worker-02\"", &[]),
        ("for  = \"worker\"", "for  = \"worker-03\"", &["C0907"]),
        ("for  = \"worker\"", "", &[]),
        (PATCH, "", &["C0113"]),
        (PATCH, "file = \"patches/sysctls.yaml\"\n text = \"a: 1\"", &["C0111"]),
        (PATCH, "file = \"patches/nothing.yaml\"", &["C0208"]),
        (PATCH, "file = \"../sysctls.yaml\"", &["C0209"]),
        (PATCH, &text("machine: {sysctls: {a: '1'}}"), &[]),
        (
            PATCH,
            &text("---\napiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\n$patch: delete"),
            &[],
        ),
        (PATCH, &text("# nothing"), &["C0902"]),
        (PATCH, &text("machine:\n  a: ["), &["C0902"]),
        (PATCH, &text("- op: add\n  path: /machine/a"), &["C0903"]),
        (PATCH, &text("machin:\n  a: 1"), &["C0903"]),
        (PATCH, &text("kind: LinkConfig"), &["C0903"]),
        (PATCH, &text("hello"), &["C0903"]),
        (PATCH, &text("$patch: delete"), &["C0904"]),
        (PATCH, &text("machine:\n  install:\n    extensions: [{image: x}]"), &["C0905"]),
        (PATCH, &text("machine: {kernel: {modules: [{name: iscsi_tcp}]}}"), &["C0901"]),
        (
            PATCH,
            &text("apiVersion: v1alpha1\nkind: KernelModuleConfig\nname: iscsi_tcp"),
            &["C0901"],
        ),
        (PATCH, &text(&"a".repeat(300 << 10)), &["C0906"]),
        (PATCH, &text(&format!("a: {}{}", "[".repeat(5000), "]".repeat(5000))), &["C0902"]),
    ]);
}

#[test]
fn a_patch_that_multiplies_itself_is_refused_at_once() {
    let nine = |n: usize| {
        let last = format!("*a{}", n - 1);
        format!("a{n}: &a{n} [{}]\n", [last.as_str(); 9].join(", "))
    };
    let first = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    let bomb: String = std::iter::once(first).chain((1..30).map(nine)).collect();
    check_iron(&[(PATCH, &format!("text = <<EOT\n{bomb}EOT"), &["C0902"])]);
}

#[test]
fn a_finding_in_a_patch_names_its_line() {
    let text = |patch: &str| format!("text = <<EOT\n{patch}\nEOT");
    let inline = iron(&[(PATCH, &text("machine: {sysctls: {a: '1'}}"))]);
    let spec = read(&inline).spec.unwrap();
    assert_eq!(spec.machine.patches[0].origin, "castle.hcl:59");
    insta::assert_snapshot!(shown(&iron(&[(PATCH, &text("machine:\n  sysctls: {}\n  install:\n    extensions:\n      - image: x"))])), @r#"
    warning[C0502]: one control plane: the cluster is away while that machine is
      --> castle.hcl:34:16
       |
    34 |     count    = 1
       |                ^ one
       |
       = why: etcd then has no second copy: when the disk is lost, the cluster is lost
       = hint: set count = 3 for a castle that others rely on

    error[C0905]: `machine.install.extensions` does nothing
      --> castle.hcl:63:5
       |
    63 |     extensions:
       |     ^^^^^^^^^^^ in this patch
       |
       = why: Talos has not looked at it since 1.10: extensions are part of the image
       = hint: name them in `extensions` of the block `platform`

    castle.hcl: 1 error, 1 warning
    "#);
    let mut broken = iron(&[]);
    broken.files.insert("patches/sysctls.yaml".into(), b"machine:\n  sysctls:\n - a: 1".to_vec());
    insta::assert_snapshot!(shown(&broken), @r#"
    warning[C0502]: one control plane: the cluster is away while that machine is
      --> castle.hcl:34:16
       |
    34 |     count    = 1
       |                ^ one
       |
       = why: etcd then has no second copy: when the disk is lost, the cluster is lost
       = hint: set count = 3 for a castle that others rely on

    error[C0902]: this patch is not YAML
      --> castle.hcl:59:14
       |
    59 |       file = "patches/sysctls.yaml"
       |              ^^^^^^^^^^^^^^^^^^^^^^ in this patch
       |
       = why: it stands in patches/sysctls.yaml:3
       = hint: mend the line; `castle check` reads it again

    castle.hcl: 1 error, 1 warning
    "#);
    broken.files.insert(
        "patches/sysctls.yaml".into(),
        b"a: 1\n---\n- op: remove\n  path: /machine/x\n".to_vec(),
    );
    insta::assert_snapshot!(shown(&broken), @r#"
    warning[C0502]: one control plane: the cluster is away while that machine is
      --> castle.hcl:34:16
       |
    34 |     count    = 1
       |                ^ one
       |
       = why: etcd then has no second copy: when the disk is lost, the cluster is lost
       = hint: set count = 3 for a castle that others rely on

    error[C0903]: there is no `a` in the main document
      --> castle.hcl:59:14
       |
    59 |       file = "patches/sysctls.yaml"
       |              ^^^^^^^^^^^^^^^^^^^^^^ in this patch
       |
       = why: a document without `kind` is the main one: it holds `version`, `debug`, `persist`, `machine` or `cluster`
       = why: it stands in patches/sysctls.yaml:1
       = hint: name the document by `apiVersion` and `kind`, or put it below `machine` or `cluster`

    error[C0903]: this patch is a list of operations (JSON 6902)
      --> castle.hcl:59:14
       |
    59 |       file = "patches/sysctls.yaml"
       |              ^^^^^^^^^^^^^^^^^^^^^^ in this patch
       |
       = why: Talos refuses such patches for configs of several documents, which all are since 1.12
       = why: it stands in patches/sysctls.yaml:3
       = hint: write the part of the config as it should be: machine: { sysctls: { … } }

    castle.hcl: 2 errors, 1 warning
    "#);
}

#[test]
fn what_the_lock_pins_is_part_of_the_spec() {
    let pin = format!("{{\"sha256\": \"{}\", \"size\": 7}}", "0a".repeat(32));
    let good = format!("{{\"format\": 1, \"images\": {{\"88d1/v1.13.9/a.qcow2\": {pin}}}}}");
    let spec = read(&Sources { lock: Some(good.clone().into()), ..changed(&[]) }).spec.unwrap();
    assert_eq!(spec.lock.images["88d1/v1.13.9/a.qcow2"].size, 7);
    let damaged = Sources { lock: Some(good[..40].into()), ..changed(&[]) };
    assert_eq!(codes(&damaged), ["C1001"]);
    insta::assert_snapshot!(shown(&damaged), @r#"
    error[C1001]: castle.lock can not be used
    --> castle.hcl
     = why: line 1: EOF while parsing a string
     = why: it pins what the castle is made from, so nothing is guessed over it
     = hint: take it from version control again; or remove it, and `castle lock` makes a new one

    castle.hcl: 1 error
    "#);
    for text in [&b"\xff"[..], b"", b"{\"format\": 99}"] {
        assert_eq!(codes(&Sources { lock: Some(text.to_vec()), ..changed(&[]) }), ["C1001"]);
    }
}

#[test]
fn no_secret_of_a_machine_is_ever_shown() {
    let disk = |value: &str| {
        format!(
            "disk_encryption {{\n method = \"passphrase\"\n passphrase = {value}\n }}\n cert_sans = ["
        )
    };
    let registry = |key: &str, value: &str| format!("{key} = {value}\n mirrors = [");
    for value in ["\"hunter2\"", "hunter2", "\"hunter2", "[\"hunter2\"]", "<<EOT\nhunter2\nEOT"] {
        for (from, to) in [
            ("cert_sans = [", disk(value)),
            ("mirrors = [", registry("password", value)),
            ("mirrors = [", registry("username", value)),
            ("mirrors = [", registry("passwrd", value)),
            ("registry \"docker.io\" {", format!("password = {value}\n registry \"docker.io\" {{")),
        ] {
            let sources = iron(&[(from, &to)]);
            let read = read(&sources);
            assert!(read.spec.is_none(), "{to}");
            for text in [render(&read.findings, &sources, true, 120), to_json_lines(&read.findings)]
            {
                assert!(!text.contains("hunter2"), "{to}\n{text}");
            }
        }
    }
    let mut patched = iron(&[]);
    let key = "machine: {}\n# ghp_hunter2hunter2hunter2\n";
    patched.files.insert("patches/sysctls.yaml".into(), key.into());
    assert_eq!(codes(&patched), ["C0502", "C0303"]);
    patched.files.insert("patches/sysctls.yaml".into(), b"machine: {token: hunter2, a: [".to_vec());
    assert_eq!(codes(&patched), ["C0502", "C0902"]);
    assert!(!shown(&patched).contains("hunter2"), "{}", shown(&patched));
}
