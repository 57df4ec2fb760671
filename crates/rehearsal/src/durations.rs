//! How long everything takes in the datacenter: one table of spans, and the record of what was drawn from it.

use serde::{Deserialize, Serialize};

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
}

/// Every process with its name and its span.
pub const TABLE: &[(Process, &str, Span)] = &[
    (Process::VmCreate, "vm-create", (500, 1200, 3000)),
    (Process::VmStart, "vm-start", (1000, 2000, 4000)),
    (Process::VmShutdown, "vm-shutdown", (1000, 2000, 4000)),
    (Process::VmStop, "vm-stop", (800, 1000, 1500)),
    (Process::VmDestroy, "vm-destroy", (800, 1000, 1500)),
    (Process::DiskResize, "disk-resize", (200, 300, 600)),
    (Process::VmConfigure, "vm-configure", (100, 200, 400)),
    (Process::VolumeDelete, "volume-delete", (100, 200, 400)),
    (Process::ImageDownload, "image-download", (3000, 8000, 20_000)),
    (Process::Boot, "boot", (8000, 14_000, 25_000)),
    (Process::Goodbye, "goodbye", (1500, 4000, 8000)),
    (Process::Stopping, "stopping", (300, 600, 1200)),
    (Process::Deaf, "deaf", (1500, 2000, 2500)),
    (Process::ListenerLingers, "listener-lingers", (40, 60, 90)),
    (Process::ListenerSwap, "listener-swap", (21, 60, 107)),
    (Process::Trust, "trust", (300, 1000, 3000)),
    (Process::Runtime, "runtime", (500, 1500, 3000)),
    (Process::EtcdPull, "etcd-pull", (2000, 5000, 15_000)),
    (Process::EtcdCached, "etcd-cached", (200, 500, 1000)),
    (Process::EtcdBootstrap, "etcd-bootstrap", (2000, 4000, 8000)),
    (Process::EtcdRestart, "etcd-restart", (500, 700, 1500)),
    (Process::EtcdJoin, "etcd-join", (1000, 2000, 4000)),
    (Process::EtcdName, "etcd-name", (300, 500, 900)),
    (Process::EtcdPromotion, "etcd-promotion", (3000, 6000, 15_000)),
    (Process::Election, "election", (1000, 3000, 8000)),
    (Process::Lease, "lease", (60_000, 62_000, 64_000)),
    (Process::Handover, "handover", (200, 400, 900)),
    (Process::Kubelet, "kubelet", (2000, 5000, 12_000)),
    (Process::KubeletGivesUp, "kubelet-gives-up", (130_000, 135_000, 140_000)),
    (Process::BootEnds, "boot-ends", (1000, 2000, 4000)),
    (Process::ControlPlanePull, "control-plane-pull", (3000, 8000, 20_000)),
    (Process::ApiServer, "api-server", (3000, 5000, 10_000)),
    (Process::Register, "register", (500, 1500, 4000)),
    (Process::NodeNetwork, "node-network", (5000, 12_000, 30_000)),
    (Process::NodeReady, "node-ready", (2000, 6000, 12_000)),
    (Process::AddonPull, "addon-pull", (500, 1500, 4000)),
    (Process::AddonStart, "addon-start", (1000, 2000, 4000)),
    (Process::Reset, "reset", (3000, 6000, 12_000)),
];

impl Process {
    /// How long it takes.
    #[must_use]
    pub fn span(self) -> Span {
        self.row().2
    }

    /// Its name in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    fn row(self) -> &'static (Self, &'static str, Span) {
        // The table is in the order of the enum; a test holds it to that.
        &TABLE[self as usize]
    }
}

/// One length of time that was drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draw {
    /// What takes so long.
    pub what: Process,
    /// For what: a machine or VM by its number, an etcd or node by its name.
    pub subject: String,
    /// When it began, in virtual milliseconds since the world's birth.
    pub begun_at: u64,
    /// How long it takes, in milliseconds.
    pub ms: u64,
}

/// The draws of a world, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draws(Vec<Draw>);

impl Draws {
    /// Remembers one; the oldest are forgotten by and by.
    pub fn record(&mut self, draw: Draw) {
        if self.0.len() >= DRAWS_MAX {
            self.0.drain(..DRAWS_MAX / 2);
        }
        self.0.push(draw);
    }

    /// All that are remembered, oldest first.
    #[must_use]
    pub fn all(&self) -> &[Draw] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole_and_in_order() {
        for (index, (process, name, (low, usual, high))) in TABLE.iter().enumerate() {
            assert_eq!(*process as usize, index, "{name}");
            assert_eq!(serde_json::to_value(process).unwrap(), *name);
            assert!(low <= usual && usual <= high, "{name}");
        }
        // The last variant of the enum has a row, so all have.
        assert_eq!(Process::Reset as usize, TABLE.len() - 1);
    }

    #[test]
    fn old_draws_are_forgotten() {
        let mut draws = Draws::default();
        for ms in 0..3 * DRAWS_MAX as u64 {
            let draw = Draw { what: Process::Boot, subject: "421".to_owned(), begun_at: 0, ms };
            draws.record(draw);
        }
        assert!(draws.all().len() <= DRAWS_MAX && draws.all().len() >= DRAWS_MAX / 2);
        assert_eq!(draws.all().last().map(|draw| draw.ms), Some(3 * DRAWS_MAX as u64 - 1));
    }
}
