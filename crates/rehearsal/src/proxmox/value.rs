//! What Proxmox thinks of single values: names, sizes, addresses, drives, in its own words.

use std::net::{IpAddr, Ipv4Addr};

use super::property::{Property, bytes, format_error};
use super::schema::{Kind, option_kind};

/// A whole number.
pub(super) fn integer(value: &str) -> Result<i64, String> {
    value.parse().map_err(|_| format!("type check ('integer') failed - got '{value}'"))
}

/// The words for a value that is not among those allowed.
pub(super) fn not_listed(value: &str, values: &[&str]) -> String {
    format!("value '{value}' does not have a value in the enumeration '{}'", values.join(", "))
}

fn pattern() -> String {
    "value does not match the regex pattern".to_owned()
}

/// Something that can be downloaded.
pub(super) fn url(_: &str, value: &str) -> Result<(), String> {
    if value.starts_with("http://") || value.starts_with("https://") {
        Ok(())
    } else {
        Err(pattern())
    }
}

/// A size, or by how much a disk shall grow.
pub(super) fn new_size(_: &str, value: &str) -> Result<(), String> {
    let number = value.strip_prefix('+').unwrap_or(value);
    if bytes(number).is_some() { Ok(()) } else { Err(pattern()) }
}

/// The name of a drive.
pub(super) fn disk_name(_: &str, value: &str) -> Result<(), String> {
    match option_kind(value) {
        Some(Kind::Drive) => Ok(()),
        // The real list of names fills a screen; its beginning is enough to know it by.
        _ => Err(not_listed(value, &["ide0", "ide1", "ide2", "ide3", "scsi0", "…"])),
    }
}

/// A host name.
pub(super) fn dns_name(_: &str, value: &str) -> Result<(), String> {
    let label = |text: &str| {
        (1..=63).contains(&text.len())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            && !text.starts_with('-')
            && !text.ends_with('-')
    };
    if value.split('.').all(label) {
        Ok(())
    } else {
        Err("invalid format - value does not look like a valid DNS name\n".to_owned())
    }
}

/// A list of tags.
pub(super) fn tags(_: &str, value: &str) -> Result<(), String> {
    let first = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let other = |c: char| first(c) || matches!(c, '-' | '+' | '.');
    if split_tags(value).all(|tag| tag.starts_with(first) && tag.chars().all(other)) {
        Ok(())
    } else {
        Err("invalid format - invalid characters in tag\n".to_owned())
    }
}

fn split_tags(value: &str) -> impl Iterator<Item = &str> {
    value.split([';', ',', ' ']).filter(|tag| !tag.is_empty())
}

/// Tags as Proxmox keeps them: lower case, each once, in order, parted by `;`.
pub(super) fn normal_tags(value: &str) -> String {
    let mut tags: Vec<String> = split_tags(value).map(str::to_ascii_lowercase).collect();
    tags.sort();
    tags.dedup();
    tags.join(";")
}

/// Memory in MiB.
pub(super) fn memory(name: &str, value: &str) -> Result<(), String> {
    let number = value.strip_prefix("current=").unwrap_or(value);
    let number = integer(number).map_err(|text| format_error(name, "current", &text))?;
    if number < 16 {
        let text = "value must have a minimum value of 16";
        return Err(format_error(name, "current", text));
    }
    Ok(())
}

/// A list of addresses.
pub(super) fn addresses(_: &str, value: &str) -> Result<(), String> {
    let listed = value.split([' ', ',', ';']).filter(|piece| !piece.is_empty());
    for address in listed {
        if address.parse::<IpAddr>().is_err() {
            return Err("invalid format - value does not look like a valid IP address\n".to_owned());
        }
    }
    Ok(())
}

/// Text that is encoded once more inside the value.
pub(super) fn url_encoded(_: &str, value: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.!~*'()%".contains(c);
    if value.chars().all(plain) {
        Ok(())
    } else {
        Err(format!("invalid format - invalid urlencoded string: {value}\n"))
    }
}

