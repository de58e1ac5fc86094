//! Changes to JSON documents: RFC 6902 (JSON Patch) and RFC 7386 (merge patch), computed and applied, and strategic
//! merge patches, applied.
//!
//! Documents, and what patches add to them, may be nested [`MAX_DEPTH`] levels deep, which is as deep as anything
//! that was read from JSON text can be: deeper ones give an error and never exhaust the stack.

mod apply;
mod carry;
mod diff;
pub(crate) mod fuzz;
mod guard;
mod merge;
mod mutation;
mod pointer;
#[cfg(test)]
mod properties;
mod strategic;

use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

pub(crate) use carry::carry;
pub use diff::Arrays;
pub use merge::{merge_diff, merge_patch};
pub use pointer::Pointer;
pub use strategic::{MergeSchema, MergeStrategy, Merging, StrategicError, strategic_merge};

/// A JSON Patch ([RFC 6902](https://www.rfc-editor.org/rfc/rfc6902)): operations to be done in order, all or none.
///
/// ```
/// use cloudcoil_core::JsonPatch;
/// use serde_json::json;
///
/// let old = json!({ "replicas": 1, "paused": true });
/// let new = json!({ "replicas": 3 });
/// let patch = JsonPatch::diff(&old, &new)?;
/// assert_eq!(
///     serde_json::to_value(&patch).unwrap(),
///     json!([{ "op": "remove", "path": "/paused" }, { "op": "replace", "path": "/replicas", "value": 3 }])
/// );
///
/// let mut document = old;
/// patch.apply(&mut document)?;
/// assert_eq!(document, new);
/// # Ok::<(), cloudcoil_core::PatchError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonPatch(Vec<Operation>);

impl JsonPatch {
    /// A patch that changes nothing.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Also requires the value at `path` to equal `value`; numbers compare by value.
    #[must_use]
    pub fn test(self, path: Pointer, value: impl Into<Value>) -> Self {
        self.and(Operation::Test { path, value: value.into() })
    }

    /// Also sets the member at `path`, or inserts an element before the one at `path`.
    #[must_use]
    pub fn add(self, path: Pointer, value: impl Into<Value>) -> Self {
        self.and(Operation::Add { path, value: value.into() })
    }

    /// Also replaces the value at `path`, which must exist.
    #[must_use]
    pub fn replace(self, path: Pointer, value: impl Into<Value>) -> Self {
        self.and(Operation::Replace { path, value: value.into() })
    }

    /// Also removes the value at `path`, which must exist.
    #[must_use]
    pub fn remove(self, path: Pointer) -> Self {
        self.and(Operation::Remove { path })
    }

    /// Also does `operation`.
    #[must_use]
    pub fn and(mut self, operation: Operation) -> Self {
        self.0.push(operation);
        self
    }

    /// The operations, in order.
    pub fn operations(&self) -> &[Operation] {
        &self.0
    }

    /// Whether there is no operation.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl From<Vec<Operation>> for JsonPatch {
    fn from(operations: Vec<Operation>) -> Self {
        Self(operations)
    }
}

impl From<JsonPatch> for Vec<Operation> {
    fn from(patch: JsonPatch) -> Self {
        patch.0
    }
}

impl From<JsonPatch> for Value {
    fn from(patch: JsonPatch) -> Self {
        Self::Array(patch.0.into_iter().map(Self::from).collect())
    }
}

/// The patch as the body of a request.
impl From<JsonPatch> for crate::request::Patch {
    fn from(patch: JsonPatch) -> Self {
        Self::Json(patch.into())
    }
}

impl Serialize for JsonPatch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

/// Reads a list of operations; an unknown `op`, a bad pointer and a missing member are errors that name the index of
/// the operation. A `value` of `null` is a value; members that an operation does not have are ignored, as RFC 6902
/// asks.
impl<'de> Deserialize<'de> for JsonPatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(OperationsVisitor)
    }
}

/// One operation of a [`JsonPatch`].
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "RFC 6902 has these six, and whoever applies them must handle each")]
pub enum Operation {
    /// Set a member, or insert an element before the one at `path`; `-` for the index appends.
    Add {
        /// Where.
        path: Pointer,
        /// What.
        value: Value,
    },
    /// Remove a value that exists.
    Remove {
        /// Where.
        path: Pointer,
    },
    /// Replace a value that exists.
    Replace {
        /// Where.
        path: Pointer,
        /// By what.
        value: Value,
    },
    /// Remove the value at `from`, and add it at `path`.
    Move {
        /// From where.
        from: Pointer,
        /// To where.
        path: Pointer,
    },
    /// Add the value at `from` also at `path`.
    Copy {
        /// From where.
        from: Pointer,
        /// To where.
        path: Pointer,
    },
    /// Fail unless the value at `path` equals `value`; numbers compare by value.
    Test {
        /// Where.
        path: Pointer,
        /// What must be there.
        value: Value,
    },
}

