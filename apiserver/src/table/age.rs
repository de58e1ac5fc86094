//! Times and durations as people read them.

use std::time::Duration;

use cloudcoil_core::UnixTime;
use jiff::Timestamp;

/// How long before `now` an RFC 3339 time was; `<unknown>` without a time, `<invalid>` for what is none.
pub(super) fn since(now: UnixTime, time: &str) -> String {
    match time {
        "" | "null" => UNKNOWN.to_owned(),
        _ => parse(time)
            .map_or_else(|| INVALID.to_owned(), |time| human(now.as_micros().saturating_sub(time.as_micros()))),
    }
}

/// How long it took from one RFC 3339 time to the other.
pub(super) fn between(start: &str, end: UnixTime) -> Option<String> {
    Some(human(end.as_micros().saturating_sub(parse(start)?.as_micros())))
}

pub(super) fn parse(time: &str) -> Option<UnixTime> {
    time.parse::<Timestamp>().ok().map(|time| UnixTime::from_micros(time.as_microsecond()))
}

/// As `kubectl` writes durations: two units at most, and only where the smaller one matters.
///
/// A little less than nothing is taken for nothing, since clocks differ.
pub(super) fn human(micros: i64) -> String {
    let seconds = micros / MICROS;
    if seconds < -1 {
        return INVALID.to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours) = (seconds / 60, seconds / HOUR);
    let (days, years) = (hours / 24, hours / 24 / 365);
    match () {
        () if seconds < 2 * 60 => format!("{seconds}s"),
        () if minutes < 10 => two((minutes, "m"), (seconds % 60, "s")),
        () if minutes < 3 * 60 => format!("{minutes}m"),
        () if hours < 8 => two((hours, "h"), (minutes % 60, "m")),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two((days, "d"), (hours % 24, "h")),
        () if days < 2 * 365 => format!("{days}d"),
        () if days < 8 * 365 => two((years, "y"), (days % 365, "d")),
        () => format!("{years}y"),
    }
}

pub(super) fn human_duration(duration: Duration) -> String {
    human(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
}

fn two((large, large_unit): (i64, &str), (small, small_unit): (i64, &str)) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    }
}

const MICROS: i64 = 1_000_000;
const HOUR: i64 = 60 * 60;
const UNKNOWN: &str = "<unknown>";
const INVALID: &str = "<invalid>";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_precision_of_kubectl() {
        const DAY: i64 = 24 * HOUR;
        let cases = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 60, "3h1m"),
            (8 * HOUR - 1, "7h59m"),
            (8 * HOUR, "8h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + HOUR, "2d1h"),
            (8 * DAY - 1, "7d23h"),
            (8 * DAY, "8d"),
            (730 * DAY - 1, "729d"),
            (730 * DAY, "2y"),
            (731 * DAY, "2y1d"),
            (8 * 365 * DAY - 1, "7y364d"),
            (8 * 365 * DAY, "8y"),
        ];
        for (seconds, text) in cases {
            assert_eq!(human(seconds * MICROS), text, "{seconds}");
        }
        assert_eq!(human(-1_999_999), "0s");
        assert_eq!(human(i64::MIN), "<invalid>");
        assert_eq!(human(i64::MAX), "292471y");
    }

    #[test]
    fn a_time_that_is_missing_or_none_is_told() {
        let now = UnixTime::from_secs(100);
        assert_eq!(since(now, ""), "<unknown>");
        assert_eq!(since(now, "yesterday"), "<invalid>");
        assert_eq!(since(now, "1970-01-01T00:00:01.999999Z"), "98s");
        assert_eq!(since(now, "1970-01-01T01:00:00+01:00"), "100s");
    }
}
