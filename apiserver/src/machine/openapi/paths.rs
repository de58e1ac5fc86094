//! The paths of resources, and what may be done there.

use serde_json::{Map, Value, json};

use super::schemas::reference;
use crate::machine::catalog::{Resource, Subresource};

/// The paths of a resource: all of its objects, those of a namespace, and one of them.
pub(super) fn add(paths: &mut Map<String, Value>, resource: &Resource, schema: &str, list: Option<&str>) {
    let root = root(resource);
    let collection = collection(resource);
    let object = format!("{collection}/{{name}}");
    if resource.is_namespaced() {
        insert(paths, format!("{root}/{}", resource.of.plural), resource, &[("list", "get")], list.unwrap_or(schema));
    }
    let mut of_collection = operations(resource, &[("create", "post"), ("deletecollection", "delete")], schema);
    of_collection.extend(operations(resource, &[("list", "get")], list.unwrap_or(schema)));
    if !of_collection.is_empty() {
        paths.insert(collection, Value::Object(of_collection));
    }
    insert(
        paths,
        object,
        resource,
        &[("get", "get"), ("update", "put"), ("patch", "patch"), ("delete", "delete")],
        schema,
    );
}

/// The path of a subresource.
pub(super) fn add_subresource(paths: &mut Map<String, Value>, resource: &Resource, sub: &Subresource, schema: &str) {
    let gvk = json!({"group": sub.group, "version": sub.version, "kind": sub.kind});
    let methods = [("get", "get"), ("create", "post"), ("update", "put"), ("patch", "patch"), ("delete", "delete")];
    let allowed = methods.iter().filter(|(verb, _)| sub.verbs.iter().any(|allowed| allowed == verb));
    let operations: Map<_, _> = allowed
        .map(|(verb, method)| ((*method).to_owned(), operation(verb, &gvk, schema, resource.is_custom())))
        .collect();
    paths.insert(format!("{}/{{name}}/{}", collection(resource), sub.name), Value::Object(operations));
}

fn root(resource: &Resource) -> String {
    let of = &resource.of;
    if of.group.is_empty() { format!("/api/{}", of.version) } else { format!("/apis/{}/{}", of.group, of.version) }
}

fn collection(resource: &Resource) -> String {
    let namespace = if resource.is_namespaced() { "/namespaces/{namespace}" } else { "" };
    format!("{}{namespace}/{}", root(resource), resource.of.plural)
}

fn insert(paths: &mut Map<String, Value>, path: String, resource: &Resource, verbs: &[(&str, &str)], schema: &str) {
    let operations = operations(resource, verbs, schema);
    if !operations.is_empty() {
        paths.insert(path, Value::Object(operations));
    }
}

fn operations(resource: &Resource, verbs: &[(&str, &str)], schema: &str) -> Map<String, Value> {
    let of = &resource.of;
    let gvk = json!({"group": of.group, "version": of.version, "kind": of.kind});
    let allowed = verbs.iter().filter(|(verb, _)| resource.allows(verb));
    allowed.map(|(verb, method)| ((*method).to_owned(), operation(verb, &gvk, schema, resource.is_custom()))).collect()
}

fn operation(verb: &str, gvk: &Value, schema: &str, custom: bool) -> Value {
    let parameters: Value = parameters(verb).iter().copied().map(parameter).collect();
    let content = json!({"application/json": {"schema": {"$ref": reference(schema)}}});
    let mut operation = json!({"parameters": parameters, "x-kubernetes-action": action(verb),
        "x-kubernetes-group-version-kind": gvk, "responses": {"200": {"description": "OK"}}});
    match verb {
        "create" | "update" => operation["requestBody"] = json!({"content": content, "required": true}),
        "patch" => operation["requestBody"] = json!({"content": patches(custom), "required": true}),
        _ => {}
    }
    if !matches!(verb, "delete" | "deletecollection") {
        operation["responses"]["200"]["content"] = content;
    }
    operation
}

/// What OpenAPI calls a verb of discovery.
fn action(verb: &str) -> &str {
    match verb {
        "create" => "post",
        "update" => "put",
        verb => verb,
    }
}

fn patches(custom: bool) -> Value {
    const TYPES: [&str; 3] =
        ["application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"];
    let types = if custom { &TYPES[..2] } else { &TYPES };
    let content: Map<_, _> =
        types.iter().map(|kind| ((*kind).to_owned(), json!({"schema": {"type": "object"}}))).collect();
    Value::Object(content)
}

fn parameters(verb: &str) -> &'static [&'static str] {
    match verb {
        "create" | "update" => &["dryRun", "fieldManager", "fieldValidation"],
        "patch" => &["dryRun", "fieldManager", "fieldValidation", "force"],
        "delete" => &["dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"],
        "list" | "deletecollection" => &[
            "allowWatchBookmarks",
            "continue",
            "fieldSelector",
            "labelSelector",
            "limit",
            "resourceVersion",
            "resourceVersionMatch",
            "sendInitialEvents",
            "timeoutSeconds",
            "watch",
        ],
        _ => &[],
    }
}

fn parameter(name: &str) -> Value {
    let kind = match name {
        "gracePeriodSeconds" | "limit" | "timeoutSeconds" => "integer",
        "allowWatchBookmarks" | "force" | "orphanDependents" | "sendInitialEvents" | "watch" => "boolean",
        _ => "string",
    };
    json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}})
}
