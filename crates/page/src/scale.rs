//! Time as places on an axis, and as words.

use castle_model::time::length;

/// Distances between the marks of an axis that a person can count in, in seconds.
const STEPS: [u64; 16] =
    [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200];

/// More marks than these would touch each other on a phone.
const MOST_MARKS: u64 = 7;

/// The axis of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale {
    /// How long it is, in milliseconds.
    pub(crate) span: u64,
    /// From one mark to the next.
    pub(crate) step: u64,
}

impl Scale {
    pub(crate) fn new(span: u64) -> Self {
        let fits = |step: &u64| span / (step * 1000) <= MOST_MARKS;
        let days = span.div_ceil(86_400_000 * MOST_MARKS) * 86_400;
        let step = STEPS.into_iter().find(fits).unwrap_or(days) * 1000;
        Self { span: span.max(1), step }
    }

    /// The marks, from the beginning on; one so near to the end that its word would not fit is left out.
    pub(crate) fn marks(self) -> impl Iterator<Item = u64> {
        let marks = (0..=self.span / self.step).map(move |n| n * self.step);
        marks.filter(move |at| *at == 0 || at * 100 <= self.span * 91)
    }

    /// A place in percent, from thousandths, so that the page is the same everywhere.
    pub(crate) fn percent(self, at: u64) -> String {
        let parts = at.min(self.span).saturating_mul(100_000) / self.span;
        let (whole, rest) = (parts / 1000, parts % 1000);
        match format!("{whole}.{rest:03}").trim_end_matches('0').trim_end_matches('.') {
            "" => "0%".to_owned(),
            shown => format!("{shown}%"),
        }
    }

    /// The style of something from here to there.
    pub(crate) fn place(self, begin: u64, end: u64) -> String {
        let width = end.saturating_sub(begin);
        format!("left:{};width:{}", self.percent(begin), self.percent(width))
    }
}

/// A moment of the run: `0:07`, `12:30`, `1:02:03`.
pub(crate) fn clock(at: u64) -> String {
    let seconds = at / 1000;
    if seconds < 3600 {
        format!("{}:{:02}", seconds / 60, seconds % 60)
    } else {
        format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
    }
}

/// How a time compares with another: `4.0 s faster`, `as long`.
pub(crate) fn against(time: u64, other: u64) -> String {
    let by = time.abs_diff(other);
    match time.cmp(&other) {
        _ if by < 100 => "as long".to_owned(),
        std::cmp::Ordering::Less => format!("{} faster", length(by)),
        _ => format!("{} slower", length(by)),
    }
}

/// A share of a whole, in percent.
pub(crate) fn share(part: u64, whole: u64) -> String {
    let rounded = part.saturating_mul(100).saturating_add(whole / 2);
    let percent = rounded.checked_div(whole).unwrap_or(0);
    // What reads the same is all of it, and nothing else is.
    let all = length(part) == length(whole);
    format!("{} %", if all { 100 } else { percent.min(99) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_few_marks_that_can_be_counted_in() {
        for span in [1, 500, 999, 7_999, 61_000, 187_000, 3_600_000, 86_400_000, 900_000_000] {
            let scale = Scale::new(span);
            let marks: Vec<u64> = scale.marks().collect();
            assert!((1..=8).contains(&marks.len()), "{span}: {marks:?}");
            assert!(marks.iter().all(|at| *at <= span), "{span}: {marks:?}");
        }
        assert_eq!(Scale::new(187_000).step, 30_000);
        assert_eq!(Scale::new(96_100).step, 15_000);
    }

    #[test]
    fn places_are_percents_without_noise() {
        let scale = Scale::new(96_100);
        assert_eq!(scale.percent(0), "0%");
        assert_eq!(scale.percent(96_100), "100%");
        assert_eq!(scale.percent(48_050), "50%");
        assert_eq!(scale.percent(1), "0.001%");
        assert_eq!(scale.percent(1_000_000), "100%", "nothing leaves the picture");
        assert_eq!(scale.place(0, 48_050), "left:0%;width:50%");
    }

    #[test]
    fn times_are_compared_in_words() {
        assert_eq!(against(90_000, 96_000), "6.0 s faster");
        assert_eq!(against(96_000, 90_000), "6.0 s slower");
        assert_eq!(against(90_000, 90_050), "as long");
    }
}
