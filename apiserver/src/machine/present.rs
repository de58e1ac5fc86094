//! Objects in the form that was asked for.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use cloudcoil_core::Now;
use serde_json::{Map, Value, json};

use super::catalog::Resource;
use super::convert;
use super::errors::{Outcome, bad_request, is_not_what_was_asked, quote};
use super::media::Form;
use super::object::Object;
use super::route::Query;
use crate::kinds::Kinds;
use crate::table::{Custom, Printer, Row};

/// How objects are shown to one client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct View {
    kinds: Arc<Kinds>,
    pub(crate) resource: Arc<Resource>,
    pub(crate) form: Form,
    /// How much of the object a row of a table carries.
    pub(crate) rows: RowObject,
    printer: Printer,
}

/// How much of the object a row of a table carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowObject {
    Nothing,
    Metadata,
    Whole,
}

/// What is said of a list besides its objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListMeta {
    pub(crate) revision: u64,
    pub(crate) next: Option<String>,
    pub(crate) remaining: Option<usize>,
}

impl View {
    pub(crate) fn of(kinds: &Arc<Kinds>, resource: &Arc<Resource>, form: Form, query: &Query) -> Outcome<Self> {
        let rows = match query.text("includeObject") {
            "" | "Metadata" => RowObject::Metadata,
            "None" => RowObject::Nothing,
            "Object" => RowObject::Whole,
            other => {
                let message = format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', \
                     'Object', 'None', or empty",
                    quote(other)
                );
                return Err(bad_request(message));
            }
        };
        let printer = match &resource.custom {
            Some(custom) => Printer::Custom(Custom::new(&custom.columns)),
            None => Printer::builtin(resource.of.group.clone(), resource.of.kind.clone()),
        };
        Ok(Self { kinds: Arc::clone(kinds), resource: Arc::clone(resource), form, rows, printer })
    }

    /// One object as JSON.
    pub(crate) fn one(&self, now: Now, object: &Object) -> Outcome<String> {
        match self.form {
            Form::Whole => Ok(self.whole(object)),
            Form::Metadata => Ok(partial(object).to_string()),
            Form::Table => Ok(self.table_of_one(now, object, true).to_string()),
            Form::MetadataList => Err(is_not_what_was_asked(&self.resource, false)),
        }
    }

    /// A list of objects as JSON.
    pub(crate) fn list(&self, now: Now, objects: &[Arc<Object>], meta: &ListMeta) -> Outcome<String> {
        match self.form {
            Form::Whole => Ok(self.whole_list(objects, meta)),
            Form::MetadataList => {
                let items: Value = objects.iter().map(|object| partial(object)).collect();
                let body = json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                    "metadata": meta.render(), "items": items});
                Ok(body.to_string())
            }
            Form::Table => {
                let objects: Vec<_> = objects.iter().map(AsRef::as_ref).collect();
                let values: Vec<_> = objects.iter().map(|object| self.value(object)).collect();
                let rows = self.printer.rows(&values.iter().map(AsRef::as_ref).collect::<Vec<_>>(), now.wall);
                let rows = rows.into_iter().map(|row| (objects[row.index], row));
                Ok(self.table(rows, meta, true).to_string())
            }
            Form::Metadata => Err(is_not_what_was_asked(&self.resource, true)),
        }
    }

    /// The object of a watch event; only the first table says what its columns are.
    pub(crate) fn event(&self, now: Now, object: &Object, first: bool) -> String {
        match self.form {
            Form::Whole => self.whole(object),
            Form::Metadata | Form::MetadataList => partial(object).to_string(),
            Form::Table => self.table_of_one(now, object, first).to_string(),
        }
    }

    /// The object of a bookmark: a resource version, and what it marks.
    pub(crate) fn bookmark(&self, now: Now, revision: u64, initial_end: bool) -> String {
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), Value::from(revision.to_string()));
        if initial_end {
            metadata.insert("annotations".to_owned(), json!({"k8s.io/initial-events-end": "true"}));
        }
        let of = &self.resource.of;
        let (kind, version) = match self.form {
            Form::Whole => (of.kind.as_ref(), of.api_version()),
            Form::Metadata | Form::MetadataList => ("PartialObjectMetadata", Cow::Borrowed("meta.k8s.io/v1")),
            Form::Table => {
                let object = json!({"metadata": metadata});
                let Row { cells, .. } = self.printer.row(&object, now.wall);
                let object = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                    "metadata": object["metadata"]});
                return json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1",
                    "metadata": ListMeta::of(revision).render(), "columnDefinitions": null,
                    "rows": [{"cells": cells, "object": object}]})
                .to_string();
            }
        };
        json!({"kind": kind, "apiVersion": version, "metadata": metadata}).to_string()
    }

    /// The object in the version that was asked for.
    fn whole(&self, object: &Object) -> String {
        let of = &self.resource.of;
        let text = self.fields(object);
        // The text is an object with at least its metadata, so that what follows the brace can go behind the type.
        format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",{}", of.kind, of.api_version(), &text[1..])
    }

    fn fields<'a>(&self, object: &'a Object) -> Cow<'a, str> {
        match self.value(object) {
            Cow::Owned(fields) => Cow::Owned(fields.to_string()),
            Cow::Borrowed(_) => Cow::Borrowed(object.text()),
        }
    }

    /// The fields in the version that was asked for.
    fn value<'a>(&self, object: &'a Object) -> Cow<'a, Value> {
        match convert::served(&self.kinds, &self.resource, object.fields()) {
            Some(fields) => Cow::Owned(Value::Object(fields)),
            None => Cow::Borrowed(object.value()),
        }
    }

    /// Items of built-in kinds come without their type, as the API server has them.
    fn whole_list(&self, objects: &[Arc<Object>], meta: &ListMeta) -> String {
        let Resource { of, list_kind, .. } = &*self.resource;
        let mut listed = meta.render();
        if self.resource.is_custom() && meta.next.is_none() {
            // Lists of custom resources always say it.
            listed["continue"] = json!("");
        }
        let mut text = format!(
            "{{\"kind\":\"{list_kind}\",\"apiVersion\":\"{}\",\"metadata\":{},\"items\":[",
            of.api_version(),
            listed
        );
        for (index, object) in objects.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            if self.resource.is_custom() {
                text.push_str(&self.whole(object));
            } else {
                text.push_str(&self.fields(object));
            }
        }
        let _ = write!(text, "]}}");
        text
    }

    fn table_of_one(&self, now: Now, object: &Object, headers: bool) -> Value {
        let row = self.printer.row(&self.value(object), now.wall);
        self.table(std::iter::once((object, row)), &ListMeta::of(object.revision()), headers)
    }

    fn table<'a>(&self, rows: impl Iterator<Item = (&'a Object, Row)>, meta: &ListMeta, headers: bool) -> Value {
        let rows: Value = rows
            .map(|(object, Row { cells, completed, .. })| {
                let carried = match self.rows {
                    RowObject::Nothing => Value::Null,
                    RowObject::Metadata => partial(object),
                    RowObject::Whole => serde_json::from_str(&self.whole(object)).unwrap_or(Value::Null),
                };
                let mut row = json!({"cells": cells, "object": carried});
                if let Some(condition) = completed {
                    row["conditions"] = json!([condition]);
                }
                row
            })
            .collect();
        let columns = if headers { Value::Array(self.printer.columns()) } else { Value::Null };
        json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta.render(),
            "columnDefinitions": columns, "rows": rows})
    }
}

impl ListMeta {
    fn of(revision: u64) -> Self {
        Self { revision, ..Self::default() }
    }

    fn render(&self) -> Value {
        let mut meta = json!({"resourceVersion": self.revision.to_string()});
        if let Some(next) = &self.next {
            meta["continue"] = Value::from(next.as_str());
        }
        if let Some(remaining) = self.remaining {
            meta["remainingItemCount"] = Value::from(remaining);
        }
        meta
    }
}

fn partial(object: &Object) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": object.fields().get("metadata")})
}
