//! The types that the objects of a run define themselves.

use serde_json::Value;

use crate::resource::{ResourceType, Scope};
use crate::unstructured::Unstructured;

/// The types that a run has defined, so that objects of them need no discovery, which may lag behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Definitions(Vec<Definition>);

#[derive(Clone, Debug, PartialEq)]
struct Definition {
    name: String,
    types: Vec<ResourceType>,
    is_served: bool,
}

impl Definitions {
    /// Takes note of an object that the server has taken, if it is a definition.
    pub(super) fn add(&mut self, object: &Unstructured) {
        if object.group() != GROUP || object.kind() != "CustomResourceDefinition" {
            return;
        }
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let scope = if text("/spec/scope") == "Cluster" { Scope::Cluster } else { Scope::Namespaced };
        let versions = object.pointer("/spec/versions").and_then(Value::as_array);
        let types = versions.into_iter().flatten().filter(|version| version.get("served") == Some(&Value::Bool(true)));
        let types = types.filter_map(|version| version.get("name")?.as_str()).map(|version| {
            let (kind, plural) = (text("/spec/names/kind"), text("/spec/names/plural"));
            ResourceType::new(text("/spec/group"), version.to_owned(), kind, plural, scope)
        });
        let types = types.collect();
        self.0.push(Definition { name: text("/metadata/name"), types, is_served: is_established(object) });
    }

    /// The type of these objects, and the name of the definition that is to be waited for before there can be any.
    pub(super) fn find(&self, api_version: &str, kind: &str) -> Option<(ResourceType, Option<String>)> {
        self.0.iter().rev().find_map(|definition| {
            let found = definition.types.iter().find(|it| it.api_version() == api_version && it.kind == kind)?;
            Some((found.clone(), (!definition.is_served).then(|| definition.name.clone())))
        })
    }

    /// No more is to be waited for this one.
    pub(super) fn settle(&mut self, name: &str) {
        self.0
            .iter_mut()
            .filter(|definition| definition.name == name)
            .for_each(|definition| definition.is_served = true);
    }
}

/// Whether a definition's types are served.
pub(super) fn is_established(definition: &Unstructured) -> bool {
    let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
    let is = |condition: &Value, field: &str, text: &str| condition.get(field).and_then(Value::as_str) == Some(text);
    conditions
        .into_iter()
        .flatten()
        .any(|condition| is(condition, "type", "Established") && is(condition, "status", "True"))
}

/// The type of definitions.
pub(super) fn definitions() -> ResourceType {
    ResourceType::new(GROUP, "v1", "CustomResourceDefinition", "customresourcedefinitions", Scope::Cluster)
}

const GROUP: &str = "apiextensions.k8s.io";
