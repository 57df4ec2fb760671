//! Seeded randomness, all in integers, so that every machine draws the same.

use serde::{Deserialize, Serialize};

/// Seeded randomness (SplitMix64): the same seed gives the same world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// Dice from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A whole number from 0 to `below` − 1 (0 if `below` is 0).
    pub fn below(&mut self, below: u64) -> u64 {
        if below == 0 { 0 } else { self.next_u64() % below }
    }

    /// Fills a buffer.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            let bytes = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }

    /// A draw from the triangular distribution over (shortest, usual, longest), whole milliseconds.
    pub fn triangular(&mut self, (low, mode, high): (u64, u64, u64)) -> u64 {
        // All in integers, so that every machine draws the same.
        if high <= low {
            return low;
        }
        let (span, rise) = (high - low, mode.saturating_sub(low));
        let scale = 1_u64 << 32;
        let u = self.below(scale);
        let root = |n: u128| u64::try_from(n.isqrt()).unwrap_or(u64::MAX);
        let threshold = u128::from(scale) * u128::from(rise) / u128::from(span);
        if u128::from(u) < threshold {
            low + root(u128::from(u) * u128::from(span) * u128::from(rise) / u128::from(scale))
        } else {
            let rest = u128::from(scale - u) * u128::from(span) * u128::from(high - mode.max(low));
            high - root(rest / u128::from(scale))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn draws_stay_within_their_span(seed: u64, low in 0_u64..1000, rise in 0_u64..1000, fall in 0_u64..1000) {
            let mut dice = Dice::new(seed);
            let span = (low, low + rise, low + rise + fall);
            for _ in 0..20 {
                let drawn = dice.triangular(span);
                prop_assert!((span.0..=span.2).contains(&drawn), "{drawn} of {span:?}");
            }
        }
    }

    #[test]
    fn the_usual_value_is_usual() {
        let mut dice = Dice::new(7);
        let near = (0..2000)
            .filter(|_| (8000..20_000).contains(&dice.triangular((8000, 14_000, 25_000))))
            .count();
        assert!(near > 1600, "{near}");
    }
}
