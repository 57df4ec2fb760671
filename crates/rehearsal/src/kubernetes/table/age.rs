//! Times as Kubernetes writes them, and lengths of time as kubectl prints them.

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Seconds since 1970 of `2026-02-02T00:03:30Z`, with fractions of a second or without, there or in another zone (`+01:00`).
pub(super) fn moment(stamp: &str) -> Option<i64> {
    let number = |from: usize, to: usize| stamp.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let zone = stamp.get(19..)?.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    let ahead = match (zone.get(..1)?, zone.get(1..)?) {
        ("Z", "") => 0,
        (sign @ ("+" | "-"), zone) => {
            let (hours, minutes) = zone.split_once(':')?;
            let seconds = hours.parse::<i64>().ok()? * HOUR + minutes.parse::<i64>().ok()? * MINUTE;
            if sign == "+" { seconds } else { -seconds }
        }
        _ => return None,
    };
    // Years that begin in March have their odd day at the end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some((days - 719_468) * DAY + hour * HOUR + minute * MINUTE + second - ahead)
}

/// A length of time: two units where one would be rough.
pub(super) fn human(seconds: i64) -> String {
    let pair = |large: i64, unit: &str, small: i64, lesser: &str| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{lesser}") }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => pair(seconds / MINUTE, "m", seconds % MINUTE, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => pair(seconds / HOUR, "h", seconds % HOUR / MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => pair(seconds / DAY, "d", seconds % DAY / HOUR, "h"),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => pair(seconds / YEAR, "y", seconds % YEAR / DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}
