//! Where the emulated API server is known to say something else than the real one, and why that is so. It may only shrink.

/// A case, the steps whose answers differ, and the reason.
type Known = (&'static str, &'static [&'static str], &'static str);

/// All that is known to differ.
pub(crate) const KNOWN_DIFFERENCES: &[Known] = &[];
