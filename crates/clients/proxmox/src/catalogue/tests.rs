//! The table of recorded texts: each has its class, and a cure.

use super::*;

/// Answers as they were recorded, and those that the sources name beside them, by class.
const ANSWERS: &[(Class, &[(u16, &str)])] = &[
    (
        Class::Transient,
        &[
            (500, "CT is locked (backup)"),
            (500, "QEMU guest agent is not running"),
            (500, "VM is locked (clone)"),
            (595, "Connection refused"),
            (500, "can't lock file '/var/lock/qemu-server/lock-601.conf' - got timeout"),
            (595, "No route to host"),
            (596, "Connection timed out"),
            (500, "cluster not ready - no quorum?"),
        ],
    ),
    (
        Class::Conflict,
        &[
            (500, "unable to destroy CT 105 - container is running"),
            (500, "unable to get any free VMID"),
            (500, "unable to create VM 421 - VM 421 already exists on node 'pve1'"),
            (400, "Parameter verification failed. vmid: VM 421 already exists"),
            (500, "VM 422 is running - destroy failed"),
            (500, "VM is locked (create)"),
            (500, "you can't convert a VM to template if VM is running"),
            (500, "checksum mismatch (file change by other user?)"),
            (500, "VM 422 is not running"),
            (500, "VM 422 not running"),
            (500, "unable to create VM 422: config file already exists"),
            (500, "you can't convert a template to a template"),
            (500, "can't remove VM 423 - protection mode enabled"),
            (500, "create pool failed: pool 'lab' already exists"),
            (500, "delete pool failed: pool 'lab' is not empty (contains VM 600)"),
            (500, "cannot remove image, a guest with VMID '421' exists!"),
            (500, "unable to create VM 105 - CT 105 already exists on node 'pve1'"),
        ],
    ),
    (
        Class::Denied,
        &[
            (401, "Authentication failed!"),
            (403, "Permission check failed"),
            (403, "Permission check failed (/nodes/pve1, Sys.Audit)"),
            (
                403,
                "Permission check failed (URI '/access/ticket' not available with API token, need proper ticket.",
            ),
            (
                500,
                "Only root can pass arbitrary filesystem paths. at /usr/share/perl5/PVE/Storage.pm line 651.",
            ),
            (500, "only root can set 'lock' config"),
            (400, "Parameter verification failed. skiplock: Only root may use this option."),
            (500, "only root can set 'args' config"),
            (500, "only root can modify 'serial0' config for real devices"),
            (403, "Permission check failed (/vms/601, VM.Audit)"),
            (403, "Permission check failed (/storage/local, Datastore.AllocateTemplate)"),
            (401, "No ticket"),
            (
                403,
                "Permission check failed (/storage/local, Datastore.Audit|Datastore.AllocateSpace)",
            ),
            (403, "Permission check failed (/sdn/zones/localnetwork/vmbr0, SDN.Use)"),
        ],
    ),
    (
        Class::Invalid,
        &[
            (500, "storage 'local' is not available on node 'pve1'"),
            (500, "storage 'local' is disabled"),
            (
                400,
                "Parameter verification failed. storage: storage 'local' does not support vm images",
            ),
            (
                400,
                "Parameter verification failed. vmid: property is missing and it is not optional",
            ),
            (
                400,
                "Parameter verification failed. vmid: invalid format - value does not look like a valid VM ID",
            ),
            (400, "Parameter verification failed. vmid: type check ('integer') failed - got 'abc'"),
            (
                400,
                "Parameter verification failed. bogus: property is not defined in schema and the schema does not allow additional properties cores: value must have a minimum value of 1 memory: invalid format - format error memory.current: type check ('integer') failed - got 'lots'",
            ),
            (
                400,
                "Parameter verification failed. name: invalid format - value does not look like a valid DNS name",
            ),
            (
                400,
                "Parameter verification failed. bad tag: property is not defined in schema and the schema does not allow additional properties ü: property is not defined in schema and the schema does not allow additional properties",
            ),
            (
                400,
                "Parameter verification failed. net0: invalid format - format error net0.model: value 'foo' does not have a value in the enumeration 'e1000, e1000-82540em, e1000-82544gc, e1000-82545em, e1000e, i82551, i82557b, i82559er, ne2k_isa, ne2k_pci, pcnet, rtl8139, virtio, vmxnet3'",
            ),
            (
                400,
                "Parameter verification failed. ipconfig0: invalid format - value without key, but schema does not define a default key",
            ),
            (500, "storage 'nostore' does not exist"),
            (
                400,
                "Parameter verification failed. scsi0: invalid format - duplicate key in comma-separated list property: file",
            ),
            (
                400,
                "Parameter verification failed. sshkeys: invalid format - invalid urlencoded string: notencoded key",
            ),
            (
                500,
                "hostname lookup 'nosuch' failed - failed to get address info for: nosuch: Name or service not known",
            ),
            (501, "Method 'GET /nodes/pve1/nosuchpath' not implemented"),
            (501, "Method 'GET /nosuch' not implemented"),
            (501, "method 'PATCH' not available"),
            (501, "Method 'PUT /nodes/pve1/qemu' not implemented"),
            (500, "storage 'nosuch' does not exist"),
            (400, "Parameter verification failed. storage: No such storage."),
            (500, "pool 'nosuch' does not exist"),
            (
                400,
                "Parameter verification failed. ipconfig0: invalid format - format error ipconfig0.ip: invalid format - value does not look like a valid ipv4 network configuration",
            ),
            (
                400,
                "Parameter verification failed. ipconfig0: invalid format - format error ipconfig0.gw: invalid format - value does not look like a valid IPv4 address",
            ),
            (
                400,
                "Parameter verification failed. tags: invalid format - invalid characters in tag",
            ),
            (
                400,
                "Parameter verification failed. scsi0: invalid format - format error scsi0.foo: property is not defined in schema and the schema does not allow additional properties",
            ),
            (500, "unable to parse directory volume name 'abc'"),
            (500, "No QEMU guest agent configured"),
            (400, "Parameter verification failed. size: value does not match the regex pattern"),
            (403, "Permission check failed (pool 'nosuch' does not exist)"),
            (500, "no such cluster node 'nosuch'"),
            (400, "Parameter verification failed. url: value does not match the regex pattern"),
            (
                400,
                "Parameter verification failed. content: value 'images' does not have a value in the enumeration 'iso, vztmpl, import'",
            ),
            (
                400,
                "Parameter verification failed. checksum-algorithm: missing property required by 'checksum'",
            ),
            (500, "storage 'imgonly' is not configured for content-type 'import'"),
            (400, "Parameter verification failed. delete: unknown option 'nosuchopt'"),
            (
                400,
                "Parameter verification failed. bogus: property is not defined in schema and the schema does not allow additional properties",
            ),
            (
                400,
                "Parameter verification failed. hookscript: script 'local:snippets/u.yaml' is not executable",
            ),
            (500, "address lookup for 'pve2' did not find any IP address"),
            (
                400,
                "Parameter verification failed. onboot: type check ('boolean') failed - got 'maybe'",
            ),
            (
                400,
                "Parameter verification failed. onboot: type check ('boolean') failed - got 'yes'",
            ),
            (
                400,
                "Parameter verification failed. x: property is not defined in schema and the schema does not allow additional properties",
            ),
            (
                400,
                "Parameter verification failed. type: value 'bogus' does not have a value in the enumeration 'vm, storage, node, sdn'",
            ),
        ],
    ),
    (
        Class::Gone,
        &[
            (500, "invalid server response: '404 Not Found'"),
            (500, "Configuration file 'nodes/pve1/qemu-server/4711.conf' does not exist"),
            (400, "Parameter verification failed. upid: no such task"),
            (500, "unable to find configuration file for VM 4711 on node 'pve1'"),
            (500, "volume_size_info on 'local:iso/none.iso' failed - no format"),
        ],
    ),
    (
        Class::Bug,
        &[
            (400, "Parameter verification failed. upid: unable to parse worker upid"),
            (500, "no options specified"),
            (
                500,
                "Linked clone feature is not supported for 'local:422/vm-422-disk-0.qcow2' (scsi0)",
            ),
            (500, "parameter 'storage' not allowed for linked clones"),
            (500, "parameter 'format' not allowed for linked clones"),
            (400, "Parameter verification failed. filename: invalid filename or wrong extension"),
            (
                400,
                "Parameter verification failed. scsi0: 'import-from' requires special syntax - use <storage ID>:0,import-from=<source>",
            ),
            (
                500,
                "'\"' expected, at character offset 1 (before \"bad\") at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 934.",
            ),
            (
                400,
                "Parameter verification failed. node: duplicate parameter (already defined in URI) with conflicting values!",
            ),
            (501, "Unexpected content for method 'DELETE'"),
            (501, "no formatter for uri /version, foo"),
        ],
    ),
];

