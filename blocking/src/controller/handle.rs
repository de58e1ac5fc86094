//! Running controllers.

use std::fmt;
use std::thread::JoinHandle;
use std::time::Duration;

use cloudcoil_core::{Error, Reconciler, ReconcilerInput, ReconcilerStatus, ResourceKey};
use cloudcoil_runtime::parts::{Shared, message};

use super::task::Command;
use crate::driver::Commands;
use crate::latch::Latch;

/// A running controller. When it is dropped, the controller stops as after [`stop`](ControllerHandle::stop).
#[must_use = "the controller stops when it is dropped"]
pub struct ControllerHandle {
    pub(super) machine: Shared<Reconciler>,
    pub(super) commands: Commands<Command>,
    pub(super) ready: Latch,
    /// Until it is waited for.
    pub(super) thread: Option<JoinHandle<Result<(), Error>>>,
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
    pub fn wait_ready(&self, timeout: Duration) -> Result<(), Error> {
        self.ready.wait_for(timeout);
        match (self.is_ready(), self.ready.is_open()) {
            (true, _) => Ok(()),
            (false, true) => Err(Error::Cancelled),
            (false, false) => Err(Error::TimedOut(timeout)),
        }
    }

    /// Has a pass look at an object, whether anything happened to it or not.
    pub fn enqueue(&self, key: ResourceKey) {
        self.commands.send(Command::Input(ReconcilerInput::Enqueued(key)));
    }

    /// Stops it: what is queued is still worked off, for as long as the shutdown timeout allows; then handlers that are running
    /// are [cancelled](super::Context::is_cancelled).
    pub fn stop(&self) {
        self.commands.send(Command::Stop);
    }

    /// Waits until it has stopped, and no handler is running any more.
    ///
    /// # Errors
    /// Why it stopped, if nobody asked for it.
    pub fn stopped(mut self) -> Result<(), Error> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let panicked = |panic: &_| Error::Stopped(format!("the controller panicked: {}", message(panic)).into());
        thread.join().unwrap_or_else(|panic| Err(panicked(&*panic)))
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
