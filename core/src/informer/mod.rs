//! A list and watch, the store it fills, and what changed in it.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::exchange::{HttpEffect, HttpEvent};
use crate::frame::Faulty;
use crate::list_watch::{ListWatch, WatchConfig, WatchEvent, WatchInput, WatchOutput};
use crate::machine::{Deadline, Machine, Outbox};
use crate::object::Object;
use crate::store::Store;
use crate::time::{Now, Time};

/// How an [`Informer`] works.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct InformerConfig {
    /// What is listed and watched.
    pub watch: WatchConfig,
    /// The most objects that are kept, the oldest making room for a new one; 0 is no limit.
    ///
    /// An object that had to make room is forgotten, not deleted: nothing is said when it goes, and a change brings
    /// it back as an addition.
    pub capacity: usize,
    /// How often every object is said again as it is in the store; `None` is never. It costs the server nothing.
    pub resync: Option<Duration>,
}

impl InformerConfig {
    /// Keeps everything, and says nothing twice.
    pub const fn new(watch: WatchConfig) -> Self {
        Self { watch, capacity: 0, resync: None }
    }
}

/// Keeps a [`Store`] in step with the API server, and says what changed.
///
/// Nothing reaches the store before the first list is complete. A later list is compared with what is there, by uid:
/// what is gone was deleted, another object of the same name is a deletion and an addition, another version is an
/// update, and the rest says nothing. So every change is said as one of three, whatever happened in between, and the
/// store is never seen half filled.
#[derive(Debug)]
pub struct Informer {
    watch: ListWatch,
    store: Store,
    phase: Phase,
    failure: Option<Error>,
    resync: Option<Duration>,
    resync_at: Option<Time>,
    heard: Outbox<WatchOutput>,
}

#[derive(Debug)]
enum Phase {
    /// The first list is coming in.
    FirstList { pending: Store },
    /// Changes are coming in.
    Watching,
    /// A later list is coming in, while readers see the store as it was.
    Relisting { pending: Store },
}

/// What an [`Informer`] hears.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must know what it may say")]
pub enum InformerInput {
    /// Something came of a request.
    Http(HttpEvent),
    /// No more is wanted: what is in flight is cancelled, and the store stays as it is.
    Stopped,
}

/// What an [`Informer`] asks for and says.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do all of them")]
pub enum InformerOutput {
    /// Do this.
    Http(HttpEffect),
    /// This happened.
    Event(InformerEvent),
}

/// What happened to the objects that an [`Informer`] follows. The store holds it when it is said.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must tell all of them")]
pub enum InformerEvent {
    /// An object is new.
    Added(Arc<Object>),
    /// An object has changed.
    Updated {
        /// As it was.
        old: Arc<Object>,
        /// As it is.
        new: Arc<Object>,
    },
    /// An object is gone; this is how it was last seen.
    Deleted(Arc<Object>),
    /// The store holds everything that was there when the list was made. Said after each complete list.
    Synced,
    /// An object is said again, unchanged.
    Resynced(Arc<Object>),
    /// An object cannot be taken in; the store keeps what it had of it.
    Faulty(Faulty),
    /// A list or watch failed; it is tried again after a while, and the store stays as it is.
    Failed {
        /// Why.
        error: Error,
        /// After which time it is tried again.
        retry_in: Duration,
    },
    /// Something is odd, and passed over.
    Warned(Box<str>),
}

/// Where an [`Informer`] stands.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "this is all there is to tell")]
pub struct InformerStatus<'a> {
    /// Whether the first list is complete; the store is empty before.
    pub synced: bool,
    /// How many objects the store holds.
    pub objects: usize,
    /// Why the last request failed, until one succeeds.
    pub failure: Option<&'a Error>,
}

impl Informer {
    /// An informer that lists on its first step. `machine` is the number in its tickets, `seed` moves its jitter.
    pub fn new(config: InformerConfig, machine: u32, seed: u64) -> Self {
        Self {
            watch: ListWatch::new(config.watch, machine, seed),
            store: Store::with_capacity_limit(config.capacity),
            phase: Phase::FirstList { pending: Store::new() },
            failure: None,
            resync: config.resync.filter(|period| !period.is_zero()),
            resync_at: None,
            heard: Outbox::new(),
        }
    }

    /// What is known; empty until the first list is complete.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// The same, to add an index to.
    pub const fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// Whether the first list is complete.
    pub const fn has_synced(&self) -> bool {
        !matches!(self.phase, Phase::FirstList { .. })
    }

