//! `platform/preflight`: every machine that the castle file names waits for it, or belongs to it; all findings at once.

use std::collections::BTreeMap;

use async_trait::async_trait;
use castle_engine::{Context, Step};
use castle_model::spec::Body;
use castle_model::{Class, Failure, NodeName, Observed, Spec};

use super::identity::is_telling;
use super::inventory::{Standing, YARD, Yard, look};
use crate::talos::Realm;

/// The step.
pub(super) struct Preflight(pub(super) Realm);

/// What its gate proves.
pub(super) const PROVES: &str =
    "every machine waits for this castle or belongs to it, and the addresses are free";

#[async_trait]
impl Step for Preflight {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let spec = self.0.spec();
        let mut findings = judge(spec, &*cx.outputs().get(&YARD)?);
        if findings.iter().any(|finding| matches!(finding, Finding::Silent(_))) {
            // A machine that was just switched on needs its time.
            let yard = look(&self.0).await;
            findings = judge(spec, &yard);
            cx.outputs().put(&YARD, yard);
        }
        if findings.is_empty() {
            return Ok(Observed::right("every machine waits in maintenance mode or is in use"));
        }
        // What is merely silent may answer soon; anything else does not mend itself.
        let silent = findings.iter().all(|finding| matches!(finding, Finding::Silent(_)));
        let class = if silent { Class::Transient } else { Class::Conflict };
        let words: Vec<&str> = findings.iter().map(Finding::words).collect();
        Err(Failure::new(class, "check the machines and addresses", words.join("; "))
            .hint("nothing was changed yet: mend what is named, then run the same command again"))
    }

    async fn gate(&self, _cx: &Context) -> Result<String, Failure> {
        Ok("the machines and addresses were checked".to_owned())
    }
}

/// Something that would stop the birth, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Finding {
    /// A machine does not answer yet.
    Silent(String),
    /// Something is not as the castle file says.
    Wrong(String),
}

impl Finding {
    fn words(&self) -> &str {
        match self {
            Self::Silent(words) | Self::Wrong(words) => words,
        }
    }
}

/// Everything that would stop the birth.
fn judge(spec: &Spec, yard: &Yard) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: BTreeMap<&str, &NodeName> = BTreeMap::new();
    for node in &spec.nodes {
        let declared = match &node.body {
            Body::Standing(standing) => standing.uuid.as_deref(),
            Body::Vm(_) => None,
        };
        if let Some(filler) = declared.filter(|uuid| !is_telling(uuid)) {
            findings.push(Finding::Wrong(format!(
                "the castle file names the SMBIOS UUID {filler} for {}, which is a filler that many machines bear: leave it out, then the machine is known by the certificate of its first contact",
                node.name
            )));
            continue;
        }
        match yard.at.get(&node.name) {
            // A machine of a castle that stands may be down: then its own step waits for it.
            Some(Standing::Silent(why)) if !yard.in_use() => {
                findings.push(Finding::Silent(format!(
                    "nothing answers at {}, where {} should wait in maintenance mode ({why})",
                    node.address, node.name
                )));
            }
            Some(Standing::Waiting(identity)) => {
                let Some(uuid) = identity.uuid.as_deref() else { continue };
                if let Some(declared) =
                    declared.filter(|declared| !declared.eq_ignore_ascii_case(uuid))
                {
                    findings.push(Finding::Wrong(format!(
                        "the machine at {} has the SMBIOS UUID {uuid}, but the castle file names {declared} for {}",
                        node.address, node.name
                    )));
                }
                if let Some(other) = seen.insert(uuid, &node.name) {
                    findings.push(Finding::Wrong(format!(
                        "{} and {} answer with the same SMBIOS UUID {uuid}: one machine at two addresses, or a clone",
                        other, node.name
                    )));
                }
            }
            _ => {}
        }
    }
    if yard.vip_taken {
        findings.push(Finding::Wrong(format!(
            "something answers at {}, which the castle wants to share among its control planes",
            spec.network.vip
        )));
    }
    findings
}

#[cfg(test)]
mod tests {
    use castle_model::spec::StandingSpec;

    use super::super::identity::Identity;
    use super::*;

    fn spec() -> Spec {
        let mut spec = castle_config::example();
        for (node, number) in spec.nodes.iter_mut().zip(1..) {
            let uuid = (number == 1).then(|| "aa-1".to_owned());
            node.body = Body::Standing(StandingSpec { uuid, data_disk: false });
        }
        spec
    }

    fn waiting(uuid: &str) -> Standing {
        Standing::Waiting(Identity { uuid: Some(uuid.to_owned()), fingerprint: None })
    }

    fn said(spec: &Spec, standing: &[Standing]) -> Vec<String> {
        let names = spec.nodes.iter().map(|node| node.name.clone());
        let at = names.zip(standing.iter().cloned()).collect();
        let found = judge(spec, &Yard { at, vip_taken: false });
        found.iter().map(|finding| finding.words().to_owned()).collect()
    }

    #[test]
    fn all_that_is_wrong_is_found_at_once() {
        let spec = spec();
        assert_eq!(said(&spec, &[waiting("AA-1"), waiting("bb-2")]), Vec::<String>::new());
        let found = said(
            &spec,
            &[waiting("cc-3"), waiting("cc-3"), Standing::Silent("no answer".to_owned())],
        );
        assert_eq!(found.len(), 3, "{found:#?}");
        assert!(found[0].contains("names aa-1"), "{}", found[0]);
        assert!(found[1].contains("the same SMBIOS UUID cc-3"), "{}", found[1]);
        assert!(found[2].contains("nothing answers at"), "{}", found[2]);
        let taken = judge(&spec, &Yard { vip_taken: true, ..Yard::default() });
        assert!(taken[0].words().contains("wants to share"), "{taken:?}");
    }

    #[test]
    fn a_filler_in_the_castle_file_is_refused_by_name() {
        let mut spec = spec();
        let zeros = "00000000-0000-0000-0000-000000000000".to_owned();
        spec.nodes[0].body = Body::Standing(StandingSpec { uuid: Some(zeros), data_disk: false });
        let nameless = Standing::Waiting(Identity::default());
        let found = said(&spec, &[nameless.clone(), nameless]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].contains("which is a filler"), "{}", found[0]);
    }

    #[test]
    fn a_machine_of_a_castle_that_stands_may_be_down() {
        let down = Standing::Silent("no answer".to_owned());
        assert_eq!(said(&spec(), &[Standing::Configured, down]), Vec::<String>::new());
    }
}
