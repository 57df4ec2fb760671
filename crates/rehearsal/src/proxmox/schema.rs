//! The parameters of each call that is served, and what Proxmox says about wrong ones.

use std::collections::BTreeMap;

use super::form::Parameters;
use super::reply::Refusal;
use super::value;

/// One parameter of a call.
pub(super) struct Parameter {
    name: &'static str,
    kind: Kind,
    required: bool,
    /// How many there may be of an indexed one (`scsi0`, `scsi1`, …).
    count: Option<u32>,
}

/// What a parameter holds.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// `0` or `1`.
    Boolean,
    /// A whole number not below the first and not above the second.
    Integer(i64, i64),
    /// The number of a guest.
    VmId,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// A drive: where its volume comes from, and its options.
    Drive,
    /// Text that a function judges; it is given the parameter's name too.
    Judged(fn(&str, &str) -> Result<(), String>),
}

const NO_LIMIT: i64 = i64::MAX;

const fn needed(name: &'static str, kind: Kind) -> Parameter {
    Parameter { name, kind, required: true, count: None }
}

const fn may(name: &'static str, kind: Kind) -> Parameter {
    Parameter { name, kind, required: false, count: None }
}

const fn many(name: &'static str, count: u32, kind: Kind) -> Parameter {
    Parameter { name, kind, required: false, count: Some(count) }
}

/// For calls without parameters.
pub(super) const NOTHING: &[Parameter] = &[];
/// `GET /cluster/resources`.
pub(super) const RESOURCES: &[Parameter] =
    &[may("type", Kind::OneOf(&["vm", "storage", "node", "sdn"]))];
/// `GET /cluster/nextid`.
pub(super) const NEXT_ID: &[Parameter] = &[may("vmid", Kind::VmId)];
/// `GET /access/permissions`.
pub(super) const PERMISSIONS: &[Parameter] = &[may("path", Kind::Text), may("userid", Kind::Text)];
/// `GET /nodes/N/network`.
pub(super) const NETWORK: &[Parameter] = &[may(
    "type",
    Kind::OneOf(&[
        "bridge",
        "bond",
        "eth",
        "alias",
        "vlan",
        "fabric",
        "OVSBridge",
        "OVSBond",
        "OVSPort",
        "OVSIntPort",
        "vnet",
        "any_bridge",
        "any_local_bridge",
        "include_sdn",
    ]),
)];
/// `GET /nodes/N/qemu`.
pub(super) const GUESTS: &[Parameter] = &[may("full", Kind::Boolean)];
/// `GET /nodes/N/storage`.
pub(super) const STORAGES: &[Parameter] = &[
    may("content", Kind::Text),
    may("enabled", Kind::Boolean),
    may("format", Kind::Boolean),
    may("storage", Kind::Text),
    may("target", Kind::Text),
];
/// `GET /nodes/N/storage/S/content`.
pub(super) const CONTENT: &[Parameter] = &[may("content", Kind::Text), may("vmid", Kind::VmId)];
/// `DELETE /nodes/N/storage/S/content/V`.
pub(super) const DELETE_VOLUME: &[Parameter] = &[may("delay", Kind::Integer(1, 30))];
/// `POST /nodes/N/storage/S/download-url`.
pub(super) const DOWNLOAD: &[Parameter] = &[
    needed("url", Kind::Judged(value::url)),
    needed("content", Kind::OneOf(&["iso", "vztmpl", "import"])),
    needed("filename", Kind::Text),
    may("checksum", Kind::Text),
    may(
        "checksum-algorithm",
        Kind::OneOf(&["md5", "sha1", "sha224", "sha256", "sha384", "sha512"]),
    ),
    may("compression", Kind::Text),
    may("verify-certificates", Kind::Boolean),
];
/// `GET /nodes/N/qemu/ID/config`.
pub(super) const CONFIG: &[Parameter] =
    &[may("current", Kind::Boolean), may("snapshot", Kind::Text)];
