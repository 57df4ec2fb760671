//! Slows the rehearsal down so that a person can watch: the paused clock jumps, and is held after each jump.

use std::time::Duration;

/// How long the clock runs free between two holds, in real time.
const STEP: Duration = Duration::from_millis(20);

/// Holds virtual time to `speed` times real time, for as long as the future is polled.
///
/// The clock is never moved by hand, so no timer is late and the trace is that of the unbraked run.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that measures and spends real time, so that a person can watch"
)]
pub async fn hold(speed: u32) {
    let began = (tokio::time::Instant::now(), std::time::Instant::now());
    loop {
        tokio::time::sleep(STEP * speed.max(1)).await;
        let wanted = began.0.elapsed() / speed.max(1);
        let ahead = wanted.saturating_sub(began.1.elapsed());
        if !ahead.is_zero() {
            // A blocking task keeps the paused clock from jumping; a cancelled or failed one just holds less.
            drop(tokio::task::spawn_blocking(move || std::thread::sleep(ahead)).await);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    #[expect(clippy::disallowed_methods, reason = "the brake is about real time")]
    async fn virtual_time_is_held_to_its_speed() {
        let began = std::time::Instant::now();
        let end = tokio::time::sleep(Duration::from_secs(100));
        tokio::select! {
            biased;
            () = end => {}
            () = hold(1000) => {}
        }
        // 100 s at thousandfold speed: the last hold may still be owed.
        assert!(began.elapsed() >= Duration::from_millis(70), "{:?}", began.elapsed());
    }
}
