//! What a bring-up costs the machine that rehearses it, by the number of nodes.

use std::error::Error;
use std::fs;
use std::io::{Write, stdout};
use std::net::Ipv4Addr;

use castle_model::spec::{Body, Role};
use castle_model::{NodeName, Spec, VmId};
use castle_rehearsal::host::runtime;
use serde_json::json;

use crate::raise::raise;

/// Control planes and workers: the example, then three sizes.
const SIZES: &[(usize, usize)] = &[(3, 2), (1, 2), (3, 27), (3, 97)];
/// How often each is raised; the quickest counts.
const TIMES: usize = 3;

/// One JSON line per size.
pub(crate) fn print() -> Result<(), Box<dyn Error>> {
    for (control_planes, workers) in SIZES {
        let mut best = f64::MAX;
        let mut memory = None;
        for _ in 0..TIMES {
            let before = processor_ms()?;
            runtime()?.block_on(raise(sized(*control_planes, *workers)?, 1))?;
            best = best.min(processor_ms()? - before);
            memory = Some(memory.map_or_else(memory_mb, Ok)?);
        }
        let line = json!({
            "control_planes": control_planes, "workers": workers, "processor_ms": best,
            "memory_mb": memory,
        });
        writeln!(stdout(), "{line}")?;
    }
    Ok(())
}

/// The example with so many nodes: small ones, so that one host carries them.
fn sized(control_planes: usize, workers: usize) -> Result<Spec, Box<dyn Error>> {
    let mut spec = castle_config::example();
    let of = |role: Role| spec.nodes.iter().find(|node| node.role == role).cloned();
    let (Some(control_plane), Some(worker)) = (of(Role::ControlPlane), of(Role::Worker)) else {
        return Err("the example has no node of a kind".into());
    };
    let all = std::iter::repeat_n((control_plane, "cp"), control_planes)
        .chain(std::iter::repeat_n((worker, "worker"), workers));
    let mut nodes = Vec::new();
    for (index, (mut node, kind)) in all.enumerate() {
        let ordinal = if kind == "cp" { index } else { index - control_planes } + 1;
        node.name = NodeName::try_from(format!("{kind}-{ordinal:02}"))?;
        let last = u8::try_from(index + 20).unwrap_or(u8::MAX);
        node.address = Ipv4Addr::new(192, 168, 1, last);
        if let Body::Vm(vm) = &mut node.body {
            vm.vmid = VmId(500 + u32::try_from(index).unwrap_or_default());
            (vm.memory_mib, vm.disk_gib) = (512, 4);
            vm.data_disk_gib = vm.data_disk_gib.map(|_| 4);
        }
        nodes.push(node);
    }
    spec.nodes = nodes;
    if let Some(proxmox) = spec.platform.proxmox_mut() {
        proxmox.vmids = (VmId(500), VmId(699));
    }
    Ok(spec)
}

/// Processor time of this thread, which does everything, in milliseconds.
fn processor_ms() -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = text.split_whitespace().next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e6)
}

/// The peak of this process so far, in megabytes.
fn memory_mb() -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kibibytes: f64 = line.split_whitespace().next().unwrap_or_default().parse()?;
    Ok(kibibytes * 1024.0 / 1e6)
}
