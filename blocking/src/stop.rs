//! Ending what another thread is blocked in.

use std::fmt;

use crate::driver::Commands;

/// Ends a watch or a log from another thread; cheap to clone. See [`WatchIter::stop_handle`](crate::WatchIter::stop_handle).
#[derive(Clone)]
pub struct StopHandle(Commands<Stop>);

pub(crate) struct Stop;

impl StopHandle {
    pub(crate) const fn new(commands: Commands<Stop>) -> Self {
        Self(commands)
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
