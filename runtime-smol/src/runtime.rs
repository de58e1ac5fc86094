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

/// smol's own threads, of which there are as many as `SMOL_THREADS` says, else one.
#[derive(Clone, Debug)]
pub struct SmolRuntime {
    clock: Clock,
}

impl SmolRuntime {
    /// A runtime whose monotonic clock starts now.
    pub fn new() -> Self {
        Self { clock: Clock::new() }
    }
}

impl Default for SmolRuntime {
    fn default() -> Self {
        Self::new()
    }
}

impl Runtime for SmolRuntime {
    fn now(&self) -> Now {
        self.clock.now()
    }

    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()> {
        self.clock.sleep_until(at)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        smol::spawn(AssertUnwindSafe(task).catch_unwind().map(drop)).detach();
    }

    fn seed(&self) -> u64 {
        self.clock.seed()
    }
}

impl Listener for SmolRuntime {
    fn listen(&self, config: ListenConfig, handler: Handler) -> BoxFuture<'static, Result<ListenHandle, ListenError>> {
        Box::pin(ready(cloudcoil_futures::listen(Arc::new(self.clone()), &config, handler)))
    }
}
