//! Something that happens once, and that many may wait for.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use cloudcoil_core::Time;

use super::Clock;

/// The side that lets it happen. Dropping it lets it happen too.
pub(crate) struct Opener(Latch);

/// The side that waits, or looks.
#[derive(Clone)]
pub(crate) struct Latch(Arc<(Mutex<bool>, Condvar)>);

pub(crate) fn latch() -> (Opener, Latch) {
    let latch = Latch(Arc::default());
    (Opener(latch.clone()), latch)
}

impl Opener {
    pub(crate) fn open(&self) {
        let (is_open, opened) = &*self.0.0;
        *is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        opened.notify_all();
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        self.open();
    }
}

impl Latch {
    pub(crate) fn is_open(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn opened(&self) {
        let (is_open, opened) = &*self.0;
        let guard = is_open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(opened.wait_while(guard, |is_open| !*is_open));
    }

    /// Waits no longer than `until`; answers whether it is open.
    pub(crate) fn opened_until(&self, clock: &Clock, until: Time) -> bool {
        let (is_open, opened) = &*self.0;
        let guard = is_open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(opened.wait_timeout_while(guard, until.since(clock.now().mono), |is_open| !*is_open));
        self.is_open()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_wait_hear_of_it_and_so_do_those_who_come_later() {
        let ((opener, latch), clock) = (latch(), Clock::new());
        assert!(!latch.opened_until(&clock, Time::ZERO) && !latch.is_open());
        std::thread::scope(|scope| {
            scope.spawn(|| latch.opened());
            scope.spawn(|| assert!(latch.opened_until(&clock, Time::from_secs(600))));
            drop(opener);
        });
        latch.opened();
        assert!(latch.is_open());
    }
}
