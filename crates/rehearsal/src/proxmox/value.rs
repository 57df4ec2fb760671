//! Values as Proxmox keeps them, where that is not as they were given.

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

/// Tags as Proxmox keeps them: lower case, each once, in order, parted by `;`.
pub(super) fn normal_tags(value: &str) -> String {
    let parts = value.split([';', ',', ' ']).filter(|tag| !tag.is_empty());
    let mut tags: Vec<String> = parts.map(str::to_ascii_lowercase).collect();
    tags.sort();
    tags.dedup();
    tags.join(";")
}
