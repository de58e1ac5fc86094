//! What values must be by their schema, and what the API server says of those that are not.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::{Map, Value};

use super::rules::Bound;
use super::{Additional, ListType, Schema, Type};
use crate::machine::Fault;

/// The faults of an object by its schema. What is as it was in `old` is let be, so that a schema may become stricter.
pub(crate) fn faults(schema: &Schema, fields: &Value, old: Option<&Value>) -> Vec<Fault> {
    let mut found = Vec::new();
    check(schema, fields, old, &At::root(), &mut found);
    duplicates(schema, fields, old, "", &mut found);
    found
}

/// The faults of the status of an object, in the odd words in which its subresource tells them.
pub(crate) fn status_faults(schema: &Schema, fields: &Value, old: Option<&Value>) -> Vec<Fault> {
    let (Some(schema), Some(status)) = (schema.field("status"), fields.get("status")) else { return Vec::new() };
    let old = old.and_then(|old| old.get("status"));
    let mut found = Vec::new();
    check(schema, status, old, &At { field: "status".to_owned(), words: String::new() }, &mut found);
    duplicates(schema, status, old, "status", &mut found);
    found
}

/// The faults of a value that a schema fills in, which `field` has.
pub(crate) fn default_faults(schema: &Schema, value: &Value, field: &str) -> Vec<Fault> {
    let mut found = Vec::new();
    check(schema, value, None, &At { field: field.to_owned(), words: String::new() }, &mut found);
    found
}

/// Where a value is: as causes name it, and as their words do.
struct At {
    field: String,
    words: String,
}

impl At {
    const fn root() -> Self {
        Self { field: String::new(), words: String::new() }
    }

    fn child(&self, name: &str) -> Self {
        let join = |path: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        Self { field: join(&self.field), words: join(&self.words) }
    }

    fn item(&self, index: usize) -> Self {
        Self { field: format!("{}[{index}]", self.field), words: format!("{}[{index}]", self.words) }
    }

    fn invalid(&self, value: &Value, words: &str) -> Fault {
        Fault::invalid(self.field.as_str(), value.clone(), format!("{} in body {words}", self.words))
    }
}

fn check(schema: &Schema, value: &Value, old: Option<&Value>, at: &At, found: &mut Vec<Fault>) {
    if old == Some(value) || (value.is_null() && (schema.nullable || schema.of.is_none() && !schema.int_or_string)) {
        return;
    }
    check_type(schema, value, at, found);
    combined(schema, value, old, at, found);
    match value {
        Value::String(text) => check_text(schema, text, at, found),
        Value::Number(_) => check_number(schema, value, at, found),
        Value::Array(items) => check_items(schema, items, old, at, found),
        Value::Object(fields) => check_fields(schema, fields, old, at, found),
        Value::Null | Value::Bool(_) => {}
    }
    let allowed = &schema.rules.one_of_values;
    if !allowed.is_empty() && !allowed.contains(value) {
        let names: Vec<_> = allowed.iter().map(text_of).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        found.push(Fault::not_supported(at.field.as_str(), value.clone(), &names));
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn check_type(schema: &Schema, value: &Value, at: &At, found: &mut Vec<Fault>) {
    let name = name_of(value);
    let wanted = match schema.of {
        _ if schema.int_or_string => "integer,string",
        Some(of) => of.name(),
        None => return,
    };
    let fits = wanted.split(',').any(|wanted| wanted == name) || (wanted, name) == ("number", "integer");
    if fits {
        return;
    }
    let words = format!("{} in body must be of type {wanted}: \"{name}\"", at.words);
    found.push(Fault::type_invalid(at.field.as_str(), name, words));
    if (wanted, name) == ("integer", "number") {
        let words = format!("Checked value must be of type integer (default format) in {}", at.words);
        found.push(Fault::invalid(NO_FIELD, "", words));
    }
}

/// What a schema of JSON calls the type of a value.
fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn combined(schema: &Schema, value: &Value, old: Option<&Value>, at: &At, found: &mut Vec<Fault>) {
    let tried = |schemas: &[Schema]| -> Vec<Vec<Fault>> {
        let try_one = |schema| {
            let mut faults = Vec::new();
            check(schema, value, old, at, &mut faults);
            faults
        };
        schemas.iter().map(try_one).collect()
    };
    let told = |words: &str| Fault::invalid(NO_FIELD, "", format!("\"{}\" must {words}", at.words));
    let rules = &schema.rules;
    let any = tried(&rules.any_of);
    if !any.is_empty() && any.iter().all(|faults| !faults.is_empty()) {
        found.push(told("validate at least one schema (anyOf)"));
        found.extend(any.into_iter().next().into_iter().flatten());
    }
    let one = tried(&rules.one_of);
    match one.iter().filter(|faults| faults.is_empty()).count() {
        _ if one.is_empty() => {}
        1 => {}
        0 => {
            found.push(told("validate one and only one schema (oneOf). Found none valid"));
            found.extend(one.into_iter().next().into_iter().flatten());
        }
        many => {
            let words = format!("validate one and only one schema (oneOf). Found {many} valid alternatives");
            found.push(told(&words));
        }
    }
    let all = tried(&rules.all_of);
    let failed = all.iter().any(|faults| !faults.is_empty());
    found.extend(all.into_iter().flatten());
    if failed {
        found.push(told("validate all the schemas (allOf)"));
    }
    if let Some(not) = &rules.not
        && tried(std::slice::from_ref(not)).iter().all(Vec::is_empty)
    {
        found.push(told("not validate the schema (not)"));
    }
}

fn check_text(schema: &Schema, text: &str, at: &At, found: &mut Vec<Fault>) {
    let value = Value::from(text);
    let length = text.chars().count();
    let rules = &schema.rules;
    if let Some(most) = rules.length.most.filter(|most| length > *most) {
        found.push(Fault::too_long(at.field.as_str(), most));
    }
    if let Some(least) = rules.length.least.filter(|least| length < *least) {
        found.push(at.invalid(&value, &format!("should be at least {least} chars long")));
    }
    if let Some(pattern) = rules.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
        found.push(at.invalid(&value, &format!("should match '{}'", pattern.text)));
    }
    let typed = schema.of == Some(Type::String);
    if typed && !has_format(&rules.format, text) {
        let words = format!("{} in body must be of type {}: {value}", at.words, rules.format);
        found.push(Fault::type_invalid(at.field.as_str(), text, words));
    }
}

/// Whether a text is what its format says; formats that are not known say nothing.
fn has_format(format: &str, text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match format {
        "date-time" => text.parse::<jiff::Timestamp>().is_ok() && text.contains(['T', 't']),
        "date" => text.parse::<jiff::civil::Date>().is_ok() && text.len() == 10,
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => text.split_once('/').is_some_and(|(address, bits)| {
            let most = match address.parse() {
                Ok(std::net::IpAddr::V4(_)) => 32,
                Ok(std::net::IpAddr::V6(_)) => 128,
                Err(_) => return false,
            };
            bits.parse::<u8>().is_ok_and(|bits| bits <= most)
        }),
        "uuid" => {
            let plain: String = text.split('-').collect();
            plain.len() == 32 && digits(&plain)
        }
        "email" => text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty()),
        "uri" => text.parse::<http::Uri>().is_ok_and(|uri| uri.scheme().is_some()),
        "byte" => {
            use base64::Engine as _;
            base64::engine::general_purpose::STANDARD.decode(text).is_ok()
        }
        _ => true,
    }
}

