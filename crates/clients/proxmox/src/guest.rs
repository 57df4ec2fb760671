//! Guests: looking at them, making, changing, starting, stopping and destroying VMs.

use std::collections::{BTreeMap, BTreeSet};

use castle_model::VmId;
use serde::Deserialize;
use serde_json::Value;

use crate::client::{Proxmox, ProxmoxError};
use crate::form::segment;
use crate::lenient;
use crate::task::{Upid, named};

/// What a guest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuestKind {
    /// A virtual machine.
    Vm,
    /// A container. It shares the numbers with the VMs.
    Container,
}

/// A guest anywhere in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// Its number.
    pub vmid: VmId,
    /// VM or container.
    pub kind: GuestKind,
    /// The node that carries it.
    pub node: String,
    /// Its name.
    pub name: String,
    /// `running`, `stopped`, or `unknown` shortly after a node has booted.
    pub status: String,
    /// Its tags, sorted, in lower case.
    pub tags: BTreeSet<String>,
    /// Whether it is a template.
    pub template: bool,
    /// The memory that it may take, in bytes.
    pub memory: u64,
}

#[derive(Deserialize)]
struct Resource {
    #[serde(deserialize_with = "lenient::number")]
    vmid: u64,
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    node: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    tags: String,
    #[serde(default, deserialize_with = "lenient::flag")]
    template: bool,
    #[serde(default, deserialize_with = "lenient::number")]
    maxmem: u64,
}

/// The tags in a list, as Proxmox normalises them.
#[must_use]
pub fn tags(text: &str) -> BTreeSet<String> {
    text.split([';', ',', ' ']).filter(|t| !t.is_empty()).map(str::to_lowercase).collect()
}

/// A VM's configuration: keys and values as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config(pub BTreeMap<String, String>);

impl Config {
    /// One value.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// The SMBIOS UUID, in lower case.
    #[must_use]
    pub fn uuid(&self) -> Option<String> {
        property(self.get("smbios1")?, "uuid").map(str::to_lowercase)
    }

    /// The tags, as Proxmox normalises them.
    #[must_use]
    pub fn tags(&self) -> BTreeSet<String> {
        tags(self.get("tags").unwrap_or_default())
    }

    /// The volumes that it names, each with its key: disks, mount points and what was detached (`unused0`), but no media.
    #[must_use]
    pub fn volumes(&self) -> BTreeMap<&str, &str> {
        let named = self.0.iter().filter(|(key, _)| holds_volume(key));
        named
            .filter_map(|(key, text)| {
                let volume = text.split(',').next()?;
                let volume = volume.strip_prefix("volume=").unwrap_or(volume);
                let volume = volume.strip_prefix("file=").unwrap_or(volume);
                let held = volume.contains(':') && !volume.contains(":iso/");
                held.then_some((key.as_str(), volume))
            })
            .collect()
    }

    /// The lock, while a task works on the VM.
    #[must_use]
    pub fn lock(&self) -> Option<&str> {
        self.get("lock")
    }

    /// The size of a disk in GiB, rounded down, such as that of `scsi0`.
    #[must_use]
    pub fn disk_gib(&self, disk: &str) -> Option<u64> {
        let size = property(self.get(disk)?, "size")?;
        let (digits, unit) =
            size.split_at(size.find(|c: char| !c.is_ascii_digit()).unwrap_or(size.len()));
        let number: u64 = digits.parse().ok()?;
        match unit {
            "T" => number.checked_mul(1024),
            "G" => Some(number),
            "M" => Some(number / 1024),
            "K" => Some(number / (1024 * 1024)),
            _ => Some(number / (1024 * 1024 * 1024)),
        }
    }
}

/// Whether a setting of a VM or a container holds a volume.
fn holds_volume(key: &str) -> bool {
    let stem = key.trim_end_matches(|c: char| c.is_ascii_digit());
    let numbered = ["ide", "sata", "scsi", "virtio", "efidisk", "tpmstate", "unused", "mp"];
    (stem != key && numbered.contains(&stem)) || matches!(key, "rootfs" | "vmstate")
}

/// One value of a property string such as `uuid=…,manufacturer=…`.
fn property<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split(',').find_map(|part| part.strip_prefix(key)?.strip_prefix('='))
}

/// How a VM stands now.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct VmStatus {
    /// `running` or `stopped`.
    pub status: String,
    /// What QEMU says, such as `running`, `paused`, `shutdown`.
    #[serde(default)]
    pub qmpstatus: Option<String>,
    /// Seconds since its start.
    #[serde(default, deserialize_with = "lenient::number")]
    pub uptime: u64,
    /// The memory that it runs with, in bytes; 0 if it is not said.
    #[serde(default, deserialize_with = "lenient::number")]
    pub maxmem: u64,
    /// The processors that it runs with; 0 if it is not said.
    #[serde(default, deserialize_with = "lenient::number")]
    pub cpus: u64,
}

