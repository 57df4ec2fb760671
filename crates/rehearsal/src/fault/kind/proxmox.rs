//! What goes wrong in Proxmox, or is done to it by others who use it.

use super::super::rule::Who;
use super::super::value::Given;
use super::{Kind, Make, Shape, Slot};
use crate::trouble::{ProxmoxTrouble as P, Trouble};

const WHO: &[Who] = &[Who::Proxmox];
const GUEST: Option<Slot> = Some(Slot::needed("GUEST", Shape::Guest));
const STORAGE: Option<Slot> = Some(Slot::needed("STORAGE", Shape::Storage));
const TASK: Slot = Slot::needed(
    "TASK",
    Shape::Word(&["download", "qmcreate", "qmstart", "qmstop", "qmdestroy", "qmshutdown"]),
);

/// What stands in the exit status of a task where nobody says otherwise.
const TASK_ERROR: &str = "command '/usr/bin/qemu-img' failed: exit code 1";

fn one(trouble: P) -> Vec<Trouble> {
    vec![trouble.into()]
}

fn task(given: &Given<'_>) -> String {
    given.text(0).unwrap_or_default()
}

pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "node down",
        who: WHO,
        object: None,
        arguments: &[],
        about: "The node goes down with its guests and tasks; another one answers the API.",
        example: "proxmox: node down from 0:30 for 1:00",
        says: "has lost its node, and all guests with it",
        make: Make::Passing(|_| one(P::NodeDown), |_| one(P::NodeBack)),
    },
    Kind {
        name: "full",
        who: WHO,
        object: STORAGE,
        arguments: &[],
        about: "A storage has nothing left.",
        example: "proxmox local-lvm: full",
        says: "is full",
        make: Make::Passing(
            |given| one(P::StorageFull { storage: given.object_text(), full: true }),
            |given| one(P::StorageFull { storage: given.object_text(), full: false }),
        ),
    },
    Kind {
        name: "locked",
        who: WHO,
        object: STORAGE,
        arguments: &[],
        about: "Somebody holds a storage's lock: making a disk there runs into a time-out.",
        example: "proxmox local-lvm: locked for 0:40",
        says: "is locked by somebody else",
        make: Make::Passing(
            |given| one(P::StorageBusy { storage: given.object_text(), busy: true }),
            |given| one(P::StorageBusy { storage: given.object_text(), busy: false }),
        ),
    },
    Kind {
        name: "task hangs",
        who: WHO,
        object: None,
        arguments: &[TASK],
        about: "The next task of a kind runs forever.",
        example: "proxmox: task hangs qmcreate",
        says: "will never end its next {0} task",
        make: Make::Change(|given| one(P::TaskHangs { kind: task(given) })),
    },
    Kind {
        name: "task lies",
        who: WHO,
        object: None,
        arguments: &[TASK],
        about: "The next task of a kind says OK, and what it should have made is not there.",
        example: "proxmox: task lies qmcreate",
        says: "will say OK to its next {0} task and do nothing",
        make: Make::Change(|given| one(P::TaskLies { kind: task(given) })),
    },
    Kind {
        name: "task fails",
        who: WHO,
        object: None,
        arguments: &[TASK, Slot::optional("WORDS", Shape::Text)],
        about: "The next task of a kind fails, with these words.",
        example: "proxmox: task fails qmstart",
        says: "will fail its next {0} task",
        make: Make::Change(|given| {
            let words = given.text(1).unwrap_or_else(|| TASK_ERROR.to_owned());
            one(P::TaskFails { kind: task(given), words })
        }),
    },
    Kind {
        name: "task warns",
        who: WHO,
        object: None,
        arguments: &[TASK],
        about: "The next task of a kind ends well, with a warning.",
        example: "proxmox: task warns qmcreate",
        says: "will warn in its next {0} task",
        make: Make::Change(|given| one(P::TaskWarns { kind: task(given), warnings: 1 })),
    },
    Kind {
        name: "overtaken",
        who: WHO,
        object: GUEST,
        arguments: &[],
        about: "Somebody else takes a number at the very moment when it is asked for.",
        example: "proxmox cp-02: overtaken",
        says: "will be taken by somebody else at the last moment",
        make: Make::Change(|given| one(P::Overtaken { vmid: given.machine() })),
    },
    Kind {
        name: "token revoked",
        who: WHO,
        object: None,
        arguments: &[],
        about: "All tokens are removed, or have run out: every call is a 401.",
        example: "proxmox: token revoked from 0:20",
        says: "takes no token any more",
        make: Make::Passing(|_| one(P::TokenRevoked), |_| one(P::TokenRestored)),
    },
    Kind {
        name: "privilege lost",
        who: WHO,
        object: None,
        arguments: &[Slot::needed("PATH", Shape::Text), Slot::needed("PRIVILEGE", Shape::Text)],
        about: "A privilege at a path is taken away: what needs it is a 403.",
        example: "proxmox: privilege lost /vms VM.PowerMgmt",
        says: "has taken {1} away at {0}",
        make: Make::Change(|given| {
            let (path, privilege) = (task(given), given.text(1).unwrap_or_default());
            one(P::PrivilegeTaken { path, privilege })
        }),
    },
    Kind {
        name: "edited",
        who: WHO,
        object: GUEST,
        arguments: &[Slot::needed("OPTION", Shape::Setting), Slot::optional("VALUE", Shape::Value)],
        about: "Somebody changes a VM by hand; without a value the option is removed.",
        example: "proxmox worker-01: edited memory 4096 during nodes",
        says: "was edited by hand: {0} {1}",
        make: Make::Change(|given| {
            let (vmid, option, value) = (given.machine(), task(given), given.text(1));
            one(P::Edited { vmid, option, value })
        }),
    },
    Kind {
        name: "stopped",
        who: WHO,
        object: GUEST,
        arguments: &[],
        about: "Somebody pulls a guest's plug by hand.",
        example: "proxmox worker-01: stopped during nodes",
        says: "was stopped by hand",
        make: Make::Change(|given| one(P::Stopped { vmid: given.machine() })),
    },
    Kind {
        name: "destroyed",
        who: WHO,
        object: GUEST,
        arguments: &[],
        about: "Somebody removes a guest with its disks by hand.",
        example: "proxmox worker-02: destroyed during nodes",
        says: "was destroyed by hand",
        make: Make::Change(|given| one(P::Destroyed { vmid: given.machine() })),
    },
    Kind {
        name: "foreign vm",
        who: WHO,
        object: GUEST,
        arguments: &[],
        about: "Somebody else's VM has this number, and runs.",
        example: "proxmox 425: foreign vm",
        says: "is somebody else's VM",
        make: Make::Change(|given| {
            one(P::ForeignVm {
                vmid: given.machine(),
                name: "somebody-elses".to_owned(),
                tags: String::new(),
                running: true,
                node: None,
            })
        }),
    },
    Kind {
        name: "foreign container",
        who: WHO,
        object: GUEST,
        arguments: &[],
        about: "Somebody else's container has this number, and runs.",
        example: "proxmox 425: foreign container",
        says: "is somebody else's container",
        make: Make::Change(|given| {
            let (vmid, name) = (given.machine(), "somebody-elses".to_owned());
            one(P::ForeignContainer { vmid, name, running: true })
        }),
    },
    Kind {
        name: "images lost",
        who: WHO,
        object: STORAGE,
        arguments: &[],
        about: "Somebody tidies a storage up: the images that disks are made from are gone.",
        example: "proxmox local: images lost on POST /qemu",
        says: "has lost its images",
        make: Make::Change(|given| one(P::ImagesLost { storage: given.object_text() })),
    },
    Kind {
        name: "lost disk",
        who: WHO,
        object: GUEST,
        arguments: &[Slot::needed("STORAGE", Shape::Storage)],
        about: "A disk with this number, which no config names, lies on a storage.",
        example: "proxmox cp-01: lost disk local-lvm",
        says: "has left a disk on {0}",
        make: Make::Change(|given| {
            let (vmid, storage) = (given.machine(), task(given));
            one(P::LostDisk { vmid, storage })
        }),
    },
];