impl Operation {
    /// The name of the operation, as in its `op` member.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Add { .. } => "add",
            Self::Remove { .. } => "remove",
            Self::Replace { .. } => "replace",
            Self::Move { .. } => "move",
            Self::Copy { .. } => "copy",
            Self::Test { .. } => "test",
        }
    }

    /// The target of the operation.
    pub const fn path(&self) -> &Pointer {
        match self {
            Self::Add { path, .. }
            | Self::Remove { path }
            | Self::Replace { path, .. }
            | Self::Move { path, .. }
            | Self::Copy { path, .. }
            | Self::Test { path, .. } => path,
        }
    }

    /// Where a `move` or `copy` takes its value from.
    pub const fn from(&self) -> Option<&Pointer> {
        match self {
            Self::Move { from, .. } | Self::Copy { from, .. } => Some(from),
            _ => None,
        }
    }

    /// The value of an `add`, `replace` or `test`.
    pub const fn value(&self) -> Option<&Value> {
        match self {
            Self::Add { value, .. } | Self::Replace { value, .. } | Self::Test { value, .. } => Some(value),
            _ => None,
        }
    }

    fn into_value(self) -> Option<Value> {
        match self {
            Self::Add { value, .. } | Self::Replace { value, .. } | Self::Test { value, .. } => Some(value),
            _ => None,
        }
    }
}

impl From<Operation> for Value {
    fn from(operation: Operation) -> Self {
        let text = |text: &str| Self::String(text.to_owned());
        let mut members = serde_json::Map::new();
        members.insert("op".to_owned(), text(operation.name()));
        members.insert("path".to_owned(), text(operation.path().as_str()));
        if let Some(from) = operation.from() {
            members.insert("from".to_owned(), text(from.as_str()));
        }
        if let Some(value) = operation.into_value() {
            members.insert("value".to_owned(), value);
        }
        Self::Object(members)
    }
}

impl Serialize for Operation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("op", self.name())?;
        if let Some(from) = self.from() {
            members.serialize_entry("from", from.as_str())?;
        }
        members.serialize_entry("path", self.path().as_str())?;
        if let Some(value) = self.value() {
            members.serialize_entry("value", value)?;
        }
        members.end()
    }
}

/// Why a patch could not be computed or applied. The document is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// Text that is no JSON pointer.
    #[error("{text:?} is no JSON pointer: {fault}")]
    Pointer {
        /// The text.
        text: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// An operation that cannot be done.
    #[error("operation {index} ({name} {path:?}): {fault}")]
    Operation {
        /// Its index in the patch, from 0.
        index: usize,
        /// Its name.
        name: &'static str,
        /// Its target.
        path: Pointer,
        /// Why it cannot be done.
        fault: OperationFault,
    },
    /// A document that is nested deeper than [`MAX_DEPTH`].
    #[error("the document is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// A merge patch cannot set a member to `null`, as `null` removes there.
    #[error("a merge patch cannot set {path:?} to null")]
    NullInMerge {
        /// The member.
        path: Pointer,
    },
    /// A change may not alter what identifies an object.
    #[error("a change may not alter {path:?}")]
    IdentityChanged {
        /// The field.
        path: Pointer,
    },
    /// The elements of a list cannot be matched safely with those that were received.
    #[error("it is unsure which elements of {path:?} are which: {fault}")]
    Unmatched {
        /// The list.
        path: Pointer,
        /// Why.
        fault: &'static str,
    },
    /// A guarded diff starts from an object that the API server has returned.
    #[error("a guarded change starts from an object that was read from the server: {path:?} is missing")]
    NotFetched {
        /// The field that is missing or empty.
        path: Pointer,
    },
    /// A change of the status changed something else.
    #[error("a change of the status may not alter {path:?}")]
    OutsideStatus {
        /// The first field that it changed.
        path: Pointer,
    },
}

/// Why an operation of a [`JsonPatch`] cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationFault {
    /// There is no value at this pointer.
    #[error("there is nothing at {0:?}")]
    Missing(Pointer),
    /// The value at this pointer is neither an object nor an array.
    #[error("the value at {0:?} has no members")]
    Scalar(Pointer),
    /// This segment of a pointer is no index of an array.
    #[error("{0:?} is no index of an array")]
    Index(String),
    /// The document differs from what a `test` expects.
    #[error("the value differs")]
    TestFailed,
    /// A value cannot move into itself.
    #[error("a value cannot move into itself")]
    IntoItself,
    /// Without its root there is no document.
    #[error("the whole document cannot be removed")]
    Root,
    /// The document would be nested deeper than [`MAX_DEPTH`].
    #[error("the document would be nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// All `copy` operations together would copy more than 3 MiB.
    #[error("the patch copies more than 3 MiB")]
    CopiesTooMuch,
}

/// How deep a document may be nested: a scalar is 0 levels deep, and an array or object one more than what it holds.
pub const MAX_DEPTH: usize = 128;

/// Whether `value` is nested at most `levels` deep.
fn fits(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(elements) => levels > 0 && elements.iter().all(|element| fits(element, levels - 1)),
        Value::Object(members) => levels > 0 && members.values().all(|member| fits(member, levels - 1)),
        _ => true,
    }
}

