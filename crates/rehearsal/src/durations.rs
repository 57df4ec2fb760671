//! What takes its time in the datacenter, and the record of how long each took.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::calibration;

/// A length of time: shortest, usual, longest, in milliseconds.
pub type Span = (u64, u64, u64);

/// How many draws a world remembers: some dozens of castles.
const DRAWS_MAX: usize = 4096;

/// Something in the datacenter that takes its time, whoever waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Process {
    /// Proxmox makes a VM and imports its disk.
    VmCreate,
    /// Proxmox starts a VM.
    VmStart,
    /// Proxmox asks a VM to switch itself off.
    VmShutdown,
    /// Proxmox switches a VM off.
    VmStop,
    /// Proxmox removes a VM and its disks.
    VmDestroy,
    /// Proxmox makes a disk larger.
    DiskResize,
    /// Proxmox changes the settings of a VM.
    VmConfigure,
    /// Proxmox removes a volume.
    VolumeDelete,
    /// Proxmox downloads an image.
    ImageDownload,
    /// Firmware and kernel, until Talos looks for its config.
    Boot,
    /// A machine that is asked to goes down: pods and services stop.
    Goodbye,
    /// The services stop.
    Stopping,
    /// Everything has stopped, and the API still stands.
    Deaf,
    /// After an accepted config the old listener still stands for this long.
    ListenerLingers,
    /// From the old listener's end to the new one's begin.
    ListenerSwap,
    /// A worker's certificate from a control plane, once there is one.
    Trust,
    /// The container runtime.
    Runtime,
    /// etcd's image from the network.
    EtcdPull,
    /// etcd's image from the disk's cache.
    EtcdCached,
    /// A new etcd.
    EtcdBootstrap,
    /// An etcd that has its data.
    EtcdRestart,
    /// From the free place to the new learner in etcd.
    EtcdJoin,
    /// Until a new member of etcd has told its name.
    EtcdName,
    /// Until a learner votes.
    EtcdPromotion,
    /// Until a healthy etcd has given the shared address to a machine.
    Election,
    /// Until the lease of a holder that fell silent has run out.
    Lease,
    /// Until a holder that goes in good order has handed the shared address on.
    Handover,
    /// The kubelet with its image.
    Kubelet,
    /// Until a kubelet without an image gives up.
    KubeletGivesUp,
    /// From services that all run to the end of the boot.
    BootEnds,
    /// Images of the control plane.
    ControlPlanePull,
    /// The API server's start.
    ApiServer,
    /// From an API server that answers to the registered node.
    Register,
    /// From the registered node to its network.
    NodeNetwork,
    /// From the node's network to Ready.
    NodeReady,
    /// The image of what Talos runs in the cluster: CoreDNS.
    AddonPull,
    /// Its start, until it is ready.
    AddonStart,
    /// A machine says goodbye: pods stopped, etcd and discovery left, partitions wiped.
    Reset,
    /// A candidate for a join that does not answer is given up.
    EtcdDeadEnd,
    /// How long Proxmox waits for the lock of a storage.
    LockWait,
    /// Until a kubelet that fell silent is noticed.
    NodeSilent,
    /// Until a refused pull is tried again, the first time.
    PullBackOff,
    /// Flannel's image.
    FlannelPull,
    /// Flannel's start, until it is ready.
    FlannelStart,
    /// The image of kube-proxy.
    ProxyPull,
    /// The start of kube-proxy, until it is ready.
    ProxyStart,
    /// The image of External Secrets.
    ExternalSecretsPull,
    /// The start of External Secrets, until it is ready.
    ExternalSecretsStart,
    /// MetalLB's image.
    MetallbPull,
    /// MetalLB's start, until it is ready.
    MetallbStart,
    /// The image of Longhorn's manager.
    LonghornManagerPull,
    /// The start of Longhorn's manager, until it is ready.
    LonghornManagerStart,
    /// An image of another part of Longhorn.
    LonghornPull,
    /// The start of another part of Longhorn, until it is ready.
    LonghornStart,
    /// An image of Flux.
    FluxPull,
    /// The start of a part of Flux, until it is ready.
    FluxStart,
    /// The image of anything else.
    AppPull,
    /// The start of anything else, until it is ready.
    AppStart,
    /// Until the kind of a definition is served.
    Established,
    /// Until a workload's controller has looked at it.
    Rollout,
    /// Until it looks again after a pod was refused.
    RolloutAgain,
    /// Until the endpoints of a service follow what changed.
    Endpoints,
    /// Until the endpoints of a service follow the readiness of a pod.
    EndpointsReady,
    /// Until a webhook's certificate is in its configurations.
    HookAuthority,
    /// From a ready pod of MetalLB to a webhook that answers.
    MetallbWebhook,
    /// From a ready pod of anything else to a webhook that answers.
    Webhook,
    /// Until MetalLB has looked at a service.
    AddressGiven,
    /// Until a controller tries again that could not write.
    ControllerAgain,
    /// Until the garbage collector has noticed.
    Collect,
    /// Until a namespace that goes is looked at first.
    NamespaceEmpty,
    /// Until a namespace that is not empty is looked at again.
    NamespaceAgain,
    /// Until a kubelet has stopped a pod.
    PodStop,
    /// Until External Secrets has looked at a store.
    StoreCheck,
    /// Until External Secrets has fetched a secret.
    SecretSync,
    /// Until External Secrets tries again.
    ExternalSecretsAgain,
    /// Until Longhorn's deployer has made the CSI drivers.
    LonghornCsi,
    /// The image of Longhorn's instance manager.
    InstanceManagerPull,
    /// Until Longhorn has found the disk of a node.
    LonghornDisk,
    /// Until a claim is looked at.
    ClaimBind,
    /// Until a claim is looked at again that could not be served.
    ClaimAgain,
    /// Until a claim is looked at again that found no room.
    ClaimNoRoom,
    /// Until Flux has fetched a source.
    GitFetch,
    /// Until Flux tries again to fetch a source.
    GitAgain,
    /// Until Flux has built a Kustomization.
    FluxLevel,
    /// Until Flux looks again at the health of what it built.
    FluxHealth,
    /// Until Flux has installed a chart.
    HelmInstall,
    /// Until Flux looks again whether what a Kustomization depends on is ready: as its argument says.
    Requeue,
    /// As long as an object says: an interval of its own.
    Interval,
    /// An answer of a server on the LAN.
    AnswerNear,
    /// An answer of a server on the Internet.
    AnswerFar,
    /// Proxmox' answer to a wrong token.
    AnswerDenied,
    /// Proxmox' answer for a node that does not answer.
    AnswerHung,
}

