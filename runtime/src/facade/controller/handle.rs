//! Running controllers.

use std::fmt;
use std::time::Duration;

use cloudcoil_core::{Error, Reconciler, ReconcilerInput, ReconcilerStatus, ResourceKey};

use super::task::Command;
use super::world::clock::{Clock, Ending};
use super::world::driver::Commands;
use super::world::dual;
use super::world::latch::Latch;
use crate::plain::Shared;

/// A running controller. When it is dropped, the controller stops as after [`stop`](ControllerHandle::stop).
#[must_use = "the controller stops when it is dropped"]
pub struct ControllerHandle {
    pub(super) machine: Shared<Reconciler>,
    pub(super) commands: Commands<Command>,
    pub(super) ready: Latch,
    /// Until it is waited for.
    pub(super) ending: Option<Ending<Result<(), Error>>>,
    pub(super) clock: Clock,
}

#[dual]
impl ControllerHandle {
    /// What it is doing, and what it has done.
    pub fn status(&self) -> ReconcilerStatus {
        self.machine.read().status()
    }

    /// Whether its caches have synced, and it has not begun to stop.
    pub fn is_ready(&self) -> bool {
        self.status().ready
    }

    /// Waits until its caches have synced.
    ///
    /// # Errors
    /// [`Error::TimedOut`] after `timeout`; [`Error::Cancelled`] if it stops first, for which [`stopped`](Self::stopped) tells the
    /// reason.
    pub async fn wait_ready(&self, timeout: Duration) -> Result<(), Error> {
        let is_over = self.ready.opened_until(&self.clock, self.clock.now().mono + timeout).await;
        match (self.is_ready(), is_over) {
            (true, _) => Ok(()),
            (false, true) => Err(Error::Cancelled),
            (false, false) => Err(Error::TimedOut(timeout)),
        }
    }

    /// Has a pass look at an object, whether anything happened to it or not.
    pub fn enqueue(&self, key: ResourceKey) {
        self.send(Command::Input(ReconcilerInput::Enqueued(key)));
    }

    /// Stops it: what is queued is still worked off, for as long as the shutdown timeout allows; then handlers that are running
    /// are cancelled, on threads as soon as they look.
    pub fn stop(&self) {
        self.send(Command::Stop);
    }

    /// Waits until it has stopped, and no handler is running any more.
    ///
    /// # Errors
    /// Why it stopped, if nobody asked for it.
    pub async fn stopped(mut self) -> Result<(), Error> {
        match self.ending.take() {
            Some(ending) => ending.ended().await.flatten(),
            None => Ok(()),
        }
    }

    fn send(&self, command: Command) {
        self.commands.send(command);
    }
}

impl Drop for ControllerHandle {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for ControllerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ControllerHandle").field(&self.status()).finish()
    }
}
