//! Those who want to hear of changes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cloudcoil_core::{Error, InformerEvent, Object, Resource};

use super::Reader;
use super::panics;

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
pub(crate) enum Handler<K> {
    /// Hears of each object that comes to be held.
    Added(Box<dyn FnMut(Arc<K>) + Send>),
    /// Hears of each new version of an object, with the old one before it.
    Updated(Box<dyn FnMut(Arc<K>, Arc<K>) + Send>),
    /// Hears of each object that is gone.
    Deleted(Box<dyn FnMut(Arc<K>) + Send>),
    /// Hears of every change as it is, with the cache at hand.
    Changed(ChangeHandler<K>),
    /// Hears that a list is complete.
    Synced(Box<dyn FnMut() + Send>),
    /// Hears of failures.
    Failed(Box<dyn FnMut(&Error) + Send>),
}

/// Hears of every change as it is, with the cache at hand.
pub(crate) type ChangeHandler<K> = Box<dyn FnMut(&Change, &Reader<K>) + Send>;

/// Those who want to hear of what an informer says.
pub(crate) struct Handlers<K> {
    reader: Reader<K>,
    handlers: Vec<Handler<K>>,
    eager: bool,
    /// How many objects have gone or changed since decoded values were tidied.
    changes: usize,
}

impl<K: Resource> Handlers<K> {
    /// Handlers with the cache at hand; if `eager`, objects are decoded as they come.
    pub(crate) fn new(reader: Reader<K>, handlers: Vec<Handler<K>>, eager: bool) -> Self {
        Self { reader, handlers, eager, changes: 0 }
    }

    /// Tells all whom it concerns. Answers whether everything is held now that existed at the start.
    pub(crate) fn tell(&mut self, event: InformerEvent) -> bool {
        match event {
            InformerEvent::Added(object) => self.changed(&Change::Added(object)),
            InformerEvent::Updated { old, new } => self.changed(&Change::Updated { old, new }),
            InformerEvent::Deleted(object) => self.changed(&Change::Deleted(object)),
            InformerEvent::Resynced(object) => self.changed(&Change::Updated { old: object.clone(), new: object }),
            InformerEvent::Synced => {
                self.synced();
                return true;
            }
            InformerEvent::Faulty(faulty) => self.failed(&faulty.error.into()),
            InformerEvent::Failed { error, retry_in } => {
                tracing::debug!(?retry_in, "the cache of {} lost its connection", self.reader.resource_type());
                self.failed(&error);
            }
            InformerEvent::Warned(warning) => {
                tracing::warn!("the cache of {}: {warning}", self.reader.resource_type());
            }
        }
        false
    }

    fn changed(&mut self, change: &Change) {
        if self.eager
            && let Change::Added(object) | Change::Updated { new: object, .. } = change
            && let Err(error) = self.reader.decode(object)
        {
            self.failed(&error.into());
        }
        let mut faults = Vec::new();
        for handler in &mut self.handlers {
            tell(&self.reader, handler, change, &mut faults);
        }
        faults.into_iter().for_each(|fault| self.failed(&fault));
        self.changes += 1;
        if self.changes.is_multiple_of(TIDY_EVERY) {
            self.reader.tidy();
        }
    }

    fn synced(&mut self) {
        for handler in &mut self.handlers {
            if let Handler::Synced(handler) = handler {
                guarded(handler);
            }
        }
    }

    /// Tells all who want to hear of it of a failure.
    fn failed(&mut self, error: &Error) {
        tracing::warn!(%error, "the cache of {}", self.reader.resource_type());
        self.reader.count_error();
        for handler in &mut self.handlers {
            if let Handler::Failed(handler) = handler {
                guarded(|| handler(error));
            }
        }
    }

    /// Tells a newcomer of what is held, as if it had just been added.
    pub(crate) fn join(&mut self, mut handler: Handler<K>) {
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

/// After how many changes the values of objects that are gone are let go.
const TIDY_EVERY: usize = 256;