/// `POST /nodes/N/qemu/ID/status/start`.
pub(super) const START: &[Parameter] = &[
    may("skiplock", Kind::Boolean),
    may("timeout", Kind::Integer(0, NO_LIMIT)),
    may("machine", Kind::Text),
    may("force-cpu", Kind::Text),
];
/// `POST /nodes/N/qemu/ID/status/stop`.
pub(super) const STOP: &[Parameter] = &[
    may("skiplock", Kind::Boolean),
    may("timeout", Kind::Integer(0, NO_LIMIT)),
    may("keepActive", Kind::Boolean),
    may("overrule-shutdown", Kind::Boolean),
];
/// `POST /nodes/N/qemu/ID/status/shutdown`.
pub(super) const SHUTDOWN: &[Parameter] = &[
    may("skiplock", Kind::Boolean),
    may("timeout", Kind::Integer(0, NO_LIMIT)),
    may("forceStop", Kind::Boolean),
    may("keepActive", Kind::Boolean),
];
/// `PUT /nodes/N/qemu/ID/resize`.
pub(super) const RESIZE: &[Parameter] = &[
    needed("disk", Kind::Judged(value::disk_name)),
    needed("size", Kind::Judged(value::new_size)),
    may("digest", Kind::Text),
    may("skiplock", Kind::Boolean),
];
/// `DELETE /nodes/N/qemu/ID`.
pub(super) const DESTROY: &[Parameter] = &[
    may("purge", Kind::Boolean),
    may("destroy-unreferenced-disks", Kind::Boolean),
    may("skiplock", Kind::Boolean),
];
/// `GET /nodes/N/tasks`.
pub(super) const TASKS: &[Parameter] = &[
    may("errors", Kind::Boolean),
    may("limit", Kind::Integer(0, NO_LIMIT)),
    may("start", Kind::Integer(0, NO_LIMIT)),
    may("source", Kind::OneOf(&["archive", "active", "all"])),
    may("typefilter", Kind::Text),
    may("userfilter", Kind::Text),
    may("vmid", Kind::VmId),
];
/// `GET /nodes/N/tasks/UPID/log`.
pub(super) const TASK_LOG: &[Parameter] =
    &[may("limit", Kind::Integer(0, NO_LIMIT)), may("start", Kind::Integer(0, NO_LIMIT))];
/// What a create has beyond a guest's options.
pub(super) const CREATE_EXTRA: &[Parameter] = &[
    needed("vmid", Kind::VmId),
    may("pool", Kind::Text),
    may("storage", Kind::Text),
    may("start", Kind::Boolean),
    may("unique", Kind::Boolean),
];
/// What a change of config has beyond a guest's options.
pub(super) const UPDATE_EXTRA: &[Parameter] = &[
    may("delete", Kind::Text),
    may("digest", Kind::Text),
    may("force", Kind::Boolean),
    may("skiplock", Kind::Boolean),
];
/// The options of a guest, as they stand in its config.
pub(super) const OPTIONS: &[Parameter] = &[
    may("acpi", Kind::Boolean),
    may("agent", Kind::Text),
    may("args", Kind::Text),
    may("balloon", Kind::Integer(0, NO_LIMIT)),
    may("bios", Kind::OneOf(&["seabios", "ovmf"])),
    may("boot", Kind::Judged(value::boot)),
    may("cicustom", Kind::Text),
    may("cipassword", Kind::Text),
    may("citype", Kind::OneOf(&["configdrive2", "nocloud", "opennebula"])),
    may("ciuser", Kind::Text),
    may("cores", Kind::Integer(1, NO_LIMIT)),
    may("cpu", Kind::Text),
    may("cpuunits", Kind::Integer(1, 262_144)),
    may("description", Kind::Text),
    may("efidisk0", Kind::Drive),
    may("hotplug", Kind::Text),
    many("ide", 4, Kind::Drive),
    many("ipconfig", 32, Kind::Judged(value::ip_config)),
    may("kvm", Kind::Boolean),
    may("lock", Kind::Text),
    may("machine", Kind::Text),
    may("memory", Kind::Judged(value::memory)),
    may("name", Kind::Judged(value::dns_name)),
    may("nameserver", Kind::Judged(value::addresses)),
    many("net", 32, Kind::Judged(value::net)),
    may("numa", Kind::Boolean),
    may("onboot", Kind::Boolean),
    may(
        "ostype",
        Kind::OneOf(&[
            "other", "wxp", "w2k", "w2k3", "w2k8", "wvista", "win7", "win8", "win10", "win11",
            "l24", "l26", "solaris",
        ]),
    ),
    may("protection", Kind::Boolean),
    may("rng0", Kind::Text),
    many("sata", 6, Kind::Drive),
    many("scsi", 31, Kind::Drive),
    may(
        "scsihw",
        Kind::OneOf(&[
            "lsi",
            "lsi53c810",
            "virtio-scsi-pci",
            "virtio-scsi-single",
            "megasas",
            "pvscsi",
        ]),
    ),
    may("searchdomain", Kind::Text),
    many("serial", 4, Kind::Text),
    may("smbios1", Kind::Judged(value::smbios)),
    may("sockets", Kind::Integer(1, NO_LIMIT)),
    may("sshkeys", Kind::Judged(value::url_encoded)),
    may("startup", Kind::Text),
    may("tablet", Kind::Boolean),
    may("tags", Kind::Judged(value::tags)),
    may("template", Kind::Boolean),
    may("tpmstate0", Kind::Drive),
    many("unused", 256, Kind::Text),
    may("vga", Kind::Text),
    many("virtio", 16, Kind::Drive),
    may("vmgenid", Kind::Text),
    may("watchdog", Kind::Text),
];

