//! Whether a schema can be served: structural schemas say of every value what it is, once.

use serde_json::Value;

use super::validate::default_faults;
use super::{ListType, Pattern, Schema};
use crate::machine::Fault;

/// The faults of a schema at `path` in its definition.
pub(crate) fn schema_faults(schema: &Value, path: &str) -> Vec<Fault> {
    let mut found = Vec::new();
    match schema["type"].as_str() {
        None | Some("") => found.push(Fault::required(format!("{path}.type"), "must not be empty at the root")),
        Some("object") => {}
        Some(other) => found.push(Fault::invalid(format!("{path}.type"), other, "must be object at the root")),
    }
    if !found.is_empty() {
        return found;
    }
    check(schema, path, Place::Root, &mut found);
    found
}

/// Where a schema is, as far as it says what must not be left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Field,
    Item,
    Values,
}

fn check(schema: &Value, path: &str, place: Place, found: &mut Vec<Fault>) {
    let at = |field: &str| format!("{path}.{field}");
    let of = schema["type"].as_str().unwrap_or_default();
    let is = |name: &str| schema[name] == Value::Bool(true);
    let open = is("x-kubernetes-preserve-unknown-fields") || is("x-kubernetes-int-or-string");
    if of.is_empty() && !open {
        let what = match place {
            Place::Root => "at the root",
            Place::Field => "for specified object fields",
            Place::Item => "for specified array items",
            Place::Values => "for specified object fields",
        };
        found.push(Fault::required(at("type"), format!("must not be empty {what}")));
    } else if !of.is_empty() && !TYPES.contains(&of) {
        found.push(Fault::not_supported(at("type"), of, &TYPES));
    }
    if schema.get("$ref").is_some_and(|to| !to.is_null()) {
        found.push(Fault::forbidden(at("$ref"), "$ref is not supported"));
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == Value::Bool(false) {
        let field = at("x-kubernetes-preserve-unknown-fields");
        found.push(Fault::invalid(field, false, "must be true or undefined"));
    }
    if is("uniqueItems") {
        let words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        found.push(Fault::forbidden(at("uniqueItems"), words));
    }
    if let Some(pattern) = schema["pattern"].as_str().filter(|text| !Pattern::parse(text).is_valid()) {
        let words = format!("must be a valid regular expression, but isn't: error parsing regexp: `{pattern}`");
        found.push(Fault::invalid(at("pattern"), pattern, words));
    }
    lists_and_maps(schema, path, of, found);
    children(schema, path, place, found);
    combinations(schema, path, found);
    if let Some(default) = schema.get("default") {
        found.extend(default_faults(&Schema::parse(schema), default, &at("default")));
    }
}

fn lists_and_maps(schema: &Value, path: &str, of: &str, found: &mut Vec<Fault>) {
    let at = |field: &str| format!("{path}.{field}");
    if let Some(list) = schema["x-kubernetes-list-type"].as_str() {
        if of != "array" {
            let words = "must be array if x-kubernetes-list-type is specified";
            found.push(Fault::invalid(at("type"), of, words));
        }
        if !["atomic", "set", "map"].contains(&list) {
            let field = at("x-kubernetes-list-type");
            found.push(Fault::not_supported(field, list, &["atomic", "set", "map"]));
        }
        let items = &schema["items"];
        if list == "set" && items["type"] == "object" && items["x-kubernetes-map-type"] != "atomic" {
            let words = "must be atomic as item of a list with x-kubernetes-list-type=set";
            let found_type = items["x-kubernetes-map-type"].clone();
            found.push(Fault::invalid(at("items.x-kubernetes-map-type"), found_type, words));
        }
        if list == "map" {
            keys(schema, path, found);
        }
    }
    if let Some(map) = schema["x-kubernetes-map-type"].as_str() {
        if of != "object" {
            let words = "must be object if x-kubernetes-map-type is specified";
            found.push(Fault::invalid(at("type"), of, words));
        }
        if !["atomic", "granular"].contains(&map) {
            found.push(Fault::not_supported(at("x-kubernetes-map-type"), map, &["atomic", "granular"]));
        }
    }
}

/// The key fields of a list must be there in every item.
fn keys(schema: &Value, path: &str, found: &mut Vec<Fault>) {
    let field = format!("{path}.x-kubernetes-list-map-keys");
    let ListType::Map(keys) = Schema::parse(schema).list else { return };
    if keys.is_empty() {
        found.push(Fault::required(field, "must not be empty if x-kubernetes-list-type is map"));
        return;
    }
    let items = &schema["items"];
    let required = items["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    for key in &keys {
        let property = &items["properties"][key];
        if property.is_null() {
            let words = "entries must all be names of item properties";
            let all = keys.iter().map(|key| Value::from(key.as_str())).collect::<Value>();
            found.push(Fault::invalid(field, all, words));
            return;
        }
        if property.get("default").is_none() && !required.iter().any(|name| name == key) {
            let words =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            found.push(Fault::required(format!("{path}.items.properties[{key}].default"), words));
        }
    }
}

fn children(schema: &Value, path: &str, place: Place, found: &mut Vec<Fault>) {
    let at = |field: &str| format!("{path}.{field}");
    let properties = schema["properties"].as_object();
    let whole = place == Place::Root || schema["x-kubernetes-embedded-resource"] == Value::Bool(true);
    for (name, property) in properties.into_iter().flatten() {
        let path = at(&format!("properties[{name}]"));
        if whole && implied(name, property, &path, found) {
            continue;
        }
        check(property, &path, Place::Field, found);
    }
    let embedded = schema["x-kubernetes-embedded-resource"] == Value::Bool(true);
    let preserves = schema["x-kubernetes-preserve-unknown-fields"] == Value::Bool(true);
    if embedded && !preserves && properties.is_none_or(serde_json::Map::is_empty) {
        let words = "must not be empty if x-kubernetes-embedded-resource is true without \
            x-kubernetes-preserve-unknown-fields";
        found.push(Fault::required(at("properties"), words));
    }
    let values = &schema["additionalProperties"];
    if properties.is_some_and(|properties| !properties.is_empty()) && (values.is_object() || *values == true) {
        let words = "additionalProperties and properties are mutual exclusive";
        found.push(Fault::forbidden(at("additionalProperties"), words));
    } else if values.is_object() {
        check(values, &at("additionalProperties"), Place::Values, found);
    }
    match &schema["items"] {
        items @ Value::Object(_) => check(items, &at("items"), Place::Item, found),
        _ if schema["type"] == "array" => found.push(Fault::required(at("items"), "must be specified")),
        _ => {}
    }
}

/// Checks what an object of Kubernetes has anyway; answers whether that is all there is to check.
fn implied(name: &str, property: &Value, path: &str, found: &mut Vec<Fault>) -> bool {
    match name {
        "apiVersion" | "kind" if property["type"].as_str().is_some_and(|of| of != "string") => {
            let of = property["type"].clone();
            found.push(Fault::invalid(format!("{path}.type"), of, "must be string"));
            true
        }
        "metadata" => {
            let beyond = property["properties"].as_object().into_iter().flatten();
            if beyond.into_iter().any(|(name, _)| !["name", "generateName"].contains(&name.as_str())) {
                let words = "must not specify anything other than name and generateName, but metadata is implicitly \
                    specified";
                found.push(Fault::forbidden(path, words));
            }
            true
        }
        _ => false,
    }
}

/// What is tried on a value that has its type already says nothing more of that.
fn combinations(schema: &Value, path: &str, found: &mut Vec<Fault>) {
    for list in ["allOf", "anyOf", "oneOf"] {
        for (index, tried) in schema[list].as_array().into_iter().flatten().enumerate() {
            typeless(tried, &format!("{path}.{list}[{index}]"), found);
        }
    }
    if schema["not"].is_object() {
        typeless(&schema["not"], &format!("{path}.not"), found);
    }
}

fn typeless(schema: &Value, path: &str, found: &mut Vec<Fault>) {
    for field in ["type", "default", "additionalProperties", "nullable", "title", "description"] {
        let said = match &schema[field] {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            _ => true,
        };
        if said && !(field == "type" && schema["x-kubernetes-int-or-string"] == true) {
            found.push(Fault::forbidden(format!("{path}.{field}"), "must be empty to be structural"));
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        typeless(property, &format!("{path}.properties[{name}]"), found);
    }
    if schema["items"].is_object() {
        typeless(&schema["items"], &format!("{path}.items"), found);
    }
    combinations(schema, path, found);
}

/// The types that a value can have.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
