//! What Talos' types decide about merging, as data: kinds of documents, lists that are replaced or keyed, free parts.

use serde_json::Value;

use super::MAIN;
use crate::config::Contract;

/// How two values at one place are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Maps by key, lists by appending, the rest by overwriting.
    Plain,
    /// The patch's value stands alone.
    Replace,
    /// Each argument of the patch stands alone.
    Arguments,
    /// Elements with the same value at the first of these keys are merged.
    Keyed(&'static [&'static str]),
    /// Elements with the same value at this key are replaced.
    ReplacedBy(&'static str),
}

/// Values that are replaced as a whole: kind, path.
const REPLACED: &[(&str, &str)] = &[
    (MAIN, "cluster/network/podSubnets"),
    (MAIN, "cluster/network/serviceSubnets"),
    (MAIN, "cluster/apiServer/auditPolicy"),
    // Certificate and key are read as a pair, in which a missing one is empty.
    (MAIN, "machine/ca"),
    (MAIN, "cluster/ca"),
    (MAIN, "cluster/aggregatorCA"),
    (MAIN, "cluster/etcd/ca"),
    (MAIN, "cluster/serviceAccount"),
    ("KubeNetworkConfig", "podSubnets"),
    ("KubeNetworkConfig", "serviceSubnets"),
    ("KubeAuditPolicyConfig", "configuration"),
    ("KubeCredentialProviderConfig", "configuration"),
    ("KubeAuthenticationConfig", "configuration"),
    ("KubeStaticPodConfig", "pod"),
    ("CRIBaseRuntimeSpecConfig", "overrides"),
    ("NetworkRuleConfig", "ingress"),
    ("NetworkRuleConfig", "portSelector/ports"),
    ("BGPInstanceConfig", "advertise"),
    ("BGPInstanceConfig", "importRoutes"),
    ("BGPInstanceConfig", "neighbors"),
];

/// Lists whose elements are merged by a key: kind, path, keys.
const KEYED: &[(&str, &str, &[&str])] = &[
    (MAIN, "machine/network/interfaces", &["interface", "deviceSelector"]),
    (MAIN, "machine/network/interfaces/*/vlans", &["vlanId"]),
    (MAIN, "cluster/apiServer/admissionControl", &["name"]),
    ("ExtensionServiceConfig", "configFiles", &["mountPath"]),
];

/// Parts in which anything may stand, so that a value of another kind is an error and not a conversion.
const UNSTRUCTURED: &[(&str, &str)] = &[
    (MAIN, "machine/pods/*"),
    (MAIN, "machine/baseRuntimeSpecOverrides"),
    (MAIN, "machine/seccompProfiles/*/value"),
    (MAIN, "machine/kubelet/extraConfig"),
    (MAIN, "machine/kubelet/credentialProviderConfig"),
    (MAIN, "cluster/apiServer/auditPolicy"),
    (MAIN, "cluster/apiServer/admissionControl/*/configuration"),
    (MAIN, "cluster/apiServer/authorizationConfig/*/webhook"),
    (MAIN, "cluster/apiServer/resources/requests"),
    (MAIN, "cluster/apiServer/resources/limits"),
    (MAIN, "cluster/controllerManager/resources/requests"),
    (MAIN, "cluster/controllerManager/resources/limits"),
    (MAIN, "cluster/scheduler/resources/requests"),
    (MAIN, "cluster/scheduler/resources/limits"),
    (MAIN, "cluster/scheduler/config"),
    ("KubeletConfig", "config"),
    ("KubeSchedulerConfig", "config"),
    ("KubeProxyConfig", "config"),
    ("KubeEtcdEncryptionConfig", "config"),
    ("KubeFlannelCNIConfig", "backendExtraConfig"),
    ("KubeAdmissionControlConfig", "configuration"),
    ("KubeAuthorizerConfig", "webhook"),
    ("KubeAPIServerConfig", "resources/requests"),
    ("KubeAPIServerConfig", "resources/limits"),
    ("KubeControllerManagerConfig", "resources/requests"),
    ("KubeControllerManagerConfig", "resources/limits"),
    ("KubeSchedulerConfig", "resources/requests"),
    ("KubeSchedulerConfig", "resources/limits"),
];

/// Maps whose keys anybody may choose, by their own name: in them a key that is not there can not be deleted.
const MAPS: &[&str] = &[
    "annotations",
    "env",
    "extraArgs",
    "labels",
    "mirrors",
    "nodeAnnotations",
    "nodeLabels",
    "nodeTaints",
    "params",
    "sysctls",
    "sysfs",
    "taints",
    "variables",
];

/// What Talos' merge loses wherever the patch does not repeat it: parent and key.
pub(super) const FORGOTTEN: &[(&str, &str)] = &[
    ("/provisioning", "minSize"),
    ("/provisioning", "maxSize"),
    ("/provisioning/diskSelector", "match"),
];

/// Words that are zero to Talos, and so overwrite nothing: kind, path, word.
const ZERO_WORDS: &[(&str, &str, &str)] = &[("NetworkDefaultActionConfig", "ingress", "accept")];

/// How values at this place are merged.
pub(super) fn rule(kind: &str, path: &[String], contract: Contract) -> Rule {
    let joined = path.join("/");
    let here = (kind, joined.as_str());
    if REPLACED.contains(&here) {
        return Rule::Replace;
    }
    if here == ("ResolverConfig", "searchDomains/domains") && contract >= Contract::V1_14 {
        return Rule::Replace;
    }
    if here == ("ImageVerificationConfig", "rules") {
        return Rule::ReplacedBy("image");
    }
    if let Some((_, _, keys)) = KEYED.iter().find(|(of, at, _)| (*of, *at) == here) {
        return Rule::Keyed(keys);
    }
    if path.last().is_some_and(|key| key == "extraArgs") && !is_unstructured(kind, path) {
        return Rule::Arguments;
    }
    Rule::Plain
}

/// Whether anything may stand at this place.
pub(super) fn is_unstructured(kind: &str, path: &[String]) -> bool {
    let regions = UNSTRUCTURED.iter().filter(|(of, _)| *of == kind);
    regions.map(|(_, region)| region.split('/')).any(|region| {
        let region: Vec<&str> = region.collect();
        path.len() >= region.len() && region.iter().zip(path).all(|(one, other)| one == other)
    })
}

/// Whether the keys at this place are anybody's.
pub(super) fn is_map(kind: &str, path: &[String]) -> bool {
    path.last().is_some_and(|key| MAPS.contains(&key.as_str())) || is_unstructured(kind, path)
}

/// Whether a value of a patch says nothing: Talos takes zero for not given, but never `false`.
pub(super) fn is_zero(kind: &str, path: &[String], value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let word = (kind, path.join("/"));
            let is_word = |(of, at, zero): &(&str, &str, &str)| {
                (*of, *at) == (word.0, word.1.as_str()) && zero == text
            };
            text.is_empty() || text == "0s" || ZERO_WORDS.iter().any(is_word)
        }
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => false,
    }
}
