//! Decrypts what is encrypted, hashes all of it, and finds what stands in clear.

use castle_model::Secret;
use sha2::{Digest as _, Sha512};

use crate::cipher::{self, DataKey, Nonces, Plain};
use crate::rules::Rules;
use crate::tree::Value;
use crate::walk::{Place, Visitor};
use crate::{SopsError, scalar};

/// What the hash begins with where it covers only encrypted values: SHA-256 of `sops`.
const ONLY_ENCRYPTED: [u8; 32] = [
    0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0x0b,
    0x0b, 0x97, 0x5b, 0x3b, 0xf4, 0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69,
];

/// The hash over all values, in order.
pub(crate) struct Mac {
    hash: Sha512,
    only_encrypted: bool,
}

impl Mac {
    pub(crate) fn new(rules: &Rules) -> Self {
        let mut hash = Sha512::new();
        if rules.mac_only_encrypted {
            hash.update(ONLY_ENCRYPTED);
        }
        Self { hash, only_encrypted: rules.mac_only_encrypted }
    }

    pub(crate) fn add(&mut self, value: &Value, encrypted: bool) {
        if let Some(bytes) = scalar::bytes(value).filter(|_| encrypted || !self.only_encrypted) {
            self.hash.update(&*bytes);
        }
    }

    pub(crate) fn text(self) -> String {
        hex::encode_upper(self.hash.finalize())
    }
}

pub(crate) struct Opening<'open> {
    pub(crate) key: &'open DataKey,
    /// Where nonces are noted, if anybody wants them.
    pub(crate) nonces: Option<&'open mut Nonces>,
    pub(crate) mac: Mac,
    /// What is not encrypted and should be.
    pub(crate) in_clear: Vec<String>,
}

impl Visitor for Opening<'_> {
    fn value(
        &mut self,
        value: &mut Value,
        place: &Place,
        encrypted: bool,
    ) -> Result<(), SopsError> {
        if encrypted {
            let sealed = match value {
                Value::Text(text)
                    if text.expose().is_empty() || cipher::is_sealed(text.expose()) =>
                {
                    text.clone()
                }
                _ => {
                    self.in_clear.push(place.to_string());
                    return Ok(());
                }
            };
            let opened = self.key.open(sealed.expose(), &place.bound(), self.nonces.as_deref_mut());
            let damaged = |why| SopsError::Damaged { place: place.to_string(), why };
            match opened.map_err(damaged)? {
                Plain::Value(plain) => *value = plain,
                Plain::Comment(_) => return Err(damaged("a comment in the place of a value")),
            }
        }
        self.mac.add(value, encrypted);
        Ok(())
    }

    fn comment(
        &mut self,
        text: &mut Secret,
        place: &Place,
        encrypted: bool,
    ) -> Result<(), SopsError> {
        // A comment in clear is nothing to sops: older versions wrote them so, and people add some.
        if !encrypted || !cipher::is_sealed(text.expose()) {
            return Ok(());
        }
        // Where a comment belongs is a matter of taste between YAML readers; further out is tried too.
        let mut why = "damaged";
        for bound in std::iter::once(place.bound()).chain(place.bound_outside()) {
            match self.key.open(text.expose(), &bound, self.nonces.as_deref_mut()) {
                Ok(Plain::Comment(plain)) => {
                    *text = plain;
                    return Ok(());
                }
                Ok(Plain::Value(_)) => why = "a value in the place of a comment",
                Err(reason) => why = reason,
            }
        }
        Err(SopsError::Damaged { place: format!("{place} (a comment)"), why })
    }

    fn lists_comments_as_values(&self) -> bool {
        false
    }
}

#[derive(Default)]
pub(crate) struct InClear {
    pub(crate) places: Vec<String>,
}

impl Visitor for InClear {
    fn value(
        &mut self,
        value: &mut Value,
        place: &Place,
        encrypted: bool,
    ) -> Result<(), SopsError> {
        let fine = match value {
            Value::Text(text) => text.expose().is_empty() || cipher::is_sealed(text.expose()),
            _ => false,
        };
        if encrypted && !fine {
            self.places.push(place.to_string());
        }
        Ok(())
    }

    fn comment(
        &mut self,
        text: &mut Secret,
        place: &Place,
        encrypted: bool,
    ) -> Result<(), SopsError> {
        if encrypted && !text.expose().is_empty() && !cipher::is_sealed(text.expose()) {
            self.places.push(format!("{place} (a comment)"));
        }
        Ok(())
    }

    fn lists_comments_as_values(&self) -> bool {
        false
    }
}
