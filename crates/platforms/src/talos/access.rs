//! `platform/access`: an administrator's client of the cluster, and the files that people use for the same.

use async_trait::async_trait;
use castle_engine::{Acted, Context, Key, Pace, Step};
use castle_kubernetes::{KubeAccess, Kubernetes, Place};
use castle_model::spec::NodeSpec;
use castle_model::{Change, Failure, NodeName, Observed, Secret, Verb, Verdict};
use castle_talos::handout::HandoutError;
use castle_talos::{KubeAccess as TalosKubeAccess, Talos, TalosAccess, TalosError};

use super::vip::proven_in_this_life;
use super::{LIFE_OUTPUT, Realm};
use crate::handed::{API_SERVERS, CLUSTER, LIFE};

/// The kubeconfig for `kubectl`, to be escrowed; given by `platform/access`.
pub const KUBECONFIG: Key<Secret> = Key::new("platform/kubeconfig");

/// The talosconfig for `talosctl`, to be escrowed; given by `platform/access`.
pub const TALOSCONFIG: Key<Secret> = Key::new("platform/talosconfig");

/// That these two open what they are for, proven by this run; given by the gate of `platform/access`.
pub(super) const PROVEN: Key<String> = Key::new("platform/proven");

/// Who castle is to the cluster's API server.
pub(super) fn kube_access(realm: &Realm, cx: &Context) -> Result<KubeAccess, Failure> {
    Ok(kubernetes_words(&realm.keys(cx)?.kube))
}

/// The same in the words of the Kubernetes client, which does not know Talos'.
pub(super) fn kubernetes_words(kube: &TalosKubeAccess) -> KubeAccess {
    KubeAccess {
        server: kube.server.clone(),
        authority: kube.authority.clone(),
        certificate: kube.certificate.clone(),
        key: kube.key.clone(),
    }
}

/// The step.
pub(super) struct Access(pub(super) Realm);

impl Access {
    /// Makes everything anew in each run: none of it is ever written down.
    fn hand_out(&self, cx: &Context) -> Result<String, Failure> {
        let access = kube_access(&self.0, cx)?;
        let client = Kubernetes::new(&self.0.world, &access).map_err(|error| error.failure())?;
        let keys = self.0.keys(cx)?;
        let outputs = cx.outputs();
        outputs.put(&CLUSTER, client);
        outputs.put(&API_SERVERS, self.api_servers(&access)?);
        outputs.put(&KUBECONFIG, keys.kube.kubeconfig(self.0.spec()));
        outputs.put(&TALOSCONFIG, keys.talos.talosconfig(self.0.spec()));
        Ok(format!("administrator of {}", access.server))
    }

    /// The same at each control plane's own address.
    fn api_servers(&self, access: &KubeAccess) -> Result<Vec<(NodeName, Kubernetes)>, Failure> {
        let port = access.server.rsplit_once(':').map_or("6443", |(_, port)| port);
        let own = |node: &NodeSpec| {
            let server = format!("https://{}:{port}", node.address);
            let access = KubeAccess { server, ..access.clone() };
            let client = Kubernetes::new(&self.0.world, &access).map_err(|error| error.failure());
            client.map(|client| (node.name.clone(), client))
        };
        self.0.spec().control_planes().map(own).collect()
    }
}

/// Uses the files that are given out, and nothing else, as a person would.
pub(super) async fn prove(realm: &Realm, cx: &Context) -> Result<String, Failure> {
    let outputs = cx.outputs();
    let what = "prove the files that are given out";
    let damaged = |error: HandoutError| Failure::bug(what, error.to_string());
    let access = TalosKubeAccess::from_kubeconfig(&*outputs.get(&KUBECONFIG)?);
    let access = kubernetes_words(&access.map_err(damaged)?);
    let client = Kubernetes::new(&realm.world, &access).map_err(|error| error.failure())?;
    let nodes = Place::everywhere("v1", "Node");
    client.list(&nodes.api_version, &nodes.kind, None, &nodes.selector).await?;
    let talosconfig = outputs.get(&TALOSCONFIG)?;
    let (access, endpoints) = TalosAccess::from_talosconfig(&talosconfig).map_err(damaged)?;
    let failed = |error: TalosError| error.failure("use the talosconfig");
    for endpoint in &endpoints {
        let talos = Talos::secure(&realm.world, *endpoint, &access).await.map_err(failed)?;
        talos.version().await.map_err(failed)?;
    }
    let (server, machines) = (&realm.keys(cx)?.kube.server, endpoints.len());
    Ok(format!("kubeconfig used at {server}, talosconfig at {machines} machines"))
}

/// What its gate proves.
pub(super) const PROVES: &str =
    "the kubeconfig and the talosconfig open the cluster and its machines";

#[async_trait]
impl Step for Access {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let evidence = self.hand_out(cx)?;
        if proven_in_this_life(cx)? {
            return Ok(Observed::right(evidence));
        }
        // What opens at the first try needs no gate; for the rest, that one waits and tells why.
        Ok(match prove(&self.0, cx).await {
            Ok(proof) => {
                cx.learn(LIFE_OUTPUT, cx.outputs().get(&LIFE)?.incarnation.to_string());
                cx.outputs().put(&PROVEN, proof.clone());
                Observed::right(proof)
            }
            Err(_) => Observed::Absent,
        })
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let life = cx.outputs().get(&LIFE)?.incarnation.to_string();
        Ok(Acted::of(Change::Unchanged).with(LIFE_OUTPUT, life))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let what = "the kubeconfig and the talosconfig to open";
        let prove = || async { prove(&self.0, cx).await.map(Verdict::Ready) };
        let proof = cx.wait(Pace::GATE, what, prove).await?;
        cx.outputs().put(&PROVEN, proof.clone());
        Ok(proof)
    }
}
