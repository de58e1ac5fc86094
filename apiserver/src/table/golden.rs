//! Tables against those of the API server's own printers (`golden.txt`, made by `tests/controlplane/kubernetes/golden`).

use serde::Deserialize;
use serde_json::{Value, json};

use super::Printer;
use cloudcoil_core::UnixTime;

#[derive(Deserialize)]
struct Case {
    objects: Vec<Value>,
    #[serde(default)]
    list: bool,
    columns: Vec<(String, String, String, i64)>,
    rows: Value,
    #[serde(default)]
    done: Vec<String>,
}

const NOW: UnixTime = UnixTime::from_secs(1_800_000_000);

fn cases() -> Vec<Case> {
    include_str!("golden.txt").lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Puts times in place of `@-300`, which stands for 300 seconds ago, and of `@@-300`, the same in microseconds.
fn with_times(value: &mut Value) {
    match value {
        Value::String(text) => {
            let seconds = |text: &str| text.parse().ok().map(|seconds: i64| NOW.as_micros() / 1_000_000 + seconds);
            let time = match (text.strip_prefix("@@"), text.strip_prefix('@')) {
                (Some(micro), _) => seconds(micro).map(|time| UnixTime::from_secs(time).to_rfc3339_micros()),
                (None, Some(time)) => seconds(time).map(|time| UnixTime::from_secs(time).to_rfc3339()),
                (None, None) => None,
            };
            text.clone_from(&time.unwrap_or_else(|| text.clone()));
        }
        Value::Array(list) => list.iter_mut().for_each(with_times),
        Value::Object(map) => map.values_mut().for_each(with_times),
        _ => {}
    }
}

fn printer_of(object: &Value) -> Printer {
    let version = object["apiVersion"].as_str().unwrap();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    Printer::builtin(group.to_owned(), object["kind"].as_str().unwrap().to_owned())
}

#[test]
fn tables_are_those_of_the_api_server() {
    let cases = cases();
    assert!(cases.len() > 150);
    let mut differences = Vec::new();
    for Case { mut objects, list, columns, rows, done } in cases {
        objects.iter_mut().for_each(with_times);
        let printer = printer_of(&objects[0]);
        let our_rows = match list {
            true => printer.rows(&objects.iter().collect::<Vec<_>>(), NOW),
            false => vec![printer.row(&objects[0], NOW)],
        };
        let columns: Vec<_> =
            columns.iter().map(|(name, kind, format, priority)| json!([name, kind, format, priority])).collect();
        let definitions = printer.columns();
        let described = |column: &Value| json!([column["name"], column["type"], column["format"], column["priority"]]);
        let ours: Vec<_> = definitions.iter().map(described).collect();
        let our_done: Vec<_> = our_rows
            .iter()
            .filter_map(|row| row.completed.as_ref())
            .map(|done| format!("{}: {}", done["reason"].as_str().unwrap(), done["message"].as_str().unwrap()))
            .collect();
        let our_rows: Value = our_rows.into_iter().map(|row| row.cells).collect();
        if (&ours, &our_rows, &our_done) != (&columns, &rows, &done) {
            differences.push(format!(
                "{}/{}\n  ours:   {our_rows}\n  theirs: {rows}\n  ours:   {}\n  theirs: {}\n  {our_done:?} {done:?}",
                objects[0]["kind"],
                objects[0]["metadata"]["name"],
                json!(ours),
                json!(columns)
            ));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn kinds_that_the_api_server_prints_elsewhere() {
    let created = "2026-01-02T03:04:05Z";
    let row = |object: Value| Value::from(printer_of(&object).row(&object, NOW).cells);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r", "creationTimestamp": created}});
    assert_eq!(row(role), json!(["r", created]));

    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.g"},
        "spec": {"service": {"namespace": "ns", "name": "s"}},
        "status": {"conditions": [{"type": "Available", "status": "False", "reason": "Gone"}]},
    });
    assert_eq!(row(service), json!(["v1.g", "ns/s", "False (Gone)", "<unknown>"]));
    let local = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.g"}});
    assert_eq!(row(local), json!(["v1.g", "Local", "Unknown", "<unknown>"]));

    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "ws.g", "creationTimestamp": created},
        "spec": {"group": "g", "scope": "Cluster", "names": {"kind": "W", "shortNames": ["w", "x"]}, "versions": [
            {"name": "v2", "served": true}, {"name": "v1", "served": true, "storage": true}, {"name": "v0"}]},
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    });
    assert_eq!(row(definition), json!(["ws.g", "Cluster", "v1(storage),v2", created, "g", "W", "w,x", true]));

    // The API server fills the plural in; an object that lacks it is printed the same.
    let service =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"clusterIP": "None"}});
    assert_eq!(row(service)[2], "None");

    let other = json!({"apiVersion": "example.com/v1", "kind": "Other", "metadata": {"name": "o"}});
    assert_eq!(row(other), json!(["o", "<unknown>"]));
}

#[test]
fn an_object_of_any_shape_has_a_row() {
    let odd = [
        json!(null),
        json!([]),
        json!({"metadata": [], "spec": 3, "status": {"conditions": {"a": 1}, "containerStatuses": [null, 1]}}),
        json!({"metadata": {"name": 5, "creationTimestamp": 7, "labels": ["x"]}, "spec": {"ports": "p", "rules": [1]}}),
    ];
    for Case { objects, .. } in cases() {
        let printer = printer_of(&objects[0]);
        let width = printer.row(&objects[0], NOW).cells.len();
        for object in &odd {
            assert_eq!(printer.row(object, NOW).cells.len(), width);
        }
    }
}
