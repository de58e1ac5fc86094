//! What belongs together, so that it can be given up as a whole.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The calls that a handler is blocked in. Cheap to clone; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Group(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    is_cancelled: bool,
    joined: u64,
    members: BTreeMap<u64, Box<dyn Fn() + Send>>,
}

/// A call that is under way, until it is dropped.
pub(crate) struct Member {
    group: Group,
    number: u64,
}

impl Group {
    /// Gives up all members, and all that come later.
    pub(crate) fn cancel(&self) {
        let mut state = self.state();
        state.is_cancelled = true;
        state.members.values().for_each(|give_up| give_up());
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.state().is_cancelled
    }

    /// Adds a call that `give_up` ends; it must not block, and may be called at once.
    pub(crate) fn join(&self, give_up: impl Fn() + Send + 'static) -> Member {
        let mut state = self.state();
        if state.is_cancelled {
            give_up();
        }
        state.joined += 1;
        let number = state.joined;
        state.members.insert(number, Box::new(give_up));
        Member { group: self.clone(), number }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.group.state().members.remove(&self.number);
    }
}
