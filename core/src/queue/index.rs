//! Where each key of a queue stands.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::{Index as Get, IndexMut};

use crate::time::Time;

/// A slot for each key of which anything is known. A slot is found by key once, and from then on by its number.
#[derive(Clone, Debug)]
pub(super) struct Index<K> {
    ids: BTreeMap<K, SlotId>,
    slots: Vec<Slot>,
    free: Vec<SlotId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotId(usize);

#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) place: Place,
    pub(super) failures: u32,
    pub(super) held: bool,
}

/// A key that something is asked of.
#[derive(Clone, Debug)]
pub(super) enum Entered<K> {
    /// It is to be worked on as soon as can be, whatever is asked.
    Ready(SlotId),
    /// It has a slot, and here is the key to be put beside it.
    Open(SlotId, K),
}

impl<K> Entered<K> {
    pub(super) const fn id(&self) -> SlotId {
        match self {
            Self::Ready(id) | Self::Open(id, _) => *id,
        }
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

impl<K: Ord + Clone> Index<K> {
    pub(super) const fn new() -> Self {
        Self { ids: BTreeMap::new(), slots: Vec::new(), free: Vec::new() }
    }

    pub(super) fn find(&self, key: &K) -> Option<SlotId> {
        self.ids.get(key).copied()
    }

    #[cfg(test)]
    pub(super) const fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The slot of a key, a new one if need be.
    pub(super) fn enter(&mut self, key: K) -> Entered<K> {
        match self.ids.entry(key) {
            Entry::Occupied(entry) => {
                let id = *entry.get();
                match self.slots[id.0].place {
                    Place::Ready | Place::Wanted | Place::Processing(Again::Now) => Entered::Ready(id),
                    _ => Entered::Open(id, entry.key().clone()),
                }
            }
            Entry::Vacant(entry) => {
                let id = self.free.pop().unwrap_or(SlotId(self.slots.len()));
                if id.0 == self.slots.len() {
                    self.slots.push(UNUSED);
                }
                let key = entry.key().clone();
                entry.insert(id);
                Entered::Open(id, key)
            }
        }
    }

    /// Frees the slot of a key if nothing is left to be known.
    pub(super) fn leave(&mut self, key: &K, id: SlotId) {
        if matches!(self[id], Slot { place: Place::Idle, failures: 0, held: false }) {
            // A free slot is an unused one: nothing was left in it.
            self.ids.remove(key);
            self.free.push(id);
        }
    }

    /// Drops delays and failures, and with `drain` false all that waits.
    pub(super) fn shut_down(&mut self, drain: bool) {
        for slot in &mut self.slots {
            slot.failures = 0;
            slot.place = match slot.place {
                Place::Later(_) => Place::Idle,
                Place::Ready | Place::Wanted if !drain => Place::Idle,
                Place::Processing(Again::Now) if drain => Place::Processing(Again::Now),
                Place::Processing(_) => Place::Processing(Again::No),
                place => place,
            };
        }
        let (slots, free) = (&mut self.slots, &mut self.free);
        self.ids.retain(|_, id| {
            let kept = slots[id.0].place != Place::Idle || slots[id.0].held;
            if !kept {
                free.push(*id);
            }
            kept
        });
    }
}

impl<K> Get<SlotId> for Index<K> {
    type Output = Slot;

    fn index(&self, id: SlotId) -> &Slot {
        &self.slots[id.0]
    }
}

impl<K> IndexMut<SlotId> for Index<K> {
    fn index_mut(&mut self, id: SlotId) -> &mut Slot {
        &mut self.slots[id.0]
    }
}

const UNUSED: Slot = Slot { place: Place::Idle, failures: 0, held: false };
