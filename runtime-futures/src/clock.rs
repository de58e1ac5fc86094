//! The clocks of this machine, and waiting for them.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_io::Timer;
use cloudcoil_core::{Now, Time, UnixTime};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

/// What a [`Runtime`](cloudcoil_runtime::Runtime) has to know of time and chance; copies agree.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Instant,
}

impl Clock {
    /// A clock that begins now.
    #[expect(clippy::new_without_default, reason = "two of them do not agree")]
    pub fn new() -> Self {
        Self { epoch: Instant::now() }
    }

    /// See [`Runtime::now`](cloudcoil_runtime::Runtime::now).
    pub fn now(self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { mono: Time::ZERO + self.epoch.elapsed(), wall: UnixTime::default() + wall }
    }

    /// See [`Runtime::sleep_until`](cloudcoil_runtime::Runtime::sleep_until).
    pub fn sleep_until(self, at: Time) -> BoxFuture<'static, ()> {
        // No timer goes further than a century, and nobody waits for one.
        Timer::at(self.epoch + at.since(Time::ZERO).min(CENTURY)).map(drop).boxed()
    }

    /// See [`Runtime::seed`](cloudcoil_runtime::Runtime::seed).
    pub fn seed(self) -> u64 {
        // Each state is keyed anew from the system's randomness.
        RandomState::new().hash_one(0_u8)
    }
}

const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
