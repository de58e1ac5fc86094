//! What is answered, without what no two servers have in common: uids, versions, times, addresses.

use serde_json::{Map, Value, json};

use crate::scenario::{Kept, Step};

/// What is compared of an answer, as JSON.
pub(crate) fn comparable(step: &Step, answer: &cloudcoil_tokio::core::Answer, kept: &Kept) -> Value {
    let mut shown = json!({"code": answer.status.as_u16()});
    if step.only.as_deref() == Some("status") {
        return shown;
    }
    for name in ["content-type", "warning", "retry-after", "content-encoding"] {
        let values: Vec<_> = answer.headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect();
        if !values.is_empty() {
            shown[name] = json!(values);
        }
    }
    let body = body(step, &answer.body, kept);
    match step.only.as_deref() {
        None => shown["body"] = body,
        Some(only) => {
            if let Some(field) = only.strip_prefix("body/") {
                shown["body"] = body[field].clone();
            }
        }
    }
    shown
}

fn body(step: &Step, bytes: &[u8], kept: &Kept) -> Value {
    let Ok(text) = str::from_utf8(bytes) else { return json!("<bytes>") };
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        return normal(&value, kept);
    }
    let events: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    let Ok(mut events) = events else { return Value::from(normal_text(text, kept)) };
    events.retain(|event| !is_progress(event));
    if step.sort {
        events.sort_by_key(|event| event["object"]["metadata"]["name"].to_string());
    }
    events.iter().map(|event| normal(event, kept)).collect()
}

/// A bookmark that only says how far a watch has got: a server sends them when it likes, or not at all. That which ends the initial
/// events is owed, and stays.
fn is_progress(event: &Value) -> bool {
    event["type"] == "BOOKMARK" && event.pointer("/object/metadata/annotations").is_none()
}

fn normal(value: &Value, kept: &Kept) -> Value {
    match value {
        Value::String(text) => Value::from(normal_text(text, kept)),
        Value::Array(items) => items.iter().map(|item| normal(item, kept)).collect(),
        Value::Object(fields) => Value::Object(normal_fields(fields, kept)),
        other => other.clone(),
    }
}

fn normal_fields(fields: &Map<String, Value>, kept: &Kept) -> Map<String, Value> {
    let prefix = fields.get("generateName").and_then(Value::as_str);
    let column = fields.contains_key("type") && fields.contains_key("priority");
    let mut normalized = Map::new();
    for (name, value) in fields {
        let placeholder = Value::from(format!("<{name}>"));
        let value = match (name.as_str(), value) {
            // An empty object says as much as none.
            ("details", Value::Object(details)) if details.is_empty() => continue,
            // The words of descriptions are everybody's own.
            ("description", _) if column => continue,
            ("resourceVersion" | "continue", Value::String(text)) if !text.is_empty() => placeholder,
            // How long ago, in a table.
            ("cells", Value::Array(cells)) => cells.iter().map(cell).collect(),
            ("remainingItemCount", _) => placeholder,
            // They stand in the order of their times, which whole seconds make a matter of chance.
            ("managedFields", Value::Array(entries)) => {
                let mut entries = entries.clone();
                entries.sort_by_cached_key(|entry| {
                    let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
                    ["operation", "manager", "apiVersion", "subresource"].map(text)
                });
                entries.iter().map(|entry| normal(entry, kept)).collect()
            }
            ("name", Value::String(text))
                if prefix.is_some_and(|prefix| text.starts_with(prefix) && text != prefix) =>
            {
                placeholder
            }
            ("clusterIP" | "token", Value::String(text)) if !matches!(&**text, "" | "None") => placeholder,
            ("clusterIPs", _) => placeholder,
            (name, _) if name.ends_with("/credential-id") => placeholder,
            (_, value) => normal(value, kept),
        };
        normalized.insert(name.clone(), value);
    }
    normalized
}

fn cell(value: &Value) -> Value {
    let is_age = |text: &str| {
        let digits = text.trim_end_matches(['s', 'm', 'h', 'd']);
        digits.len() + 1 == text.len() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    match value.as_str() {
        Some(text) if is_age(text) => json!("<age>"),
        _ => value.clone(),
    }
}

fn normal_text(text: &str, kept: &Kept) -> String {
    let mut text = scrub(text, "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh", "<uid>");
    text = scrub(&text, "dddd-dd-ddTdd:dd:ddZ", "<time>");
    for words in ["current: ", "in record (", "\"resourceVersion\":\""] {
        text = without_number(&text, words);
    }
    for (name, value) in &kept.0 {
        if !crate::side::GIVEN.contains(&name.as_str()) && value.len() > 1 {
            text = text.replace(value.as_str(), &format!("<{name}>"));
        }
    }
    text
}

/// The text with what looks like `pattern` replaced: `h` stands for a hexadecimal digit, `d` for a decimal one.
fn scrub(text: &str, pattern: &str, by: &str) -> String {
    let fits = |rest: &str| {
        rest.len() >= pattern.len()
            && rest.bytes().zip(pattern.bytes()).all(|(byte, wanted)| match wanted {
                b'h' => byte.is_ascii_hexdigit(),
                b'd' => byte.is_ascii_digit(),
                wanted => byte == wanted,
            })
    };
    let mut scrubbed = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if fits(rest) {
            scrubbed.push_str(by);
            rest = &rest[pattern.len()..];
        } else {
            scrubbed.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    scrubbed
}

/// The text without the number behind `words`.
fn without_number(text: &str, words: &str) -> String {
    let mut parts = text.split(words);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        whole = whole + words + "<number>" + part.trim_start_matches(|digit: char| digit.is_ascii_digit());
    }
    whole
}

/// Where two answers differ, in words.
pub(crate) fn differences(real: &Value, memory: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", real, memory, &mut found);
    found
}

fn compare(path: &str, real: &Value, memory: &Value, found: &mut Vec<String>) {
    match (real, memory) {
        (Value::Object(one), Value::Object(other)) => {
            let names: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
            for name in names {
                let nothing = Value::Null;
                let [one, other] = [one, other].map(|fields| fields.get(name));
                if one.is_none() != other.is_none() {
                    let [one, other] = [one, other].map(|value| value.map(Value::to_string).unwrap_or_default());
                    found.push(format!("{path}/{name}: real {one} | in memory {other}"));
                } else {
                    compare(&format!("{path}/{name}"), one.unwrap_or(&nothing), other.unwrap_or(&nothing), found);
                }
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                compare(&format!("{path}/{index}"), one, other, found);
            }
        }
        (one, other) if one == other => {}
        (one, other) => found.push(format!("{path}: real {one} | in memory {other}")),
    }
}
