//! Answers without what differs between any two servers.

use serde_json::{Map, Value, json};

use crate::servers::Answer;

/// An answer in its normal form: what is made up by a server, or stands in no order, looks the same in all.
pub(crate) fn normal(answer: &Answer, namespace: &str) -> Value {
    let mut body = answer.body.clone();
    // Which of several faults comes first is chance in a real server.
    let many = body["details"]["causes"].as_array().is_some_and(|causes| causes.len() > 1);
    if let (true, Some(message)) = (many, body.get_mut("message")) {
        let text = message.as_str().unwrap_or_default();
        let kept = text.split(" is invalid: [").next().unwrap_or_default().to_owned();
        *message = Value::from(kept);
    }
    json!({"code": answer.code, "warnings": answer.warnings, "body": value(&body, namespace)})
}

fn value(given: &Value, namespace: &str) -> Value {
    match given {
        Value::Object(fields) => {
            let fields = fields.iter().filter_map(|(name, given)| Some((name.clone(), field(name, given, namespace)?)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(|item| value(item, namespace)).collect(),
        Value::String(given) => Value::from(text(&given.replace(namespace, "NAMESPACE"))),
        other => other.clone(),
    }
}

fn field(name: &str, given: &Value, namespace: &str) -> Option<Value> {
    let sorted = |key: fn(&Value) -> String| {
        let mut items = given.as_array().cloned().unwrap_or_default();
        items.sort_by_key(key);
        Some(items.iter().map(|item| value(item, namespace)).collect())
    };
    match (name, given) {
        ("resourceVersion" | "clusterIP" | "nodePort", _) => Some(Value::from("SOME")),
        ("clusterIPs", _) => Some(json!(["SOME"])),
        ("creationTimestamp" | "time", Value::String(_)) => Some(Value::from("SOME")),
        ("managedFields", Value::Array(_)) => sorted(|entry| {
            let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
            [text("operation"), text("manager"), text("apiVersion"), text("subresource")].join("/")
        }),
        ("causes", _) => sorted(|cause| format!("{}{}", cause["message"], cause["field"])),
        // What admission plugins add, which the server in memory has none of.
        ("priority" | "preemptionPolicy", _) => None,
        ("tolerations", Value::Array(items)) => {
            let own = |item: &&Value| !item["key"].as_str().is_some_and(|key| key.starts_with("node.kubernetes.io/"));
            Some(items.iter().filter(own).cloned().collect())
        }
        ("details", Value::Object(details)) if details.is_empty() => None,
        (_, given) => Some(value(given, namespace)),
    }
}

/// A text without uids, times and resource versions.
fn text(given: &str) -> String {
    let mut words = Vec::new();
    for word in given.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | ':'))) {
        let inner = word.trim_end_matches(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | ':')));
        let uid = inner.len() == 36 && inner.matches('-').count() == 4;
        let time = inner.len() == 20 && inner.ends_with('Z') && inner.matches(':').count() == 2;
        words.push(if uid || time { word.replacen(inner, "SOME", 1) } else { word.to_owned() });
    }
    let text = words.concat();
    match text.split_once("resourceVersion\\\":\\\"") {
        Some((before, after)) => {
            let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{before}resourceVersion\\\":\\\"SOME{rest}")
        }
        None => {
            text.replace("resourceVersion\":\"", "resourceVersion ").split_inclusive('"').map(unversioned).collect()
        }
    }
}

/// A part of a text without the digits of a resource version.
fn unversioned(part: &str) -> String {
    match part.split_once("resourceVersion ") {
        Some((before, after)) => {
            format!("{before}resourceVersion SOME{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        None => part.to_owned(),
    }
}

/// Where two values differ, and how.
pub(crate) fn differences(expected: &Value, found: &Value) -> Vec<String> {
    let mut different = Vec::new();
    compare(expected, found, "", &mut different);
    different
}

fn compare(expected: &Value, found: &Value, path: &str, different: &mut Vec<String>) {
    match (expected, found) {
        _ if expected == found => {}
        (Value::Object(a), Value::Object(b)) => {
            let mut names: Vec<_> = a.keys().chain(b.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let of = |map: &Map<String, Value>| map.get(name).cloned().unwrap_or(Value::Null);
                compare(&of(a), &of(b), &format!("{path}.{name}"), different);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(a, b, &format!("{path}[{index}]"), different);
            }
        }
        _ => different.push(format!("  {path}\n    real      {expected}\n    in memory {found}")),
    }
}
