//! Times of expiry as RFC 3339 allows them to be written.

use jiff::civil::Date;

use crate::time::UnixTime;

/// Reads a time of RFC 3339, section 5.6: with any number of digits after the second, any offset, either case, a space in
/// place of the `T`, and leap seconds, which count as the second after. `None` if it is not one.
///
/// All of its years fit, which is why no library does it here: 9999-12-31 is what programs print for "never", and it lies
/// outside of what most can count.
pub(super) fn parse(text: &str) -> Option<UnixTime> {
    let (date, rest) = text.trim().split_at_checked(10)?;
    let day = day(date)?;
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (clock, rest) = rest.split_at_checked(8)?;
    let (hour, minute) = (number(clock.get(0..2)?, 23)?, number(clock.get(3..5)?, 59)?);
    let second = number(clock.get(6..8)?, 60)?;
    if clock.as_bytes()[2] != b':' || clock.as_bytes()[5] != b':' {
        return None;
    }
    let (micros, zone) = fraction(rest)?;
    let seconds = day * 86_400 + hour * 3600 + minute * 60 + second - offset(zone)?;
    Some(UnixTime::from_micros(seconds * 1_000_000 + micros))
}

/// Days since the Unix epoch.
fn day(text: &str) -> Option<i64> {
    let part = |from: usize, to: usize, max| number(text.get(from..to)?, max);
    if text.as_bytes()[4] != b'-' || text.as_bytes()[7] != b'-' {
        return None;
    }
    let (year, month, day) = (part(0, 4, 9999)?, part(5, 7, 12)?, part(8, 10, 31)?);
    let date = Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    let before = year - i64::from(year > 0);
    // Full years before this one, among which the leap years are; year 0 is one.
    let leaps = if year > 0 { before / 4 - before / 100 + before / 400 + 1 } else { 0 };
    Some(year * 365 + leaps + i64::from(date.day_of_year()) - 1 - EPOCH)
}

/// Microseconds, and what comes after them.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Some((0, text)) };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (fraction, zone) = rest.split_at(digits);
    let micros = fraction.bytes().chain(std::iter::repeat(b'0')).take(6);
    (digits > 0).then(|| (micros.fold(0, |micros, digit| micros * 10 + i64::from(digit - b'0')), zone))
}

/// Seconds east of Greenwich.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let sign = match zone.bytes().next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hour, minute) = zone[1..].split_once(':')?;
    Some(sign * (number(hour, 23)? * 3600 + number(minute, 59)? * 60))
}

/// A number of two or four digits.
fn number(digits: &str, max: i64) -> Option<i64> {
    let is_number = matches!(digits.len(), 2 | 4) && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number = digits.parse().ok().filter(|number| *number <= max)?;
    is_number.then_some(number)
}

/// Days from the beginning of year 0 to 1970-01-01.
const EPOCH: i64 = 719_528;

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_form_of_rfc_3339_is_read() {
        for (text, micros) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-01-02T03:04:05Z", 1_767_323_045_000_000),
            ("2026-01-02t03:04:05z", 1_767_323_045_000_000),
            ("2026-01-02 03:04:05Z", 1_767_323_045_000_000),
            ("2026-01-02T03:04:05.1Z", 1_767_323_045_100_000),
            ("2026-01-02T03:04:05.123456789012345Z", 1_767_323_045_123_456),
            ("2026-01-02T05:04:05+02:00", 1_767_323_045_000_000),
            ("2026-01-01T22:34:05-04:30", 1_767_323_045_000_000),
            ("2026-01-02T03:04:05-00:00", 1_767_323_045_000_000),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000_000),
            ("9999-12-31T23:59:59Z", 253_402_300_799_000_000),
            ("9999-12-31T23:59:59-23:59", 253_402_387_139_000_000),
            ("0001-01-01T00:00:00Z", -62_135_596_800_000_000),
            ("0000-01-01T00:00:00Z", -62_167_219_200_000_000),
            ("2000-02-29T00:00:00Z", 951_782_400_000_000),
        ] {
            assert_eq!(parse(text).map(UnixTime::as_micros), Some(micros), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2026-01-02",
            "2026-01-02T03:04:05",
            "2026-01-02T03:04Z",
            "2026-13-02T03:04:05Z",
            "2026-02-29T03:04:05Z",
            "2026-01-02T24:00:00Z",
            "2026-01-02T03:60:05Z",
            "2026-01-02T03:04:61Z",
            "2026-01-02T03:04:05.Z",
            "2026-01-02T03:04:05+0200",
            "2026-01-02T03:04:05+24:00",
            "2026-01-02T03:04:05Zulu",
            "2026/01/02T03:04:05Z",
            "26-01-02T03:04:05Z",
            "+026-01-02T03:04:05Z",
            "１970-01-01T00:00:00Z",
            "2026-01-02T03:04:05é",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_a_library_prints_is_read_as_it_meant(micros in Timestamp::MIN.as_microsecond()..Timestamp::MAX.as_microsecond()) {
            let timestamp = Timestamp::from_microsecond(micros).unwrap();
            let text = timestamp.to_string();
            // Years before 0 have six digits, and are not of RFC 3339.
            prop_assert_eq!(parse(&text), (!text.starts_with('-')).then_some(UnixTime::from_micros(micros)), "{}", text);
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = parse(&text);
        }
    }
}
