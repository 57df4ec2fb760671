//! Waiting for a lock that another process holds: with a deadline, and telling who is waited for.

use std::time::{Duration, Instant};

use castle_model::time::length;

use crate::output;

/// How often a lock is tried.
const BETWEEN: Duration = Duration::from_millis(200);

/// How long somebody is ready to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience(pub(crate) Duration);

impl std::str::FromStr for Patience {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "give a length of time such as 30s, 10m or 2h".to_owned();
        let unit = text.chars().last().ok_or_else(wrong)?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            _ => return Err(wrong()),
        };
        let number: u32 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
        Ok(Self(Duration::from_secs(u64::from(number) * seconds)))
    }
}

/// Tries until it is free, somebody's patience is over, or it fails otherwise. `busy` tells who is in the way.
#[expect(
    clippy::disallowed_methods,
    reason = "another process is waited for in real time, before any runtime; the time of day may jump meanwhile"
)]
pub(crate) fn until_free<T, E>(
    patience: Option<Patience>,
    mut attempt: impl FnMut() -> Result<T, E>,
    busy: impl Fn(&E) -> Option<String>,
) -> Result<T, E> {
    let began = Instant::now();
    let mut told = None;
    loop {
        let error = match attempt() {
            Ok(free) => return Ok(free),
            Err(error) => error,
        };
        let (Some(Patience(limit)), Some(who)) = (patience, busy(&error)) else {
            return Err(error);
        };
        let left = limit.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Err(error);
        }
        if told.as_ref() != Some(&who) {
            output::say(&format!("waiting up to {}: {who}", shown(left)));
            told = Some(who);
        }
        std::thread::sleep(left.min(BETWEEN));
    }
}

fn shown(duration: Duration) -> String {
    length(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_read() {
        let seconds = |text: &str| text.parse::<Patience>().map(|patience| patience.0.as_secs());
        assert_eq!(seconds("30s"), Ok(30));
        assert_eq!(seconds("10m"), Ok(600));
        assert_eq!(seconds("2h"), Ok(7200));
        for wrong in ["", "m", "10", "-1s", "1.5h", "10 m", "5ü"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_becomes_free_is_taken_and_what_does_not_is_given_up() {
        let mut tries = 0;
        let mut freed_at = |free: u32| {
            tries += 1;
            if tries >= free { Ok(tries) } else { Err("held") }
        };
        let busy = |error: &&str| Some((*error).to_owned());
        let minute = Some(Patience(Duration::from_mins(1)));
        assert_eq!(until_free(minute, || freed_at(2), busy), Ok(2));
        assert_eq!(until_free(None, || freed_at(9), busy), Err("held"), "nobody wanted to wait");
        let none = Some(Patience(Duration::ZERO));
        assert_eq!(until_free(none, || freed_at(9), busy), Err("held"), "the time was over");
        assert_eq!(
            until_free(minute, || freed_at(9), |_| None),
            Err("held"),
            "it is another failure"
        );
    }
}
