//! What a running VM has that its configuration does not say any more.

use castle_proxmox::VmStatus;

use super::Vm;

impl Vm {
    /// What is not in force yet, and how it is brought into force: no machine that is in use is switched off by castle.
    pub(super) fn still_runs_with(&self, status: &VmStatus) -> Option<String> {
        let node = &self.node;
        let (memory, cores) = (status.maxmem >> 20, status.cpus);
        let differs = |has: u64, wanted: u64| has != 0 && has != wanted;
        if !differs(memory, node.memory_mib) && !differs(cores, node.cores.into()) {
            return None;
        }
        let (name, vmid) = (&node.name, node.vmid);
        Some(format!(
            "{} still runs with {memory} MiB and {cores} cores until it is switched off and on: kubectl drain {name} \
             --ignore-daemonsets --delete-emptydir-data; on {}: qm shutdown {vmid}, qm start {vmid}; kubectl uncordon {name}",
            self.named(),
            self.host()
        ))
    }
}
