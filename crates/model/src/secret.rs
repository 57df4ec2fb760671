//! A value that cannot be shown: it is wiped when dropped and has one door, [`Secret::expose`].
//!
//! Every clone is wiped on its own. Comparing takes a time that depends on the values: nobody outside can hand in guesses
//! and measure, both sides are always ours.

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

/// What stands in the place of a secret wherever one would be printed.
pub const REDACTED: &str = "(secret)";

/// Secret text. No `Serialize`, no `Display`; `Debug` prints [`REDACTED`].
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Secret(String);

impl Secret {
    /// Takes charge of a secret text. A `String` is taken over as it is, so that no copy of it stays behind unwiped.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Gives the text out. Every call of this is a place to review.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether nothing, or nothing but white space, is inside.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.0.trim().is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_taken_over_and_wiped() {
        fn wiped<T: ZeroizeOnDrop>(_: &T) {}
        let text = String::from("hunter2");
        let place = text.as_ptr();
        let mut secret = Secret::new(text);
        assert_eq!(secret.expose().as_ptr(), place, "no copy was made");
        wiped(&secret);
        let copy = secret.clone();
        secret.zeroize();
        assert_eq!((secret.expose(), copy.expose()), ("", "hunter2"));
    }

    #[test]
    fn debug_hides_the_value() {
        let shown = format!("{:?} {:#?}", Secret::new("hunter2"), Some(Secret::new("hunter2")));
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains(REDACTED));
    }
}
