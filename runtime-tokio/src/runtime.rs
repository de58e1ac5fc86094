//! The executor and its clocks.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cloudcoil_runtime::Runtime;
use cloudcoil_runtime::core::{Now, Time, UnixTime};
use futures_util::future::BoxFuture;
use tokio::time::Instant;

/// The tokio runtime that it is used in. Every use of it must come from within one.
#[derive(Clone, Debug)]
pub struct TokioRuntime {
    epoch: Instant,
}

impl TokioRuntime {
    /// A runtime whose monotonic clock starts now.
    pub fn new() -> Self {
        Self { epoch: Instant::now() }
    }
}

impl Default for TokioRuntime {
    fn default() -> Self {
        Self::new()
    }
}

impl Runtime for TokioRuntime {
    fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { mono: Time::ZERO + self.epoch.elapsed(), wall: UnixTime::default() + wall }
    }

    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()> {
        // No timer goes further than a century, and nobody waits for one.
        let after = at.since(Time::ZERO).min(CENTURY);
        Box::pin(tokio::time::sleep_until(self.epoch + after))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }

    fn seed(&self) -> u64 {
        // Each state is keyed anew from the system's randomness.
        RandomState::new().hash_one(0_u8)
    }
}

const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_sleep_ends_when_the_clock_says_so() {
        let runtime = TokioRuntime::new();
        let until = runtime.now().mono + Duration::from_millis(1500);
        runtime.sleep_until(until).await;
        assert!(runtime.now().mono >= until);
        let _never = runtime.sleep_until(Time::from_nanos(u64::MAX));
        assert!(runtime.now().wall > UnixTime::from_secs(1_600_000_000));
    }

    #[test]
    fn seeds_differ() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let runtime = TokioRuntime::new();
            assert_ne!(runtime.seed(), runtime.seed());
        });
    }
}
