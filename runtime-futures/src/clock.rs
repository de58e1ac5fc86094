//! The clocks of this machine, and waiting for them.

use std::time::Duration;

use async_io::Timer;
use cloudcoil_core::{Now, Time};
use cloudcoil_runtime::blocking;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

/// What a [`Runtime`](cloudcoil_runtime::Runtime) has to know of time and chance; copies agree.
#[derive(Clone, Copy, Debug)]
pub struct Clock(blocking::Clock);

impl Clock {
    /// A clock that begins now.
    #[expect(clippy::new_without_default, reason = "two of them do not agree")]
    pub fn new() -> Self {
        Self(blocking::Clock::new())
    }

    /// See [`Runtime::now`](cloudcoil_runtime::Runtime::now).
    pub fn now(self) -> Now {
        self.0.now()
    }

    /// See [`Runtime::sleep_until`](cloudcoil_runtime::Runtime::sleep_until).
    pub fn sleep_until(self, at: Time) -> BoxFuture<'static, ()> {
        // No timer goes further than a century, and nobody waits for one.
        Timer::after(at.since(self.now().mono).min(CENTURY)).map(drop).boxed()
    }

    /// See [`Runtime::seed`](cloudcoil_runtime::Runtime::seed).
    pub fn seed(self) -> u64 {
        self.0.seed()
    }
}

const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
