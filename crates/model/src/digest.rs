//! Digests of what may hold secrets: a change is noticed, and nothing can be found out by trying values.

use std::fmt;

use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::secret::{REDACTED, Secret};

/// What the derivation of every key begins with, so that no other use of the same secret gives the same.
const LABEL: &str = "castle digest 1";

/// The key of digests for one purpose, derived from a secret that lives as long as they are compared.
///
/// A bare hash of a secret could be tested against guesses by whoever reads it: in a journal, or on an object in the
/// cluster. Under a key that is a secret itself it says nothing but "the same as before".
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct DigestKey([u8; 32]);

impl DigestKey {
    /// The key for a purpose, such as `kubernetes objects`.
    #[must_use]
    pub fn derived(from: &Secret, purpose: &str) -> Self {
        let mut mac = keyed(from.expose().as_bytes());
        for part in [LABEL, purpose] {
            mac.update(part.as_bytes());
            mac.update(&[0]);
        }
        Self(mac.finalize().into_bytes().into())
    }

    /// The digest of a text: HMAC-SHA-256 as 64 hexadecimal digits.
    #[must_use]
    pub fn of(&self, text: impl AsRef<[u8]>) -> String {
        hex::encode(keyed(&self.0).chain_update(text).finalize().into_bytes())
    }
}

impl fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_hmac_sha_256() {
        // RFC 4231, test case 2.
        let digest = keyed(b"Jefe").chain_update("what do ya want for nothing?").finalize();
        assert_eq!(
            hex::encode(digest.into_bytes()),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn a_digest_depends_on_the_secret_the_purpose_and_the_text() {
        let (one, other) = (Secret::new("a secret"), Secret::new("another"));
        let key = DigestKey::derived(&one, "objects");
        assert_eq!(key.of("text"), DigestKey::derived(&one, "objects").of("text"));
        assert_ne!(key.of("text"), key.of("texT"));
        assert_ne!(key.of("text"), DigestKey::derived(&one, "configs").of("text"));
        assert_ne!(key.of("text"), DigestKey::derived(&other, "objects").of("text"));
    }

    #[test]
    fn a_key_does_not_show_itself() {
        let key = DigestKey::derived(&Secret::new("a secret"), "objects");
        assert_eq!(format!("{key:?}"), REDACTED);
    }
}
