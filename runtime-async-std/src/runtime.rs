//! The executor and its clocks.

use std::hash::{BuildHasher as _, RandomState};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cloudcoil_runtime::core::listen::{ListenConfig, ListenError};
use cloudcoil_runtime::core::{Now, Time, UnixTime};
use cloudcoil_runtime::listener::{Handler, ListenHandle};
use cloudcoil_runtime::{Listener, Runtime};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};

/// async-std's own threads, of which there are as many as `ASYNC_STD_THREAD_COUNT` says, else one for each processor.
#[derive(Clone, Debug)]
pub struct AsyncStdRuntime {
    epoch: Instant,
}

impl AsyncStdRuntime {
    /// A runtime whose monotonic clock starts now.
    pub fn new() -> Self {
        Self { epoch: Instant::now() }
    }
}

impl Default for AsyncStdRuntime {
    fn default() -> Self {
        Self::new()
    }
}

impl Runtime for AsyncStdRuntime {
    fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { mono: Time::ZERO + self.epoch.elapsed(), wall: UnixTime::default() + wall }
    }

    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()> {
        // No timer goes further than a century, and nobody waits for one.
        let at = self.epoch + at.since(Time::ZERO).min(CENTURY);
        async_std::task::sleep(at.saturating_duration_since(Instant::now())).boxed()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        async_std::task::spawn(AssertUnwindSafe(task).catch_unwind());
    }

    fn seed(&self) -> u64 {
        // Each state is keyed anew from the system's randomness.
        RandomState::new().hash_one(0_u8)
    }
}

impl Listener for AsyncStdRuntime {
    fn listen(&self, config: ListenConfig, handler: Handler) -> BoxFuture<'static, Result<ListenHandle, ListenError>> {
        Box::pin(ready(cloudcoil_futures::listen(Arc::new(self.clone()), &config, handler)))
    }
}

const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