    /// Where it stands.
    pub fn status(&self) -> InformerStatus<'_> {
        InformerStatus { synced: self.has_synced(), objects: self.store.len(), failure: self.failure.as_ref() }
    }

    const fn is_listing(&self) -> bool {
        !matches!(self.phase, Phase::Watching)
    }

    /// Puts an object of a list aside. One that is known already is not held twice.
    fn stage(&mut self, object: Arc<Object>) {
        let known = self.store.get(object.namespace(), object.name());
        let object = known.filter(|known| known.is_same_version(&object)).cloned().unwrap_or(object);
        if let Some(pending) = self.pending() {
            pending.insert(object);
        }
    }

    fn pending(&mut self) -> Option<&mut Store> {
        match &mut self.phase {
            Phase::FirstList { pending } | Phase::Relisting { pending } => Some(pending),
            Phase::Watching => None,
        }
    }

    fn follow(&mut self, now: Now, out: &mut Outbox<InformerOutput>) {
        if self.watch.is_following() {
            self.failure = None;
        }
        while let Some(heard) = self.heard.pop() {
            match heard {
                WatchOutput::Http(effect) => out.push(InformerOutput::Http(effect)),
                WatchOutput::Event(event) => self.take(now, event, out),
            }
        }
    }

    fn take(&mut self, now: Now, event: WatchEvent, out: &mut Outbox<InformerOutput>) {
        match event {
            WatchEvent::Restarted => self.restart(),
            WatchEvent::Listed(object) | WatchEvent::Applied(object) => {
                self.failure = None;
                if self.is_listing() { self.stage(object) } else { self.apply(object, out) }
            }
            WatchEvent::Deleted(object) => self.delete(&object, out),
            WatchEvent::Synced { .. } => self.sync(now, out),
            WatchEvent::Faulty(faulty) => self.keep(faulty, out),
            WatchEvent::Failed { error, retry_in } => {
                self.failure = Some(error.clone());
                say(out, InformerEvent::Failed { error, retry_in });
            }
            WatchEvent::Warned(warning) => say(out, InformerEvent::Warned(warning)),
        }
    }

    fn restart(&mut self) {
        let pending = Store::new();
        self.phase = if self.has_synced() { Phase::Relisting { pending } } else { Phase::FirstList { pending } };
    }

    /// Takes in the newest state of an object.
    fn apply(&mut self, object: Arc<Object>, out: &mut Outbox<InformerOutput>) {
        let old = self.store.get(object.namespace(), object.name()).cloned();
        match old {
            Some(old) if old.is_same_version(&object) => {}
            Some(old) if old.uid() == object.uid() => {
                self.store.insert(object.clone());
                say(out, InformerEvent::Updated { old, new: object });
            }
            Some(old) => {
                self.store.remove(old.namespace(), old.name());
                say(out, InformerEvent::Deleted(old));
                self.add(object, out);
            }
            None => self.add(object, out),
        }
    }

    fn add(&mut self, object: Arc<Object>, out: &mut Outbox<InformerOutput>) {
        self.store.insert(object.clone());
        say(out, InformerEvent::Added(object));
    }

    fn delete(&mut self, object: &Arc<Object>, out: &mut Outbox<InformerOutput>) {
        self.failure = None;
        let (namespace, name) = (object.namespace(), object.name());
        // The deletion of an earlier object says nothing about the one that has its name now.
        let ends = |known: &Arc<Object>| known.uid() == object.uid();
        if let Some(pending) = self.pending() {
            if pending.get(namespace, name).is_some_and(ends) {
                pending.remove(namespace, name);
            }
            return;
        }
        // A store that forgets cannot know whether an object was told of.
        if self.store.get(namespace, name).map_or_else(|| self.store.is_limited(), ends) {
            self.store.remove(namespace, name);
            say(out, InformerEvent::Deleted(object.clone()));
        }
    }

    /// Compares a complete list with what was known.
    fn sync(&mut self, now: Now, out: &mut Outbox<InformerOutput>) {
        self.failure = None;
        let phase = std::mem::replace(&mut self.phase, Phase::Watching);
        if let Phase::FirstList { pending } | Phase::Relisting { pending } = phase {
            let listed = |object: &Object| pending.get(object.namespace(), object.name()).is_some();
            let gone: Vec<_> = self.store.iter().filter(|object| !listed(object)).cloned().collect();
            for object in gone {
                self.store.remove(object.namespace(), object.name());
                say(out, InformerEvent::Deleted(object));
            }
            // Where objects have to make room, those that are known come first, lest they go and are then taken for new.
            let known = |object: &Object| self.store.get(object.namespace(), object.name()).is_some();
            let (first, last): (Vec<_>, Vec<_>) =
                pending.into_objects().partition(|object| !self.store.is_limited() || known(object));
            for object in first.into_iter().chain(last) {
                self.apply(object, out);
            }
        }
        say(out, InformerEvent::Synced);
        if self.resync_at.is_none() {
            self.resync_at = self.resync.map(|period| now.mono + period);
        }
    }

    /// An object that cannot be read is not one that is gone.
    fn keep(&mut self, faulty: Faulty, out: &mut Outbox<InformerOutput>) {
        if let Some(key) = &faulty.key
            && let Some(known) = self.store.get(key.namespace(), key.name()).cloned()
            && let Some(pending) = self.pending()
            && pending.get(key.namespace(), key.name()).is_none()
        {
            pending.insert(known);
        }
        say(out, InformerEvent::Faulty(faulty));
    }

    fn say_all_again(&mut self, now: Now, out: &mut Outbox<InformerOutput>) {
        for object in self.store.iter() {
            say(out, InformerEvent::Resynced(object.clone()));
        }
        self.resync_at = self.resync.map(|period| now.mono + period);
    }
}

fn say(out: &mut Outbox<InformerOutput>, event: InformerEvent) {
    out.push(InformerOutput::Event(event));
}

impl Machine for Informer {
    type Input = InformerInput;
    type Output = InformerOutput;

    fn on_input(&mut self, now: Now, input: InformerInput, out: &mut Outbox<InformerOutput>) {
        let input = match input {
            InformerInput::Http(event) => WatchInput::Http(event),
            InformerInput::Stopped => {
                (self.resync, self.resync_at) = (None, None);
                WatchInput::Stopped
            }
        };
        self.watch.on_input(now, input, &mut self.heard);
        self.follow(now, out);
    }

    fn on_timer(&mut self, now: Now, out: &mut Outbox<InformerOutput>) {
        if self.watch.deadline().is_some_and(|deadline| deadline.at <= now.mono) {
            self.watch.on_timer(now, &mut self.heard);
            self.follow(now, out);
        }
        if self.resync_at.is_some_and(|at| at <= now.mono) {
            self.say_all_again(now, out);
        }
    }

    fn deadline(&self) -> Option<Deadline> {
        let resync = self.resync_at.map(|at| Deadline::new(at, "resync"));
        Deadline::earliest(self.watch.deadline(), resync)
    }
}

#[cfg(test)]
mod tests;
