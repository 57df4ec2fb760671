//! curl, against every emulated server that speaks HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use castle_model::spec::{ExtraLayer, SourceSpec, Spec, UrlManifest};
use castle_reality::asked::Asked;
use castle_reality::asked::curl::ASKED;
use castle_reality::{Real, outside};
use castle_talos::access::KubeAccess;
use castle_wire::Verify;
use castle_wire::tls::client_config;
use rustls::pki_types::ServerName;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::datacenter::{Datacenter, LIMIT, machines, proxmox};
use crate::kubectl::raised;
use crate::setting::{ask_all, folder, pem, to_base64, with, write};

/// Two castles in one file: servers with addresses at `127.0.92.*`.
fn services(net: u8, mut spec: Spec) -> Spec {
    for source in &mut spec.secrets.sources {
        if let SourceSpec::Infisical(source) = source {
            source.host = format!("https://127.0.{net}.3:8443");
        }
    }
    spec.gitops.url = format!("https://127.0.{net}.4:8443/example/blue");
    spec.layers.push(ExtraLayer {
        name: "own".parse().unwrap(),
        after: Vec::new(),
        manifests: BTreeMap::new(),
        url: Some(UrlManifest {
            url: format!("https://127.0.{net}.5:8443/a.yaml"),
            sha256: "0".repeat(64),
        }),
    });
    spec
}

/// The digest of a server's public key, as `--pinnedpubkey` takes it.
async fn pin(address: &str) -> String {
    let anybody = Verify::RecordOnly(Arc::default());
    let config = client_config(&anybody, None, outside().clock, &[b"http/1.1"]).unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::from(stream.peer_addr().unwrap().ip());
    let tls = TlsConnector::from(config).connect(name, stream).await.unwrap();
    let chain = tls.get_ref().1.peer_certificates().unwrap();
    let (_, certificate) = X509Certificate::from_der(&chain[0]).unwrap();
    format!("sha256//{}", to_base64(&Sha256::digest(certificate.public_key().raw)))
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn every_server_speaks_http_as_the_real_one_does() {
    let Some(curl) = Real::find("curl") else { return };
    let hosts = Datacenter::open(services(92, proxmox(92))).await;
    let cluster = Datacenter::open(machines(93, 1, 0)).await;
    let (_, KubeAccess { server, authority, certificate, key }) = raised(&cluster).await;
    let place = folder();
    let file = |name: &str, text: &str| write(place.path(), name, text).display().to_string();
    let roots: String = hosts.host.roots().iter().map(|root| pem("CERTIFICATE", root)).collect();
    let birth = hosts.host.read(|world| world.birth.clone());
    let secret = &birth.proxmox.token_secret;
    let names = [
        ("here", place.path().display().to_string()),
        ("ca", file("ca.pem", &roots)),
        ("large", file("large.json", &"x".repeat(4 << 20))),
        ("token", format!("Authorization:PVEAPIToken={}={secret}", birth.proxmox.token_id)),
        ("gittoken", birth.sources.token.clone().unwrap()),
        ("pin", pin("127.0.92.2:8006").await),
        ("otherpin", pin("127.0.92.3:8443").await),
        ("proxmox", "https://127.0.92.2:8006".to_owned()),
        ("infisical", "https://127.0.92.3:8443".to_owned()),
        ("git", "https://127.0.92.4:8443/example/blue".to_owned()),
        ("downloads", "https://127.0.92.5:8443".to_owned()),
        ("kubernetes", server),
        ("talos", format!("https://{}:50000", cluster.spec.nodes[0].address)),
        ("kubeca", file("kube-ca.pem", &authority)),
        ("kubecert", file("kube.pem", &certificate)),
        ("kubekey", file("kube.key", key.expose())),
    ];
    let listens =
        cluster.front.until(format!("{}:6443", cluster.spec.network.vip).parse().unwrap(), true);
    assert!(timeout(LIMIT, listens).await.is_ok());
    let names: Vec<(&str, &str)> =
        names.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let command = |_: &Asked, words: &[&str]| {
        with(curl.program(), &[&["--silent", "--show-error"], words].concat())
    };
    ask_all(ASKED, &names, command).await;
    let read = |name: &str| std::fs::read(place.path().join(name)).unwrap();
    assert_eq!(read("part"), read("whole")[10..], "a part of a download is that part");
}