/// Every process with its name, in the order of the enum. How long each takes stands in the calibration.
pub const ALL: &[(Process, &str)] = &[
    (Process::VmCreate, "vm-create"),
    (Process::VmStart, "vm-start"),
    (Process::VmShutdown, "vm-shutdown"),
    (Process::VmStop, "vm-stop"),
    (Process::VmDestroy, "vm-destroy"),
    (Process::DiskResize, "disk-resize"),
    (Process::VmConfigure, "vm-configure"),
    (Process::VolumeDelete, "volume-delete"),
    (Process::ImageDownload, "image-download"),
    (Process::Boot, "boot"),
    (Process::Goodbye, "goodbye"),
    (Process::Stopping, "stopping"),
    (Process::Deaf, "deaf"),
    (Process::ListenerLingers, "listener-lingers"),
    (Process::ListenerSwap, "listener-swap"),
    (Process::Trust, "trust"),
    (Process::Runtime, "runtime"),
    (Process::EtcdPull, "etcd-pull"),
    (Process::EtcdCached, "etcd-cached"),
    (Process::EtcdBootstrap, "etcd-bootstrap"),
    (Process::EtcdRestart, "etcd-restart"),
    (Process::EtcdJoin, "etcd-join"),
    (Process::EtcdName, "etcd-name"),
    (Process::EtcdPromotion, "etcd-promotion"),
    (Process::Election, "election"),
    (Process::Lease, "lease"),
    (Process::Handover, "handover"),
    (Process::Kubelet, "kubelet"),
    (Process::KubeletGivesUp, "kubelet-gives-up"),
    (Process::BootEnds, "boot-ends"),
    (Process::ControlPlanePull, "control-plane-pull"),
    (Process::ApiServer, "api-server"),
    (Process::Register, "register"),
    (Process::NodeNetwork, "node-network"),
    (Process::NodeReady, "node-ready"),
    (Process::AddonPull, "addon-pull"),
    (Process::AddonStart, "addon-start"),
    (Process::Reset, "reset"),
    (Process::EtcdDeadEnd, "etcd-dead-end"),
    (Process::LockWait, "lock-wait"),
    (Process::NodeSilent, "node-silent"),
    (Process::PullBackOff, "pull-back-off"),
    (Process::FlannelPull, "flannel-pull"),
    (Process::FlannelStart, "flannel-start"),
    (Process::ProxyPull, "proxy-pull"),
    (Process::ProxyStart, "proxy-start"),
    (Process::ExternalSecretsPull, "external-secrets-pull"),
    (Process::ExternalSecretsStart, "external-secrets-start"),
    (Process::MetallbPull, "metallb-pull"),
    (Process::MetallbStart, "metallb-start"),
    (Process::LonghornManagerPull, "longhorn-manager-pull"),
    (Process::LonghornManagerStart, "longhorn-manager-start"),
    (Process::LonghornPull, "longhorn-pull"),
    (Process::LonghornStart, "longhorn-start"),
    (Process::FluxPull, "flux-pull"),
    (Process::FluxStart, "flux-start"),
    (Process::AppPull, "app-pull"),
    (Process::AppStart, "app-start"),
    (Process::Established, "established"),
    (Process::Rollout, "rollout"),
    (Process::RolloutAgain, "rollout-again"),
    (Process::Endpoints, "endpoints"),
    (Process::EndpointsReady, "endpoints-ready"),
    (Process::HookAuthority, "hook-authority"),
    (Process::MetallbWebhook, "metallb-webhook"),
    (Process::Webhook, "webhook"),
    (Process::AddressGiven, "address-given"),
    (Process::ControllerAgain, "controller-again"),
    (Process::Collect, "collect"),
    (Process::NamespaceEmpty, "namespace-empty"),
    (Process::NamespaceAgain, "namespace-again"),
    (Process::PodStop, "pod-stop"),
    (Process::StoreCheck, "store-check"),
    (Process::SecretSync, "secret-sync"),
    (Process::ExternalSecretsAgain, "external-secrets-again"),
    (Process::LonghornCsi, "longhorn-csi"),
    (Process::InstanceManagerPull, "instance-manager-pull"),
    (Process::LonghornDisk, "longhorn-disk"),
    (Process::ClaimBind, "claim-bind"),
    (Process::ClaimAgain, "claim-again"),
    (Process::ClaimNoRoom, "claim-no-room"),
    (Process::GitFetch, "git-fetch"),
    (Process::GitAgain, "git-again"),
    (Process::FluxLevel, "flux-level"),
    (Process::FluxHealth, "flux-health"),
    (Process::HelmInstall, "helm-install"),
    (Process::Requeue, "requeue"),
    (Process::Interval, "interval"),
    (Process::AnswerNear, "answer-near"),
    (Process::AnswerFar, "answer-far"),
    (Process::AnswerDenied, "answer-denied"),
    (Process::AnswerHung, "answer-hung"),
];

