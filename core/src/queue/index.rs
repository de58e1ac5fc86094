//! Where each key of a queue stands.

use std::hash::{BuildHasher, Hash};
use std::ops::{Index as Get, IndexMut};

use foldhash::quality::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::time::Time;

/// A slot for each key of which anything is known. A slot is found by key, and from then on known by its number.
///
/// Keys are found by their hash, and never walked in its order, so that nothing depends on it. The hash is seeded, so
/// that whoever names objects cannot choose it.
#[derive(Clone, Debug)]
pub(super) struct Index<K> {
    hasher: FixedState,
    ids: HashTable<Found>,
    slots: Vec<Slot<K>>,
    free: Vec<SlotId>,
}

/// What the table holds of a key: the hash too, so that growing it looks at no slot.
#[derive(Clone, Copy, Debug)]
struct Found {
    hash: u32,
    id: SlotId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotId(u32);

impl SlotId {
    fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("four billion slots do not fit into memory"))
    }

    const fn index(self) -> usize {
        self.0 as usize
    }
}

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

impl<K: Hash + Eq> Index<K> {
    pub(super) const fn new(seed: u64) -> Self {
        Self { hasher: FixedState::with_seed(seed), ids: HashTable::new(), slots: Vec::new(), free: Vec::new() }
    }

    pub(super) fn find(&self, key: &K) -> Option<SlotId> {
        let hash = self.hash(key);
        self.ids.find(spread(hash), |found| self.key(found.id) == Some(key)).map(|found| found.id)
    }

    /// The slot of a key, a new one if need be.
    pub(super) fn enter(&mut self, key: K) -> SlotId {
        let hash = self.hash(&key);
        let slots = &mut self.slots;
        let same = |found: &Found| slots[found.id.index()].key.as_ref() == Some(&key);
        match self.ids.entry(spread(hash), same, |found| spread(found.hash)) {
            Entry::Occupied(entry) => entry.get().id,
            Entry::Vacant(entry) => {
                let id = self.free.pop().unwrap_or_else(|| SlotId::new(slots.len()));
                entry.insert(Found { hash, id });
                match slots.get_mut(id.index()) {
                    Some(slot) => *slot = Slot::new(key),
                    None => slots.push(Slot::new(key)),
                }
                id
            }
        }
    }

    /// Frees a slot if nothing is left to be known of its key.
    pub(super) fn leave(&mut self, id: SlotId) {
        let slot = &mut self[id];
        if slot.place != Place::Idle || slot.failures > 0 || slot.held {
            return;
        }
        let Some(key) = slot.key.take() else { return };
        if let Ok(entry) = self.ids.find_entry(spread(self.hash(&key)), |found| found.id == id) {
            entry.remove();
            self.free.push(id);
        }
    }

    /// The key of a slot that is not free.
    pub(super) fn key(&self, id: SlotId) -> Option<&K> {
        self[id].key.as_ref()
    }

    /// Drops delays and failures, and with `drain` false all that waits.
    pub(super) fn shut_down(&mut self, drain: bool) {
        for id in (0..self.slots.len()).map(SlotId::new) {
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

    fn hash(&self, key: &K) -> u32 {
        self.hasher.hash_one(key) as u32
    }
}

/// A short hash over all the bits that the table looks at.
const fn spread(hash: u32) -> u64 {
    (hash as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl<K> Get<SlotId> for Index<K> {
    type Output = Slot<K>;

    fn index(&self, id: SlotId) -> &Slot<K> {
        &self.slots[id.index()]
    }
}

impl<K> IndexMut<SlotId> for Index<K> {
    fn index_mut(&mut self, id: SlotId) -> &mut Slot<K> {
        &mut self.slots[id.index()]
    }
}
