//! Objects of any type, kept as they came.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::resource::{Metadata, MetadataMut, Resource, ResourceType};

/// An object of any type as JSON: every field survives a round trip, known or not, `null`s included.
///
/// ```
/// use cloudcoil_core::{Resource, Unstructured};
///
/// let text = r#"{"apiVersion":"v1","kind":"Odd","metadata":{"name":"a","new":null},"spec":{"x":1.5}}"#;
/// let object: Unstructured = serde_json::from_str(text)?;
/// assert_eq!((object.name(), object.kind()), ("a", "Odd"));
/// assert_eq!(serde_json::to_string(&object)?, text);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Unstructured(Map<String, Value>);

impl Unstructured {
    /// An object of a type with nothing but its name.
    pub fn new(resource_type: &ResourceType, name: &str) -> Self {
        let mut object = Self::default();
        object.0.insert("apiVersion".to_owned(), Value::from(resource_type.api_version()));
        object.0.insert("kind".to_owned(), Value::from(resource_type.kind.as_ref()));
        object.metadata_mut().set_name(name);
        object
    }

    /// The `apiVersion`; empty when the object has none.
    pub fn api_version(&self) -> &str {
        self.0.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
    }

    /// The `kind`; empty when the object has none.
    pub fn kind(&self) -> &str {
        self.0.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    /// The API group, taken from the `apiVersion`; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version().rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// The value at a JSON pointer such as `/spec/replicas`.
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        let mut tokens = pointer.strip_prefix('/')?.splitn(2, '/');
        let first = tokens.next()?.replace("~1", "/").replace("~0", "~");
        let field = self.0.get(&first)?;
        match tokens.next() {
            Some(rest) => field.pointer(&format!("/{rest}")),
            None => Some(field),
        }
    }

    /// A top-level field by its name on the wire.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Sets a top-level field by its name on the wire, and answers what was there.
    pub fn set_field(&mut self, name: &str, value: impl Into<Value>) -> Option<Value> {
        self.0.insert(name.to_owned(), value.into())
    }

    /// Removes a top-level field by its name on the wire, and answers what was there.
    pub fn remove_field(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    /// All fields.
    pub const fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The object as a JSON value.
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }
}

impl From<Map<String, Value>> for Unstructured {
    fn from(fields: Map<String, Value>) -> Self {
        Self(fields)
    }
}

impl<'de> Deserialize<'de> for Unstructured {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self)
    }
}

impl Resource for Unstructured {
    fn metadata(&self) -> Metadata<'_> {
        Metadata::untyped(self.0.get("metadata"))
    }

    fn metadata_mut(&mut self) -> MetadataMut<'_> {
        let metadata = self.0.entry("metadata").or_insert(Value::Null);
        if !metadata.is_object() {
            *metadata = Value::Object(Map::new());
        }
        MetadataMut::untyped(metadata.as_object_mut().expect("made an object above"))
    }

    fn fill_type(&mut self, api_version: &str, kind: &str) {
        for (field, value) in [("apiVersion", api_version), ("kind", kind)] {
            if self.0.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
                self.0.insert(field.to_owned(), Value::from(value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Unstructured {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn unknown_fields_and_nulls_survive_a_round_trip() {
        let value = json!({"apiVersion": "x/v1", "kind": "K", "metadata": {"creationTimestamp": null, "odd": [1, {}]},
            "big": 18_446_744_073_709_551_615_u64, "float": 0.1, "text": "naïve → 完了"});
        assert_eq!(object(value.clone()).into_value(), value);
    }

    #[test]
    fn metadata_of_the_wrong_shape_reads_as_absent_and_can_be_set() {
        let mut odd = object(json!({"metadata": [1], "kind": 3}));
        assert_eq!((odd.name(), odd.kind(), odd.uid()), ("", "", None));
        odd.metadata_mut().set_label("a", "b");
        assert_eq!(odd.label("a"), Some("b"));
    }

    #[test]
    fn pointers_are_unescaped() {
        let object = object(json!({"metadata": {"annotations": {"a/b": "1"}}, "x/y": 2}));
        assert_eq!(object.pointer("/metadata/annotations/a~1b"), Some(&json!("1")));
        assert_eq!(object.pointer("/x~1y"), Some(&json!(2)));
        assert_eq!(object.pointer("/none/at/all"), None);
    }

    #[test]
    fn anything_but_an_object_is_refused() {
        assert!(serde_json::from_str::<Unstructured>("[1]").is_err());
    }
}
