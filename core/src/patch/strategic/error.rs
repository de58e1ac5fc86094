//! Why a strategic merge patch cannot be applied, in the words of the API server.

use serde_json::{Map, Value};
use thiserror::Error;

use crate::patch::MAX_DEPTH;

/// A strategic merge patch that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StrategicError {
    /// `$deleteFromPrimitiveList` without a field.
    #[error("invalid patch format of primitive list")]
    PrimitiveListFormat,
    /// `$retainKeys` is no list, or the patch sets what it does not name.
    #[error("invalid patch format of retainKeys")]
    RetainKeysFormat,
    /// `$setElementOrder` without a field.
    #[error("invalid patch format of setElementOrder list")]
    ElementOrderFormat,
    /// A list that is to be merged holds lists.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// The object or the patch is nested deeper than [`MAX_DEPTH`].
    #[error("the document is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// What does not fit the type of the object, or no directive that there is: this is what is wrong.
    #[error("{0}")]
    Other(String),
}

impl StrategicError {
    /// The HTTP code with which the API server refuses such a patch.
    pub const fn code(&self) -> u16 {
        match self {
            Self::PrimitiveListFormat | Self::RetainKeysFormat | Self::ElementOrderFormat | Self::TooDeep => 400,
            Self::ListOfLists => 422,
            Self::Other(_) => 500,
        }
    }

    pub(super) fn other(message: impl Into<String>) -> Self {
        Self::Other(message.into())
    }

    /// An unknown value of `$patch`.
    pub(super) fn directive(directive: &Value, map: &Map<String, Value>) -> Self {
        let (found, map) = (go_type(directive), printed_map(map));
        let directive = match directive {
            Value::String(text) => text.clone(),
            Value::Null => found.to_owned(),
            Value::Array(_) | Value::Object(_) => printed(directive),
            scalar => format!("%!s({found}={})", printed(scalar)),
        };
        Self::Other(format!("unknown patch type: {directive} in map: {map}"))
    }

    /// A value that is not of the wanted Go type.
    pub(super) fn type_of(wanted: &str, value: &Value) -> Self {
        let found = go_type(value);
        Self::Other(format!("expected a {wanted}, but received a {found}"))
    }

    /// An item of a list without the field by which items are told apart.
    pub(super) fn merge_key(item: &Map<String, Value>, key: &str) -> Self {
        Self::Other(format!("map: {} does not contain declared merge key: {key}", printed_map(item)))
    }
}

/// The Go type of a decoded value; of null, how Go prints that there is none.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go's `%v` prints it.
pub(super) fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Object(map) => printed_map(map),
        Value::Array(list) => printed_list(list),
        scalar => crate::jsonpath::printed(scalar),
    }
}

pub(super) fn printed_list(list: &[Value]) -> String {
    format!("[{}]", list.iter().map(printed).collect::<Vec<_>>().join(" "))
}

fn printed_map(map: &Map<String, Value>) -> String {
    let mut fields: Vec<_> = map.iter().collect();
    fields.sort_by_key(|(key, _)| *key);
    let fields: Vec<_> = fields.into_iter().map(|(key, value)| format!("{key}:{}", printed(value))).collect();
    format!("map[{}]", fields.join(" "))
}
