//! Figures of a reconciler.

use std::time::Duration;

use crate::pass::{PassError, PassResult};

/// What a [`Reconciler`](crate::Reconciler) is doing, and what it has done since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReconcilerStatus {
    /// Whether the caches have synced, and no shutdown has begun.
    pub ready: bool,
    /// How many keys wait for a worker, or for the cache to hold what a pass has written.
    pub queued: usize,
    /// How many keys are being worked on.
    pub processing: usize,
    /// How many keys come again after a delay.
    pub delayed: usize,
    /// How many passes ended well: content, waiting, or with the object gone.
    pub successes: u64,
    /// How many passes met a newer object.
    pub conflicts: u64,
    /// How many passes failed and were to be retried.
    pub errors: u64,
    /// How many passes failed in a way that a retry cannot mend.
    pub terminal_errors: u64,
    /// How many passes were cancelled.
    pub cancellations: u64,
    /// How long all passes took together.
    pub duration: Duration,
}

impl ReconcilerStatus {
    pub(super) fn count(&mut self, result: &PassResult, took: Duration) {
        let counter = match result {
            PassResult::Succeeded { .. } | PassResult::Waiting { .. } | PassResult::Gone => &mut self.successes,
            PassResult::Conflict => &mut self.conflicts,
            PassResult::Failed(PassError::Terminal { .. }) => &mut self.terminal_errors,
            PassResult::Failed(_) => &mut self.errors,
            PassResult::Cancelled => &mut self.cancellations,
        };
        *counter += 1;
        self.duration = self.duration.saturating_add(took);
    }
}
