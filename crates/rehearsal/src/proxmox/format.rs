//! The formats that the schema names: what Proxmox' own functions say about a value.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::pattern::fits;
use super::property::bytes;
use super::schema::schema;

/// Names in storages, pools and configs.
const STORAGE_ID: &str = r"[a-zA-Z][a-zA-Z0-9\-_\.]*[a-zA-Z0-9]";
const CONFIG_ID: &str = r"[a-zA-Z][a-zA-Z0-9\-_]+";
const POOL_ID: &str = r"[A-Za-z0-9\.\-_]+(/[A-Za-z0-9\.\-_]+){,2}";
const TAG: &str = r"[a-zA-Z0-9_][a-zA-Z0-9_\-\+\.]*";
const LABEL: &str = r"([a-zA-Z0-9]([a-zA-Z0-9\-]*[a-zA-Z0-9])?)";

/// Judges a value by the name of a format.
///
/// # Errors
/// The words of the real function, with the line end that it has.
pub(super) fn check(format: &str, value: &str) -> Result<(), String> {
    if let Some(single) = format.strip_suffix("-list") {
        let mut pieces = value.split([';', ',', ' ', '\t', '\n', '\0']).filter(|p| !p.is_empty());
        return pieces.try_for_each(|piece| check(single, piece));
    }
    let looks = |fine: bool, what: &str| {
        says(fine, || format!("value does not look like a valid {what}\n"))
    };
    match format {
        "pve-vmid" => looks(is_vmid(value), "VM ID"),
        "pve-node" => looks(fits(LABEL, value), "node name"),
        "dns-name" => looks(is_dns_name(value), "DNS name"),
        "ipv4" => looks(value.parse::<Ipv4Addr>().is_ok(), "IPv4 address"),
        "ipv6" => looks(value.parse::<Ipv6Addr>().is_ok(), "IPv6 address"),
        "pve-ipv4-config" => {
            let fine = value == "dhcp" || is_network(value, 32, |a| a.parse::<Ipv4Addr>().is_ok());
            looks(fine, "ipv4 network configuration")
        }
        "pve-ipv6-config" => {
            let fine = matches!(value, "auto" | "dhcp")
                || is_network(value, 128, |a| a.parse::<Ipv6Addr>().is_ok());
            looks(fine, "ipv6 network configuration")
        }
        "CIDR" => {
            let fine = is_network(value, 128, |a| a.parse::<IpAddr>().is_ok());
            looks(fine, "CIDR network")
        }
        "address" => {
            let fine = value.parse::<IpAddr>().is_ok() || is_dns_name(value);
            says(fine, || format!("value does not look like a valid address: {value}\n"))
        }
        "mac-addr" => looks(is_unicast_mac(value), "unicast MAC address"),
        "pve-phys-bits" => {
            let fine =
                value == "host" || value.parse().is_ok_and(|bits: u8| (8..=64).contains(&bits));
            looks(fine, "phys-bits")
        }
        other => check_more(other, value),
    }
}

