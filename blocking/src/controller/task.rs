//! The loop of a controller.

use std::any::{Any, TypeId};
use std::sync::Arc;

use cloudcoil_core::{
    Error, Outcome, Reconciler, ReconcilerEvent as Event, ReconcilerInput, Resource, ResourceKey, Ticket, Verdict,
};
use cloudcoil_runtime::parts::{Shared, report};

use super::run::Runs;
use super::startup::Starting;
use crate::driver::{Driver, Turn};
use crate::informer::AnyInformer;
use crate::latch::Opener;

/// A running cache of a controller.
pub(super) struct Cache {
    pub(super) type_id: TypeId,
    pub(super) reader: Arc<dyn Any + Send + Sync>,
    pub(super) informer: Box<dyn AnyInformer>,
}

/// What others tell a controller.
pub(super) enum Command {
    Input(ReconcilerInput),
    /// The startup has ended.
    Started,
    /// The controller cannot go on.
    Failed(Error),
    Stop,
}

/// A running controller, as its own thread sees it.
pub(super) struct Task<K> {
    pub(super) driver: Driver<Shared<Reconciler>, Command>,
    pub(super) runs: Runs<K>,
    /// Until it has reported.
    pub(super) startup: Option<Starting>,
    pub(super) ready: Opener,
    /// Running, as long as they are here.
    pub(super) caches: Vec<Cache>,
    pub(super) failure: Option<Error>,
}

impl<K: Resource> Task<K> {
    /// Runs until the reconciler has stopped.
    pub(super) fn run(mut self) -> Result<(), Error> {
        loop {
            match self.driver.turn() {
                Turn::Command(Command::Started) => self.started(),
                Turn::Command(Command::Failed(error)) => self.fail(error),
                Turn::Command(Command::Stop) => self.stop(),
                Turn::Command(Command::Input(input)) => {
                    if let ReconcilerInput::Ran { ticket, .. } = &input {
                        self.runs.ended(*ticket);
                    }
                    self.input(input);
                }
                Turn::Event(Event::Run { ticket, key }) => self.begin(ticket, &key),
                Turn::Event(Event::Cancel { ticket }) => self.runs.stop(ticket),
                Turn::Event(Event::Reconciled(reconciled)) => report(&self.runs.resource_type.kind, &reconciled),
                Turn::Event(Event::CacheLagged { key }) => {
                    tracing::warn!(%key, "the cache does not show in time what a pass has written");
                }
                Turn::Event(Event::Resync) => {
                    for key in self.runs.primary.keys() {
                        self.input(ReconcilerInput::Enqueued(key));
                    }
                }
                Turn::Event(Event::Stopped) => {
                    let started = self.startup.take().map(Starting::abandon);
                    self.caches.extend(started.into_iter().flatten().flatten());
                    self.caches.iter().for_each(|cache| cache.informer.halt());
                    return self.failure.map_or(Ok(()), Err);
                }
            }
        }
    }

    fn started(&mut self) {
        match self.startup.take().map(Starting::end) {
            Some(Ok(caches)) => self.start(caches),
            Some(Err(error)) => self.fail(error),
            None => {}
        }
    }

    fn start(&mut self, caches: Vec<Cache>) {
        let mut all = (*self.runs.readers).clone();
        for cache in &caches {
            // The first cache of a type has the say.
            all.entry(cache.type_id).or_insert_with(|| cache.reader.clone());
        }
        self.runs.readers = Arc::new(all);
        self.caches.extend(caches);
        self.input(ReconcilerInput::Synced);
        self.ready.open();
    }

    fn fail(&mut self, error: Error) {
        tracing::error!(%error, "the controller of {} stops", self.runs.resource_type);
        self.failure.get_or_insert(error);
        self.input(ReconcilerInput::ShutDown { drain: false });
    }

    fn stop(&mut self) {
        self.input(ReconcilerInput::ShutDown { drain: true });
    }

    fn begin(&mut self, ticket: Ticket, key: &ResourceKey) {
        match self.runs.primary.object(key) {
            Some(object) => self.runs.start(ticket, object),
            None => self.input(ReconcilerInput::Ran { ticket, outcome: Outcome::new(Verdict::Gone) }),
        }
    }

    fn input(&mut self, input: ReconcilerInput) {
        self.driver.step(Some(input));
    }
}
