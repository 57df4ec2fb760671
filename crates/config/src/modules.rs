//! Kernel modules that a castle file should not list, each with its reason.

/// Modules for iSCSI, by their names and by names that were invented for them.
const ISCSI: &[&str] =
    &["iscsi_generic", "iscsi_tcp", "libiscsi", "libiscsi_tcp", "scsi_transport_iscsi"];

/// What speaks against loading a kernel module on Talos, if anything does.
#[must_use]
pub fn module_finding(name: &str) -> Option<String> {
    if name == "iscsi_generic" {
        return Some(
            "there is no kernel module `iscsi_generic`; Longhorn needs the extension \
             siderolabs/iscsi-tools, which loads what it needs itself"
                .to_owned(),
        );
    }
    if ISCSI.contains(&name) {
        return Some(format!(
            "`{name}` need not be listed: the extension siderolabs/iscsi-tools loads the modules of iSCSI itself"
        ));
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.is_empty() || !name.bytes().all(is_name) {
        return Some(format!("`{name}` can not be the name of a kernel module"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_iscsi_are_found_with_the_reason() {
        for name in ISCSI {
            assert!(module_finding(name).unwrap().contains("siderolabs/iscsi-tools"), "{name}");
        }
        assert!(module_finding("iscsi_generic").unwrap().contains("no kernel module"));
        for name in ["nvme_tcp", "vfio_pci", "ublk_drv", "dm-crypt"] {
            assert_eq!(module_finding(name), None, "{name}");
        }
        for name in ["", "a b", "x;y", "../z"] {
            assert!(module_finding(name).unwrap().contains("can not be"), "{name}");
        }
    }
}
