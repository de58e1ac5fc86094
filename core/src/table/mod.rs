//! Objects as the API server prints them: columns and rows.

mod watch;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::error::Error;
use crate::exchange::Answer;
use crate::jsonpath::printed;
use crate::list::ResourceList;
use crate::resource::Resource as _;
use crate::response;
use crate::unstructured::Unstructured;

pub use watch::{TableEvent, TableInput, TableOutput, TableWatch};

/// Objects as rows, with the columns that their type has; what `kubectl get` shows.
///
/// See <https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables>.
///
/// ```
/// use cloudcoil_core::{Answer, Table};
/// use http::{HeaderMap, StatusCode};
///
/// let mut answer = Answer::new(StatusCode::OK, HeaderMap::new());
/// answer.receive(br#"{"kind": "Table", "columnDefinitions": [{"name": "Name", "type": "string"}],
///     "rows": [{"cells": ["web-0"], "object": {"kind": "PartialObjectMetadata", "metadata": {"name": "web-0"}}}]}"#);
/// let table = Table::decode(&answer)?;
/// assert_eq!(table.columns[0].name, "Name");
/// assert_eq!(table.rows[0].text(0), "web-0");
/// # Ok::<(), cloudcoil_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Table {
    /// The columns, in order. The tables of a watch but the first have none: the first one's go on.
    pub columns: Vec<TableColumn>,
    /// One row for each object.
    pub rows: Vec<TableRow>,
    /// The version of the list, or of the object.
    pub resource_version: Option<String>,
    /// The token of the next page; `None` on the last.
    pub continue_token: Option<String>,
    /// How many objects come after this page, where the server knows it.
    pub remaining_item_count: Option<u64>,
}

/// A column of a [`Table`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TableColumn {
    /// The title.
    pub name: String,
    /// What its cells are, in terms of OpenAPI: `string`, `integer`, `number`, `boolean` or `date`.
    #[serde(rename = "type")]
    pub kind: String,
    /// More about its cells: `name` for the one that names the object.
    pub format: String,
    /// What it shows.
    pub description: String,
    /// Zero for a column that is always shown; one with a larger number only where there is room, as with `-o wide`.
    pub priority: i32,
}

/// A row of a [`Table`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TableRow {
    /// One value for each column.
    pub cells: Vec<Value>,
    /// The object's metadata, or all of it, as far as the server sends it.
    pub object: Option<Unstructured>,
    /// Whether the object has come to its end, as a pod whose containers are done.
    pub is_completed: bool,
}

impl Table {
    /// The table an answer carries. From a server that prints no tables it is made of the names and creation times of the
    /// objects.
    ///
    /// # Errors
    /// As [`response::decode`].
    pub fn decode(answer: &Answer) -> Result<Self, Error> {
        let Kind { kind, items } = response::decode_borrowed(answer)?;
        match kind.as_deref() {
            Some("Table") => response::decode::<Raw>(answer).map(Self::from),
            kind if items.is_some() || kind.is_some_and(|kind| kind.ends_with("List")) => {
                let list = ResourceList::<Unstructured>::decode(answer)?;
                let token = list.continue_token.clone();
                let (version, remaining) = (list.resource_version.clone(), list.remaining_item_count);
                Ok(Self {
                    resource_version: version,
                    continue_token: token,
                    remaining_item_count: remaining,
                    ..Self::of(list.all()?)
                })
            }
            _ => {
                let object: Unstructured = response::decode(answer)?;
                let version = object.resource_version().map(ToOwned::to_owned);
                Ok(Self { resource_version: version, ..Self::of([object]) })
            }
        }
    }

    /// A table of the names and creation times of objects.
    pub fn of(objects: impl IntoIterator<Item = Unstructured>) -> Self {
        let column = |name: &str, kind: &str, format: &str| TableColumn {
            name: name.to_owned(),
            kind: kind.to_owned(),
            format: format.to_owned(),
            ..TableColumn::default()
        };
        let row = |object: Unstructured| {
            let created = object.pointer("/metadata/creationTimestamp").cloned().unwrap_or_default();
            TableRow { cells: vec![object.name().into(), created], object: Some(object), is_completed: false }
        };
        Self {
            columns: vec![column("Name", "string", "name"), column("Created At", "date", "")],
            rows: objects.into_iter().map(row).collect(),
            ..Self::default()
        }
    }

    /// Adds the page that comes after this one; its columns are used where this one has none.
    pub fn append(&mut self, next: Self) {
        if self.columns.is_empty() {
            self.columns = next.columns;
        }
        self.rows.extend(next.rows);
        self.resource_version = next.resource_version.or_else(|| self.resource_version.take());
        self.continue_token = next.continue_token;
        self.remaining_item_count = next.remaining_item_count;
    }
}

