//! Label and field selectors: parsed, built, printed and evaluated as Kubernetes does it.
//!
//! See [Labels and Selectors](https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/) and
//! [Field Selectors](https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/).

mod field;
pub(crate) mod fuzz;
mod label;
mod name;
mod parse;
#[cfg(test)]
mod properties;

pub use field::{FieldSelector, FieldSelectorError, FieldTerm};
pub use label::{Requirement, Selector, SelectorError, Test};
pub use name::{NameFault, check_label_key, check_label_value};
