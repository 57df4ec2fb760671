//! Which versions of Talos this castle knows, and which Kubernetes goes with each.

use castle_model::spec::Version;

use crate::finding::{Finding, Findings};
use crate::reader::Contents;

/// One minor version of Talos and the minor versions of Kubernetes that it runs.
#[derive(Debug)]
pub(crate) struct Pair {
    /// The minor version of Talos 1.
    pub(crate) talos: u16,
    /// The first minor version of Kubernetes 1 that it runs.
    pub(crate) first: u16,
    /// The last.
    pub(crate) last: u16,
    /// The pair that is tried out most.
    pub(crate) usual: (&'static str, &'static str),
}

/// The compatibility table of Talos, for the versions whose machine configuration castle writes.
pub(crate) const TABLE: &[Pair] = &[
    Pair { talos: 12, first: 30, last: 35, usual: ("1.12.11", "1.35.4") },
    Pair { talos: 13, first: 31, last: 36, usual: ("1.13.9", "1.36.3") },
    Pair { talos: 14, first: 32, last: 37, usual: ("1.14.1", "1.37.0") },
];

/// Judges the pair of versions.
pub(crate) fn judge(castle: &Contents, findings: &mut Findings) {
    let Some(talos) = castle.get::<Version>("talos") else { return };
    let known = TABLE.iter().find(|p| talos.value.major == 1 && p.talos == talos.value.minor);
    let Some(known) = known else {
        let list: Vec<String> = TABLE.iter().map(|p| format!("1.{}", p.talos)).collect();
        findings.add(
            Finding::error(
                "C0601",
                format!("this version of castle does not know Talos {}", talos.value),
            )
            .at(&talos.range, "not in the table of versions")
            .note(format!("it writes machine configurations for Talos {}", list.join(", ")))
            .help(format!("set talos = \"{}\"", TABLE[TABLE.len() - 1].usual.0)),
        );
        return;
    };
    let Some(kubernetes) = castle.get::<Version>("kubernetes") else { return };
    let minor = kubernetes.value.minor;
    if kubernetes.value.major == 1 && (known.first..=known.last).contains(&minor) {
        return;
    }
    let (first, last) = (known.first, known.last);
    let title = format!("Talos {} does not run Kubernetes {}", talos.value, kubernetes.value);
    let finding = Finding::error("C0602", title)
        .at(&kubernetes.range, "the version of Kubernetes")
        .related(&talos.range, "the version of Talos")
        .note(format!("Talos 1.{} runs Kubernetes 1.{first} to 1.{last}", known.talos));
    let fitting =
        TABLE.iter().find(|p| kubernetes.value.major == 1 && (p.first..=p.last).contains(&minor));
    findings.add(match fitting {
        Some(pair) => finding.help(format!(
            "set kubernetes = \"{}\", or talos = \"{}\"",
            known.usual.1, pair.usual.0
        )),
        None => finding.help(format!("set kubernetes = \"{}\"", known.usual.1)),
    });
}
