//! Tables as the API server prints them, and as kubectl shows them.

use cloudcoil_core::{Table, TableColumn, TableRow};
use jiff::Timestamp;
use serde_json::Value;

use crate::tabs::{Tabs, cell};

/// Which columns are printed, and how.
#[derive(Clone, Debug, Default)]
pub(crate) struct Style {
    pub(crate) wide: bool,
    pub(crate) namespaces: bool,
    pub(crate) labels: bool,
    /// What is printed before a name, such as `pod`, if anything.
    pub(crate) kind: Option<String>,
}

impl Style {
    /// The header's cells.
    pub(crate) fn header(&self, table: &Table) -> Vec<String> {
        let mut cells: Vec<String> = Vec::new();
        if self.namespaces {
            cells.push("NAMESPACE".to_owned());
        }
        cells.extend(self.shown(table).map(|(_, column)| title(column)));
        if self.labels {
            cells.push("LABELS".to_owned());
        }
        cells
    }

    /// Adds the rows to those that wait to be printed.
    pub(crate) fn fill(&self, table: &Table, tabs: &mut Tabs) {
        for row in &table.rows {
            tabs.line(self.cells(table, row));
        }
    }

    /// A row's cells.
    fn cells(&self, table: &Table, row: &TableRow) -> Vec<String> {
        let mut cells: Vec<String> = Vec::new();
        if self.namespaces {
            cells.push(cell(&metadata(row, "namespace")));
        }
        let mut kind = self.kind.as_deref();
        cells.extend(self.shown(table).map(|(index, column)| {
            let text = if column.name == CREATED { age(&row.text(index), Timestamp::now()) } else { row.text(index) };
            match kind.take() {
                Some(kind) => cell(&format!("{kind}/{text}")),
                None => cell(&text),
            }
        }));
        if self.labels {
            cells.push(labels(row));
        }
        cells
    }

    fn shown<'a>(&'a self, table: &'a Table) -> impl Iterator<Item = (usize, &'a TableColumn)> {
        table.columns.iter().enumerate().filter(|(_, column)| self.wide || column.priority == 0)
    }
}

fn title(column: &TableColumn) -> String {
    if column.name == CREATED { "AGE".to_owned() } else { column.name.to_uppercase() }
}

/// A text of the metadata of a row's object; empty where there is none.
pub(crate) fn metadata(row: &TableRow, field: &str) -> String {
    let object = row.object.as_ref().and_then(|object| object.field("metadata"));
    object.and_then(|metadata| metadata[field].as_str()).unwrap_or_default().to_owned()
}

fn labels(row: &TableRow) -> String {
    let labels = row.object.as_ref().and_then(|object| object.pointer("/metadata/labels")).and_then(Value::as_object);
    let pairs =
        labels.into_iter().flatten().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    let pairs: Vec<String> = pairs.collect();
    if pairs.is_empty() { "<none>".to_owned() } else { cell(&pairs.join(",")) }
}

/// How long ago something was, in one or two units.
fn age(time: &str, now: Timestamp) -> String {
    let Ok(time) = time.parse::<Timestamp>() else { return "<unknown>".to_owned() };
    let secs = (now.as_millisecond() - time.as_millisecond()).div_euclid(1000);
    let (minutes, hours, days) = (secs / 60, secs / 3600, secs / 86400);
    let two = |large: i64, unit: &str, small: i64, rest: &str| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{rest}"),
    };
    match secs {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{secs}s"),
        120..600 => two(minutes, "m", secs % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

/// The column that the library makes where a server prints no tables.
const CREATED: &str = "Created At";

#[cfg(test)]
mod tests {
    use super::*;
    use cloudcoil_core::Answer;
    use serde_json::json;

    fn table(value: &Value) -> Table {
        let mut answer = Answer::new(http::StatusCode::OK, http::HeaderMap::new());
        answer.receive(value.to_string().as_bytes());
        Table::decode(&answer).unwrap()
    }

    #[test]
    fn columns_follow_the_style() {
        let table = table(&json!({"kind": "Table",
            "columnDefinitions": [{"name": "Name"}, {"name": "Node", "priority": 1}],
            "rows": [{"cells": ["a", null], "object": {"metadata": {"namespace": "x", "labels": {"a": "b", "c": ""}}}}]}));
        let style = Style { wide: true, namespaces: true, labels: true, kind: Some("pod".into()) };
        assert_eq!(style.header(&table), ["NAMESPACE", "NAME", "NODE", "LABELS"]);
        assert_eq!(style.cells(&table, &table.rows[0]), ["x", "pod/a", "", "a=b,c="]);
        assert_eq!(Style::default().cells(&table, &table.rows[0]), ["a"]);
    }

    #[test]
    fn objects_without_a_table_are_shown_by_name_and_age() {
        let table = table(&json!({"kind": "PodList", "items": [{"metadata": {"name": "a"}}]}));
        assert_eq!(Style::default().header(&table), ["NAME", "AGE"]);
        assert_eq!(Style::default().cells(&table, &table.rows[0]), ["a", "<unknown>"]);
    }

    #[test]
    fn ages_take_one_or_two_units() {
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        for (time, expected) in [
            ("2026-01-02T00:00:05Z", "<invalid>"),
            ("2026-01-01T23:59:59Z", "1s"),
            ("2026-01-01T23:58:00Z", "2m"),
            ("2026-01-01T23:57:57Z", "2m3s"),
            ("2026-01-01T20:45:00Z", "3h15m"),
            ("2025-12-30T23:00:00Z", "2d1h"),
            ("2025-12-01T00:00:00Z", "32d"),
            ("2023-01-01T00:00:00Z", "3y2d"),
            ("never", "<unknown>"),
        ] {
            assert_eq!(age(time, now), expected, "{time}");
        }
    }
}
