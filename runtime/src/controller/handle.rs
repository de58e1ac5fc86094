//! Running controllers.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use cloudcoil_core::{Error, Reconciler, ReconcilerInput, ReconcilerStatus, ResourceKey};
use futures_channel::mpsc::UnboundedSender;
use futures_channel::oneshot;
use futures_util::future::select;

use super::task::Command;
use crate::Runtime;
use crate::latch::Latch;
use crate::shared::Shared;

/// A running controller. When it is dropped, the controller stops as after [`stop`](ControllerHandle::stop).
#[must_use = "the controller stops when it is dropped"]
pub struct ControllerHandle {
    pub(super) machine: Shared<Reconciler>,
    pub(super) commands: UnboundedSender<Command>,
    pub(super) ready: Latch,
    pub(super) result: oneshot::Receiver<Result<(), Error>>,
    pub(super) runtime: Arc<dyn Runtime>,
}

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
        let until = self.runtime.now().mono + timeout;
        select(pin!(self.ready.opened()), self.runtime.sleep_until(until)).await;
        match (self.is_ready(), self.ready.is_open()) {
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
    /// are cancelled.
    pub fn stop(&self) {
        self.send(Command::Stop);
    }

    /// Waits until it has stopped, and no handler is running any more.
    ///
    /// # Errors
    /// Why it stopped, if nobody asked for it.
    pub async fn stopped(mut self) -> Result<(), Error> {
        (&mut self.result).await.unwrap_or(Err(Error::Cancelled))
    }

    fn send(&self, command: Command) {
        // One that has stopped hears nothing.
        let _ = self.commands.unbounded_send(command);
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
