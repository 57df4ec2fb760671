//! Moments as plain numbers: milliseconds since 1970 in UTC, given from outside and only formatted here.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A moment, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Moment(pub u64);

impl Moment {
    /// How long after `earlier` this is, in milliseconds; 0 if the clock went back in between.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Year, month, day of the moment in UTC.
    #[must_use]
    pub fn date(self) -> (i64, u64, u64) {
        // Days since 0000-03-01 in the proleptic Gregorian calendar, whose years end with the leap day.
        let days = i64::try_from(self.0 / 86_400_000).unwrap_or(0) + 719_468;
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        (year, month.unsigned_abs(), day.unsigned_abs())
    }
}

impl fmt::Display for Moment {
    /// RFC 3339 in UTC with milliseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        let ms = self.0 % 86_400_000;
        let (hour, minute) = (ms / 3_600_000, ms / 60_000 % 60);
        let (second, milli) = (ms / 1000 % 60, ms % 1000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

/// A length of time for a person: `0.4 s`, `12.3 s`, `3:07`, `1:02:03`.
#[must_use]
pub fn length(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    if seconds < 60 {
        format!("{}.{} s", seconds, milliseconds % 1000 / 100)
    } else if seconds < 3600 {
        format!("{}:{:02}", seconds / 60, seconds % 60)
    } else {
        format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_read_as_rfc_3339() {
        assert_eq!(Moment(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Moment(951_782_400_000).to_string(), "2000-02-29T00:00:00.000Z");
        assert_eq!(Moment(1_770_033_599_999).to_string(), "2026-02-02T11:59:59.999Z");
    }

    #[test]
    fn lengths_are_short() {
        assert_eq!(length(0), "0.0 s");
        assert_eq!(length(12_345), "12.3 s");
        assert_eq!(length(187_000), "3:07");
        assert_eq!(length(3_723_000), "1:02:03");
    }

    #[test]
    fn a_clock_that_goes_back_gives_zero() {
        assert_eq!(Moment(5).since(Moment(9)), 0);
    }
}
