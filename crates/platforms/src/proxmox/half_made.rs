//! A VM that is locked by its making although nobody makes it any more: whose it is, and what a person can do.

use castle_model::{Failure, VmId};
use castle_proxmox::{Proxmox, TaskStatus, Upid};

use super::census::is_declared;
use super::wanted::Wanted;

/// Such a VM. Proxmox gives a VM its mark at the end of its making, so this one bears none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Abandoned {
    /// What is known of it, in words.
    pub(super) why: String,
    /// Whether a task of ours made it: then it is what is left of an `up`, and no stranger's.
    pub(super) ours: bool,
}

/// What a person can do about it. No token may: Proxmox lets root alone pass over a lock.
pub(super) fn cure(vmid: VmId) -> String {
    format!(
        "on the host, as root: qm unlock {vmid}, then qm destroy {vmid} --purge; then run the same command again"
    )
}

/// Whether this is the name of a task that made the VM.
pub(super) fn is_making(task: &str, vmid: VmId) -> bool {
    let task = task.parse::<Upid>();
    task.is_ok_and(|task| task.kind() == "qmcreate" && task.object() == vmid.to_string())
}

/// Whether a VM that is locked by its making is made by nobody any more. A task that has just ended is no proof, so the
/// lock is looked at once more after the tasks. `recorded` says whether our journal names its making; without a journal
/// Proxmox' own list of tasks tells, for numbers that the castle file declares.
pub(super) async fn abandoned(
    client: &Proxmox,
    spec: &Wanted,
    (node, vmid): (&str, VmId),
    recorded: bool,
) -> Result<Option<Abandoned>, Failure> {
    let running = client.running_tasks(node).await;
    let running = running.map_err(|error| error.failure(format!("list the tasks of {node}")))?;
    if running.iter().any(|task| task.object() == vmid.to_string()) {
        return Ok(None);
    }
    match client.vm_config(node, vmid).await {
        Ok(config) if config.lock() == Some("create") => {}
        Ok(_) => return Ok(None),
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(error.failure(format!("read the configuration of VM {vmid}"))),
    }
    if recorded || (is_declared(spec, vmid) && died_of_ours(client, node, vmid).await?) {
        let why = "half made by this castle: its task died on the way and left it locked (create)";
        return Ok(Some(Abandoned { why: why.to_owned(), ours: true }));
    }
    let why = format!(
        "whoever made it died on the way: it is locked (create), and no task works on it; on the host: qm unlock {vmid}, then qm \
         destroy {vmid} --purge"
    );
    Ok(Some(Abandoned { why, ours: false }))
}

/// Whether the last making of the VM was our own token's, and did not come to a good end.
async fn died_of_ours(client: &Proxmox, node: &str, vmid: VmId) -> Result<bool, Failure> {
    let made = client.own_making(node, vmid).await;
    let made = made.map_err(|error| error.failure(format!("list the tasks of {node}")))?;
    Ok(matches!(made, Some((_, TaskStatus::Failed(_)))))
}
