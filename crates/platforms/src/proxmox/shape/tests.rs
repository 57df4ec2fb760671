//! What a VM is made with, and what is found to differ.

use std::collections::BTreeMap;

use castle_config::example;
use castle_model::VmId;
use castle_model::spec::Role;
use castle_proxmox::Config;

use super::super::mark::Mark;
use super::super::wanted::{VmNode, Wanted};
use super::{Difference, difference, parameters};

fn wanted() -> Wanted {
    Wanted::of(&example()).unwrap()
}

fn worker(wanted: &Wanted) -> &VmNode {
    wanted.nodes.iter().find(|node| node.role == Role::Worker).unwrap()
}

fn mark() -> Mark {
    Mark {
        castle: "blue".parse().unwrap(),
        incarnation: "0011223344556677".parse().unwrap(),
        node: "worker-01".parse().unwrap(),
        vmid: VmId(431),
    }
}

#[test]
fn a_worker_is_made_with_two_disks_and_a_fixed_address() {
    let spec = wanted();
    let worker = worker(&spec);
    let parameters = parameters(&spec, worker, &mark(), "local:import/talos.qcow2");
    let shown: Vec<String> = parameters
        .iter()
        .filter(|(key, _)| *key != "description")
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    vmid = 431
    name = blue-worker-01
    tags = castle;castle-blue;inc-0011223344556677
    smbios1 = uuid=4bc7c51d-1010-8718-90a5-60fff2010b51
    ostype = l26
    machine = q35
    bios = ovmf
    efidisk0 = local-lvm:1,efitype=4m,pre-enrolled-keys=0
    cpu = host
    sockets = 1
    cores = 4
    memory = 8192
    balloon = 0
    scsihw = virtio-scsi-pci
    scsi0 = local-lvm:0,import-from=local:import/talos.qcow2,discard=on
    scsi1 = local-lvm:100,discard=on
    ide2 = local-lvm:cloudinit
    ipconfig0 = ip=192.168.1.214/24,gw=192.168.1.1
    nameserver = 192.168.1.1
    net0 = virtio,bridge=vmbr0
    boot = order=scsi0
    onboot = 1
    agent = 1
    ");
}

/// The worker as Proxmox shows it, with some values changed.
fn shown(changed: &[(&str, &str)]) -> Difference {
    let spec = wanted();
    let worker = worker(&spec);
    let mut config = BTreeMap::from(
        [
            ("name", "blue-worker-01"),
            ("cpu", "host"),
            ("sockets", "1"),
            ("nameserver", "192.168.1.1"),
            ("boot", "order=scsi0"),
            ("agent", "1"),
            ("cores", "4"),
            ("memory", "8192"),
            ("balloon", "0"),
            ("onboot", "1"),
            ("machine", "q35"),
            ("bios", "ovmf"),
            ("scsihw", "virtio-scsi-pci"),
            ("scsi0", "local-lvm:vm-431-disk-1,discard=on,size=40G"),
            ("scsi1", "local-lvm:vm-431-disk-2,discard=on,size=100G"),
            ("ipconfig0", "ip=192.168.1.214/24,gw=192.168.1.1"),
            ("net0", "virtio=BC:24:11:53:94:FD,bridge=vmbr0"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    for (key, value) in changed {
        config.insert((*key).to_owned(), (*value).to_owned());
    }
    difference(&spec, worker, &Config(config))
}

#[test]
fn a_vm_as_wanted_differs_in_nothing() {
    assert_eq!(shown(&[]), Difference::default());
}

#[test]
fn a_setting_may_be_written_in_more_than_one_way() {
    let same = [("cpu", "cputype=host"), ("agent", "enabled=1,fstrim_cloned_disks=1")];
    assert_eq!(shown(&same), Difference::default());
}

#[test]
fn what_was_edited_by_hand_is_set_again() {
    for (key, edited, wanted) in [
        ("name", "web", "blue-worker-01"),
        ("cpu", "kvm64", "host"),
        ("sockets", "2", "1"),
        ("nameserver", "9.9.9.9", "192.168.1.1"),
        ("boot", "order=net0;scsi0", "order=scsi0"),
        ("agent", "0", "1"),
        ("onboot", "0", "1"),
    ] {
        let found = shown(&[(key, edited)]);
        assert_eq!(found.settings, [(key, wanted.to_owned())]);
        assert!(found.fixed.is_empty());
    }
}

#[test]
fn what_can_be_mended_is_told_from_what_cannot() {
    let half_made = shown(&[("scsi0", "local-lvm:vm-431-disk-1,size=1246M"), ("memory", "4096")]);
    assert!(half_made.fixed.is_empty());
    assert_eq!(half_made.grow, Some(40));
    assert_eq!(half_made.words(), "memory 4096 -> 8192 MiB, system disk 1 -> 40 GiB");

    let single = shown(&[("scsihw", "virtio-scsi-single"), ("balloon", "2048")]);
    assert_eq!(single.settings, [("balloon", "0".to_owned())]);
    assert_eq!(single.fixed, ["its scsihw is virtio-scsi-single, not virtio-scsi-pci"]);

    let moved = shown(&[
        ("ipconfig0", "ip=192.168.1.99/24,gw=192.168.1.1"),
        ("scsi1", "local-lvm:vm-431-disk-2,size=200G"),
        ("net0", "virtio=BC:24:11:53:94:FD,bridge=vmbr01"),
    ]);
    assert_eq!(moved.fixed.len(), 3);
    assert!(moved.words().contains("its network is not vmbr0"), "{}", moved.words());
}
