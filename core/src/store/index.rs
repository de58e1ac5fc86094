//! Objects by a value that the user computes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::object::Object;

use super::entry::Entry;

/// Gives the values under which an index finds an object: none, one or several. The same object must always give the
/// same ones.
pub type IndexFn = dyn Fn(&Object) -> Vec<String> + Send + Sync;

pub(super) struct Index {
    function: Arc<IndexFn>,
    entries: BTreeMap<Arc<str>, BTreeSet<Entry>>,
    /// The values of each object that has any: it is taken out from under these, whatever the function would say now.
    values: BTreeMap<Entry, Vec<Arc<str>>>,
}

impl Index {
    pub(super) const fn new(function: Arc<IndexFn>) -> Self {
        Self { function, entries: BTreeMap::new(), values: BTreeMap::new() }
    }

    /// Asks the function, which is a stranger's and may panic: before anything is changed.
    pub(super) fn values_of(&self, object: &Object) -> Vec<String> {
        (self.function)(object)
    }

    pub(super) fn insert(&mut self, entry: &Entry, values: Vec<String>) {
        let values: Vec<_> = values.into_iter().map(|value| self.shared(value)).collect();
        for value in &values {
            self.entries.entry(Arc::clone(value)).or_default().insert(entry.clone());
        }
        if !values.is_empty() {
            self.values.insert(entry.clone(), values);
        }
    }

    pub(super) fn remove(&mut self, entry: &Entry) {
        for value in self.values.remove(entry).unwrap_or_default() {
            let Some(entries) = self.entries.get_mut(&value) else { continue };
            entries.remove(entry);
            if entries.is_empty() {
                self.entries.remove(&value);
            }
        }
    }

    pub(super) fn get(&self, value: &str) -> impl Iterator<Item = &Entry> {
        self.entries.get(value).into_iter().flatten()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(AsRef::as_ref)
    }

    /// The value as it is kept for other objects already.
    fn shared(&self, value: String) -> Arc<str> {
        self.entries.get_key_value(&*value).map_or_else(|| value.into(), |(known, _)| Arc::clone(known))
    }
}
