//! Objects by namespace and name, with indexes.

mod entry;
pub(crate) mod fuzz;
mod index;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use crate::error::Error;
use crate::object::Object;
use crate::selector::{FieldSelector, Selector};

use entry::{Entry, Place};
use index::Index;

pub use index::IndexFn;

/// The objects of one type that an informer knows, ordered by namespace and name.
///
/// Objects are kept untyped and shared; names, labels and index values are at hand without decoding. A change updates
/// the objects and every index together, so whoever reads between changes never sees one without the other.
///
/// ```
/// use std::sync::Arc;
/// use cloudcoil_core::{Object, Store, Trim};
///
/// let mut store = Store::new();
/// store.add_index("node", Arc::new(|pod| pod.label("node").map(ToOwned::to_owned).into_iter().collect()))?;
/// let text = r#"{"metadata": {"name": "web-0", "namespace": "shop", "labels": {"node": "n1"}}}"#;
/// store.insert(Arc::new(Object::parse(text, Trim::Nothing)?));
/// assert!(store.get(Some("shop"), "web-0").is_some());
/// assert_eq!(store.by_index("node", "n1")?.count(), 1);
/// # Ok::<(), cloudcoil_core::Error>(())
/// ```
#[derive(Default)]
pub struct Store {
    /// Each object, with its age.
    objects: BTreeMap<Entry, u64>,
    /// The same objects, oldest first; kept only where there is a capacity.
    ages: BTreeMap<u64, Entry>,
    inserted: u64,
    capacity: usize,
    indexes: BTreeMap<Box<str>, Index>,
}

impl Store {
    /// An empty store that forgets nothing by itself.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store that holds at most `capacity` objects, and forgets the oldest for a new one; 0 is no limit.
    ///
    /// An object is as old as its entry, whatever has changed in it since.
    pub fn with_capacity_limit(capacity: usize) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// The object of that name; `namespace` is `None`, or empty, for a cluster-scoped one.
    pub fn get(&self, namespace: Option<&str>, name: &str) -> Option<&Arc<Object>> {
        let place: &dyn Place = &(namespace.unwrap_or_default(), name);
        Some(self.objects.get_key_value(place)?.0.object())
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Whether objects have to make room for others, so that one that is not here may exist.
    pub const fn is_limited(&self) -> bool {
        self.capacity > 0
    }

    /// All objects, by namespace and name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Object>> + Clone {
        self.objects.keys().map(Entry::object)
    }

    /// The objects of one namespace, by name; looks at no others.
    pub fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<Object>> + Clone {
        let first: &dyn Place = &(namespace, "");
        self.objects
            .range::<dyn Place, _>((Bound::Included(first), Bound::Unbounded))
            .map(|(entry, _)| entry.object())
            .take_while(move |object| object.namespace().unwrap_or_default() == namespace)
    }

    /// The objects that fulfil both selectors, in one namespace or, with `None`, in all.
    pub fn select<'a>(
        &'a self,
        namespace: Option<&'a str>,
        labels: &'a Selector,
        fields: &'a FieldSelector,
    ) -> impl Iterator<Item = &'a Arc<Object>> {
        let (all, one) = match namespace {
            None => (Some(self.iter()), None),
            Some(namespace) => (None, Some(self.in_namespace(namespace))),
        };
        let within = all.into_iter().flatten().chain(one.into_iter().flatten());
        within.filter(|object| object.matches(labels) && object.matches_fields(fields))
    }

    /// Keeps an index of the values that `values` gives for each object, from now on and for what is there already.
    ///
    /// # Errors
    /// [`Error::Misuse`] when there is an index of that name.
    pub fn add_index(&mut self, name: &str, values: Arc<IndexFn>) -> Result<(), Error> {
        if self.indexes.contains_key(name) {
            return Err(Error::misuse(format!("there is an index {name:?} already")));
        }
        let mut index = Index::new(values);
        for entry in self.objects.keys() {
            let values = index.values_of(entry.object());
            index.insert(entry, values);
        }
        self.indexes.insert(name.into(), index);
        Ok(())
    }

    /// The objects that have `value` in an index, by namespace and name.
    ///
    /// # Errors
    /// [`Error::Misuse`] when there is no such index.
    pub fn by_index(&self, index: &str, value: &str) -> Result<impl Iterator<Item = &Arc<Object>>, Error> {
        Ok(self.index(index)?.get(value).map(Entry::object))
    }

    /// The values that an index has objects for, in order.
    ///
    /// # Errors
    /// [`Error::Misuse`] when there is no such index.
    pub fn index_keys(&self, index: &str) -> Result<impl Iterator<Item = &str>, Error> {
        Ok(self.index(index)?.keys())
    }

    /// All objects, by namespace and name, without the store.
    pub(crate) fn into_objects(self) -> impl Iterator<Item = Arc<Object>> {
        self.objects.into_keys().map(Entry::into_object)
    }

    /// Puts an object in, and answers the one of that name that it takes the place of.
    pub fn insert(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        let values: Vec<_> = self.indexes.values().map(|index| index.values_of(&object)).collect();
        let entry = Entry::new(object);
        let Some((old, age)) = self.objects.remove_entry(&entry) else {
            self.inserted += 1;
            self.place(entry, self.inserted, values);
            self.evict();
            return None;
        };
        for index in self.indexes.values_mut() {
            index.remove(&old);
        }
        self.place(entry, age, values);
        Some(old.into_object())
    }

    /// Takes an object out.
    pub fn remove(&mut self, namespace: Option<&str>, name: &str) -> Option<Arc<Object>> {
        let place: &dyn Place = &(namespace.unwrap_or_default(), name);
        let (entry, age) = self.objects.remove_entry(place)?;
        self.ages.remove(&age);
        for index in self.indexes.values_mut() {
            index.remove(&entry);
        }
        Some(entry.into_object())
    }

    fn place(&mut self, entry: Entry, age: u64, values: Vec<Vec<String>>) {
        for (index, values) in self.indexes.values_mut().zip(values) {
            index.insert(&entry, values);
        }
        if self.capacity > 0 {
            self.ages.insert(age, entry.clone());
        }
        self.objects.insert(entry, age);
    }

    fn evict(&mut self) {
        while self.capacity > 0 && self.objects.len() > self.capacity {
            let Some((_, oldest)) = self.ages.first_key_value() else { return };
            let oldest = oldest.object().clone();
            self.remove(oldest.namespace(), oldest.name());
        }
    }

    fn index(&self, name: &str) -> Result<&Index, Error> {
        self.indexes.get(name).ok_or_else(|| Error::misuse(format!("there is no index {name:?}")))
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("objects", &self.objects.len())
            .field("capacity", &self.capacity)
            .field("indexes", &self.indexes.keys())
            .finish_non_exhaustive()
    }
}
