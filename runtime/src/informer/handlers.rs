//! Those who want to hear of changes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cloudcoil_core::{Error, Object, Resource};

use super::Reader;
use crate::panics;

/// A change of what an informer holds.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "nothing else can happen to an object")]
pub enum Change {
    /// An object has come to be held.
    Added(Arc<Object>),
    /// An object has another version.
    Updated {
        /// As it was held before.
        old: Arc<Object>,
        /// As it is.
        new: Arc<Object>,
    },
    /// An object is gone, or no longer matches; this is its last known state.
    Deleted(Arc<Object>),
}

/// Hears of changes or failures.
pub(super) enum Handler<K> {
    Added(Box<dyn FnMut(Arc<K>) + Send>),
    Updated(Box<dyn FnMut(Arc<K>, Arc<K>) + Send>),
    Deleted(Box<dyn FnMut(Arc<K>) + Send>),
    Changed(ChangeHandler<K>),
    Failed(Box<dyn FnMut(&Error) + Send>),
}

/// Hears of every change as it is, with the cache at hand.
pub(super) type ChangeHandler<K> = Box<dyn FnMut(&Change, &Reader<K>) + Send>;

pub(super) struct Handlers<K> {
    pub(super) reader: Reader<K>,
    pub(super) handlers: Vec<Handler<K>>,
}

impl<K: Resource> Handlers<K> {
    /// Tells all of a change.
    pub(super) fn changed(&mut self, change: &Change) {
        let mut faults = Vec::new();
        for handler in &mut self.handlers {
            tell(&self.reader, handler, change, &mut faults);
        }
        faults.into_iter().for_each(|fault| self.failed(&fault));
    }

    /// Tells all who want to hear of it of a failure.
    pub(super) fn failed(&mut self, error: &Error) {
        tracing::warn!(%error, "the cache of {}", self.reader.resource_type());
        self.reader.count_error();
        for handler in &mut self.handlers {
            if let Handler::Failed(handler) = handler {
                guarded(|| handler(error));
            }
        }
    }

    /// Tells a newcomer of what is held, as if it had just been added.
    pub(super) fn join(&mut self, mut handler: Handler<K>) {
        let mut faults = Vec::new();
        for object in self.reader.objects() {
            tell(&self.reader, &mut handler, &Change::Added(object), &mut faults);
        }
        self.handlers.push(handler);
        faults.into_iter().for_each(|fault| self.failed(&fault));
    }
}

/// Tells one handler; an object that does not fit its type is a fault, and nobody who wants it typed hears of it.
fn tell<K: Resource>(reader: &Reader<K>, handler: &mut Handler<K>, change: &Change, faults: &mut Vec<Error>) {
    let mut typed = |object: &Arc<Object>| reader.decode(object).map_err(|error| faults.push(error.into())).ok();
    match (handler, change) {
        (Handler::Changed(handler), change) => guarded(|| handler(change, reader)),
        (Handler::Added(handler), Change::Added(object)) | (Handler::Deleted(handler), Change::Deleted(object)) => {
            if let Some(object) = typed(object) {
                guarded(|| handler(object));
            }
        }
        (Handler::Updated(handler), Change::Updated { old, new }) => {
            if let (Some(new), Some(old)) = (typed(new), typed(old)) {
                guarded(|| handler(old, new));
            }
        }
        _ => {}
    }
}

/// A handler that panics is told of the next change all the same.
fn guarded(call: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
        tracing::error!("a handler of an informer panicked: {}", panics::message(&*panic));
    }
}
