//! Giving up what another thread is blocked in.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Gives up an exchange from another thread. Cheap to clone; clones are the same.
///
/// A [`Transport`](super::Transport) says with [`on_cancel`](Self::on_cancel) how what it is blocked in is to be ended.
///
/// ```
/// use std::sync::mpsc;
/// use cloudcoil_runtime::blocking::Cancel;
///
/// let cancel = Cancel::new();
/// let (tell, told) = mpsc::channel();
/// cancel.on_cancel(move || tell.send("closed").unwrap());
/// cancel.cancel();
/// cancel.cancel();
/// assert!(cancel.is_cancelled() && told.iter().eq(["closed"]));
/// ```
#[derive(Clone, Default)]
pub struct Cancel(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    is_cancelled: bool,
    close: Option<Box<dyn FnOnce() + Send>>,
}

impl Cancel {
    /// One that nobody has called for yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls for it: what was left by [`on_cancel`](Self::on_cancel) runs, once. Answers whether there was anything to
    /// run, so that whoever was blocked will soon not be.
    pub fn cancel(&self) -> bool {
        let close = {
            let mut state = self.state();
            state.is_cancelled = true;
            state.close.take()
        };
        close.map(|close| close()).is_some()
    }

    /// Whether it was called for.
    pub fn is_cancelled(&self) -> bool {
        self.state().is_cancelled
    }

    /// What ends the call that this thread is about to block in; it must not block itself. Takes the place of what was left
    /// before, and runs at once if it is too late.
    pub fn on_cancel(&self, close: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        if state.is_cancelled {
            drop(state);
            close();
        } else {
            state.close = Some(Box::new(close));
        }
    }

    /// What was left is over: there is nothing to end any more.
    pub fn forget(&self) {
        self.state().close = None;
    }

    /// What is here is replaced whole, so a panic elsewhere does no harm to it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancel").field("is_cancelled", &self.is_cancelled()).finish()
    }
}
