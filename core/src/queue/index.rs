//! Where each key of a queue stands.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{Index as Get, IndexMut};

use crate::time::Time;

/// A slot for each key of which anything is known. A slot is found by key, and from then on known by its number.
///
/// Keys are found by their hash, which compares faster than they do. Nothing depends on the order of the hashes, and keys
/// that share one cost no more than a comparison of keys.
#[derive(Clone, Debug)]
pub(super) struct Index<K> {
    seed: u64,
    ids: BTreeMap<u64, SlotId>,
    /// Keys whose hash another key had already.
    clashes: BTreeMap<K, SlotId>,
    slots: Vec<Slot<K>>,
    free: Vec<SlotId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotId(usize);

#[derive(Clone, Debug)]
pub(super) struct Slot<K> {
    /// `None` while the slot is free.
    key: Option<K>,
    pub(super) place: Place,
    pub(super) failures: u32,
    pub(super) held: bool,
}

impl<K> Slot<K> {
    const fn new(key: K) -> Self {
        Self { key: Some(key), place: Place::Idle, failures: 0, held: false }
    }
}

/// Where a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere; only its failures are remembered, or that it is held.
    Idle,
    /// Among those behind a delay.
    Later(At),
    /// Among those that wait for a worker.
    Ready,
    /// It would wait for a worker if it were not held.
    Wanted,
    /// With a worker.
    Processing(Again),
}

impl Place {
    pub(super) const fn is_processing(self) -> bool {
        matches!(self, Self::Processing(_))
    }
}

/// What comes after the pass under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    No,
    Now,
    Later(At),
}

/// The end of a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At {
    pub(super) time: Time,
    pub(super) delay: u64,
}

impl<K: Ord + Hash + Clone> Index<K> {
    pub(super) const fn new(seed: u64) -> Self {
        Self { seed, ids: BTreeMap::new(), clashes: BTreeMap::new(), slots: Vec::new(), free: Vec::new() }
    }

    pub(super) fn find(&self, key: &K) -> Option<SlotId> {
        let id = self.ids.get(&self.hash(key)).copied().filter(|id| self.key(*id) == Some(key));
        if self.clashes.is_empty() { id } else { id.or_else(|| self.clashes.get(key).copied()) }
    }

    /// The slot of a key, a new one if need be.
    pub(super) fn enter(&mut self, key: K) -> SlotId {
        let next = self.free.last().copied().unwrap_or(SlotId(self.slots.len()));
        let known = match self.ids.entry(self.hash(&key)) {
            Entry::Occupied(first) if self.slots[first.get().0].key.as_ref() == Some(&key) => *first.get(),
            Entry::Occupied(_) => *self.clashes.entry(key.clone()).or_insert(next),
            Entry::Vacant(_) if self.clashes.contains_key(&key) => self.clashes[&key],
            Entry::Vacant(first) => *first.insert(next),
        };
        if known == next {
            self.free.pop();
            if next.0 == self.slots.len() {
                self.slots.push(Slot::new(key));
            } else {
                self.slots[next.0] = Slot::new(key);
            }
        }
        known
    }

    /// Frees a slot if nothing is left to be known of its key.
    pub(super) fn leave(&mut self, id: SlotId) {
        let slot = &mut self.slots[id.0];
        if slot.place != Place::Idle || slot.failures > 0 || slot.held {
            return;
        }
        let Some(key) = slot.key.take() else { return };
        let hash = self.hash(&key);
        if self.ids.get(&hash) == Some(&id) {
            self.ids.remove(&hash);
        } else {
            self.clashes.remove(&key);
        }
        self.free.push(id);
    }

    /// The key of a slot that is not free.
    pub(super) fn key(&self, id: SlotId) -> Option<&K> {
        self.slots[id.0].key.as_ref()
    }

    /// Drops delays and failures, and with `drain` false all that waits.
    pub(super) fn shut_down(&mut self, drain: bool) {
        for id in (0..self.slots.len()).map(SlotId) {
            let slot = &mut self[id];
            slot.failures = 0;
            slot.place = match slot.place {
                Place::Later(_) => Place::Idle,
                Place::Ready | Place::Wanted if !drain => Place::Idle,
                Place::Processing(Again::Now) if drain => Place::Processing(Again::Now),
                Place::Processing(_) => Place::Processing(Again::No),
                place => place,
            };
            self.leave(id);
        }
    }

    #[cfg(test)]
    pub(super) const fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Seeded, so that whoever names objects cannot choose their hashes.
    fn hash(&self, key: &K) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.seed);
        key.hash(&mut hasher);
        hasher.finish()
    }
}

impl<K> Get<SlotId> for Index<K> {
    type Output = Slot<K>;

    fn index(&self, id: SlotId) -> &Slot<K> {
        &self.slots[id.0]
    }
}

impl<K> IndexMut<SlotId> for Index<K> {
    fn index_mut(&mut self, id: SlotId) -> &mut Slot<K> {
        &mut self.slots[id.0]
    }
}
