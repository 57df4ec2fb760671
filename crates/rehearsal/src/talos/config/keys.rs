//! What documents of a config may not be together, and which only control planes may have.

/// What may be said once only: a document, the place in the main one that says the same, and the complaint.
pub(super) const CONFLICTS: &[(&str, &str, &str)] = &[
    (
        "UnattendedInstallConfig",
        "/machine/install",
        "UnattendedInstallConfig config is incompatible with v1alpha1 config (.machine.install)",
    ),
    (
        "KubeletConfig",
        "/machine/kubelet",
        "kubelet config is already set in v1alpha1 config (.machine.kubelet)",
    ),
    (
        "KubeCoreDNSConfig",
        "/cluster/coreDNS",
        "CoreDNS config is already set in v1alpha1 config (.cluster.coreDNS)",
    ),
    (
        "KubeAPIServerCAConfig",
        "/cluster/ca",
        "kube-apiserver CA is already set in v1alpha1 config (.cluster.ca)",
    ),
    (
        "KubeAPIServerConfig",
        "/cluster/apiServer",
        "kube-apiserver config is already set in v1alpha1 config (.cluster.apiServer)",
    ),
    (
        "DiscoveryServiceConfig",
        "/cluster/discovery",
        "discovery service is already configured in .cluster.discovery of the v1alpha1 config",
    ),
    (
        "HostnameConfig",
        "/machine/network/hostname",
        "static hostname is already set in v1alpha1 config",
    ),
];

/// Documents that only control planes may have.
pub(super) const CONTROL_PLANE_ONLY: &[&str] = &[
    "KubeAPIServerConfig",
    "KubeAdmissionControlConfig",
    "KubeAggregatorCAConfig",
    "KubeAuditPolicyConfig",
    "KubeAuthenticationConfig",
    "KubeAuthorizerConfig",
    "KubeControllerManagerConfig",
    "KubeCoreDNSConfig",
    "KubeEtcdEncryptionConfig",
    "KubeFlannelCNIConfig",
    "KubeProxyConfig",
    "KubeSchedulerConfig",
    "KubeServiceAccountConfig",
    "KubeTalosAPIAccessConfig",
];