impl TableRow {
    /// A cell as `kubectl` prints it: nothing for one that is `null` or missing, and a text only up to the end of its line.
    pub fn text(&self, column: usize) -> String {
        match self.cells.get(column) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => match text.find(['\n', '\r', '\u{c}']) {
                Some(end) => format!("{}...", &text[..end]),
                None => text.clone(),
            },
            Some(value) => printed(value),
        }
    }
}

impl From<Raw> for Table {
    fn from(raw: Raw) -> Self {
        let metadata = raw.metadata.unwrap_or_default();
        let row = |row: RawRow| TableRow {
            cells: row.cells.unwrap_or_default(),
            object: row.object.filter(|object| !object.fields().is_empty()),
            is_completed: row.conditions.iter().flatten().any(|it| it.kind == "Completed" && it.status == "True"),
        };
        Self {
            columns: raw.column_definitions.unwrap_or_default(),
            rows: raw.rows.unwrap_or_default().into_iter().map(row).collect(),
            resource_version: metadata.resource_version.filter(|version| !version.is_empty()),
            continue_token: metadata.continue_token.filter(|token| !token.is_empty()),
            remaining_item_count: metadata.remaining_item_count.and_then(|count| u64::try_from(count).ok()),
        }
    }
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
    items: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Raw {
    metadata: Option<RawMetadata>,
    column_definitions: Option<Vec<TableColumn>>,
    rows: Option<Vec<RawRow>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawMetadata {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    continue_token: Option<String>,
    remaining_item_count: Option<i64>,
}

#[derive(Deserialize)]
struct RawRow {
    cells: Option<Vec<Value>>,
    object: Option<Unstructured>,
    conditions: Option<Vec<RawCondition>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};
    use serde_json::json;

    use super::*;

    fn decoded(body: &Value) -> Result<Table, Error> {
        let mut answer = Answer::new(StatusCode::OK, HeaderMap::new());
        answer.receive(body.to_string().as_bytes());
        Table::decode(&answer)
    }

    #[test]
    fn a_printed_table_keeps_its_columns_cells_and_metadata() {
        let table = decoded(&json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1",
            "metadata": {"resourceVersion": "7", "continue": "t", "remainingItemCount": 3},
            "columnDefinitions": [{"name": "Name", "type": "string", "format": "name", "priority": 0}, {"name": "Node", "priority": 1}],
            "rows": [{"cells": ["a", "n"], "object": {"kind": "PartialObjectMetadata", "metadata": {"name": "a"}},
                "conditions": [{"type": "Completed", "status": "True"}]}, {"cells": null, "object": null}]}))
        .unwrap();
        assert_eq!((&*table.columns[0].format, table.columns[1].priority), ("name", 1));
        assert_eq!(table.rows[0].object.as_ref().unwrap().name(), "a");
        assert!(table.rows[0].is_completed && !table.rows[1].is_completed && table.rows[1].cells.is_empty());
        assert_eq!((table.resource_version.as_deref(), table.continue_token.as_deref()), (Some("7"), Some("t")));
        assert_eq!(table.remaining_item_count, Some(3));
    }

    #[test]
    fn a_server_that_does_not_print_gives_names_and_times() {
        let object = json!({"kind": "Odd", "apiVersion": "x/v1",
            "metadata": {"name": "a", "creationTimestamp": "2026-01-02T03:04:05Z", "resourceVersion": "5"}});
        let one = decoded(&object).unwrap();
        assert_eq!((one.rows[0].text(0), one.rows[0].text(1)), ("a".into(), "2026-01-02T03:04:05Z".into()));
        assert_eq!(one.resource_version.as_deref(), Some("5"));
        let list = json!({"kind": "OddList", "apiVersion": "x/v1", "metadata": {"continue": "t"}, "items": [object]});
        let list = decoded(&list).unwrap();
        assert_eq!((list.rows.len(), list.continue_token.as_deref()), (1, Some("t")));
        assert_eq!(list.rows[0].object.as_ref().unwrap().kind(), "Odd");
        assert!(decoded(&json!({"kind": "OddList", "items": null})).unwrap().rows.is_empty());
    }

    #[test]
    fn cells_are_shown_on_one_line() {
        let cells = vec![json!("a\nb"), json!(null), json!(3), json!(true), json!({"a": "<"}), json!("é")];
        let row = TableRow { cells, ..TableRow::default() };
        let texts: Vec<_> = (0..7).map(|column| row.text(column)).collect();
        assert_eq!(texts, ["a...", "", "3", "true", r#"{"a":"\u003c"}"#, "é", ""]);
    }

    #[test]
    fn pages_are_joined() {
        let page = |name: &str| Table::of([serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()]);
        let mut whole = Table::default();
        whole.append(page("a"));
        whole.append(Table { resource_version: Some("7".into()), columns: Vec::new(), ..page("b") });
        assert_eq!((whole.columns.len(), whole.rows.len(), whole.resource_version.as_deref()), (2, 2, Some("7")));
    }
}
