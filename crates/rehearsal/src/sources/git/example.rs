//! The tree that every rehearsed repository begins with: units that wait for each other, and a blog at their end.

use std::collections::BTreeMap;

use super::folder;

/// Files of the cluster's own folder.
const OF_CLUSTER: [(&str, &str); 2] = [
    ("infrastructure.yaml", include_str!("../repository/infrastructure.yaml")),
    ("apps.yaml", include_str!("../repository/apps.yaml")),
];

/// Files that every cluster of the repository uses.
const SHARED: [(&str, &str); 7] = [
    (
        "infrastructure/operators/namespaces/namespaces.yaml",
        include_str!("../repository/namespaces.yaml"),
    ),
    (
        "infrastructure/operators/core/kustomization.yaml",
        include_str!("../repository/kustomization.yaml"),
    ),
    ("infrastructure/operators/core/traefik.yaml", include_str!("../repository/traefik.yaml")),
    ("infrastructure/bridge/ingress-class.yaml", include_str!("../repository/bridge.yaml")),
    ("infrastructure/configs/site.yaml", include_str!("../repository/configs.yaml")),
    ("infrastructure/monitoring/prometheus.yaml", include_str!("../repository/prometheus.yaml")),
    ("apps/static/blog.yaml", include_str!("../repository/blog.yaml")),
];

/// The files for a cluster whose folder is at `path`.
pub(super) fn files(path: &str) -> BTreeMap<String, String> {
    let path = folder(path);
    let place = |name: &str| {
        if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
    };
    let own = OF_CLUSTER.iter().map(|(name, text)| (place(name), (*text).to_owned()));
    let shared = SHARED.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    own.chain(shared).collect()
}
