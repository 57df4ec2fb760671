//! Layers that the castle file no longer has, and whose objects are still in the cluster: told, and left.

use castle_engine::Context;
use castle_kubernetes::{Kubernetes, Object, mark};
use castle_model::{Failure, Spec};

use super::ledger;

/// Tells of such layers.
pub(super) async fn tell(cx: &Context, client: &Kubernetes, spec: &Spec) -> Result<(), Failure> {
    let ours = format!("{}={}", mark::CASTLE, spec.name);
    let there = client.list("v1", "ConfigMap", Some(ledger::NAMESPACE), &ours).await?;
    for list in &there.items {
        let Some(layer) = ledger::layer(list) else { continue };
        let objects = objects(list);
        if objects > 0 && !has(spec, layer) {
            cx.notice(format!(
                "the castle file has no layer {layer} any more, and {objects} of its objects may still be in the cluster: put it back, or remove what ConfigMap {}/{} lists",
                ledger::NAMESPACE,
                list.name()
            ));
        }
    }
    Ok(())
}

fn objects(list: &Object) -> usize {
    list.text("/data/objects").map_or(0, |text| text.lines().count())
}

/// Whether somebody still sees to a layer: castle, or Flux in its place.
fn has(spec: &Spec, layer: &str) -> bool {
    match layer {
        "engine" => spec.engine.enabled,
        "networking" => spec.networking.enabled,
        "storage" => spec.storage.enabled,
        "gitops" => spec.gitops.enabled,
        _ => spec.layers.iter().any(|extra| extra.name.as_str() == layer),
    }
}