/// Ends of tasks, in the same way.
const ENDS: &[(Class, &[&str])] = &[
    (
        Class::Transient,
        &[
            "VM 421 qmp command 'query-status' failed - got timeout",
            "received interrupt",
            "VM is locked (clone)",
            "VM quit/powerdown failed - got timeout",
            "qemu-img: Could not open '/var/lib/vz/images/422/vm-422-disk-0.qcow2': Failed to get shared \"write\" lock Is another process using the image [/var/lib/vz/images/422/vm-422-disk-0.qcow2]?",
            "unexpected status",
            "download failed: exit code 4",
            "download failed: received interrupt",
            "unable to create VM 421 - can't lock file '/var/lock/pve-manager/pve-storage-local-lvm' - got timeout",
            "cfs-lock 'storage-ceph' error: got lock request timeout",
            "storage 'nfs' is not online",
        ],
    ),
    (
        Class::Conflict,
        &[
            "VM 422 already running",
            "base volume 'local:422/base-422-disk-0.qcow2' is still in use by linked cloned",
            "refusing to override existing file '/var/lib/vz/import/my_tiny_1.qcow2'",
            "you can't start a vm if it's a template",
        ],
    ),
    (
        Class::Invalid,
        &[
            "bridge 'vmbr0' does not exist",
            "checksum mismatch: got '1b7af784841125887e688254229e282829e17245d0e47fe7280da9b68a30d9e1' != expect 'deadbeef'",
            "clone failed: copy failed: command '/usr/bin/qemu-img convert -p -n -f qcow2 -O raw /var/lib/vz/images/422/vm-422-disk-0.qcow2 zeroinit:/srv/imgonly/images/500/vm-500-disk-0.raw' failed: exit code 1",
            "shrinking disks is not supported",
            "unable to create VM 421 - lvcreate 'pve/vm-421-disk-0' error:   Cannot create new thin volume, free space in thin pool pve/data reached threshold.",
            "unable to create image: qemu-img: /var/lib/vz/images/421/vm-421-disk-0.raw: No space left on device",
            "download failed: exit code 3",
            "download failed: exit code 5",
            "unable to create VM 421 - qemu-img: Could not open '/var/lib/vz/import/t.qcow2': Image is not in qcow2 format",
            "start failed: command '/usr/bin/kvm ...' failed: exit code 1",
            "KVM virtualisation configured, but not available. Either disable in VM configuration or enable in BIOS.",
            "checksum mismatch: got '1b7a' != expect 'dead', aborting",
        ],
    ),
    (
        Class::Gone,
        &[
            "disk 'scsi9' does not exist",
            "download failed: exit code 8",
            "unable to create VM 511 - failed to stat '/var/lib/vz/import/nope.qcow2'",
            "volume 'local:snippets/none.yaml' does not exist",
            "Configuration file 'nodes/pve1/qemu-server/4711.conf' does not exist",
        ],
    ),
    (Class::Bug, &["snapshot feature is not available"]),
];

