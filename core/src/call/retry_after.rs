//! The `Retry-After` header in each of its forms.

use std::time::Duration;

use http::{HeaderMap, HeaderName, header};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::time::UnixTime;

/// What `Retry-After` asks for; a date counts from the `Date` of the same answer, and without one asks for nothing.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    read(headers, || date(headers, &header::DATE))
}

/// As [`retry_after`]; a date in an answer without a `Date` counts from `wall`.
pub(super) fn retry_after_at(headers: &HeaderMap, wall: UnixTime) -> Option<Duration> {
    read(headers, || date(headers, &header::DATE).or_else(|| Some(wall.timestamp())))
}

fn read(headers: &HeaderMap, now: impl FnOnce() -> Option<Timestamp>) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // What has too many digits is a long time all the same.
        return Some(Duration::from_secs(text.parse::<u32>().unwrap_or(u32::MAX).into()));
    }
    let until = parse_date(text)?;
    Some(Duration::try_from(until.duration_since(now()?)).unwrap_or(Duration::ZERO))
}

fn date(headers: &HeaderMap, name: &HeaderName) -> Option<Timestamp> {
    parse_date(headers.get(name)?.to_str().ok()?.trim())
}

/// A date in one of the three forms of <https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7>; all are in GMT. The day of the week
/// says nothing that the rest does not.
fn parse_date(text: &str) -> Option<Timestamp> {
    let (_, date) = text.split_once(' ')?;
    FORMS.iter().find_map(|form| {
        let time = DateTime::strptime(form, date).ok()?;
        TimeZone::UTC.to_timestamp(time).ok()
    })
}

const FORMS: [&str; 3] = ["%d %b %Y %H:%M:%S GMT", "%d-%b-%y %H:%M:%S GMT", "%b %e %H:%M:%S %Y"];

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str, date: Option<&str>) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, text.parse().unwrap());
        if let Some(date) = date {
            headers.insert(header::DATE, date.parse().unwrap());
        }
        retry_after_at(&headers, UnixTime::from_secs(784_111_777))
    }

    #[test]
    fn seconds_and_dates_are_read_and_nothing_else() {
        let seconds = |secs| Some(Duration::from_secs(secs));
        assert_eq!(asked("2", None), seconds(2));
        assert_eq!(asked(" 0 ", None), seconds(0));
        assert_eq!(asked("99999999999999999999999", None), seconds(u32::MAX.into()));
        for odd in ["", "-1", "+1", "1.5", "1s", "soon", "Sun, 99 Nov 1994 08:49:37 GMT", "2 3", "0x10"] {
            assert_eq!(asked(odd, None), None, "{odd:?}");
        }
        for date in ["Sun, 06 Nov 1994 08:49:47 GMT", "Sunday, 06-Nov-94 08:49:47 GMT", "Sun Nov  6 08:49:47 1994"] {
            assert_eq!(asked(date, None), seconds(10), "{date:?}");
        }
    }

    #[test]
    fn a_date_counts_from_the_servers_clock_where_it_shows_one() {
        let date = "Sun, 06 Nov 1994 08:49:47 GMT";
        assert_eq!(asked(date, Some("Sun, 06 Nov 1994 08:49:40 GMT")), Some(Duration::from_secs(7)));
        assert_eq!(asked(date, Some("nonsense")), Some(Duration::from_secs(10)));
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:07 GMT", None), Some(Duration::ZERO), "a date that has passed");
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, date.parse().unwrap());
        assert_eq!(retry_after(&headers), None, "no clock at all");
    }
}
