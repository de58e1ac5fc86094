//! What is stored, and what it was: one revision counter for all types, as etcd has it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use super::object::{Draft, Object};

/// Where the objects of one type are kept: `group/plural`, with an empty group for the core group.
pub(crate) type Place = Arc<str>;

/// Which object of a type: `namespace/name`, or the name alone. Ordered by bytes, as etcd orders its keys.
pub(crate) type Key = Arc<str>;

/// The objects of one type at one revision.
pub(crate) type Snapshot = BTreeMap<Key, Arc<Object>>;

/// The key of an object.
pub(crate) fn key(namespace: Option<&str>, name: &str) -> Key {
    match namespace.filter(|namespace| !namespace.is_empty()) {
        Some(namespace) => format!("{namespace}/{name}").into(),
        None => name.into(),
    }
}

/// One write.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) place: Place,
    pub(crate) key: Key,
    pub(crate) before: Option<Arc<Object>>,
    pub(crate) after: Option<Arc<Object>>,
    pub(crate) revision: u64,
}

/// A revision that is not remembered any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// The oldest revision that is.
    pub(crate) oldest: u64,
}

/// Objects by place and key, with the last writes.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    revision: u64,
    places: BTreeMap<Place, Snapshot>,
    /// The writes after `revision - history.len()`, one for each revision.
    history: VecDeque<Change>,
    capacity: usize,
}

impl Store {
    /// An empty store that remembers the last `capacity` writes.
    pub(crate) const fn new(capacity: usize) -> Self {
        Self { revision: 1, places: BTreeMap::new(), history: VecDeque::new(), capacity }
    }

    /// The revision of the last write.
    pub(crate) const fn revision(&self) -> u64 {
        self.revision
    }

    /// The oldest revision whose state is still known.
    pub(crate) fn oldest(&self) -> u64 {
        self.revision - self.history.len() as u64
    }

    pub(crate) fn get(&self, place: &str, key: &str) -> Option<&Arc<Object>> {
        self.places.get(place)?.get(key)
    }

    /// The objects of a type as they are now.
    pub(crate) fn all(&self, place: &str) -> impl Iterator<Item = (&Key, &Arc<Object>)> {
        self.places.get(place).into_iter().flatten()
    }

    /// The objects of a type as they are now; `None` when there never were any.
    pub(crate) fn current(&self, place: &str) -> Option<&Snapshot> {
        self.places.get(place)
    }

