//! Where secrets come from, which form they must have, and where the castle's own are kept.

use castle_model::spec::{EscrowAfterDown, EscrowPlace, Shape, SourceSpec, Trust};

use super::{Sources, changed, codes, read, shown, sources};
use crate::explain;

const SOPS: &str = include_str!("../../../../examples/sops/castle.hcl");
const HOST: &str = "    host        = \"https://eu.infisical.com\"\n";
const INFISICAL: &str = "secrets \"infisical\" {";

fn amber(changes: &[(&str, &str)]) -> Sources {
    let mut text = SOPS.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "the example has no `{from}`");
        text = text.replacen(from, to, 1);
    }
    sources(&text)
}

/// Replaces one piece and expects these codes; the one control plane of the example is warned of besides.
fn check(cases: &[(&str, &str, &[&str])]) {
    for (from, to, expected) in cases {
        let sources = amber(&[(from, to)]);
        let mut found = codes(&sources);
        found.retain(|code| *code != "C0502");
        assert_eq!(found, *expected, "{from} => {to}\n{}", shown(&sources));
        assert!(expected.iter().all(|code| explain(code).is_some()));
    }
}

#[test]
fn sources_keep_their_order_and_the_castles_own_secrets_get_a_file() {
    let spec = read(&amber(&[])).spec.unwrap_or_else(|| panic!("{}", shown(&amber(&[]))));
    let words: Vec<String> = spec.secrets.sources.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["the environment (CASTLE_*)", "secrets.enc.yaml"]);
    assert_eq!(spec.required_secrets(), ["GITHUB_TOKEN", "PROXMOX_TOKEN", "registry.tls_key"]);
    assert_eq!(spec.shape("registry.tls_key"), Shape::Pem);
    assert_eq!(spec.shape("GITHUB_TOKEN"), Shape::Token);
    let EscrowPlace::File(escrow) = &spec.secrets.escrow.place else { panic!() };
    assert_eq!((escrow.file.as_str(), escrow.recipients.len()), ("amber.escrow.enc.yaml", 0));
    assert_eq!(spec.secrets.escrow.after_down, EscrowAfterDown::Keep);
}

#[test]
fn infisical_may_be_ones_own_and_have_a_reader() {
    let settings = "fingerprint = \"".to_owned()
        + &"AB:".repeat(31)
        + "AB\"\n credentials_file = \"~/id\"\n reader_id = secret(\"R\")\n reader_secret = secret(\"S\")\n";
    let spec = read(&changed(&[(HOST, &format!("{HOST}{settings}"))])).spec.unwrap();
    let SourceSpec::Infisical(infisical) = &spec.secrets.sources[0] else { panic!() };
    assert_eq!(infisical.trust, Trust::Fingerprint("ab".repeat(32)));
    assert_eq!(infisical.credentials.as_deref(), Some("~/id"));
    assert!(spec.required_secrets().contains(&"R".to_owned()));
    assert_eq!(
        (spec.shape("S"), &spec.secrets.escrow.place),
        (Shape::Token, &EscrowPlace::Infisical)
    );
    let half = changed(&[(HOST, &format!("{HOST} reader_id = secret(\"R\")\n"))]);
    assert_eq!(codes(&half), ["C0113"]);
}

#[test]
fn what_is_wrong_about_sources_is_named() {
    let escrow =
        "escrow {\n    file       = \"amber.escrow.enc.yaml\"\n    after_down = \"keep\"\n  }";
    check(&[
        (escrow, "", &["C0306"]),
        ("amber.escrow.enc.yaml", "amber.yaml", &["C0307"]),
        ("amber.escrow.enc.yaml", "../amber.enc.yaml", &["C0209"]),
        ("\"secrets.enc.yaml\"", "\"secrets.enc.env\"", &["C0307"]),
        ("\"pem\"", "\"perm\"", &["C0308"]),
        ("\"registry.tls_key\" = ", "OTHER = ", &["C0308"]),
        ("\"registry.tls_key\" = \"pem\"", "GITHUB_TOKEN = \"yaml\"", &["C0308"]),
        ("prefix = \"CASTLE_\"", "file = \"x.yaml\"", &["C0112"]),
        ("secrets \"env\"", "secrets \"enf\"", &["C0108"]),
        ("after_down = \"keep\"", "recipients = [\"bob\"]", &["C0202"]),
        ("file       = \"amber.escrow.enc.yaml\"", "recipients = []", &["C0113"]),
    ]);
    let none = amber(&[
        ("  secrets \"env\" {\n    prefix = \"CASTLE_\"\n  }\n", ""),
        (
            "  secrets \"sops\" {\n    file    = \"secrets.enc.yaml\"\n    require = [\"registry.tls_key\"] # the entry `tls_key` inside of `registry`\n    shapes  = { \"registry.tls_key\" = \"pem\" }\n  }\n",
            "",
        ),
    ]);
    assert!(codes(&none).contains(&"C0104"), "{}", shown(&none));
    let dotted = changed(&[("/ephemeral-castle/blue/proxmox", "/castles/blue.lan")]);
    assert_eq!(codes(&dotted), ["C0202"], "Infisical takes no folder with a dot");
    let text = shown(&changed(&[(INFISICAL, "secrets \"file\" {")]));
    let errors: Vec<&str> = text.lines().filter(|line| line.starts_with("error")).collect();
    insta::assert_snapshot!(errors.join("\n"), @r#"
    error[C0306]: there is no place to keep the secrets that the castle makes
    error[C0112]: `host` belongs into secrets "infisical"
    error[C0112]: `project` belongs into secrets "infisical"
    error[C0112]: `environment` belongs into secrets "infisical"
    "#);
    insta::assert_snapshot!(shown(&amber(&[(escrow, "")])), @r#"
    error[C0306]: there is no place to keep the secrets that the castle makes
      --> castle.hcl:14:3
       |
    14 |   secrets "env" {
       |   ^^^^^^^^^^^^^ castle can not write to this source
       |
       = why: without the bundle of Talos secrets nobody can manage the machines again
       = hint: add escrow { file = "amber.escrow.enc.yaml" }: castle encrypts it with age

    warning[C0502]: one control plane: the cluster is away while that machine is
      --> castle.hcl:44:18
       |
    44 |     count      = 1
       |                  ^ one
       |
       = why: etcd then has no second copy: when the disk is lost, the cluster is lost
       = hint: set count = 3 for a castle that others rely on

    castle.hcl: 1 error, 1 warning
    "#);
}
