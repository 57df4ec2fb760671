//! `platform/access`: an administrator's client of the cluster, and the files that people use for the same.

use async_trait::async_trait;
use castle_engine::{Context, Key, Step};
use castle_kubernetes::{KubeAccess, Kubernetes};
use castle_model::{Failure, Observed, Secret};

use super::Realm;
use crate::handed::CLUSTER;

/// The kubeconfig for `kubectl`, to be escrowed; given by `platform/access`.
pub const KUBECONFIG: Key<Secret> = Key::new("platform/kubeconfig");

/// The talosconfig for `talosctl`, to be escrowed; given by `platform/access`.
pub const TALOSCONFIG: Key<Secret> = Key::new("platform/talosconfig");

/// Who castle is to the cluster's API server.
pub(super) fn kube_access(realm: &Realm, cx: &Context) -> Result<KubeAccess, Failure> {
    let kube = realm.keys(cx)?.kube;
    Ok(KubeAccess {
        server: kube.server.clone(),
        authority: kube.authority.clone(),
        certificate: kube.certificate.clone(),
        key: kube.key.clone(),
    })
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
        outputs.put(&KUBECONFIG, keys.kube.kubeconfig(self.0.spec()));
        outputs.put(&TALOSCONFIG, keys.talos.talosconfig(self.0.spec()));
        Ok(format!("administrator of {}", access.server))
    }
}

#[async_trait]
impl Step for Access {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        self.hand_out(cx).map(|evidence| Observed::Right { evidence })
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        self.hand_out(cx)
    }
}
