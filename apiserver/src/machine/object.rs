//! Objects as the server keeps them.

use std::sync::Arc;

use cloudcoil_core::UnixTime;
use serde_json::{Map, Value};

/// An object without `apiVersion` and `kind`, which belong to the version it is served in.
pub(crate) type Draft = Map<String, Value>;

/// An object as stored: never changed, only replaced.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Object {
    /// The fields as a JSON object.
    value: Value,
    text: Box<str>,
    revision: u64,
}

impl Object {
    /// The object as it is after revision `revision`, which becomes its resource version.
    pub(crate) fn new(mut fields: Draft, revision: u64) -> Arc<Self> {
        metadata_mut(&mut fields).insert("resourceVersion".to_owned(), Value::from(revision.to_string()));
        Self::made(fields, revision)
    }

    /// An object that no revision has made, as a dry run answers with.
    pub(crate) fn unstored(fields: Draft) -> Arc<Self> {
        Self::made(fields, 0)
    }

    fn made(fields: Draft, revision: u64) -> Arc<Self> {
        let value = Value::Object(fields);
        Arc::new(Self { text: value.to_string().into(), value, revision })
    }

    /// The fields, without `apiVersion` and `kind`.
    pub(crate) fn fields(&self) -> &Draft {
        self.value.as_object().expect("made of fields")
    }

    /// The fields as a JSON object.
    pub(crate) const fn value(&self) -> &Value {
        &self.value
    }

    /// The fields as compact JSON.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The revision of the write that made it so.
    pub(crate) const fn revision(&self) -> u64 {
        self.revision
    }

    /// The same object as it was told at the revision of its deletion.
    pub(crate) fn at(&self, revision: u64) -> Arc<Self> {
        Self::new(self.fields().clone(), revision)
    }

    /// A text of the metadata; empty when it is not there.
    pub(crate) fn meta(&self, field: &str) -> &str {
        meta(self.fields(), field)
    }

    pub(crate) fn name(&self) -> &str {
        self.meta("name")
    }

    pub(crate) fn namespace(&self) -> &str {
        self.meta("namespace")
    }

    pub(crate) fn uid(&self) -> &str {
        self.meta("uid")
    }

    pub(crate) fn is_deleting(&self) -> bool {
        is_deleting(self.fields())
    }
}

/// A field of the metadata.
pub(crate) fn meta_value<'a>(fields: &'a Draft, field: &str) -> Option<&'a Value> {
    fields.get("metadata")?.get(field)
}

/// The metadata, made if there is none.
pub(crate) fn metadata_mut(fields: &mut Draft) -> &mut Map<String, Value> {
    child_mut(fields, "metadata")
}

/// The object in a field, made if it is none.
pub(crate) fn child_mut<'a>(fields: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let child = fields.entry(name).or_insert(Value::Null);
    if !child.is_object() {
        *child = Value::Object(Map::new());
    }
    child.as_object_mut().expect("made an object above")
}

/// A text of the metadata; empty when it is not there.
pub(crate) fn meta<'a>(fields: &'a Draft, field: &str) -> &'a str {
    meta_value(fields, field).and_then(Value::as_str).unwrap_or_default()
}

/// Sets a field of the metadata, or removes it.
pub(crate) fn set_meta(fields: &mut Draft, field: &str, value: Option<Value>) {
    let metadata = metadata_mut(fields);
    match value {
        Some(value) => metadata.insert(field.to_owned(), value),
        None => metadata.remove(field),
    };
}

/// The value of a label.
pub(crate) fn label<'a>(fields: &'a Draft, key: &str) -> Option<&'a str> {
    meta_value(fields, "labels")?.get(key)?.as_str()
}

/// The texts in a list of the metadata, such as `finalizers`.
pub(crate) fn texts<'a>(fields: &'a Draft, list: &str) -> Vec<&'a str> {
    let list = meta_value(fields, list).and_then(Value::as_array);
    list.map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

pub(crate) fn is_deleting(fields: &Draft) -> bool {
    meta_value(fields, "deletionTimestamp").is_some()
}

/// How many seconds an object that is being deleted has left, as of when it was marked.
pub(crate) fn grace(fields: &Draft) -> i64 {
    meta_value(fields, "deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0)
}

/// A time as the metadata has it.
pub(crate) fn time(text: &str) -> Option<UnixTime> {
    let instant: jiff::Timestamp = text.parse().ok()?;
    Some(UnixTime::from_micros(instant.as_microsecond()))
}

/// The list in a field, empty when there is none.
pub(crate) fn list<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    fields.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The value at a path of field names.
pub(crate) fn at<'a>(fields: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(fields.get(*first)?, |value, name| value.get(*name))
}

/// The text at a path of field names; empty when it is not there.
pub(crate) fn text_at<'a>(fields: &'a Map<String, Value>, path: &[&str]) -> &'a str {
    at(fields, path).and_then(Value::as_str).unwrap_or_default()
}
