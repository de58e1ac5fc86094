//! An object as its own key: ordered by namespace and name without a copy of either.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

use crate::object::Object;

/// Where an object is in a store; what an [`Entry`] can be found by.
pub(super) trait Place {
    fn place(&self) -> (&str, &str);
}

impl Place for (&str, &str) {
    fn place(&self) -> (&str, &str) {
        *self
    }
}

impl PartialEq for dyn Place + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for dyn Place + '_ {}

impl PartialOrd for dyn Place + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Place + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

#[derive(Clone)]
pub(super) struct Entry(Arc<Object>);

impl Entry {
    pub(super) const fn new(object: Arc<Object>) -> Self {
        Self(object)
    }

    pub(super) const fn object(&self) -> &Arc<Object> {
        &self.0
    }

    pub(super) fn into_object(self) -> Arc<Object> {
        self.0
    }
}

impl Place for Entry {
    fn place(&self) -> (&str, &str) {
        (self.0.namespace().unwrap_or_default(), self.0.name())
    }
}

impl<'a> Borrow<dyn Place + 'a> for Entry {
    fn borrow(&self) -> &(dyn Place + 'a) {
        self
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}