/// Judges the parameters of a call by its tables, all at once.
pub(super) fn verify(given: &Parameters, tables: &[&[Parameter]]) -> Result<(), Refusal> {
    let mut errors = BTreeMap::new();
    for (name, value) in given {
        match find(name, tables) {
            None => {
                let text = "property is not defined in schema and the schema does not allow \
                            additional properties";
                errors.insert(name.clone(), text.to_owned());
            }
            Some(parameter) => {
                if let Err(text) = judge(parameter.kind, name, value) {
                    errors.insert(name.clone(), text);
                }
            }
        }
    }
    for parameter in tables.iter().copied().flatten() {
        if parameter.required && !given.contains_key(parameter.name) {
            let text = "property is missing and it is not optional";
            errors.insert(parameter.name.to_owned(), text.to_owned());
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(Refusal::Invalid(errors)) }
}

/// The kind of a guest's option, by its full name.
pub(super) fn option_kind(name: &str) -> Option<Kind> {
    find(name, &[OPTIONS]).map(|parameter| parameter.kind)
}

fn find<'a>(name: &str, tables: &[&'a [Parameter]]) -> Option<&'a Parameter> {
    tables.iter().copied().flatten().find(|parameter| match parameter.count {
        None => parameter.name == name,
        Some(count) => name
            .strip_prefix(parameter.name)
            .filter(|rest| *rest == "0" || !rest.starts_with(['0', '+']))
            .and_then(|rest| rest.parse::<u32>().ok())
            .is_some_and(|index| index < count),
    })
}

fn judge(kind: Kind, name: &str, value: &str) -> Result<(), String> {
    match kind {
        Kind::Text => Ok(()),
        Kind::Boolean if value == "0" || value == "1" => Ok(()),
        Kind::Boolean => Err(format!("type check ('boolean') failed - got '{value}'")),
        Kind::Integer(low, high) => {
            let number = value::integer(value)?;
            if number < low {
                return Err(format!("value must have a minimum value of {low}"));
            }
            if number > high {
                return Err(format!("value must have a maximum value of {high}"));
            }
            Ok(())
        }
        Kind::VmId => match value::integer(value)? {
            100..=999_999_999 => Ok(()),
            _ => Err("invalid format - value does not look like a valid VM ID\n".to_owned()),
        },
        Kind::OneOf(values) if values.contains(&value) => Ok(()),
        Kind::OneOf(values) => Err(value::not_listed(value, values)),
        Kind::Drive => value::drive(name, value),
        Kind::Judged(judge) => judge(name, value),
    }
}
