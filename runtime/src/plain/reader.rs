//! Looking at what an informer holds.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cloudcoil_core::{
    DecodeError, Decoded, Error, FieldSelector, Informer, Object, Resource, ResourceKey, ResourceList, ResourceType,
    Selector, Store,
};

use super::Shared;

/// Looks at what an informer holds. Cheap to clone; does not keep the informer running.
///
/// Objects are decoded when they are read, and shared: the same version of an object is the same `Arc`, as long as it is among
/// those read last. Everything is empty until the informer has synced.
pub struct Reader<K>(Arc<Inner<K>>);

/// Where an informer stands.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct InformerStatus {
    /// Whether everything is held that existed when it was started.
    pub synced: bool,
    /// How many objects it holds.
    pub objects: usize,
    /// Why the last request failed, until one succeeds.
    pub failure: Option<Error>,
    /// How many requests failed, and how many objects did not fit their type when somebody wanted them typed.
    pub errors: u64,
}

struct Inner<K> {
    machine: Shared<Informer>,
    decoded: Mutex<Decoded<K>>,
    resource_type: ResourceType,
    errors: AtomicU64,
}

impl<K> Clone for Reader<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> fmt::Debug for Reader<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reader").field(&self.0.resource_type).finish()
    }
}

impl<K> Reader<K> {
    /// A reader of what a machine holds, which keeps at most `capacity` decoded values.
    pub(crate) fn new(machine: Shared<Informer>, capacity: usize, resource_type: ResourceType) -> Self {
        let (decoded, errors) = (Mutex::new(Decoded::new(capacity)), AtomicU64::new(0));
        Self(Arc::new(Inner { machine, decoded, resource_type, errors }))
    }

    /// The type of the objects.
    pub fn resource_type(&self) -> &ResourceType {
        &self.0.resource_type
    }

    /// Whether everything is held that existed when the informer was started.
    pub fn has_synced(&self) -> bool {
        self.0.machine.read().has_synced()
    }

    /// How many objects are held.
    pub fn len(&self) -> usize {
        self.0.machine.read().store().len()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An object as JSON with a header, without decoding it.
    pub fn object(&self, key: &ResourceKey) -> Option<Arc<Object>> {
        self.0.machine.read().store().get(key.namespace(), key.name()).cloned()
    }

    /// All objects as JSON with a header, without decoding them; by namespace and name.
    pub fn objects(&self) -> Vec<Arc<Object>> {
        self.0.machine.read().store().iter().cloned().collect()
    }

    /// The keys of all objects, by namespace and name.
    pub fn keys(&self) -> Vec<ResourceKey> {
        self.objects().iter().map(|object| object.key()).collect()
    }

    /// The values that an index has objects for, in order.
    ///
    /// # Errors
    /// [`Error::Misuse`] if there is no such index.
    pub fn index_keys(&self, index: &str) -> Result<Vec<String>, Error> {
        let machine = self.0.machine.read();
        Ok(machine.store().index_keys(index)?.map(ToOwned::to_owned).collect())
    }

    /// Where the informer stands.
    pub fn status(&self) -> InformerStatus {
        let machine = self.0.machine.read();
        let status = machine.status();
        let (synced, objects, failure) = (status.synced, status.objects, status.failure.cloned());
        InformerStatus { synced, objects, failure, errors: self.0.errors.load(Ordering::Relaxed) }
    }

    pub(super) fn count_error(&self) {
        self.0.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets go of the values of objects that are gone.
    pub(super) fn tidy(&self) {
        self.decoded().tidy();
    }

    fn decoded(&self) -> MutexGuard<'_, Decoded<K>> {
        self.0.decoded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Resource> Reader<K> {
    /// An object, if there is one of that key.
    ///
    /// # Errors
    /// A [`DecodeError`] that names object and field, if it does not fit its type.
    pub fn get(&self, key: &ResourceKey) -> Result<Option<Arc<K>>, DecodeError> {
        self.object(key).map(|object| self.decode(&object)).transpose()
    }

    /// All objects, by namespace and name; those that do not fit their type are errors beside the others.
    pub fn list(&self) -> ResourceList<Arc<K>> {
        self.typed(self.objects())
    }

    /// The objects of one namespace; looks at no others.
    pub fn list_in(&self, namespace: &str) -> ResourceList<Arc<K>> {
        self.find(|store| store.in_namespace(namespace).cloned().collect())
    }

    /// The objects whose labels match, in one namespace or, with `None`, in all.
    pub fn select(&self, namespace: Option<&str>, labels: &Selector) -> ResourceList<Arc<K>> {
        self.select_with(namespace, labels, &FieldSelector::new())
    }

    /// The objects whose labels and fields match, in one namespace or, with `None`, in all.
    pub fn select_with(
        &self,
        namespace: Option<&str>,
        labels: &Selector,
        fields: &FieldSelector,
    ) -> ResourceList<Arc<K>> {
        self.find(|store| store.select(namespace, labels, fields).cloned().collect())
    }

    /// The objects that have `value` in an index.
    ///
    /// # Errors
    /// [`Error::Misuse`] if there is no such index.
    pub fn by_index(&self, index: &str, value: &str) -> Result<ResourceList<Arc<K>>, Error> {
        let objects = self.0.machine.read().store().by_index(index, value)?.cloned().collect();
        Ok(self.typed(objects))
    }

    /// The typed value of an object.
    ///
    /// # Errors
    /// A [`DecodeError`] that names object and field, if it does not fit its type.
    pub fn decode(&self, object: &Arc<Object>) -> Result<Arc<K>, DecodeError> {
        if let Some(known) = self.decoded().peek(object) {
            return known;
        }
        // Decoded outside the lock: two at once may do it twice, and nobody waits.
        let result = object.decode().map(Arc::new);
        self.decoded().insert(object, result.clone());
        result
    }

    fn find(&self, look: impl FnOnce(&Store) -> Vec<Arc<Object>>) -> ResourceList<Arc<K>> {
        let found = look(self.0.machine.read().store());
        self.typed(found)
    }

    fn typed(&self, objects: Vec<Arc<Object>>) -> ResourceList<Arc<K>> {
        let mut list = ResourceList::default();
        for object in objects {
            match self.decode(&object) {
                Ok(value) => list.items.push(value),
                Err(error) => list.errors.push(error),
            }
        }
        list
    }
}
