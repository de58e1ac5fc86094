//! Durations as kubectl takes them.

use std::time::Duration;

/// A duration, which may be negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    negative: bool,
    length: Duration,
}

impl Span {
    pub(crate) const fn seconds(seconds: u64) -> Self {
        Self { negative: false, length: Duration::from_secs(seconds) }
    }

    /// A limit on time, where zero is none.
    pub(crate) fn limit(self) -> Option<Duration> {
        Some(self.length).filter(|length| !length.is_zero() && !self.negative)
    }

    /// How long to wait: not at all for zero, and for a week when negative, as kubectl has it.
    pub(crate) fn patience(self) -> Duration {
        if self.negative { WEEK } else { self.length }
    }

    /// Its length; negative ones have none.
    pub(crate) fn length(self) -> Duration {
        if self.negative { Duration::ZERO } else { self.length }
    }
}

/// Reads `1m30s`, `1.5h`, `200ms` and the like, or a bare number of seconds, which is not negative.
pub(crate) fn parse(text: &str) -> Result<Span, String> {
    let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let rest = if negative { rest } else { rest.strip_prefix('+').unwrap_or(rest) };
    let bare = rest.bytes().all(|byte| byte.is_ascii_digit());
    if bare && negative {
        return Err("a negative duration needs a unit, as -1s".to_owned());
    }
    let seconds = if bare { rest.parse().ok() } else { parts(rest) };
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .map(|length| Span { negative, length })
        .ok_or_else(|| "a duration is written as 1m30s, or as a number of seconds".to_owned())
}

/// The sum of numbers with units.
fn parts(mut text: &str) -> Option<f64> {
    let mut sum = 0.0;
    while !text.is_empty() {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, rest) = text.split_at(end);
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(end);
        let seconds = UNITS.iter().find(|(name, _)| *name == unit)?.1;
        sum += number.parse::<f64>().ok()? * seconds;
        text = rest;
    }
    Some(sum)
}

const UNITS: &[(&str, f64)] =
    &[("h", 3600.0), ("m", 60.0), ("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("μs", 1e-6), ("ns", 1e-9)];
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_kubectl_reads_them() {
        for (text, millis) in [
            ("1m30s", 90_000),
            ("90", 90_000),
            ("1.5h", 5_400_000),
            ("200ms", 200),
            ("0", 0),
            ("1h0m0s", 3_600_000),
            (".5s", 500),
        ] {
            assert_eq!(parse(text).unwrap().length(), Duration::from_millis(millis), "{text}");
        }
        for text in
            ["", "-", "1 m", "1x", "m", "1m30", "1..2s", "1e3s", "ten", "1s-", "-1", "-0", "99999999999999999999h"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn zero_is_no_limit_and_a_negative_wait_takes_a_week() {
        assert_eq!(parse("0s").unwrap().limit(), None);
        assert_eq!(parse("-1s").unwrap().patience(), WEEK);
        assert_eq!(parse("0").unwrap().patience(), Duration::ZERO);
    }
}
