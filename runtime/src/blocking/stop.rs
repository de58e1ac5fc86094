//! Ending what another thread is blocked in.

use std::fmt;

use super::driver::{Commands, Mailbox};

/// Ends a watch or a log from another thread; cheap to clone. See [`WatchStream::stop_handle`](super::WatchStream::stop_handle).
#[derive(Clone)]
pub struct StopHandle(Commands<Stop>);

pub(crate) struct Stop;

impl StopHandle {
    pub(crate) const fn new(commands: Commands<Stop>) -> Self {
        Self(commands)
    }

    /// For what was never under way.
    pub(crate) fn of_nothing() -> Self {
        Self(Mailbox::new().commands())
    }

    /// Ends it: after what was received before nothing comes any more. Whoever is blocked in it goes on at once, and its connection is
    /// closed.
    pub fn stop(&self) {
        self.0.send(Stop);
    }
}

impl fmt::Debug for StopHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StopHandle")
    }
}
