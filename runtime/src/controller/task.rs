//! The loop of a controller.

use std::any::{Any, TypeId};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use cloudcoil_core::{
    Error, Outcome, PassResult, Reconciled, Reconciler, ReconcilerEvent as Event, ReconcilerInput, Resource,
    ResourceKey, Ticket, Verdict,
};
use futures_channel::mpsc::UnboundedReceiver;
use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, join_all};

use super::run::Runs;
use crate::driver::Driver;
use crate::informer::AnyInformer;
use crate::latch::Opener;
use crate::shared::Shared;

/// A running cache of a controller.
pub(super) struct Cache {
    pub(super) type_id: TypeId,
    pub(super) reader: Arc<dyn Any + Send + Sync>,
    pub(super) informer: Box<dyn AnyInformer>,
}

/// What others tell a controller.
pub(super) enum Command {
    Input(ReconcilerInput),
    /// The controller cannot go on.
    Failed(Error),
    Stop,
}

/// A running controller, as its own task sees it.
pub(super) struct Task<K> {
    pub(super) driver: Driver<Shared<Reconciler>>,
    pub(super) commands: UnboundedReceiver<Command>,
    pub(super) runs: Runs<K>,
    /// Ends when the caches have synced.
    pub(super) startup: Option<BoxFuture<'static, Result<Vec<Cache>, Error>>>,
    pub(super) ready: Opener,
    /// Running, as long as they are here.
    pub(super) caches: Vec<Cache>,
    pub(super) failure: Option<Error>,
}

enum Turn {
    Started(Result<Vec<Cache>, Error>),
    Command(Command),
    Event(Event),
}

impl<K: Resource> Task<K> {
    /// Runs until the reconciler has stopped.
    pub(super) async fn run(mut self) -> Result<(), Error> {
        loop {
            match self.turn().await {
                Turn::Started(Ok(caches)) => self.start(caches),
                Turn::Started(Err(error)) | Turn::Command(Command::Failed(error)) => self.fail(error),
                Turn::Command(Command::Stop) => self.input(ReconcilerInput::ShutDown { drain: true }),
                Turn::Command(Command::Input(ReconcilerInput::Ran { ticket, outcome })) => {
                    self.runs.ended(ticket);
                    self.input(ReconcilerInput::Ran { ticket, outcome });
                }
                Turn::Command(Command::Input(input)) => self.input(input),
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
                    self.startup = None;
                    join_all(self.caches.drain(..).map(|cache| cache.informer.halt())).await;
                    return self.failure.map_or(Ok(()), Err);
                }
            }
        }
    }

    async fn turn(&mut self) -> Turn {
        poll_fn(|context| {
            // First of all what is known already: passes that begin with the startup then work on all of it.
            if let Poll::Ready(command) = self.commands.poll_next_unpin(context) {
                // The task itself holds a sender, so there is no end.
                return Poll::Ready(Turn::Command(command.unwrap_or(Command::Stop)));
            }
            if let Some(startup) = &mut self.startup
                && let Poll::Ready(result) = Pin::new(startup).poll(context)
            {
                self.startup = None;
                return Poll::Ready(Turn::Started(result));
            }
            self.driver.poll_event(context).map(Turn::Event)
        })
        .await
    }

    fn start(&mut self, caches: Vec<Cache>) {
        let readers = caches.iter().map(|cache| (cache.type_id, cache.reader.clone()));
        // The first cache of a type has the say.
        let mut all = (*self.runs.readers).clone();
        for (type_id, reader) in readers {
            all.entry(type_id).or_insert(reader);
        }
        self.runs.readers = Arc::new(all);
        self.caches.extend(caches);
        self.input(ReconcilerInput::Synced);
        self.ready.open();
    }

    fn fail(&mut self, error: Error) {
        tracing::error!(%error, "the controller of {} stops", self.runs.resource_type);
        self.startup = None;
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
}

/// Puts the end of a pass into the log.
pub fn report(kind: &str, reconciled: &Reconciled) {
    let Reconciled { key, result, again, failures, took, .. } = reconciled;
    match result {
        PassResult::Failed(error) => {
            tracing::warn!(kind, %key, %error, failures, ?took, ?again, "reconcile failed");
        }
        PassResult::Waiting { reason, .. } => tracing::debug!(kind, %key, reason, ?took, ?again, "reconcile waits"),
        result => tracing::debug!(kind, %key, ?result, ?took, ?again, "reconciled"),
    }
}
