//! What the API server fills in when a client leaves it out.

use super::catalog::Resource;
use super::definitions;
use super::object::Draft;

/// Fills in what a client has left out of an object of a built-in kind.
pub(crate) fn apply(resource: &Resource, fields: &mut Draft) {
    if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
        definitions::default_names(fields);
    }
}
