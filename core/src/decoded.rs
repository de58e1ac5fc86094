//! Typed values of stored objects, made when first read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use serde::de::DeserializeOwned;

use crate::error::DecodeError;
use crate::object::Object;

/// The typed values of the objects that were read last: at most so many, the one not read for the longest goes first.
///
/// It is asked by object, not by name, so a value is never that of an older version. It keeps no object alive.
///
/// ```
/// use std::sync::Arc;
/// use cloudcoil_core::k8s_openapi::api::core::v1::ConfigMap;
/// use cloudcoil_core::{Decoded, Object, Trim};
///
/// let object = Arc::new(Object::parse(r#"{"metadata": {"name": "a"}}"#, Trim::Nothing)?);
/// let mut values = Decoded::<ConfigMap>::new(100);
/// let (one, other) = (values.get(&object)?, values.get(&object)?);
/// assert!(Arc::ptr_eq(&one, &other));
/// # Ok::<(), cloudcoil_core::DecodeError>(())
/// ```
pub struct Decoded<K> {
    values: BTreeMap<usize, Value<K>>,
    /// The addresses of the same values, by when they were last read.
    read: BTreeMap<u64, usize>,
    reads: u64,
    capacity: usize,
}

struct Value<K> {
    /// While this is held nothing else can live at the address that the value is found by.
    object: Weak<Object>,
    result: Result<Arc<K>, DecodeError>,
    read: u64,
}

impl<K> Decoded<K> {
    /// How many values are kept unless another number is asked for.
    pub const CAPACITY: usize = 1024;

    /// An empty cache of at most `capacity` values; with 0 nothing is kept.
    pub const fn new(capacity: usize) -> Self {
        Self { values: BTreeMap::new(), read: BTreeMap::new(), reads: 0, capacity }
    }

    /// The value of an object, if it is there.
    pub fn peek(&mut self, object: &Arc<Object>) -> Option<Result<Arc<K>, DecodeError>> {
        let address = Arc::as_ptr(object).addr();
        let value = self.values.get_mut(&address)?;
        self.reads += 1;
        self.read.remove(&std::mem::replace(&mut value.read, self.reads));
        self.read.insert(self.reads, address);
        Some(value.result.clone())
    }

    /// Keeps the value of an object.
    pub fn insert(&mut self, object: &Arc<Object>, result: Result<Arc<K>, DecodeError>) {
        if self.capacity == 0 {
            return;
        }
        let address = Arc::as_ptr(object).addr();
        self.reads += 1;
        let value = Value { object: Arc::downgrade(object), result, read: self.reads };
        self.read.insert(self.reads, address);
        if let Some(old) = self.values.insert(address, value) {
            self.read.remove(&old.read);
        }
        while self.values.len() > self.capacity {
            let Some((_, oldest)) = self.read.pop_first() else { return };
            self.values.remove(&oldest);
        }
    }

    /// Drops the values of objects that nobody holds any more.
    pub fn tidy(&mut self) {
        let read = &mut self.read;
        self.values.retain(|_, value| {
            let alive = value.object.strong_count() > 0;
            if !alive {
                read.remove(&value.read);
            }
            alive
        });
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl<K: DeserializeOwned> Decoded<K> {
    /// The value of an object, made now if it is not there.
    ///
    /// # Errors
    /// A [`DecodeError`] that names the object and the field that does not fit; it is kept like a value.
    pub fn get(&mut self, object: &Arc<Object>) -> Result<Arc<K>, DecodeError> {
        if let Some(result) = self.peek(object) {
            return result;
        }
        let result = object.decode().map(Arc::new);
        self.insert(object, result.clone());
        result
    }
}

impl<K> fmt::Debug for Decoded<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoded").field("len", &self.len()).field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Trim;
    use k8s_openapi::api::core::v1::ConfigMap;

    fn object(name: &str, data: &str) -> Arc<Object> {
        let text = format!(r#"{{"kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{data}}}"#);
        Arc::new(Object::parse(&text, Trim::Nothing).unwrap())
    }

    #[test]
    fn the_value_not_read_for_the_longest_goes_first() {
        let (a, b, c) = (object("a", "{}"), object("b", "{}"), object("c", "{}"));
        let mut values = Decoded::<ConfigMap>::new(2);
        for object in [&a, &b, &a, &c] {
            values.get(object).unwrap();
        }
        assert!(values.peek(&a).is_some() && values.peek(&b).is_none() && values.peek(&c).is_some());
        assert_eq!((values.len(), values.read.len()), (2, 2));
    }

    #[test]
    fn a_new_version_has_a_value_of_its_own() {
        let mut values = Decoded::<ConfigMap>::new(2);
        let (old, new) = (object("a", r#"{"x":"1"}"#), object("a", r#"{"x":"2"}"#));
        let data = |values: &mut Decoded<ConfigMap>, of| values.get(of).unwrap().data.clone().unwrap()["x"].clone();
        assert_eq!((data(&mut values, &old), data(&mut values, &new)), ("1".into(), "2".into()));
    }

    #[test]
    fn what_does_not_fit_is_said_each_time() {
        let mut values = Decoded::<ConfigMap>::new(2);
        let odd = object("a", "3");
        for _ in 0..2 {
            let error = values.get(&odd).unwrap_err();
            assert_eq!((&*error.object, &*error.path), ("ConfigMap a", "data"));
        }
    }

    #[test]
    fn values_of_objects_that_are_gone_are_tidied_away() {
        let mut values = Decoded::<ConfigMap>::new(10);
        let kept = object("a", "{}");
        values.get(&kept).unwrap();
        values.get(&object("b", "{}")).unwrap();
        values.tidy();
        assert_eq!((values.len(), values.read.len()), (1, 1));
    }

    #[test]
    fn with_no_capacity_nothing_is_kept() {
        let mut values = Decoded::<ConfigMap>::new(0);
        values.get(&object("a", "{}")).unwrap();
        assert!(values.is_empty());
    }
}
