//! The schemas of types.

use std::collections::BTreeMap;

use cloudcoil_core::ResourceType;
use serde_json::{Map, Value, json};

use crate::kinds::{Container, Field, Kinds, ListType, Shape, StructId};

/// Where the schema of this name is in its document.
pub(super) fn reference(schema: &str) -> String {
    format!("#/components/schemas/{schema}")
}

/// Schemas under construction: a type is described once, with all that it refers to.
pub(super) struct Schemas<'k> {
    kinds: &'k Kinds,
    /// The kinds that types are, for whoever looks one up by its kind.
    names: BTreeMap<StructId, Vec<Value>>,
    done: BTreeMap<String, Value>,
}

impl<'k> Schemas<'k> {
    pub(super) fn new(kinds: &'k Kinds) -> Self {
        let mut names: BTreeMap<StructId, Vec<Value>> = BTreeMap::new();
        for resource in kinds.resources() {
            let own = (resource.group, resource.version, resource.kind);
            let subs = resource.subresources.iter().map(|sub| (sub.group, sub.version, sub.kind));
            for (group, version, kind) in std::iter::once(own).chain(subs) {
                let Some(found) = kinds.kind(group, version, kind) else { continue };
                let name = json!({"group": group, "kind": kind, "version": version});
                let known = names.entry(found.structure).or_default();
                if !known.contains(&name) {
                    known.push(name);
                }
            }
        }
        Self { kinds, names, done: BTreeMap::new() }
    }

    pub(super) fn finish(self) -> Value {
        Value::Object(self.done.into_iter().collect())
    }

    /// Describes a built-in kind, and answers the name of its schema.
    pub(super) fn kind(&mut self, group: &str, version: &str, kind: &str) -> Option<String> {
        let id = self.kinds.kind(group, version, kind)?.structure;
        Some(self.structure(id))
    }

    /// Describes a custom resource as its definition does, and answers the name of its schema.
    pub(super) fn custom(&mut self, of: &ResourceType, schema: Option<Value>) -> String {
        let name = format!("{}.{}.{}", reversed(&of.group), of.version, of.kind);
        let mut schema = schema.filter(Value::is_object).unwrap_or_else(|| json!({}));
        schema["type"] = json!("object");
        if !schema["properties"].is_object() {
            schema["properties"] = json!({});
        }
        for field in ["apiVersion", "kind"] {
            schema["properties"][field] = json!({"type": "string"});
        }
        if let Some(metadata) = self.metadata() {
            schema["properties"]["metadata"] = json!({"allOf": [{"$ref": reference(&metadata)}]});
        }
        schema["x-kubernetes-group-version-kind"] =
            json!([{"group": of.group, "kind": of.kind, "version": of.version}]);
        self.done.insert(name.clone(), schema);
        name
    }

    /// Describes a list of what `item` describes, and answers the name of its schema.
    pub(super) fn list(&mut self, of: &ResourceType, kind: &str, item: &str) -> String {
        let package = item.rsplit_once('.').map_or("", |(package, _)| package);
        let name = format!("{package}.{kind}");
        let metadata = self.special(LIST_META, || {
            json!({"type": "object", "description": "What is said of a list besides its items.", "properties": {
                "continue": {"type": "string"}, "remainingItemCount": {"type": "integer", "format": "int64"},
                "resourceVersion": {"type": "string"}, "selfLink": {"type": "string"}}})
        });
        let schema = json!({"type": "object", "required": ["items"], "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "items": {"type": "array", "items": {"$ref": reference(item)}}, "metadata": {"allOf": [metadata]}},
            "x-kubernetes-group-version-kind": [{"group": of.group, "kind": kind, "version": of.version}]});
        self.done.insert(name.clone(), schema);
        name
    }

    /// The schema that all objects' metadata have.
    fn metadata(&mut self) -> Option<String> {
        let map = self.kinds.kind("", "v1", "ConfigMap")?;
        let id = self.kinds.field(map.structure, "metadata")?.structure()?;
        Some(self.structure(id))
    }

    /// Describes a type if it is not described yet, and answers the name of its schema.
    fn structure(&mut self, id: StructId) -> String {
        let kinds = self.kinds;
        let structure = kinds.structure(id);
        let name = format!("{}.{}", structure.package, structure.name);
        if self.done.contains_key(&name) {
            return name;
        }
        // Types refer to themselves, so that they must be known before their fields are.
        self.done.insert(name.clone(), Value::Null);
        let (mut properties, mut required) = (Map::new(), Vec::new());
        self.fields(&structure.fields, &mut properties, &mut required);
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if structure.atomic {
            schema["x-kubernetes-map-type"] = json!("atomic");
        }
        if let Some(names) = self.names.get(&id) {
            schema["x-kubernetes-group-version-kind"] = json!(names);
        }
        self.done.insert(name.clone(), schema);
        name
    }

    fn fields(&mut self, fields: &[Field], properties: &mut Map<String, Value>, required: &mut Vec<&'static str>) {
        for field in fields {
            match field.structure() {
                Some(inlined) if field.is_inlined() => {
                    let kinds = self.kinds;
                    self.fields(&kinds.structure(inlined).fields, properties, required);
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
        if field.atomic_map {
            schema["x-kubernetes-map-type"] = json!("atomic");
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
            Shape::Strings => json!({"type": "array", "items": {"type": "string"}}),
            Shape::Struct(id) => json!({"$ref": reference(&self.structure(id))}),
            Shape::Time => self.special(&meta("Time"), || json!({"type": "string", "format": "date-time"})),
            Shape::MicroTime => self.special(&meta("MicroTime"), || json!({"type": "string", "format": "date-time"})),
            Shape::FieldsV1 => self.special(&meta("FieldsV1"), || json!({"type": "object"})),
            Shape::Quantity => self.special(QUANTITY, || json!({"oneOf": [{"type": "string"}, {"type": "number"}]})),
            Shape::IntOrString => self.special(
                INT_OR_STRING,
                || json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
            ),
            Shape::RawExtension => self.special(RAW_EXTENSION, || json!({"type": "object"})),
            Shape::Json => self.any("JSON", "Any value."),
            Shape::SchemaOrArray => self.any("JSONSchemaPropsOrArray", "A schema, or a list of schemas."),
            Shape::SchemaOrBool => self.any("JSONSchemaPropsOrBool", "A schema, or true or false."),
            Shape::SchemaOrStrings => self.any("JSONSchemaPropsOrStringArray", "A schema, or a list of texts."),
        }
    }

    /// A type within the schemas of custom resource definitions that can be of several JSON types. Clients take a
    /// schema without any field for none, so it has a description.
    fn any(&mut self, name: &str, description: &str) -> Value {
        self.special(&format!("{DEFINITIONS}.{name}"), || json!({"description": description}))
    }

    /// Describes a type with a JSON form of its own, and answers a reference to it.
    fn special(&mut self, name: &str, schema: impl FnOnce() -> Value) -> Value {
        if !self.done.contains_key(name) {
            self.done.insert(name.to_owned(), schema());
        }
        json!({"$ref": reference(name)})
    }
}

fn meta(name: &str) -> String {
    format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}")
}

/// The parts of a domain name the other way round.
fn reversed(group: &str) -> String {
    group.split('.').rev().collect::<Vec<_>>().join(".")
}

const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";
const DEFINITIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";
