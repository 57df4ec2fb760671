//! The resources of a machine, as `talosctl get` shows them: which types there are, and what they say.

use serde_json::{Value, json};
use tonic::Code;

use super::Talos;
use super::call::{Refusal, ResourceShown};
use super::machine::{Api, Machine};

/// A type of resource.
#[derive(Debug, Clone, Copy)]
pub(super) struct Definition {
    /// Its full name.
    pub(super) kind: &'static str,
    /// One of it, for people.
    pub(super) display: &'static str,
    /// Where it is.
    pub(super) namespace: &'static str,
    /// Short names besides those that follow from its full one.
    pub(super) aliases: &'static [&'static str],
    /// What a table shows of it: heading and path.
    pub(super) columns: &'static [(&'static str, &'static str)],
    /// Whether it is for admins alone.
    pub(super) sensitive: bool,
}

const fn open(
    kind: &'static str,
    display: &'static str,
    namespace: &'static str,
    columns: &'static [(&'static str, &'static str)],
) -> Definition {
    Definition { kind, display, namespace, aliases: &[], columns, sensitive: false }
}

/// The type that tells of all types.
pub(super) const DEFINITIONS_KIND: &str = "ResourceDefinitions.meta.cosi.dev";

/// Every type that is emulated.
pub(super) const DEFINITIONS: &[Definition] = &[
    Definition {
        aliases: &["address", "addresses"],
        ..open(
            "AddressStatuses.net.talos.dev",
            "AddressStatus",
            "network",
            &[("Address", "{.address}"), ("Link", "{.linkName}")],
        )
    },
    open(
        "Affiliates.cluster.talos.dev",
        "Affiliate",
        "cluster",
        &[
            ("Hostname", "{.hostname}"),
            ("Machine Type", "{.machineType}"),
            ("Addresses", "{.addresses}"),
        ],
    ),
    open("Diagnostics.runtime.talos.dev", "Diagnostic", "runtime", &[("Message", "{.message}")]),
    open(
        "Disks.block.talos.dev",
        "Disk",
        "runtime",
        &[
            ("Size", "{.pretty_size}"),
            ("Read Only", "{.readonly}"),
            ("Transport", "{.transport}"),
            ("Rotational", "{.rotational}"),
            ("WWID", "{.wwid}"),
            ("Model", "{.model}"),
            ("Serial", "{.serial}"),
        ],
    ),
    open("EtcdMembers.etcd.talos.dev", "EtcdMember", "etcd", &[("Member ID", "{.memberID}")]),
    Definition {
        aliases: &["extensions"],
        ..open(
            "ExtensionStatuses.runtime.talos.dev",
            "ExtensionStatus",
            "runtime",
            &[("Name", "{.metadata.name}"), ("Version", "{.metadata.version}")],
        )
    },
    Definition {
        aliases: &["hostname"],
        ..open(
            "HostnameStatuses.net.talos.dev",
            "HostnameStatus",
            "network",
            &[("Hostname", "{.hostname}"), ("Domainname", "{.domainname}")],
        )
    },
    open("Identities.cluster.talos.dev", "Identity", "cluster", &[("ID", "{.nodeId}")]),
    Definition {
        sensitive: true,
        ..open("MachineConfigs.config.talos.dev", "MachineConfig", "config", &[])
    },
    open(
        "MachineStatuses.runtime.talos.dev",
        "MachineStatus",
        "runtime",
        &[("Stage", "{.stage}"), ("Ready", "{.status.ready}")],
    ),
    open(
        "Members.cluster.talos.dev",
        "Member",
        "cluster",
        &[
            ("Hostname", "{.hostname}"),
            ("Machine Type", "{.machineType}"),
            ("OS", "{.operatingSystem}"),
            ("Addresses", "{.addresses}"),
        ],
    ),
    open("Nodenames.kubernetes.talos.dev", "Nodename", "k8s", &[("Nodename", "{.nodename}")]),
    Definition {
        aliases: &["api-resources"],
        ..open(DEFINITIONS_KIND, "ResourceDefinition", "meta", &[("Aliases", "{.aliases[:]}")])
    },
    Definition {
        aliases: &["svc"],
        ..open(
            "Services.v1alpha1.talos.dev",
            "Service",
            "runtime",
            &[
                ("Running", "{.running}"),
                ("Healthy", "{.healthy}"),
                ("Health Unknown", "{.unknown}"),
            ],
        )
    },
    open("SystemDisks.block.talos.dev", "SystemDisk", "runtime", &[("Disk", "{.diskID}")]),
    open(
        "SystemInformations.hardware.talos.dev",
        "SystemInformation",
        "hardware",
        &[
            ("Manufacturer", "{.manufacturer}"),
            ("ProductName", "{.productName}"),
            ("Version", "{.version}"),
            ("SerialNumber", "{.serialnumber}"),
            ("UUID", "{.uuid}"),
            ("WakeUpType", "{.wakeUpType}"),
            ("SKUNumber", "{.skuNumber}"),
        ],
    ),
    open("TimeStatuses.v1alpha1.talos.dev", "TimeStatus", "runtime", &[("Synced", "{.synced}")]),
    open("Versions.runtime.talos.dev", "Version", "runtime", &[("Version", "{.version}")]),
    open(
        "VolumeStatuses.block.talos.dev",
        "VolumeStatus",
        "runtime",
        &[
            ("Type", "{.type}"),
            ("Phase", "{.phase}"),
            ("Location", "{.location}"),
            ("Size", "{.prettySize}"),
        ],
    ),
];

