//! Planted bugs: each is turned on, and its trial must break one of the laws that hold without it.

use castle_model::planted::{Bug, plant};

use crate::castle::Command::{Down, Up};
use crate::check::Violation;
use crate::point::Moment;
use crate::seeds::{Almanac, live_watched};
use crate::setting::Shape;
use crate::trial::Part::{Forgets, Happens, Runs as Run};
use crate::trial::{Runs, Trial};

/// A planted bug and the trial that is known to find it.
#[derive(Debug)]
pub struct Planted {
    /// Which.
    pub bug: Bug,
    /// What castle does then.
    pub about: &'static str,
    /// Where it is found.
    pub trial: &'static Trial,
    /// By which law.
    pub law: &'static str,
    /// The seed whose life is known to find it, and by which law, although nobody drew it for that; none if none is known
    /// among those that the suite lives.
    pub seed: Option<(u64, &'static str)>,
}

static RISE: Trial =
    Trial { name: "a castle rises", shape: Shape::SMALL, parts: &[Run(Runs::quiet(Up))] };

static WHOLE: Trial =
    Trial { name: "a large castle rises", shape: Shape::WHOLE, parts: &[Run(Runs::quiet(Up))] };

static FORGOTTEN: Trial = Trial {
    name: "a castle rises, its state is lost, and up is run again",
    shape: Shape::SMALL,
    parts: &[Run(Runs::quiet(Up)), Forgets, Run(Runs::quiet(Up))],
};

static RAZED: Trial = Trial {
    name: "a castle rises and is razed",
    shape: Shape::SMALL,
    parts: &[Run(Runs::quiet(Up)), Run(Runs::quiet(Down))],
};

static DENIED: Trial = Trial {
    name: "Proxmox refuses a VM",
    shape: Shape::SMALL,
    parts: &[Run(Runs::among(Up, &["proxmox: answers 403 on POST /qemu once"]))],
};

static LIMITED: Trial = Trial {
    name: "Infisical asks for a pause",
    shape: Shape::SMALL,
    parts: &[Run(Runs::among(Up, &["infisical: limits 0:20 twice"]))],
};

static HANGING: Trial = Trial {
    name: "a task of Proxmox never ends",
    shape: Shape::SMALL,
    parts: &[Run(Runs::among(Up, &["proxmox: task hangs qmcreate"]))],
};

static UNSEEN: Trial = Trial {
    name: "a VM that stands can not be looked at",
    shape: Shape::SMALL,
    parts: &[
        Run(Runs::quiet(Up)),
        Run(Runs::among(Up, &["proxmox: answers 500 on GET /qemu/431/config the 2nd twice"])),
    ],
};

static MAKING: Trial = Trial {
    name: "up is killed while a VM is being made",
    shape: Shape::SMALL,
    parts: &[Run(Runs::killed(Up, Moment::AfterReply, "qmcreate")), Run(Runs::quiet(Up))],
};

static FAILING: Trial = Trial {
    name: "a task of Proxmox fails",
    shape: Shape::SMALL,
    parts: &[Run(Runs::among(Up, &["proxmox: task fails qmstart"]))],
};

static OVERTAKEN: Trial = Trial {
    name: "somebody takes the number of a VM in the last moment",
    shape: Shape::SMALL,
    parts: &[Run(Runs::among(Up, &["proxmox worker-01: overtaken"]))],
};

static SQUATTED: Trial = Trial {
    name: "somebody's VM has the number of one of ours",
    shape: Shape::SMALL,
    parts: &[
        Run(Runs::quiet(Up)),
        Happens(&["proxmox worker-01: destroyed", "proxmox 431: foreign vm"]),
        Run(Runs { spares: &[431], ..Runs::among(Down, &[]) }),
    ],
};

static COPIED: Trial = Trial {
    name: "a VM bears our mark and another UUID",
    shape: Shape::SMALL,
    parts: &[
        Run(Runs::quiet(Up)),
        Happens(&["proxmox worker-01: edited smbios1 uuid=d59201e4-d411-4eb5-aa3a-aafb17c6181f"]),
        Run(Runs { spares: &[431], ..Runs::among(Down, &[]) }),
    ],
};

static SILENT: Trial = Trial {
    name: "a VM can not be asked for while the castle is razed",
    shape: Shape::SMALL,
    parts: &[
        Run(Runs::quiet(Up)),
        Run(Runs::among(Down, &["proxmox: answers 500 on GET /qemu/431/config"])),
    ],
};

static FELLED: Trial = Trial {
    name: "the node goes down and comes back while the castle is razed",
    shape: Shape::SMALL,
    parts: &[
        Run(Runs::quiet(Up)),
        Run(Runs::among(Down, &["proxmox: node down from 0:05 for 0:20"])),
    ],
};

static FETCHING: Trial = Trial {
    name: "up is killed while the image is fetched",
    shape: Shape::SMALL,
    parts: &[Run(Runs::killed(Up, Moment::AfterSend, "/download-url")), Run(Runs::quiet(Up))],
};

/// All planted bugs, each with its trial.
#[must_use]
pub fn all() -> Vec<Planted> {
    let seed = |bug: Bug| {
        let found = LIVES.iter().find(|(known, ..)| *known == bug);
        found.map(|(_, seed, law)| (*seed, *law))
    };
    let of = |(bug, about, trial, law): &(Bug, &'static str, &'static Trial, &'static str)| {
        Planted { bug: *bug, about, trial, law, seed: seed(*bug) }
    };
    KNOWN.iter().map(of).collect()
}

/// Each bug, a seed that is known to find it, and the law that breaks there.
static LIVES: &[(Bug, u64, &str)] = &[
    (Bug::TaskFailureIsSuccess, 11, "a failed task is told"),
    (Bug::UnknownActedOn, 15, "failures are explained"),
    (Bug::ActBeforeIntent, 1, "no run breaks off"),
    (Bug::SyncSkipped, 1, "an intent is durable before the act"),
    (Bug::GateSkipped, 1, "what is proven is true"),
    (Bug::RetryOfAnything, 6, "only what passes is tried again"),
    (Bug::WaitIgnored, 26, "a pause is kept"),
    (Bug::DeadlineIgnored, 7, "every wait ends"),
    (Bug::RightActedOn, 18, "it converges"),
    (Bug::LeftoverUnseen, 2, "it converges"),
    (Bug::NeedsIgnored, 1, "failures are explained"),
    (Bug::LaneIgnored, 12, "a lane takes what fits"),
    (Bug::TaskForgotten, 9, "a running task is known"),
    (Bug::OrderNotTurned, 2, "secrets are kept before they are used"),
    (Bug::TaskUnnamed, 2, "a task is written down"),
    (Bug::OwnershipUnchecked, 9, "ownership"),
    (Bug::NumberIsProof, 9, "ownership"),
    (Bug::UuidUnchecked, 7, "ownership"),
    (Bug::NeighbourStopped, 6, "ownership"),
    (Bug::UnreachableIsGone, 89, "secrets are kept before they are used"),
    (Bug::SecondDownload, 26, "what is proven is true"),
    (Bug::BootstrapMoved, 1, "only the first is bootstrapped"),
    (Bug::KeptTooLate, 1, "secrets are kept before they are used"),
    (Bug::SecretTold, 1, "no secret outside"),
    (Bug::PodsMadeIsReady, 1, "what is proven is true"),
];

/// Bug, what castle does then, the trial that is known to find it, and by which law.
static KNOWN: &[(Bug, &str, &Trial, &str)] = &[
    (
        Bug::ActBeforeIntent,
        "A step acts, then says that it is going to",
        &RISE,
        "an intent is durable before the act",
    ),
    (
        Bug::SyncSkipped,
        "An entry of the journal counts as durable before it is synced",
        &RISE,
        "an intent is durable before the act",
    ),
    (Bug::GateSkipped, "A step is done without its proof", &RISE, "it converges"),
    (
        Bug::RetryOfAnything,
        "What can never succeed is tried again",
        &DENIED,
        "only what passes is tried again",
    ),
    (Bug::WaitIgnored, "Who asks for a pause is asked again at once", &LIMITED, "a pause is kept"),
    (Bug::DeadlineIgnored, "A wait goes on long after its deadline", &HANGING, "every wait ends"),
    (Bug::RightActedOn, "A step that is right is done once more", &FORGOTTEN, "it converges"),
    (
        Bug::UnknownActedOn,
        "What could not be looked at is taken for absent, and made",
        &UNSEEN,
        "what is called absent is absent",
    ),
    (
        Bug::LeftoverUnseen,
        "Nobody looks for what is left before it is called gone",
        &RAZED,
        "nothing left",
    ),
    (
        Bug::NeedsIgnored,
        "A step starts although something that it needs is not done",
        &RISE,
        "a step waits for what it needs",
    ),
    (
        Bug::LaneIgnored,
        "More steps of a lane run at a time than fit",
        &WHOLE,
        "a lane takes what fits",
    ),
    (
        Bug::TaskForgotten,
        "A new intent forgets the task that an earlier run had begun",
        &MAKING,
        "a running task is known",
    ),
    (
        Bug::OrderNotTurned,
        "Removals go in the order of making",
        &RAZED,
        "secrets are kept before they are used",
    ),
    (
        Bug::TaskUnnamed,
        "The name of a Proxmox task is not written down",
        &RISE,
        "a task is written down",
    ),
    (
        Bug::TaskFailureIsSuccess,
        "A Proxmox task that failed counts as done",
        &FAILING,
        "a failed task is told",
    ),
    (
        Bug::OwnershipUnchecked,
        "A VM at our number counts as ours, whatever its mark says",
        &OVERTAKEN,
        "ownership",
    ),
    (
        Bug::NumberIsProof,
        "What stands at our number is deleted, whatever its mark says",
        &SQUATTED,
        "ownership",
    ),
    (Bug::UuidUnchecked, "A mark counts without the UUID that goes with it", &COPIED, "ownership"),
    (
        Bug::NeighbourStopped,
        "Every guest in the range is switched off, whoever's it is",
        &FELLED,
        "ownership",
    ),
    (
        Bug::UnreachableIsGone,
        "A VM that can not be asked for counts as gone",
        &SILENT,
        "nothing left",
    ),
    (
        Bug::SecondDownload,
        "What is under way is made a second time instead of being looked for",
        &FETCHING,
        "no second object",
    ),
    (
        Bug::BootstrapMoved,
        "The bootstrap goes to another control plane than the first",
        &WHOLE,
        "only the first is bootstrapped",
    ),
    (
        Bug::KeptTooLate,
        "The Talos secrets are kept after the first machine has its config",
        &RISE,
        "secrets are kept before they are used",
    ),
    (Bug::SecretTold, "Secrets stand in the proof of a step", &RISE, "no secret outside"),
    (
        Bug::PodsMadeIsReady,
        "A workload counts as ready when its pods were made",
        &RISE,
        "what is proven is true",
    ),
];

/// Plays the trial of a planted bug, and says what broke.
#[must_use]
pub fn play(planted: &Planted) -> Vec<Violation> {
    let _bug = plant(planted.bug);
    planted.trial.play()
}

/// Lives the seed of a planted bug, watched, and says what broke; none if it has no seed.
#[must_use]
pub fn relive(planted: &Planted, almanac: &Almanac) -> Option<Vec<Violation>> {
    let _bug = plant(planted.bug);
    let (seed, _) = planted.seed?;
    Some(live_watched(seed, almanac).violations)
}

/// The first of so many seeds that breaks a law while a bug is planted, and the law.
#[must_use]
pub fn first_seed(bug: Bug, almanac: &Almanac, seeds: u64) -> Option<(u64, &'static str)> {
    let _bug = plant(bug);
    (1..=seeds).find_map(|seed| Some((seed, live_watched(seed, almanac).violations.first()?.law)))
}
