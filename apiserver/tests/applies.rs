//! Server-side apply and the ownership of fields.
#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod common;

use std::time::Duration;

use serde_json::{Value, json};

use common::{DEFINITIONS, WIDGETS, World, definition, refusal, widget};

const MAP: &str = "/api/v1/namespaces/default/configmaps/a";

/// Applies a config map with this data, and answers the code and body.
fn apply(world: &mut World, query: &str, data: Value) -> (u16, Value) {
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
    world.call_as("PATCH", &format!("{MAP}?{query}"), "application/apply-patch+yaml", Some(body))
}

/// Who owns what, as `manager operation fields`.
fn owners(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let owner = |entry: &Value| {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", text("manager"), text("operation"), entry["fieldsV1"])
    };
    entries.iter().map(owner).collect()
}

#[test]
fn what_is_applied_no_more_goes_unless_another_owns_it() {
    let mut world = World::new();
    assert_eq!(apply(&mut world, "fieldManager=x", json!({"a": "1", "b": "1", "c": "1"})).0, 201);
    assert_eq!(apply(&mut world, "fieldManager=y", json!({"b": "1"})).0, 200);
    world.call("PATCH", &format!("{MAP}?fieldManager=z"), Some(json!({"data": {"c": "2"}})));
    let (code, left) = apply(&mut world, "fieldManager=x", json!({}));
    assert_eq!((code, &left["data"]), (200, &json!({"b": "1", "c": "2"})));
    // Who applied what was there already changed nothing, at no time, and so comes first.
    let expected =
        [r#"y Apply {"f:data":{"f:b":{}}}"#, r#"x Apply {"f:data":{}}"#, r#"z Update {"f:data":{"f:c":{}}}"#];
    assert_eq!(owners(&left), expected);
}

#[test]
fn who_would_change_what_another_owns_is_refused_unless_by_force() {
    let mut world = World::new();
    apply(&mut world, "fieldManager=x", json!({"a": "1"}));
    world.call("PATCH", &format!("{MAP}?fieldManager=z"), Some(json!({"data": {"b": "1"}})));
    let refused = apply(&mut world, "fieldManager=y", json!({"a": "2", "b": "2"}));
    let message =
        "Apply failed with 2 conflicts: conflicts with \"x\":\n- .data.a\nconflicts with \"z\" using v1:\n- .data.b";
    assert_eq!(refusal(&refused), (409, "Conflict", message));
    let cause = json!({"reason": "FieldManagerConflict", "message": "conflict with \"x\"", "field": ".data.a"});
    assert_eq!(refused.1["details"]["causes"][0], cause);
    let (code, taken) = apply(&mut world, "fieldManager=y&force=true", json!({"a": "2", "b": "2"}));
    assert_eq!((code, owners(&taken)), (200, vec![r#"y Apply {"f:data":{"f:a":{},"f:b":{}}}"#.to_owned()]));
}

#[test]
fn what_changes_nothing_has_no_new_version() {
    let mut world = World::new();
    let (_, first) = apply(&mut world, "fieldManager=x", json!({"a": "1"}));
    world.wait(Duration::from_secs(60));
    let (code, again) = apply(&mut world, "fieldManager=x", json!({"a": "1"}));
    assert_eq!((code, &again), (200, &first));
    let (code, tried) = apply(&mut world, "fieldManager=y&force=true&dryRun=All", json!({"a": "2"}));
    assert_eq!((code, &tried["data"]["a"]), (200, &json!("2")));
    assert_eq!(world.get(MAP).1, first);
}

#[test]
fn an_apply_says_who_and_what_it_is() {
    let mut world = World::new();
    let message = "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch";
    assert_eq!(refusal(&apply(&mut world, "", json!({}))), (422, "Invalid", message));
    for (body, code, message) in [
        (json!({"apiVersion": "v1", "kind": "Secret"}), 400, "invalid object type: /v1, Kind=Secret"),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "managedFields": [{}]}}),
            400,
            "metadata.managedFields must be nil",
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "odd": 1}),
            500,
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .odd: field not declared in schema",
        ),
    ] {
        let path = format!("{MAP}?fieldManager=x");
        let (found, status) = world.call_as("PATCH", &path, "application/apply-patch+yaml", Some(body));
        assert_eq!((found, &status["message"]), (code, &json!(message)));
    }
}

#[test]
fn a_write_that_has_no_part_in_it_leaves_ownership_as_it_is() {
    let mut world = World::new();
    apply(&mut world, "fieldManager=x", json!({"a": "1"}));
    for field in ["b", "c"] {
        world.call("PATCH", &format!("{MAP}?fieldManager={field}"), Some(json!({"data": {field: "1"}})));
    }
    let (_, found) = world.call("PATCH", &format!("{MAP}?fieldManager=b"), Some(json!({"data": {"b": null}})));
    assert_eq!(owners(&found), [r#"x Apply {"f:data":{"f:a":{}}}"#, r#"c Update {"f:data":{"f:c":{}}}"#]);
    let (_, reset) = world.call("PATCH", MAP, Some(json!({"metadata": {"managedFields": []}})));
    assert_eq!(owners(&reset), Vec::<String>::new());
}

#[test]
fn custom_resources_are_pruned_filled_in_and_checked() {
    let mut world = World::new();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "minimum": 1},
        "color": {"type": "string", "default": "red"},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}}});
    let mut definition = definition(&[json!({"name": "v1", "storage": true})]);
    definition["spec"]["versions"][0]["schema"] = json!({"openAPIV3Schema": schema});
    world.create(DEFINITIONS, definition);
    world.settle();
    let made = world.create(WIDGETS, widget("w", json!({"size": 1, "odd": 1})));
    assert_eq!(made["spec"], json!({"size": 1, "color": "red"}));
    let refused = world.call("POST", WIDGETS, Some(widget("v", json!({"size": 0, "tags": ["a", "a"]}))));
    let message = "Widget.example.com \"v\" is invalid: [spec.size: Invalid value: 0: spec.size in body should be greater \
        than or equal to 1, spec.tags[1]: Duplicate value: \"a\"]";
    assert_eq!(refusal(&refused), (422, "Invalid", message));
    let path = format!("{WIDGETS}/w?fieldManager=x");
    let tagged =
        world.call_as("PATCH", &path, "application/apply-patch+yaml", Some(widget("w", json!({"tags": ["b"]})))).1;
    assert_eq!(owners(&tagged)[0], r#"x Apply {"f:spec":{"f:tags":{"v:\"b\"":{}}}}"#);
}
