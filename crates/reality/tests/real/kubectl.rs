//! kubectl, the client that people use, against the emulated cluster.

use castle_model::Secret;
use castle_model::time::Moment;
use castle_reality::asked::kubectl::{PEOPLE, STRANGERS};
use castle_reality::{Real, run};
use castle_talos::access::KubeAccess;
use castle_talos::{Bundle, Talos, TalosAccess};
use castle_wire::tls::private_key;
use castle_wire::{Clock, SystemClock, SystemEntropy};
use rcgen::{CertificateParams, DnType, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::datacenter::{Datacenter, LIMIT, machines};
use crate::setting::{ask_all, folder, to_base64, with, write};

const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: 'example.org/web:1'}]
";

const NAMESPACE: &str = "{apiVersion: v1, kind: Namespace, metadata: {name: blue}}";

/// A clock that is three years behind.
struct Behind;

impl Clock for Behind {
    fn now(&self) -> Moment {
        Moment(SystemClock.now().0 - 3 * 366 * 86_400_000)
    }
}

/// A certificate of somebody whom a cluster's authority names, and his key.
pub(crate) struct Named {
    pub(crate) certificate: String,
    pub(crate) key: Secret,
}

/// Somebody whom the cluster's authority names.
pub(crate) fn named(bundle: &Bundle, name: &str, group: Option<&str>) -> Named {
    let key = KeyPair::try_from(&private_key(&bundle.kubernetes.key).unwrap()).unwrap();
    let issuer = Issuer::from_ca_cert_pem(&bundle.kubernetes.certificate, key).unwrap();
    let own = KeyPair::generate().unwrap();
    let mut wanted = CertificateParams::default();
    wanted.distinguished_name.push(DnType::CommonName, name);
    if let Some(group) = group {
        wanted.distinguished_name.push(DnType::OrganizationName, group);
    }
    wanted.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = wanted.signed_by(&own, &issuer).unwrap();
    Named { certificate: certificate.pem(), key: Secret::new(own.serialize_pem()) }
}

/// A kubeconfig in which a user has something else than a certificate.
fn kubeconfig(ours: &KubeAccess, user: &Value) -> String {
    let authority = to_base64(ours.authority.as_bytes());
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {
            "server": ours.server, "certificate-authority-data": authority,
        }}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    })
    .to_string()
}

/// A small cluster, raised; its bundle and the administrator's way in.
pub(crate) async fn raised(datacenter: &Datacenter) -> (Bundle, KubeAccess) {
    let bundle = Bundle::generate(&SystemEntropy, &SystemClock).unwrap();
    let access = TalosAccess::issue(&bundle, &SystemEntropy, &SystemClock).unwrap();
    datacenter.configure(&bundle, &access).await;
    let first = datacenter.spec.nodes[0].address;
    let world = datacenter.world();
    let talos = Talos::secure(&world, first, &access).await.unwrap();
    // A machine that has just got its config is not ready for it yet, and says so.
    let begun = async { while talos.bootstrap().await.is_err() {} };
    assert!(timeout(LIMIT, begun).await.is_ok(), "etcd can not be begun");
    let ours = KubeAccess::issue(&datacenter.spec, &bundle, &SystemEntropy, &SystemClock).unwrap();
    (bundle, ours)
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn a_curious_person_looks_and_changes_by_kubectl() {
    let Some(kubectl) = Real::find("kubectl") else { return };
    let datacenter = Datacenter::open(machines(88, 1, 1)).await;
    let spec = &datacenter.spec;
    let (bundle, ours) = raised(&datacenter).await;
    let other = Bundle::generate(&SystemEntropy, &SystemClock).unwrap();
    let other = KubeAccess::issue(spec, &other, &SystemEntropy, &SystemClock).unwrap();
    let ended = KubeAccess::issue(spec, &bundle, &SystemEntropy, &Behind).unwrap();
    let somebody = named(&bundle, "somebody", None);
    let somebody =
        KubeAccess { certificate: somebody.certificate, key: somebody.key, ..ours.clone() };
    let text = |access: &KubeAccess| access.kubeconfig(spec).expose().to_owned();
    let configs = [
        ("", text(&ours)),
        ("without a certificate", kubeconfig(&ours, &json!({}))),
        ("with a token", kubeconfig(&ours, &json!({"token": "abc"}))),
        (
            "with a certificate of another cluster",
            text(&KubeAccess { authority: ours.authority.clone(), ..other.clone() }),
        ),
        ("with a certificate that has ended", text(&ended)),
        ("with a certificate of no group", text(&somebody)),
        (
            "trusting another authority",
            text(&KubeAccess { authority: other.authority.clone(), ..ours.clone() }),
        ),
    ];
    let place = folder();
    let cache = place.path().display().to_string();
    let command = |who: &str| {
        let (number, (_, text)) =
            configs.iter().enumerate().find(|(_, (name, _))| *name == who).unwrap();
        let file = write(place.path(), &format!("kubeconfig-{number}"), text);
        let file = file.display().to_string();
        with(kubectl.program(), &["--kubeconfig", &file, "--cache-dir", &cache])
    };
    let raised =
        async { while run(with(command(""), &["get", "nodes"]), LIMIT).await.code != Some(0) {} };
    assert!(timeout(LIMIT, raised).await.is_ok(), "the cluster never answers");
    let web = write(place.path(), "web.yaml", WEB).display().to_string();
    let namespace = write(place.path(), "namespace.yaml", NAMESPACE).display().to_string();
    let names = [("web", web.as_str()), ("namespace", namespace.as_str())];
    ask_all(&[PEOPLE, STRANGERS].concat(), &names, |asked, words| with(command(asked.who), words))
        .await;
}
