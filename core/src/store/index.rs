//! Objects by a value that the user computes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::object::Object;

use super::entry::Entry;

/// Gives the values under which an index finds an object: none, one or several. The same object must always give the
/// same ones.
pub type IndexFn = dyn Fn(&Object) -> Vec<String> + Send + Sync;

pub(super) struct Index {
    values: Arc<IndexFn>,
    entries: BTreeMap<Box<str>, BTreeSet<Entry>>,
}

impl Index {
    pub(super) const fn new(values: Arc<IndexFn>) -> Self {
        Self { values, entries: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, entry: &Entry) {
        for value in (self.values)(entry.object()) {
            self.entries.entry(value.into()).or_default().insert(entry.clone());
        }
    }

    pub(super) fn remove(&mut self, entry: &Entry) {
        for value in (self.values)(entry.object()) {
            let Some(entries) = self.entries.get_mut(&*value) else { continue };
            entries.remove(entry);
            if entries.is_empty() {
                self.entries.remove(&*value);
            }
        }
    }

    pub(super) fn get(&self, value: &str) -> impl Iterator<Item = &Entry> {
        self.entries.get(value).into_iter().flatten()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(AsRef::as_ref)
    }
}
