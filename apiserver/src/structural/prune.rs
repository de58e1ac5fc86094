//! What is kept of an object, and what is filled in.

use serde_json::{Map, Value};

use super::{Additional, Schema};

type Fields = Map<String, Value>;

/// Drops the fields that the schema does not have, and tells them in `unknown`.
pub(crate) fn pruned(schema: &Schema, fields: &mut Fields, unknown: &mut Vec<String>) {
    prune_fields(schema, fields, true, "", unknown);
}

fn prune(schema: &Schema, value: &mut Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(fields) => prune_fields(schema, fields, schema.embedded, path, unknown),
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for (index, item) in items.iter_mut().enumerate() {
                prune(schema, item, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

/// `whole` has the type and metadata of an object of Kubernetes.
fn prune_fields(schema: &Schema, fields: &mut Fields, whole: bool, path: &str, unknown: &mut Vec<String>) {
    let inner = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    fields.retain(|name, value| {
        let known = match (schema.properties.get(name), &schema.additional) {
            _ if whole && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") => return true,
            (Some(property), _) => Some(property),
            (None, Additional::Of(of)) => Some(&**of),
            (None, Additional::Any) => return true,
            (None, _) => None,
        };
        match known {
            Some(schema) => prune(schema, value, &inner(name), unknown),
            None if schema.preserves_unknown => {}
            None => {
                unknown.push(format!("unknown field {}", Value::from(inner(name))));
                return false;
            }
        }
        true
    });
}

/// Fills in what the schema says of fields that are left out, or null where they cannot be.
pub(crate) fn with_defaults(schema: &Schema, fields: &mut Fields) {
    for (name, property) in &schema.properties {
        let nothing = match fields.get(name) {
            None => true,
            Some(value) => value.is_null() && !property.nullable,
        };
        match &property.default {
            Some(default) if nothing => drop(fields.insert(name.clone(), default.clone())),
            _ => {}
        }
    }
    each(schema, fields, &mut with_defaults);
}

/// Drops what is null where it cannot be, as clients write what they leave out.
pub(crate) fn without_nulls(schema: &Schema, fields: &mut Fields) {
    fields.retain(|name, value| !value.is_null() || schema.field(name).is_none_or(|property| property.nullable));
    each(schema, fields, &mut without_nulls);
}

/// Does something to every object right within another, be it in lists.
fn each(schema: &Schema, fields: &mut Fields, act: &mut impl FnMut(&Schema, &mut Fields)) {
    for (name, value) in fields.iter_mut() {
        if let Some(schema) = schema.field(name) {
            within(schema, value, act);
        }
    }
}

fn within(schema: &Schema, value: &mut Value, act: &mut impl FnMut(&Schema, &mut Fields)) {
    match value {
        Value::Object(fields) => act(schema, fields),
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            items.iter_mut().for_each(|item| within(schema, item, act));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Schema {
        Schema::parse(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "default": {}, "properties": {
            "size": {"type": "integer", "default": 3},
            "port": {"x-kubernetes-int-or-string": true},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "known": {"type": "object", "properties": {"a": {"type": "string"}}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}},
            "object": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
                "spec": {"type": "object"}}},
            "null": {"type": "string", "nullable": true, "default": "x"},
        }}}}))
    }

    #[test]
    fn fields_without_a_schema_go_unless_they_are_kept() {
        let mut object = json!({"apiVersion": "v1", "odd": 1, "spec": {"size": 1, "odd": 2, "port": "http",
            "free": {"any": {"x": 1}, "known": {"a": "b", "odd": 3}}, "map": {"k": {"a": "b", "odd": 4}},
            "list": [{"a": "b"}, {"odd": 5}], "object": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"},
                "spec": {"odd": 6}, "status": {}}}});
        let mut unknown = Vec::new();
        pruned(&schema(), object.as_object_mut().unwrap(), &mut unknown);
        assert_eq!(
            object,
            json!({"apiVersion": "v1", "spec": {"size": 1, "port": "http", "free": {"any": {"x": 1}, "known": {"a": "b"}},
                "map": {"k": {"a": "b"}}, "list": [{"a": "b"}, {}], "object": {"apiVersion": "v1", "kind": "K",
                    "metadata": {"name": "n"}, "spec": {}}}})
        );
        let mut told = [
            "odd",
            "spec.odd",
            "spec.free.known.odd",
            "spec.map.k.odd",
            "spec.list[1].odd",
            "spec.object.status",
            "spec.object.spec.odd",
        ]
        .map(|path| format!("unknown field \"{path}\""));
        told.sort();
        unknown.sort();
        assert_eq!(unknown, told);
    }

    #[test]
    fn what_is_left_out_is_filled_in() {
        for (given, expected) in [
            (json!({}), json!({"spec": {"size": 3, "null": "x"}})),
            (
                json!({"spec": {"map": null, "list": [{"a": null}]}}),
                json!({"spec": {"size": 3, "list": [{"a": "x"}], "null": "x"}}),
            ),
            (json!({"spec": null}), json!({"spec": {"size": 3, "null": "x"}})),
            (json!({"spec": {"size": null, "null": null}}), json!({"spec": {"size": 3, "null": null}})),
            (
                json!({"spec": {"size": 0, "list": [{}]}}),
                json!({"spec": {"size": 0, "list": [{"a": "x"}], "null": "x"}}),
            ),
        ] {
            let mut object = given.clone();
            let fields = object.as_object_mut().unwrap();
            with_defaults(&schema(), fields);
            without_nulls(&schema(), fields);
            assert_eq!(object, expected, "{given}");
        }
    }
}