impl VmStatus {
    /// Whether it is switched on.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.status == "running"
    }
}

impl Proxmox {
    /// Every guest of the cluster that the token may see, VMs and containers, by number.
    ///
    /// # Errors
    /// If Proxmox does not answer.
    pub async fn guests(&self) -> Result<Vec<Guest>, ProxmoxError> {
        let found: Vec<Resource> =
            self.get("/cluster/resources", &[("type", "vm".to_owned())]).await?;
        let mut guests: Vec<Guest> = found.into_iter().map(Guest::from).collect();
        guests.sort_by_key(|guest| guest.vmid);
        Ok(guests)
    }

    /// A VM's configuration.
    ///
    /// # Errors
    /// If Proxmox does not answer or does not know the VM ([`ProxmoxError::is_missing`]).
    pub async fn vm_config(&self, node: &str, vmid: VmId) -> Result<Config, ProxmoxError> {
        let found: BTreeMap<String, Value> =
            self.get(&format!("{}/config", vm(node, vmid)), &[]).await?;
        Ok(Config(found.into_iter().map(|(key, value)| (key, lenient::text(&value))).collect()))
    }

    /// How a VM stands now.
    ///
    /// # Errors
    /// If Proxmox does not answer or does not know the VM.
    pub async fn vm_status(&self, node: &str, vmid: VmId) -> Result<VmStatus, ProxmoxError> {
        self.get(&format!("{}/status/current", vm(node, vmid)), &[]).await
    }

    /// Makes a VM; the parameters hold `vmid`.
    ///
    /// # Errors
    /// If Proxmox refuses; a number that is taken is a conflict.
    pub async fn create_vm(
        &self,
        node: &str,
        parameters: &[(&str, String)],
    ) -> Result<Upid, ProxmoxError> {
        let path = format!("/nodes/{}/qemu", segment(node));
        named("POST qemu", &self.post(&path, parameters).await?)
    }

    /// Changes a VM's configuration at once.
    ///
    /// # Errors
    /// If Proxmox refuses.
    pub async fn set_config(
        &self,
        node: &str,
        vmid: VmId,
        parameters: &[(&str, String)],
    ) -> Result<(), ProxmoxError> {
        self.put(&format!("{}/config", vm(node, vmid)), parameters).await.map(drop)
    }

    /// Grows a disk to a size in GiB.
    ///
    /// # Errors
    /// If Proxmox refuses; it never shrinks.
    pub async fn resize(
        &self,
        node: &str,
        vmid: VmId,
        disk: &str,
        gib: u64,
    ) -> Result<Upid, ProxmoxError> {
        let parameters = [("disk", disk.to_owned()), ("size", format!("{gib}G"))];
        let answer = self.put(&format!("{}/resize", vm(node, vmid)), &parameters).await?;
        named("PUT resize", &answer)
    }

    /// Switches a VM on.
    ///
    /// # Errors
    /// If Proxmox refuses; a VM that does not exist fails in the task, not here.
    pub async fn start(&self, node: &str, vmid: VmId) -> Result<Upid, ProxmoxError> {
        named("POST start", &self.post(&format!("{}/status/start", vm(node, vmid)), &[]).await?)
    }

    /// Switches a VM off at once, like pulling the plug.
    ///
    /// # Errors
    /// If Proxmox refuses; a VM that does not exist fails in the task, not here.
    pub async fn stop(&self, node: &str, vmid: VmId) -> Result<Upid, ProxmoxError> {
        named("POST stop", &self.post(&format!("{}/status/stop", vm(node, vmid)), &[]).await?)
    }

    /// Destroys a stopped VM with every disk in its configuration, and takes it out of jobs. Disks that only bear its
    /// number go too where that is asked for, on every storage: the caller knows that nobody else has them.
    ///
    /// # Errors
    /// If Proxmox refuses: it runs, is protected, or does not exist.
    pub async fn delete_vm(
        &self,
        node: &str,
        vmid: VmId,
        unreferenced: bool,
    ) -> Result<Upid, ProxmoxError> {
        named("DELETE qemu", &self.delete(&vm(node, vmid), &purging(unreferenced)).await?)
    }

    /// A container's configuration.
    ///
    /// # Errors
    /// If Proxmox does not answer or does not know the container ([`ProxmoxError::is_missing`]).
    pub async fn container_config(&self, node: &str, vmid: VmId) -> Result<Config, ProxmoxError> {
        let found: BTreeMap<String, Value> =
            self.get(&format!("{}/config", container(node, vmid)), &[]).await?;
        Ok(Config(found.into_iter().map(|(key, value)| (key, lenient::text(&value))).collect()))
    }

    /// How a container stands now.
    ///
    /// # Errors
    /// If Proxmox does not answer or does not know the container.
    pub async fn container_status(&self, node: &str, vmid: VmId) -> Result<VmStatus, ProxmoxError> {
        self.get(&format!("{}/status/current", container(node, vmid)), &[]).await
    }

