//! The settings of the layers above the platform: read, refused with their reasons, and the patches of their objects.

use castle_model::spec::{GitCredentials, LayerOwner, Version};

use super::{Sources, changed, check, codes, read, shown, sources};

const SHA: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
const REPLICAS: &str = "    replicas = 2\n";
const STORAGE: &str = "storage \"longhorn\" {\n    replicas = 2\n  }";

/// The example with these blocks in place of `storage`.
fn with(blocks: &str) -> Sources {
    let mut sources = changed(&[(STORAGE, blocks)]);
    sources.files.insert("patches/speaker.yaml".into(), b"spec: {template: {}}\n".to_vec());
    sources.files.insert("metrics/a.yaml".into(), b"kind: ConfigMap\n".to_vec());
    sources
}

/// These blocks in place of `storage`, and the codes that come of them.
fn check_with(cases: &[(&str, &[&str])]) {
    for (blocks, expected) in cases {
        let sources = with(blocks);
        assert_eq!(codes(&sources), *expected, "{blocks}\n{}", shown(&sources));
    }
}

#[test]
fn every_setting_arrives_in_the_spec() {
    let sources = with(
        r#"engine "external-secrets" {
    version  = "1.2.0"
    replicas = 2
    resources {
      cpu          = "50m"
      memory       = "64Mi"
      memory_limit = "1Gi"
    }
    patch {
      kind = "Deployment"
      text = "spec: {replicas: 3}"
    }
  }
  networking "metallb" {
    control_planes = false
    patch {
      kind = "DaemonSet"
      name = "speaker"
      file = "patches/speaker.yaml"
    }
  }
  storage "longhorn" {
    data_path         = "/var/mnt/volumes/"
    over_provisioning = 200
  }
  layer "metrics" {
    url    = "https://example.com/v1/install.yaml"
    sha256 = "2CF24DBA5FB0A30E26E83B2AC5B9E29E1B161E5C1FA7425E73043362938B9824"
  }"#,
    );
    let text = String::from_utf8(sources.text.clone()).unwrap();
    let text = text.replace(
        "path  = \"clusters/blue\"",
        "path = \"clusters/blue\"\n credentials = \"direct\"\n milestones = [\"apps-static\", \"apps\"]",
    );
    let sources = Sources { text: text.into_bytes(), ..sources };
    let spec = read(&sources).spec.unwrap_or_else(|| panic!("{}", shown(&sources)));
    assert_eq!(spec.engine.version, "1.2.0".parse::<Version>().ok());
    assert_eq!(spec.engine.replicas, Some(2));
    let resources = &spec.engine.resources;
    assert_eq!(
        [&resources.cpu, &resources.memory, &resources.memory_limit].map(Option::as_deref),
        [Some("50m"), Some("64Mi"), Some("1Gi")]
    );
    let patch = &spec.engine.patches[0];
    assert_eq!((patch.kind.as_str(), patch.name.as_deref()), ("Deployment", None));
    assert_eq!(patch.text, "spec: {replicas: 3}");
    assert!(patch.origin.starts_with("castle.hcl:"), "{}", patch.origin);
    assert!(!spec.networking.control_planes);
    let patch = &spec.networking.patches[0];
    assert_eq!(
        (patch.name.as_deref(), patch.origin.as_str()),
        (Some("speaker"), "patches/speaker.yaml")
    );
    assert_eq!(spec.storage.data_path.as_deref(), Some("/var/mnt/volumes"));
    assert_eq!((spec.storage.over_provisioning, spec.storage.replicas), (Some(200), 2));
    assert_eq!(spec.gitops.credentials, GitCredentials::Direct);
    assert_eq!(spec.gitops.milestones, ["apps-static", "apps"]);
    let url = spec.layers[0].url.as_ref().unwrap();
    assert_eq!(
        (url.url.as_str(), url.sha256.as_str()),
        ("https://example.com/v1/install.yaml", SHA)
    );
}

