//! JSON and YAML bodies, with what they say twice.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use crate::kinds::{MAX_STRICT, Node};

/// A body as a tree.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) node: Node,
    /// What is wrong with fields that a YAML text has twice; those of a JSON text are both in the tree.
    pub(crate) duplicates: Vec<String>,
}

/// Reads JSON.
///
/// # Errors
/// What is wrong with the text.
pub(crate) fn json(body: &[u8]) -> Result<Parsed, String> {
    let node = serde_json::from_slice(body)
        .map_err(|error| if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() })?;
    Ok(Parsed { node, duplicates: Vec::new() })
}

/// Reads YAML.
///
/// # Errors
/// What is wrong with the text.
pub(crate) fn yaml(body: &[u8]) -> Result<Parsed, String> {
    let text = str::from_utf8(body).map_err(|error| error.to_string())?;
    let mut duplicates = Vec::new();
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::PassThrough };
    let parsed = serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        Tree { duplicates: &mut duplicates }.deserialize(deserializer)
    });
    let value = match parsed {
        Ok(value) => value,
        Err(_) if text.trim().is_empty() => Value::Null,
        Err(error) => return Err(error.to_string()),
    };
    Ok(Parsed { node: value.into(), duplicates })
}

/// The value of a tree, its last field where it has one twice, which is told in `duplicates`.
pub(crate) fn value(node: Node, path: &str, duplicates: &mut Vec<String>) -> Value {
    match node {
        Node::List(items) => {
            let items = items.into_iter().enumerate();
            items.map(|(index, item)| value(item, &format!("{path}[{index}]"), duplicates)).collect()
        }
        Node::Object(fields) => {
            let mut map = Map::new();
            for (name, node) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                let path = format!("{path}{dot}{name}");
                if map.contains_key(&name) && duplicates.len() < MAX_STRICT {
                    let report = format!("duplicate field {}", super::errors::quote(&path));
                    if !duplicates.contains(&report) {
                        duplicates.push(report);
                    }
                }
                map.insert(name, value(node, &path, duplicates));
            }
            Value::Object(map)
        }
        scalar => scalar.into(),
    }
}

/// Builds a tree from YAML.
struct Tree<'a> {
    duplicates: &'a mut Vec<String>,
}

impl Tree<'_> {
    const fn inner(&mut self) -> Tree<'_> {
        Tree { duplicates: self.duplicates }
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a YAML value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Number::from_f64(number).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self.inner())? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        let mut seen = BTreeSet::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let name = key.value;
            if !seen.insert(name.clone()) && self.duplicates.len() < MAX_STRICT {
                let (line, quoted) = (key.referenced.line(), super::errors::quote(&name));
                self.duplicates.push(format!("line {line}: key {quoted} already set in map"));
            }
            fields.insert(name, map.next_value_seed(self.inner())?);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn yaml_keys_that_come_twice_are_told_with_their_line() {
        let text = "a: 1\nb:\n  c: x\n  d: [1, 2.5, null, true]\n  c: w\n80: z\na: \"2\"\n";
        let Parsed { node, duplicates } = yaml(text.as_bytes()).unwrap();
        assert_eq!(Value::from(node), json!({"a": "2", "b": {"c": "w", "d": [1, 2.5, null, true]}, "80": "z"}));
        assert_eq!(duplicates, ["line 5: key \"c\" already set in map", "line 7: key \"a\" already set in map"]);
        assert_eq!(Value::from(yaml(b"").unwrap().node), Value::Null);
        assert_eq!(Value::from(yaml(br#"{"a": {"b": 5}}"#).unwrap().node), json!({"a": {"b": 5}}));
        assert!(yaml(b"{").is_err() && yaml(b"\xff").is_err());
    }

    #[test]
    fn no_more_is_told_than_anybody_reads() {
        let lines = "a: 1\n".repeat(500);
        assert_eq!(yaml(lines.as_bytes()).unwrap().duplicates.len(), MAX_STRICT);
        let fields: Vec<_> = (0..500).map(|n| format!("\"k{n}\":1,\"k{n}\":2")).collect();
        let mut duplicates = Vec::new();
        let read = value(json(format!("{{{}}}", fields.join(",")).as_bytes()).unwrap().node, "", &mut duplicates);
        assert_eq!((read["k499"].as_i64(), duplicates.len()), (Some(2), MAX_STRICT));
    }

    #[test]
    fn json_fields_that_come_twice_are_told_with_their_path() {
        let mut duplicates = Vec::new();
        let parsed = json(br#"{"a": {"b": 1, "b": 2}, "c": [{"d": 1, "d": 2, "d": 3}]}"#).unwrap();
        assert_eq!(value(parsed.node, "", &mut duplicates), json!({"a": {"b": 2}, "c": [{"d": 3}]}));
        assert_eq!(duplicates, [r#"duplicate field "a.b""#, r#"duplicate field "c[0].d""#]);
    }
}
