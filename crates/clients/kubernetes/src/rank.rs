//! The order in which objects are applied: what others stand on comes first.

use crate::object::Object;
use crate::scope::is_built_in;

/// Kinds that others need, each rank before the next. What is not listed comes after all workloads, as objects
/// of kinds that a CustomResourceDefinition brings do.
const RANKS: &[&[&str]] = &[
    &["Namespace"],
    &["CustomResourceDefinition"],
    &["PriorityClass", "ResourceQuota", "LimitRange", "StorageClass", "CSIDriver", "IngressClass"],
    &["ServiceAccount", "ConfigMap", "Secret"],
    &["ClusterRole", "Role"],
    &["ClusterRoleBinding", "RoleBinding"],
    &[
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Service",
        "NetworkPolicy",
        "PodDisruptionBudget",
    ],
    &["Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Pod", "Job", "CronJob"],
    &["HorizontalPodAutoscaler", "Ingress", "APIService"],
    &[
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
    ],
];

/// The rank of everything that is not listed, custom kinds among it.
pub const LAST: usize = RANKS.len();

/// The rank of an object; lower is applied earlier.
#[must_use]
pub fn rank(object: &Object) -> usize {
    let built_in = is_built_in(object);
    RANKS.iter().position(|kinds| built_in && kinds.contains(&object.kind())).unwrap_or(RANKS.len())
}

/// Puts objects into the order of their ranks; those of one rank keep their order.
pub fn sort(objects: &mut [Object]) {
    objects.sort_by_key(rank);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::parse;

    #[test]
    fn foundations_come_first() {
        let lines = [
            ("metallb.io/v1beta1", "IPAddressPool"),
            ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
            ("apps/v1", "Deployment"),
            ("v1", "Service"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            ("v1", "Namespace"),
        ];
        let text: Vec<_> = lines
            .iter()
            .map(|(version, kind)| {
                format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n")
            })
            .collect();
        let mut objects = parse("m", &text.join("---\n")).unwrap();
        sort(&mut objects);
        let kinds: Vec<_> = objects.iter().map(Object::kind).collect();
        let mut wanted: Vec<_> = lines.iter().map(|(_, kind)| *kind).collect();
        wanted.reverse();
        assert_eq!(kinds, wanted);
    }

    #[test]
    fn a_foreign_kind_of_the_same_name_is_not_a_built_in_one() {
        let object =
            &parse("m", "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: a}\n")
                .unwrap()[0];
        assert_eq!(rank(object), LAST);
    }
}
