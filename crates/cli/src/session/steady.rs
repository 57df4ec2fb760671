//! The time of a run: the time of day when it began, and from then on a clock that nobody sets.

use castle_model::time::Moment;
use castle_wire::Clock;
use tokio::time::Instant;

/// Differences of its moments are lengths, whatever happens to the time of day meanwhile.
pub(crate) struct Steady {
    day: Moment,
    began: Instant,
}

impl From<Moment> for Steady {
    fn from(day: Moment) -> Self {
        Self { day, began: Instant::now() }
    }
}

impl Clock for Steady {
    fn now(&self) -> Moment {
        let since = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Moment(self.day.0.saturating_add(since))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_from_the_time_of_day() {
        let steady = Steady::from(Moment(1_000));
        tokio::time::advance(Duration::from_millis(2_500)).await;
        assert_eq!(steady.now(), Moment(3_500));
    }
}
