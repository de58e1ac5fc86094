//! What nobody waits in: compiled once, and the same for tasks and for threads.

mod environment;
mod events;
mod handlers;
mod keeping;
mod keys;
mod outcome;
mod panics;
mod passes;
mod reader;
mod record;
mod requests;
mod shared;
mod warnings;

pub use environment::process_environment;
pub(crate) use events::item;
pub use events::{Awaited, WatchEvent};
pub use handlers::Change;
pub(crate) use handlers::{Handler, Handlers};
pub(crate) use keeping::{Errand, Keeping, Reply};
pub use keys::IntoKeys;
pub(crate) use keys::{ChangedKeys, Mapping, primary_inputs};
pub use outcome::{Action, IntoOutcome, Stop, Wait, form};
pub(crate) use panics::message;
pub(crate) use passes::{outcome, report};
pub use reader::{InformerStatus, Reader};
pub use record::Recorder;
pub(crate) use record::Recording;
pub(crate) use requests::Sent;
pub(crate) use shared::Shared;
pub(crate) use warnings::Warnings;

/// What both worlds show.
pub(crate) mod nouns {
    pub use cloudcoil_core as core;
    pub use cloudcoil_core::{
        Answer, ApiResource, BackoffPolicy, Catalog, DecodeError, Deleted, Error, Evicted, FieldSelector,
        FieldValidation, KnownResource, ListVersion, LogSource, Object, Patch, Predicate, Propagation,
        ReconcilerConfig, ReconcilerStatus, Resource, ResourceKey, ResourceList, ResourceType, RetryPolicy, Scope,
        Selector, Status, Table, TableEvent, Unstructured, Warning, WatchConfig,
    };

    pub use super::{
        Action, Awaited, Change, InformerStatus, IntoKeys, IntoOutcome, Reader, Recorder, Stop, Wait, WatchEvent, form,
        process_environment,
    };
}
