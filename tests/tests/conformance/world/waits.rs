//! Waiting for what comes in.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use super::simulated::Turn;

/// How time passes.
#[derive(Clone)]
pub(crate) enum Waits {
    /// By itself.
    Real,
    /// As far as a world is turned.
    Virtual(Rc<RefCell<dyn Turn>>),
}

impl Waits {
    /// Waits for the next thing to come in; `None` when nothing will.
    ///
    /// # Panics
    /// If it takes too long.
    #[track_caller]
    pub(crate) fn next<T>(&self, items: &Receiver<T>) -> Option<T> {
        match self {
            Self::Real => match items.recv_timeout(LIMIT) {
                Ok(item) => Some(item),
                Err(RecvTimeoutError::Disconnected) => None,
                Err(RecvTimeoutError::Timeout) => panic!("stuck: nothing has come for {LIMIT:?}"),
            },
            Self::Virtual(world) => {
                let mut came = Err(TryRecvError::Empty);
                world.borrow_mut().turn(VIRTUAL_LIMIT, &mut || {
                    came = items.try_recv();
                    !matches!(came, Err(TryRecvError::Empty))
                });
                match came {
                    Ok(item) => Some(item),
                    Err(TryRecvError::Disconnected) => None,
                    Err(TryRecvError::Empty) => panic!("stuck: nothing comes within {VIRTUAL_LIMIT:?} of virtual time"),
                }
            }
        }
    }

    /// How much virtual time has passed.
    ///
    /// # Panics
    /// Where time is real, and no test can rely on it.
    pub(crate) fn elapsed(&self) -> Duration {
        match self {
            Self::Real => panic!("the scenario is for virtual time alone"),
            Self::Virtual(world) => world.borrow().elapsed(),
        }
    }

    /// Lets what was begun or given up take effect.
    pub(crate) fn settle(&self) {
        if let Self::Virtual(world) = self
            && let Ok(mut world) = world.try_borrow_mut()
        {
            world.turn(Duration::ZERO, &mut || false);
        }
    }
}

/// What comes in bit by bit.
pub(crate) struct Flow<T> {
    items: Receiver<T>,
    waits: Waits,
    end: Option<Box<dyn FnOnce()>>,
}

impl<T> Flow<T> {
    /// What comes out of `items`; `end` stops what puts it in.
    pub(super) fn new(items: Receiver<T>, waits: Waits, end: impl FnOnce() + 'static) -> Self {
        waits.settle();
        Self { items, waits, end: Some(Box::new(end)) }
    }

    /// The next, if any comes.
    #[track_caller]
    pub(crate) fn next(&self) -> Option<T> {
        self.waits.next(&self.items)
    }

    /// The next.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub(crate) fn one(self) -> T {
        self.next().expect("it ended without a word")
    }

    /// What has come already.
    pub(crate) fn come(&self) -> Vec<T> {
        self.items.try_iter().collect()
    }
}

impl<T, E: std::fmt::Debug> Flow<Result<T, E>> {
    /// The next, which is there and no failure.
    #[track_caller]
    pub(crate) fn good(&self) -> T {
        match self.next() {
            Some(Ok(item)) => item,
            Some(Err(error)) => panic!("failed: {error:?}"),
            None => panic!("it ended"),
        }
    }
}

impl<T> Drop for Flow<T> {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end();
        }
        self.waits.settle();
    }
}

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(180);
const VIRTUAL_LIMIT: Duration = Duration::from_secs(4 * 60 * 60);
