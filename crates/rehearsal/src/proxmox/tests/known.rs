//! What of the recording is answered otherwise on purpose, or not at all, and why. The page about fidelity shows it.

use std::ops::RangeInclusive;

/// How many calls were recorded.
pub(crate) const EXCHANGES: u32 = 258;

/// Recorded calls that are not answered as recorded, and why.
pub(crate) const LEFT_OUT: &[(RangeInclusive<u32>, &str)] = &[
    (66..=66, "templates are not served: castle makes no clones"),
    (72..=73, "a disk of a running guest is locked by a real process there"),
    (82..=82, "a reset is not served: nobody asks for one"),
    (88..=95, "clones are not served: castle makes its machines from an image"),
    (97..=100, "templates are not served"),
    (101..=104, "clones are not served"),
    (105..=107, "what a template and its clone left behind"),
    (109..=110, "clones are not served"),
    (136..=136, "clones are not served"),
    (157..=157, "the guest is a clone"),
    (163..=165, "pools are not made here: castle reads whether there are some"),
    (168..=169, "the pool was not made"),
    (171..=173, "the dump of cloud-init is not served"),
    (180..=180, "the snippet was laid there by hand, past the API"),
    (182..=182, "the dump of cloud-init is not served"),
    (184..=185, "pools are not made here"),
    (190..=190, "the script is a snippet that was laid there by hand"),
    (193..=193, "snapshots are not served"),
    (
        195..=196,
        "the folder of a node without an address was made by hand; here a node that nobody knows has no name",
    ),
    (206..=206, "the task is of a snapshot"),
    (
        210..=212,
        "the daemon behind the proxy was stopped by hand; here a whole node goes down, and has no route",
    ),
    (223..=224, "the second download was begun past the recorder"),
    (225..=225, "the file was locked by hand for longer than the daemon waits"),
    (246..=249, "templates and clones are not served"),
    (250..=253, "no guest agent runs here, and the guest is a clone"),
];

/// Where we answer otherwise on purpose: the number of the call, the place in the answer, and why.
pub(crate) const ALLOWED: &[(u32, &str, &str)] = &[
    (4, "data[].ssl_fingerprint", "certificates are made by the world's host, not by this part"),
    (194, "data[].ssl_fingerprint", "the same"),
    (15, "errors", "the recorder's terminal encoded the odd name once more"),
    (151, "data ids", "the disk that was lost by hand had another name"),
    (205, "data", "the real task before was still running; here every task is waited for"),
    (213, "data.content", "the real list has no order"),
    (222, "data count", "the recorded file was shorter than one dot of wget when it was stopped"),
    (161, "data", "a removal always answers with its task here; nobody asks for a delay"),
    (199, "data ids", "VM 500 was cloned, and clones are not served"),
    (199, "data count", "the same"),
    (
        231,
        "status",
        "the other node of the recorded cluster was off; here it answers about its guests, which a wipe has to reach",
    ),
    (
        231,
        "reason",
        "the other node of the recorded cluster was off; here it answers about its guests, which a wipe has to reach",
    ),
];