fn check_number(schema: &Schema, value: &Value, at: &At, found: &mut Vec<Fault>) {
    let Some(number) = value.as_f64() else { return };
    let rules = &schema.rules;
    let bound = |bound: &Bound, out: bool, words: &str| {
        let out = out || (bound.exclusive && number == bound.value);
        let or_equal = if bound.exclusive { "" } else { " or equal to" };
        let limit = shown(bound.value);
        out.then(|| at.invalid(value, &format!("should be {words}{or_equal} {limit}")))
    };
    found.extend(rules.maximum.as_ref().and_then(|max| bound(max, number > max.value, "less than")));
    found.extend(rules.minimum.as_ref().and_then(|min| bound(min, number < min.value, "greater than")));
    if let Some(factor) = rules.multiple_of.filter(|factor| *factor > 0.0 && (number / factor).fract() != 0.0) {
        found.push(at.invalid(value, &format!("should be a multiple of {}", shown(factor))));
    }
    let fits = match &*rules.format {
        "int32" => number >= f64::from(i32::MIN) && number <= f64::from(i32::MAX),
        _ => true,
    };
    if !fits {
        let words = format!("Checked value must be of type integer with format int32 in {}", at.words);
        found.push(Fault::invalid(NO_FIELD, "", words));
    }
}

/// A number without a fraction when it has none.
fn shown(number: f64) -> String {
    format!("{number}")
}

fn check_items(schema: &Schema, items: &[Value], old: Option<&Value>, at: &At, found: &mut Vec<Fault>) {
    let whole = || Value::Array(items.to_vec());
    if let Some(of) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            check(of, item, counterpart(schema, item, old), &at.item(index), found);
        }
    }
    let range = schema.rules.items;
    if let Some(most) = range.most.filter(|most| items.len() > *most) {
        found.push(Fault::too_many(at.field.as_str(), items.len(), most));
    }
    if let Some(least) = range.least.filter(|least| items.len() < *least) {
        found.push(at.invalid(&whole(), &format!("should have at least {least} items")));
    }
}

/// What an item of a list was before, where items can be told apart.
fn counterpart<'a>(schema: &Schema, item: &Value, old: Option<&'a Value>) -> Option<&'a Value> {
    let ListType::Map(keys) = &schema.list else { return None };
    let old = old?.as_array()?;
    old.iter().find(|old| keys.iter().all(|key| old.get(key) == item.get(key)))
}

