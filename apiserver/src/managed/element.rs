//! One step of a path to a field, as `fieldsV1` writes it.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Number, Value};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Element {
    /// A field of an object, or a key of a map.
    Field(String),
    /// The item of a list whose key fields have these values, by name.
    Key(Vec<(String, Scalar)>),
    /// The item of a set that is this value.
    Item(Scalar),
    /// The item of a list at this place; the server itself owns none so.
    Index(i64),
}

/// A value that tells items of a list apart.
#[derive(Clone, Debug)]
pub(crate) struct Scalar(pub(crate) Value);

impl Element {
    pub(crate) fn field(name: &str) -> Self {
        Self::Field(name.to_owned())
    }

    /// Reads what [`to_text`](Self::to_text) writes; `None` when it is nothing of the kind.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::field(rest)),
            "k" => {
                let key: Map<String, Value> = serde_json::from_str(rest).ok()?;
                Some(Self::key(key))
            }
            "v" => Some(Self::Item(Scalar(serde_json::from_str(rest).ok()?))),
            "i" => Some(Self::Index(rest.parse().ok()?)),
            _ => None,
        }
    }

    pub(crate) fn key(fields: impl IntoIterator<Item = (String, Value)>) -> Self {
        let mut key: Vec<_> = fields.into_iter().map(|(name, value)| (name, Scalar(value))).collect();
        key.sort();
        Self::Key(key)
    }

    /// As a name in `fieldsV1`.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(key) => {
                let fields: Map<_, _> = key.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect();
                format!("k:{}", Value::Object(fields))
            }
            Self::Item(value) => format!("v:{}", value.0),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

/// As errors write it, behind what comes before it in the path.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(key) => {
                let fields: Vec<_> = key.iter().map(|(name, value)| format!("{name}={}", value.0)).collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Item(value) => write!(f, "[={}]", value.0),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A path as errors write it.
pub(crate) fn path_text(path: &[Element]) -> String {
    path.iter().map(Element::to_string).collect()
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scalar {}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
            (Value::String(a), Value::String(b)) => a.cmp(b),
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (a, b) => rank(a).cmp(&rank(b)).then_with(|| a.to_string().cmp(&b.to_string())),
        }
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Whether two values are the same, a number being the same however it is written.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_as_they_are_written() {
        for (text, path) in [
            ("f:spec", ".spec"),
            ("f:a:b/c", ".a:b/c"),
            (r#"k:{"port":80,"protocol":"TCP"}"#, r#"[port=80,protocol="TCP"]"#),
            (r#"v:"x""#, r#"[="x"]"#),
            ("v:5", "[=5]"),
            ("i:3", "[3]"),
        ] {
            let element = Element::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((element.to_text().as_str(), element.to_string().as_str()), (text, path));
        }
        for text in ["", "f", "x:1", "k:5", "k:", "i:a", "v:{"] {
            assert_eq!(Element::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn numbers_are_the_same_however_they_are_written() {
        let key = |text: &str| Element::parse(text).unwrap();
        assert_eq!(key(r#"k:{"port":80}"#), key(r#"k:{"port":80.0}"#));
        assert_ne!(key(r#"k:{"port":80}"#), key(r#"k:{"port":"80"}"#));
    }
}
