//! Times in RFC 3339, as the API server reads and writes them in JSON.

/// The RFC 3339 text of a time in UTC, with six digits of a second when `micros` is given; `None` before the year
/// 0 and after 9999.
pub(super) fn rfc3339(seconds: i64, micros: Option<u32>) -> Option<String> {
    let days = seconds.div_euclid(86_400);
    let (year, month, day) = civil(days)?;
    let of_day = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let fraction = micros.map(|micros| format!(".{micros:06}")).unwrap_or_default();
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"))
}

/// The date of a day since 1970, in the Gregorian calendar.
fn civil(days: i64) -> Option<(i64, i64, i64)> {
    // Counting from 1 March of the year 0 puts the leap day at a year's end.
    let days = days.checked_add(719_468)?;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (0..=9999).contains(&year).then_some((year, month, day))
}

/// Seconds since 1970 of a text in RFC 3339, with the microseconds of the second when `micro` asks for the six
/// digits these then have; else a fraction is read past.
///
/// The error is in the API server's words.
pub(super) fn parse(text: &str, micro: bool) -> Result<(i64, u32), String> {
    let layout = if micro { MICRO_LAYOUT } else { LAYOUT };
    let mut scan = Scan { text, layout, rest: text };
    let year = scan.digits(4, 4, "2006")?;
    scan.literal("-")?;
    let month = scan.digits(2, 2, "01")?;
    scan.check((1..=12).contains(&month), "month")?;
    scan.literal("-")?;
    let day = scan.digits(2, 2, "02")?;
    scan.literal("T")?;
    let hour = scan.digits(1, 2, "15")?;
    scan.check(hour < 24, "hour")?;
    scan.literal(":")?;
    let minute = scan.digits(2, 2, "04")?;
    scan.check(minute < 60, "minute")?;
    scan.literal(":")?;
    let second = scan.digits(2, 2, "05")?;
    scan.check(second < 60, "second")?;
    let micros = scan.fraction(micro)?;
    let offset = scan.offset()?;
    if !scan.rest.is_empty() {
        return Err(format!("parsing time {text:?}: extra text: {:?}", scan.rest));
    }
    scan.check(day >= 1 && day <= days_in(year, month), "day")?;
    let of_day = hour * 3600 + minute * 60 + second;
    Ok((days_since_1970(year, month, day) * 86_400 + of_day - offset, micros))
}

struct Scan<'t> {
    text: &'t str,
    layout: &'static str,
    rest: &'t str,
}

impl<'t> Scan<'t> {
    fn bad(&self, element: &str) -> String {
        let Self { text, layout, rest } = self;
        format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {element:?}")
    }

    fn check(&self, in_range: bool, what: &str) -> Result<(), String> {
        if in_range { Ok(()) } else { Err(format!("parsing time {:?}: {what} out of range", self.text)) }
    }

    fn literal(&mut self, literal: &str) -> Result<(), String> {
        self.rest = self.rest.strip_prefix(literal).ok_or_else(|| self.bad(literal))?;
        Ok(())
    }

    fn digits(&mut self, least: usize, most: usize, element: &str) -> Result<i64, String> {
        let count = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if count < least {
            return Err(self.bad(element));
        }
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(digits.bytes().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    fn fraction(&mut self, micro: bool) -> Result<u32, String> {
        let digits = match self.rest.strip_prefix(['.', ',']) {
            Some(rest) => rest.bytes().take_while(u8::is_ascii_digit).count(),
            None => 0,
        };
        if micro {
            if digits < 6 {
                return Err(self.bad(".000000"));
            }
            self.rest = &self.rest[1..];
            return Ok(self.digits(6, 6, ".000000")? as u32);
        }
        if digits > 0 {
            self.rest = &self.rest[1 + digits..];
        }
        Ok(0)
    }

    /// The seconds that local time is ahead of UTC.
    fn offset(&mut self) -> Result<i64, String> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let bad = self.bad("Z07:00");
        let sign = if self.rest.starts_with('-') { -1 } else { 1 };
        self.rest = self.rest.strip_prefix(['+', '-']).ok_or_else(|| bad.clone())?;
        let hours = self.digits(2, 2, "").map_err(|_| bad.clone())?;
        self.literal(":").map_err(|_| bad.clone())?;
        let minutes = self.digits(2, 2, "").map_err(|_| bad)?;
        self.check(hours <= 24, "time zone offset hour")?;
        self.check(minutes <= 60, "time zone offset minute")?;
        Ok(sign * (hours * 3600 + minutes * 60))
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}

/// 0001-01-01T00:00:00Z, which Go takes for no time.
pub(super) const UNSET: i64 = -62_135_596_800;

/// The layouts as the API server's messages show them.
const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICRO_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-62_135_596_800, "0001-01-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(rfc3339(seconds, None).as_deref(), Some(expected));
        }
        assert_eq!(rfc3339(1, Some(42)).as_deref(), Some("1970-01-01T00:00:01.000042Z"));
        for out in [253_402_300_800, i64::MAX, i64::MIN] {
            assert_eq!(rfc3339(out, None), None);
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for seconds in [UNSET, -1, 0, 951_782_400, 951_868_799, 1_700_000_000, 253_402_300_799] {
            assert_eq!(parse(&rfc3339(seconds, None).unwrap(), false), Ok((seconds, 0)));
            assert_eq!(parse(&rfc3339(seconds, Some(7)).unwrap(), true), Ok((seconds, 7)));
        }
    }

    #[test]
    fn offsets_and_fractions_are_read() {
        assert_eq!(parse("1970-01-01T01:30:00+01:30", false), Ok((0, 0)));
        assert_eq!(parse("1969-12-31T23:00:00.999-01:00", false), Ok((0, 0)));
        assert_eq!(parse("1970-01-01T00:00:01.000042Z", true), Ok((1, 42)));
    }

    #[test]
    fn errors_are_in_the_words_of_the_api_server() {
        let layout = r#"as "2006-01-02T15:04:05Z07:00""#;
        let cases = [
            ("soon", format!(r#"parsing time "soon" {layout}: cannot parse "soon" as "2006""#)),
            ("", format!(r#"parsing time "" {layout}: cannot parse "" as "2006""#)),
            ("2024-01-01", format!(r#"parsing time "2024-01-01" {layout}: cannot parse "" as "T""#)),
            ("2023-02-29T00:00:00Z", r#"parsing time "2023-02-29T00:00:00Z": day out of range"#.into()),
            ("2023-13-01T00:00:00Z", r#"parsing time "2023-13-01T00:00:00Z": month out of range"#.into()),
            ("2023-01-01T00:00:00Zé", r#"parsing time "2023-01-01T00:00:00Zé": extra text: "é""#.into()),
        ];
        for (text, message) in cases {
            assert_eq!(parse(text, false), Err(message));
        }
        assert!(parse("1970-01-01T00:00:01Z", true).is_err());
        assert!(parse("1970-01-01T00:00:01.1234567Z", true).is_err());
    }
}
