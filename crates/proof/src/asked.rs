//! The kinds of faults that the proof was asked to hold, and what stands for each: rules that seeds draw, or another instrument.

use std::collections::BTreeSet;

/// What stands for a kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
    /// Rules of the fault language, as `Kind::form` writes them; the suite prints those that its seeds never met.
    Rules(&'static [&'static str]),
    /// Another part of the proof, by the file that does it.
    Instrument(&'static str),
}

/// What was asked for, and what stands for it.
pub const ASKED: &[(&str, Stand)] = &[
    ("kill of the process", Stand::Rules(&["castle: killed before", "castle: killed after"])),
    (
        "kill of the host, what was not synced is lost",
        Stand::Instrument("crates/proof/src/point.rs"),
    ),
    ("connection refused", Stand::Rules(&["SERVER [OBJECT]: refuses"])),
    ("reset after send, outcome unknown", Stand::Rules(&["SERVER [OBJECT]: drops after"])),
    ("slow drip", Stand::Rules(&["SERVER [OBJECT]: drips TIME"])),
    ("a call that is carried out twice", Stand::Rules(&["SERVER [OBJECT]: hears twice"])),
    ("401 in mid-run", Stand::Rules(&["proxmox: token revoked", "infisical: expired"])),
    ("403, 409, 500, 503, 596", Stand::Rules(&["SERVER [OBJECT]: answers STATUS"])),
    ("429 with Retry-After", Stand::Rules(&["SERVER [OBJECT]: limits TIME"])),
    ("a Proxmox task that runs for ever", Stand::Rules(&["proxmox: task hangs TASK"])),
    ("a task that is OK, and nothing is there", Stand::Rules(&["proxmox: task lies TASK"])),
    ("a lock that is waited for in vain", Stand::Rules(&["proxmox STORAGE: locked"])),
    ("a storage that is full", Stand::Rules(&["proxmox STORAGE: full"])),
    ("a number that is taken", Stand::Rules(&["proxmox GUEST: overtaken"])),
    ("a machine at another address", Stand::Rules(&["talos NODE: wrong address ADDRESS"])),
    ("an old disk: etcd stays in Preparing", Stand::Rules(&["talos NODE: stale etcd"])),
    ("a member of etcd that is lost", Stand::Rules(&["talos NODE: etcd removed"])),
    ("the shared address goes over", Stand::Rules(&["network: vip moves"])),
    ("an API server that starts anew", Stand::Rules(&["kubernetes NODE: down"])),
    (
        "a watch that ends, forgets, is late or tells twice",
        Stand::Rules(&[
            "kubernetes: watch drops",
            "kubernetes: watch expires",
            "kubernetes: events late TIME",
            "kubernetes: events twice",
        ]),
    ),
    (
        "a webhook that is refused while its pod is Ready",
        Stand::Rules(&["kubernetes NODE: webhooks cut off"]),
    ),
    ("a webhook whose own process refuses", Stand::Instrument("scenarios/webhook-not-serving.hcl")),
    ("an answer that comes twice", Stand::Rules(&["proxmox [OBJECT]: answers twice"])),
    ("a definition that is not established", Stand::Rules(&["kubernetes: definitions held"])),
    ("an image that can not be pulled", Stand::Rules(&["talos NODE: pulls refused"])),
    (
        "a secret store that says 404, then 200",
        Stand::Instrument("crates/clients/infisical/src/tests/reading.rs"),
    ),
    (
        "a clock that jumps",
        Stand::Rules(&["castle: clock ahead TIME", "castle: clock behind TIME"]),
    ),
    (
        "a disk that is full, a torn write",
        Stand::Instrument("crates/journal/src/tests/every_call.rs"),
    ),
    ("two operators", Stand::Instrument("crates/cli/tests/castle/attach.rs")),
];

/// The rules of the table that are not among the kinds that struck.
#[must_use]
pub fn missing(struck: &BTreeSet<String>) -> Vec<&'static str> {
    let rules = ASKED.iter().filter_map(|(_, stand)| match stand {
        Stand::Rules(rules) => Some(*rules),
        Stand::Instrument(_) => None,
    });
    rules.flatten().copied().filter(|rule| !struck.contains(*rule)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use castle_rehearsal::fault::kinds;

    use super::*;

    #[test]
    fn what_stands_for_a_kind_is_there() {
        let forms: BTreeSet<String> = kinds().map(castle_rehearsal::fault::Kind::form).collect();
        let house = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (asked, stand) in ASKED {
            match stand {
                Stand::Rules(rules) => {
                    let unknown: Vec<_> = rules.iter().filter(|r| !forms.contains(**r)).collect();
                    assert!(unknown.is_empty(), "{asked}: {unknown:?} of {forms:#?}");
                }
                Stand::Instrument(file) => assert!(house.join(file).exists(), "{file}"),
            }
        }
    }
}
