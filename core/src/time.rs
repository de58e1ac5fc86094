//! Time as the core sees it: an argument, never a clock.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use jiff::Timestamp;

/// Monotonic time since an epoch the driver picks. The core never reads a clock.
///
/// Arithmetic saturates, so a deadline centuries away is legal and simply never comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The driver's epoch.
    pub const ZERO: Self = Self(0);

    /// The time `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The time `secs` seconds after the epoch.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub for Time {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// Wall-clock time in microseconds since the Unix epoch: what Kubernetes wants stamped into objects.
///
/// Nothing is decided by it; two machines may disagree about it by any amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(i64);

impl UnixTime {
    /// The time `micros` microseconds after 1970-01-01T00:00:00Z.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// The time `secs` seconds after 1970-01-01T00:00:00Z.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// As `metav1.Time` is written: RFC 3339 in whole seconds, `2026-01-02T03:04:05Z`.
    pub fn to_rfc3339(self) -> String {
        self.timestamp().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// As `metav1.MicroTime` is written: RFC 3339 with exactly six digits, `2026-01-02T03:04:05.000006Z`.
    pub fn to_rfc3339_micros(self) -> String {
        self.timestamp().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
    }

    /// As HTTP writes it in `Date`: `Fri, 02 Jan 2026 03:04:05 GMT`. Years before 0 are written as 0.
    pub fn to_http(self) -> String {
        let time = self.timestamp().max(FIRST_YEAR);
        time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }

    /// The same instant as a `jiff` timestamp, clamped to the years it can hold.
    pub fn timestamp(self) -> Timestamp {
        // The last second that it can hold cannot be made of microseconds with a fraction.
        let clamped = self.0.clamp(Timestamp::MIN.as_microsecond(), Timestamp::MAX.as_second() * 1_000_000);
        Timestamp::from_microsecond(clamped).expect("clamped to the range of Timestamp")
    }
}

/// The beginning of the year 0.
const FIRST_YEAR: Timestamp = Timestamp::constant(-62_167_219_200, 0);

impl Add<Duration> for UnixTime {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_rfc3339_micros())
    }
}

/// The two clocks a driver hands to a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Decides everything: timers, timeouts, leases.
    pub mono: Time,
    /// Only stamps what Kubernetes wants stamped.
    pub wall: UnixTime,
}

impl Now {
    /// Both clocks `duration` later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self { mono: self.mono + duration, wall: self.wall + duration }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_saturates_instead_of_wrapping() {
        assert_eq!(Time::from_secs(1) + Duration::MAX, Time::from_nanos(u64::MAX));
        assert_eq!(Time::ZERO.since(Time::from_secs(1)), Duration::ZERO);
    }

    #[test]
    fn wall_time_is_written_as_kubernetes_writes_it() {
        let time = UnixTime::from_micros(1_767_323_045_000_006);
        assert_eq!(time.to_rfc3339(), "2026-01-02T03:04:05Z");
        assert_eq!(time.to_rfc3339_micros(), "2026-01-02T03:04:05.000006Z");
        assert_eq!(time.to_http(), "Fri, 02 Jan 2026 03:04:05 GMT");
        assert_eq!(UnixTime::from_micros(i64::MIN).to_http(), "Sat, 01 Jan 0000 00:00:00 GMT");
        for (micros, year) in [(i64::MAX, "9999-"), (i64::MIN, "-9999-")] {
            assert!(UnixTime::from_micros(micros).to_rfc3339().starts_with(year));
        }
    }
}
