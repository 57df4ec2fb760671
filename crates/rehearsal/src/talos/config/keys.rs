//! The keys that Talos knows at the top of each document: the emulation refuses others, as the real loader does.

/// The documents beside the main one, of any version that castle writes, each with its keys.
pub(super) const DOCUMENTS: &[(&str, &str)] = &[
    (
        "BGPInstanceConfig",
        "name vrf localASN routerID routeSource advertise multipath maxPaths installRoutes \
         importRoutes neighbors",
    ),
    ("BlackholeRouteConfig", "name metric"),
    (
        "BondConfig",
        "name hardwareAddr links bondMode miimon updelay downdelay useCarrier xmitHashPolicy \
         arpInterval arpIpTargets nsIp6Targets arpValidate arpAllTargets lacpRate failOverMac \
         adSelect adActorSysPrio adUserPortKey adLACPActive primaryReselect resendIGMP minLinks \
         lpInterval packetsPerSlave numPeerNotif tlbLogicalLb allSlavesActive peerNotifDelay \
         missedMax up mtu addresses routes multicast",
    ),
    ("BridgeConfig", "name hardwareAddr links stp vlan up mtu addresses routes multicast"),
    ("CRIBaseRuntimeSpecConfig", "overrides"),
    ("CRICustomizationConfig", "name content"),
    (
        "ContainerConfig",
        "name image entrypoint args workingDir runAs environment mounts security network \
         resources dependsOn",
    ),
    ("DHCPv4Config", "name routeMetric ignoreHostname ignoreRoutes clientIdentifier duidRaw"),
    ("DHCPv6Config", "name routeMetric ignoreHostname clientIdentifier duidRaw"),
    ("DiscoveryIdentityConfig", "clusterID clusterSecret"),
    ("DiscoveryServiceConfig", "name endpoint"),
    ("DummyLinkConfig", "name hardwareAddr up mtu addresses routes multicast"),
    ("EnvironmentConfig", "variables"),
    ("EtcFileConfig", "name mode contents"),
    ("EthernetConfig", "name features rings channels wakeOnLan"),
    ("EventSinkConfig", "endpoint"),
    ("ExistingVolumeConfig", "name discovery mount trim scrub"),
    ("ExtensionServiceConfig", "name configFiles environment"),
    ("ExternalVolumeConfig", "name filesystemType mount"),
    ("FilesystemScrubConfig", "interval"),
    ("FilesystemTrimConfig", "interval"),
    ("HCloudVIPConfig", "name link apiToken"),
    ("HTTPProbeConfig", "name interval failureThreshold url timeout"),
    ("HostnameConfig", "auto hostname"),
    ("ImageCacheConfig", "local"),
    ("ImageVerificationConfig", "rules"),
    ("KernelModuleConfig", "name parameters"),
    ("KmsgLogConfig", "name url"),
    ("KubeAPIServerCAConfig", "issuingCA acceptedCAs"),
    ("KubeAPIServerConfig", "image extraArgs env resources apiPort certExtraSANs startupProbes"),
    ("KubeAdmissionControlConfig", "name configuration"),
    ("KubeAggregatorCAConfig", "issuingCA acceptedCAs"),
    ("KubeAuditPolicyConfig", "configuration"),
    ("KubeAuthenticationConfig", "configuration"),
    ("KubeAuthorizerConfig", "name type webhook"),
    ("KubeClusterConfig", "clusterName endpoint"),
    ("KubeControllerManagerConfig", "enabled image extraArgs env resources"),
    ("KubeCoreDNSConfig", "enabled image"),
    ("KubeCredentialProviderConfig", "configuration"),
    ("KubeEtcdEncryptionConfig", "config"),
    ("KubeExternalManifestConfig", "name headers url"),
    (
        "KubeFlannelCNIConfig",
        "backendType backendPort backendMTU backendExtraConfig resources extraArgs \
         kubeNetworkPoliciesEnabled",
    ),
    ("KubeInlineManifestConfig", "name manifest"),
    (
        "KubeNetworkConfig",
        "dnsDomain podSubnets serviceSubnets nodeCIDRMaskSizeIPv4 nodeCIDRMaskSizeIPv6",
    ),
    ("KubeNodeConfig", "skipNodeRegistration registerWithFQDN nodeIP labels annotations taints"),
    ("KubePrismConfig", "port tlsServerName"),
    ("KubeProxyConfig", "enabled image mode config extraArgs resources"),
    ("KubeSchedulerConfig", "enabled image config extraArgs env resources"),
    ("KubeServiceAccountConfig", "issuer accepted"),
    (
        "KubeSpanConfig",
        "enabled advertiseKubernetesNetworks allowDownPeerBypass harvestExtraEndpoints mtu \
         filters",
    ),
    ("KubeSpanEndpointsConfig", "extraAnnouncedEndpoints"),
    ("KubeStaticPodConfig", "name pod"),
    ("KubeTalosAPIAccessConfig", "allowedRoles allowedKubernetesNamespaces"),
    ("KubeletConfig", "image config extraArgs clusterDNS defaultRuntimeSeccompProfileEnabled"),
    ("LVMLogicalVolumeConfig", "name type mirrors stripes provisioning"),
    ("LVMVolumeGroupConfig", "name provisioning"),
    ("Layer2VIPConfig", "name link"),
    ("LinkAliasConfig", "name selector"),
    ("LinkConfig", "name up mtu addresses routes multicast"),
    ("NetworkDefaultActionConfig", "ingress"),
    ("NetworkRuleConfig", "name portSelector ingress"),
    ("OOMConfig", "triggerExpression cgroupRankingExpression sampleInterval"),
    ("PCIDriverRebindConfig", "name targetDriver"),
    ("RAIDArrayConfig", "name level metadata provisioning"),
    ("RawVolumeConfig", "name provisioning encryption"),
    ("RegistryAuthConfig", "name username password auth identityToken"),
    ("RegistryMirrorConfig", "name endpoints skipFallback"),
    ("RegistryTLSConfig", "name clientIdentity ca insecureSkipVerify"),
    ("ResolverConfig", "nameservers searchDomains hostDNS"),
    ("RoutingRuleConfig", "name src dst table action iifName oifName fwMark fwMask"),
    ("SecurityProfileConfig", "workloadIsolation"),
    ("SideroLinkConfig", "apiUrl uniqueToken"),
    ("StaticHostConfig", "name hostnames"),
    ("SwapVolumeConfig", "name provisioning encryption"),
    ("SysctlConfig", "params"),
    ("SysfsConfig", "params"),
    ("TCPProbeConfig", "name interval failureThreshold endpoint timeout"),
    ("TimeSyncConfig", "enabled bootTimeout ntp ptp"),
    ("TrustedRootsConfig", "name certificates"),
    ("UdevRulesConfig", "rules"),
    ("UnattendedInstallConfig", "reboot installer provisioning"),
    ("UserVolumeConfig", "name volumeType provisioning filesystem encryption mount trim scrub"),
    ("VLANConfig", "name vlanID vlanMode parent up mtu addresses routes multicast"),
    ("VRFConfig", "name hardwareAddr links table up mtu addresses routes multicast"),
    ("VethConfig", "name peer up mtu addresses routes multicast"),
    ("VolumeConfig", "name provisioning filesystem encryption mount trim scrub"),
    ("WatchdogTimerConfig", "device timeout"),
    (
        "WireguardConfig",
        "name privateKey listenPort firewallMark peers up mtu addresses routes multicast",
    ),
    ("ZswapConfig", "maxPoolPercent shrinkerEnabled"),
];

/// The keys of the main document, by their place in it.
pub(super) const MAIN: &[(&str, &str)] = &[
    ("", "version debug persist machine cluster"),
    (
        "machine",
        "type token ca acceptedCAs certSANs controlPlane kubelet pods network disks install files \
         env time sysctls sysfs registries systemDiskEncryption features udev logging kernel \
         seccompProfiles baseRuntimeSpecOverrides nodeLabels nodeAnnotations nodeTaints",
    ),
    (
        "cluster",
        "id secret controlPlane clusterName network token aescbcEncryptionSecret \
         secretboxEncryptionSecret ca acceptedCAs aggregatorCA serviceAccount apiServer \
         controllerManager proxy scheduler discovery etcd coreDNS externalCloudProvider \
         extraManifests extraManifestHeaders inlineManifests adminKubeconfig \
         allowSchedulingOnControlPlanes allowSchedulingOnMasters",
    ),
];

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
