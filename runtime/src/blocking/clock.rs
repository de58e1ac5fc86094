//! Time, lots and threads.

use std::hash::{BuildHasher as _, RandomState};
use std::thread::{self, JoinHandle};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use cloudcoil_core::{Error, Now, Time, UnixTime};

use crate::plain::message;

/// Both clocks of the machine; copies agree.
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

    /// What they show.
    pub fn now(self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { mono: Time::ZERO + self.epoch.elapsed(), wall: UnixTime::default() + wall }
    }

    /// A number that differs from call to call: each state is keyed anew from the system's randomness.
    pub fn seed(self) -> u64 {
        RandomState::new().hash_one(0_u8)
    }

    pub(crate) fn sleep_until(self, at: Time) {
        thread::sleep(at.since(self.now().mono));
    }

    /// Has something done on a thread of its own.
    pub(crate) fn spawn<T: Send + 'static>(self, name: &str, work: impl FnOnce() -> T + Send + 'static) -> Ending<T> {
        let thread = thread::Builder::new().name(name.into()).spawn(work);
        Ending(thread.expect("the system has a thread left"))
    }
}

/// The end of a thread.
pub(crate) struct Ending<T>(JoinHandle<T>);

impl<T> Ending<T> {
    /// Waits for it.
    ///
    /// # Errors
    /// [`Error::Stopped`] after a panic.
    pub(crate) fn ended(self) -> Result<T, Error> {
        self.0.join().map_err(|panic| Error::Stopped(format!("it panicked: {}", message(&*panic)).into()))
    }
}