/// The spans of all, in the order of the enum.
static SPANS: LazyLock<Vec<Span>> = LazyLock::new(|| {
    // Each has its line in the calibration; a test holds it to that.
    ALL.iter().map(|(_, name)| calibration::span(name).unwrap_or_default()).collect()
});

impl Process {
    /// How long it takes.
    #[must_use]
    pub fn span(self) -> Span {
        SPANS[self as usize]
    }

    /// How long it usually takes, in milliseconds.
    #[must_use]
    pub fn usual(self) -> u64 {
        self.span().1
    }

    /// Its name in records and in the calibration.
    #[must_use]
    pub fn name(self) -> &'static str {
        // The list is in the order of the enum; a test holds it to that.
        ALL[self as usize].1
    }
}

/// One length of time that was drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draw {
    /// Counts the draws of a world.
    pub number: u64,
    /// What takes so long.
    pub what: Process,
    /// For what: a machine or VM by its number, an etcd or node by its name; what runs on a node after the node's name.
    pub subject: String,
    /// When it began, in virtual milliseconds since the world's birth.
    pub begun_at: u64,
    /// How long it takes, in milliseconds.
    pub ms: u64,
    /// The draw by whose end it began; none if a client asked for it, or another part of the datacenter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

/// The draws of a world, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draws {
    kept: Vec<Draw>,
    /// How many there were.
    count: u64,
}

impl Draws {
    /// Remembers one and gives its number; the oldest are forgotten by and by.
    pub fn record(
        &mut self,
        what: Process,
        subject: String,
        (begun_at, ms): (u64, u64),
        after: Option<u64>,
    ) -> u64 {
        if self.kept.len() >= DRAWS_MAX {
            self.kept.drain(..DRAWS_MAX / 2);
        }
        let number = self.count;
        self.count += 1;
        self.kept.push(Draw { number, what, subject, begun_at, ms, after });
        number
    }

    /// All that are remembered, oldest first.
    #[must_use]
    pub fn all(&self) -> &[Draw] {
        &self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_has_its_name_and_its_line() {
        for (index, (process, name)) in ALL.iter().enumerate() {
            assert_eq!(*process as usize, index, "{name}");
            assert_eq!(serde_json::to_value(process).unwrap(), *name);
            assert!(calibration::span(name).is_some(), "{name} is not in the calibration");
        }
        // The last variant of the enum has a row, so all have.
        assert_eq!(Process::AnswerHung as usize, ALL.len() - 1);
    }

    #[test]
    fn the_calibration_has_no_line_that_nothing_takes() {
        // Those are taken by the model of the published way alone.
        let published = ["full-clone", "install", "reboot", "secrets-api", "terragrunt-unit"];
        let known = |name: &str| ALL.iter().any(|(_, other)| *other == name);
        let idle: Vec<&str> =
            calibration::all().map(|(name, ..)| name).filter(|name| !known(name)).collect();
        assert_eq!(idle, published);
    }

    #[test]
    fn old_draws_are_forgotten() {
        let mut draws = Draws::default();
        for ms in 0..3 * DRAWS_MAX as u64 {
            let number = draws.record(Process::Boot, "421".to_owned(), (0, ms), None);
            assert_eq!(number, ms);
        }
        assert!(draws.all().len() <= DRAWS_MAX && draws.all().len() >= DRAWS_MAX / 2);
        assert_eq!(draws.all().last().map(|draw| draw.ms), Some(3 * DRAWS_MAX as u64 - 1));
    }
}
