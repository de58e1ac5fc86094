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

/// smol's own threads, of which there are as many as `SMOL_THREADS` says, else one.
#[derive(Clone, Debug)]
pub struct SmolRuntime {
    epoch: Instant,
}

impl SmolRuntime {
    /// A runtime whose monotonic clock starts now.
    pub fn new() -> Self {
        Self { epoch: Instant::now() }
    }
}

impl Default for SmolRuntime {
    fn default() -> Self {
        Self::new()
    }
}

impl Runtime for SmolRuntime {
    fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { mono: Time::ZERO + self.epoch.elapsed(), wall: UnixTime::default() + wall }
    }

    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()> {
        // No timer goes further than a century, and nobody waits for one.
        let timer = smol::Timer::at(self.epoch + at.since(Time::ZERO).min(CENTURY));
        timer.map(drop).boxed()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        smol::spawn(AssertUnwindSafe(task).catch_unwind().map(drop)).detach();
    }

    fn seed(&self) -> u64 {
        // Each state is keyed anew from the system's randomness.
        RandomState::new().hash_one(0_u8)
    }
}

impl Listener for SmolRuntime {
    fn listen(&self, config: ListenConfig, handler: Handler) -> BoxFuture<'static, Result<ListenHandle, ListenError>> {
        Box::pin(ready(cloudcoil_futures::listen(Arc::new(self.clone()), &config, handler)))
    }
}

const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
