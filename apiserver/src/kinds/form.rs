//! How values of each shape look in JSON, and when a field is left out of it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
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
            Shape::Struct(id) => self.assemble(id, BTreeMap::new()).into(),
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

    /// The JSON of a list item or map value that was never set. Bytes in it are none, not null.
    pub(super) fn zero_element(&self, shape: Shape) -> Value {
        if shape == Shape::Bytes { "".into() } else { self.zero_of(shape) }
    }

    /// The object of a type with these values, by JSON name; `None` and absent are the same.
    pub(super) fn assemble(&self, id: StructId, mut values: Values) -> Map<String, Value> {
        let mut object = Map::new();
        self.put_all(id, &mut values, &mut object);
        object
    }

    fn put_all(&self, id: StructId, values: &mut Values, object: &mut Map<String, Value>) {
        for field in &self.structure(id).fields {
            match field.structure() {
                Some(inlined) if field.is_inlined() => self.put_all(inlined, values, object),
                _ => self.put(field, values.remove(field.name).flatten(), object),
            }
        }
    }
}

/// Values of the fields of an object, by JSON name.
pub(super) type Values = BTreeMap<&'static str, Option<Value>>;

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
    BASE64.encode(bytes).into()
}

/// The base64 that stands for the same bytes in JSON, without line breaks and excess bits; an error is the place
/// of the first byte at fault, as Go counts.
pub(super) fn canonical_base64(text: &str) -> Result<Value, usize> {
    if let Some(at) = base64_fault(text.as_bytes()) {
        return Err(at);
    }
    let packed: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    BASE64.decode(packed).map(|bytes| base64(&bytes)).map_err(|_| text.len())
}

fn base64_fault(text: &[u8]) -> Option<usize> {
    let mut digits = 0;
    let mut bytes = text.iter().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    while let Some((at, &byte)) = bytes.next() {
        match byte {
            b'=' if digits % 4 < 2 => return Some(at),
            b'=' if digits % 4 == 2 => match bytes.next() {
                None => return Some(text.len()),
                Some((_, b'=')) => return bytes.next().map(|(after, _)| after),
                Some((at, _)) => return Some(at.saturating_sub(1)),
            },
            b'=' => return bytes.next().map(|(after, _)| after),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => digits += 1,
            _ => return Some(at),
        }
    }
    (digits % 4 > 0).then(|| text.len() - digits % 4)
}

/// A number, without a fraction when it has none; `None` when it is not finite.
pub(super) fn double(number: f64) -> Option<Value> {
    let whole = number as i64;
    if whole as f64 == number && whole.unsigned_abs() < EXACT && !(number == 0.0 && number.is_sign_negative()) {
        return Some(whole.into());
    }
    serde_json::Number::from_f64(number).map(Value::Number)
}

/// Kubernetes ignores bits of the last digit that belong to no byte.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Whole numbers below this are exact as floating-point numbers.
const EXACT: u64 = 1 << 53;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_become_replacement_characters_one_by_one() {
        assert_eq!(text(b"a\xff\xe2\x82b\xc3\xa9"), "a\u{fffd}\u{fffd}\u{fffd}b\u{e9}");
    }

    #[test]
    fn base64_is_checked_as_go_does() {
        let good = [("YQ==", "YQ=="), ("YR==", "YQ=="), ("Y\nW\rI=\n", "YWI="), ("YWJj", "YWJj"), ("", "")];
        for (text, canonical) in good {
            assert_eq!(canonical_base64(text), Ok(canonical.into()), "{text:?}");
        }
        let bad = [("Y", 0), ("10", 0), ("YQ=", 3), ("YQ=x", 2), ("YQ==YQ==", 4), ("=", 0), ("YWI=c", 4), ("YW-j", 2)];
        for (text, at) in bad {
            assert_eq!(canonical_base64(text), Err(at), "{text:?}");
        }
    }

    #[test]
    fn whole_doubles_are_written_without_a_fraction() {
        assert_eq!(double(5.0), Some(5.into()));
        assert_eq!(double(0.5), Some(0.5.into()));
        assert_eq!(double(1e300), Some(1e300.into()));
        assert_eq!(double(f64::NAN), None);
    }
}