/// The order of boot devices.
pub(super) fn boot(name: &str, value: &str) -> Result<(), String> {
    let property = Property::parse(value, Some("legacy"))?;
    property.only(name, &["order"])?;
    let legacy = property.default.filter(|text| text != " ");
    if legacy.is_some_and(|text| !text.chars().all(|c| "acdn".contains(c))) {
        return Err(format_error(name, "legacy", &pattern()));
    }
    for device in property.options.get("order").iter().flat_map(|order| order.split(';')) {
        if option_kind(device).is_none() {
            return Err(format_error(name, "order", "invalid boot device"));
        }
    }
    Ok(())
}

/// What the firmware tells about the machine.
pub(super) fn smbios(name: &str, value: &str) -> Result<(), String> {
    let known = ["base64", "family", "manufacturer", "product", "serial", "sku", "uuid", "version"];
    let property = Property::parse(value, None)?;
    property.only(name, &known)?;
    let Some(uuid) = property.options.get("uuid") else { return Ok(()) };
    let shape: Vec<usize> = uuid.split('-').map(str::len).collect();
    let digits = uuid.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    if shape == [8, 4, 4, 4, 12] && digits {
        Ok(())
    } else {
        Err(format_error(name, "uuid", &pattern()))
    }
}

/// A card's address and gateway.
pub(super) fn ip_config(name: &str, value: &str) -> Result<(), String> {
    let property = Property::parse(value, None)?;
    property.only(name, &["gw", "gw6", "ip", "ip6"])?;
    let network = |text: &str| {
        text == "dhcp"
            || text.split_once('/').is_some_and(|(address, bits)| {
                address.parse::<Ipv4Addr>().is_ok() && bits.parse().is_ok_and(|bits: u8| bits <= 32)
            })
    };
    let wrong = |key, what| {
        let text = format!("invalid format - value does not look like a valid {what}\n");
        Err(format_error(name, key, &text))
    };
    if property.options.get("ip").is_some_and(|text| !network(text)) {
        return wrong("ip", "ipv4 network configuration");
    }
    if property.options.get("gw").is_some_and(|text| text.parse::<Ipv4Addr>().is_err()) {
        return wrong("gw", "IPv4 address");
    }
    Ok(())
}

/// Models of network cards.
pub(super) const CARDS: &[&str] = &[
    "e1000",
    "e1000-82540em",
    "e1000-82544gc",
    "e1000-82545em",
    "e1000e",
    "i82551",
    "i82557b",
    "i82559er",
    "ne2k_isa",
    "ne2k_pci",
    "pcnet",
    "rtl8139",
    "virtio",
    "vmxnet3",
];

/// A network card.
pub(super) fn net(name: &str, value: &str) -> Result<(), String> {
    let property = Property::parse(value, Some("model"))?;
    let keys =
        ["bridge", "firewall", "link_down", "macaddr", "mtu", "queues", "rate", "tag", "trunks"];
    let known: Vec<&str> = keys.iter().chain(CARDS).copied().collect();
    if let Some(model) = property.default.as_deref().filter(|model| !CARDS.contains(model)) {
        return Err(format_error(name, "model", &not_listed(model, CARDS)));
    }
    property.only(name, &known)
}

/// A drive.
pub(super) fn drive(name: &str, value: &str) -> Result<(), String> {
    let property = Property::parse(value, Some("file"))?;
    let known: &[&str] = match name {
        "efidisk0" => &["efitype", "format", "import-from", "ms-cert", "pre-enrolled-keys", "size"],
        "tpmstate0" => &["import-from", "size", "version"],
        _ => &[
            "aio",
            "backup",
            "cache",
            "detect_zeroes",
            "discard",
            "format",
            "import-from",
            "iothread",
            "media",
            "replicate",
            "ro",
            "serial",
            "shared",
            "size",
            "ssd",
            "wwn",
        ],
    };
    property.only(name, known)?;
    let Some(file) = &property.default else {
        let text = "property is missing and it is not optional";
        return Err(format_error(name, "file", text));
    };
    let new = file.split_once(':').is_some_and(|(_, rest)| rest == "0");
    if property.options.contains_key("import-from") && !new {
        return Err("'import-from' requires special syntax - use <storage ID>:0,import-from=\
                    <source>"
            .to_owned());
    }
    Ok(())
}
