//! Something that happens once, and that many may wait for.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

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

    pub(crate) fn wait(&self) {
        let (is_open, opened) = &*self.0;
        let guard = is_open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(opened.wait_while(guard, |is_open| !*is_open));
    }

    pub(crate) fn wait_for(&self, timeout: Duration) {
        let (is_open, opened) = &*self.0;
        let guard = is_open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(opened.wait_timeout_while(guard, timeout, |is_open| !*is_open));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_wait_hear_of_it_and_so_do_those_who_come_later() {
        let (opener, latch) = latch();
        latch.wait_for(Duration::ZERO);
        assert!(!latch.is_open());
        std::thread::scope(|scope| {
            scope.spawn(|| latch.wait());
            scope.spawn(|| latch.wait_for(Duration::from_secs(600)));
            drop(opener);
        });
        latch.wait();
        assert!(latch.is_open());
    }
}
