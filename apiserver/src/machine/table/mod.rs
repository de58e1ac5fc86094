//! Tables: what `kubectl get` prints.

use cloudcoil_core::Now;
use serde_json::{Value, json};

use super::catalog::Resource;
use super::object::Object;

/// The columns of a resource's table.
pub(crate) fn columns(resource: &Resource) -> impl Iterator<Item = Value> {
    let _ = resource;
    [("Name", "string", "name"), ("Age", "string", "")].into_iter().map(
        |(name, kind, format)| json!({"name": name, "type": kind, "format": format, "description": "", "priority": 0}),
    )
}

/// The cells of an object's row.
pub(crate) fn cells(resource: &Resource, object: &Object, now: Now) -> Vec<Value> {
    let _ = (resource, now);
    vec![Value::from(object.name()), Value::from(object.meta("creationTimestamp"))]
}