fn check_more(format: &str, value: &str) -> Result<(), String> {
    match format {
        "pve-storage-id" => says(fits(STORAGE_ID, value), || {
            format!("storage ID '{value}' contains illegal characters\n")
        }),
        "pve-configid" => {
            says(fits(CONFIG_ID, value), || format!("invalid configuration ID '{value}'\n"))
        }
        "pve-poolid" => says(fits(POOL_ID, value), || {
            format!("pool name '{value}' contains invalid characters\n")
        }),
        "pve-bridge-id" => says(fits(r"[-_.\d a-zA-Z]+", value) && !value.contains(' '), || {
            format!("invalid bridge ID '{value}'\n")
        }),
        "pve-tag" => says(fits(TAG, value), || "invalid characters in tag\n".to_owned()),
        "urlencoded" => says(fits(r"[-%a-zA-Z0-9_.!~*'()]*", value), || {
            format!("invalid urlencoded string: {value}\n")
        }),
        "disk-size" => says(bytes(value).is_some(), || {
            format!("value does not look like a valid disk size: {value}\n")
        }),
        "pve-volume-id" => volume_id(value),
        "pve-volume-id-or-qm-path" => match value {
            "none" | "cdrom" => Ok(()),
            path if path.starts_with('/') => Ok(()),
            other => volume_id(other),
        },
        "pve-volume-id-or-absolute-path" => {
            if value.starts_with('/') {
                Ok(())
            } else {
                volume_id(value)
            }
        }
        "pve-qm-bootdisk" => {
            says(schema().is_drive(value), || format!("invalid boot disk '{value}'\n"))
        }
        "pve-qm-bootdev" => {
            let stem = value.trim_end_matches(|c: char| c.is_ascii_digit());
            let device =
                matches!(stem, "net" | "usb" | "hostpci") && schema().option(value).is_some();
            says(device || schema().is_drive(value), || format!("invalid boot device '{value}'\n"))
        }
        "pve-startup-order" => {
            let fine =
                fits(r"((order=)?\d+|up=\d+|down=\d+)(,((order=)?\d+|up=\d+|down=\d+))*", value);
            says(fine, || "unable to parse startup options\n".to_owned())
        }
        "pve-hotplug-features" => {
            let feature = "(network|disk|cpu|memory|usb|cloudinit)";
            let fine = fits(&format!("[01]|{feature}([;, ]{feature})*"), value);
            says(fine, || "unable to parse hotplug option\n".to_owned())
        }
        "pve-cpuset" => says(fits(r"\d+(-\d+)?(,\d+(-\d+)?)*", value), || {
            format!("unable to parse cpuset '{value}'\n")
        }),
        "pve-storage-content" => {
            let known =
                ["backup", "images", "import", "iso", "none", "rootdir", "snippets", "vztmpl"];
            says(known.contains(&value), || format!("invalid content type '{value}'\n"))
        }
        "pve-task-status-type" => {
            says(["ok", "error", "warning", "unknown"].contains(&value), || {
                format!("invalid status type '{value}'\n")
            })
        }
        "storage-pair" => {
            let fine = value == "1" || value.split(':').all(|storage| fits(STORAGE_ID, storage));
            says(fine, || format!("storage pair '{value}' contains illegal characters\n"))
        }
        // A name that nobody here knows takes nothing, so that it is noticed.
        unknown => Err(format!("no such format '{unknown}'\n")),
    }
}

fn says(fine: bool, words: impl FnOnce() -> String) -> Result<(), String> {
    if fine { Ok(()) } else { Err(words()) }
}

fn is_vmid(value: &str) -> bool {
    fits(r"[1-9]\d{2,8}", value)
}

fn is_dns_name(value: &str) -> bool {
    value.split('.').all(|label| label.len() <= 63 && fits(LABEL, label))
}

fn is_network(value: &str, most: u8, address: impl Fn(&str) -> bool) -> bool {
    value.split_once('/').is_some_and(|(host, bits)| {
        address(host) && bits.parse().is_ok_and(|bits: u8| bits <= most)
    })
}

fn is_unicast_mac(value: &str) -> bool {
    let first = value.get(..2).and_then(|byte| u8::from_str_radix(byte, 16).ok());
    fits("[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", value) && first.is_some_and(|byte| byte & 1 == 0)
}

fn volume_id(value: &str) -> Result<(), String> {
    let fine = value.split_once(':').is_some_and(|(storage, name)| {
        fits(STORAGE_ID, storage) && !name.is_empty() && !name.contains(char::is_whitespace)
    });
    says(fine, || format!("unable to parse volume ID '{value}'\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_of_the_schema_is_known() {
        for name in schema().format_names() {
            let words = check(name, "\u{1}").unwrap_err();
            assert!(!words.starts_with("no such format"), "{name}");
        }
    }

    #[test]
    fn values_are_judged_by_their_format() {
        for (format, good, bad) in [
            ("pve-vmid", &["100", "999999999"][..], &["99", "1000000000", "0100"][..]),
            ("dns-name", &["a", "blue-cp-01", "a.b"], &["", "a_b", "-a", "a-", "bad_name!"]),
            ("mac-addr", &["BC:24:11:04:74:6B"], &["BD:24:11:04:74:6B", "BC:24"]),
            ("address-list", &["192.168.1.1 ::1", "ns.lan"], &["a_b", "1.1.1.1;b_d"]),
            ("pve-qm-bootdev-list", &["scsi0;net0", "ide2"], &["scsi31", "disk0", "scsi0;x"]),
            ("pve-volume-id", &["local:iso/a.iso"], &["local", ":a", "a b:c"]),
            ("pve-startup-order", &["1", "order=1,up=5"], &["first", "up=x"]),
            ("pve-tag-list", &["a;B_c", "a,b c+d"], &["b@d", "ok;ü"]),
        ] {
            for value in good {
                assert_eq!(check(format, value), Ok(()), "{format} {value}");
            }
            for value in bad {
                // An empty list has nothing wrong in it.
                assert!(check(format, value).is_err(), "{format} {value}");
            }
        }
    }
}
