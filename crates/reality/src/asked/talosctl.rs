//! What talosctl 1.13.9 is asked.

use super::Told::{Ends, Exactly, Says};
use super::{Asked, asked, asked_as, differs};

/// Of a machine in maintenance mode, without an identity but where it says so.
pub const MAINTENANCE: &[Asked] = &[
    asked("version", Says("NODE:        127.0.85.11\n\tTag:         v1.13.9")),
    asked("get machinestatus", Says("maintenance   true")),
    asked("get disks", Says("QEMU HARDDISK")),
    asked("get systeminformation", Says("Standard PC (Q35 + ICH9, 2009)")),
    asked("get machineconfig", Ends(1, "PermissionDenied")),
    asked("get members", Ends(0, "")),
    asked("apply-config --file {nonsense}", Ends(1, "nonsense")),
    asked("apply-config --dry-run --file {config}", Ends(0, "Dry run")),
    asked_as(
        "with an identity",
        "version",
        Ends(1, "x509: certificate signed by unknown authority"),
    ),
];

/// Of a machine that has its config, before etcd.
pub const CONFIGURED: &[Asked] = &[
    asked_as("without an identity", "version", Ends(1, "code = Unavailable")),
    asked("version", Says("RBAC")),
    asked("get machineconfig", Says("v1alpha1")),
    asked("kubeconfig -", Says("server: https://127.0.85.10:6443")),
    asked_as("as a reader", "version", Says("v1.13.9")),
    asked_as("as a reader", "get machineconfig", Ends(1, "PermissionDenied")),
    asked_as(
        "as a reader",
        "reboot --wait=false",
        Ends(1, "PermissionDenied desc = not authorized"),
    ),
    asked_as("by way of another control plane", "version", Says("NODE:        127.0.85.12")),
    asked_as("by way of a worker", "version", Ends(1, "no request forwarding")),
];

/// Of the first control plane of a cluster that is up.
pub const RAISED: &[Asked] = &[
    asked("bootstrap", Ends(1, "AlreadyExists desc = etcd data directory is not empty")),
    asked("get members", Says("worker-01")),
    asked("get disks", Says("QEMU HARDDISK")),
    asked("get volumestatus", Says("EPHEMERAL")),
    asked("get addresses", Says("127.0.86.11/24")),
    asked("get extensions", Says("iscsi-tools")),
    asked("get etcdmember", Says("local")),
    asked("get nodename", Says("cp-01")),
    asked("get services", Says("kubelet")),
    asked("get machinestatus", Says("running   true")),
    asked("get nonsense", Ends(1, "resource \"nonsense\" is not registered")),
    asked("get rd", Says("machinestatuses.runtime.talos.dev")),
    asked("service etcd", Says("STATE    Running")),
    asked("memory", Says("8192")),
    asked("list /", Says("var")),
    asked("read /etc/nothing", Ends(1, "no such file or directory")),
    differs("dmesg", Exactly(""), "machines are states, not kernels: there is no log to read"),
    differs("logs etcd", Exactly(""), "the same"),
    asked("etcd status", Says("3.6.12")),
    differs(
        "health --server=false --wait-timeout 10s",
        Ends(1, "no IP address found for member: cp-01"),
        "resources are told as YAML, and this check reads them as protobuf; `health` on the server's side works",
    ),
    differs(
        "processes",
        Ends(1, "Processes is not emulated"),
        "machines are states, not kernels: nothing of what only a running system could tell is there",
    ),
    differs("mounts", Ends(1, "Mounts is not emulated"), "the same"),
    differs(
        "get links",
        Ends(1, "resource \"links\" is not registered"),
        "only the resources that are listed are emulated",
    ),
    asked("service kubelet restart", Says("Service \"kubelet\" restarted")),
];