fn check_fields(schema: &Schema, fields: &Map<String, Value>, old: Option<&Value>, at: &At, found: &mut Vec<Fault>) {
    if schema.embedded {
        let empty = |name: &&str| fields.get(*name).and_then(Value::as_str).is_none_or(str::is_empty);
        let missing = ["apiVersion", "kind"].into_iter().filter(empty);
        found.extend(missing.map(|name| Fault::required(at.child(name).field, "must not be empty")));
    }
    for (name, value) in fields {
        let old = old.and_then(|old| old.get(name));
        match (schema.properties.get(name), &schema.additional) {
            (Some(property), _) => check(property, value, old, &at.child(name), found),
            (None, Additional::Of(of)) => check(of, value, old, &at.child(name), found),
            (None, _) => {}
        }
    }
    let missing = schema.rules.required.iter().filter(|name| !fields.contains_key(*name));
    found.extend(missing.map(|name| Fault::required(at.child(name).field, "")));
    let range = schema.rules.properties;
    if let Some(most) = range.most.filter(|most| fields.len() > *most) {
        found.push(Fault::too_many(at.field.as_str(), fields.len(), most));
    }
    if let Some(least) = range.least.filter(|least| fields.len() < *least) {
        let whole = Value::Object(fields.clone());
        found.push(at.invalid(&whole, &format!("should have at least {least} properties")));
    }
}

/// Items of sets and maps that are there twice.
fn duplicates(schema: &Schema, value: &Value, old: Option<&Value>, path: &str, found: &mut Vec<Fault>) {
    if old == Some(value) {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let Some(schema) = schema.field(name) else { continue };
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                duplicates(schema, value, old.and_then(|old| old.get(name)), &path, found);
            }
        }
        Value::Array(items) => {
            let key = |item: &Value| match &schema.list {
                ListType::Atomic => None,
                ListType::Set => Some(item.clone()),
                ListType::Map(keys) => {
                    let fields = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
                    Some(Value::Object(fields.collect()))
                }
            };
            let mut seen = Vec::new();
            for (index, item) in items.iter().enumerate() {
                if let Some(key) = key(item) {
                    if seen.contains(&key) {
                        found.push(Fault::duplicate(format!("{path}[{index}]"), key));
                    } else {
                        seen.push(key);
                    }
                }
                if let Some(schema) = &schema.items {
                    duplicates(schema, item, None, &format!("{path}[{index}]"), found);
                }
            }
        }
        _ => {}
    }
}

/// What the API server puts in the place of a field when it names none.
const NO_FIELD: &str = "<nil>";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bodies(schema: &Value, value: &Value, old: Option<&Value>) -> Vec<String> {
        let faults = faults(&Schema::parse(schema), value, old);
        faults.iter().map(Fault::to_string).collect()
    }

    #[test]
    fn values_are_what_their_schema_demands() {
        let of = |rules: Value| json!({"type": "object", "properties": {"a": rules}});
        for (rules, value, expected) in [
            (json!({"type": "integer"}), json!(5), None),
            (json!({"type": "number"}), json!(5), None),
            (
                json!({"type": "string"}),
                json!(5),
                Some("a: Invalid value: \"integer\": a in body must be of type string: \"integer\""),
            ),
            (json!({"type": "string", "nullable": true}), Value::Null, None),
            (
                json!({"type": "integer", "maximum": 3, "exclusiveMaximum": true}),
                json!(3),
                Some("a: Invalid value: 3: a in body should be less than 3"),
            ),
            (
                json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
                json!([]),
                Some("a: Invalid value: []: a in body should have at least 1 items"),
            ),
            (json!({"type": "string", "format": "date-time"}), json!("2026-01-01T00:00:00Z"), None),
            (
                json!({"type": "string", "format": "ipv4"}),
                json!("::1"),
                Some("a: Invalid value: \"::1\": a in body must be of type ipv4: \"::1\""),
            ),
            (json!({"type": "string", "format": "odd"}), json!("x"), None),
            (json!({"type": "string", "maxLength": 2}), json!("\u{e9}\u{e9}"), None),
            (
                json!({"type": "string", "not": {"enum": ["x"]}}),
                json!("x"),
                Some("<nil>: Invalid value: \"\": \"a\" must not validate the schema (not)"),
            ),
            (
                json!({"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}}),
                json!({"x": "1", "y": "2"}),
                Some("a: Too many: 2: must have at most 1 items"),
            ),
            (json!({"x-kubernetes-int-or-string": true}), json!("50%"), None),
        ] {
            let found = bodies(&of(rules.clone()), &json!({"a": value}), None);
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{rules} {value}");
        }
    }

    #[test]
    fn what_has_not_changed_is_let_be() {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "integer", "maximum": 3}, "b": {"type": "string"}}});
        let (old, new) = (json!({"a": 5, "b": "x"}), json!({"a": 5, "b": "y"}));
        assert_eq!(bodies(&schema, &new, Some(&old)), Vec::<String>::new());
        assert_eq!(bodies(&schema, &new, None).len(), 1);
        assert_eq!(bodies(&schema, &json!({"a": 6}), Some(&old)).len(), 1);
    }
}
