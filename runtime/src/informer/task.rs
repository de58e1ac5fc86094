//! The loop of an informer.

use std::future::poll_fn;
use std::task::Poll;

use cloudcoil_core::{Informer, InformerEvent, Resource};
use futures_channel::mpsc::UnboundedReceiver;
use futures_util::StreamExt as _;

use super::handlers::{Change, Handler, Handlers};
use crate::driver::Driver;
use crate::latch::Opener;
use crate::shared::Shared;

/// What others tell a running informer. It stops when nobody can tell it anything any more.
pub(super) enum Command<K> {
    /// Tell this one too.
    Join(Handler<K>),
}

/// A running informer, as its own task sees it.
pub(super) struct Task<K> {
    pub(super) driver: Driver<Shared<Informer>>,
    pub(super) commands: UnboundedReceiver<Command<K>>,
    pub(super) handlers: Handlers<K>,
    pub(super) synced: Opener,
    /// Opens when the task is dropped.
    #[expect(dead_code, reason = "what counts is when it is dropped")]
    pub(super) ended: Opener,
    pub(super) eager: bool,
    /// How many objects have gone or changed since decoded values were tidied.
    pub(super) changes: usize,
}

enum Turn<K> {
    Command(Command<K>),
    Event(InformerEvent),
    Stop,
}

impl<K: Resource> Task<K> {
    pub(super) async fn run(mut self) {
        loop {
            match self.turn().await {
                Turn::Stop => return,
                Turn::Event(event) => self.tell(event),
                Turn::Command(Command::Join(handler)) => {
                    // What the store holds already, but nobody has been told, is not told twice.
                    while let Some(event) = self.driver.pending() {
                        self.tell(event);
                    }
                    self.handlers.join(handler);
                }
            }
        }
    }

    async fn turn(&mut self) -> Turn<K> {
        poll_fn(|context| match self.commands.poll_next_unpin(context) {
            Poll::Ready(Some(command)) => Poll::Ready(Turn::Command(command)),
            Poll::Ready(None) => Poll::Ready(Turn::Stop),
            Poll::Pending => self.driver.poll_event(context).map(Turn::Event),
        })
        .await
    }

    fn tell(&mut self, event: InformerEvent) {
        match event {
            InformerEvent::Added(object) => self.changed(Change::Added(object)),
            InformerEvent::Updated { old, new } => self.changed(Change::Updated { old, new }),
            InformerEvent::Deleted(object) => self.changed(Change::Deleted(object)),
            InformerEvent::Resynced(object) => self.changed(Change::Updated { old: object.clone(), new: object }),
            InformerEvent::Synced => self.synced.open(),
            InformerEvent::Faulty(faulty) => self.handlers.failed(&faulty.error.into()),
            InformerEvent::Failed { error, retry_in } => {
                tracing::debug!(?retry_in, "the cache of {} lost its connection", self.handlers.reader.resource_type());
                self.handlers.failed(&error);
            }
            InformerEvent::Warned(warning) => {
                tracing::warn!("the cache of {}: {warning}", self.handlers.reader.resource_type());
            }
        }
    }

    fn changed(&mut self, change: Change) {
        if self.eager
            && let Change::Added(object) | Change::Updated { new: object, .. } = &change
            && let Err(error) = self.handlers.reader.decode(object)
        {
            self.handlers.failed(&error.into());
        }
        self.handlers.changed(&change);
        self.changes += 1;
        if self.changes.is_multiple_of(TIDY_EVERY) {
            self.handlers.reader.tidy();
        }
    }
}

/// After how many changes the values of objects that are gone are let go.
const TIDY_EVERY: usize = 256;
