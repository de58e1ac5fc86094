//! The little that has to be read of a certificate outside a TLS library.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// When an X.509 certificate in DER begins and ends to be valid, in seconds since the Unix epoch; both are included.
/// `None` if it is no certificate.
///
/// TLS libraries check this for a certificate that an authority has issued. It is for a server's own certificate that is
/// given in place of an authority, which is not asked about then.
pub fn validity(der: &[u8]) -> Option<(i64, i64)> {
    Some(fields(der)?.0)
}

/// Whom a certificate names. Kubernetes takes the common name for a user, and the organizations for the groups:
/// <https://kubernetes.io/docs/reference/access-authn-authz/authentication/#x509-client-certificates>.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subject {
    /// The common name, the last if there are several; empty if there is none.
    pub common_name: String,
    /// The organizations, in order.
    pub organizations: Vec<String>,
}

impl Subject {
    /// Whom an X.509 certificate in DER names, which a TLS library has verified; `None` if it is no certificate, or names
    /// somebody in letters that are not Unicode's.
    pub fn of_certificate(der: &[u8]) -> Option<Self> {
        let mut subject = Self::default();
        let mut names = fields(der)?.1;
        while !names.is_empty() {
            let (mut attributes, rest) = element(names, SET)?;
            while !attributes.is_empty() {
                let (attribute, rest) = element(attributes, SEQUENCE)?;
                let (kind, value) = element(attribute, OBJECT_IDENTIFIER)?;
                match kind {
                    COMMON_NAME => subject.common_name = text(value)?,
                    ORGANIZATION => subject.organizations.push(text(value)?),
                    _ => {}
                }
                attributes = rest;
            }
            names = rest;
        }
        Some(subject)
    }
}

/// A text in one of the forms that are ASCII or UTF-8.
fn text(der: &[u8]) -> Option<String> {
    let form = [UTF8_STRING, PRINTABLE_STRING, IA5_STRING].into_iter().find(|form| der.first() == Some(form))?;
    let (text, _) = element(der, form)?;
    let is_fit = form == UTF8_STRING || text.is_ascii();
    str::from_utf8(text).ok().filter(|_| is_fit).map(str::to_owned)
}

/// When a certificate is valid, and the content of its subject.
fn fields(der: &[u8]) -> Option<((i64, i64), &[u8])> {
    let (certificate, _) = element(der, SEQUENCE)?;
    let (mut fields, _) = element(certificate, SEQUENCE)?;
    if let Some((_, rest)) = element(fields, VERSION) {
        fields = rest;
    }
    let (_serial, rest) = element(fields, INTEGER)?;
    let (_algorithm, rest) = element(rest, SEQUENCE)?;
    let (_issuer, rest) = element(rest, SEQUENCE)?;
    let (validity, rest) = element(rest, SEQUENCE)?;
    let (subject, _) = element(rest, SEQUENCE)?;
    let (from, rest) = time(validity)?;
    let (until, _) = time(rest)?;
    Some(((from, until), subject))
}

/// The content of the element at the beginning, if it has that tag, and what comes after it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, length], mut rest) = der.split_first_chunk::<2>()?;
    if found != tag {
        return None;
    }
    let length = match length {
        0..=0x7f => usize::from(length),
        0x81..=0x84 => {
            let (digits, after) = rest.split_at_checked(usize::from(length - 0x80))?;
            rest = after;
            digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit))
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// A time in either of the two forms of RFC 5280, section 4.1.2.5.
fn time(der: &[u8]) -> Option<(i64, &[u8])> {
    let (text, rest, century) = match der.first()? {
        &UTC_TIME => element(der, UTC_TIME).map(|(text, rest)| (text, rest, false))?,
        _ => element(der, GENERALIZED_TIME).map(|(text, rest)| (text, rest, true))?,
    };
    let text = str::from_utf8(text).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) || text.len() != if century { 14 } else { 12 } {
        return None;
    }
    let (year, rest_of_text) = text.split_at(text.len() - 10);
    let year: i16 = year.parse().ok()?;
    let year = match year {
        _ if century => year,
        0..50 => 2000 + year,
        _ => 1900 + year,
    };
    let part = |at: usize| -> Option<i8> { rest_of_text[at..at + 2].parse().ok() };
    let date = DateTime::new(year, part(0)?, part(2)?, part(4)?, part(6)?, part(8)?, 0).ok()?;
    Some((date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second(), rest))
}