/// The types that are emulated, with their namespaces.
pub(crate) fn known_resources() -> Vec<(&'static str, &'static str)> {
    DEFINITIONS.iter().map(|definition| (definition.kind, definition.namespace)).collect()
}

impl Talos {
    /// The resources of a type in a namespace.
    pub(super) fn resources(
        &self,
        vmid: u32,
        namespace: &str,
        kind: &str,
        admin: bool,
    ) -> Result<Vec<ResourceShown>, Refusal> {
        let denied = |text: String| Err(Refusal::new(Code::PermissionDenied, text));
        let Some(definition) = DEFINITIONS.iter().find(|definition| definition.kind == kind) else {
            return denied(format!("resource type \"{kind}\" is not supported"));
        };
        let machine = self.machines.get(&vmid).ok_or_else(Refusal::gone)?;
        if definition.sensitive && !(admin && machine.api == Api::Secure) {
            return denied("not authorized".to_owned());
        }
        // What the discovery service said is also there as it came.
        let raw = kind == "Affiliates.cluster.talos.dev" && namespace == "cluster-raw";
        if definition.namespace != namespace && !raw {
            return Ok(Vec::new());
        }
        let found = self.specs(vmid, machine, definition);
        let noted = &machine.noted;
        let shown = |(id, spec): (String, Value)| {
            let status = kind == "MachineStatuses.runtime.talos.dev";
            let (version, times) = if status {
                (noted.version, noted.times)
            } else {
                (1, (machine.booted, machine.booted))
            };
            let owner = if status { "runtime.MachineStatusController" } else { "" };
            ResourceShown { id, version, times, owner, spec }
        };
        Ok(found.into_iter().map(shown).collect())
    }

    fn specs(&self, vmid: u32, machine: &Machine, kind: &Definition) -> Vec<(String, Value)> {
        let one = |id: &str, spec: Value| vec![(id.to_owned(), spec)];
        let cluster = machine.cluster().filter(|_| machine.wanted.discovery);
        let configured = machine.config().is_some();
        match kind.display {
            "AddressStatus" => self.addresses(vmid, machine),
            "Affiliate" => cluster.map(|id| self.affiliates(id)).unwrap_or_default(),
            "Disk" => disks(machine),
            "EtcdMember" => match machine.disk.etcd.filter(|_| machine.running.etcd) {
                Some((_, id)) => one("local", json!({ "memberID": format!("{id:016x}") })),
                None => Vec::new(),
            },
            "ExtensionStatus" => extensions(machine),
            "HostnameStatus" => {
                one("hostname", json!({ "hostname": machine.hostname(), "domainname": "" }))
            }
            "Identity" => match machine.disk.identity.as_ref().filter(|_| configured) {
                Some(identity) => one("local", json!({ "nodeId": identity })),
                None => Vec::new(),
            },
            "MachineConfig" => match machine.config() {
                Some(config) => one("v1alpha1", Value::String(config.text.0.clone())),
                None => Vec::new(),
            },
            "MachineStatus" => one("machine", machine.noted.status.clone()),
            "Member" => cluster.map(|id| self.cluster_members(id)).unwrap_or_default(),
            "Nodename" if configured => {
                let name = machine.hostname();
                let spec = json!({ "nodename": name, "hostnameVersion": "1", "skipNodeRegistration": false });
                one("nodename", spec)
            }
            "ResourceDefinition" => {
                DEFINITIONS.iter().map(|d| (d.kind.to_lowercase(), d.shown())).collect()
            }
            "Service" => services(machine),
            "SystemDisk" => one("system-disk", json!({ "diskID": "sda", "devPath": "/dev/sda" })),
            "SystemInformation" => one("systeminformation", system_information(machine)),
            "TimeStatus" => {
                let synced = !machine.troubles.clock_astray;
                one("node", json!({ "synced": synced, "epoch": 0, "syncDisabled": false }))
            }
            "Version" => one("version", json!({ "version": machine.version() })),
            "VolumeStatus" => volumes(machine),
            _ => Vec::new(),
        }
    }

    fn addresses(&self, vmid: u32, machine: &Machine) -> Vec<(String, Value)> {
        let own = machine.address().map(|address| format!("{address}/24"));
        let shared = self.held_vip(vmid).map(|address| format!("{address}/32"));
        shared
            .into_iter()
            .chain(own)
            .map(|address| {
                let spec = json!({ "address": address, "linkName": "eth0", "family": "inet4" });
                (format!("eth0/{address}"), spec)
            })
            .collect()
    }
}

