//! Time, as the machines want it.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use cloudcoil_core::{Now, Time, UnixTime};

/// Both clocks of the machine; copies agree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { epoch: Instant::now() }
    }

    pub(crate) fn now(self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { mono: Time::ZERO + self.epoch.elapsed(), wall: UnixTime::default() + wall }
    }
}

/// A number that differs from call to call: each state is keyed anew from the system's randomness.
pub(crate) fn seed() -> u64 {
    RandomState::new().hash_one(0_u8)
}