    /// Switches a container off at once.
    ///
    /// # Errors
    /// If Proxmox refuses; one that is off already fails in the task.
    pub async fn stop_container(&self, node: &str, vmid: VmId) -> Result<Upid, ProxmoxError> {
        let path = format!("{}/status/stop", container(node, vmid));
        named("POST stop", &self.post(&path, &[]).await?)
    }

    /// Destroys a stopped container as [`Proxmox::delete_vm`] does a VM.
    ///
    /// # Errors
    /// If Proxmox refuses: it runs, is protected, or does not exist.
    pub async fn delete_container(
        &self,
        node: &str,
        vmid: VmId,
        unreferenced: bool,
    ) -> Result<Upid, ProxmoxError> {
        let path = container(node, vmid);
        named("DELETE lxc", &self.delete(&path, &purging(unreferenced)).await?)
    }
}

impl From<Resource> for Guest {
    fn from(found: Resource) -> Self {
        let kind = if found.r#type == "lxc" { GuestKind::Container } else { GuestKind::Vm };
        Self {
            vmid: VmId(u32::try_from(found.vmid).unwrap_or(u32::MAX)),
            kind,
            node: found.node,
            // The cluster has not heard of it yet; by this name Proxmox calls one that has none.
            name: if found.name.is_empty() { format!("VM {}", found.vmid) } else { found.name },
            status: found.status,
            tags: tags(&found.tags),
            template: found.template,
            memory: found.maxmem,
        }
    }
}

fn vm(node: &str, vmid: VmId) -> String {
    format!("/nodes/{}/qemu/{vmid}", segment(node))
}

fn container(node: &str, vmid: VmId) -> String {
    format!("/nodes/{}/lxc/{vmid}", segment(node))
}

fn purging(unreferenced: bool) -> [(&'static str, String); 2] {
    let unreferenced = u8::from(unreferenced).to_string();
    [("purge", "1".to_owned()), ("destroy-unreferenced-disks", unreferenced)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_are_read_as_recorded() {
        let recorded = r#"{"maxmem":268435456,"tags":"alpha;beta;zeta","type":"qemu","vmid":422,
            "status":"stopped","id":"qemu/422","node":"pve1","template":0,"name":"web-1"}"#;
        let guest = Guest::from(serde_json::from_str::<Resource>(recorded).unwrap());
        assert_eq!((guest.vmid, guest.kind), (VmId(422), GuestKind::Vm));
        assert_eq!(guest.tags, tags("Zeta;alpha,beta alpha"));
        assert!(!guest.template);
        assert_eq!(guest.memory, 256 << 20);
    }

    #[test]
    fn a_configuration_names_its_volumes_and_no_media() {
        let config = Config(BTreeMap::from(
            [
                ("scsi0", "local-lvm:vm-421-disk-1,size=40G"),
                ("scsi2", "local-lvm:vm-999-disk-0,size=8G"),
                ("ide0", "local:iso/talos.iso,media=cdrom"),
                ("ide1", "none,media=cdrom"),
                ("ide2", "local-lvm:vm-421-cloudinit,media=cdrom"),
                ("unused0", "local:421/vm-421-disk-2.qcow2"),
                ("rootfs", "volume=local-lvm:vm-999-disk-1,size=4G"),
                ("mp0", "local-lvm:vm-999-disk-2,mp=/data"),
                ("mp1", "/srv,mp=/srv"),
                ("scsihw", "virtio-scsi-pci"),
                ("net0", "virtio=BC:24:11:00:00:01,bridge=vmbr0"),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned())),
        ));
        let named: Vec<&str> = config.volumes().into_values().collect();
        assert_eq!(
            named,
            [
                "local-lvm:vm-421-cloudinit",
                "local-lvm:vm-999-disk-2",
                "local-lvm:vm-999-disk-1",
                "local-lvm:vm-421-disk-1",
                "local-lvm:vm-999-disk-0",
                "local:421/vm-421-disk-2.qcow2",
            ]
        );
    }

    #[test]
    fn a_configuration_knows_its_uuid_tags_and_disks() {
        let config = Config(BTreeMap::from([
            ("smbios1".to_owned(), "uuid=D59201E4-d411-4eb5-aa3a-aafb17c6181f,family=x".to_owned()),
            ("scsi0".to_owned(), "local:422/vm-422-disk-0.qcow2,discard=on,size=40G".to_owned()),
            ("scsi1".to_owned(), "local:422/vm-422-disk-1.qcow2,size=1246M".to_owned()),
            ("tags".to_owned(), "castle;inc-1".to_owned()),
        ]));
        assert_eq!(config.uuid().as_deref(), Some("d59201e4-d411-4eb5-aa3a-aafb17c6181f"));
        assert_eq!(config.disk_gib("scsi0"), Some(40));
        assert_eq!(config.disk_gib("scsi1"), Some(1));
        assert_eq!(config.disk_gib("scsi2"), None);
        assert!(config.tags().contains("castle"));
    }
}
