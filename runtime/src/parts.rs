//! What has no `async` in it: for an adapter that has none either, and brings its own loops.

pub use crate::api::item;
pub use crate::controller::{ChangedKeys, Mapper, Mapping, outcome, primary_inputs, report};
pub use crate::informer::{ChangeHandler, Handler, Handlers};
pub use crate::panics::message;
pub use crate::record::Recording;
pub use crate::shared::Shared;
pub use crate::warnings::Warnings;
