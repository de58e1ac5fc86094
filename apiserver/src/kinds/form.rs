//! How values of each shape look in JSON, and when a field is left out of it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{Container, Field, Kinds, Shape, StructId};

impl Kinds {
    /// Writes a field into an object as the API server does: left out, or with the zero value of its type, when
    /// it has no value.
    pub(super) fn put(&self, field: &Field, value: Option<Value>, object: &mut Map<String, Value>) {
        if field.omit_empty && is_empty(field, value.as_ref()) {
            return;
        }
        let value = value.unwrap_or_else(|| self.zero(field));
        if field.omit_zero && is_zero(&value) {
            return;
        }
        object.insert(field.name.into(), value);
    }

    fn zero(&self, field: &Field) -> Value {
        match field.container {
            Container::One => self.zero_of(field.shape),
            Container::Pointer | Container::List | Container::Map => Value::Null,
        }
    }

    /// The JSON of a value that was never set.
    pub(super) fn zero_of(&self, shape: Shape) -> Value {
        match shape {
            Shape::String => "".into(),
            Shape::Bool | Shape::SchemaOrBool => false.into(),
            Shape::Int32 | Shape::Int64 | Shape::Double | Shape::IntOrString => 0.into(),
            Shape::Quantity => "0".into(),
            Shape::Struct(id) => {
                let mut object = Map::new();
                self.put_zeros(id, &mut object);
                object.into()
            }
            Shape::Bytes
            | Shape::Time
            | Shape::MicroTime
            | Shape::RawExtension
            | Shape::FieldsV1
            | Shape::Json
            | Shape::SchemaOrArray
            | Shape::SchemaOrStrings
            | Shape::Strings => Value::Null,
        }
    }

    fn put_zeros(&self, id: StructId, object: &mut Map<String, Value>) {
        for field in &self.structure(id).fields {
            match field.structure() {
                Some(inlined) if field.is_inlined() => self.put_zeros(inlined, object),
                _ => self.put(field, None, object),
            }
        }
    }
}

/// Whether `omitempty` leaves the field out: never a type or a value with its own JSON form, unless a pointer to
/// it is absent; a pointer to an empty value stays.
fn is_empty(field: &Field, value: Option<&Value>) -> bool {
    match field.container {
        Container::Pointer => value.is_none(),
        Container::List | Container::Map => value.is_none_or(is_zero),
        Container::One => match field.shape {
            Shape::String
            | Shape::Bool
            | Shape::Int32
            | Shape::Int64
            | Shape::Double
            | Shape::Bytes
            | Shape::Strings => value.is_none_or(is_zero),
            Shape::Time
            | Shape::MicroTime
            | Shape::Quantity
            | Shape::IntOrString
            | Shape::RawExtension
            | Shape::FieldsV1
            | Shape::Json
            | Shape::SchemaOrArray
            | Shape::SchemaOrBool
            | Shape::SchemaOrStrings
            | Shape::Struct(_) => false,
        },
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Text from bytes that need not be UTF-8: each byte that is none becomes U+FFFD, as in the API server's JSON.
pub(super) fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

pub(super) fn base64(bytes: &[u8]) -> Value {
    STANDARD.encode(bytes).into()
}

/// A number, without a fraction when it has none; `None` when it is not finite.
pub(super) fn double(number: f64) -> Option<Value> {
    let whole = number as i64;
    if whole as f64 == number && whole.unsigned_abs() < EXACT && !(number == 0.0 && number.is_sign_negative()) {
        return Some(whole.into());
    }
    serde_json::Number::from_f64(number).map(Value::Number)
}

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

/// Whole numbers below this are exact as floating-point numbers.
const EXACT: u64 = 1 << 53;

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
    fn bytes_that_are_no_text_become_replacement_characters_one_by_one() {
        assert_eq!(text(b"a\xff\xe2\x82b\xc3\xa9"), "a\u{fffd}\u{fffd}\u{fffd}b\u{e9}");
    }

    #[test]
    fn whole_doubles_are_written_without_a_fraction() {
        assert_eq!(double(5.0), Some(5.into()));
        assert_eq!(double(0.5), Some(0.5.into()));
        assert_eq!(double(1e300), Some(1e300.into()));
        assert_eq!(double(f64::NAN), None);
    }
}
