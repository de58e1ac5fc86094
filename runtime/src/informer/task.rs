//! The loop of an informer.

use std::future::poll_fn;
use std::task::Poll;

use cloudcoil_core::{Informer, InformerEvent, Resource};
use futures_channel::mpsc::UnboundedReceiver;
use futures_util::StreamExt as _;

use super::handlers::{Handler, Handlers};
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
        if self.handlers.tell(event) {
            self.synced.open();
        }
    }
}
