//! The documents that Talos knows, with the keys at their top: facts that the client and the rehearsal share.

/// The main document: its parts and their keys.
pub const MAIN: &[(&str, &str)] = &[
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

/// Documents beside the main one, known since 1.12 or 1.13.
pub const KINDS: &[(&str, &str)] = &[
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
    ("DHCPv4Config", "name routeMetric ignoreHostname ignoreRoutes clientIdentifier duidRaw"),
    ("DHCPv6Config", "name routeMetric ignoreHostname clientIdentifier duidRaw"),
    ("DummyLinkConfig", "name hardwareAddr up mtu addresses routes multicast"),
    ("EnvironmentConfig", "variables"),
    ("EthernetConfig", "name features rings channels wakeOnLan"),
    ("EventSinkConfig", "endpoint"),
    ("ExistingVolumeConfig", "name discovery mount trim scrub"),
    ("ExtensionServiceConfig", "name configFiles environment"),
    ("ExternalVolumeConfig", "name filesystemType mount"),
    ("HCloudVIPConfig", "name link apiToken"),
    ("HostnameConfig", "auto hostname"),
    ("ImageVerificationConfig", "rules"),
    ("KmsgLogConfig", "name url"),
    (
        "KubeSpanConfig",
        "enabled advertiseKubernetesNetworks allowDownPeerBypass harvestExtraEndpoints mtu \
         filters",
    ),
    ("KubeSpanEndpointsConfig", "extraAnnouncedEndpoints"),
    ("Layer2VIPConfig", "name link"),
    ("LinkAliasConfig", "name selector"),
    ("LinkConfig", "name up mtu addresses routes multicast"),
    ("NetworkDefaultActionConfig", "ingress"),
    ("NetworkRuleConfig", "name portSelector ingress"),
    ("OOMConfig", "triggerExpression cgroupRankingExpression sampleInterval"),
    ("PCIDriverRebindConfig", "name targetDriver"),
    ("RawVolumeConfig", "name provisioning encryption"),
    ("RegistryAuthConfig", "name username password auth identityToken"),
    ("RegistryMirrorConfig", "name endpoints skipFallback"),
    ("RegistryTLSConfig", "name clientIdentity ca insecureSkipVerify"),
    ("ResolverConfig", "nameservers searchDomains hostDNS"),
    ("RoutingRuleConfig", "name src dst table action iifName oifName fwMark fwMask"),
    ("SideroLinkConfig", "apiUrl uniqueToken"),
    ("StaticHostConfig", "name hostnames"),
    ("SwapVolumeConfig", "name provisioning encryption"),
    ("TCPProbeConfig", "name interval failureThreshold endpoint timeout"),
    ("TimeSyncConfig", "enabled bootTimeout ntp ptp"),
    ("TrustedRootsConfig", "name certificates"),
    ("UserVolumeConfig", "name volumeType provisioning filesystem encryption mount trim scrub"),
    ("VLANConfig", "name vlanID vlanMode parent up mtu addresses routes multicast"),
    ("VRFConfig", "name hardwareAddr links table up mtu addresses routes multicast"),
    ("VolumeConfig", "name provisioning filesystem encryption mount trim scrub"),
    ("WatchdogTimerConfig", "device timeout"),
    (
        "WireguardConfig",
        "name privateKey listenPort firewallMark peers up mtu addresses routes multicast",
    ),
    ("ZswapConfig", "maxPoolPercent shrinkerEnabled"),
];

/// Those that came with 1.14.
pub const KINDS_OF_1_14: &[(&str, &str)] = &[
    (
        "BGPInstanceConfig",
        "name vrf localASN routerID routeSource advertise multipath maxPaths installRoutes \
         importRoutes neighbors",
    ),
    ("CRIBaseRuntimeSpecConfig", "overrides"),
    ("CRICustomizationConfig", "name content"),
    (
        "ContainerConfig",
        "name image entrypoint args workingDir runAs environment mounts security network \
         resources dependsOn",
    ),
    ("DiscoveryIdentityConfig", "clusterID clusterSecret"),
    ("DiscoveryServiceConfig", "name endpoint"),
    ("EtcFileConfig", "name mode contents"),
    ("FilesystemScrubConfig", "interval"),
    ("FilesystemTrimConfig", "interval"),
    ("HTTPProbeConfig", "name interval failureThreshold url timeout"),
    ("ImageCacheConfig", "local"),
    ("KernelModuleConfig", "name parameters"),
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
    ("KubeStaticPodConfig", "name pod"),
    ("KubeTalosAPIAccessConfig", "allowedRoles allowedKubernetesNamespaces"),
    ("KubeletConfig", "image config extraArgs clusterDNS defaultRuntimeSeccompProfileEnabled"),
    ("LVMLogicalVolumeConfig", "name type mirrors stripes provisioning"),
    ("LVMVolumeGroupConfig", "name provisioning"),
    ("RAIDArrayConfig", "name level metadata provisioning"),
    ("SecurityProfileConfig", "workloadIsolation"),
    ("SysctlConfig", "params"),
    ("SysfsConfig", "params"),
    ("UdevRulesConfig", "rules"),
    ("UnattendedInstallConfig", "reboot installer provisioning"),
    ("VethConfig", "name peer up mtu addresses routes multicast"),
];

/// The keys at the top of a kind of document, beside `apiVersion` and `kind`, if Talos knows the kind; `late` from 1.14 on.
#[must_use]
pub fn keys(kind: &str, late: bool) -> Option<&'static str> {
    let newer = if late { KINDS_OF_1_14 } else { &[] };
    KINDS.iter().chain(newer).find(|(name, _)| *name == kind).map(|(_, keys)| *keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_listed_once_and_in_order() {
        for list in [KINDS, KINDS_OF_1_14] {
            assert!(list.is_sorted_by(|one, next| one.0 < next.0));
        }
        let both = |(name, _): &&(&str, &str)| KINDS.iter().any(|(known, _)| known == name);
        assert_eq!(KINDS_OF_1_14.iter().filter(both).count(), 0);
    }

    #[test]
    fn a_kind_is_known_from_its_version_on() {
        assert_eq!(keys("HostnameConfig", false), Some("auto hostname"));
        assert_eq!(keys("KubePrismConfig", false), None);
        assert_eq!(keys("KubePrismConfig", true), Some("port tlsServerName"));
    }
}
