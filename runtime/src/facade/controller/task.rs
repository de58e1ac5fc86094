//! The loop of a controller.

use std::any::{Any, TypeId};
use std::sync::Arc;

use cloudcoil_core::{
    Error, Outcome, Reconciler, ReconcilerEvent as Event, ReconcilerInput, Resource, ResourceKey, Ticket, Verdict,
};

use super::super::informer::AnyInformer;
use super::runs::Runs;
use super::startup::Startup;
use super::world::driver::{Driver, Turn};
use super::world::dual;
use super::world::latch::Opener;
use crate::plain::{Shared, report};

/// A running cache of a controller.
pub(super) struct Cache {
    pub(super) type_id: TypeId,
    pub(super) reader: Arc<dyn Any + Send + Sync>,
    pub(super) informer: Box<dyn AnyInformer>,
}

/// What others tell a controller.
pub(crate) enum Command {
    Input(ReconcilerInput),
    /// The startup has ended.
    Started,
    /// The controller cannot go on.
    Failed(Error),
    Stop,
}

/// A running controller, as it sees itself.
pub(crate) struct Task<K> {
    pub(super) driver: Driver<Shared<Reconciler>, Command>,
    pub(super) runs: Runs<K>,
    /// Until it has ended.
    pub(super) startup: Option<Startup>,
    pub(super) ready: Opener,
    /// Running, as long as they are here.
    pub(super) caches: Vec<Cache>,
    pub(super) failure: Option<Error>,
}

#[dual]
impl<K: Resource> Task<K> {
    /// Runs until the reconciler has stopped.
    pub(crate) async fn run(mut self) -> Result<(), Error> {
        loop {
            match self.driver.turn().await {
                Turn::Command(Command::Started) => self.started().await,
                Turn::Command(Command::Failed(error)) => self.fail(error),
                Turn::Command(Command::Stop) => self.input(ReconcilerInput::ShutDown { drain: true }),
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
                Turn::Event(Event::Stopped) => return self.end().await,
            }
        }
    }

    async fn started(&mut self) {
        let Some(startup) = self.startup.take() else { return };
        match startup.end().await {
            Ok(caches) => self.start(caches),
            Err(error) => self.fail(error),
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

    fn begin(&mut self, ticket: Ticket, key: &ResourceKey) {
        match self.runs.primary.object(key) {
            Some(object) => self.runs.start(ticket, object),
            None => self.input(ReconcilerInput::Ran { ticket, outcome: Outcome::new(Verdict::Gone) }),
        }
    }

    fn input(&mut self, input: ReconcilerInput) {
        self.driver.step(Some(input));
    }

    async fn end(mut self) -> Result<(), Error> {
        if let Some(startup) = self.startup.take() {
            self.caches.extend(startup.abandon().await);
        }
        halt(&self.caches).await;
        self.failure.map_or(Ok(()), Err)
    }
}

/// Stops caches, and waits until they have.
#[dual]
pub(super) async fn halt(caches: &[Cache]) {
    caches.iter().for_each(|cache| cache.informer.stop());
    let ends: Vec<_> = caches.iter().map(|cache| cache.informer.end()).collect();
    for end in ends {
        end.come().await;
    }
}
