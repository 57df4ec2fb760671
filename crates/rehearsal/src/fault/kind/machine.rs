//! What goes wrong with machines, and between them.

use super::super::rule::Who;
use super::{Kind, Make, Shape, Slot};
use crate::trouble::{TalosTrouble as T, Trouble};

const WHO: &[Who] = &[Who::Talos];
const MACHINE: Option<Slot> = Some(Slot::needed("NODE", Shape::Machine));
const TIME: &[Slot] = &[Slot::needed("TIME", Shape::Time)];

fn one(trouble: T) -> Vec<Trouble> {
    vec![trouble.into()]
}

fn seconds(ms: u64) -> i64 {
    i64::try_from(ms / 1000).unwrap_or(i64::MAX)
}

pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "dead",
        who: WHO,
        object: MACHINE,
        arguments: &[],
        about: "A machine falls silent, and does not come back.",
        example: "talos cp-02: dead during machines",
        says: "is dead",
        make: Make::Passing(
            |given| one(T::Dead(given.machine())),
            |given| one(T::Revived(given.machine())),
        ),
    },
    Kind {
        name: "revived",
        who: WHO,
        object: MACHINE,
        arguments: &[],
        about: "A dead machine is mended and has power again.",
        example: "talos cp-02: revived from 1:30",
        says: "is mended",
        make: Make::Change(|given| one(T::Revived(given.machine()))),
    },
    Kind {
        name: "reboots",
        who: WHO,
        object: MACHINE,
        arguments: &[],
        about: "A machine starts again at once, without a goodbye.",
        example: "talos cp-01: reboots during api",
        says: "starts again without a goodbye",
        make: Make::Change(|given| one(T::Reboots(given.machine()))),
    },
    Kind {
        name: "wrong address",
        who: WHO,
        object: MACHINE,
        arguments: &[Slot::needed("ADDRESS", Shape::Address)],
        about: "A machine boots to another address than it was given.",
        example: "talos worker-01: wrong address 192.168.1.77",
        says: "has the address {0}",
        make: Make::Change(|given| {
            one(T::WrongAddress(given.machine(), given.argument_address(0)))
        }),
    },
    Kind {
        name: "clock astray",
        who: WHO,
        object: MACHINE,
        arguments: &[],
        about: "A machine's clock is not in sync: it waits with everything that needs one.",
        example: "talos cp-01: clock astray for 1:00",
        says: "has a clock that is not in sync",
        make: Make::Passing(
            |given| one(T::ClockAstray(given.machine(), true)),
            |given| one(T::ClockAstray(given.machine(), false)),
        ),
    },
    Kind {
        name: "clock ahead",
        who: WHO,
        object: MACHINE,
        arguments: TIME,
        about: "A machine's clock jumps ahead: its certificates are not valid yet.",
        example: "talos cp-01: clock ahead 48:00:00 for 1:30",
        says: "has a clock that is {0} ahead",
        make: Make::Passing(
            |given| one(T::ClockOff(given.machine(), seconds(given.number(0)))),
            |given| one(T::ClockAstray(given.machine(), false)),
        ),
    },
    Kind {
        name: "clock behind",
        who: WHO,
        object: MACHINE,
        arguments: TIME,
        about: "A machine's clock falls behind: its certificates are over.",
        example: "talos cp-01: clock behind 48:00:00 for 1:30",
        says: "has a clock that is {0} behind",
        make: Make::Passing(
            |given| one(T::ClockOff(given.machine(), -seconds(given.number(0)))),
            |given| one(T::ClockAstray(given.machine(), false)),
        ),
    },
    Kind {
        name: "stale etcd",
        who: WHO,
        object: MACHINE,
        arguments: &[],
        about: "A disk holds the data of an etcd that is long gone: etcd stays in Preparing.",
        example: "talos cp-02: stale etcd",
        says: "has the data of an old etcd on its disk",
        make: Make::Change(|given| one(T::StaleEtcd(given.machine()))),
    },
    Kind {
        name: "bootstrap lost",
        who: WHO,
        object: MACHINE,
        arguments: &[],
        about: "The next bootstrap works, and its answer is lost.",
        example: "talos cp-01: bootstrap lost",
        says: "will lose the answer to its bootstrap",
        make: Make::Change(|given| one(T::BootstrapReplyLost(given.machine()))),
    },
    Kind {
        name: "usurped",
        who: WHO,
        object: MACHINE,
        arguments: &[],
        about: "Somebody else calls bootstrap on a machine, as soon as it can be asked.",
        example: "talos cp-02: usurped on POST /Bootstrap",
        says: "is bootstrapped by somebody else",
        make: Make::Change(|given| one(T::Usurped(given.machine()))),
    },
    Kind {
        name: "pulls refused",
        who: WHO,
        object: MACHINE,
        arguments: &[],
        about: "The registry refuses a machine the kubelet's image, from its next boot on.",
        example: "talos worker-01: pulls refused",
        says: "is refused its images",
        make: Make::Change(|given| one(T::PullsLimited(given.machine()))),
    },
    Kind {
        name: "unwritable",
        who: WHO,
        object: MACHINE,
        arguments: &[],
        about: "A disk takes nothing: a config is accepted and maintenance mode goes on.",
        example: "talos worker-01: unwritable",
        says: "has a disk that takes nothing",
        make: Make::Passing(
            |given| one(T::Unwritable(given.machine(), true)),
            |given| one(T::Unwritable(given.machine(), false)),
        ),
    },
    Kind {
        name: "data disk gone",
        who: WHO,
        object: MACHINE,
        arguments: &[],
        about: "A machine's data disk is gone, and Longhorn can put nothing there.",
        example: "talos worker-01: data disk gone",
        says: "has lost its data disk",
        make: Make::Passing(
            |given| one(T::DataDiskGone(given.machine(), true)),
            |given| one(T::DataDiskGone(given.machine(), false)),
        ),
    },
    Kind {
        name: "extension missing",
        who: WHO,
        object: MACHINE,
        arguments: &[Slot::needed("NAME", Shape::Text)],
        about: "A machine runs without an extension, whatever was asked for.",
        example: "talos worker-01: extension missing iscsi-tools",
        says: "has an image without {0}",
        make: Make::Change(|given| {
            one(T::ExtensionMissing(given.machine(), given.text(0).unwrap_or_default()))
        }),
    },
    Kind {
        name: "etcd removed",
        who: WHO,
        object: MACHINE,
        arguments: &[],
        about: "Somebody puts a machine's member out of etcd.",
        example: "talos cp-03: etcd removed during nodes",
        says: "was put out of etcd",
        make: Make::Change(|given| one(T::EtcdRemoved(given.machine()))),
    },
    Kind {
        name: "ghost",
        who: WHO,
        object: MACHINE,
        arguments: &[Slot::needed("ADDRESS", Shape::Address)],
        about: "The discovery service still tells of an earlier self at this address.",
        example: "talos worker-01: ghost 192.168.1.99",
        says: "has a ghost at {0}",
        make: Make::Change(|given| one(T::Ghost(given.machine(), given.argument_address(0)))),
    },
    Kind {
        name: "stolen",
        who: &[Who::Network],
        object: Some(Slot::needed("ADDRESS", Shape::Address)),
        arguments: &[],
        about: "Somebody else's machine, of another cluster, answers at an address.",
        example: "network worker-01: stolen",
        says: "is taken by somebody else's machine",
        make: Make::Passing(
            |given| one(T::Foreign(given.address())),
            |given| one(T::ForeignGone(given.address())),
        ),
    },
    Kind {
        name: "vip moves",
        who: &[Who::Network],
        object: None,
        arguments: &[],
        about: "The shared address goes over to another control plane; connections break.",
        example: "network: vip moves during api",
        says: "gives the shared address to another control plane",
        make: Make::Change(|_| one(T::VipMoves)),
    },
    Kind {
        name: "vip mute",
        who: &[Who::Network],
        object: None,
        arguments: &[],
        about: "The shared address takes connections and says nothing.",
        example: "network: vip mute for 1:00 during api",
        says: "has made the shared address mute",
        make: Make::Passing(|_| one(T::MuteVip(true)), |_| one(T::MuteVip(false))),
    },
    Kind {
        name: "down",
        who: &[Who::Kubernetes],
        object: MACHINE,
        arguments: &[],
        about: "An API server stops, while everything else on its machine runs.",
        example: "kubernetes cp-01: down from 1:30 for 0:20",
        says: "does not run its API server",
        make: Make::Passing(
            |given| one(T::ApiServerDown(given.machine(), true)),
            |given| one(T::ApiServerDown(given.machine(), false)),
        ),
    },
];