const INTEGER: u8 = 0x02;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const IA5_STRING: u8 = 0x16;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
/// 2.5.4.3 and 2.5.4.10: RFC 5280, appendix A.1.
const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const ORGANIZATION: &[u8] = &[0x55, 4, 10];

#[cfg(test)]
mod tests {
    use super::*;

    fn wrap(tag: u8, content: &[u8]) -> Vec<u8> {
        match u8::try_from(content.len()) {
            Ok(length @ 0..0x80) => [&[tag, length], content].concat(),
            Ok(length) => [&[tag, 0x81, length], content].concat(),
            Err(_) => [&[tag, 0x82, (content.len() >> 8) as u8, content.len() as u8], content].concat(),
        }
    }

    fn certificate(version: bool, from: &[u8], until: &[u8], padding: usize) -> Vec<u8> {
        named(version, from, until, padding, &[])
    }

    fn named(version: bool, from: &[u8], until: &[u8], padding: usize, subject: &[u8]) -> Vec<u8> {
        let version = if version { wrap(VERSION, &wrap(INTEGER, &[2])) } else { Vec::new() };
        let issuer = wrap(SEQUENCE, &vec![0; padding]);
        let validity = wrap(SEQUENCE, &[from, until].concat());
        let start = [version, wrap(INTEGER, &[1, 2, 3]), wrap(SEQUENCE, b"alg")].concat();
        let fields = [start, issuer, validity, wrap(SEQUENCE, subject), b"more".to_vec()];
        wrap(SEQUENCE, &[wrap(SEQUENCE, &fields.concat()), b"signature".to_vec()].concat())
    }

    #[test]
    fn both_forms_of_time_are_read() {
        let from = wrap(UTC_TIME, b"991231235959Z");
        let until = wrap(GENERALIZED_TIME, b"20500101000000Z");
        for (version, padding) in [(true, 3), (false, 3), (true, 200), (true, 1000)] {
            let certificate = certificate(version, &from, &until, padding);
            assert_eq!(validity(&certificate), Some((946_684_799, 2_524_608_000)), "{version} {padding}");
            for length in 0..certificate.len() - 1 {
                assert_eq!(validity(&certificate[..length]), None);
            }
        }
    }

    #[test]
    fn subjects_are_read_as_users_and_groups() {
        let day = wrap(UTC_TIME, b"991231235959Z");
        let attribute = |kind: &[u8], form: u8, text: &[u8]| {
            wrap(SEQUENCE, &[wrap(OBJECT_IDENTIFIER, kind), wrap(form, text)].concat())
        };
        let of = |sets: &[Vec<u8>]| {
            let names: Vec<_> = sets.iter().flat_map(|set| wrap(SET, set)).collect();
            Subject::of_certificate(&named(true, &day, &day, 3, &names))
        };
        let organizations =
            [attribute(ORGANIZATION, PRINTABLE_STRING, b"a"), attribute(ORGANIZATION, UTF8_STRING, "é".as_bytes())];
        let subject = of(&[
            organizations.concat(),
            attribute(&[0x55, 4, 6], PRINTABLE_STRING, b"CH"),
            attribute(COMMON_NAME, IA5_STRING, b"first"),
            attribute(COMMON_NAME, UTF8_STRING, b"ann"),
        ]);
        let expected = Subject { common_name: "ann".into(), organizations: vec!["a".into(), "é".into()] };
        assert_eq!(subject, Some(expected));
        assert_eq!(of(&[]), Some(Subject::default()));
        assert_eq!(of(&[attribute(COMMON_NAME, PRINTABLE_STRING, b"\xff")]), None);
        assert_eq!(of(&[attribute(COMMON_NAME, 0x1e, b"\0a")]), None, "letters of two bytes each");
        assert_eq!(of(&[b"no attribute".to_vec()]), None);
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let good = wrap(UTC_TIME, b"991231235959Z");
        for text in
            [&b"9912312359Z"[..], b"991331235959Z", b"991231235959", b"\xff91231235959Z", b"99123123595\xc3\xa9", b""]
        {
            assert_eq!(validity(&certificate(true, &good, &wrap(UTC_TIME, text), 3)), None, "{text:?}");
        }
    }
}
