//! OpenAPI: the types of what is served, and what requests may say, for clients that look before they ask.
//!
//! See <https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-v3>.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::catalog::Resource;
use super::cluster::Cluster;
use super::reply::Body;
use super::store::Key;
use crate::kinds::{Container, Field, Kinds, ListType, Shape, StructId};

/// The document at a path of OpenAPI; `None` when there is none.
pub(crate) fn answer(cluster: &Cluster, path: &[&str]) -> Option<Body> {
    match path {
        ["openapi", "v3"] => Some(Body::json(200, &index(cluster))),
        ["openapi", "v3", "api", version] => Some(Body::json(200, &document(cluster, "", version)?)),
        ["openapi", "v3", "apis", group, version] => Some(Body::json(200, &document(cluster, group, version)?)),
        _ => None,
    }
}

/// Where the document of each group and version is.
fn index(cluster: &Cluster) -> Value {
    let mut paths = Map::new();
    for group in cluster.catalog.groups() {
        for version in &group.versions {
            let path =
                if group.name.is_empty() { format!("api/{version}") } else { format!("apis/{}/{version}", group.name) };
            paths.insert(path.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{path}")}));
        }
    }
    json!({"paths": paths})
}

fn document(cluster: &Cluster, group: &str, version: &str) -> Option<Value> {
    let resources: Vec<_> = cluster.catalog.version(group, version)?.values().collect();
    let mut schemas = Schemas { kinds: &cluster.kinds, done: BTreeMap::new(), found: BTreeSet::new() };
    let mut paths = Map::new();
    for resource in resources {
        let schema = match cluster.kinds.kind(group, version, &resource.of.kind) {
            Some(kind) if !resource.is_custom() => schemas.kind(kind.structure, resource),
            _ => schemas.custom(cluster, resource),
        };
        add_paths(&mut paths, resource, &schema);
    }
    Some(json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": super::server::VERSION}, "paths": paths,
        "components": {"schemas": schemas.finish()}}))
}

fn add_paths(paths: &mut Map<String, Value>, resource: &Resource, schema: &str) {
    let of = &resource.of;
    let root =
        if of.group.is_empty() { format!("/api/{}", of.version) } else { format!("/apis/{}/{}", of.group, of.version) };
    let scoped = if resource.is_namespaced() { format!("{root}/namespaces/{{namespace}}") } else { root.clone() };
    let collection = format!("{scoped}/{}", of.plural);
    let object = format!("{collection}/{{name}}");
    let gvk = json!({"group": of.group, "version": of.version, "kind": of.kind});
    let operations = |verbs: &[(&str, &str)]| -> Value {
        let allowed = verbs.iter().filter(|(verb, _)| resource.allows(verb));
        allowed
            .map(|(verb, method)| ((*method).to_owned(), operation(verb, &gvk, schema, resource.is_custom())))
            .collect::<Map<_, _>>()
            .into()
    };
    if resource.is_namespaced() && resource.allows("list") {
        paths.insert(format!("{root}/{}", of.plural), operations(&[("list", "get")]));
    }
    paths.insert(collection, operations(&[("list", "get"), ("create", "post"), ("deletecollection", "delete")]));
    paths.insert(object, operations(&[("get", "get"), ("update", "put"), ("patch", "patch"), ("delete", "delete")]));
}

fn operation(verb: &str, gvk: &Value, schema: &str, custom: bool) -> Value {
    let names: &[&str] = match verb {
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
    };
    let parameter = |name: &&str| {
        let kind = match *name {
            "gracePeriodSeconds" | "limit" | "timeoutSeconds" => "integer",
            "allowWatchBookmarks" | "force" | "orphanDependents" | "sendInitialEvents" | "watch" => "boolean",
            _ => "string",
        };
        json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}})
    };
    let parameters: Value = names.iter().map(parameter).collect();
    let content = json!({"application/json": {"schema": {"$ref": reference(schema)}}});
    let mut operation = json!({"parameters": parameters, "x-kubernetes-action": verb,
        "x-kubernetes-group-version-kind": gvk, "responses": {"200": {"description": "OK"}}});
    if matches!(verb, "create" | "update") {
        operation["requestBody"] = json!({"content": content, "required": true});
    }
    if verb == "patch" {
        let types =
            ["application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"];
        let patch = json!({"schema": {"type": "object"}});
        let content: Map<_, _> =
            types[..if custom { 2 } else { 3 }].iter().map(|kind| ((*kind).to_owned(), patch.clone())).collect();
        operation["requestBody"] = json!({"content": content, "required": true});
    }
    if matches!(verb, "get" | "create" | "update" | "patch") {
        operation["responses"]["200"]["content"] = content;
    }
    operation
}

fn reference(schema: &str) -> String {
    format!("#/components/schemas/{schema}")
}

/// Schemas under construction: a type is described once, with all that it refers to.
struct Schemas<'k> {
    kinds: &'k Kinds,
    done: BTreeMap<String, Value>,
    found: BTreeSet<StructId>,
}