#[test]
fn every_recorded_answer_has_its_class_and_a_cure() {
    for (class, answers) in ANSWERS {
        for (status, text) in *answers {
            assert_eq!(meaning(*status, text).class, *class, "{status} {text}");
            let failure = failure(*status, text, "do it");
            assert!(failure.hint.is_some_and(|hint| !hint.is_empty()), "{status} {text}");
        }
    }
}

#[test]
fn every_recorded_end_of_a_task_has_its_class_and_a_cure() {
    for (class, texts) in ENDS {
        for text in *texts {
            assert_eq!(task(text).class, *class, "{text}");
            assert!(task_failure(text, "do it").hint.is_some(), "{text}");
        }
    }
}

#[test]
fn every_row_is_reached() {
    let texts: Vec<&str> =
        ANSWERS.iter().flat_map(|(_, answers)| answers.iter().map(|a| a.1)).collect();
    let ends = ENDS.iter().flat_map(|(_, texts)| texts.iter().copied());
    let all: Vec<&str> = texts.into_iter().chain(ends).collect();
    let first = |text: &str| ROWS.iter().position(|row| row.parts.iter().all(|p| text.contains(p)));
    let reached: std::collections::BTreeSet<usize> =
        all.iter().filter_map(|text| first(text)).collect();
    let never: Vec<_> = (0..ROWS.len()).filter(|at| !reached.contains(at)).collect();
    let never: Vec<_> = never.into_iter().map(|at| ROWS[at].parts).collect();
    assert!(never.is_empty(), "no text reaches {never:?}");
}

#[test]
fn words_that_nobody_knows_are_not_tried_again() {
    assert_eq!(meaning(500, "the moon is full"), Meaning { class: Class::Invalid, hint: None });
    for told in [failure(500, "the moon is full", "do"), task_failure("exit code 1", "do")] {
        assert!(told.hint.is_some_and(|hint| hint.contains("run the same command again")));
    }
    assert_eq!(meaning(403, "").class, Class::Denied);
    assert_eq!(task("the moon is full").class, Class::Invalid);
}

#[test]
fn a_refusal_names_the_privilege_and_where_it_is_missing() {
    let lack = |text| denied(text).map(|lack| (lack.path, lack.privileges.join("|")));
    let of = |path: &str, privileges: &str| Some((path.to_owned(), privileges.to_owned()));
    assert_eq!(lack("Permission check failed (/vms/601, VM.Audit)"), of("/vms/601", "VM.Audit"));
    assert_eq!(
        lack("Permission check failed (/storage/local, Datastore.Audit|Datastore.AllocateSpace)\n"),
        of("/storage/local", "Datastore.Audit|Datastore.AllocateSpace")
    );
    assert_eq!(lack("Permission check failed"), None);
    assert_eq!(lack("Permission check failed (pool 'nosuch' does not exist)"), None);
    let failure = failure(403, "Permission check failed (/nodes/pve1, Sys.Audit)", "look at pve1");
    assert_eq!(
        failure.hint.unwrap(),
        "give the token and its user Sys.Audit at /nodes/pve1: add it to their role, or run `pveum acl modify \
         /nodes/pve1 --tokens 'USER@REALM!TOKEN' --roles ROLE` and the same with `--users`"
    );
}
