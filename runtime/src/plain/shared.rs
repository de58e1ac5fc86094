//! A machine that others look at while it runs.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use cloudcoil_core::record::{Entry, Recorded};
use cloudcoil_core::{Deadline, HttpEvent, HttpMachine, Machine, Now, Outbox, Said};

/// One loop steps it, others read it. It is locked for writing only while it takes a step, and readers are to hold it no
/// longer than it takes to clone what they want.
pub(crate) struct Shared<M>(Arc<RwLock<M>>);

impl<M> Clone for Shared<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M> Shared<M> {
    /// A machine that nobody looks at yet.
    pub(crate) fn new(machine: M) -> Self {
        Self(Arc::new(RwLock::new(machine)))
    }

    /// The machine, between two steps.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, M> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A machine that has panicked in a step takes down the loop that stepped it, and shows what it held before.
    fn write(&self) -> RwLockWriteGuard<'_, M> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: Machine> Machine for Shared<M> {
    type Input = M::Input;
    type Output = M::Output;

    fn on_input(&mut self, now: Now, input: M::Input, out: &mut Outbox<M::Output>) {
        self.write().on_input(now, input, out);
    }

    fn on_timer(&mut self, now: Now, out: &mut Outbox<M::Output>) {
        self.write().on_timer(now, out);
    }

    fn deadline(&self) -> Option<Deadline> {
        self.read().deadline()
    }

    /// The whole step under one lock.
    fn step(&mut self, now: Now, input: Option<M::Input>, out: &mut Outbox<M::Output>) -> Option<Deadline> {
        self.write().step(now, input, out)
    }
}

impl<M: HttpMachine> HttpMachine for Shared<M> {
    type Event = M::Event;

    fn hear(event: HttpEvent) -> M::Input {
        M::hear(event)
    }

    fn sort(output: M::Output) -> Said<M::Event> {
        M::sort(output)
    }
}

impl<M: Recorded> Recorded for Shared<M> {
    const NAME: &'static str = M::NAME;

    fn heard(input: &M::Input) -> Entry {
        M::heard(input)
    }

    fn said(output: &M::Output) -> Entry {
        M::said(output)
    }
}