impl Definition {
    /// All names that a resource of this type can be asked for by.
    pub(super) fn all_aliases(&self) -> Vec<String> {
        let (name, suffix) = self.kind.split_once('.').unwrap_or((self.kind, ""));
        let name = name.to_lowercase();
        let mut all: Vec<String> = vec![name.clone()];
        let parts: Vec<&str> = suffix.split('.').collect();
        all.extend((1..parts.len()).map(|end| format!("{name}.{}", parts[..end].join("."))));
        all.extend(self.short_aliases());
        all
    }

    /// The names that are shown: the given ones, the singular, and the capitals of the full name.
    pub(super) fn short_aliases(&self) -> Vec<String> {
        let mut short: Vec<String> = self.aliases.iter().map(|&alias| alias.to_owned()).collect();
        short.push(self.display.to_lowercase());
        let name = self.kind.split('.').next().unwrap_or_default();
        let capitals: String = name.chars().filter(char::is_ascii_uppercase).collect();
        if capitals.len() > 1 {
            short.push(capitals.to_lowercase());
            if !capitals.ends_with('S') {
                short.push(format!("{}s", capitals.to_lowercase()));
            }
        }
        short
    }

    fn shown(&self) -> Value {
        let columns: Vec<Value> = self
            .columns
            .iter()
            .map(|(name, path)| json!({ "name": name, "jsonPath": path }))
            .collect();
        let mut shown = json!({
            "type": self.kind,
            "displayType": self.display,
            "defaultNamespace": self.namespace,
            "aliases": self.short_aliases(),
            "allAliases": self.all_aliases(),
            "printColumns": columns,
        });
        if self.sensitive {
            shown["sensitivity"] = "sensitive".into();
        }
        shown
    }
}

fn services(machine: &Machine) -> Vec<(String, Value)> {
    let services = machine.noted.services.values();
    services
        .map(|service| {
            let spec = json!({
                "running": service.state == "Running",
                "healthy": service.healthy == Some(true),
                "unknown": service.healthy.is_none(),
            });
            (service.id.clone(), spec)
        })
        .collect()
}

fn disks(machine: &Machine) -> Vec<(String, Value)> {
    let data = machine.data_disk().map(|size| ("sdb", size));
    let all = [("sda", machine.facts.disk_gib)].into_iter().chain(data);
    all.map(|(name, gib)| {
        let spec = json!({
            "dev_path": format!("/dev/{name}"),
            "size": gib << 30,
            "pretty_size": pretty(gib),
            "io_size": 512,
            "sector_size": 512,
            "readonly": false,
            "cdrom": false,
            "model": "QEMU HARDDISK",
            "sub_system": "/sys/class/block",
            "transport": "virtio",
            "rotational": true,
        });
        (name.to_owned(), spec)
    })
    .collect()
}

/// A size as people write it, in powers of ten.
fn pretty(gib: u64) -> String {
    let tenths = (gib << 30) / 100_000_000;
    if tenths < 100 {
        format!("{}.{} GB", tenths / 10, tenths % 10)
    } else {
        format!("{} GB", tenths / 10)
    }
}

/// The partitions: a machine without a config has no STATE yet.
fn volumes(machine: &Machine) -> Vec<(String, Value)> {
    let ready = |index: u8| json!({ "type": "partition", "phase": "ready", "location": format!("/dev/sda{index}") });
    let meta = ("META".to_owned(), ready(4));
    if machine.config().is_none() {
        let missing = json!({ "type": "partition", "phase": "missing" });
        return vec![meta, ("STATE".to_owned(), missing)];
    }
    let mut ephemeral = ready(6);
    ephemeral["size"] = (machine.facts.disk_gib << 30).into();
    ephemeral["prettySize"] = pretty(machine.facts.disk_gib).into();
    vec![("EPHEMERAL".to_owned(), ephemeral), meta, ("STATE".to_owned(), ready(5))]
}

fn system_information(machine: &Machine) -> Value {
    json!({
        "manufacturer": "QEMU",
        "productName": "Standard PC (Q35 + ICH9, 2009)",
        "version": "pc-q35-9.2",
        "serialnumber": "",
        "uuid": machine.facts.uuid,
        "wakeUpType": "Power Switch",
        "skuNumber": "",
    })
}

/// The image's extensions and, as the last of them, the schematic it was made from.
fn extensions(machine: &Machine) -> Vec<(String, Value)> {
    let extension = |name: &str, version: &str, author: &str| {
        json!({
            "image": format!("{name}.sqsh"),
            "metadata": {
                "name": name,
                "version": version,
                "author": author,
                "description": "",
                "compatibility": { "talos": { "version": "" } },
            },
        })
    };
    let version = machine.version();
    let mut found: Vec<Value> = machine
        .extensions()
        .iter()
        .map(|name| name.rsplit('/').next().unwrap_or(name))
        .map(|name| extension(name, &version, "Sidero Labs"))
        .collect();
    found.push(extension("schematic", machine.schematic(), "Image Factory"));
    found.into_iter().enumerate().map(|(index, spec)| (index.to_string(), spec)).collect()
}
