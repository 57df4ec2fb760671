//! Bundles of secrets, exchanged with Talos' own machinery in both directions.

use std::fs;

use castle_model::Secret;
use castle_reality::{Real, run};
use castle_talos::{Authority, Bundle};
use castle_wire::{SystemClock, SystemEntropy};
use x509_parser::oid_registry::OID_X509_EXT_AUTHORITY_KEY_IDENTIFIER;
use x509_parser::prelude::{FromDer as _, Pem, X509Certificate};

use crate::setting::{ORACLES, SOON, ask, folder, secrets, with, write, yaml};

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn ours_is_read_by_talos_and_becomes_configs() {
    let place = folder();
    let bundle = Bundle::generate(&SystemEntropy, &SystemClock).unwrap();
    let ours = bundle.to_yaml();
    let file = write(place.path(), "secrets.yaml", ours.expose()).display().to_string();
    for name in ORACLES {
        let Some(oracle) = Real::find(name) else { return };
        let read = ask(&oracle, &["bundle", &file]).await;
        assert!(yaml(&read) == yaml(ours.expose()), "{name} reads another bundle than ours");
        let out = place.path().display().to_string();
        drop(ask(&oracle, &["gen", &file, "blue", "https://10.0.0.1:6443", &out]).await);
        let configs: Vec<String> = ["controlplane.yaml", "worker.yaml"]
            .iter()
            .map(|config| place.path().join(config).display().to_string())
            .collect();
        drop(ask(&oracle, &["validate", "cloud", &configs[0], &configs[1]]).await);
        let config = fs::read_to_string(&configs[0]).unwrap();
        for part in [&bundle.bootstrap_token, &bundle.trustd_token, &bundle.secretbox] {
            assert!(config.contains(part.expose()), "{name} uses other secrets than ours");
        }
    }
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn theirs_is_read_by_us_and_comes_back_unchanged() {
    let place = folder();
    for name in ORACLES {
        let Some(oracle) = Real::find(name) else { return };
        let file = secrets(&oracle, place.path(), "theirs.yaml").await;
        let theirs = fs::read_to_string(&file).unwrap();
        let again = Bundle::from_yaml(&Secret::new(theirs.clone())).unwrap().to_yaml();
        assert!(
            yaml(again.expose()) == yaml(&theirs),
            "{name}: written again it is another bundle"
        );
        let file = write(place.path(), "again.yaml", again.expose()).display().to_string();
        assert!(yaml(&ask(&oracle, &["bundle", &file]).await) == yaml(&theirs));
    }
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn a_damaged_bundle_is_refused_by_both_sides() {
    let place = folder();
    for name in ORACLES {
        let Some(oracle) = Real::find(name) else { return };
        let file = secrets(&oracle, place.path(), "theirs.yaml").await;
        let theirs = fs::read_to_string(&file).unwrap();
        let certificate = yaml(&theirs)["certs"]["os"]["crt"].as_str().unwrap().to_owned();
        let damaged = theirs.replace(&certificate, &certificate[4..]);
        assert!(Bundle::from_yaml(&Secret::new(damaged.clone())).is_err());
        let file = write(place.path(), "damaged.yaml", &damaged).display().to_string();
        let words = run(with(oracle.program(), &["bundle", &file]), SOON).await.expect_failure();
        assert!(words.contains("error:"), "{words}");
    }
}

/// What can be told of an authority from outside.
#[derive(Debug, PartialEq, Eq)]
struct Traits {
    subject: String,
    self_issued: bool,
    signature: String,
    public_key: String,
    key_label: String,
    usages: String,
    extended: String,
    constraints: String,
    names_its_issuer: bool,
    hours: i64,
}

fn traits(authority: &Authority) -> Traits {
    let (_, pem) = x509_parser::pem::parse_x509_pem(authority.certificate.as_bytes()).unwrap();
    let (_, it) = X509Certificate::from_der(&pem.contents).unwrap();
    let usage = it.key_usage().unwrap().unwrap();
    let extended = it.extended_key_usage().unwrap().unwrap();
    let basic = it.basic_constraints().unwrap().unwrap();
    let life = it.validity().not_after.timestamp() - it.validity().not_before.timestamp();
    Traits {
        subject: it.subject().to_string(),
        self_issued: it.subject() == it.issuer(),
        signature: it.signature_algorithm.algorithm.to_id_string(),
        public_key: it.public_key().algorithm.algorithm.to_id_string(),
        key_label: Pem::iter_from_buffer(authority.key.expose().as_bytes())
            .next()
            .unwrap()
            .unwrap()
            .label,
        usages: format!("critical {} {}", usage.critical, usage.value),
        extended: format!(
            "server {} client {} any {}",
            extended.value.server_auth, extended.value.client_auth, extended.value.any
        ),
        constraints: format!(
            "critical {} ca {} path {:?}",
            basic.critical, basic.value.ca, basic.value.path_len_constraint
        ),
        names_its_issuer: it
            .get_extension_unique(&OID_X509_EXT_AUTHORITY_KEY_IDENTIFIER)
            .unwrap()
            .is_some(),
        hours: life / 3600,
    }
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn our_authorities_are_made_like_theirs() {
    let place = folder();
    let ours = Bundle::generate(&SystemEntropy, &SystemClock).unwrap();
    for name in ORACLES {
        let Some(oracle) = Real::find(name) else { return };
        let file = secrets(&oracle, place.path(), "theirs.yaml").await;
        let theirs = Bundle::from_yaml(&Secret::new(fs::read_to_string(&file).unwrap())).unwrap();
        for (which, ours, theirs) in [
            ("etcd", &ours.etcd, &theirs.etcd),
            ("kubernetes", &ours.kubernetes, &theirs.kubernetes),
            ("aggregator", &ours.aggregator, &theirs.aggregator),
            ("os", &ours.os, &theirs.os),
        ] {
            assert_eq!(traits(ours), traits(theirs), "{name} {which}");
            assert_eq!(traits(theirs).hours, 87_600, "{name} {which}");
        }
        assert_eq!(traits(&theirs.etcd).subject, "O=etcd");
        assert_eq!(traits(&theirs.aggregator).subject, "");
        for bundle in [&ours, &theirs] {
            assert_eq!(service_account(bundle), ("RSA PRIVATE KEY".to_owned(), 4096), "{name}");
        }
    }
}

/// The label of the service account's key, and its size in bits. As PKCS#1 it is nine numbers: the modulus, one as
/// long, five of half that length, and a few bytes.
fn service_account(bundle: &Bundle) -> (String, usize) {
    let text = bundle.service_account.expose();
    let pem = Pem::iter_from_buffer(text.as_bytes()).next().unwrap().unwrap();
    (pem.label.clone(), pem.contents.len() * 2 / 9 / 64 * 64 * 8)
}
