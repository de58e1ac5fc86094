//! JSON values as Kubernetes' tools have them.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Reads a value and refuses keys that occur twice. A number without a fraction is a whole number, however it is
/// written, as `1e3` and `1.0` are to the API server's tools.
pub(super) struct Strict;

/// How a key that occurs twice is told from other errors.
pub(super) const DUPLICATE: &str = "duplicate key ";

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(|number| whole(Value::Number(number)))
            .ok_or_else(|| E::custom("a number must be finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element_seed(Self)? {
            list.push(element);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("{DUPLICATE}{key:?}")));
            }
            let value = entries.next_value_seed(Self)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// The value with its numbers without a fraction as whole ones.
pub(super) fn whole(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            #[expect(clippy::cast_possible_truncation, reason = "it has no fraction, and is within the range")]
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < WHOLE => (float as i64).into(),
            _ => Value::Number(number),
        },
        Value::Array(elements) => elements.into_iter().map(whole).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, whole(value))).collect(),
        other => other,
    }
}

/// The first whole number that a 64-bit one cannot hold.
const WHOLE: f64 = 9_223_372_036_854_775_808.0;
