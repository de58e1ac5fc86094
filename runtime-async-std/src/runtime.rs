//! The executor.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use cloudcoil_futures::Clock;
use cloudcoil_runtime::core::listen::{ListenConfig, ListenError};
use cloudcoil_runtime::core::{Now, Time};
use cloudcoil_runtime::listener::{Handler, ListenHandle};
use cloudcoil_runtime::{Listener, Runtime};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};

/// async-std's own threads, of which there are as many as `ASYNC_STD_THREAD_COUNT` says, else one for each processor.
#[derive(Clone, Debug)]
pub struct AsyncStdRuntime {
    clock: Clock,
}

impl AsyncStdRuntime {
    /// A runtime whose monotonic clock starts now.
    pub fn new() -> Self {
        Self { clock: Clock::new() }
    }
}

impl Default for AsyncStdRuntime {
    fn default() -> Self {
        Self::new()
    }
}

impl Runtime for AsyncStdRuntime {
    fn now(&self) -> Now {
        self.clock.now()
    }

    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()> {
        self.clock.sleep_until(at)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        async_std::task::spawn(AssertUnwindSafe(task).catch_unwind());
    }

    fn seed(&self) -> u64 {
        self.clock.seed()
    }
}

impl Listener for AsyncStdRuntime {
    fn listen(&self, config: ListenConfig, handler: Handler) -> BoxFuture<'static, Result<ListenHandle, ListenError>> {
        Box::pin(ready(cloudcoil_futures::listen(Arc::new(self.clone()), &config, handler)))
    }
}