#[test]
fn a_layer_is_left_to_flux() {
    let spec = read(&with("networking \"metallb\" {\n owner = \"flux\"\n }")).spec.unwrap();
    assert_eq!(spec.networking.owner, LayerOwner::Flux);
    check_with(&[
        ("networking \"metallb\" {\n owner = \"flux\"\n control_planes = true\n }", &["C0805"]),
        (
            "engine \"external-secrets\" {\n owner = \"flux\"\n resources { cpu = \"1\" }\n patch {\n kind = \"A\"\n text = \"a: 1\"\n }\n }",
            &["C0805", "C0805"],
        ),
        // What is off has no owner that matters.
        (
            "networking \"metallb\" {\n enabled = false\n owner = \"flux\"\n control_planes = true\n }",
            &[],
        ),
    ]);
    check(&[("url   = \"https", "owner = \"flux\"\n url   = \"https", &["C0804"])]);
    let off = changed(&[
        (REPLICAS, "    owner = \"flux\"\n"),
        ("url   = ", "enabled = false\n url   = "),
    ]);
    insta::assert_snapshot!(shown(&off), @r#"
    error[C0804]: `storage` is left to Flux, which this castle does not have
      --> castle.hcl:66:13
       |
    66 |     owner = "flux"
       |             ^^^^^^ nobody would install it
       |
       = hint: add gitops "flux" { … }, or leave `owner` out

    castle.hcl: 1 error
    "#);
    let none = String::from_utf8(changed(&[(REPLICAS, "    owner = \"flux\"\n")]).text).unwrap();
    let (before, rest) = none.split_once("  gitops \"flux\" {").unwrap();
    let (_, after) = rest.split_once("  deadlines {").unwrap();
    assert_eq!(codes(&sources(&format!("{before}  deadlines {{{after}"))), ["C0804"]);
}

#[test]
fn the_token_comes_through_the_engine_where_it_can() {
    let credentials = |sources: &Sources| read(sources).spec.unwrap().gitops.credentials;
    let token = "    token = secret(\"GITHUB_TOKEN\")\n";
    assert_eq!(credentials(&changed(&[])), GitCredentials::Engine);
    assert_eq!(
        credentials(&changed(&[(token, "")])),
        GitCredentials::Direct,
        "no token, nothing to fetch"
    );
    for engine in ["enabled = false", "owner = \"flux\""] {
        let block = format!("engine \"external-secrets\" {{\n {engine}\n }}");
        assert_eq!(credentials(&with(&block)), GitCredentials::Direct, "{engine}");
        let asked =
            changed(&[(STORAGE, &block), (token, &format!("{token} credentials = \"engine\"\n"))]);
        assert_eq!(codes(&asked), ["C0806"]);
    }
    let sops = include_str!("../../../../examples/sops/castle.hcl");
    assert_eq!(credentials(&sources(sops)), GitCredentials::Direct);
    check(&[
        (token, "    credentials = \"direct\"\n", &["C0113"]),
        (token, "    token = secret(\"A\")\n credentials = \"vault\"\n", &["C0211"]),
    ]);
    let asked = sops.replace("path  = ", "credentials = \"engine\"\n    path  = ");
    insta::assert_snapshot!(shown(&sources(&asked)), @r#"
    warning[C0502]: one control plane: the cluster is away while that machine is
      --> castle.hcl:47:18
       |
    47 |     count      = 1
       |                  ^ one
       |
       = why: etcd then has no second copy: when the disk is lost, the cluster is lost
       = hint: set count = 3 for a castle that others rely on

    error[C0806]: the token can not come through External Secrets here
      --> castle.hcl:67:19
       |
    67 |     credentials = "engine"
       |                   ^^^^^^^^ the cluster can not read it
       |
       = why: External Secrets reads from Infisical, which is not a source of this castle
       = hint: set credentials = "direct": castle then places the token itself

    castle.hcl: 1 error, 1 warning
    "#);
}

#[test]
fn values_that_kubernetes_or_talos_would_not_take() {
    let engine = |inner: &str| format!("engine \"external-secrets\" {{\n {inner}\n }}");
    let storage = |inner: &str| format!("storage \"longhorn\" {{\n {inner}\n }}");
    for (block, expected) in [
        (engine("resources { cpu = \"0.5\" }"), &[][..]),
        (engine("resources { cpu = \"0\" }"), &["C0202"]),
        (engine("resources { cpu = \"64Mi\" }"), &["C0202"]),
        (engine("resources { memory = \"128m\" }"), &["C0202"]),
        (engine("resources { memory = \"128MB\" }"), &["C0202"]),
        (engine("resources { memory_limit = \"128\" }"), &["C0202"]),
        (engine("resources = {}"), &["C0110"]),
        (engine("replicas = 0"), &["C0210"]),
        (engine("version = \"v1.3.2\""), &["C0202"]),
        (storage("data_path = \"/mnt/longhorn\""), &["C0202"]),
        (storage("data_path = \"/var/../etc\""), &["C0202"]),
        (storage("data_path = \"/var/\""), &["C0202"]),
        (storage("data_path = \"/var/lib/longhorn\""), &["C0807"]),
        (storage("data_path = \"/var/mnt/longhorn2\""), &["C0807"]),
        (storage("data_path = \"/var/mnt/longhorn/volumes\""), &[]),
        (storage("over_provisioning = 50"), &["C0210"]),
        (storage("control_planes = true"), &["C0102"]),
    ] {
        check_with(&[(&block, expected)]);
    }
    check(&[
        ("path  = \"clusters", "milestones = [\"Apps\"]\n path  = \"clusters", &["C0202"]),
        ("path  = \"clusters", "milestones = [\"a\", \"a\"]\n path  = \"clusters", &["C0202"]),
    ]);
}

#[test]
fn a_layer_of_ones_own_comes_from_a_folder_or_from_an_address() {
    let layer = |inner: &str| format!("layer \"metrics\" {{\n {inner}\n }}");
    let url = "url = \"https://example.com/a.yaml\"";
    for (inner, expected) in [
        ("manifests = \"./metrics\"".to_owned(), &[][..]),
        (format!("{url}\n sha256 = \"{SHA}\""), &[]),
        (format!("url = \"file:///srv/a.yaml\"\n sha256 = \"sha256:{SHA}\""), &[]),
        (url.to_owned(), &["C0113"]),
        (String::new(), &["C0103"]),
        (format!("manifests = \"./metrics\"\n sha256 = \"{SHA}\""), &["C0113"]),
        (format!("manifests = \"./metrics\"\n {url}\n sha256 = \"{SHA}\""), &["C0111"]),
        (format!("{url}\n sha256 = \"abc\""), &["C0202"]),
        (format!("url = \"http://example.com/a.yaml\"\n sha256 = \"{SHA}\""), &["C0202"]),
        (
            format!("url = \"https://user:word@example.com/a.yaml\"\n sha256 = \"{SHA}\""),
            &["C0303"],
        ),
        (format!("url = \"file://a.yaml\"\n sha256 = \"{SHA}\""), &["C0202"]),
        ("manifest = \"./metrics\"".to_owned(), &["C0102"]),
        ("module = \"./m\"".to_owned(), &["C0109"]),
    ] {
        check_with(&[(&layer(&inner), expected)]);
    }
    insta::assert_snapshot!(shown(&with(&layer("chart = \"oci://example.com/metrics\""))), @r#"
    error[C0109]: a layer of a `chart` is not in this version yet
      --> castle.hcl:66:10
       |
    66 |  chart = "oci://example.com/metrics"
       |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^ can not be applied
       |
       = why: until then: helm template NAME CHART > metrics/chart.yaml
       = hint: name the manifests: manifests = "./metrics"

    castle.hcl: 1 error
    "#);
}

#[test]
fn patches_of_objects() {
    let patch = |inner: &str| format!("networking \"metallb\" {{\n patch {{\n {inner}\n }}\n }}");
    let of = |kind: &str, text: &str| patch(&format!("kind = \"{kind}\"\n text = \"{text}\""));
    for (block, expected) in [
        (of("Deployment", "spec: {replicas: 2}"), &[][..]),
        (of("Deployment", "{kind: Deployment, spec: {}}"), &[]),
        (of("Deployment", "{kind: DaemonSet}"), &["C0909"]),
        (of("Deployment", "metadata: {name: other}"), &["C0909"]),
        (of("Deployment", "metadata: {namespace: other}"), &["C0909"]),
        (of("Deployment", "- {op: remove, path: /spec}"), &["C0909"]),
        (of("Deployment", "plain"), &["C0909"]),
        (of("Deployment", "a: 1\\n---\\nb: 2"), &["C0909"]),
        (of("Deployment", "# nothing"), &["C0902"]),
        (of("Deployment", "{}"), &["C0902"]),
        (of("Deployment", "a: [1"), &["C0902"]),
        (patch("kind = \"DaemonSet\"\n file = \"patches/speaker.yaml\""), &[]),
        (patch("kind = \"DaemonSet\"\n file = \"patches/none.yaml\""), &["C0208"]),
        (patch("kind = \"DaemonSet\""), &["C0113"]),
        (patch("text = \"a: 1\""), &["C0103"]),
        (patch("kind = \"A\"\n file = \"patches/speaker.yaml\"\n text = \"a: 1\""), &["C0111"]),
    ] {
        check_with(&[(&block, expected)]);
    }
    let heredoc = patch(
        "kind = \"Deployment\"\n name = \"controller\"\n text = <<EOT\nmetadata:\n  name: other\nEOT\n",
    );
    insta::assert_snapshot!(shown(&with(&heredoc)), @r"
    error[C0909]: this patch changes the `name` of an object
      --> castle.hcl:71:3
       |
    71 |   name: other
       |   ^^^^^^^^^^^ in this patch
       |
       = why: objects are found by kind and name, so it would be another one
       = hint: take `name` out of the patch; `kind` and `name` of the block say what it changes

    castle.hcl: 1 error
    ");
    let twice = "networking \"metallb\" {\n patch {\n kind = \"A\"\n text = \"a: 1\"\n }\n patch {\n kind = \"A\"\n text = \"a: 2\"\n }\n }";
    assert_eq!(read(&with(twice)).spec.unwrap().networking.patches.len(), 2);
}

#[test]
fn what_is_wrong_with_the_text_of_a_patch() {
    let told = |text: &str| {
        let patch = format!("patch {{\n kind = \"Deployment\"\n text = <<EOT\n{text}\nEOT\n }}");
        let read = read(&with(&format!("networking \"metallb\" {{\n {patch}\n }}")));
        assert!(read.findings.iter().all(|finding| finding.code == "C0902"));
        read.findings.into_iter().map(|finding| finding.title).collect::<Vec<_>>().join("; ")
    };
    let nine = |n: usize| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(", "));
    let bomb: String =
        std::iter::once("a0: &a0 [x, x]\n".to_owned()).chain((1..20).map(nine)).collect();
    assert_eq!(told(&bomb), "this patch repeats itself without end");
    let deep = format!("a: {}{}", "[".repeat(500), "]".repeat(500));
    assert_eq!(told(&deep), "this patch is nested too deeply");
    assert_eq!(told("a: [1"), "this patch is not YAML");
}

#[test]
fn a_secret_in_the_place_of_a_choice_is_not_repeated() {
    let text = shown(&with(
        "gitops \"flux\" {\n url = \"https://example.com/r\"\n path = \"p\"\n credentials = \"hunter2-very\"\n }",
    ));
    assert!(text.contains("C0211") && !text.contains("hunter2"), "{text}");
}