    /// The objects of a type whose key begins with `prefix`.
    pub(crate) fn under<'a>(
        &'a self,
        place: &str,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Object>)> {
        let from = (Bound::Included(Key::from(prefix)), Bound::Unbounded);
        self.places
            .get(place)
            .into_iter()
            .flat_map(move |objects| objects.range(from.clone()))
            .take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// The objects of a type as they were after revision `revision`.
    pub(crate) fn at(&self, place: &str, revision: u64) -> Result<Snapshot, Compacted> {
        let mut snapshot = self.places.get(place).cloned().unwrap_or_default();
        for change in self.since(revision)?.rev().filter(|change| &*change.place == place) {
            match &change.before {
                Some(before) => snapshot.insert(Arc::clone(&change.key), Arc::clone(before)),
                None => snapshot.remove(&change.key),
            };
        }
        Ok(snapshot)
    }

    /// The writes after revision `revision`, oldest first.
    pub(crate) fn since(&self, revision: u64) -> Result<impl DoubleEndedIterator<Item = &Change>, Compacted> {
        let oldest = self.oldest();
        if revision < oldest {
            return Err(Compacted { oldest });
        }
        let skipped = usize::try_from(revision - oldest).unwrap_or(usize::MAX).min(self.history.len());
        Ok(self.history.range(skipped..))
    }

    /// Writes an object, which gets the next revision.
    pub(crate) fn put(&mut self, place: &Place, key: &Key, fields: Draft) -> Change {
        self.revision += 1;
        let after = Object::new(fields, self.revision);
        let objects = self.places.entry(Arc::clone(place)).or_default();
        let before = objects.insert(Arc::clone(key), Arc::clone(&after));
        self.remember(place, key, before, Some(after))
    }

    /// Removes an object; `None` if it is not there.
    pub(crate) fn remove(&mut self, place: &Place, key: &Key) -> Option<Change> {
        let before = self.places.get_mut(place)?.remove(key)?;
        self.revision += 1;
        Some(self.remember(place, key, Some(before), None))
    }

    /// Forgets every write up to revision `revision`, and every state before it.
    pub(crate) fn compact(&mut self, revision: u64) {
        while self.oldest() < revision && self.history.pop_front().is_some() {}
    }

    fn remember(
        &mut self,
        place: &Place,
        key: &Key,
        before: Option<Arc<Object>>,
        after: Option<Arc<Object>>,
    ) -> Change {
        let change = Change { place: Arc::clone(place), key: Arc::clone(key), before, after, revision: self.revision };
        self.history.push_back(change.clone());
        if self.history.len() > self.capacity {
            self.history.pop_front();
        }
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn draft(value: u8) -> Draft {
        match json!({"data": value}) {
            Value::Object(fields) => fields,
            _ => unreachable!("an object"),
        }
    }

    fn revisions(snapshot: &Snapshot) -> Vec<(String, u64)> {
        snapshot.iter().map(|(key, object)| (key.to_string(), object.revision())).collect()
    }

    #[test]
    fn every_write_has_its_own_revision() {
        let (place, mut store) = (Place::from("/pods"), Store::new(10));
        assert_eq!(store.put(&place, &"a".into(), draft(1)).revision, 2);
        assert_eq!(store.put(&"/secrets".into(), &"a".into(), draft(1)).revision, 3);
        assert_eq!(store.remove(&place, &"a".into()).map(|change| change.revision), Some(4));
        assert!(store.remove(&place, &"a".into()).is_none());
        assert_eq!(store.revision(), 4);
    }

    #[test]
    fn a_prefix_ends_at_its_namespace() {
        let (place, mut store) = (Place::from("/pods"), Store::new(10));
        for name in ["a/x", "a-b/x", "b/x", "a/y"] {
            store.put(&place, &name.into(), draft(0));
        }
        let keys: Vec<_> = store.under(&place, "a/").map(|(key, _)| key.to_string()).collect();
        assert_eq!(keys, ["a/x", "a/y"]);
    }

    #[test]
    fn what_was_forgotten_is_refused() {
        let (place, mut store) = (Place::from("/pods"), Store::new(3));
        for value in 0..5 {
            store.put(&place, &"a".into(), draft(value));
        }
        assert_eq!((store.revision(), store.oldest()), (6, 3));
        assert_eq!(store.at(&place, 2).unwrap_err(), Compacted { oldest: 3 });
        assert!(store.at(&place, 3).is_ok());
        store.compact(5);
        assert_eq!(store.oldest(), 5);
        store.compact(100);
        assert_eq!(store.oldest(), 6);
    }

    proptest! {
        #[test]
        fn any_remembered_revision_is_the_state_of_its_time(
            script in proptest::collection::vec((0_u8..4, any::<bool>(), any::<bool>()), 0..60),
            capacity in 0_usize..70,
        ) {
            let places = [Place::from("/pods"), Place::from("/secrets")];
            let mut store = Store::new(capacity);
            let mut states = vec![(store.revision(), places.each_ref().map(|_| Vec::new()))];
            for (name, put, second) in script {
                let (place, key) = (&places[usize::from(second)], Key::from(name.to_string()));
                if put { store.put(place, &key, draft(name)); } else { store.remove(place, &key); }
                let now = places.each_ref().map(|place| revisions(&store.at(place, store.revision()).unwrap()));
                states.push((store.revision(), now));
            }
            for (revision, state) in states {
                for (place, expected) in places.iter().zip(state) {
                    match store.at(place, revision) {
                        Ok(snapshot) => prop_assert_eq!(revisions(&snapshot), expected),
                        Err(Compacted { oldest }) => prop_assert!(revision < oldest),
                    }
                }
            }
        }
    }
}
