//! By what a machine is known again: its SMBIOS UUID, or the certificate that it shows in maintenance mode.

use std::collections::BTreeMap;

use castle_engine::{Acted, Key};
use castle_talos::{Talos, TalosError};

/// The machine of one node; given by `platform/machine/<node>`.
pub const MACHINE: Key<Identity> = Key::new("platform/machine");

/// The journaled outputs that hold an identity.
const UUID: &str = "uuid";
const FINGERPRINT: &str = "maintenance-fingerprint";

/// UUIDs that boards bear whose maker never wrote one: the same filler in both byte orders.
const FILLERS: [&str; 2] =
    ["03000200-0400-0500-0006-000700080009", "00020003-0004-0005-0006-000700080009"];

/// Whether a UUID tells one machine from another: not if its maker left it empty, or to a filler.
#[must_use]
pub fn is_telling(uuid: &str) -> bool {
    let mut digits = uuid.chars().filter(|digit| *digit != '-');
    let first = digits.next();
    digits.any(|digit| Some(digit) != first)
        && !FILLERS.iter().any(|filler| filler.eq_ignore_ascii_case(uuid))
}

/// What tells one machine from another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// What its firmware says; some have none, or one that tells nothing.
    pub uuid: Option<String>,
    /// The certificate of its maintenance mode, as its console prints it; a new one with each start.
    pub fingerprint: Option<String>,
}

impl Identity {
    /// Reads a machine's identity.
    ///
    /// # Errors
    /// If the machine does not answer.
    pub async fn of(talos: &Talos) -> Result<Self, TalosError> {
        let uuid = talos.smbios_uuid().await?.filter(|uuid| is_telling(uuid));
        Ok(Self { uuid, fingerprint: talos.console_fingerprint() })
    }

    /// Whether the machine that was seen is this one.
    ///
    /// Without a UUID the certificate must be the same, as long as the machine is in maintenance mode. Later it is
    /// known by the certificate that our authority gave it, which was checked before anybody comes here.
    ///
    /// # Errors
    /// In words, what is different.
    pub fn agrees(&self, seen: &Self) -> Result<(), String> {
        match (&self.uuid, &seen.uuid) {
            (Some(known), Some(seen)) if known == seen => Ok(()),
            (Some(known), Some(seen)) => {
                Err(format!("has the SMBIOS UUID {seen}, the one that we know has {known}"))
            }
            (Some(_), None) => Err("shows no SMBIOS UUID".to_owned()),
            (None, _) => match (&self.fingerprint, &seen.fingerprint) {
                (Some(known), Some(seen)) if known != seen => Err(
                    "has no SMBIOS UUID that we know, and shows another certificate than at first contact".to_owned(),
                ),
                _ => Ok(()),
            },
        }
    }

    /// What the journal holds, if anything.
    #[must_use]
    pub fn recorded(outputs: &BTreeMap<String, String>) -> Option<Self> {
        let (uuid, fingerprint) = (outputs.get(UUID).cloned(), outputs.get(FINGERPRINT).cloned());
        (uuid.is_some() || fingerprint.is_some()).then_some(Self { uuid, fingerprint })
    }

    /// Adds what is to be journaled.
    #[must_use]
    pub fn record(&self, mut acted: Acted) -> Acted {
        if let Some(uuid) = &self.uuid {
            acted = acted.with(UUID, uuid);
        }
        if let Some(fingerprint) = &self.fingerprint {
            acted = acted.with(FINGERPRINT, fingerprint);
        }
        acted
    }

    /// In words.
    #[must_use]
    pub fn words(&self) -> String {
        match (&self.uuid, &self.fingerprint) {
            (Some(uuid), _) => format!("SMBIOS UUID {uuid}"),
            (None, Some(fingerprint)) => format!("maintenance certificate {fingerprint}"),
            (None, None) => "known by the certificate that we gave it".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use castle_model::Change;

    use super::*;

    fn identity(uuid: &str, fingerprint: &str) -> Identity {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Identity { uuid: some(uuid), fingerprint: some(fingerprint) }
    }

    #[test]
    fn a_uuid_decides_and_else_the_certificate() {
        let known = identity("aa", "p1");
        assert_eq!(known.agrees(&identity("aa", "p2")), Ok(()), "it was restarted");
        assert_eq!(known.agrees(&identity("aa", "")), Ok(()), "it is configured");
        assert!(known.agrees(&identity("bb", "p1")).unwrap_err().contains("UUID bb"));
        assert!(known.agrees(&identity("", "p1")).unwrap_err().contains("no SMBIOS UUID"));
        let nameless = identity("", "p1");
        assert_eq!(nameless.agrees(&identity("", "p1")), Ok(()));
        assert_eq!(nameless.agrees(&identity("", "")), Ok(()), "our own authority vouches for it");
        assert!(nameless.agrees(&identity("", "p2")).unwrap_err().contains("another certificate"));
    }

    #[test]
    fn a_filler_is_no_identity() {
        for junk in [
            "",
            "00000000-0000-0000-0000-000000000000",
            "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
            "03000200-0400-0500-0006-000700080009",
            "00020003-0004-0005-0006-000700080009",
        ] {
            assert!(!is_telling(junk), "{junk}");
        }
        assert!(is_telling("4bc7c51d-1010-8718-90a5-60fff2010b51"));
    }

    #[test]
    fn an_identity_outlives_the_process() {
        for known in [identity("aa", "p1"), identity("", "p1"), identity("aa", "")] {
            let acted = known.record(Acted::of(Change::Unchanged));
            assert_eq!(Identity::recorded(&acted.outputs), Some(known));
        }
        assert_eq!(Identity::recorded(&BTreeMap::new()), None);
    }
}