impl Schemas<'_> {
    /// Describes the type of a kind, and answers its name.
    fn kind(&mut self, id: StructId, resource: &Resource) -> String {
        let name = self.name(id);
        self.found.insert(id);
        let of = &resource.of;
        let mut schema = self.structure(id);
        schema["x-kubernetes-group-version-kind"] =
            json!([{"group": of.group, "kind": of.kind, "version": of.version}]);
        self.done.insert(name.clone(), schema);
        name
    }

    /// Describes a custom resource as its definition does, and answers its name.
    fn custom(&mut self, cluster: &Cluster, resource: &Resource) -> String {
        let of = &resource.of;
        let reversed: Vec<_> = of.group.split('.').rev().collect();
        let name = format!("{}.{}.{}", reversed.join("."), of.version, of.kind);
        let definition = resource.custom.as_ref().map(|custom| Key::from(&*custom.definition));
        let stored = definition.and_then(|key| cluster.store.get(super::controllers::DEFINITIONS, &key));
        let versions = stored.and_then(|stored| super::object::at(stored.fields(), &["spec", "versions"])?.as_array());
        let version = versions.into_iter().flatten().find(|version| version["name"] == *of.version);
        let mut schema = version.map_or_else(|| json!({}), |version| version["schema"]["openAPIV3Schema"].clone());
        if !schema.is_object() {
            schema = json!({});
        }
        schema["type"] = json!("object");
        for field in ["apiVersion", "kind"] {
            schema["properties"][field] = json!({"type": "string"});
        }
        if let Some(metadata) = self.metadata() {
            self.note(metadata);
            schema["properties"]["metadata"] = json!({"allOf": [{"$ref": reference(&self.name(metadata))}]});
        }
        schema["x-kubernetes-group-version-kind"] =
            json!([{"group": of.group, "kind": of.kind, "version": of.version}]);
        self.done.insert(name.clone(), schema);
        name
    }

    fn metadata(&self) -> Option<StructId> {
        self.kinds.field(self.kinds.kind("", "v1", "ConfigMap")?.structure, "metadata")?.structure()
    }

    fn finish(self) -> Value {
        Value::Object(self.done.into_iter().collect())
    }

    fn name(&self, id: StructId) -> String {
        let structure = self.kinds.structure(id);
        format!("{}.{}", structure.package, structure.name)
    }

    /// Makes sure that a type that is referred to is described.
    fn note(&mut self, id: StructId) {
        if self.found.insert(id) {
            let schema = self.structure(id);
            self.done.insert(self.name(id), schema);
        }
    }

    fn structure(&mut self, id: StructId) -> Value {
        let kinds = self.kinds;
        let mut properties = Map::new();
        let mut required = Vec::new();
        self.fields(&kinds.structure(id).fields, &mut properties, &mut required);
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if kinds.structure(id).atomic {
            schema["x-kubernetes-map-type"] = json!("atomic");
        }
        schema
    }

    fn fields(&mut self, fields: &[Field], properties: &mut Map<String, Value>, required: &mut Vec<&'static str>) {
        let kinds = self.kinds;
        for field in fields {
            match field.structure() {
                Some(inlined) if field.is_inlined() => {
                    self.fields(&kinds.structure(inlined).fields, properties, required)
                }
                _ => {
                    properties.insert(field.name.to_owned(), self.field(field));
                    if field.required {
                        required.push(field.name);
                    }
                }
            }
        }
    }

    fn field(&mut self, field: &Field) -> Value {
        let value = self.shape(field.shape);
        let mut schema = match field.container {
            Container::One | Container::Pointer if value.get("$ref").is_some() => json!({"allOf": [value]}),
            Container::One | Container::Pointer => value,
            Container::List => json!({"type": "array", "items": value}),
            Container::Map => json!({"type": "object", "additionalProperties": value}),
        };
        match &field.list {
            _ if field.container != Container::List => {}
            ListType::Atomic => schema["x-kubernetes-list-type"] = json!("atomic"),
            ListType::Set => schema["x-kubernetes-list-type"] = json!("set"),
            ListType::Map(keys) => {
                schema["x-kubernetes-list-type"] = json!("map");
                schema["x-kubernetes-list-map-keys"] = json!(keys);
            }
        }
        if let Some(strategy) = field.patch_strategy {
            schema["x-kubernetes-patch-strategy"] = json!(strategy);
        }
        if let Some(key) = field.merge_key {
            schema["x-kubernetes-patch-merge-key"] = json!(key);
        }
        schema
    }

    fn shape(&mut self, shape: Shape) -> Value {
        match shape {
            Shape::String => json!({"type": "string"}),
            Shape::Bool => json!({"type": "boolean"}),
            Shape::Int32 => json!({"type": "integer", "format": "int32"}),
            Shape::Int64 => json!({"type": "integer", "format": "int64"}),
            Shape::Double => json!({"type": "number", "format": "double"}),
            Shape::Bytes => json!({"type": "string", "format": "byte"}),
            Shape::Time | Shape::MicroTime => json!({"type": "string", "format": "date-time"}),
            Shape::Quantity => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            Shape::IntOrString => {
                json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
            }
            Shape::RawExtension | Shape::FieldsV1 => json!({"type": "object"}),
            Shape::Json | Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrStrings => json!({}),
            Shape::Strings => json!({"type": "array", "items": {"type": "string"}}),
            Shape::Struct(id) => {
                self.note(id);
                json!({"$ref": reference(&self.name(id))})
            }
        }
    }
}
