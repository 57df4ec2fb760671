//! What of the recording is not answered as recorded, and why. The page about fidelity shows it.

use std::ops::RangeInclusive;

/// How many exchanges were recorded.
pub(crate) const EXCHANGES: usize = 271;

/// Recorded exchanges that are not answered as recorded, and why.
pub(crate) const LEFT_OUT: &[(RangeInclusive<u64>, &str)] = &[
    (146..=152, "lost a race for a new key: here one call is served after the other"),
    (153..=159, "lost a race for a new key, as an upsert"),
    (266..=270, "lost a race for a new key, as an upsert"),
];