struct OperationsVisitor;

impl<'de> Visitor<'de> for OperationsVisitor {
    type Value = JsonPatch;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of JSON Patch operations")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<JsonPatch, A::Error> {
        let mut operations = Vec::new();
        loop {
            let at =
                |fault: &dyn std::fmt::Display| A::Error::custom(format!("operation {}: {fault}", operations.len()));
            match seq.next_element::<Members>() {
                Ok(None) => return Ok(JsonPatch(operations)),
                Ok(Some(members)) => {
                    let operation = members.check().map_err(|fault| at(&fault))?;
                    operations.push(operation);
                }
                Err(error) => return Err(at(&error)),
            }
        }
    }
}

/// The members of an operation as they were sent.
#[derive(serde::Deserialize)]
struct Members {
    op: Option<String>,
    path: Option<String>,
    from: Option<String>,
    #[serde(default, deserialize_with = "present")]
    value: Option<Value>,
}

impl Members {
    fn check(self) -> Result<Operation, String> {
        let missing = |member: &str| format!("no {member:?} member");
        let Some(op) = self.op else { return Err(missing("op")) };
        let pointer = |text: Option<String>, member: &str| {
            let text = text.ok_or_else(|| missing(member))?;
            Pointer::parse(text).map_err(|error| error.to_string())
        };
        let value = |value: Option<Value>| value.ok_or_else(|| missing("value"));
        let path = pointer(self.path, "path")?;
        Ok(match &*op {
            "add" => Operation::Add { path, value: value(self.value)? },
            "remove" => Operation::Remove { path },
            "replace" => Operation::Replace { path, value: value(self.value)? },
            "move" => Operation::Move { path, from: pointer(self.from, "from")? },
            "copy" => Operation::Copy { path, from: pointer(self.from, "from")? },
            "test" => Operation::Test { path, value: value(self.value)? },
            _ => return Err(format!("unknown op {op:?}")),
        })
    }
}

/// Keeps a `null` apart from a member that is not there.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_are_read_strictly() {
        let error = |text: &str| serde_json::from_str::<JsonPatch>(text).unwrap_err().to_string();
        for (operation, fault) in [
            (r#"{"op":"add","path":"/a"}"#, r#"operation 1: no "value" member"#),
            (r#"{"op":"replace","path":"/a"}"#, r#"operation 1: no "value" member"#),
            (r#"{"op":"test","path":"/a"}"#, r#"operation 1: no "value" member"#),
            (r#"{"op":"move","path":"/a"}"#, r#"operation 1: no "from" member"#),
            (r#"{"op":"copy","path":"/a","from":null}"#, r#"operation 1: no "from" member"#),
            (r#"{"op":"remove"}"#, r#"operation 1: no "path" member"#),
            (r#"{"path":"/a"}"#, r#"operation 1: no "op" member"#),
            (r#"{"op":"Add","path":"/a","value":1}"#, r#"operation 1: unknown op "Add""#),
            (r#"{"op":"remove","path":"a"}"#, r#"operation 1: "a" is no JSON pointer: it must"#),
            (r#"{"op":"remove","path":"/~2"}"#, r#"operation 1: "/~2" is no JSON pointer: '~' must"#),
            (r#"{"op":"copy","path":"","from":"b"}"#, r#"operation 1: "b" is no JSON pointer"#),
            (r#"{"op":"remove","op":"add","path":"","value":1}"#, "operation 1: duplicate field `op`"),
            ("7", "operation 1: invalid type"),
            ("null", "operation 1: invalid type"),
        ] {
            let text = error(&format!(r#"[{{"op":"remove","path":""}},{operation}]"#));
            assert!(text.starts_with(fault), "{operation}: {text}");
        }
        assert!(error("{}").contains("a list of JSON Patch operations"));
    }

    #[test]
    fn a_null_is_a_value_and_other_members_are_ignored() {
        let patch = |text| serde_json::from_str::<JsonPatch>(text).unwrap();
        let read = patch(r#"[{"path":"/a","x":1,"value":null,"op":"add","from":"/b"}]"#);
        assert_eq!(read, JsonPatch::new().add(Pointer::from_iter(["a"]), Value::Null));
        assert_eq!(patch("[]"), JsonPatch::new());
    }

    #[test]
    fn text_has_the_members_of_the_standard() {
        let at = |name| Pointer::from_iter([name]);
        let patch = JsonPatch::new().test(at("a"), 1).add(at("b"), json!(null)).replace(at("c"), "x").remove(at("d"));
        let patch = patch.and(Operation::Move { from: at("e"), path: at("f") });
        assert_eq!(
            serde_json::to_string(&patch).unwrap(),
            r#"[{"op":"test","path":"/a","value":1},{"op":"add","path":"/b","value":null},{"op":"replace","path":"/c","value":"x"},{"op":"remove","path":"/d"},{"op":"move","from":"/e","path":"/f"}]"#
        );
    }
}
