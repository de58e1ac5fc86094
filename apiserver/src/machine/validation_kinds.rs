//! What the API server checks of some kinds besides their metadata.

use serde_json::Value;

use super::catalog::Resource;
use super::errors::Fault;
use super::object::{self, Draft};
use super::validation::IMMUTABLE;

/// The faults of an object by the rules of its kind.
pub(crate) fn check(resource: &Resource, fields: &Draft) -> Vec<Fault> {
    let _ = (resource, fields);
    Vec::new()
}

/// The faults of a change by the rules of its kind.
pub(crate) fn check_change(resource: &Resource, old: &Draft, new: &Draft) -> Vec<Fault> {
    let mut faults = Vec::new();
    if matches!((&*resource.of.group, &*resource.of.plural), ("", "configmaps" | "secrets"))
        && object::at(old, &["immutable"]) == Some(&Value::Bool(true))
    {
        if object::at(new, &["immutable"]) != Some(&Value::Bool(true)) {
            faults.push(Fault::forbidden("immutable", "field is immutable when `immutable` is set"));
        }
        for field in ["data", "binaryData"] {
            if old.get(field) != new.get(field) {
                faults.push(Fault::forbidden(field, "field is immutable when `immutable` is set"));
            }
        }
    }
    if resource.is("", "secrets") && old.get("type") != new.get("type") {
        faults.push(Fault::invalid("type", new.get("type").cloned().unwrap_or(Value::Null), IMMUTABLE));
    }
    faults
}
